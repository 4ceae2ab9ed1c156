/* Parses "name(value, key=value)" in two steps: sgm__call_name, then sgm__call_parse with the fields of that
 * name.
 *
 * A caller asks for the name first, looks the name up in its table, and passes the fields that belong to it.
 * Arguments are numbers only (sgm__parse_double), so commas and parentheses need no quoting, and the text can
 * be cut in place: sgm__call_parse works on a copy, in which each ',', '=' and ')' becomes the end of a
 * string. Texts of rules and criteria, which nest, are read by phrase.c, the notation of networks by
 * src/network/notation.c. */
#include "text/call_text.h"

static const char *skip_space(const char *text)
{
    while (sgm__is_space(*text))
        text++;
    return text;
}

/* Letters, digits and underscores. */
static size_t word_length(const char *text)
{
    size_t length = 0;
    while (sgm__is_alphanumeric(text[length]) || text[length] == '_')
        length++;
    return length;
}

sgm_status sgm__call_name(const char *text, char *name, size_t size)
{
    const char *start = skip_space(text);
    size_t length = word_length(start);
    if (length == 0 || length >= size)
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' does not begin with a name", text);
    memcpy(name, start, length);
    name[length] = '\0';
    return SGM_OK;
}

/* Suggests from the first 16 fields. */
static sgm_status unknown_argument(const char *text, const char *argument, const sgm__call_field *fields,
                                   size_t count)
{
    const char *names[16];
    size_t known = count < 16 ? count : 16;
    for (size_t i = 0; i < known; i++)
        names[i] = fields[i].name;
    const char *near = sgm__nearest(argument, names, known);
    if (known == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' has an argument '%s', but takes none", text, argument);
    return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' has an unknown argument '%s'; did you mean '%s'?", text,
                    argument, near != NULL ? near : names[0]);
}

/* Reads one argument, "key=value" or "value"; a 0 byte has taken the place of what followed it. `text` is the
 * whole call, for messages. `*positional` is the field that the next argument without a key fills. */
static sgm_status parse_argument(const char *text, char *argument, const sgm__call_field *fields,
                                 size_t count, size_t *positional)
{
    char *equals = strchr(argument, '=');
    const char *value = equals != NULL ? equals + 1 : argument;
    size_t index = *positional;
    if (equals != NULL) {
        *equals = '\0';
        const char *key = skip_space(argument);
        argument[(size_t)(key - argument) + word_length(key)] = '\0';
        for (index = 0; index < count && strcmp(fields[index].name, key) != 0;)
            index++;
        if (index == count)
            return unknown_argument(text, key, fields, count);
    } else if (index == count) {
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' takes at most %zu number%s, and '%s' is one more", text,
                        count, count == 1 ? "" : "s", argument);
    } else if (index > count) {
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': write '%s' as name=value", text, argument);
    } else {
        ++*positional;
    }
    if (!sgm__parse_double(value, fields[index].value))
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': '%s' is no number for %s", text, value, fields[index].name);
    return SGM_OK;
}

/* `rest` begins behind the opening parenthesis. A comma at the end is allowed. */
static sgm_status parse_arguments(const char *text, char *rest, const sgm__call_field *fields, size_t count,
                                  size_t positional)
{
    char *close = strchr(rest, ')');
    if (close == NULL || *skip_space(close + 1) != '\0')
        return sgm_fail(SGM_ERROR_FORMAT, "'%s' must end in one ')'", text);
    *close = '\0';
    while (*skip_space(rest) != '\0') {
        char *comma = strchr(rest, ',');
        if (comma != NULL)
            *comma = '\0';
        SGM_TRY(parse_argument(text, rest, fields, count, &positional));
        if (comma == NULL)
            return SGM_OK;
        rest = comma + 1;
    }
    return SGM_OK;
}

/* The first word is skipped: the caller has read it with sgm__call_name. */
sgm_status sgm__call_parse(const char *text, const sgm__call_field *fields, size_t count, size_t positional)
{
    const char *start = skip_space(text);
    const char *rest = skip_space(start + word_length(start));
    if (*rest == '\0')
        return SGM_OK;
    if (*rest != '(')
        return sgm_fail(SGM_ERROR_FORMAT, "'%s': expected '(' after the name", text);
    char *copy = sgm__strdup(rest + 1);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = parse_arguments(text, copy, fields, count, positional);
    sgm__free(copy);
    return status;
}
