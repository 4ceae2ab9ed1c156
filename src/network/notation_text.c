/* Descriptions as text, which parses to the same description again.
 *
 * sgm_network_text writes the notation of a network from its tree: checkpoints, run folders and copies of
 * trainers keep networks in this form. Positional values, brackets and quotes are therefore written only
 * where the parser (notation.c, notation_arguments.c) reads them as the same arguments. White space of the
 * original is not kept. A text of arguments for people is layout.c. */
#include "network/network_internal.h"

#include <math.h>
#include <stdio.h>

/* Quotes go round whatever is not one word for the lexer. */
static void write_text(sgm__text *text, const char *value)
{
    const char *mark = sgm__is_word(value) ? "" : "\"";
    sgm__text_append(text, "%s%s%s", mark, value, mark);
}

/* With the argument's name several dimensions need brackets; as positional arguments they need none. */
static void write_shape(sgm__text *text, const sgm_shape *shape, bool named)
{
    bool brackets = named && shape->rank > 1;
    sgm__text_append(text, "%s", brackets ? "(" : "");
    for (int32_t i = 0; i < shape->rank; i++)
        sgm__text_append(text, i > 0 ? ", %lld" : "%lld", (long long)shape->dims[i]);
    sgm__text_append(text, "%s", brackets ? ")" : "");
}

void sgm__numbers_write(sgm__text *text, const double *numbers, size_t count)
{
    char number[32];
    sgm__text_append(text, "%s", count > 1 ? "(" : "");
    for (size_t i = 0; i < count; i++)
        sgm__text_append(text, i > 0 ? ", %s" : "%s", sgm__number_text(numbers[i], number, sizeof number));
    sgm__text_append(text, "%s", count > 1 ? ")" : "");
}

/* "name=value" or the value alone. Numbers are written with as many digits as it takes to read the same
 * double again. */
static void write_value(sgm__text *text, const sgm_option *argument, const sgm__argument_value *value,
                        bool named)
{
    char number[32];
    if (named)
        sgm__text_append(text, "%s=", argument->name);
    switch (sgm__form_of(argument)) {
    case SGM__FORM_INTEGER:
        sgm__text_append(text, "%lld", (long long)value->integer);
        break;
    case SGM__FORM_NUMBER:
        sgm__text_append(text, "%s", sgm__number_text(value->number, number, sizeof number));
        break;
    case SGM__FORM_TEXT:
        write_text(text, value->text);
        break;
    case SGM__FORM_FLAG:
        sgm__text_append(text, value->integer != 0 ? "true" : "false");
        break;
    case SGM__FORM_SHAPE:
        write_shape(text, &value->shape, named);
        break;
    case SGM__FORM_NUMBERS:
        sgm__numbers_write(text, value->numbers, value->number_count);
        break;
    }
}

/* Whether the layer has a flag of that name. */
static bool is_flag_name(const sgm_layer_type *type, const char *text)
{
    int32_t flag = sgm__argument_find(type, text);
    return flag >= 0 && type->arguments[flag].kind == SGM_KIND_BOOLEAN;
}

/* Whether the parser gives this value without a name to this argument. Arguments of joins come after
 * branches and always have names. A text that is "true", "false" or the name of a flag would be read as
 * that. */
static bool can_be_positional(const sgm_layer *layer, size_t index)
{
    const char *word = layer->arguments[index].text;
    sgm__form form = sgm__form_of(&layer->type->arguments[index]);
    if (layer->kind == SGM__NODE_BRANCHES || form == SGM__FORM_FLAG || form == SGM__FORM_NUMBERS)
        return false;
    return word == NULL ||
           (strcmp(word, "true") != 0 && strcmp(word, "false") != 0 && !is_flag_name(layer->type, word));
}

/* Writes arguments in the order of the table, without names as long as every argument before was given
 * without one, since a gap would move the values behind it to other arguments. Flags always have their name
 * and make no gap. */
static void write_arguments(sgm__text *text, const sgm_layer *layer, const char *separator)
{
    bool positional = true; /* all arguments so far were */
    for (size_t i = 0; i < layer->type->argument_count; i++) {
        const sgm_option *argument = &layer->type->arguments[i];
        bool given = layer->arguments[i].given;
        if (argument->kind != SGM_KIND_BOOLEAN)
            positional = positional && given && can_be_positional(layer, i);
        if (!given)
            continue;
        sgm__text_append(text, "%s", separator);
        write_value(text, argument, &layer->arguments[i], argument->kind == SGM_KIND_BOOLEAN || !positional);
        separator = ", ";
        /* a shape takes all numbers after it */
        positional = positional && sgm__form_of(argument) != SGM__FORM_SHAPE;
    }
    if (layer->name != NULL) {
        sgm__text_append(text, "%sname=", separator);
        write_text(text, layer->name);
        separator = ", ";
    }
    if (layer->share != NULL) {
        sgm__text_append(text, "%sshare=", separator);
        write_text(text, layer->share);
    }
}

static void write_part(sgm__text *text, const sgm_layer *part);

static void write_children(sgm__text *text, const sgm_layer *layer, const char *separator)
{
    for (size_t i = 0; i < layer->child_count; i++) {
        if (i > 0)
            sgm__text_append(text, "%s", separator);
        write_part(text, layer->children[i]);
    }
}

/* The brackets are left out if there is nothing in them. */
static void write_layer(sgm__text *text, const sgm_layer *layer)
{
    bool any = layer->name != NULL || layer->share != NULL;
    for (size_t i = 0; i < layer->type->argument_count && !any; i++)
        any = layer->arguments[i].given;
    sgm__text_append(text, "%s", layer->type->name);
    if (!any)
        return;
    sgm__text_append(text, "(");
    write_arguments(text, layer, "");
    sgm__text_append(text, ")");
}

/* Writes a subtree. A repeat has brackets round its only child, which may be a chain. */
static void write_part(sgm__text *text, const sgm_layer *part)
{
    switch (part->kind) {
    case SGM__NODE_LAYER:
        write_layer(text, part);
        break;
    case SGM__NODE_CHAIN:
        write_children(text, part, " + ");
        break;
    case SGM__NODE_REPEAT:
        sgm__text_append(text, "%d * (", part->times);
        write_children(text, part, "");
        sgm__text_append(text, ")");
        break;
    case SGM__NODE_BRANCHES:
        sgm__text_append(text, "%s(", part->type->name);
        write_children(text, part, ", ");
        write_arguments(text, part, ", ");
        sgm__text_append(text, ")");
        break;
    case SGM__NODE_REFERENCE:
        sgm__text_append(text, "%s", part->name);
        break;
    case SGM__NODE_DEFINITION:
        sgm__text_append(text, "%s = ", part->name);
        write_children(text, part, "");
        break;
    case SGM__NODE_STATEMENTS:
        write_children(text, part, "; ");
        break;
    }
}

/* The notation of the network as it was described; the caller frees it with sgm_string_free. */
char *sgm_network_text(const sgm_network *network)
{
    if (network == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the network is NULL");
        return NULL;
    }
    sgm__text text = {0};
    write_part(&text, network->root);
    return sgm__text_take(&text);
}

char *sgm_network_adapter_text(const sgm_network *network, size_t index)
{
    if (network == NULL || index >= network->adapter_count) {
        sgm_fail(SGM_ERROR_ARGUMENT, "the notation of an adapter: expected a network that has the adapter");
        return NULL;
    }
    sgm__text text = {0};
    write_layer(&text, network->adapters[index].layer);
    return sgm__text_take(&text);
}
