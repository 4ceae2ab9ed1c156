/* Bytes of tokens as they come become whole characters of UTF-8, since JSON has no others. */
#include "texts/texts.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes of a character, by its first byte. */
static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* Whether `length` bytes are the beginning of a character that more bytes would complete. */
static bool is_beginning(const unsigned char *text, size_t length)
{
    const unsigned char first = text[0];
    if (first < 0xc2 || first > 0xf4 || length >= length_of(first))
        return false;
    /* What could be written shorter, surrogates, and numbers above U+10FFFF end with the second byte. */
    const unsigned char lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned char highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (length > 1 && (text[1] < lowest || text[1] > highest))
        return false;
    for (size_t i = 2; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return false;
    return true;
}

/* Bytes, of which no character begins, that one U+FFFD stands for. */
static size_t length_of_mistake(const unsigned char *text, size_t length)
{
    size_t wrong = 1;
    while (wrong < length && is_beginning(text, wrong + 1))
        wrong++;
    return wrong;
}

void take_characters(sgm__text *waiting, const char *bytes, size_t size, bool is_end, sgm__text *whole)
{
    sgm__text_append_bytes(waiting, bytes, size);
    sgm__text_append_bytes(waiting, "", 1); /* a 0 behind, which sgm__utf8_length needs */
    if (waiting->failed)
        return;
    const size_t length = --waiting->length;
    size_t at = 0;
    while (at < length) {
        const unsigned char *text = (const unsigned char *)waiting->data + at;
        size_t step = *text > 0 && *text < 0x80 ? 1 : sgm__utf8_length(text);
        if (step == 0 && !is_end && is_beginning(text, length - at))
            break;
        sgm__text_append_bytes(whole, step > 0 ? (const char *)text : REPLACEMENT,
                               step > 0 ? step : strlen(REPLACEMENT));
        at += step > 0 ? step : length_of_mistake(text, length - at);
    }
    waiting->length -= at;
    memmove(waiting->data, waiting->data + at, waiting->length);
}
