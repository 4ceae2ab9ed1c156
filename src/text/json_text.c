/* Turns jansson's values into text, for checkpoints, the control socket, the web server and logs of JSON
 * lines.
 *
 * Objects, arrays and numbers are written here by recursion, because jansson's own numbers are too long (see
 * json_text.h); strings, with their escapes, are left to jansson. The depth is bounded by that of the values,
 * which the library makes itself or which jansson's parser has bounded. A failure stays in the text's
 * `failed`. */
#include "text/json_text.h"

/* A real number must stay one when it is read back, hence ".0" behind whole numbers. Exponents are shortened
 * from "1e+30" to "1e30" and from "1e-05" to "1e-5". The 'n' guards "nan" and "inf". */
static void append_real(sgm__text *text, double number)
{
    char digits[32];
    sgm__number_text(number, digits, sizeof digits);
    const char *exponent = strchr(digits, 'e');
    if (exponent == NULL) {
        sgm__text_append(text, strpbrk(digits, ".n") != NULL ? "%s" : "%s.0", digits);
        return;
    }
    const char *power = exponent + 2 + strspn(exponent + 2, "0");
    sgm__text_append(text, "%.*s%s%s", (int)(exponent + 1 - digits), digits, exponent[1] == '-' ? "-" : "",
                     power);
}

static int append_bytes(const char *bytes, size_t length, void *text)
{
    sgm__text_append_bytes(text, bytes, length);
    return 0;
}

/* Takes strings, true, false and null; jansson fails for NULL, which stands for a lack of memory. */
static void append_string(sgm__text *text, const json_t *string)
{
    if (json_dump_callback(string, append_bytes, text, JSON_ENCODE_ANY) != 0)
        text->failed = true;
}

static void append_array(sgm__text *text, const json_t *array)
{
    sgm__text_append_bytes(text, "[", 1);
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        sgm__json_append(text, json_array_get(array, i));
    }
    sgm__text_append_bytes(text, "]", 1);
}

/* jansson's iterators take non-const values although they change nothing: the casts through uintptr_t drop
 * const without a warning. A key is wrapped in a value, as only values can be written. */
static void append_object(sgm__text *text, const json_t *object)
{
    bool is_first = true;
    void *at = json_object_iter((json_t *)(uintptr_t)object);
    sgm__text_append_bytes(text, "{", 1);
    for (; at != NULL; at = json_object_iter_next((json_t *)(uintptr_t)object, at)) {
        json_t *key = json_string(json_object_iter_key(at));
        if (!is_first)
            sgm__text_append_bytes(text, ",", 1);
        append_string(text, key);
        json_decref(key);
        sgm__text_append_bytes(text, ":", 1);
        sgm__json_append(text, json_object_iter_value(at));
        is_first = false;
    }
    sgm__text_append_bytes(text, "}", 1);
}

void sgm__json_append(sgm__text *text, const json_t *value)
{
    if (json_is_object(value))
        append_object(text, value);
    else if (json_is_array(value))
        append_array(text, value);
    else if (json_is_real(value))
        append_real(text, json_real_value(value));
    else if (json_is_integer(value))
        sgm__text_append(text, "%lld", (long long)json_integer_value(value));
    else
        append_string(text, value); /* true, false and null, too; fails for NULL */
}

char *sgm__json_text(const json_t *value)
{
    sgm__text text = {0};
    sgm__json_append(&text, value);
    return sgm__text_take(&text);
}

/* jansson's own words for a 0 character name a flag of its C functions, which means nothing to a user. */
const char *sgm__json_mistake(const json_error_t *error)
{
    return json_error_code(error) == json_error_null_character ? "\\u0000 is not allowed in a text"
                                                               : error->text;
}
