/* Provides text for all parts: strings that grow, UTF-8, strict numbers, words, and the nearest name for "did
 * you mean".
 *
 * Everything is independent of the program's locale: a program that calls setlocale must not change what the
 * library writes into files and reads from them (a decimal comma would break JSON). Formatting switches the
 * thread to the C locale for the duration of the call; reading uses functions that take a locale. Text of
 * float32 numbers is in float_text.c, quantities for people are in units.c. */
#include "base/base.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <sigma/tensor.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the C locale: a program that calls setlocale must not change what we write and read --- */

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

/* Where the system has it, with characters of UTF-8: in plain C, libarchive refuses names beyond ASCII.
 * Everything else stays as in C. */
static void make_c_locale(void)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", plain);
    c_locale = utf8 != (locale_t)0 ? utf8 : plain;
}

static locale_t get_c_locale(void)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale;
}

locale_t sgm__use_c_locale(void)
{
    return uselocale(get_c_locale());
}

/* --- growing strings --- */

/* Makes room for `length` more bytes and the terminator; false if that failed here or at an earlier append.
 */
static bool make_room(sgm__text *text, size_t length)
{
    size_t needed;
    if (text->failed)
        return false;
    if (sgm__add_overflows(text->length, length, &needed) || sgm__add_overflows(needed, 1, &needed)) {
        sgm__fail_memory(SIZE_MAX);
        text->failed = true;
    } else {
        text->failed = sgm__reserve(&text->data, &text->capacity, needed, 1) != SGM_OK;
    }
    return !text->failed;
}

/* Formats twice, first to learn the length; the arguments are copied for that, since a va_list can be used
 * only once. Formatting must be in the C locale both times, or the lengths could differ. */
void sgm__text_vappend(sgm__text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    locale_t own = sgm__use_c_locale();
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0) {
        sgm_fail(SGM_ERROR_FORMAT, "the text '%.100s' cannot be formatted", format);
        text->failed = true;
    } else if (make_room(text, (size_t)length)) {
        vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
        text->length += (size_t)length;
    }
    uselocale(own);
    va_end(again);
}

void sgm__text_append(sgm__text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sgm__text_vappend(text, format, arguments);
    va_end(arguments);
}

void sgm__text_append_bytes(sgm__text *text, const char *bytes, size_t length)
{
    if (!make_room(text, length))
        return;
    if (length > 0)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

/* Appending nothing makes an empty text a valid string, too. */
char *sgm__text_take(sgm__text *text)
{
    sgm__text_append_bytes(text, "", 0);
    char *data = text->data;
    if (text->failed) {
        sgm__free(data);
        data = NULL;
    }
    *text = (sgm__text){0};
    return data;
}

void sgm__text_free(sgm__text *text)
{
    sgm__free(text->data);
    *text = (sgm__text){0};
}

char *sgm__format(const char *format, ...)
{
    sgm__text text = {0};
    va_list arguments;
    va_start(arguments, format);
    sgm__text_vappend(&text, format, arguments);
    va_end(arguments);
    return sgm__text_take(&text);
}

bool sgm__begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

char *sgm_string_create(const char *text, size_t size)
{
    char *copy = size < SIZE_MAX ? sgm__alloc(size + 1) : NULL;
    if (!copy)
        return NULL;
    if (size > 0)
        memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

void sgm_string_free(char *text)
{
    sgm__free(text);
}

/* --- characters --- */

/* The table of RFC 3629, section 4 (Unicode's table 3-7): the range of the second byte depends on the first
 * one, which excludes overlong forms (e0, f0), surrogates (ed) and code points beyond U+10FFFF (f4). */
size_t sgm__utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char first, last, minimum, maximum; /* ranges of the first byte and of the second */
        size_t length;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (text[1] < forms[i].minimum || text[1] > forms[i].maximum)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* Whether a byte begins a character: all but 10xxxxxx do. */
static bool begins_character(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

size_t sgm__utf8_count(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += begins_character(*text);
    return count;
}

size_t sgm__utf8_prefix(const char *text, size_t characters)
{
    size_t length = 0;
    for (; text[length] != '\0'; length++)
        if (begins_character(text[length]) && characters-- == 0)
            break;
    return length;
}

bool sgm__is_line(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0';) {
        size_t length = *c < 0x80 ? (*c >= 0x20 && *c != 0x7f) : sgm__utf8_length(c);
        if (length == 0)
            return false;
        c += length;
    }
    return true;
}

/* Length of the character at `text` if it may be shown, else 0. C1 controls (U+0080 to U+009F, two bytes in
 * UTF-8) steer terminals as well as those below a space do. */
static size_t printable_length(const unsigned char *text)
{
    if (*text < 0x80)
        return (*text >= 0x20 && *text != 0x7f) || *text == '\n' || *text == '\t';
    return text[0] == 0xc2 && text[1] < 0xa0 ? 0 : sgm__utf8_length(text);
}

char *sgm__make_printable(char *text)
{
    for (char *c = text; *c != '\0';) {
        size_t length = printable_length((const unsigned char *)c);
        if (length == 0)
            *c = '?';
        c += length > 0 ? length : 1;
    }
    return text;
}

/* --- numbers --- */

/* strerror is not safe with threads; strerror_l is, and in the C locale gives English. */
const char *sgm__errno_text(int error)
{
    return strerror_l(error, get_c_locale());
}

static const char *skip_spaces(const char *text)
{
    while (sgm__is_space(*text))
        text++;
    return text;
}

/* Tries 15, 16 and 17 digits. All decimals of at most 15 digits survive the way through a double (DBL_DIG),
 * so 15 suffice whenever a short form exists, and %g drops trailing zeros. Subnormal numbers have fewer
 * significant bits: there the search begins at 1 digit. */
char *sgm__number_text(double number, char *buffer, size_t size)
{
    double again;
    locale_t own = sgm__use_c_locale();
    for (int digits = fabs(number) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(buffer, size, "%.*g", digits, number);
        if (!isfinite(number) || (sgm__parse_double(buffer, &again) && again == number))
            break;
    }
    uselocale(own);
    return buffer;
}

/* Accumulates the negated number, because the negative range is larger by one: INT64_MIN can be read without
 * overflow. */
bool sgm__parse_int64(const char *text, int64_t *value)
{
    if (!text)
        return false;
    text = skip_spaces(text);
    bool negative = *text == '-';
    if (*text == '-' || *text == '+')
        text++;
    if (!sgm__is_digit(*text))
        return false;
    int64_t parsed = 0;
    for (; sgm__is_digit(*text); text++) {
        if (__builtin_mul_overflow(parsed, (int64_t)10, &parsed) ||
            __builtin_sub_overflow(parsed, (int64_t)(*text - '0'), &parsed))
            return false;
    }
    if (*skip_spaces(text) != '\0' || (!negative && parsed == INT64_MIN))
        return false;
    *value = negative ? parsed : -parsed;
    return true;
}

/* --- the nearest name --- */

#define LONGEST_NAME 64 /* bytes; longer names get no suggestion */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The number of edits (insert, delete, replace, swap two neighbours) that turn a into b, ignoring the case of
 * ASCII letters: the optimal string alignment distance (Damerau 1964), by dynamic programming. row[j] is the
 * distance of the first i bytes of a from the first j of b; the swap looks two rows back, so three rows are
 * kept, and rotate. Both lengths are at most LONGEST_NAME. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST_NAME + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            bool same = lower(a[i - 1]) == lower(b[j - 1]);
            size_t best = last[j - 1] + (same ? 0 : 1);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
        size_t *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[b_length];
}

/* Suggests a name only if at most a third of the letters (for one or two letters: one) must change: beyond
 * that a suggestion would be a guess. Among equally near names the first one is taken. */
const char *sgm__nearest(const char *name, const char *const *names, size_t count)
{
    size_t length = name ? strlen(name) : 0;
    if (length == 0 || length > LONGEST_NAME)
        return NULL;
    size_t minimum = length / 3 + (length < 3 ? 2 : 1);
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = names[i] ? strlen(names[i]) : 0;
        if (other == 0 || other > LONGEST_NAME)
            continue;
        size_t distance = edit_distance(name, length, names[i], other);
        if (distance < minimum) {
            minimum = distance;
            nearest = names[i];
        }
    }
    return nearest;
}

/* One block holds the pointers and behind them a copy of the text, which strtok_r cuts. n bytes have at most
 * (n + 1) / 2 words, plus the NULL at the end. */
char **sgm__words(const char *text, size_t *count)
{
    size_t length = text != NULL ? strlen(text) : 0, found = 0, maximum = length / 2 + 2;
    char **words = sgm__alloc(maximum * sizeof(char *) + length + 1);
    if (words == NULL)
        return NULL;
    char *rest = (char *)(words + maximum), *word;
    memcpy(rest, text != NULL ? text : "", length + 1);
    while ((word = strtok_r(rest, " \t\n", &rest)) != NULL)
        words[found++] = word;
    words[found] = NULL;
    if (count != NULL)
        *count = found;
    return words;
}

/* setlocale is not used, as it is the program's to call. */
bool sgm__locale_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char *locale = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && (locale == NULL || locale[0] == '\0'); i++)
        locale = getenv(names[i]);
    return locale != NULL && (strcasestr(locale, "utf-8") != NULL || strcasestr(locale, "utf8") != NULL);
}
