/* Arguments of layers in a description: setting them with checks against the type's table, and names of
 * layers.
 *
 * The notation (notation_arguments.c) and options in C (layer.c) both set arguments by the functions here,
 * so the same rules and messages hold for both. An argument is found by name once and then set by its index
 * in the type's table; its value is the element of layer->arguments with that index. Arguments of a finished
 * network that change between recordings are entry_arguments.c; reading them while recording is
 * layer_call.c. */
#include "network/network_internal.h"

#include <math.h>
#include <stdio.h>

sgm__form sgm__form_of(const sgm_option *row)
{
    if (row->list)
        return row->kind == SGM_KIND_INTEGER ? SGM__FORM_SHAPE : SGM__FORM_NUMBERS;
    return row->kind == SGM_KIND_INTEGER   ? SGM__FORM_INTEGER
           : row->kind == SGM_KIND_NUMBER  ? SGM__FORM_NUMBER
           : row->kind == SGM_KIND_BOOLEAN ? SGM__FORM_FLAG
                                           : SGM__FORM_TEXT;
}

int32_t sgm__argument_find(const sgm_layer_type *type, const char *name)
{
    for (size_t i = 0; i < type->argument_count; i++)
        if (strcmp(type->arguments[i].name, name) == 0)
            return (int32_t)i;
    return -1;
}

char *sgm__arguments_list(const sgm_layer_type *type, char *buffer, size_t size)
{
    size_t length = 0;
    for (size_t i = 0; i < type->argument_count && length < size; i++)
        length += (size_t)snprintf(buffer + length, size - length, "%s, ", type->arguments[i].name);
    if (length < size)
        snprintf(buffer + length, size - length, "name, share");
    return buffer;
}

/* The place of an argument that has no value yet; an error if it has one. Shapes and lists, which are
 * appended to, do not come here. */
static sgm_status take(sgm_layer *layer, int32_t argument, sgm__argument_value **value)
{
    *value = &layer->arguments[argument];
    if ((*value)->given)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%s' of %s is given twice",
                        layer->type->arguments[argument].name, layer->type->name);
    return SGM_OK;
}

/* The number lies within the table's bounds; equal bounds mean that there are none. Integers come as double:
 * a bound beyond 2^53 would be inexact, and none is that large. */
static sgm_status check_bounds(const sgm_layer *layer, int32_t argument, double value)
{
    const sgm_option *table = &layer->type->arguments[argument];
    char minimum[32], maximum[32], text[32];
    if (!isfinite(value))
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%s' of %s must be a finite number", table->name,
                        layer->type->name);
    if (table->minimum < table->maximum && (value < table->minimum || value > table->maximum))
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%s' of %s is %s; it must be between %s and %s",
                        table->name, layer->type->name, sgm__number_text(value, text, sizeof text),
                        sgm__number_text(table->minimum, minimum, sizeof minimum),
                        sgm__number_text(table->maximum, maximum, sizeof maximum));
    return SGM_OK;
}

sgm_status sgm__argument_set_integer(sgm_layer *layer, int32_t argument, int64_t number)
{
    sgm__argument_value *value;
    SGM_TRY(take(layer, argument, &value));
    SGM_TRY(check_bounds(layer, argument, (double)number));
    value->integer = number;
    value->given = true;
    return SGM_OK;
}

sgm_status sgm__argument_set_number(sgm_layer *layer, int32_t argument, double number)
{
    sgm__argument_value *value;
    SGM_TRY(take(layer, argument, &value));
    SGM_TRY(check_bounds(layer, argument, number));
    value->number = number;
    value->given = true;
    return SGM_OK;
}

sgm_status sgm__argument_set_flag(sgm_layer *layer, int32_t argument, bool flag)
{
    sgm__argument_value *value;
    SGM_TRY(take(layer, argument, &value));
    value->integer = flag;
    value->given = true;
    return SGM_OK;
}

/* A text argument goes into error messages, the notation and identifiers of data. It therefore is one line
 * without quotes, which the notation could not write. */
static sgm_status check_text(const sgm_layer *layer, const sgm_option *table, const char *text)
{
    size_t length = strlen(text);
    if (length > SGM__MAX_NAME)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%s' of %s is longer than %d bytes", table->name,
                        layer->type->name, SGM__MAX_NAME);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == '"' || text[i] == 127)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "argument '%s' of %s must not contain quotes or control characters", table->name,
                            layer->type->name);
    return SGM_OK;
}

/* Copies the text. An argument named "activation" must name an operation that can be one, so that a misspelt
 * activation is an error at its column in the text and not only while recording. */
sgm_status sgm__argument_set_text(sgm_layer *layer, int32_t argument, const char *text)
{
    const sgm_option *table = &layer->type->arguments[argument];
    sgm__argument_value *value;
    SGM_TRY(take(layer, argument, &value));
    SGM_TRY(check_text(layer, table, text));
    if (strcmp(table->name, "activation") == 0 && !sgm__activation_is_none(text)) {
        const sgm_op *op = sgm__activation_find(text);
        if (op == NULL)
            return sgm_last_status();
        text = op->name;
    }
    if ((value->text = sgm__strdup(text)) == NULL)
        return SGM_ERROR_MEMORY;
    value->given = true;
    return SGM_OK;
}

/* One dimension is left for the batch. The number of elements is checked at each step, so that products of
 * dimensions need no check later. */
sgm_status sgm__argument_append_dimension(sgm_layer *layer, int32_t argument, int64_t dimension)
{
    sgm__argument_value *value = &layer->arguments[argument];
    if (value->shape.rank >= SGM_MAX_RANK - 1)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "argument '%s' of %s has more than %d dimensions; the batch is one more",
                        layer->type->arguments[argument].name, layer->type->name, SGM_MAX_RANK - 1);
    SGM_TRY(check_bounds(layer, argument, (double)dimension));
    value->shape.dims[value->shape.rank++] = dimension;
    if (sgm_shape_elements(&value->shape) < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument '%s' of %s has more elements than memory can address",
                        layer->type->arguments[argument].name, layer->type->name);
    value->given = true;
    return SGM_OK;
}

sgm_status sgm__argument_append_number(sgm_layer *layer, int32_t argument, double number)
{
    sgm__argument_value *value = &layer->arguments[argument];
    SGM_TRY(check_bounds(layer, argument, number));
    SGM_TRY(sgm__reserve(&value->numbers, &value->number_capacity, value->number_count + 1, sizeof(double)));
    value->numbers[value->number_count++] = number;
    value->given = true;
    return SGM_OK;
}

/* Called when all arguments were set. The message has the argument's documentation, so it says what to give.
 */
sgm_status sgm__arguments_finish(const sgm_layer *layer)
{
    for (size_t i = 0; i < layer->type->argument_count; i++)
        if (layer->type->arguments[i].required && !layer->arguments[i].given)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s needs its argument '%s': %s", layer->type->name,
                            layer->type->arguments[i].name,
                            layer->type->arguments[i].doc != NULL ? layer->type->arguments[i].doc : "");
    return SGM_OK;
}

/* Names become parts of identifiers such as "2-dense.weights" and of file names, so '.', '/' and spaces are
 * excluded. `number_sign` allows one '#'. */
sgm_status sgm__name_check(const char *name, const char *what, bool number_sign)
{
    size_t length = strlen(name);
    bool good = length > 0 && length <= SGM__MAX_NAME;
    int signs = 0;
    for (size_t i = 0; i < length && good; i++) {
        char c = name[i];
        signs += c == '#';
        good = sgm__is_alphanumeric(c) || c == '_' || c == '-' || (c == '#' && number_sign && signs == 1);
    }
    if (good)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "the name of %s must be 1 to %d letters, digits, '_' and '-'%s", what,
                    SGM__MAX_NAME, number_sign ? ", and at most one '#', which becomes its number" : "");
}

/* "random" is reserved: "random.seed" and "random.step" are states of the generator of random numbers, and
 * would collide with parameters of a layer of that name. */
sgm_status sgm__layer_set_name(sgm_layer *layer, const char *name)
{
    if (layer->name != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument 'name' of %s is given twice", layer->type->name);
    SGM_TRY(sgm__name_check(name, "a layer", true));
    if (strcmp(name, "random") == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a layer cannot be named 'random': the states of random numbers are");
    layer->name = sgm__strdup(name);
    return layer->name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Whether there is such a layer, with such parameters, is seen when the network is recorded. */
sgm_status sgm__layer_set_share(sgm_layer *layer, const char *of)
{
    if (layer->share != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "argument 'share' of %s is given twice", layer->type->name);
    SGM_TRY(sgm__name_check(of, "a layer to share with", false));
    layer->share = sgm__strdup(of);
    return layer->share != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- activations --- */

bool sgm__activation_is_none(const char *name)
{
    return name == NULL || name[0] == '\0' || strcmp(name, "none") == 0;
}

/* The names of all activations; sgm__free. `count` bounds the walk, as another thread may register more. */
static const char **activation_names(size_t *filled)
{
    const sgm_op *op;
    size_t count = 0;
    *filled = 0;
    while (sgm_op_at(count) != NULL)
        count++;
    const char **names = sgm__calloc(count + 1, sizeof(const char *));
    for (size_t i = 0; names != NULL && i < count && (op = sgm_op_at(i)) != NULL; i++)
        if ((op->flags & SGM_OP_ACTIVATION) != 0)
            names[(*filled)++] = op->name;
    return names;
}

static const sgm_op *find_activation(const char *name)
{
    const sgm_op *op;
    for (size_t i = 0; (op = sgm_op_at(i)) != NULL; i++)
        if ((op->flags & SGM_OP_ACTIVATION) != 0 && strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

const sgm_op *sgm__activation_meant(const char *name)
{
    size_t count;
    const sgm_op *op = find_activation(name);
    const char **names = op == NULL ? activation_names(&count) : NULL;
    const char *real = names != NULL ? sgm__name_real(SGM__NAME_ACTIVATION, name, names, count, NULL) : NULL;
    sgm__free(names);
    return real != NULL ? find_activation(real) : op;
}

/* Any registered operation with the flag SGM_OP_ACTIVATION is an activation, also one from a program. */
const sgm_op *sgm__activation_find(const char *name)
{
    const sgm_op *op = sgm__activation_meant(name);
    size_t count;
    char hint[SGM__NAME_HINT];
    const char **names = op == NULL ? activation_names(&count) : NULL;
    if (names == NULL)
        return op;
    sgm__name_hint(SGM__NAME_ACTIVATION, name, names, count, hint);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown activation '%s'%s", name,
             hint[0] != '\0' ? hint : "; known are for example relu, sigmoid and tanh");
    sgm__free(names);
    return NULL;
}

const char *sgm__argument_meant(const sgm_layer_type *type, const char *name, char hint[SGM__NAME_HINT])
{
    size_t count = type->argument_count;
    const char **names = sgm__calloc(count + 1, sizeof(const char *));
    hint[0] = '\0';
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = type->arguments[i].name;
    const char *real = names != NULL ? sgm__name_real(SGM__NAME_ARGUMENT, name, names, count, NULL) : NULL;
    if (names != NULL && real == NULL)
        sgm__name_hint(SGM__NAME_ARGUMENT, name, names, count, hint);
    sgm__free(names);
    return real;
}
