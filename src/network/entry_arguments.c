/* Arguments of a network's layers, one by one: reading them, and changing those that are live.
 *
 * src/show/trainer_layers.c binds these functions to identifiers such as "network.layers.2-dropout.rate",
 * which the command, monitors and control files read and write. A change is kept in a copy of the entry's
 * arguments, so the description, and with it the notation that a checkpoint saves, stays as it was written,
 * and the other copies of a repeated layer keep their value. A change takes effect with the next recording;
 * Only integers, numbers and flags that the type marks as live can change: no parameter's shape depends on
 * them. */
#include "network/network_internal.h"
#include "registry/option_check.h"

#include <math.h>
#include <stdio.h>

const sgm_layer_type *sgm_network_layer_type(const sgm_network *network, size_t index)
{
    return network != NULL && index < network->entry_count ? network->entries[index].layer->type : NULL;
}

/* Checks network and index, and finds the argument; the message lists the arguments that there are. */
static sgm_status find(const sgm_network *network, size_t index, const char *name, int32_t *argument)
{
    const sgm_layer_type *type = sgm_network_layer_type(network, index);
    if (type == NULL || name == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "an argument of a layer: expected a network that has the layer "
                                            "and a name");
    *argument = sgm__argument_find(type, name);
    if (*argument >= 0)
        return SGM_OK;
    char list[300];
    return sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no argument '%.100s'; it has %s",
                    network->entries[index].name, name, sgm__arguments_list(type, list, sizeof list));
}

/* The content owns a copy of the text; NULL is given as "". */
static sgm_status give_text(const char *text, sgm_content *content)
{
    *content = (sgm_content){SGM_KIND_TEXT, {.text = sgm__strdup(text != NULL ? text : "")}};
    return content->as.text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "28, 28", and "" for a shape that was not given. */
static sgm_status give_shape(const sgm_shape *shape, sgm_content *content)
{
    sgm__text text = {0};
    sgm__text_append(&text, "%s", "");
    for (int32_t i = 0; i < shape->rank; i++)
        sgm__text_append(&text, "%s%lld", i > 0 ? ", " : "", (long long)shape->dims[i]);
    char *list = sgm__text_take(&text);
    *content = (sgm_content){SGM_KIND_TEXT, {.text = list}};
    return list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "(1, 2.5)", as the notation writes lists. */
static sgm_status give_numbers(const sgm__argument_value *value, sgm_content *content)
{
    sgm__text text = {0};
    sgm__numbers_write(&text, value->numbers, value->number_count);
    char *list = sgm__text_take(&text);
    *content = (sgm_content){SGM_KIND_TEXT, {.text = list}};
    return list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The value, or the default of its row. */
static sgm_status give(const sgm_option *row, const sgm__argument_value *value, sgm_content *content)
{
    switch (sgm__form_of(row)) {
    case SGM__FORM_INTEGER:
        *content = sgm_integer_content(value->given ? value->integer : (int64_t)row->default_value);
        return SGM_OK;
    case SGM__FORM_NUMBER:
        *content = sgm_number_content(value->given ? value->number : row->default_value);
        return SGM_OK;
    case SGM__FORM_FLAG:
        *content = sgm_boolean_content(value->given ? value->integer != 0 : row->default_value != 0);
        return SGM_OK;
    case SGM__FORM_TEXT:
        return give_text(value->given ? value->text : row->default_text, content);
    case SGM__FORM_SHAPE:
        return give_shape(&value->shape, content);
    case SGM__FORM_NUMBERS:
        return give_numbers(value, content);
    }
    return SGM_OK;
}

sgm_status sgm_network_get_argument(const sgm_network *network, size_t index, const char *name,
                                    sgm_content *content)
{
    int32_t argument = -1;
    if (content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sgm_network_get_argument: expected a place for the content, got NULL");
    *content = (sgm_content){0};
    SGM_TRY(find(network, index, name, &argument));
    return give(&network->entries[index].layer->type->arguments[argument],
                &sgm__entry_arguments(&network->entries[index])[argument], content);
}

sgm_status sgm_network_get_adapter(const sgm_network *network, size_t index, const char *name,
                                   sgm_content *content)
{
    if (network == NULL || index >= network->adapter_count || name == NULL || content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "an argument of an adapter: expected a network that has the "
                                            "adapter, a name, and a place for the content");
    const sgm_layer *layer = network->adapters[index].layer;
    *content = (sgm_content){0};
    if (strcmp(name, "name") == 0)
        return give_text(layer->name, content);
    int32_t argument = sgm__argument_find(layer->type, name);
    char list[300];
    return argument >= 0
               ? give(&layer->type->arguments[argument], &layer->arguments[argument], content)
               : sgm_fail(SGM_ERROR_NOT_FOUND, "%s has no argument '%.100s'; it has %s", layer->type->name,
                          name, sgm__arguments_list(layer->type, list, sizeof list));
}

/* Whether `content` may be the new value: the argument is live, the kinds are equal, and the number is
 * finite and within the table's bounds (sgm__option_check, which options of all registries share). */
static sgm_status check(const char *layer, const sgm_option *row, const sgm_content *content)
{
    if (!row->live || row->list || row->kind == SGM_KIND_TEXT)
        return sgm_fail(SGM_ERROR_STATE, "%s.%s is read-only: describe another network to have another",
                        layer, row->name);
    if (content->kind != row->kind)
        return sgm_fail(SGM_ERROR_TYPE, "%s.%s: expected %s, got %s", layer, row->name,
                        sgm_kind_name(row->kind), sgm_kind_name(content->kind));
    char identifier[2 * SGM__MAX_NAME + 8];
    snprintf(identifier, sizeof identifier, "%s.%s", layer, row->name);
    if (content->kind == SGM_KIND_NUMBER && !isfinite(content->as.number))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected a finite number, got %g", identifier,
                        content->as.number);
    return sgm__option_check(row, identifier, content);
}

/* The first change copies all arguments of the entry. The copy shares texts and lists of numbers with the
 * description, which stays as long as the network; none of them is live, so none is ever replaced.
 * Forgetting the newest recording makes the next one complete, because comparing dynamic layers alone would
 * miss the change. */
sgm_status sgm_network_set_argument(sgm_network *network, size_t index, const char *name,
                                    const sgm_content *content)
{
    int32_t argument = -1;
    SGM_TRY(find(network, index, name, &argument));
    if (content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_network_set_argument: expected a content, got NULL");
    sgm__entry *entry = &network->entries[index];
    const sgm_layer_type *type = entry->layer->type;
    SGM_TRY(check(entry->name, &type->arguments[argument], content));
    if (entry->own == NULL) {
        size_t size = type->argument_count * sizeof(sgm__argument_value);
        entry->own = sgm__alloc(size);
        if (entry->own == NULL)
            return SGM_ERROR_MEMORY;
        memcpy(entry->own, entry->layer->arguments, size);
    }
    sgm__argument_value *value = &entry->own[argument];
    value->given = true;
    /* With another argument the layer records something else, so the newest recording is nothing to compare
     * with. */
    network->newest.graph = NULL;
    if (content->kind == SGM_KIND_NUMBER)
        value->number = content->as.number;
    else
        value->integer = content->kind == SGM_KIND_BOOLEAN ? content->as.boolean : content->as.integer;
    return SGM_OK;
}
