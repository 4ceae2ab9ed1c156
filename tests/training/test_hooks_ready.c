/* The ready-made hooks. */
#include "base/allocator.h"
#include "hooks_test.h"

#include <sigma/hooks.h>

static void set_number(floor_of_test *at, const char *name, double value)
{
    CHECK_OK(sgm_registry_set(at->registry, name, sgm_number_content(value)));
}

/* All requests so far as text: "stop(reason) save(name) set(identifier=number)". */
static const char *requests(floor_of_test *at)
{
    static char text[1024];
    static const char *const names[] = {"stop", "save", "set", "pause", "reset"};
    text[0] = 0;
    for (sgm__command *made; (made = sgm__hooks_take_command(at->hooks));) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "%s%s(%s", length > 0 ? " " : "", names[made->kind],
                 made->text);
        length = strlen(text);
        char *value = made->kind == SGM__COMMAND_SET ? sgm_content_describe(&made->content) : NULL;
        snprintf(text + length, sizeof text - length, "%s%s)", value ? "=" : "", value ? value : "");
        sgm_string_free(value);
        sgm__command_free(made);
    }
    return text;
}

/* --- reporting --- */

static char lines[1024];
static int releases;

static void note_line(void *user, const char *line)
{
    (void)user;
    seen_append(lines, sizeof lines, line);
}

static void note_release(void *user)
{
    (void)user;
    releases++;
}

TEST(a_reporter_says_name_and_value_of_all_matches)
{
    floor_of_test at = open_floor();
    sgm_registry *layers = sgm_registry_create();
    lines[0] = 0;
    releases = 0;
    attach(&at, sgm_value_reporter("  loss layers.*\tname gone ", sgm_every(2, SGM_ITERATION),
                                   .report = note_line, .release = note_release, .with_time = true));
    attach(&at, sgm_value_reporter("gone", sgm_every(1, SGM_ITERATION), .report = note_line));
    iterate(&at, 2);
    CHECK_STR(lines, "");
    set_number(&at, "loss", 1.0 / 3);
    CHECK_OK(sgm_registry_set(layers, "a", sgm_integer_content(5)));
    CHECK_OK(sgm_registry_set(layers, "b", sgm_boolean_content(true)));
    CHECK_OK(sgm_registry_put(at.registry, "layers", layers));
    CHECK_OK(sgm_registry_set(at.registry, "name", sgm_text_content("wave")));
    at.epoch = 3;
    iterate(&at, 2);
    CHECK_STR(lines, "epoch 3, iteration 4: loss = 0.333333, layers.a = 5, layers.b = true, name = 'wave'");
    CHECK_INT(releases, 0);
    sgm_registry_free(layers);
    close_floor(&at);
    CHECK_INT(releases, 1);
}

TEST(a_reporter_without_a_sink_logs)
{
    floor_of_test at = open_floor();
    set_number(&at, "loss", 2);
    attach(&at, sgm_value_reporter("loss", sgm_every(1, SGM_ITERATION), .background = true));
    sgm_set_logger(seen_message, NULL, SGM_LOG_INFO);
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_log, "loss = 2");
    close_floor(&at);
}

/* Of a program compiled with headers that had no `only_if`: what lies behind is not looked at. Of one with
 * newer ones: what is not 0 is wanted, and unknown. NULL: all defaults. */
TEST(a_reporter_takes_options_of_other_versions)
{
    struct {
        sgm_value_reporter_options known;
        long unknown[8];
    } newer = {.known = {.struct_size = sizeof newer, .report = note_line, .with_time = true}};
    floor_of_test at = open_floor();
    sgm_time_step when = sgm_every(1, SGM_ITERATION);
    sgm_value_reporter_options older = {.struct_size = offsetof(sgm_value_reporter_options, only_if),
                                        .report = note_line,
                                        .only_if = (sgm_criteria *)(uintptr_t)1};
    set_number(&at, "loss", 2);
    lines[0] = 0;
    CHECK(attach(&at, sgm_value_reporter_with("loss", when, &older)));
    CHECK(attach(&at, sgm_value_reporter_with("loss", when, &newer.known)));
    CHECK(attach(&at, sgm_value_reporter_with("loss", when, NULL)));
    sgm_set_logger(seen_message, NULL, SGM_LOG_INFO);
    iterate(&at, 1);
    CHECK_STR(lines, "loss = 2 epoch 0, iteration 1: loss = 2");
    CHECK_STR(seen_log, "loss = 2");
    close_floor(&at);
    newer.unknown[7] = 1;
    CHECK_ERROR(sgm_value_reporter_with("loss", when, &newer.known), "sgm_value_reporter: has options of");
    older.struct_size = 0;
    CHECK_ERROR(sgm_value_reporter_with("loss", when, &older), "struct_size of the options is 0");
}

TEST(equal_reporters_are_one)
{
    floor_of_test at = open_floor();
    sgm_time_step when = sgm_every(1, SGM_EPOCH);
    CHECK(attach(&at, sgm_value_reporter("a b", when)));
    CHECK(!attach(&at, sgm_value_reporter(" a  b", when)));
    CHECK(attach(&at, sgm_value_reporter("a b", when, .with_time = true)));
    CHECK(attach(&at, sgm_value_reporter("a b", when, .report = note_line)));
    CHECK(attach(&at, sgm_value_reporter("a b", when, .only_if = sgm_extremum_criteria("a", SGM_MAXIMUM))));
    CHECK(attach(&at, sgm_value_reporter("a", when)));
    close_floor(&at);
    releases = 0;
    CHECK_ERROR(sgm_value_reporter(" ", when, .release = note_release), "needs identifiers");
    CHECK_INT(releases, 1);
}

/* --- accumulators --- */

static const struct sum_case {
    sgm_accumulator_options options;
    const char *name;
    double expected[6]; /* of the values 1, 2, 4, 8, 16, 32; the fourth begins an epoch */
} sum_cases[] = {
    {{.mean = false}, "loss_sum", {1, 3, 7, 15, 31, 63}},
    {{.mean = true}, "loss_mean", {1, 1.5, 7 / 3.0, 3.75, 6.2, 10.5}},
    {{.name = "total"}, "total", {1, 3, 7, 15, 31, 63}},
    {{.reset_every = 2}, "loss_sum", {1, 3, 4, 12, 16, 48}},
    {{.mean = true, .reset_every = 3}, "loss_mean", {1, 1.5, 7 / 3.0, 8, 12, 56 / 3.0}},
    {{.each_epoch = true}, "loss_sum", {1, 3, 7, 8, 24, 56}},
    {{.when = {SGM_ITERATION, 2, 0}}, "loss_sum", {NAN, 2, 2, 10, 10, 42}},
};

/* Goes on in another holder after `resume_at` values. */
static void check_sums(const struct sum_case *c, int resume_at)
{
    floor_of_test at = open_floor();
    sgm_accumulator_options options = c->options;
    options.struct_size = sizeof options;
    attach(&at, sgm_accumulator_with("loss", &options));
    for (int i = 0; i < 6; i++) {
        if (i == resume_at) {
            double numbers[64];
            size_t count = save_state(at.hooks, numbers);
            floor_of_test next = open_floor();
            next.epoch = at.epoch;
            next.iteration = at.iteration;
            attach(&next, sgm_accumulator_with("loss", &options));
            CHECK_OK(sgm__hooks_set_state(next.hooks, numbers, count));
            close_floor(&at);
            at = next;
        }
        at.epoch = i >= 3;
        set_number(&at, "loss", 1 << i);
        iterate(&at, 1);
        if (i != resume_at || options.when.interval < 2) /* the result itself is not saved */
            CHECK_NEAR(shared_number(&at, c->name), c->expected[i], 1e-12);
    }
    close_floor(&at);
}

TEST(accumulators_add_and_average)
{
    for (size_t i = 0; i < sizeof sum_cases / sizeof *sum_cases; i++)
        for (int resume_at = -1; resume_at < 6; resume_at++)
            check_sums(&sum_cases[i], resume_at);
}

TEST(an_accumulator_waits_for_its_value)
{
    floor_of_test at = open_floor();
    attach(&at, sgm_accumulator("a.loss", .mean = true));
    iterate(&at, 1);
    CHECK_STR(seen_log, "");
    CHECK_NEAR(shared_number(&at, "a_loss_mean"), NAN, 0);
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    close_floor(&at);
    CHECK_ERROR(sgm_accumulator(""), "needs an identifier");
    CHECK_ERROR(sgm_accumulator("a", .reset_every = -1), "'a' and -1");
}

/* --- running times --- */

TEST(running_times_are_shared)
{
    static const double clock[] = {10, 11, 13, 23, 24, 25.5};
    static const struct {
        double last, average, minimum, maximum;
    } expected[] = {
        {NAN, NAN, NAN, NAN}, {1, 1, 1, 1},        {2, 2, 1, 2},
        {10, 1.5, 1, 10},     {1, 4 / 3.0, 1, 10}, {1.5, 1.5, 1, 10},
    };
    floor_of_test at = open_floor();
    attach(&at, sgm_running_time(SGM_ITERATION));
    for (int i = 0; i < 6; i++) {
        set_number(&at, "running_time", clock[i]);
        iterate(&at, 1);
        CHECK_NEAR(shared_number(&at, "time_iteration_last"), expected[i].last, 1e-12);
        CHECK_NEAR(shared_number(&at, "time_iteration_average"), expected[i].average, 1e-12);
        CHECK_NEAR(shared_number(&at, "time_iteration_min"), expected[i].minimum, 1e-12);
        CHECK_NEAR(shared_number(&at, "time_iteration_max"), expected[i].maximum, 1e-12);
    }
    close_floor(&at);
    CHECK_ERROR(sgm_running_time(SGM_EPOCH, .span = 65), ".span is 65");
}

TEST(without_a_running_time_the_clock_counts)
{
    floor_of_test at = open_floor();
    attach(&at, sgm_running_time(SGM_EPOCH, .span = 1));
    CHECK_OK(sgm__hooks_event(at.hooks, SGM_EPOCH, 1, 1));
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    CHECK_OK(sgm__hooks_event(at.hooks, SGM_EPOCH, 2, 2));
    CHECK(shared_number(&at, "time_epoch_last") >= 0.002);
    CHECK(strstr(seen_log, "failed") == NULL);
    close_floor(&at);
}

/* --- stopping and saving --- */

TEST(a_stop_comes_after_so_many_events_or_with_criteria)
{
    floor_of_test at = open_floor();
    attach(&at, sgm_stop_hook(sgm_after(3, SGM_ITERATION)));
    attach(&at, sgm_stop_hook(sgm_every(1, SGM_ITERATION), .reason = "good enough",
                              .only_if = sgm_threshold_criteria("loss", SGM_BELOW, 0.5, true)));
    set_number(&at, "loss", 1);
    iterate(&at, 2);
    CHECK_STR(requests(&at), "");
    iterate(&at, 1);
    CHECK_STR(requests(&at), "stop(after 3 iterations)");
    set_number(&at, "loss", 0.25);
    iterate(&at, 3);
    CHECK_STR(requests(&at), "stop(good enough)");
    close_floor(&at);
}

static const struct patience_case {
    sgm_extremum extremum;
    int64_t patience;
    double values[8];
    int stops_at; /* from 1; 0: never */
} patience_cases[] = {
    {SGM_MINIMUM, 2, {5, 4, 3, 2, 1, 0, -1, -2}, 0}, {SGM_MINIMUM, 2, {5, 4, 4, 4, 1, 1, 1, 1}, 4},
    {SGM_MINIMUM, 3, {5, 6, 7, 4, 5, 6, 7, 8}, 7},   {SGM_MAXIMUM, 2, {1, 2, 3, 3, 2, 1, 0, 0}, 5},
    {SGM_MAXIMUM, 1, {1, 1, 1, 1, 1, 1, 1, 1}, 2},   {SGM_MINIMUM, 3, {5, 4, NAN, NAN, NAN, 3, 2, 1}, 5},
};

TEST(an_early_stopper_is_patient_and_does_not_forget)
{
    for (size_t i = 0; i < sizeof patience_cases / sizeof *patience_cases; i++) {
        const struct patience_case *c = &patience_cases[i];
        for (int resume_at = 0; resume_at < 8; resume_at++) {
            int stops_at = 0;
            floor_of_test at = open_floor();
            attach(&at, sgm_early_stopper("loss", c->patience, c->extremum, sgm_every(1, SGM_ITERATION)));
            for (int j = 0; j < 8 && stops_at == 0; j++) {
                double numbers[64];
                if (j == resume_at) {
                    size_t count = save_state(at.hooks, numbers);
                    close_floor(&at);
                    at = open_floor();
                    attach(&at,
                           sgm_early_stopper("loss", c->patience, c->extremum, sgm_every(1, SGM_ITERATION)));
                    CHECK_OK(sgm__hooks_set_state(at.hooks, numbers, count));
                }
                set_number(&at, "loss", c->values[j]);
                iterate(&at, 1);
                if (requests(&at)[0])
                    stops_at = j + 1;
            }
            CHECK_INT(stops_at, c->stops_at);
            close_floor(&at);
        }
    }
    CHECK_ERROR(sgm_early_stopper("loss", 0, SGM_MINIMUM, sgm_every(1, SGM_EPOCH)), "");
}

TEST(an_early_stopper_says_why)
{
    floor_of_test at = open_floor();
    attach(&at, sgm_early_stopper("loss", 1, SGM_MINIMUM, sgm_every(1, SGM_ITERATION)));
    set_number(&at, "loss", 1);
    iterate(&at, 2);
    CHECK_STR(requests(&at), "stop(loss has had no new minimum for 1 check)");
    close_floor(&at);
}

TEST(saves_have_names_with_values_and_come_before_stops)
{
    static const double accuracy[] = {0.5, 0.4, 0.6};
    floor_of_test at = open_floor();
    attach(&at, sgm_stop_hook(sgm_after(3, SGM_ITERATION), .reason = "end"));
    attach(&at, sgm_save_hook(sgm_every(1, SGM_ITERATION), "best-{number}",
                              .only_if = sgm_extremum_criteria("accuracy", SGM_MAXIMUM)));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sgm_registry_set(at.registry, "number", sgm_integer_content(i)));
        set_number(&at, "accuracy", accuracy[i]);
        iterate(&at, 1);
    }
    CHECK_STR(requests(&at), "save(best-0) save(best-2) stop(end)");
    close_floor(&at);
    CHECK_ERROR(sgm_save_hook(sgm_every(1, SGM_EPOCH), ""), "no name to save under");
    CHECK_ERROR(sgm_save_hook(sgm_every(1, SGM_EPOCH), "../x"), "no name to save under");
    CHECK_ERROR(
        sgm_save_hook(sgm_every(1, SGM_EPOCH), "a/b", .only_if = sgm_extremum_criteria("a", SGM_MAXIMUM)),
        "no name to save under");
}

/* --- rules --- */

static const struct rule_case {
    const char *text, *requests; /* over five iterations with loss 1, 2, 3, 4, 5 */
} rule_cases[] = {
    {"after 2 iterations stop \"enough\"", "stop(enough)"},
    {"every 2 iterations save \"x\" and pause", "save(x) pause(every 2 iterations save \"x\" and pause) "
                                                "save(x) pause(every 2 iterations save \"x\" and pause)"},
    {"every 1 iteration if loss increases 3 times then set rate *= 0.5", "set(rate=0.5)"},
    {"every 1 iteration if loss > 4 then set rate += 0.25 and stop \"big\"", "set(rate=1.25) stop(big)"},
    {"every 4 iterations set rate = 0.125", "set(rate=0.125)"},
    {"every 4 iterations set size /= 4", "set(size=3)"}, /* an integer stays one: 10 / 4, rounded */
    {"every 5 iterations set r* -= 1 and reset", "set(rate=0) set(rho=6) reset()"},
    {"every 1 iteration if gone > 4 then stop", ""},
};

TEST(rules_ask_for_what_they_say)
{
    for (size_t i = 0; i < sizeof rule_cases / sizeof *rule_cases; i++) {
        floor_of_test at = open_floor();
        set_number(&at, "rate", 1);
        set_number(&at, "rho", 7);
        CHECK_OK(sgm_registry_set(at.registry, "size", sgm_integer_content(10)));
        CHECK(attach(&at, sgm_rule_hook(rule_cases[i].text)));
        CHECK(!attach(&at, sgm_rule_hook(rule_cases[i].text)));
        for (int j = 1; j <= 5; j++) {
            set_number(&at, "loss", j);
            iterate(&at, 1);
        }
        CHECK_STR(requests(&at), rule_cases[i].requests);
        CHECK_STR(seen_log, "");
        close_floor(&at);
    }
}

static const struct rule_case bad_rules[] = {
    {"every 1 iteration set rat = 1", "action 1 of the rule"},
    {"every 1 iteration set name = 1", "'name' is text, expected a number to set"},
    {"every 1 iteration save \"x\" and set rate *= 1e308", "action 2 of the rule: 'rate' is 1e+10 and would"},
};

TEST(rules_that_cannot_be_done_are_logged_and_taken_off)
{
    for (size_t i = 0; i < sizeof bad_rules / sizeof *bad_rules; i++) {
        floor_of_test at = open_floor();
        set_number(&at, "rate", 1e10);
        CHECK_OK(sgm_registry_set(at.registry, "name", sgm_text_content("wave")));
        attach(&at, sgm_rule_hook(bad_rules[i].text));
        iterate(&at, 2);
        if (!strstr(seen_log, bad_rules[i].requests))
            TEST_FAIL("%s: \"%s\"", bad_rules[i].text, seen_log);
        CHECK_INT(sgm__hooks_count(at.hooks), 0);
        close_floor(&at);
    }
    CHECK_ERROR(sgm_rule_hook("every epoch fly"), "column");
}

TEST(rules_remember_over_a_resume)
{
    static const char text[] = "every 1 iteration if loss increases 3 times then stop \"rising\"";
    for (int resume_at = 0; resume_at < 5; resume_at++) {
        floor_of_test at = open_floor();
        attach(&at, sgm_rule_hook(text));
        for (int i = 0; i < 4; i++) {
            if (i == resume_at) {
                double numbers[64];
                size_t count = save_state(at.hooks, numbers);
                close_floor(&at);
                at = open_floor();
                attach(&at, sgm_rule_hook(text));
                CHECK_OK(sgm__hooks_set_state(at.hooks, numbers, count));
            }
            set_number(&at, "loss", i);
            iterate(&at, 1);
            CHECK_STR(requests(&at), i == 3 ? "stop(rising)" : "");
        }
        close_floor(&at);
    }
}

/* --- memory --- */

static void use_all(void)
{
    sgm_registry *registry = sgm_registry_create();
    sgm__hooks *hooks = registry ? sgm__hooks_create("t", registry, NULL) : NULL;
    sgm_time_step always = sgm_every(1, SGM_ITERATION);
    sgm_hook *made[] = {
        sgm_value_reporter("loss", always, .report = note_line, .release = note_release, .with_time = true,
                           .only_if = sgm_threshold_criteria("loss", SGM_ABOVE, 0, false)),
        sgm_accumulator("loss"),
        sgm_running_time(SGM_ITERATION),
        sgm_stop_hook(always),
        sgm_early_stopper("loss", 1, SGM_MAXIMUM, always),
        sgm_save_hook(always, "a-{loss}", .only_if = sgm_extremum_criteria("loss", SGM_MAXIMUM)),
        sgm_rule_hook("every 1 iteration if loss > 0 then set loss += 1 and stop"),
    };
    if (hooks)
        sgm_registry_set(registry, "loss", sgm_number_content(1));
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        if (hooks && made[i])
            sgm__hooks_attach(hooks, made[i], NULL);
        sgm_hook_free(made[i]);
    }
    for (int i = 0; hooks && i < 2; i++)
        sgm__hooks_event(hooks, SGM_ITERATION, 0, i);
    sgm__hooks_free(hooks);
    sgm_registry_free(registry);
}

TEST(any_allocation_of_ready_hooks_may_fail)
{
    for (long fail_at = 1;; fail_at++) {
        seen_clear();
        lines[0] = 0;
        releases = 0;
        allocator_start(fail_at);
        use_all();
        long calls = atomic_load(&allocator_calls), live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK_INT(releases, 1);
        if (calls < fail_at)
            break;
    }
}
