/* Numbers as the shortest decimals that read back as the same, alone and in JSON. */
#include "test.h"
#include "text/json_text.h"

#include <float.h>
#include <math.h>

TEST(numbers_are_as_short_as_they_can_be)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0.0003, "0.0003"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1.0 / 3, "0.3333333333333333"},
                 {5e-324, "5e-324"},
                 {DBL_MIN, "2.2250738585072014e-308"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {1e22, "1e+22"},
                 {9007199254740992.0, "9007199254740992"},
                 {123456789012345, "123456789012345"},
                 {-0.0, "-0"},
                 {42, "42"},
                 {(double)0.1F, "0.10000000149011612"},
                 {INFINITY, "inf"}};
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sgm__number_text(cases[i].number, text, sizeof text), cases[i].text);
}

/* Any bits that are a number. */
TEST(numbers_read_back_as_the_same)
{
    sgm__random random = sgm__random_make(3, 0);
    char text[32];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = sgm__random_below(&random, UINT64_MAX);
        double number, again;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        CHECK(sgm__parse_double(sgm__number_text(number, text, sizeof text), &again));
        CHECK(memcmp(&number, &again, sizeof number) == 0);
    }
}

static void check_json(const char *given, const char *wanted)
{
    json_t *value = json_loads(given, JSON_DECODE_ANY, NULL);
    char *text = sgm__json_text(value);
    CHECK_STR(text, wanted);
    sgm__free(text);
    json_decref(value);
}

TEST(json_is_on_one_line_in_its_order)
{
    check_json("{\"b\": [1, 2.50, 0.00029999999999999997], \"a\": {\"x\": null, \"\\u00e4\\n\": \"q\\\"\"}}",
               "{\"b\":[1,2.5,0.0003],\"a\":{\"x\":null,\"\xc3\xa4\\n\":\"q\\\"\"}}");
    check_json("[]", "[]");
    check_json("{}", "{}");
    check_json("[true, false, 3.0, 1e300, 1e-5, -12]", "[true,false,3.0,1e300,1e-5,-12]");
    check_json("\"text\"", "\"text\"");
    CHECK(sgm__json_text(NULL) == NULL);
}

TEST(mistakes_name_no_flag_of_a_parser)
{
    json_error_t error;
    CHECK(json_loads("[\"a\\u0000b\"]", 0, &error) == NULL);
    CHECK_STR(sgm__json_mistake(&error), "\\u0000 is not allowed in a text");
    CHECK(json_loads("[1", 0, &error) == NULL);
    CHECK(strstr(sgm__json_mistake(&error), "']' expected") != NULL);
}
