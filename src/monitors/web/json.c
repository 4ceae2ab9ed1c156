/* Writes JSON for answers and events as text, without building trees of jansson.
 *
 * Curves are thousands of numbers, and printf takes most of the time of writing them; hence a formatter of
 * its own for the usual range. Numbers of curves have nine significant digits, single numbers
 * (sgm__web_append_member) all of theirs. Also reads texts from bodies of requests. */
#include "monitors/web/web_internal.h"
#include "text/json_text.h"

#include <math.h>
#include <stdio.h>

/* Writes up to nine significant digits of a number from 1e-4 to 1e9 in fixed notation, without trailing
 * zeros, many times as fast as printf. The number is scaled to an integer of nine digits, whose parts
 * before and after the point are then written. `to` has room for 64 characters; returns the length. */
static size_t write_plain(char *to, double value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13};
    int decimals = 8 - (int)floor(log10(fabs(value)));
    uint64_t scaled = (uint64_t)llrint(fabs(value) * powers[decimals]), unit = (uint64_t)powers[decimals];
    char digits[32] = "";
    size_t length = 0, count = 0;
    if (value < 0)
        to[length++] = '-';
    for (uint64_t whole = scaled / unit; whole > 0 || count == 0; whole /= 10)
        digits[count++] = (char)('0' + whole % 10);
    while (count > 0)
        to[length++] = digits[--count];
    uint64_t rest = scaled % unit;
    if (rest > 0)
        to[length++] = '.';
    for (; rest > 0; rest %= unit) {
        unit /= 10;
        to[length++] = (char)('0' + rest / unit);
    }
    return length;
}

/* Nine significant digits by printf. Whatever the locale puts for the decimal point, which may be several
 * bytes, becomes a single dot. */
static size_t write_any(char *to, size_t room, double value)
{
    char digits[64];
    size_t length = 0;
    snprintf(digits, sizeof digits, "%.9g", value);
    for (const char *c = digits; *c != '\0' && length < room; c++)
        if (strchr("0123456789+-e", *c) != NULL)
            to[length++] = *c;
        else if (length > 0 && to[length - 1] != '.')
            to[length++] = '.';
    return length;
}

/* Integers are written whole; JSON has no infinities and no NaN, which become null. */
void sgm__web_append_number(sgm__text *text, double value)
{
    char digits[64];
    double size = fabs(value);
    if (!isfinite(value))
        sgm__text_append_bytes(text, "null", 4);
    else if (size < 1e15 && value == rint(value))
        sgm__text_append_bytes(text, digits,
                               (size_t)snprintf(digits, sizeof digits, "%lld", (long long)value));
    else if (size >= 1e-4 && size < 9e8)
        sgm__text_append_bytes(text, digits, write_plain(digits, value));
    else
        sgm__text_append_bytes(text, digits, write_any(digits, sizeof digits, value));
}

/* Text that is no UTF-8 becomes "?". */
void sgm__web_append_text(sgm__text *text, const char *value)
{
    json_t *made = value != NULL ? json_string(value) : json_null();
    if (made != NULL)
        sgm__json_append(text, made);
    else
        sgm__text_append(text, "\"?\"");
    json_decref(made);
}

void sgm__web_separate(sgm__text *text)
{
    if (text->length > 0 && strchr("[{", text->data[text->length - 1]) == NULL)
        sgm__text_append_bytes(text, ",", 1);
}

void sgm__web_append_numbers(sgm__text *text, const char *name, const double *first, size_t distance,
                             size_t count)
{
    sgm__text_append(text, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            sgm__text_append_bytes(text, ",", 1);
        sgm__web_append_number(text, *(const double *)(const void *)((const char *)first + i * distance));
    }
    sgm__text_append_bytes(text, "]", 1);
}

void sgm__web_append_member(sgm__text *text, const char *name, double value)
{
    char digits[32];
    sgm__text_append(text, ",\"%s\":%s", name,
                     isfinite(value) ? sgm__number_text(value, digits, sizeof digits) : "null");
}

void sgm__web_append_named(sgm__text *text, const char *name, const char *value)
{
    sgm__text_append(text, ",\"%s\":", name);
    sgm__web_append_text(text, value);
}

sgm_status sgm__web_answer(sgm__http_answer *answer, sgm__text *json)
{
    answer->length = json->length;
    answer->body = sgm__text_take(json);
    return answer->body != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__web_text(const json_t *body, const char *name, bool wanted, const char **text)
{
    const json_t *value = json_object_get(body, name);
    *text = json_string_value(value);
    if (value != NULL && !json_is_null(value) && *text == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s' must be a text", name);
    if (wanted && *text == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a text '%s' in the request", name);
    return SGM_OK;
}
