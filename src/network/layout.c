/* How the layers of a network hang together: inputs, values and arguments of one layer, for a picture of the
 * network.
 *
 * The arguments written here are for people: texts have no quotes and flags no value, so the result need not
 * parse again. The notation that parses is notation_text.c. */
#include "network/layout.h"
#include "network/network_internal.h"

const int32_t *sgm__network_inputs(const sgm_network *network, size_t index, int32_t *count)
{
    const sgm__entry *entry = &network->entries[index];
    *count = entry->input_count;
    return network->slots + entry->first_input;
}

sgm_value sgm__network_value(const sgm_network *network, size_t index)
{
    return network->values[index];
}

/* "name=value"; a flag needs no value, and a shape that is the first argument no name, as people write it:
 * input(28, 28). */
static void write_argument(sgm__text *text, const sgm_option *row, const sgm__argument_value *value,
                           bool is_first)
{
    char number[32];
    bool brackets = !is_first && value->shape.rank > 1;
    switch (sgm__form_of(row)) {
    case SGM__FORM_INTEGER:
        sgm__text_append(text, "%s=%lld", row->name, (long long)value->integer);
        break;
    case SGM__FORM_NUMBER:
        sgm__text_append(text, "%s=%s", row->name, sgm__number_text(value->number, number, sizeof number));
        break;
    case SGM__FORM_TEXT:
        sgm__text_append(text, "%s=%s", row->name, value->text);
        break;
    case SGM__FORM_FLAG:
        sgm__text_append(text, "%s", row->name);
        break;
    case SGM__FORM_SHAPE:
        sgm__text_append(text, "%s%s%s", is_first ? "" : row->name, is_first ? "" : "=", brackets ? "(" : "");
        for (int32_t i = 0; i < value->shape.rank; i++)
            sgm__text_append(text, i > 0 ? ", %lld" : "%lld", (long long)value->shape.dims[i]);
        sgm__text_append(text, "%s", brackets ? ")" : "");
        break;
    case SGM__FORM_NUMBERS:
        sgm__text_append(text, "%s=", row->name);
        sgm__numbers_write(text, value->numbers, value->number_count);
        break;
    }
}

/* Skips arguments that were not given, and flags and texts that a live change or the text has switched off.
 */
sgm_status sgm__network_write_arguments(sgm__text *text, const sgm_network *network, size_t index)
{
    const sgm_layer_type *type = network->entries[index].layer->type;
    const sgm__argument_value *values = sgm__entry_arguments(&network->entries[index]);
    const char *separator = "";
    for (size_t i = 0; i < type->argument_count; i++) {
        bool off = type->arguments[i].kind == SGM_KIND_BOOLEAN && values[i].integer == 0;
        bool none = type->arguments[i].kind == SGM_KIND_TEXT && values[i].text == NULL;
        if (!values[i].given || off || none)
            continue;
        sgm__text_append(text, "%s", separator);
        write_argument(text, &type->arguments[i], &values[i], i == 0);
        separator = ", ";
    }
    return text->failed ? sgm__fail_memory(text->length) : SGM_OK;
}
