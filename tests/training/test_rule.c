/* Rules: what their text means, its normal form, and errors at the column. */
#include "base/allocator.h"
#include "test.h"

#include <sigma/rules.h>
#include <sigma/tensor.h>

#define CASE_COUNT(cases) (sizeof(cases) / sizeof *(cases))

static const struct {
    const char *text;
    sgm_time_step step;
    const char *normal;
} rules[] = {
    {"if validation.accuracy stalls 5 epochs then stop",
     {SGM_EPOCH, 1, 0},
     "every epoch if validation.accuracy stalls 5 epochs then stop"},
    {"every 1 epoch if validation.accuracy reaches maximum then save \"best\"",
     {SGM_EPOCH, 1, 0},
     "every epoch if validation.accuracy reaches maximum then save \"best\""},
    {"if optimiser.loss increases 3 times then set optimiser.learning_rate *= 0.5",
     {SGM_EPOCH, 1, 0},
     "every epoch if optimiser.loss increases 3 times then set optimiser.learning_rate *= 0.5"},
    {"if training.loss < 0.1 and validation.accuracy >= 0.98 then stop \"good enough\"",
     {SGM_EPOCH, 1, 0},
     "every epoch if training.loss < 0.1 and validation.accuracy >= 0.98 then stop \"good enough\""},
    {"if not (a > 1 or b < 2) repeated 3 times in a row then pause",
     {SGM_EPOCH, 1, 0},
     "every epoch if not (a > 1 or b < 2) repeated 3 times in a row then pause"},
    {"if a stalls 100 iterations then reset",
     {SGM_ITERATION, 1, 0},
     "every iteration if a stalls 100 iterations then reset"},
    {"if a stalls 5 times then reset", {SGM_EPOCH, 1, 0}, "every epoch if a stalls 5 epochs then reset"},
    {"if b > 1 and (c stalls 2 times or a stalls 100 iterations) then stop",
     {SGM_ITERATION, 1, 0},
     "every iteration if b > 1 and (c stalls 2 iterations or a stalls 100 iterations) then stop"},
    {"every 50 iterations if a stalls 100 iterations then stop",
     {SGM_ITERATION, 50, 0},
     "every 50 iterations if a stalls 100 iterations then stop"},
    {"every 50 iterations, 3 times if a stalls 4 times then stop",
     {SGM_ITERATION, 50, 3},
     "every 50 iterations, 3 times if a stalls 200 iterations then stop"},
    {"at start if a stalls 4 times then stop", {SGM_START, 1, 0}, "at start if a stalls 4 times then stop"},
    {"after 10 epochs stop \"long enough\"", {SGM_EPOCH, 10, 1}, "after 10 epochs stop \"long enough\""},
    {"at epoch 10 stop", {SGM_EPOCH, 10, 1}, "after 10 epochs stop"},
    {"at pause save \"pause\"", {SGM_PAUSE, 1, 0}, "at pause save \"pause\""},
    {"after 3 iterations if a>1 then pause", {SGM_ITERATION, 3, 1}, "after 3 iterations if a > 1 then pause"},
    {"\n if a>1\n then set b=-2e3 and set c+=1 and set d-=.5 and set e*=2 and set f/=4\tand stop and save "
     "\"x\"",
     {SGM_EPOCH, 1, 0},
     "every epoch if a > 1 then set b = -2000 and set c += 1 and set d -= 0.5 and set e *= 2 and set f /= 4 "
     "and "
     "stop and save \"x\""},
    {"every epoch set layers.*<dense>.*.rate *= 0.9",
     {SGM_EPOCH, 1, 0},
     "every epoch set layers.*<dense>.*.rate *= 0.9"},
    {"after 2 epochs set a.kind=\"one \\\"cycle\\\"\" and set b = true and set c=false",
     {SGM_EPOCH, 2, 1},
     "after 2 epochs set a.kind = \"one \\\"cycle\\\"\" and set b = true and set c = false"},
    {"after 2 epochs set a *= 0.5 for 3 epochs and set b = \"x\" for 1 iteration and set c = 1",
     {SGM_EPOCH, 2, 1},
     "after 2 epochs set a *= 0.5 for 3 epochs and set b = \"x\" for 1 iteration and set c = 1"},
    {"after 2 epochs restore \"best\" and notify \"at {epoch}\"",
     {SGM_EPOCH, 2, 1},
     "after 2 epochs restore \"best\" and notify \"at {epoch}\""},
    {"after 2 epochs save \"a\" and run \"./publish 'two words' a\"",
     {SGM_EPOCH, 2, 1},
     "after 2 epochs save \"a\" and run \"./publish 'two words' a\""},
    {"at epoch 3 unfreeze \"2-dense.*\" and freeze \"*.biases\"",
     {SGM_EPOCH, 3, 1},
     "after 3 epochs unfreeze \"2-dense.*\" and freeze \"*.biases\""},
    {"at stop webhook \"https://a.example/x\" \"at {epoch}\" and webhook \"http://b.example\" and stop",
     {SGM_STOP, 1, 0},
     "at stop webhook \"https://a.example/x\" \"at {epoch}\" and webhook \"http://b.example\" and stop"},
    {"after 2 epochs branch \"a-1\" with b*=.5 and branch \"c\" with d = \"x\" and branch \"e\" and stop",
     {SGM_EPOCH, 2, 1},
     "after 2 epochs branch \"a-1\" with b *= 0.5 and branch \"c\" with d = \"x\" and branch \"e\" and stop"},
    {"if external \"b\" then stop \"say \\\"hi\\\" \\\\\"",
     {SGM_EPOCH, 1, 0},
     "every epoch if external \"b\" then stop \"say \\\"hi\\\" \\\\\""},
};

TEST(rules_read_and_write_their_normal_form)
{
    for (size_t i = 0; i < CASE_COUNT(rules); i++) {
        sgm_rule *rule = sgm_rule_parse(rules[i].text);
        CHECK_OK(rule);
        CHECK(sgm_time_step_equal(sgm_rule_step(rule), &rules[i].step));
        char *text = sgm_rule_text(rule);
        CHECK_STR(text, rules[i].normal);
        sgm_rule *again = sgm_rule_parse(text);
        CHECK_OK(again);
        CHECK(sgm_rule_equal(rule, again));
        sgm_string_free(text);
        sgm_rule_free(rule);
        sgm_rule_free(again);
    }
}

TEST(rules_differ_by_step_criteria_and_actions)
{
    static const char *const different[] = {
        "every epoch stop",
        "every 2 epochs stop",
        "after 1 epoch stop",
        "every epoch stop \"\"",
        "every epoch stop \"a\"",
        "every epoch pause",
        "every epoch stop and pause",
        "every epoch pause and stop",
        "if a > 1 then stop",
        "if a > 2 then stop",
        "every epoch set a = 1",
        "every epoch set a = 2",
        "every epoch set a = true",
        "every epoch set a = false",
        "every epoch set a = \"true\"",
        "every epoch set a += 1",
        "every epoch set b = 1",
        "every epoch save \"a\"",
        "every epoch restore \"a\"",
        "every epoch notify \"a\"",
        "every epoch run \"a\"",
        "every epoch run \"b\"",
        "every epoch branch \"a\"",
        "every epoch branch \"b\"",
        "every epoch branch \"a\" with c = 1",
        "every epoch branch \"a\" with d = 1",
        "every epoch branch \"a\" with c = 2",
        "every epoch set a = 1 for 2 epochs",
        "every epoch set a = 1 for 3 epochs",
        "every epoch set a = 1 for 2 iterations",
    };
    for (size_t i = 0; i < CASE_COUNT(different); i++)
        for (size_t j = 0; j < CASE_COUNT(different); j++) {
            sgm_rule *a = sgm_rule_parse(different[i]), *b = sgm_rule_parse(different[j]);
            CHECK_OK(a);
            if (sgm_rule_equal(a, b) != (i == j))
                TEST_FAIL("%s and %s", different[i], different[j]);
            sgm_rule_free(a);
            sgm_rule_free(b);
        }
    CHECK(sgm_rule_equal(NULL, NULL));
}

TEST(actions_say_what_is_to_be_done)
{
    static const struct {
        sgm_action action;
        double after; /* of 8 */
    } expected[] = {
        {{.kind = SGM_ACTION_STOP, .text = NULL, .assignment = SGM_SET_TO, .number = 0}, 0},
        {{.kind = SGM_ACTION_STOP, .text = "enough", .assignment = SGM_SET_TO, .number = 0}, 0},
        {{.kind = SGM_ACTION_PAUSE, .text = NULL, .assignment = SGM_SET_TO, .number = 0}, 0},
        {{.kind = SGM_ACTION_RESET, .text = NULL, .assignment = SGM_SET_TO, .number = 0}, 0},
        {{.kind = SGM_ACTION_SAVE, .text = "best", .assignment = SGM_SET_TO, .number = 0}, 0},
        {{.kind = SGM_ACTION_SET, .text = "a.b", .assignment = SGM_SET_TO, .number = 2}, 2},
        {{.kind = SGM_ACTION_SET, .text = "a.b", .assignment = SGM_SET_PLUS, .number = 2}, 10},
        {{.kind = SGM_ACTION_SET, .text = "a.b", .assignment = SGM_SET_MINUS, .number = 2}, 6},
        {{.kind = SGM_ACTION_SET, .text = "a.b", .assignment = SGM_SET_TIMES, .number = 2}, 16},
        {{.kind = SGM_ACTION_SET, .text = "a.b", .assignment = SGM_SET_OVER, .number = 2}, 4},
    };
    sgm_rule *rule =
        sgm_rule_parse("if x > 1 then stop and stop \"enough\" and pause and reset and save \"best\" "
                       "and set a.b = 2 and set a.b += 2 and set a.b -= 2 and set a.b *= 2 and set "
                       "a.b /= 2");
    CHECK_OK(rule);
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    CHECK_INT(count, CASE_COUNT(expected));
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(actions[i].kind, expected[i].action.kind);
        CHECK_STR(actions[i].text, expected[i].action.text);
        CHECK_INT(actions[i].assignment, expected[i].action.assignment);
        CHECK_NEAR(actions[i].number, expected[i].action.number, 0);
        CHECK_NEAR(sgm_action_apply(&actions[i], 8), expected[i].after, 0);
    }
    CHECK_STR(sgm_criteria_identifier_at(sgm_rule_criteria(rule), 0), "x");
    sgm_rule_free(rule);
    rule = sgm_rule_parse("at start pause");
    CHECK(sgm_rule_criteria(rule) == NULL);
    sgm_rule_free(rule);
    sgm_rule_free(NULL);
}

static sgm_status next_value(void *user, const char *identifier, double *value)
{
    (void)identifier;
    const double **next = user;
    *value = *(*next)++;
    return SGM_OK;
}

/* An early stopper checked at every second epoch: the step and the criteria together. */
TEST(a_rule_is_followed_through_its_step_and_criteria)
{
    sgm_rule *rule = sgm_rule_parse("every 2 epochs if accuracy stalls 4 epochs then stop");
    CHECK_OK(rule);
    const double values[] = {0.5, 0.6, 0.6, 0.7, 0.7, 0.7};
    const double *next = values;
    sgm_time_count count = {0};
    int stopped_at = 0;
    for (int epoch = 1; epoch <= 12; epoch++) {
        bool fires = false;
        if (sgm_time_count_event(sgm_rule_step(rule), &count, SGM_EPOCH))
            CHECK_OK(sgm_criteria_check(sgm_rule_criteria(rule), next_value, &next, &fires, NULL));
        if (fires && stopped_at == 0)
            stopped_at = epoch;
    }
    CHECK_INT(stopped_at, 12);
    CHECK(next == values + 6);
    sgm_rule_free(rule);
}

TEST(errors_name_the_column)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {NULL, "column 1: expected if, every, after or at, found the end"},
        {"", "column 1: expected if, every, after or at, found the end"},
        {"stop", "column 1: expected if, every, after or at, found 'stop'"},
        {"iff a > 1 then stop", "column 1: expected if, every, after or at, found 'iff'; did you mean 'if'?"},
        {"evry epoch stop", "did you mean 'every'?"},
        {"every 5 epochs", "column 15: expected if, or an action (stop, pause, reset, save, set, restore, "
                           "notify, branch, run, webhook, freeze or unfreeze), found the end"},
        {"every 5 epochs stpo", "column 16: expected if, or an action (stop, pause, reset, save, set, "
                                "restore, notify, branch, run, webhook, freeze or unfreeze), found "
                                "'stpo'; did you mean 'stop'?"},
        {"every 5 epohcs stop", "column 9: expected epochs, iterations or an event"},
        {"if validation.accuracy stals 5 epochs then stop", "column 24: expected '>'"},
        {"if validation.accuracy stals 5 epochs then stop", "found 'stals'; did you mean 'stalls'?"},
        {"if a > 1 than stop",
         "column 10: expected then, and, or, or repeated, found 'than'; did you mean 'then'?"},
        {"if a > 1 stop", "column 10: expected then, and, or, or repeated, found 'stop'"},
        {"if then stop", "column 4: expected an identifier such as validation.accuracy, found 'then'"},
        {"if a > 1 then", "column 14: expected an action (stop, pause, reset, save, set, restore, notify, "
                          "branch, run, webhook, freeze or unfreeze), found the end"},
        {"if a > 1 then puase", "column 15: expected an action (stop, pause, reset, save, set, restore, "
                                "notify, branch, run, webhook, freeze or unfreeze), found 'puase'; "
                                "did you mean 'pause'?"},
        {"if a > 1 then stop now", "column 20: expected 'and' with another action, or the end, found 'now'"},
        {"if a > 1 then stop and", "column 23: expected an action"},
        {"if a > 1 then stop \"now", "column 20: the text that begins here has no closing '\"'"},
        {"if a > 1 then restore \"a/b\"", "column 23: the name of a checkpoint is not empty, has no '/'"},
        {"if a > 1 then notify", "column 21: expected what to tell, in quotes, found the end"},
        {"if a > 1 then notify \"\"", "column 22: nothing is told"},
        {"if a > 1 then branch", "column 21: expected the branch's name in quotes, found the end"},
        {"if a > 1 then branch \"a/b\"",
         "column 22: the name of a branch has 1 to 60 letters, digits, '-', '_'"},
        {"if a > 1 then branch \"\"", "column 22: the name of a branch has 1 to 60 letters"},
        {"if a > 1 then branch \"..\"", "column 22: the name of a branch has 1 to 60 letters"},
        {"if a > 1 then branch \"-a\"", "column 22: the name of a branch has 1 to 60 letters"},
        {"if a > 1 then branch \"a\" with", "column 30: expected an identifier"},
        {"if a > 1 then branch \"a\" with b /= 0", "column 36: nothing is divided by 0"},
        {"if a > 1 then branch \"a\" with b = 1 for 3 epochs",
         "column 37: expected 'and' with another action"},
        {"if a > 1 then save", "column 19: expected a name in quotes, found the end"},
        {"if a > 1 then save best", "column 20: expected a name in quotes, found 'best'"},
        {"if a > 1 then save \"\"", "column 20: the name of a checkpoint is not empty"},
        {"if a > 1 then save \"../x\"", "column 20: the name of a checkpoint"},
        {"if a > 1 then save \"a/b\"", "column 20: the name of a checkpoint"},
        {"if a > 1 then set", "column 18: expected an identifier"},
        {"if a > 1 then set b", "column 20: expected '=', '+=', '-=', '*=' or '/=', found the end"},
        {"if a > 1 then set b == 2", "column 21: expected '=', '+=', '-=', '*=' or '/=', found '=='"},
        {"if a > 1 then set b = c",
         "column 23: expected a number, a text in quotes, true or false, found 'c'"},
        {"if a > 1 then set b = treu", "column 23: expected a number, a text in quotes, true or false, found "
                                       "'treu'; did you mean 'true'?"},
        {"if a > 1 then set b += \"c\"", "column 24: expected a number, found"},
        {"if a > 1 then set b *= true", "column 24: expected a number, found 'true'"},
        {"if a > 1 then set b = 1 for",
         "column 28: expected a number of epochs or iterations, found the end"},
        {"if a > 1 then set b = 1 for 0 epochs", "column 29: a number of epochs or iterations is a whole"},
        {"if a > 1 then set b = 1 for 3 epohcs", "column 31: expected epochs or iterations, found 'epohcs'"},
        {"if a > 1 then set b = 1 for 3 starts", "column 31: expected epochs or iterations, found 'starts'"},
        {"if a > 1 then set b /= 0", "column 24: nothing is divided by 0"},
        {"every epoch if a stalls 5 iterations then stop",
         "column 27: this is not checked by iterations; give the number of checks: 5 times"},
        {"if a stalls 5 epochs and b stalls 5 iterations then stop", "column 37: this is not checked by"},
        {"every 2 epochs if a stalls 5 epochs then stop", "column 28: this is checked every 2 epochs; give a "
                                                          "multiple of 2, or times"},
        {"at start if a stalls 5 epochs then stop", "column 24: this is not checked by epochs"},
    };
    for (size_t i = 0; i < CASE_COUNT(cases); i++)
        CHECK_ERROR(sgm_rule_parse(cases[i].text), cases[i].error);
    CHECK_ERROR(sgm_rule_text(NULL), "no rule");
}

TEST(length_depth_and_number_of_actions_are_limited)
{
    char text[2048] = "every epoch stop";
    for (int i = 1; i < 16; i++)
        strcat(text, " and stop");
    sgm_rule *rule = sgm_rule_parse(text);
    CHECK_OK(rule);
    sgm_rule_free(rule);
    strcat(text, " and stop");
    CHECK_ERROR(sgm_rule_parse(text), "column 157: a rule has at most 16 actions");
    strcpy(text, "if ");
    for (int i = 0; i < 1000; i++)
        strcat(text, "(");
    CHECK_ERROR(sgm_rule_parse(text), "column 70: brackets and negations go at most 66 deep");
    char *huge = malloc(70001);
    memset(huge, ' ', 70000);
    huge[70000] = '\0';
    CHECK_ERROR(sgm_rule_parse(huge), "at most 65536 bytes");
    free(huge);
}

static const char *const long_text =
    "every 4 iterations, 7 times if not (a.b > 1.25 or c reaches 5 from above) repeated 3 times in a row and "
    "a.loss stalls 8 iterations then stop \"en\\\"ough\" and save \"x y\" and set x.*<t> *= -1e-3 and pause";

TEST(memory_that_fails_is_reported_and_nothing_leaks)
{
    for (long fail_at = 1;; fail_at++) {
        allocator_start(fail_at);
        sgm_rule *rule = sgm_rule_parse(long_text);
        char *text = rule ? sgm_rule_text(rule) : NULL;
        bool good = text != NULL;
        sgm_status status = sgm_last_status();
        sgm_string_free(text);
        sgm_rule_free(rule);
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
    sgm_rule *rule = sgm_rule_parse(text);
    if (rule) {
        char *written = sgm_rule_text(rule);
        sgm_rule *again = sgm_rule_parse(written);
        if (!sgm_rule_equal(rule, again))
            TEST_FAIL("'%s' became '%s'", text, written);
        sgm_string_free(written);
        sgm_rule_free(again);
    } else {
        CHECK(strncmp(sgm_last_error(), "column ", 7) == 0);
    }
    sgm_rule_free(rule);
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

/* Words of the grammar in any order: much of it is nearly right. */
TEST(words_in_any_order_never_crash)
{
    static const char *const words[] = {
        "every",   "after",    "at",        "epochs",   "iterations", "start", "5",       "2",
        "0.5",     "if",       "a",         "b.loss",   "not",        "(",     ")",       "and",
        "or",      "repeated", "times",     "in a row", ">",          "<=",    "becomes", "reaches",
        "maximum", "stalls",   "increases", "external", "\"x\"",      "then",  "stop",    "save",
        "set",     "*=",       "=",         ",",        "once",       "from",  "above",   "a > 1 then stop",
    };
    uint32_t random = 12345;
    for (int i = 0; i < 20000; i++) {
        char text[512] = "";
        for (int j = 0; j < 14; j++) {
            random = random * 1664525 + 1013904223;
            strcat(text, words[(random >> 16) % CASE_COUNT(words)]);
            strcat(text, " ");
            if (j % 4 == 3)
                read_any(text);
        }
    }
}
