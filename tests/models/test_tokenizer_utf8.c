#include "test.h"
#include "tokenizer/text/utf8.h"

#include <stdlib.h>

static const char *clean(const char *text)
{
    static char out[64];
    out[sgm__utf8_clean(text, strlen(text), out)] = 0;
    return out;
}

/* What bytes.decode("utf-8", errors="replace") of Python 3.11 makes of the same bytes. */
TEST(broken_text_becomes_replacement_characters)
{
    CHECK_STR(clean("a\xffz"), "a\ufffdz");
    CHECK_STR(clean("\xe2\x82z"), "\ufffdz");
    CHECK_STR(clean("\xe2\x82\xe2\x82\xac"), "\ufffd\u20ac");
    CHECK_STR(clean("\xf0\x9f\x98"), "\ufffd");
    CHECK_STR(clean("\xc0\xaf"), "\ufffd\ufffd");
    CHECK_STR(clean("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
    CHECK_STR(clean("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");
    CHECK_STR(clean("\u00e9\U0001f600"), "\u00e9\U0001f600");
}

TEST(characters_come_back_as_they_were)
{
    char bytes[4];
    for (uint32_t character = 0; character < 0x110000; character++) {
        size_t at = 0, size;
        if (character >= 0xd800 && character < 0xe000)
            continue;
        size = sgm__utf8_put(character, bytes);
        if (!sgm__utf8_is_valid(bytes, size) || sgm__utf8_next(bytes, &at) != character || at != size ||
            sgm__utf8_length(bytes[0]) != size)
            TEST_FAIL("U+%04x", character);
    }
}
