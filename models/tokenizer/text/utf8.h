/* Text as UTF-8: whatever bytes come in, valid characters come out. */
#ifndef SIGMA_MODELS_UTF8_H
#define SIGMA_MODELS_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands for bytes that are no UTF-8: U+FFFD, 3 bytes. */
#define SGM__REPLACEMENT "\xef\xbf\xbd"

/* How many bytes at the beginning of `text` are one valid character; 0: none is. If so, `*bad` is how many
 * bytes one U+FFFD stands for: the longest beginning of a character, else 1 (as the Unicode Standard
 * recommends, and Python's errors="replace" does). `size` is at least 1. */
size_t sgm__utf8_character(const char *text, size_t size, size_t *bad);
/* Whether all of the text is valid. */
bool sgm__utf8_is_valid(const char *text, size_t size);
/* Writes the text with U+FFFD for what is invalid and returns its size, at most 3 * size; `out` NULL: only
 * counts. */
size_t sgm__utf8_clean(const char *text, size_t size, char *out);

/* The character at `*at` of a valid text; moves behind it. */
static inline uint32_t sgm__utf8_next(const char *text, size_t *at)
{
    const unsigned char *s = (const unsigned char *)text + *at;
    if (s[0] < 0x80)
        return *at += 1, s[0];
    if (s[0] < 0xe0)
        return *at += 2, (uint32_t)(s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    if (s[0] < 0xf0)
        return *at += 3, (uint32_t)(s[0] & 0xf) << 12 | (uint32_t)(s[1] & 0x3f) << 6 | (s[2] & 0x3f);
    return *at += 4, (uint32_t)(s[0] & 7) << 18 | (uint32_t)(s[1] & 0x3f) << 12 |
                         (uint32_t)(s[2] & 0x3f) << 6 | (s[3] & 0x3f);
}

/* Where the character before `at` (over 0) of a valid text begins. */
static inline size_t sgm__utf8_before(const char *text, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80);
    return at;
}

/* How many bytes the character that begins with this byte has, in a valid text. */
static inline size_t sgm__utf8_length(char first)
{
    const unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Writes a character, at most 4 bytes, and returns how many. */
size_t sgm__utf8_put(uint32_t character, char *out);

#endif
