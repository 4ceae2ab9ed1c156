#include "allocator.h"
#include "base/base.h"
#include "german.h"
#include "test.h"

TEST(text_grows)
{
    sgm__text text = {0};
    for (int i = 0; i < 500; i++)
        sgm__text_append(&text, "%d,", i % 10);
    sgm__text_append_bytes(&text, "a\0b", 3);
    CHECK_INT(text.length, 1003);
    char *taken = sgm__text_take(&text);
    CHECK(strncmp(taken, "0,1,2,3,4,5,6,7,8,9,0,", 22) == 0);
    CHECK(memcmp(taken + 1000, "a\0b", 4) == 0);
    CHECK(text.data == NULL && text.length == 0);
    sgm__free(taken);
}

TEST(nothing_appended_is_an_empty_string)
{
    sgm__text text = {0};
    char *taken = sgm__text_take(&text);
    CHECK_STR(taken, "");
    sgm__free(taken);
}

TEST(failed_text_stays_failed_and_leaks_nothing)
{
    for (long n = 1; n <= 3; n++) {
        allocator_start(n);
        sgm__text text = {0};
        for (int i = 0; i < 30; i++)
            sgm__text_append(&text, "%s", "twenty characters...");
        CHECK(text.failed);
        CHECK(sgm__text_take(&text) == NULL);
        CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
        CHECK(!text.failed);
        CHECK_INT(allocator_live, 0);
        allocator_stop();
    }
}

TEST(formats)
{
    char *text = sgm__format("%s has %d of %zu", "it", 3, (size_t)5);
    CHECK_STR(text, "it has 3 of 5");
    sgm__free(text);
}

static void check_double(const char *text, double expected)
{
    double value = 12345;
    if (!sgm__parse_double(text, &value))
        TEST_FAIL("'%s' was refused", text);
    CHECK_NEAR(value, expected, 0);
}

TEST(doubles)
{
    check_double("0", 0);
    check_double("1.5", 1.5);
    check_double("-.25", -0.25);
    check_double("+3.", 3);
    check_double(" \t6.02214076e23\n", 6.02214076e23);
    check_double("1e-400", 0);
    check_double("5e-324", 0x1p-1074);
    check_double("0.1", 0.1);
    check_double("inf", INFINITY);
    check_double("-Infinity", -INFINITY);
    check_double("nan", NAN);
}

/* The C library's strtod gives the nearest double, in the program's locale, which is C's here. */
static void check_against_strtod(const char *text)
{
    double value = 12345, expected = strtod(text, NULL);
    if (!sgm__parse_double(text, &value) || memcmp(&value, &expected, sizeof value) != 0)
        TEST_FAIL("'%s' gave %.17g, strtod %.17g", text, value, expected);
}

/* Short decimals have a way of their own: around the bounds of it, and at random, to the bit. */
TEST(short_doubles)
{
    static const char *const texts[] = {"-0",
                                        "-0.0",
                                        "+0.",
                                        "-.5",
                                        "9007199254740991",
                                        "9007199254740992",
                                        "9007199254740993",
                                        "9007199254740994",
                                        "0.9007199254740993",
                                        "9223372036854775807",
                                        "9999999999999999999",
                                        "18446744073709551616",
                                        "0000000000000000001",
                                        "00000000000000000001",
                                        "0.0000000000000000001",
                                        "0.00000000000000000001",
                                        "1.0000000000000000000000001",
                                        "123456789012345678",
                                        "0.1",
                                        "0.3",
                                        "2.675",
                                        "1.005",
                                        "4.35",
                                        " 7.5 "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_against_strtod(texts[i]);
    sgm__random random = sgm__random_make(1, 2);
    for (int i = 0; i < 300000; i++) {
        char text[64];
        uint64_t digits = ((uint64_t)sgm__random_uint32(&random) << 32 | sgm__random_uint32(&random)) >>
                          sgm__random_below(&random, 64);
        int length = snprintf(text, sizeof text, "%s%llu", i % 3 == 0 ? "-" : "", (unsigned long long)digits);
        int point = (int)sgm__random_below(&random, (uint64_t)length) + 1;
        point = point == 1 && text[0] == '-' ? 2 : point; /* a digit stands before it */
        memmove(text + point + 1, text + point, (size_t)(length - point) + 1);
        text[point] = '.';
        check_against_strtod(text);
    }
}

/* Decimals that need more than one rounding step's care: all exponents, all bits, halfway between two doubles
 * and next to it, below the normal ones and around the largest. */
TEST(long_doubles)
{
    static const char *const texts[] = {"1.7976931348623157e308",
                                        "1.7976931348623158e308",
                                        "2.2250738585072011e-308",
                                        "2.2250738585072014e-308",
                                        "4.9406564584124654e-324",
                                        "2.4703282292062327e-324",
                                        "2.4703282292062328e-324",
                                        "9007199254740993e22",
                                        "9007199254740993e23",
                                        "1e23",
                                        "8.5e22",
                                        "1e-342",
                                        "9999999999999999999e-343",
                                        "0e400",
                                        "0.000e-9999999999999999999",
                                        "1E5",
                                        "1e+5",
                                        "7e-5 "};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_against_strtod(texts[i]);
    sgm__random random = sgm__random_make(7, 2);
    for (int i = 0; i < 600000; i++) {
        char text[64];
        uint64_t bits = (uint64_t)sgm__random_uint32(&random) << 32 | sgm__random_uint32(&random);
        uint64_t half = (bits >> 11 | UINT64_C(1) << 52) << 1 | 1; /* 54 bits: between two doubles */
        double number;
        if (i % 4 == 0) {
            snprintf(text, sizeof text, "%llu", (unsigned long long)((half << bits % 10) + (i % 8 == 0)));
        } else if (i % 4 == 1) {
            int exponent = (int)sgm__random_below(&random, 640) - 340;
            bits %= UINT64_C(10000000000000000000);
            snprintf(text, sizeof text, "%llue%d", (unsigned long long)(exponent > 289 ? bits % 10 : bits),
                     exponent);
        } else {
            bits = i % 4 == 2 ? bits : bits >> 12 >> bits % 52; /* the latter are below the normal ones */
            memcpy(&number, &bits, sizeof number);
            number = isfinite(number) ? number : 1;
            snprintf(text, sizeof text, "%.*g", 15 + i / 4 % 3, number);
        }
        if (isfinite(strtod(text, NULL)))
            check_against_strtod(text);
    }
}

TEST(what_is_no_double)
{
    static const char *const texts[] = {"",    " ",     "banana", "1.5x", "1 2",      "1,5", "0x10", "1e",
                                        "--1", "1e400", "-1e999", ".",    "nan(123)", "e5",  "infi", "1.2.3"};
    double value = 7;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sgm__parse_double(texts[i], &value))
            TEST_FAIL("'%s' was taken for %g", texts[i], value);
    CHECK(!sgm__parse_double(NULL, &value));
    CHECK_NEAR(value, 7, 0);
}

TEST(integers)
{
    int64_t value = 0;
    CHECK(sgm__parse_int64(" 42 ", &value));
    CHECK_INT(value, 42);
    CHECK(sgm__parse_int64("+7", &value));
    CHECK_INT(value, 7);
    CHECK(sgm__parse_int64("-9223372036854775808", &value));
    CHECK(value == INT64_MIN);
    CHECK(sgm__parse_int64("9223372036854775807", &value));
    CHECK(value == INT64_MAX);
    CHECK(sgm__parse_int64("-0009007199254740993", &value));
    CHECK(value == -9007199254740993);
    static const char *const texts[] = {"",
                                        "-",
                                        "1.0",
                                        "1e3",
                                        "0x1",
                                        "5 5",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999",
                                        "- 5",
                                        "++5",
                                        "five"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (sgm__parse_int64(texts[i], &value))
            TEST_FAIL("'%s' was taken for %lld", texts[i], (long long)value);
}

TEST(the_locale_changes_nothing)
{
    if (!speak_german())
        SKIP("no locale can be made here");
    double value = 0;
    bool parsed = sgm__parse_double("1.5", &value), comma = sgm__parse_double("1,5", &(double){0});
    char *text = sgm__format("%.2f", 0.25);
    speak_c();
    CHECK(parsed && !comma);
    CHECK_NEAR(value, 1.5, 0);
    CHECK_STR(text, "0.25");
    sgm__free(text);
}

TEST(words)
{
    size_t count;
    char **words = sgm__words(" a  bc\td\n", &count);
    CHECK_INT(count, 3);
    CHECK_STR(words[0], "a");
    CHECK_STR(words[1], "bc");
    CHECK_STR(words[2], "d");
    CHECK(words[3] == NULL);
    sgm__free(words);
    words = sgm__words(NULL, &count);
    CHECK(words != NULL && words[0] == NULL && count == 0);
    sgm__free(words);
}

TEST(nothing_printable_steers_a_terminal)
{
    static const struct {
        const char *given, *printable;
    } cases[] = {{"", ""},
                 {"one\n\ttwo", "one\n\ttwo"},
                 {"\033[2J\r\a\177", "?[2J???"},
                 {"k\303\274che \342\202\254 \360\237\231\202", "k\303\274che \342\202\254 \360\237\231\202"},
                 {"\302\2330m", "??0m"},   /* U+009B, as \033[ */
                 {"\302\240", "\302\240"}, /* U+00A0, a space */
                 {"\2330m", "?0m"},        /* the same in ISO 8859-1 */
                 {"\303", "?"},            /* cut off */
                 {"\355\240\200", "???"},  /* half of a surrogate pair */
                 {"\300\233", "??"}};      /* too long a form of \033 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i].given);
        CHECK_STR(sgm__make_printable(text), cases[i].printable);
    }
    sgm_fail(SGM_ERROR_FILE, "cannot open '%s'", "\033]0;title\007");
    CHECK_STR(sgm_last_error(), "cannot open '?]0;title?'");
}

TEST(nearest_names)
{
    static const char *const names[] = {"dense", "convolution", "dropout", "batch_norm", "lstm"};
    size_t count = sizeof names / sizeof *names;
    CHECK_STR(sgm__nearest("dens", names, count), "dense");
    CHECK_STR(sgm__nearest("DENSE", names, count), "dense");
    CHECK_STR(sgm__nearest("dorpout", names, count), "dropout");
    CHECK_STR(sgm__nearest("convolutoin", names, count), "convolution");
    CHECK_STR(sgm__nearest("batchnorm", names, count), "batch_norm");
    CHECK_STR(sgm__nearest("ltsm", names, count), "lstm");
    CHECK(sgm__nearest("banana", names, count) == NULL);
    CHECK(sgm__nearest("", names, count) == NULL);
    CHECK(sgm__nearest(NULL, names, count) == NULL);
    CHECK(sgm__nearest("dense", names, 0) == NULL);
    char enormous[1000];
    memset(enormous, 'x', sizeof enormous - 1);
    enormous[sizeof enormous - 1] = '\0';
    CHECK(sgm__nearest(enormous, names, count) == NULL);
}
