/* Criteria: what fires when, and what they remember. `firings` has a table's rows for each rule:
 *   thresholds with each comparison, continuous and on the edge only
 *   extrema, whose first check fires; changes; reaching; stalling
 *   repeated with and without interruption, anew after firing, and stacked, which multiplies
 *   and, or, not, what binds before what, and no further than needed
 *   values that are missing or no numbers
 * and each row is also saved, copied and reset between any two checks. external_cases: toggle and hold.
 * Equality and refused states have tables of their own; the text is in test_criteria_text.c. */
#include "base/allocator.h"
#include "test.h"

#include <pthread.h>
#include <sigma/rules.h>
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
    bool is_a = strcmp(identifier, "a") == 0 || strncmp(identifier, "a.", 2) == 0;
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
    {"a.perplexity_mean reaches 2", "3 2.5 1 3 1 ", "", "..x.."},
    {"a.second_perplexity reaches 2", "3 2.5 1 3 1 ", "", "..x.."},
    {"a.error_f1 reaches 2", "1 2 1 3 ", "", ".x.."},
    /* stalling: n checks without a new extremum, then anew */
    {"a stalls 2 times", "1 1 1 2 1 2 2 2 ", "", "..x..x.x"},
    {"a stalls 2 times", "2 1 3 2 1 ", "", "....x"},
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
    return sgm_threshold_criteria(identifier, SGM_ABOVE, value, false);
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

TEST(wrong_arguments_are_refused_and_parts_are_freed)
{
    allocator_start(0);
    CHECK_ERROR(above("a b", 1), "not 'a b'");
    CHECK_ERROR(above(NULL, 1), "criteria need an identifier");
    CHECK_ERROR(above("not", 1), "criteria need an identifier");
    CHECK_ERROR(above("a", (double)NAN), "finite number");
    CHECK_ERROR(sgm_threshold_criteria("a", (sgm_comparison)7, 1, false), "no comparison 7");
    CHECK_ERROR(sgm_extremum_criteria("a", (sgm_extremum)7), "no extremum 7");
    CHECK_ERROR(sgm_reaching_criteria("a", SGM_MAXIMUM, (double)INFINITY), "finite number");
    CHECK_ERROR(sgm_stalling_criteria("a", SGM_MAXIMUM, 0), "from 1 to 2^53, not 0");
    CHECK_ERROR(sgm_repeated_criteria(above("a", 1), -1, true), "not -1");
    CHECK_ERROR(sgm_external_criteria(""), "external criteria need a name");
    CHECK_ERROR(sgm_external_criteria("a\n"), "external criteria need a name");
    CHECK_ERROR(sgm_and_criteria(above("a", 1), above("a b", 1)), "not 'a b'");
    CHECK_ERROR(sgm_or_criteria(above("", 1), above("a", 1)), "not ''");
    CHECK_ERROR(sgm_not_criteria(sgm_repeated_criteria(above("?", 1), 2, true)), "not '?'");
    CHECK_ERROR(sgm_criteria_text(NULL, NULL), "no criteria");
    CHECK(sgm_criteria_copy(NULL) == NULL);
    sgm_criteria_free(NULL);
    sgm_criteria_reset(NULL);
    allocator_stop();
    CHECK_INT(allocator_live, 0);
}

/* What is allowed up to a bound is allowed at it. */
TEST(bounds_are_allowed_and_one_more_is_not)
{
    const int64_t maximum = (int64_t)1 << 53;
    char name[258];
    sgm_criteria *made = sgm_stalling_criteria("a", SGM_MAXIMUM, maximum);
    CHECK_OK(made);
    sgm_criteria_free(made);
    CHECK_ERROR(sgm_stalling_criteria("a", SGM_MAXIMUM, maximum + 1), "from 1 to 2^53, not 9007199254740993");
    made = sgm_repeated_criteria(above("a", 1), maximum, false);
    CHECK_OK(made);
    CHECK_ERROR(sgm_repeated_criteria(made, maximum, false), "from 1 to 2^53"); /* together 2^106 */
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    made = sgm_external_criteria(name);
    CHECK_OK(made);
    sgm_criteria_free(made);
    name[255] = 'x';
    name[256] = '\0';
    CHECK_ERROR(sgm_external_criteria(name), "1 to 255 bytes");
    CHECK_ERROR(sgm_external_criteria("a\x7f"), "without control characters");
    made = sgm_external_criteria(" ");
    CHECK_OK(made);
    sgm_criteria_free(made);
}

static sgm_criteria *negated(int times, sgm_criteria *criteria)
{
    for (int i = 0; i < times; i++)
        criteria = sgm_not_criteria(criteria);
    return criteria;
}

/* `count` of them, joined by and. */
static sgm_criteria *joined(int count)
{
    sgm_criteria *all = above("a", 0);
    for (int i = 1; i < count; i++)
        all = sgm_and_criteria(all, above("a", i));
    return all;
}

/* Parts of the same kind become one node, of which the joint is counted once: 128 parts, 32 deep. */
TEST(joining_counts_each_part_once)
{
    sgm_criteria *made = sgm_and_criteria(joined(63), joined(64));
    CHECK_OK(made);
    sgm_criteria_free(made);
    CHECK_ERROR(sgm_and_criteria(joined(64), joined(64)), "at most 128 parts, 32 deep");
    made = sgm_and_criteria(above("a", 1), sgm_and_criteria(above("b", 1), negated(30, above("c", 1))));
    CHECK_OK(made);
    CHECK_ERROR(sgm_not_criteria(made), "at most 128 parts, 32 deep");
    made = sgm_and_criteria(negated(30, above("c", 1)), above("a", 1)); /* the deep one first */
    CHECK_OK(made);
    CHECK_ERROR(sgm_not_criteria(made), "at most 128 parts, 32 deep");
}

TEST(identifiers_are_those_of_values)
{
    sgm_criteria *criteria = sgm_criteria_parse("external \"go\" or a > 1 or external \"on\" or b < 2", NULL);
    CHECK_STR(sgm_criteria_identifier_at(criteria, 0), "a");
    CHECK_STR(sgm_criteria_identifier_at(criteria, 1), "b");
    CHECK_STR(sgm_criteria_identifier_at(criteria, 2), NULL);
    sgm_criteria_free(criteria);
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

/* 'c' is a check, 't' a toggle, 'h' a hold, 'r' a reset, 's' a resume from here. */
static const struct external_case {
    const char *acts, *fires;
} external_cases[] = {
    {"ccc", "..."},    {"hcc", "x."},  {"hhccc", "xx."},  {"tccc", "xxx"},  {"tctc", "x."},
    {"tchcc", "xxx"},  {"tttc", "x"},  {"ttc", "."},      {"tthcc", ".."},  {"htcctc", "xx."},
    {"hhcrcc", "x.."}, {"tcrc", "x."}, {"hhcscc", "xx."}, {"tcscc", "xxx"}, {"ttscc", ".."},
    {"tthsc", "."},    {"ttstc", "x"},
};

TEST(external_criteria_are_for_buttons)
{
    for (size_t i = 0; i < CASE_COUNT(external_cases); i++) {
        const struct external_case *c = &external_cases[i];
        sgm_criteria *button = sgm_external_criteria("go"), *resumed;
        char fires[16] = "";
        double state;
        size_t count = 1;
        series s = {"", "", 0, 0, 0};
        for (const char *act = c->acts; *act; act++) {
            switch (*act) {
            case 'c':
                fires[strlen(fires)] = check_once(button, &s);
                break;
            case 't':
                CHECK_OK(sgm_criteria_toggle(button, "go"));
                break;
            case 'h':
                CHECK_OK(sgm_criteria_hold(button, "go"));
                break;
            case 'r':
                sgm_criteria_reset(button);
                break;
            default:
                CHECK_OK(sgm_criteria_get_state(button, &state, &count));
                resumed = sgm_external_criteria("go");
                CHECK_OK(sgm_criteria_set_state(resumed, &state, count));
                sgm_criteria_free(button);
                button = resumed;
            }
        }
        if (strcmp(fires, c->fires) != 0)
            TEST_FAIL("%s: %s, expected %s", c->acts, fires, c->fires);
        sgm_criteria_free(button);
    }
}

/* A copy has what was held when it was made, and its own from then on. */
TEST(a_copy_of_a_button_is_pressed_as_often)
{
    sgm_criteria *button = sgm_external_criteria("go");
    series s = {"", "", 0, 0, 0};
    CHECK_OK(sgm_criteria_hold(button, "go"));
    CHECK_OK(sgm_criteria_hold(button, "go"));
    sgm_criteria *copy = sgm_criteria_copy(button);
    for (int i = 0; i < 3; i++)
        CHECK_INT(check_once(copy, &s), i < 2 ? 'x' : '.');
    CHECK_INT(check_once(button, &s), 'x');
    sgm_criteria_free(copy);
    sgm_criteria_free(button);
}

TEST(external_criteria_follow_toggle_and_hold)
{
    series s = {"0 0 0 0 0 0 0 0 0 0 0 0 ", "", 0, 0, 0};
    sgm_criteria *button = sgm_or_criteria(sgm_external_criteria("go"), above("a", 1));
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
    sgm_criteria *button = sgm_external_criteria("go");
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
        {"a stalls 3 times", 3, {1, (double)NAN, 1}},
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
    CHECK_INT(sgm_criteria_set_state(two, NULL, 2), SGM_ERROR_FORMAT);
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
