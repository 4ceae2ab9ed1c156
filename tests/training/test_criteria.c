/* Criteria: what fires when, what they remember, and their text. */
#include "base/allocator.h"
#include "test.h"

#include <pthread.h>
#include <sigma/criteria.h>
#include <sigma/tensor.h>

/* Series of values: numbers between spaces, '-' is missing, 'n' is NaN. */
typedef struct series {
    const char *a, *b;
    size_t index;
    int a_asked, b_asked;
} series;

static bool value_at(const char *text, size_t index, double *value)
{
    char *rest;
    for (size_t i = 0; i < index; i++)
        text = strchr(text, ' ') + 1;
    *value = *text == 'n' ? (double)NAN : strtod(text, &rest);
    return *text != '-' || text[1] != ' ';
}

static sgm_status look(void *user, const char *identifier, double *value)
{
    series *s = user;
    bool is_a = strcmp(identifier, "a") == 0 || strcmp(identifier, "a.loss") == 0;
    if (strcmp(identifier, "broken") == 0)
        return sgm_fail(SGM_ERROR_TYPE, "broken is a text");
    *(is_a ? &s->a_asked : &s->b_asked) += 1;
    return value_at(is_a ? s->a : s->b, s->index, value) ? SGM_OK : SGM_ERROR_NOT_FOUND;
}

/* 'x' fires, '.' does not, '?' does not and something was missing, '!' fires though something was missing. */
static char check_once(sgm_criteria *criteria, series *s)
{
    bool fires;
    const char *missing;
    CHECK_OK(sgm_criteria_check(criteria, look, s, &fires, &missing));
    s->index++;
    return missing ? (fires ? '!' : '?') : fires ? 'x' : '.';
}

/* Series end in a space, so that a '-' there is one too. */
#define CASE_COUNT(cases) (sizeof(cases) / sizeof *(cases))
static const struct firing {
    const char *text, *a, *b, *fires;
} firings[] = {
    /* thresholds */
    {"a > 2", "1 2 3 2 3 ", "", "..x.x"},
    {"a >= 2", "1 2 3 n -1 ", "", ".xx.."},
    {"a == 2", "1 2 3 n -2 ", "", ".x..."},
    {"a <= 2", "1 2 3 n -2 ", "", "xx..x"},
    {"a < 2", "1 2 3 n -2 ", "", "x...x"},
    {"a > 2", "1 - 3 ", "", ".?x"},
    {"a becomes > 2", "1 3 4 2 5 5 ", "", ".x..x."},
    {"a becomes > 2", "3 4 1 3 ", "", "x..x"},
    {"a becomes > 2", "3 - 4 n 4 ", "", "x?..x"},
    /* extrema: the first check fires */
    {"a reaches maximum", "1 1 2 1 3 3 ", "", "x.x.x."},
    {"a reaches minimum", "5 6 4 4 -1 ", "", "x.x.x"},
    {"a reaches maximum", "- n 2 n 1 3 ", "", "?.x..x"},
    /* changes, against the check before */
    {"a increases", "1 2 2 1 2 ", "", ".x..x"},
    {"a decreases", "1 2 2 1 0 ", "", "...xx"},
    {"a increases", "1 - 2 n 3 ", "", ".?x.x"},
    {"a increases 2 times", "1 2 1 2 3 4 ", "", "...x.x"},
    {"a increases 2 times in a row", "1 2 1 2 3 4 ", "", "....x."},
    /* reaching a value: once */
    {"a reaches 2", "1 2 1 3 ", "", ".x.."},
    {"a reaches 2", "3 1 2 ", "", "x.."},
    {"a reaches 2 from above", "3 2.5 1 3 1 ", "", "..x.."},
    {"a.loss reaches 2", "3 2.5 1 3 1 ", "", "..x.."},
    {"a.loss reaches 2 from below", "1 n 3 ", "", "..x"},
    /* stalling: n checks without a new extremum, then anew */
    {"a stalls 2 times", "1 1 1 2 1 2 2 2 ", "", "..x..x.x"},
    {"a stalls 1 time", "1 2 2 3 ", "", "..x."},
    {"a stalls 2 times above minimum", "3 4 5 1 2 ", "", "..x.."},
    {"a.loss stalls 2 times", "3 4 5 1 2 ", "", "..x.."},
    {"a.loss stalls 2 times below maximum", "3 4 5 1 2 ", "", "....x"},
    {"a stalls 2 times", "1 - - 1 - 0 ", "", ".??.?x"},
    {"a stalls 2 times", "1 n n n ", "", "..x."},
    /* repetition */
    {"a > 0 repeated 2 times", "1 0 1 1 1 1 ", "", "..x.x."},
    {"a > 0 repeated 2 times", "1 1 1 1 ", "", ".x.x"},
    {"a > 0 repeated 2 times in a row", "1 0 1 1 1 1 ", "", "...x.x"},
    {"a > 0 repeated 1 time", "1 0 1 ", "", "x.x"},
    {"a > 0 repeated 2 times in a row", "1 - 1 0 1 - 0 1 1 ", "", ".?x..?..x"},
    {"a > 0 repeated 2 times repeated 3 times", "1 1 1 1 1 1 1 ", "", ".....x."},
    {"a > 0 repeated 2 times in a row repeated 2 times in a row", "1 1 1 0 1 1 1 1 ", "", ".......x"},
    {"a > 0 repeated 2 times in a row repeated 2 times", "1 1 0 1 1 ", "", "....x"},
    /* and, or, not */
    {"a > 0 and b > 0", "0 1 0 1 ", "0 0 1 1 ", "...x"},
    {"a > 0 or b > 0", "0 1 0 1 ", "0 0 1 1 ", ".xxx"},
    {"not a > 0", "0 1 n - ", "", "x.x?"},
    {"not not a > 0", "0 1 - ", "", ".x?"},
    {"a > 0 or b > 0", "- - 1 0 ", "0 1 - - ", "?!x?"},
    {"a > 0 and b > 0", "- - 1 0 ", "0 1 - - ", "???."},
    {"not (a > 0 and b > 0)", "- 1 0 ", "1 - - ", "??x"},
    {"not (a > 0 or b > 0)", "- - 1 0 ", "0 1 - 0 ", "??.x"},
    {"a > 0 or b > 0 and a > 5", "1 0 6 ", "0 1 1 ", "x.x"},
    {"(a > 0 or b > 0) and a > 5", "1 0 6 ", "0 1 1 ", "..x"},
    {"not a > 0 and b > 0", "0 1 0 ", "1 1 0 ", "x.."},
    {"not (a > 0 and b > 0)", "0 1 0 ", "1 1 0 ", "x.x"},
    {"not a > 0 repeated 2 times", "0 0 1 0 0 ", "", ".x..x"},
    {"not (a > 0 repeated 2 times)", "1 1 1 ", "", "x.x"},
    {"a > 0 and b > 0 repeated 2 times", "1 1 0 1 ", "1 1 1 1 ", ".x.."},
    /* short circuit: b's memory stays while it is not reached */
    {"a > 0 and b increases", "1 0 1 1 ", "1 5 2 3 ", "..xx"},
    {"a > 0 or b reaches maximum", "1 1 0 0 ", "9 8 1 1 ", "xxx."},
};

TEST(criteria_fire_when_they_should)
{
    for (size_t i = 0; i < CASE_COUNT(firings); i++) {
        const struct firing *f = &firings[i];
        sgm_criteria *criteria = sgm_criteria_parse(f->text, NULL);
        CHECK_OK(criteria);
        series s = {f->a, f->b, 0, 0, 0};
        char fires[32] = "";
        for (size_t j = 0; j < strlen(f->fires); j++)
            fires[j] = check_once(criteria, &s);
        if (strcmp(fires, f->fires) != 0)
            TEST_FAIL("%s of %s: %s, expected %s", f->text, f->a, fires, f->fires);
        sgm_criteria_free(criteria);
    }
}

/* Saving, copying and writing as text between any two checks change nothing; a reset begins anew. */
TEST(what_they_remember_goes_on_exactly)
{
    for (size_t i = 0; i < CASE_COUNT(firings); i++) {
        const struct firing *f = &firings[i];
        for (size_t cut = 0; cut <= strlen(f->fires); cut++) {
            sgm_criteria *first = sgm_criteria_parse(f->text, NULL);
            sgm_criteria *resumed = sgm_criteria_parse(f->text, NULL);
            series s = {f->a, f->b, 0, 0, 0};
            double numbers[8];
            size_t count = 8;
            for (size_t j = 0; j < cut; j++)
                CHECK_INT(check_once(first, &s), f->fires[j]);
            CHECK_OK(sgm_criteria_get_state(first, numbers, &count));
            CHECK_OK(sgm_criteria_set_state(resumed, numbers, count));
            sgm_criteria *copy = sgm_criteria_copy(first);
            CHECK_OK(copy);
            CHECK(sgm_criteria_equal(copy, resumed));
            series again = s;
            for (size_t j = cut; j < strlen(f->fires); j++) {
                CHECK_INT(check_once(resumed, &s), f->fires[j]);
                CHECK_INT(check_once(copy, &again), f->fires[j]);
            }
            sgm_criteria_reset(copy);
            series anew = {f->a, f->b, 0, 0, 0};
            for (size_t j = 0; j < strlen(f->fires); j++)
                CHECK_INT(check_once(copy, &anew), f->fires[j]);
            sgm_criteria_free(first);
            sgm_criteria_free(resumed);
            sgm_criteria_free(copy);
        }
    }
}

static sgm_criteria *above(const char *identifier, double value)
{
    return sgm_criteria_threshold(identifier, SGM_ABOVE, value, false);
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
        {"cost_total stalls 5 times above minimum", "cost_total stalls 5 times"},
        {"a increases 3 times", NULL},
        {"a increases repeated 3 times in a row", "a increases 3 times in a row"},
        {"not a increases 3 times", NULL},
        {"a decreases 3 times repeated 2 times", "a decreases 6 times"},
        {"a decreases 3 times repeated 2 times in a row", NULL},
        {"not (a > 1 or b < 2) repeated 3 times in a row", NULL},
        {"not (a > 1 repeated 3 times)", NULL},
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
    sgm_criteria *built = sgm_criteria_or(
        sgm_criteria_and(above("a", 1), sgm_criteria_and(sgm_criteria_reaches("b", SGM_MAXIMUM, 2),
                                                         sgm_criteria_extremum("c", SGM_MINIMUM))),
        sgm_criteria_not(sgm_criteria_repeated(sgm_criteria_stalls("a.loss", SGM_MINIMUM, 4), 3, true)));
    sgm_criteria *read =
        sgm_criteria_parse("a > 1 and b reaches 2 and c reaches minimum or not (a.loss stalls 4 "
                           "times repeated 3 times in a row)",
                           NULL);
    CHECK_OK(built);
    CHECK(sgm_criteria_equal(built, read));
    static const char *const identifiers[] = {"a", "b", "c", "a.loss"};
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(sgm_criteria_identifier(built, i), identifiers[i]);
    CHECK_STR(sgm_criteria_identifier(built, 4), NULL);
    sgm_criteria_free(built);
    sgm_criteria_free(read);
}

TEST(equality_is_of_structure_and_numbers)
{
    static const char *const different[] = {
        "a > 1",
        "b > 1",
        "a >= 1",
        "a > 2",
        "a becomes > 1",
        "a reaches maximum",
        "a reaches minimum",
        "a increases",
        "a decreases",
        "a reaches 1",
        "a reaches 1 from above",
        "a stalls 2 times",
        "a stalls 3 times",
        "a stalls 3 times above minimum",
        "a > 1 repeated 2 times",
        "a > 1 repeated 3 times",
        "a > 1 repeated 3 times in a row",
        "not a > 1",
        "not not a > 1",
        "a > 1 and b > 1",
        "a > 1 or b > 1",
        "b > 1 or a > 1",
        "a > 1 or b > 1 or c > 1",
        "external \"a\"",
        "external \"b\"",
    };
    for (size_t i = 0; i < CASE_COUNT(different); i++)
        for (size_t j = 0; j < CASE_COUNT(different); j++) {
            sgm_criteria *a = sgm_criteria_parse(different[i], NULL);
            sgm_criteria *b = sgm_criteria_parse(different[j], NULL);
            if (sgm_criteria_equal(a, b) != (i == j))
                TEST_FAIL("%s and %s", different[i], different[j]);
            sgm_criteria_free(a);
            sgm_criteria_free(b);
        }
    CHECK(sgm_criteria_equal(NULL, NULL));
    sgm_criteria *one = above("a", 1);
    CHECK(!sgm_criteria_equal(one, NULL));
    sgm_criteria_free(one);
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
        deep = i % 2 ? sgm_criteria_not(deep) : sgm_criteria_repeated(deep, 2, i % 4 == 0);
    CHECK_OK(deep);
    char *text = sgm_criteria_text(deep, NULL);
    sgm_criteria *again = sgm_criteria_parse(text, NULL);
    CHECK_OK(again);
    CHECK(sgm_criteria_equal(deep, again));
    sgm_string_free(text);
    sgm_criteria_free(again);
    CHECK_ERROR(sgm_criteria_not(deep), "32 deep");
}

TEST(wrong_arguments_are_refused_and_parts_are_freed)
{
    allocator_start(0);
    CHECK_ERROR(above("a b", 1), "not 'a b'");
    CHECK_ERROR(above(NULL, 1), "criteria need an identifier");
    CHECK_ERROR(above("not", 1), "criteria need an identifier");
    CHECK_ERROR(above("a", (double)NAN), "finite number");
    CHECK_ERROR(sgm_criteria_threshold("a", (sgm_comparison)7, 1, false), "no comparison 7");
    CHECK_ERROR(sgm_criteria_extremum("a", (sgm_extremum)7), "no extremum 7");
    CHECK_ERROR(sgm_criteria_reaches("a", SGM_MAXIMUM, (double)INFINITY), "finite number");
    CHECK_ERROR(sgm_criteria_stalls("a", SGM_MAXIMUM, 0), "from 1 to 2^53, not 0");
    CHECK_ERROR(sgm_criteria_repeated(above("a", 1), -1, true), "not -1");
    CHECK_ERROR(sgm_criteria_external(""), "external criteria need a name");
    CHECK_ERROR(sgm_criteria_external("a\n"), "external criteria need a name");
    CHECK_ERROR(sgm_criteria_and(above("a", 1), above("a b", 1)), "not 'a b'");
    CHECK_ERROR(sgm_criteria_or(above("", 1), above("a", 1)), "not ''");
    CHECK_ERROR(sgm_criteria_not(sgm_criteria_repeated(above("?", 1), 2, true)), "not '?'");
    CHECK_ERROR(sgm_criteria_text(NULL, NULL), "no criteria");
    CHECK(sgm_criteria_copy(NULL) == NULL);
    sgm_criteria_free(NULL);
    sgm_criteria_reset(NULL);
    allocator_stop();
    CHECK_INT(allocator_live, 0);
}

TEST(a_missing_value_is_named_and_a_failing_lookup_is_an_error)
{
    series s = {"- ", "- ", 0, 0, 0};
    sgm_criteria *criteria = sgm_criteria_parse("a > 1 or b > 1", NULL);
    const char *missing;
    bool fires = true;
    CHECK_OK(sgm_criteria_check(criteria, look, &s, &fires, &missing));
    CHECK_STR(missing, "a");
    CHECK(!fires);
    CHECK_OK(sgm_criteria_check(criteria, look, &s, &fires, NULL));
    CHECK_ERROR(sgm_criteria_check(criteria, NULL, NULL, &fires, NULL), "a check needs");
    CHECK_ERROR(sgm_criteria_check(NULL, look, &s, &fires, NULL), "a check needs");
    sgm_criteria_free(criteria);
    criteria = sgm_criteria_parse("not broken > 1", NULL);
    fires = true;
    CHECK_INT(sgm_criteria_check(criteria, look, &s, &fires, &missing), SGM_ERROR_TYPE);
    CHECK(!fires);
    sgm_criteria_free(criteria);
}

TEST(what_decides_ends_the_check)
{
    series s = {"1 0 ", "1 1 ", 0, 0, 0};
    sgm_criteria *either = sgm_criteria_parse("a > 0 or b > 0", NULL);
    sgm_criteria *both = sgm_criteria_parse("a > 0 and b > 0", NULL);
    CHECK_INT(check_once(either, &s), 'x');
    CHECK_INT(s.b_asked, 0);
    CHECK_INT(check_once(both, &s), '.');
    CHECK_INT(s.a_asked, 2);
    CHECK_INT(s.b_asked, 0);
    sgm_criteria_free(either);
    sgm_criteria_free(both);
}

TEST(external_criteria_follow_toggle_and_hold)
{
    series s = {"0 0 0 0 0 0 0 0 0 0 0 0 ", "", 0, 0, 0};
    sgm_criteria *button = sgm_criteria_or(sgm_criteria_external("go"), above("a", 1));
    CHECK_INT(check_once(button, &s), '.');
    CHECK_OK(sgm_criteria_hold(button, "go"));
    CHECK_OK(sgm_criteria_hold(button, "go"));
    CHECK_INT(check_once(button, &s), 'x');
    CHECK_INT(check_once(button, &s), 'x');
    CHECK_INT(check_once(button, &s), '.');
    CHECK_OK(sgm_criteria_hold(button, "go"));
    CHECK_OK(sgm_criteria_toggle(button, "go"));
    for (int i = 0; i < 3; i++)
        CHECK_INT(check_once(button, &s), 'x');
    CHECK_OK(sgm_criteria_toggle(button, "go"));
    CHECK_OK(sgm_criteria_hold(button, "go")); /* off for good: nothing */
    CHECK_INT(check_once(button, &s), '.');
    double state;
    size_t count = 1;
    CHECK_OK(sgm_criteria_get_state(button, &state, &count));
    CHECK_OK(sgm_criteria_toggle(button, "go"));
    CHECK_INT(check_once(button, &s), 'x');
    CHECK_OK(sgm_criteria_set_state(button, &state, 1));
    CHECK_INT(check_once(button, &s), '.');
    CHECK_ERROR(sgm_criteria_toggle(button, "stop"), "no part external \"stop\"");
    CHECK_ERROR(sgm_criteria_hold(button, NULL), "no part external");
    sgm_criteria_free(button);
}

static void *hold_often(void *criteria)
{
    for (int i = 0; i < 10000; i++)
        sgm_criteria_hold(criteria, "go");
    return NULL;
}

TEST(no_hold_is_lost_between_threads)
{
    sgm_criteria *button = sgm_criteria_external("go");
    pthread_t thread;
    int fired = 0;
    bool fires, joined = false;
    CHECK_INT(pthread_create(&thread, NULL, hold_often, button), 0);
    for (int i = 0; i < 5000; i++) {
        CHECK_OK(sgm_criteria_check(button, look, NULL, &fires, NULL));
        fired += fires;
    }
    while (!joined || fires) {
        if (!joined)
            pthread_join(thread, NULL);
        joined = true;
        CHECK_OK(sgm_criteria_check(button, look, NULL, &fires, NULL));
        fired += fires;
    }
    CHECK_INT(fired, 10000);
    sgm_criteria_free(button);
}

TEST(a_state_that_does_not_fit_is_refused_whole)
{
    static const struct {
        const char *text;
        size_t count;
        double numbers[3];
    } cases[] = {
        {"a > 1", 1, {0}},
        {"a becomes > 1", 0, {0}},
        {"a becomes > 1", 1, {2}},
        {"a becomes > 1", 1, {(double)NAN}},
        {"a reaches maximum", 2, {0.5, 1}},
        {"a reaches maximum", 2, {1, (double)NAN}},
        {"a reaches 1", 1, {-1}},
        {"a stalls 3 times", 3, {3, 0, 1}},
        {"a stalls 3 times", 3, {-1, 0, 1}},
        {"a stalls 3 times", 3, {1, 0, 7}},
        {"a > 1 repeated 3 times", 1, {1.5}},
        {"a > 1 repeated 3 times", 1, {3}},
        {"external \"go\"", 1, {-3}},
        {"external \"go\"", 1, {1e300}},
        {"a becomes > 1 or a reaches 1", 2, {1, 5}},
    };
    for (size_t i = 0; i < CASE_COUNT(cases); i++) {
        sgm_criteria *criteria = sgm_criteria_parse(cases[i].text, NULL);
        double before[3] = {0}, after[3] = {0};
        size_t room = 3;
        CHECK_OK(sgm_criteria_get_state(criteria, before, &room));
        CHECK_INT(sgm_criteria_set_state(criteria, cases[i].numbers, cases[i].count), SGM_ERROR_FORMAT);
        room = 3;
        CHECK_OK(sgm_criteria_get_state(criteria, after, &room));
        CHECK(memcmp(before, after, sizeof before) == 0);
        sgm_criteria_free(criteria);
    }
    sgm_criteria *two = sgm_criteria_parse("a reaches maximum", NULL);
    double number = 0;
    size_t count = 1;
    CHECK_ERROR(sgm_criteria_get_state(two, &number, &count), "remember 2 numbers, there is room for 1");
    CHECK_OK(sgm_criteria_get_state(two, NULL, &count));
    CHECK_INT(count, 2);
    CHECK_OK(sgm_criteria_get_state(NULL, NULL, &count));
    CHECK_INT(count, 0);
    CHECK_OK(sgm_criteria_set_state(NULL, NULL, 0));
    sgm_criteria_free(two);
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
