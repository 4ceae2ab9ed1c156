/* The notation of layers' arguments: values by position or by name, from '(' to ')'.
 *
 * Positional values need not be complete: each goes to the next argument of the table whose form takes it,
 * so dense(10, relu) and convolution(32, 5, relu, padding=same) read naturally. The word of a flag stands
 * for itself. The setters of arguments.c check bounds and double values; this file adds the place in the
 * text to their messages. The grammar around it is notation.c. */
#include "network/parser.h"

#include <stdio.h>

/* A number keeps all its forms, since only the argument's kind tells which one counts. A quoted text is
 * never a number. */
sgm_status sgm__parser_value(sgm__parser *p, sgm__parsed_value *v)
{
    *v = (sgm__parsed_value){.token = p->token};
    if (p->token.kind == SGM__TOKEN_OPEN_STRING)
        return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "this text has no closing quote");
    bool text = p->token.kind == SGM__TOKEN_WORD || p->token.kind == SGM__TOKEN_STRING;
    if (!text && p->token.kind != SGM__TOKEN_NUMBER)
        return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "expected an argument, found %s%s",
                                sgm__parser_quote(&p->token).text,
                                *p->token.start == '\'' ? "; names need no quotes, as in dense(8, relu)"
                                                        : "");
    if (p->token.length > SGM__MAX_NAME)
        return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "%s is longer than %d characters",
                                sgm__parser_quote(&p->token).text, SGM__MAX_NAME);
    memcpy(v->text, p->token.start, p->token.length);
    v->is_text = text;
    if (!text) {
        v->is_integer = sgm__parse_int64(v->text, &v->integer);
        v->is_number = sgm__parse_double(v->text, &v->number);
        if (!v->is_integer && !v->is_number)
            return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT, "%s is not a number",
                                    sgm__parser_quote(&p->token).text);
    }
    sgm__parser_next(p);
    return SGM_OK;
}

/* true or false without quotes. */
static bool is_boolean(const sgm__parsed_value *v)
{
    return v->token.kind == SGM__TOKEN_WORD &&
           (strcmp(v->text, "true") == 0 || strcmp(v->text, "false") == 0);
}

/* Whether an argument of this form can have the value. Words and strings both are texts. */
static bool fits(sgm__form form, const sgm__parsed_value *v)
{
    switch (form) {
    case SGM__FORM_INTEGER:
    case SGM__FORM_SHAPE:
        return v->is_integer;
    case SGM__FORM_NUMBER:
    case SGM__FORM_NUMBERS:
        return v->is_number;
    case SGM__FORM_TEXT:
        return v->is_text;
    case SGM__FORM_FLAG:
        return is_boolean(v);
    }
    return false;
}

/* The values that a form takes, in words for messages; in the order of sgm__form. */
static const char *form_text(sgm__form form)
{
    static const char *const texts[] = {"a whole number", "a number",      "a name",
                                        "true or false",  "whole numbers", "numbers"};
    return texts[form];
}

/* " from 1 to 1000000000", or "". */
static const char *bounds_text(const sgm_option *argument, char *text, size_t size)
{
    *text = '\0';
    if (argument->minimum < argument->maximum)
        snprintf(text, size, " from %.15g to %.15g", argument->minimum, argument->maximum);
    return text;
}

/* Sets argument `index` to the value, or appends the value to a shape or list. */
static sgm_status set_argument(sgm__parser *p, sgm_layer *layer, int32_t index, const sgm__parsed_value *v)
{
    const sgm_option *argument = &layer->type->arguments[index];
    sgm__form form = sgm__form_of(argument);
    char bounds[80];
    if (!fits(form, v))
        return sgm__parser_fail(p, &v->token, SGM_ERROR_FORMAT, "argument '%s' of %s takes %s%s, found %s",
                                argument->name, layer->type->name, form_text(form),
                                bounds_text(argument, bounds, sizeof bounds),
                                sgm__parser_quote(&v->token).text);
    sgm_status status = SGM_OK;
    switch (form) {
    case SGM__FORM_INTEGER:
        status = sgm__argument_set_integer(layer, index, v->integer);
        break;
    case SGM__FORM_NUMBER:
        status = sgm__argument_set_number(layer, index, v->number);
        break;
    case SGM__FORM_TEXT:
        status = sgm__argument_set_text(layer, index, v->text);
        break;
    case SGM__FORM_FLAG:
        status = sgm__argument_set_flag(layer, index, v->text[0] == 't');
        break;
    case SGM__FORM_SHAPE:
        status = sgm__argument_append_dimension(layer, index, v->integer);
        break;
    case SGM__FORM_NUMBERS:
        status = sgm__argument_append_number(layer, index, v->number);
        break;
    }
    return status == SGM_OK ? SGM_OK : sgm__parser_place(p, &v->token);
}

/* What other programs have behind the first numbers of a layer is no argument in the same order here. */
static sgm_status check_numbers(const sgm__parser *p, const sgm__parsed_value *v, const sgm__name_row *typed,
                                int *numbers)
{
    if (typed == NULL || typed->numbers == 0 || !v->is_number || ++*numbers < typed->numbers)
        return SGM_OK;
    return sgm__parser_fail(p, &v->token, SGM_ERROR_FORMAT, "%s has no use for %s here: %s", typed->real,
                            sgm__parser_quote(&v->token).text, typed->advice);
}

/* A value without a name. A word that is the name of a flag sets the flag. Any other value goes to the first
 * argument from *position on that takes its kind, and *position moves behind it. Lists of numbers are only
 * set by name. If nothing takes the value, the error names the expected kind for a number, as its place is
 * probably right, and the layer's arguments for a word. */
static sgm_status positional(sgm__parser *p, sgm_layer *layer, int32_t *position, const sgm__parsed_value *v)
{
    const sgm_layer_type *type = layer->type;
    int32_t flag = v->token.kind == SGM__TOKEN_WORD ? sgm__argument_find(type, v->text) : -1;
    if (flag >= 0 && type->arguments[flag].kind == SGM_KIND_BOOLEAN)
        return sgm__argument_set_flag(layer, flag, true) == SGM_OK ? SGM_OK : sgm__parser_place(p, &v->token);
    for (int32_t i = *position; i < (int32_t)type->argument_count; i++)
        if (sgm__form_of(&type->arguments[i]) != SGM__FORM_NUMBERS &&
            fits(sgm__form_of(&type->arguments[i]), v)) {
            /* a shape takes all the numbers that follow */
            *position = sgm__form_of(&type->arguments[i]) == SGM__FORM_SHAPE ? i : i + 1;
            return set_argument(p, layer, i, v);
        }
    if (*position < (int32_t)type->argument_count && !(v->is_text && v->token.kind == SGM__TOKEN_WORD))
        return set_argument(p, layer, *position, v);
    char known[300];
    return sgm__parser_fail(p, &v->token, SGM_ERROR_FORMAT, "%s has no use for %s here; its arguments are %s",
                            type->name, sgm__parser_quote(&v->token).text,
                            sgm__arguments_list(type, known, sizeof known));
}

/* The place of the argument `name`; -1 and an error if the type has none, and none that it could mean. */
static int32_t find_argument(const sgm__parser *p, const sgm_layer_type *type, const sgm__token *token,
                             const char *name)
{
    char known[300], hint[SGM__NAME_HINT];
    int32_t index = sgm__argument_find(type, name);
    const char *real = index < 0 ? sgm__argument_meant(type, name, hint) : NULL;
    if (index >= 0)
        return index;
    if (real != NULL)
        return sgm__argument_find(type, real);
    sgm__parser_fail(p, token, SGM_ERROR_NOT_FOUND, "%s has no argument %s%s; it has %s", type->name,
                     sgm__parser_quote(token).text, hint, sgm__arguments_list(type, known, sizeof known));
    return -1;
}

/* "(" value {"," value} ")" behind the name of a shape or a list of numbers. */
static sgm_status parse_list(sgm__parser *p, sgm_layer *layer, int32_t index)
{
    sgm__token open = p->token;
    sgm__parser_next(p);
    do {
        sgm__parsed_value v;
        SGM_TRY(sgm__parser_value(p, &v));
        SGM_TRY(set_argument(p, layer, index, &v));
    } while (sgm__parser_accept(p, ','));
    return sgm__parser_close(p, &open);
}

/* padding=same: a word where a shape could be stands for the flag of that name. */
static bool is_flag_instead(const sgm_layer_type *type, int32_t index, const sgm__parsed_value *v)
{
    int32_t flag =
        v->token.kind == SGM__TOKEN_WORD && sgm__form_of(&type->arguments[index]) == SGM__FORM_SHAPE
            ? sgm__argument_find(type, v->text)
            : -1;
    return flag >= 0 && type->arguments[flag].kind == SGM_KIND_BOOLEAN;
}

/* The value of an argument that every layer has and that is in no type's table: a layer's name. */
static sgm_status parse_layer_name(sgm__parser *p, sgm_layer *layer,
                                   sgm_status (*set)(sgm_layer *layer, const char *name))
{
    sgm__parsed_value v;
    SGM_TRY(sgm__parser_value(p, &v));
    if (!v.is_text)
        return sgm__parser_fail(p, &v.token, SGM_ERROR_FORMAT, "a layer's name must be text, found %s",
                                sgm__parser_quote(&v.token).text);
    return set(layer, v.text) == SGM_OK ? SGM_OK : sgm__parser_place(p, &v.token);
}

/* The value of argument `index`. A shape can be given in brackets or as one number. */
static sgm_status parse_argument(sgm__parser *p, sgm_layer *layer, int32_t index, const sgm__token *key)
{
    if (layer->arguments[index].given)
        return sgm__parser_fail(p, key, SGM_ERROR_FORMAT, "argument %s is given twice",
                                sgm__parser_quote(key).text);
    if (layer->type->arguments[index].list && sgm__token_is(&p->token, '('))
        return parse_list(p, layer, index);
    sgm__parsed_value v;
    SGM_TRY(sgm__parser_value(p, &v));
    if (!is_flag_instead(layer->type, index, &v))
        return set_argument(p, layer, index, &v);
    index = sgm__argument_find(layer->type, v.text);
    return sgm__argument_set_flag(layer, index, true) == SGM_OK ? SGM_OK : sgm__parser_place(p, &v.token);
}

/* word "=" value. "name" and "share" are not in the types' tables, since every layer has them. Key and '='
 * are checked by the caller (sgm__parser_is_at_name) and skipped here. */
sgm_status sgm__parser_named_argument(sgm__parser *p, sgm_layer *layer)
{
    sgm__token key = p->token;
    char *name = sgm__parser_copy(p, &key);
    if (name == NULL)
        return sgm_last_status();
    sgm_status (*set)(sgm_layer * layer, const char *of) = strcmp(name, "name") == 0    ? sgm__layer_set_name
                                                           : strcmp(name, "share") == 0 ? sgm__layer_set_share
                                                                                        : NULL;
    int32_t index = set != NULL ? -1 : find_argument(p, layer->type, &key, name);
    sgm__free(name);
    if (set == NULL && index < 0)
        return sgm_last_status();
    sgm__parser_next(p);
    sgm__parser_next(p);
    return set != NULL ? parse_layer_name(p, layer, set) : parse_argument(p, layer, index, &key);
}

/* Named and positional arguments may be mixed in any order; positions count only those without a name. */
sgm_status sgm__parser_arguments(sgm__parser *p, sgm_layer *layer, const sgm__name_row *typed)
{
    sgm__token open = p->token;
    sgm__parser_next(p);
    if (sgm__parser_accept(p, ')'))
        return SGM_OK;
    int32_t position = 0;
    int numbers = 0;
    do {
        if (sgm__parser_is_at_name(p)) {
            SGM_TRY(sgm__parser_named_argument(p, layer));
            continue;
        }
        sgm__parsed_value v;
        SGM_TRY(sgm__parser_value(p, &v));
        SGM_TRY(check_numbers(p, &v, typed, &numbers));
        SGM_TRY(positional(p, layer, &position, &v));
    } while (sgm__parser_accept(p, ','));
    return sgm__parser_close(p, &open);
}
