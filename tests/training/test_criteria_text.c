/* Criteria as text: reading, writing, errors with their column, limits, damaged text. */
#include "base/allocator.h"
#include "test.h"

#include <sigma/rules.h>
#include <sigma/tensor.h>

#define CASE_COUNT(cases) (sizeof(cases) / sizeof *(cases))

static sgm_criteria *above(const char *identifier, double value)
{
    return sgm_threshold_criteria(identifier, SGM_ABOVE, value, false);
}

TEST(text_reads_back_as_the_same)
{
    static const struct {
        const char *text, *written; /* NULL: the same */
    } cases[] = {
        {"a > 1", NULL},
        {"  a>1 ", "a > 1"},
        {"a becomes <= -1.5e-07", NULL},
        {"a == 1e5", "a == 100000"},
        {"a == 1e300", "a == 1e+300"},
        {"a < 0.1", NULL},
        {"a >= 0.30000000000000004", NULL},
        {"a>-1", "a > -1"},
        {"network.layers.*<dense,big>.weights.mean < 3", NULL},
        {"a.*<3", "a.* < 3"},
        {"layer-1.b_2.0 > 0", NULL},
        {"a reaches maximum", NULL},
        {"a reaches 0.98", NULL},
        {"a reaches 0.98 from below", "a reaches 0.98"},
        {"a.loss reaches 0.1 from above", "a.loss reaches 0.1"},
        {"a.loss reaches 0.1 from below", NULL},
        {"a stalls 5 times", NULL},
        {"a stalls 1 times", "a stalls 1 time"},
        {"a stalls 5 times below maximum", "a stalls 5 times"},
        {"loss.accuracy stalls 5 times above minimum", NULL},
        {"loss stalls 5 times above minimum", "loss stalls 5 times"},
        {"a increases 3 times", NULL},
        {"a increases repeated 3 times in a row", "a increases 3 times in a row"},
        {"not a increases 3 times", NULL},
        {"a decreases 3 times repeated 2 times", "a decreases 6 times"},
        {"a decreases 3 times repeated 2 times in a row", NULL},
        {"not (a > 1 or b < 2) repeated 3 times in a row", NULL},
        {"not (a > 1 repeated 3 times)", NULL},
        {"a > 1 repeated 2 times repeated 3 times in a row", NULL},
        {"a > 1 repeated 1 times", "a > 1 repeated 1 time"},
        {"(a > 1) repeated 3 times", "a > 1 repeated 3 times"},
        {"(a > 1 and b > 1) repeated 3 times", NULL},
        {"((a > 1)) and ((b > 1 and (c > 1)))", "a > 1 and b > 1 and c > 1"},
        {"a > 1 or (b > 1 and c > 1)", "a > 1 or b > 1 and c > 1"},
        {"(a > 1 or b > 1) and not not c > 1", NULL},
        {"external \"a \\\"button\\\" \\\\\"", NULL},
        {"external \"\xc3\xa9\" or a>1", "external \"\xc3\xa9\" or a > 1"},
    };
    for (size_t i = 0; i < CASE_COUNT(cases); i++) {
        sgm_criteria *criteria = sgm_criteria_parse(cases[i].text, NULL);
        CHECK_OK(criteria);
        char *text = sgm_criteria_text(criteria, NULL);
        CHECK_STR(text, cases[i].written ? cases[i].written : cases[i].text);
        sgm_criteria *again = sgm_criteria_parse(text, NULL);
        CHECK_OK(again);
        CHECK(sgm_criteria_equal(criteria, again));
        sgm_string_free(text);
        sgm_criteria_free(criteria);
        sgm_criteria_free(again);
    }
}

TEST(constructors_and_text_build_the_same)
{
    sgm_criteria *built = sgm_or_criteria(
        sgm_and_criteria(above("a", 1), sgm_and_criteria(sgm_reaching_criteria("b", SGM_MAXIMUM, 2),
                                                         sgm_extremum_criteria("c", SGM_MINIMUM))),
        sgm_not_criteria(sgm_repeated_criteria(sgm_stalling_criteria("a.loss", SGM_MINIMUM, 4), 3, true)));
    sgm_criteria *read =
        sgm_criteria_parse("a > 1 and b reaches 2 and c reaches minimum or not (a.loss stalls 4 "
                           "times repeated 3 times in a row)",
                           NULL);
    CHECK_OK(built);
    CHECK(sgm_criteria_equal(built, read));
    static const char *const identifiers[] = {"a", "b", "c", "a.loss"};
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(sgm_criteria_identifier_at(built, i), identifiers[i]);
    CHECK_STR(sgm_criteria_identifier_at(built, 4), NULL);
    sgm_criteria_free(built);
    sgm_criteria_free(read);
}

TEST(units_of_time_become_checks)
{
    sgm_time_step step = sgm_every(2, SGM_EPOCH), iterations = sgm_every(100, SGM_ITERATION);
    sgm_criteria *criteria = sgm_criteria_parse("a stalls 6 epochs", &step);
    CHECK_OK(criteria);
    char *in_epochs = sgm_criteria_text(criteria, &step), *alone = sgm_criteria_text(criteria, NULL);
    CHECK_STR(in_epochs, "a stalls 6 epochs");
    CHECK_STR(alone, "a stalls 3 times");
    sgm_string_free(in_epochs);
    sgm_string_free(alone);
    sgm_criteria_free(criteria);
    criteria = sgm_criteria_parse("a stalls 300 iterations", &iterations);
    alone = sgm_criteria_text(criteria, NULL);
    CHECK_STR(alone, "a stalls 3 times");
    sgm_string_free(alone);
    sgm_criteria_free(criteria);
    criteria = sgm_stalling_criteria("a", SGM_MAXIMUM, 3);
    alone = sgm_criteria_text(criteria, &iterations);
    CHECK_STR(alone, "a stalls 300 iterations");
    sgm_string_free(alone);
    sgm_criteria_free(criteria);
    CHECK_ERROR(sgm_criteria_parse("a stalls 5 epochs", &step),
                "column 10: this is checked every 2 epochs; give a multiple of 2, or times");
    CHECK_ERROR(sgm_criteria_parse("a stalls 5 epochs", &iterations),
                "column 12: this is not checked by epochs; give the number of checks: 5 times");
    CHECK_ERROR(sgm_criteria_parse("a stalls 5 epochs", NULL), "column 12: this is not checked by epochs");
}

TEST(errors_name_the_column)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {NULL, "column 1: expected an identifier such as validation.accuracy, found the end"},
        {"", "column 1: expected an identifier"},
        {"a", "column 2: expected '>', '>=', '==', '<=', '<', becomes, reaches, increases, decreases or "
              "stalls, found the end"},
        {"a stals 5 times", "column 3: expected '>'"},
        {"a stals 5 times", "found 'stals'; did you mean 'stalls'?"},
        {"a = 5", "column 3: expected '>', '>=', '=='"},
        {"a > b", "column 5: expected a number, found 'b'"},
        {"a > 1e999", "column 5: this number is too large"},
        {"a > inf", "column 5: expected a number, found 'inf'"},
        {"a > 0x10", "column 6: expected and, or, repeated or the end, found 'x10'"},
        {"a becomes 5", "column 11: expected '>', '>=', '==', '<=' or '<', found '5'"},
        {"a reaches maximun", "did you mean 'maximum'?"},
        {"a reaches 5 from nowhere", "column 18: expected below or above, found 'nowhere'"},
        {"a stalls times", "column 10: expected a number of epochs, iterations or times, found 'times'"},
        {"a stalls 5", "column 11: expected epochs, iterations or times, found the end"},
        {"a stalls 5 eopchs", "column 12: expected epochs, iterations or times, found 'eopchs'; did you mean "
                              "'epochs'?"},
        {"a stalls 5 starts now", "column 12: expected epochs, iterations or times, found 'starts'"},
        {"a stalls 0 times", "column 10: a number of epochs, iterations or times is a whole number from 1"},
        {"a stalls 5 times below minimum", "column 24: expected maximum, found 'minimum'"},
        {"a increases 3 epochs", "column 15: expected times, found 'epochs'"},
        {"a increases 3 times in row", "column 24: expected 'in a row', found 'row'"},
        {"a > 1 repeated often", "column 16: expected a number of times, found 'often'"},
        {"a > 1 annd b > 1",
         "column 7: expected and, or, repeated or the end, found 'annd'; did you mean 'and'?"},
        {"a > 1 and", "column 10: expected an identifier"},
        {"a > 1 and or b > 1", "column 11: expected an identifier such as validation.accuracy, found 'or'"},
        {"(a > 1", "column 7: expected ')', and, or or repeated, found the end"},
        {"(a > 1 b", "column 8: expected ')'"},
        {"a > 1)", "column 6: expected and, or, repeated or the end, found ')'"},
        {"a..b > 1", "column 1: an identifier has"},
        {"a. > 1", "column 1: an identifier has"},
        {".a > 1", "column 1: expected an identifier such as validation.accuracy, found '.'"},
        {"external button", "column 10: expected a name in quotes, found 'button'"},
        {"external \"\"", "column 1: external criteria need a name"},
        {"external \"a", "column 10: the text that begins here has no closing"},
        {"external \"a\\n\"", "column 12: after '\\' comes"},
        {"external \"a\tb\"", "column 12: a text has no control characters"},
        {"external \"\xc3\xa9\" ?", "column 14: expected and, or, repeated or the end, found '?'"},
        {"a > 1 repeated 9007199254740992 times repeated 2 times", "column 1: to repeat needs a number"},
    };
    for (size_t i = 0; i < CASE_COUNT(cases); i++)
        CHECK_ERROR(sgm_criteria_parse(cases[i].text, NULL), cases[i].error);
}

/* A step that does not say how often is each; what no text could be read back with is told in checks. */
TEST(units_of_steps_without_interval_and_of_many_checks)
{
    const sgm_time_step each = {.scale = SGM_EPOCH}, epochs = sgm_every(1, SGM_EPOCH),
                        even = sgm_every(2, SGM_EPOCH);
    const struct {
        int64_t checks;
        const sgm_time_step *step;
        const char *text;
    } cases[] = {
        {3, &each, "a stalls 3 epochs"},
        {(int64_t)1 << 53, &epochs, "a stalls 9007199254740992 epochs"},
        {(int64_t)1 << 52, &even, "a stalls 9007199254740992 epochs"},
        {((int64_t)1 << 52) + 1, &even, "a stalls 4503599627370497 times"},
    };
    for (size_t i = 0; i < CASE_COUNT(cases); i++) {
        sgm_criteria *criteria = sgm_stalling_criteria("a", SGM_MAXIMUM, cases[i].checks);
        char *text = sgm_criteria_text(criteria, cases[i].step);
        CHECK_STR(text, cases[i].text);
        sgm_criteria *again = sgm_criteria_parse(text, cases[i].step);
        CHECK_OK(again);
        CHECK(sgm_criteria_equal(criteria, again));
        sgm_string_free(text);
        sgm_criteria_free(again);
        sgm_criteria_free(criteria);
    }
}

TEST(depth_and_length_are_limited)
{
    char text[2048] = "";
    for (int i = 0; i < 300; i++)
        strcat(text, "(");
    CHECK_ERROR(sgm_criteria_parse(text, NULL), "column 67: brackets and negations go at most 66 deep");
    text[0] = '\0';
    for (int i = 0; i < 40; i++)
        strcat(text, "not ");
    strcat(text, "a > 1");
    CHECK_ERROR(sgm_criteria_parse(text, NULL), "criteria have at most 128 parts, 32 deep");
    text[0] = '\0';
    for (int i = 0; i < 127; i++)
        strcat(text, "a > 1 or ");
    strcat(text, "a > 1");
    CHECK_ERROR(sgm_criteria_parse(text, NULL), "criteria have at most 128 parts");
    sgm_criteria *criteria = sgm_criteria_parse(strchr(text, 'r') + 2, NULL);
    CHECK_OK(criteria);
    sgm_criteria_free(criteria);
    char *huge = malloc(70000);
    memset(huge, ' ', 69999);
    huge[69999] = '\0';
    CHECK_ERROR(sgm_criteria_parse(huge, NULL), "at most 65536 bytes");
    memset(huge, 'a', 300);
    strcpy(huge + 300, " > 1");
    CHECK_ERROR(sgm_criteria_parse(huge, NULL), "at most 255 characters");
    free(huge);
}

/* The deepest tree there may be still reads back. */
TEST(deep_trees_read_back)
{
    sgm_criteria *deep = above("a", 1);
    for (int i = 0; i < 31; i++)
        deep = i % 2 ? sgm_not_criteria(deep) : sgm_repeated_criteria(deep, 2, i % 4 == 0);
    CHECK_OK(deep);
    char *text = sgm_criteria_text(deep, NULL);
    sgm_criteria *again = sgm_criteria_parse(text, NULL);
    CHECK_OK(again);
    CHECK(sgm_criteria_equal(deep, again));
    sgm_string_free(text);
    sgm_criteria_free(again);
    CHECK_ERROR(sgm_not_criteria(deep), "32 deep");
}

static const char *const long_text =
    "not (a.b > 1.25 or c-1 reaches 5 from above) repeated 3 times in a row and "
    "(a.loss stalls 5 times below maximum or external \"a \\\"b\\\"\") or x.*<t,u> becomes <= 1e-3";

TEST(memory_that_fails_is_reported_and_nothing_leaks)
{
    for (long fail_at = 1;; fail_at++) {
        allocator_start(fail_at);
        sgm_criteria *criteria = sgm_criteria_parse(long_text, NULL);
        sgm_criteria *copy = sgm_criteria_copy(criteria);
        char *text = copy ? sgm_criteria_text(copy, NULL) : NULL;
        bool good = text != NULL;
        sgm_status status = sgm_last_status();
        sgm_string_free(text);
        sgm_criteria_free(criteria);
        sgm_criteria_free(copy);
        allocator_stop();
        CHECK_INT(allocator_live, 0);
        if (good)
            break;
        CHECK_INT(status, SGM_ERROR_MEMORY);
    }
}

/* What was read, if anything, reads back. */
static void read_any(const char *text)
{
    sgm_criteria *criteria = sgm_criteria_parse(text, NULL);
    if (criteria) {
        char *written = sgm_criteria_text(criteria, NULL);
        sgm_criteria *again = sgm_criteria_parse(written, NULL);
        if (!sgm_criteria_equal(criteria, again))
            TEST_FAIL("'%s' became '%s'", text, written);
        sgm_string_free(written);
        sgm_criteria_free(again);
    } else {
        CHECK(strlen(sgm_last_error()) > 0);
    }
    sgm_criteria_free(criteria);
}

TEST(damaged_text_never_crashes)
{
    char text[512];
    size_t length = strlen(long_text);
    for (size_t cut = 0; cut <= length; cut++) {
        memcpy(text, long_text, cut);
        text[cut] = '\0';
        read_any(text);
    }
    for (size_t at = 0; at < length; at++)
        for (int byte = 1; byte < 256; byte++) {
            strcpy(text, long_text);
            text[at] = (char)byte;
            read_any(text);
        }
}
