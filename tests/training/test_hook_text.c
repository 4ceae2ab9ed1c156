/* Hooks as text: what they become, and errors at the column. */
#include "base/allocator.h"
#include "hooks/hooks_internal.h"
#include "test.h"

#include <sigma/hooks.h>

static sgm_hook *early_stopper(void)
{
    return sgm_early_stopper("validation.loss", 3, SGM_MINIMUM, sgm_every(2, SGM_EPOCH));
}

static sgm_hook *default_stopper(void)
{
    return sgm_early_stopper("validation.accuracy", 5, SGM_MAXIMUM, sgm_every(1, SGM_EPOCH));
}

static sgm_hook *rising_stopper(void)
{
    return sgm_early_stopper("my.loss", 5, SGM_MAXIMUM, sgm_every(1, SGM_EPOCH));
}

static sgm_hook *save(void)
{
    return sgm_save_hook(sgm_after(3, SGM_EPOCH), "epoch-{epoch}");
}

static sgm_hook *save_if(void)
{
    return sgm_save_hook(sgm_every(1, SGM_EPOCH), "best",
                         .only_if = sgm_extremum_criteria("validation.accuracy", SGM_MAXIMUM));
}

static sgm_hook *stop(void)
{
    return sgm_stop_hook(sgm_every(1, SGM_ITERATION), .reason = "so \"be\" it",
                         .only_if = sgm_stalling_criteria("a", SGM_MINIMUM, 100));
}

static sgm_hook *reporter(void)
{
    return sgm_value_reporter("training.loss layers.*<dense>.*", sgm_every(2, SGM_EPOCH), .with_time = true,
                              .only_if = sgm_threshold_criteria("epoch", SGM_ABOVE, 3, false));
}

static sgm_hook *accumulator(void)
{
    return sgm_accumulator("training.loss", .name = "x", .mean = true, .reset_every = 7, .each_epoch = true);
}

static sgm_hook *running_time(void)
{
    return sgm_running_time(SGM_EPOCH, .span = 9);
}

static sgm_hook *rule(void)
{
    return sgm_rule_hook("after 10 epochs stop \"long enough\"");
}

static sgm_hook *rule_if(void)
{
    return sgm_rule_hook("if a > 1 then pause");
}

static sgm_hook *last_two(void)
{
    return sgm_last_checkpoints(2, sgm_every(10, SGM_ITERATION), .name = "x");
}

static sgm_hook *best_three(void)
{
    return sgm_best_checkpoints(3, "validation.loss", SGM_MINIMUM, sgm_every(1, SGM_EPOCH));
}

static sgm_hook *pausing_watch(void)
{
    return sgm_nan_watch(.every = 50, .pause = true);
}

static sgm_hook *top_1_3(void)
{
    return sgm_metric("top_k", "validation", .tops = {1, 3});
}

static sgm_hook *three_values(void)
{
    return sgm_value_reporter("training.loss optimiser.*rate epoch", sgm_every(1, SGM_EPOCH),
                              .with_time = true);
}

static const struct {
    const char *text;
    sgm_hook *(*made)(void);
} good[] = {
    {"top_k(validation, 1 3)", top_1_3},
    {"top_k(validation, 1, 3)", top_1_3},
    {"top_k(tops=1, 3, data=validation)", top_1_3},
    {"value_reporter(training.loss optimiser.*rate epoch, true)", three_values},
    {"value_reporter(training.loss, optimiser.*rate, epoch, true)", three_values},
    {"value_reporter(training.loss, optimiser.*rate, epoch, with_time=true)", three_values},
    {"every 10 iterations last_checkpoints(2, x)", last_two},
    {"best_checkpoints(validation.loss)", best_three},
    {"every 50 iterations nan_watch(pause=true)", pausing_watch},
    {"every 2 epochs early_stopper(validation.loss, 3)", early_stopper},
    {" every 2 epochs early_stopper ( patience = 3 , value=\"validation.loss\", extremum=minimum ) ",
     early_stopper},
    {"early_stopper(validation.accuracy)", default_stopper},
    {"early_stopper(my.loss, extremum=maximum)", rising_stopper},
    {"at epoch 3 save(\"epoch-{epoch}\")", save},
    {"save(best) if validation.accuracy reaches maximum", save_if},
    {"stop(\"so \\\"be\\\" it\") if a stalls 100 iterations above minimum", stop},
    {"every 2 epochs value_reporter(training.loss layers.*<dense>.*, with_time=true) if epoch > 3", reporter},
    {"every 2 epochs value_reporter(\"training.loss layers.*<dense>.*\", true) if epoch > 3", reporter},
    {"accumulator(training.loss, x, mean=true, reset_every=7, each_epoch=true)", accumulator},
    {"every epoch running_time(9)", running_time},
    {"after 10 epochs stop \"long enough\"", rule},
    {"if a > 1 then pause", rule_if},
};

TEST(a_text_gives_the_hook_that_a_program_makes)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sgm_hook *parsed = sgm_hook_parse(good[i].text), *made = good[i].made();
        if (parsed == NULL)
            printf("%s: %s\n", good[i].text, sgm_last_error());
        CHECK_OK(parsed);
        CHECK_OK(made);
        CHECK(sgm__hook_equal(parsed, made));
        if (!sgm__hook_equal(parsed, made))
            printf("not equal: %s\n", good[i].text);
        sgm_hook_free(parsed);
        sgm_hook_free(made);
    }
}

static const struct {
    const char *text, *error;
} bad[] = {
    {"", "column 1: expected the name of a hook, as 'sigma info --hooks' lists them, found the end"},
    {"every epoch erly_stopper(a)", "column 13: expected the name of a hook, as 'sigma info --hooks' lists "
                                    "them, found 'erly_stopper'; did you mean 'early_stopper'?"},
    {"every 2 epoch early_stopper(a, patience=many)",
     "column 41: early_stopper: patience: expected a whole number from 1, found 'many'"},
    {"early_stopper(a, 0)",
     "column 18: early_stopper: patience: expected a whole number from 1 to 9007199254740992, not 0"},
    {"early_stopper(a, 2.5)",
     "column 18: early_stopper: patience: expected a whole number from 1 to 9007199254740992, not 2.5"},
    {"early_stopper(a, patence=3)", "column 18: expected an argument of early_stopper (value, patience, "
                                    "extremum, keep_last), found 'patence'; did you mean 'patience'?"},
    {"early_stopper(a, 3, extremum=maximun)",
     "column 30: early_stopper: extremum: expected maximum or minimum, "
     "found 'maximun'; did you mean 'maximum'?"},
    {"early_stopper(a, 3, maximum, true, 5)", "column 36: early_stopper takes at most 4 arguments"},
    {"early_stopper(a, value=b)", "column 18: value is given twice"},
    {"early_stopper(patience=3)", "column 1: early_stopper needs value: what is watched"},
    {"every epoch early_stopper", "column 13: early_stopper needs value: what is watched"},
    {"early_stopper(a b)", "column 17: expected ',' with another argument, or ')', found 'b'"},
    {"early_stopper(a", "column 16: expected ',' with another argument, or ')', found the end"},
    {"early_stopper(a) when b > 1", "column 18: expected if, or the end, found 'when'"},
    {"early_stopper(a) if b stals 3 epochs", "column 23: expected '>', '>=', '==', '<=', '<', becomes, "
                                             "reaches, increases, decreases or stalls, found "
                                             "'stals'; did you mean 'stalls'?"},
    {"early_stopper(\"a b\")", "column 15: early_stopper: value: 'a b' is no identifier"},
    {"save(\"a/b\")",
     "column 1: 'a/b' is no name to save under: it must not be empty, begin with '.' or have "
     "a '/'"},
    {"running_time(99)", "column 14: running_time: span: expected a whole number from 1 to 64, not 99"},
    {"throughput(10001)", "column 12: throughput: span: expected a whole number from 1 to 10000, not 10001"},
    {"target_maximiser(-1)",
     "column 18: target_maximiser: class: expected a whole number from 0 to 999999999, not -1"},
    {"statistics(a, bins=1001)",
     "column 20: statistics: bins: expected a whole number from 1 to 1000, not 1001"},
    {"last_checkpoints(0)",
     "column 18: last_checkpoints: count: expected a whole number from 1 to 10000, not 0"},
    {"time_series(a, 1000001)",
     "column 16: time_series: capacity: expected a whole number from 1 to 1000000, not 1000001"},
    {"every 2 epochs running_time()",
     "column 16: running_time measures every event: every iteration, or every epoch"},
    {"value_reporter(a, with_time=1)",
     "column 29: value_reporter: with_time: expected false or true, found '1'"},
    {"value_reporter(a.b, ture)",
     "column 21: value_reporter: with_time: expected false or true, found 'ture'; did "
     "you mean 'true'?"},
    {"statistics(a.b, 20, c.d)", "column 21: statistics: minimum: expected a number, found 'c.d'"},
    {"top_k(validation, 1, 3 x)", "column 24: expected ',' with another argument, or ')', found 'x'"},
    {"every epoch nan_watch", "column 13: nan_watch: the step is every 1 to 250 iterations"},
    {"every epoch throughput(20)", "column 13: throughput: results come every few iterations"},
    {"every epoch stop now", "column 18: expected 'and' with another action, or the end, found 'now'"},
};

TEST(errors_name_column_and_argument)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(sgm_hook_parse(bad[i].text) == NULL);
        CHECK_STR(sgm_last_error(), bad[i].error);
    }
    CHECK(sgm_hook_parse(NULL) == NULL);
}

TEST(each_hook_has_help_and_its_types_name)
{
    size_t count = 0;
    for (const char *name; (name = sgm_hook_name_at(count)); count++) {
        char *help = sgm_hook_help(name);
        CHECK_OK(help);
        CHECK(strstr(help, name));
        sgm_string_free(help);
    }
    CHECK(count >= 6);
    char *help = sgm_hook_help("early_stopper");
    CHECK(strstr(help, "[every epoch] early_stopper(IDENTIFIER, patience=5, extremum=..., keep_last=false) "
                       "[if CONDITION]\n"));
    sgm_string_free(help);
    CHECK(sgm_hook_help("erly_stopper") == NULL);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sgm_hook *hook = sgm_hook_parse(good[i].text);
        CHECK(strcmp(sgm_hook_name(hook), "rule") == 0 || strstr(good[i].text, sgm_hook_name(hook)));
        sgm_hook_free(hook);
    }
}

TEST(a_condition_is_checked_before_the_hooks_own)
{
    sgm_hook *hook = sgm_hook_parse("early_stopper(a, 2) if b > 1");
    CHECK_OK(hook);
    sgm_time_step step = sgm_every(1, SGM_EPOCH);
    char *text = sgm_criteria_text(sgm_hook_criteria(hook), &step);
    CHECK_STR(text, "b > 1 and a stalls 2 epochs");
    sgm_string_free(text);
    sgm_hook_free(hook);
}

TEST(out_of_memory_leaves_nothing_behind)
{
    for (long at = 1;; at++) {
        allocator_start(at);
        sgm_hook *hook =
            sgm_hook_parse("every 2 epochs early_stopper(a, patience=2, extremum=minimum) if b > 1");
        sgm_hook_free(hook);
        allocator_stop();
        CHECK_INT(atomic_load(&allocator_live), 0);
        if (hook != NULL) {
            CHECK(at > 10);
            break;
        }
    }
}
