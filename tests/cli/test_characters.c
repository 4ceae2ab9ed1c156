/* Bytes of tokens become whole characters, wherever they are cut. */
#include "test.h"

#include "texts/texts.h"

/* All bytes, in parts of `step`. */
static char *taken(const char *bytes, size_t length, size_t step)
{
    sgm__text waiting = {0}, whole = {0};
    for (size_t i = 0; i < length; i += step)
        take_characters(&waiting, bytes + i, length - i < step ? length - i : step, false, &whole);
    take_characters(&waiting, "", 0, true, &whole);
    CHECK_INT(waiting.length, 0);
    sgm__text_free(&waiting);
    return sgm__text_take(&whole);
}

static void check(const char *bytes, size_t length, const char *expected)
{
    for (size_t step = 1; step <= length; step++) {
        char *text = taken(bytes, length, step);
        CHECK_STR(text, expected);
        sgm__free(text);
    }
}

TEST(characters_are_whole_wherever_bytes_are_cut)
{
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    check(text, sizeof text - 1, text);
}

/* As Python's bytes.decode("utf-8", "replace") has it, but for the character 0. */
TEST(what_is_no_character_is_replaced)
{
    check("a\xff\x80z", 4, "a\xef\xbf\xbd\xef\xbf\xbdz");
    check("a\0z", 3, "a\xef\xbf\xbdz");
    check("\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd");
    check("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check("z\xe2\x82", 3, "z\xef\xbf\xbd");
    check("\xf0\x9f\x98z", 4, "\xef\xbf\xbdz");
    check("\xe0\x80\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check("\xf4\x90z", 3, "\xef\xbf\xbd\xef\xbf\xbdz");
    check("\xf5z", 2, "\xef\xbf\xbdz");
}

TEST(the_beginning_of_a_character_waits)
{
    sgm__text waiting = {0}, whole = {0};
    take_characters(&waiting, "a\xe2\x82", 3, false, &whole);
    CHECK_STR(whole.data, "a");
    CHECK_INT(waiting.length, 2);
    take_characters(&waiting, "\xac", 1, false, &whole);
    CHECK_STR(whole.data, "a\xe2\x82\xac");
    CHECK_INT(waiting.length, 0);
    sgm__text_free(&waiting);
    sgm__text_free(&whole);
}
