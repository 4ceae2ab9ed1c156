#include "tokenizer/text/utf8.h"

#include <string.h>

/* The bytes that may follow the first one (Unicode Standard, table 3-7); all later ones are 80 to BF. */
static size_t second_byte(unsigned char first, unsigned char *lowest, unsigned char *highest)
{
    *lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    *highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (first < 0x80)
        return 1;
    if (first < 0xc2 || first > 0xf4)
        return 0;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t sgm__utf8_character(const char *text, size_t size, size_t *bad)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char lowest, highest;
    const size_t length = second_byte(bytes[0], &lowest, &highest);
    size_t i;

    *bad = 1;
    for (i = 1; i < length; i++) {
        if (i == size || bytes[i] < lowest || bytes[i] > highest)
            return *bad = i, 0;
        lowest = 0x80;
        highest = 0xbf;
    }
    return length;
}

bool sgm__utf8_is_valid(const char *text, size_t size)
{
    size_t at = 0, bad;
    while (at < size) {
        const size_t length = sgm__utf8_character(text + at, size - at, &bad);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

size_t sgm__utf8_clean(const char *text, size_t size, char *out)
{
    size_t at = 0, written = 0, bad;
    while (at < size) {
        const size_t length = sgm__utf8_character(text + at, size - at, &bad);
        const size_t put = length > 0 ? length : strlen(SGM__REPLACEMENT);
        if (out)
            memcpy(out + written, length > 0 ? text + at : SGM__REPLACEMENT, put);
        written += put;
        at += length > 0 ? length : bad;
    }
    return written;
}

size_t sgm__utf8_put(uint32_t character, char *out)
{
    if (character < 0x80)
        return out[0] = (char)character, 1;
    if (character < 0x800) {
        out[0] = (char)(0xc0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xe0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}
