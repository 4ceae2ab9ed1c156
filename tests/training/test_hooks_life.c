/* Hooks while a training runs: their criteria, failures, hooks that change hooks, values, requests, state
 * over a resume, memory. The rules: a condition is checked at each due invocation (criteria_decide...), it is
 * part of what hooks are compared by (hooks_that_differ_in_their_criteria...), state is copied and kept
 * (counts_and_states..., criteria_keep...), hooks exchange results under shared (hooks_read_values...). */
#include "base/allocator.h"
#include "hooks_test.h"

#include <sigma/hooks.h>

/* --- criteria --- */

TEST(criteria_decide_whether_a_due_hook_runs)
{
    probe_self probe = {.name = "a"};
    floor_of_test at = open_floor();
    CHECK_OK(sgm_registry_set(at.registry, "cost", sgm_number_content(3)));
    attach(&at, sgm_hook_create(&probe_type, &probe, .when = sgm_live(sgm_every(1, SGM_ITERATION), 4),
                                .only_if = sgm_threshold_criteria("cost", SGM_BELOW, 2, false)));
    iterate(&at, 1);
    CHECK_OK(sgm_registry_set(at.registry, "cost", sgm_number_content(1)));
    iterate(&at, 1);
    CHECK_OK(sgm_registry_remove(at.registry, "cost"));
    iterate(&at, 1); /* missing: it does not hold */
    CHECK_INT(probe.runs, 1);
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    CHECK_OK(sgm_registry_set(at.registry, "cost", sgm_number_content(1)));
    iterate(&at, 2); /* its life counts when it is due, whether they hold or not */
    CHECK_INT(probe.runs, 2);
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    close_floor(&at);
}

/* In the second epoch, once, and only of what nothing has: neither a value that came late nor a pattern. */
TEST(names_that_nothing_has_are_told_in_the_second_epoch)
{
    static const char *const reads[] = {"cost", "late", "c*", "cots", "gone.*", NULL};
    static const char told[] =
        "trainer 'mnist': hook 'probe' reads what is not there so far: nothing matches ";
    probe_self probe = {.name = "a"};
    char expected[512];
    floor_of_test at = open_floor();
    CHECK_OK(sgm_registry_set(at.registry, "cost", sgm_number_content(3)));
    attach(&at, sgm_hook_create(&probe_type, &probe, .reads = reads,
                                .only_if = sgm_threshold_criteria("lost", SGM_BELOW, 2, false)));
    iterate(&at, 3);
    CHECK_STR(seen_log, "");
    CHECK_OK(sgm_registry_set(at.registry, "late", sgm_number_content(3)));
    at.epoch++;
    iterate(&at, 3);
    at.epoch++;
    iterate(&at, 3);
    snprintf(expected, sizeof expected,
             "%s'cots'; did you mean 'cost'? %s'gone.*' %s'lost'; did you mean 'cost'?", told, told, told);
    CHECK_STR(seen_log, expected);
    CHECK_INT(probe.runs, 0);
    close_floor(&at);
}

TEST(a_rule_reads_what_it_sets)
{
    floor_of_test at = open_floor();
    CHECK_OK(sgm_registry_set(at.registry, "rate", sgm_number_content(3)));
    attach(&at, sgm_rule_hook("every 1 iteration if rate > 9 then set raet *= 0.5 and set rate = 1"));
    iterate(&at, 1);
    at.epoch++;
    iterate(&at, 2);
    CHECK(strstr(seen_log, "nothing matches 'raet'; did you mean 'rate'?"));
    close_floor(&at);
}

TEST(hooks_that_differ_in_their_criteria_differ)
{
    probe_self probes[4] = {PROBE("a", 1), PROBE("b", 1), PROBE("c", 1), PROBE("d", 1)};
    floor_of_test at = open_floor();
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[0],
                                      .only_if = sgm_threshold_criteria("cost", SGM_BELOW, 2, false))));
    CHECK(!attach(&at, sgm_hook_create(&probe_type, &probes[1],
                                       .only_if = sgm_threshold_criteria("cost", SGM_BELOW, 2, false))));
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[2],
                                      .only_if = sgm_threshold_criteria("cost", SGM_BELOW, 3, false))));
    CHECK(attach(&at, sgm_hook_create(&probe_type, &probes[3])));
    close_floor(&at);
}

TEST(criteria_keep_their_memory_over_a_resume)
{
    for (int run = 0; run < 2; run++) {
        double numbers[64];
        probe_self probes[2] = {PROBE("a", 1), PROBE("b", 1)};
        floor_of_test first = open_floor(), second = open_floor();
        floor_of_test *const both[] = {&first, &second};
        for (int i = 0; i < 2; i++) {
            CHECK_OK(sgm_registry_set(both[i]->registry, "accuracy", sgm_number_content(i == 0 ? 0.9 : 0.8)));
            attach(both[i], sgm_hook_create(&probe_type, &probes[i],
                                            .only_if = sgm_extremum_criteria("accuracy", SGM_MAXIMUM)));
        }
        iterate(&first, 1);
        CHECK_INT(probes[0].runs, 1);
        size_t count = save_state(first.hooks, numbers);
        if (run == 0)
            CHECK_OK(sgm__hooks_set_state(second.hooks, numbers, count));
        iterate(&second, 1);
        CHECK_INT(probes[1].runs, run); /* 0.8 is a maximum only for one that forgot 0.9 */
        close_floor(&first);
        close_floor(&second);
    }
}

static sgm_status press(probe_self *self, sgm_hook_call *call)
{
    (void)call;
    return sgm_criteria_hold(sgm_hook_criteria(self->user), "button");
}

TEST(criteria_of_a_hook_can_be_reached_from_outside)
{
    probe_self probe = {.name = "a"}, presser = {.name = "p", .alike = 2, .act = press};
    floor_of_test at = open_floor();
    sgm_hook *hook = sgm_hook_create(&probe_type, &probe, .only_if = sgm_external_criteria("button"));
    CHECK_OK(sgm__hooks_attach(at.hooks, hook, NULL));
    presser.user = hook;
    attach(&at, sgm_hook_create(&probe_type, &presser, .when = sgm_after(2, SGM_ITERATION)));
    iterate(&at, 5);
    CHECK_INT(probe.runs, 1);
    sgm_hook_free(hook);
    close_floor(&at);
}

/* --- failures --- */

TEST(a_hook_that_fails_is_taken_off_with_its_dependents)
{
    probe_self probes[3] = {PROBE("r", 1, .status = SGM_ERROR_FILE), PROBE("d", 2), PROBE("x", 3)};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[1],
                                .requires_hooks = {sgm_hook_create(&probe_type, &probes[0])}));
    attach(&at, sgm_hook_create(&probe_type, &probes[2]));
    iterate(&at, 2);
    CHECK_STR(seen_runs, "r x x");
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    CHECK_STR(seen_log, "trainer 'mnist': hook 'probe' failed and is taken off, with 'probe', which requires "
                        "it: r is broken (at epoch 0, iteration 1)");
    CHECK_INT(probes[1].frees, 1);
    close_floor(&at);
}

TEST(a_failure_may_stop_the_run)
{
    probe_self probes[2] = {PROBE("a", 1, .status = SGM_ERROR_FILE), PROBE("b", 2)};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[0], .failure = SGM_HOOK_STOP));
    attach(&at, sgm_hook_create(&probe_type, &probes[1]));
    CHECK_INT(sgm__hooks_event(at.hooks, SGM_ITERATION, 0, 1), SGM_ERROR_FILE);
    CHECK_STR(sgm_last_error(), "hook 'probe': a is broken (at epoch 0, iteration 1)");
    CHECK_STR(seen_runs, "a");
    CHECK_INT(sgm__hooks_count(at.hooks), 2);
    close_floor(&at);
}

TEST(a_failure_may_be_logged_only)
{
    probe_self probe = PROBE("a", 1, .status = SGM_ERROR_FILE);
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe, .failure = SGM_HOOK_GO_ON));
    iterate(&at, 2);
    CHECK_INT(probe.runs, 2);
    CHECK_STR(seen_log,
              "trainer 'mnist': hook 'probe' failed: a is broken (at epoch 0, "
              "iteration 1) trainer 'mnist': hook 'probe' failed: a is broken (at epoch 0, iteration 2)");
    close_floor(&at);
}

static sgm_status fail_silently(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    (void)call;
    return SGM_ERROR_SHAPE;
}

TEST(a_failure_without_a_message_is_named_by_its_status)
{
    probe_self probe = {.name = "a", .act = fail_silently};
    floor_of_test at = open_floor();
    sgm_fail(SGM_ERROR_SHAPE, "something from before");
    attach(&at, sgm_hook_create(&probe_type, &probe));
    iterate(&at, 1);
    CHECK(strstr(seen_log, "taken off: shapes do not fit") != NULL);
    close_floor(&at);
}

/* --- hooks that change hooks --- */

static sgm_status attach_another(probe_self *self, sgm_hook_call *call)
{
    (void)call;
    floor_of_test *at = self->user;
    static probe_self other = {.name = "new", .alike = 99};
    sgm_hook *hook = sgm_hook_create(&probe_type, &other, .priority = -1);
    sgm_status status = sgm__hooks_attach(at->hooks, hook, NULL);
    sgm_hook_free(hook);
    return status;
}

TEST(a_hook_may_attach_another_which_counts_from_the_next_event)
{
    floor_of_test at = open_floor();
    probe_self probe = {.name = "a", .act = attach_another, .user = &at};
    attach(&at, sgm_hook_create(&probe_type, &probe, .when = sgm_after(1, SGM_ITERATION)));
    iterate(&at, 2);
    CHECK_STR(seen_runs, "a new");
    close_floor(&at);
}

typedef struct detacher {
    floor_of_test *at;
    sgm_hook *hook;
} detacher;

static sgm_status detach_other(probe_self *self, sgm_hook_call *call)
{
    (void)call;
    const detacher *job = self->user;
    return sgm__hooks_detach(job->at->hooks, job->hook);
}

TEST(a_hook_may_detach_itself_and_others_that_are_due)
{
    floor_of_test at = open_floor();
    detacher self_job = {&at, NULL}, other_job = {&at, NULL};
    probe_self probes[3] = {{.name = "a", .alike = 1, .act = detach_other, .user = &self_job},
                            {.name = "b", .alike = 2, .act = detach_other, .user = &other_job},
                            {.name = "c", .alike = 3}};
    sgm_hook *hooks[3];
    for (int i = 0; i < 3; i++) {
        hooks[i] = sgm_hook_create(&probe_type, &probes[i], .failure = SGM_HOOK_STOP);
        CHECK_OK(sgm__hooks_attach(at.hooks, hooks[i], NULL));
        sgm_hook_free(hooks[i]);
    }
    self_job.hook = hooks[0];
    other_job.hook = hooks[2];
    iterate(&at, 1);
    CHECK_STR(seen_runs, "a b");
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    CHECK_INT(probes[0].frees, 1);
    CHECK_INT(probes[2].frees, 1);
    close_floor(&at);
}

/* --- values --- */

static sgm_status use_values(probe_self *self, sgm_hook_call *call)
{
    double value = 0;
    sgm_content content;
    (void)self;
    CHECK_OK(sgm_hook_number(call, "optimiser.cost", &value));
    CHECK_NEAR(value, 2.5, 0);
    CHECK_OK(sgm_hook_number(call, "steps", &value));
    CHECK_NEAR(value, 7, 0);
    CHECK_OK(sgm_hook_number(call, "optimiser.sc*", &value));
    CHECK_NEAR(value, 3, 0);
    CHECK_ERROR(sgm_hook_number(call, "name", &value), "'name' is text, expected a number");
    CHECK_INT(sgm_hook_number(call, "optimiser.price", &value), SGM_ERROR_NOT_FOUND);
    CHECK_ERROR(sgm_hook_number(call, "", &value), "is empty");
    CHECK_ERROR(sgm_hook_number(NULL, "a", &value), "a hook's call is needed");
    CHECK_OK(sgm_hook_get(call, "name", &content));
    CHECK_STR(content.as.text, "wave");
    sgm_content_clear(&content);
    CHECK_OK(sgm_hook_share(call, "result", sgm_number_content(4)));
    CHECK_OK(sgm_hook_number(call, "shared.result", &value));
    CHECK_NEAR(value, 4, 0);
    return sgm_hook_share(call, "result", sgm_text_content("four"));
}

TEST(hooks_read_values_and_share_results)
{
    probe_self probe = {.name = "a", .act = use_values};
    floor_of_test at = open_floor();
    sgm_registry *optimiser = sgm_registry_create();
    double three = 3;
    sgm_shape shape = sgm_shape_of(1);
    sgm_tensor *scale = sgm_tensor_create_from(SGM_FLOAT64, &shape, &three);
    CHECK_OK(sgm_registry_set(optimiser, "cost", sgm_number_content(2.5)));
    CHECK_OK(sgm_registry_set(optimiser, "scale", sgm_tensor_content(scale)));
    CHECK_OK(sgm_registry_put(at.registry, "optimiser", optimiser));
    CHECK_OK(sgm_registry_set(at.registry, "steps", sgm_integer_content(7)));
    CHECK_OK(sgm_registry_set(at.registry, "name", sgm_text_content("wave")));
    attach(&at, sgm_hook_create(&probe_type, &probe));
    iterate(&at, 1);
    CHECK_NEAR(shared_number(&at, "result"), 4, 0);
    CHECK(strstr(seen_log, "hook 'probe' failed and is taken off") != NULL); /* a number stays a number */
    sgm_tensor_free(scale);
    sgm_registry_free(optimiser);
    close_floor(&at);
}

TEST(shared_results_of_the_registry_are_used)
{
    sgm_registry *registry = sgm_registry_create();
    CHECK_OK(sgm_registry_set(registry, "shared", sgm_number_content(1)));
    CHECK_ERROR(sgm__hooks_create("t", registry, NULL), "'shared' is number, expected a registry");
    sgm_registry_free(registry);
}

/* --- requests --- */

static sgm_status ask(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    char text[8] = "good";
    SGM_TRY(sgm_hook_request_set(call, "optimiser.rate", sgm_text_content(text)));
    SGM_TRY(sgm_hook_request_save(call, text));
    SGM_TRY(sgm_hook_request_stop(call, text));
    memset(text, 'x', 4);
    CHECK_ERROR(sgm_hook_request_stop(call, NULL), "the reason to stop is empty");
    CHECK_ERROR(sgm_hook_request_set(call, "", sgm_number_content(1)), "is empty");
    return SGM_OK;
}

TEST(requests_are_taken_in_order)
{
    probe_self probe = {.name = "a", .act = ask};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe));
    CHECK(sgm__hooks_take_command(at.hooks) == NULL);
    iterate(&at, 2); /* those of the second are freed with the holder */
    static const sgm__command_kind kinds[] = {SGM__COMMAND_SET, SGM__COMMAND_SAVE, SGM__COMMAND_STOP};
    for (int i = 0; i < 3; i++) {
        sgm__command *request = sgm__hooks_take_command(at.hooks);
        CHECK(request != NULL);
        CHECK_INT(request->kind, kinds[i]);
        CHECK_STR(request->who, "probe");
        CHECK_STR(request->text, i == 0 ? "optimiser.rate" : "good");
        if (i == 0)
            CHECK_STR(request->content.as.text, "good");
        sgm__command_free(request);
    }
    close_floor(&at);
}

/* --- arguments --- */

TEST(what_is_no_hook_is_refused)
{
    probe_self probes[2] = {PROBE("a", 1), PROBE("b", 2)};
    static const char *const empty_read[] = {"", NULL};
    sgm_hook_type other = probe_type;
    other.api = 7;
    CHECK_ERROR(sgm_hook_create(NULL, &probes[0]), "needs a type");
    CHECK_ERROR(sgm_hook_create(&other, &probes[0]), "expected SGM_HOOK_API");
    CHECK_ERROR(sgm_hook_create(&probe_type, &probes[0], .when = {.interval = -1}), ".when is no time step");
    CHECK_ERROR(sgm_hook_create(&probe_type, &probes[0], .time_limit = NAN), ".time_limit");
    CHECK_ERROR(sgm_hook_create(&probe_type, &probes[0], .failure = (sgm_hook_failure)9), ".failure is 9");
    CHECK_ERROR(sgm_hook_create(&probe_type, &probes[0], .reads = empty_read,
                                .requires_hooks = {sgm_hook_create(&probe_type, &probes[1])}),
                "identifier 0 of .reads is empty");
    CHECK_INT(probes[0].frees, 5);
    CHECK_INT(probes[1].frees, 1);
    floor_of_test at = open_floor();
    CHECK_ERROR(sgm__hooks_attach(at.hooks, NULL, NULL), "is NULL");
    CHECK_ERROR(sgm__hooks_detach(at.hooks, NULL), "is NULL");
    close_floor(&at);
}

/* --- state --- */

typedef struct resumable {
    floor_of_test at;
    probe_self probes[4];
} resumable;

/* Three hooks: every third iteration, once after two, and one that needs another. */
static void attach_resumable(resumable *made)
{
    made->at = open_floor();
    for (int i = 0; i < 4; i++)
        made->probes[i] = (probe_self){.name = (const char *[]){"every", "once", "r", "d"}[i], .alike = i};
    attach(&made->at, sgm_hook_create(&probe_type, &made->probes[0], .when = sgm_every(3, SGM_ITERATION)));
    attach(&made->at, sgm_hook_create(&probe_type, &made->probes[1], .when = sgm_after(2, SGM_ITERATION)));
    attach(&made->at, sgm_hook_create(&probe_type, &made->probes[3], .when = sgm_every(2, SGM_ITERATION),
                                      .requires_hooks = {sgm_hook_create(&probe_type, &made->probes[2])}));
}

TEST(counts_and_states_survive_a_resume)
{
    for (int64_t before = 0; before <= 8; before++) {
        char whole[sizeof seen_runs];
        double numbers[64];
        resumable first, second;
        attach_resumable(&first);
        iterate(&first.at, before);
        first.probes[0].state = 0.25;
        size_t count = save_state(first.at.hooks, numbers);
        seen_clear();
        iterate(&first.at, 9);
        snprintf(whole, sizeof whole, "%s", seen_runs);
        attach_resumable(&second);
        CHECK_OK(sgm__hooks_set_state(second.at.hooks, numbers, count));
        CHECK_INT(sgm__hooks_count(second.at.hooks), before < 2 ? 4 : 3);
        CHECK_NEAR(second.probes[0].state, 0.25, 0);
        iterate(&second.at, 9);
        CHECK_STR(seen_runs, whole);
        close_floor(&first.at);
        close_floor(&second.at);
    }
}

TEST(a_state_fits_other_hooks_as_far_as_they_are_the_same)
{
    double numbers[64];
    resumable first, second;
    probe_self extra = {.name = "extra", .alike = 9};
    attach_resumable(&first);
    iterate(&first.at, 2);
    size_t count = save_state(first.at.hooks, numbers);
    attach_resumable(&second);
    attach(&second.at, sgm_hook_create(&probe_type, &extra, .priority = 3));
    CHECK_OK(sgm__hooks_set_state(second.at.hooks, numbers, count));
    iterate(&second.at, 1);
    CHECK_STR(seen_runs, "every r extra");
    close_floor(&first.at);
    close_floor(&second.at);
    floor_of_test empty = open_floor();
    CHECK_OK(sgm__hooks_set_state(empty.hooks, numbers, count));
    CHECK_INT(sgm__hooks_count(empty.hooks), 0);
    close_floor(&empty);
}

TEST(a_hook_that_was_attached_again_lives_after_a_resume)
{
    double numbers[64];
    resumable first, second;
    attach_resumable(&first);
    iterate(&first.at, 2);
    attach(&first.at, sgm_hook_create(&probe_type, &first.probes[1], .when = sgm_after(2, SGM_ITERATION)));
    iterate(&first.at, 1);
    size_t count = save_state(first.at.hooks, numbers);
    attach_resumable(&second);
    CHECK_OK(sgm__hooks_set_state(second.at.hooks, numbers, count));
    CHECK_INT(sgm__hooks_count(second.at.hooks), 4);
    iterate(&second.at, 1);
    CHECK(strstr(seen_runs, "once") != NULL);
    close_floor(&first.at);
    close_floor(&second.at);
}

/* What is attached, in order of running, by its text. */
static const char *texts_of(sgm__hooks *hooks)
{
    static char texts[512];
    sgm_attached_hook *list;
    size_t count, at = 0;
    CHECK_OK(sgm__hooks_list(hooks, &list, &count));
    texts[0] = 0;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(texts + at, sizeof texts - at, "%s%s", i > 0 ? "; " : "", list[i].text);
    sgm_attached_hooks_free(list, count);
    return texts;
}

static const char strict[] = "every epoch if height < 1 then set rate *= 0.5",
                  mild[] = "every epoch if height < 2 then set rate *= 0.9",
                  maximum[] = "every epoch if height < 3 then set rate *= 0.1";

static floor_of_test open_rules(const char *first, const char *second)
{
    floor_of_test at = open_floor();
    attach(&at, sgm_rule_hook(first));
    if (second != NULL)
        attach(&at, sgm_rule_hook(second));
    return at;
}

static void attach_stored(floor_of_test *at, const char *text)
{
    sgm_hook *hook = sgm_hook_parse(text);
    CHECK_OK(sgm__hooks_attach_as(at->hooks, hook, SGM__ATTACHED_STORED, NULL, NULL));
    sgm_hook_free(hook);
}

static void detach_first(floor_of_test *at)
{
    char *name, *text;
    CHECK_OK(sgm__hooks_detach_named(at->hooks, "rule#1", &name, &text, NULL));
    sgm__free(name);
    sgm__free(text);
}

/* Both are due at the same times and read the same: what tells them apart is what they say. */
TEST(a_rule_in_the_place_of_another_is_the_only_one_after_a_resume)
{
    double numbers[64];
    floor_of_test first = open_rules(strict, NULL), second = open_rules(strict, NULL);
    iterate(&first, 1);
    detach_first(&first);
    attach_stored(&first, mild);
    size_t count = save_state(first.hooks, numbers);
    attach_stored(&second, mild); /* the checkpoint brings it along */
    CHECK_OK(sgm__hooks_set_state(second.hooks, numbers, count));
    CHECK_STR(texts_of(second.hooks), mild);
    close_floor(&first);
    close_floor(&second);
}

TEST(hooks_follow_each_other_as_before_after_a_resume)
{
    double numbers[64];
    char before[512];
    floor_of_test first = open_rules(strict, mild), second = open_rules(strict, mild);
    iterate(&first, 1);
    detach_first(&first);
    attach_stored(&first, maximum);
    attach_stored(&first, strict);
    snprintf(before, sizeof before, "%s; %s; %s", mild, maximum, strict);
    CHECK_STR(texts_of(first.hooks), before);
    size_t count = save_state(first.hooks, numbers);
    attach_stored(&second, maximum);
    CHECK_OK(sgm__hooks_set_state(second.hooks, numbers, count));
    CHECK_STR(texts_of(second.hooks), before);
    close_floor(&first);
    close_floor(&second);
}

/* One that was edited before a resume goes on with what the old one remembers, unless that was taken off. */
TEST(a_new_text_has_the_memory_of_the_old_one)
{
    for (int taken_off = 0; taken_off < 2; taken_off++) {
        double before[64], after[64];
        floor_of_test first = open_rules("every 3 iterations if height < 1 then set rate *= 0.5", NULL);
        floor_of_test second = open_rules("every 3 iterations if height < 2 then set rate *= 0.5", NULL);
        iterate(&first, 2);
        if (taken_off)
            detach_first(&first);
        size_t count = save_state(first.hooks, before);
        CHECK_OK(sgm__hooks_set_state(second.hooks, before, count));
        CHECK_INT(sgm__hooks_count(second.hooks), 1);
        save_state(second.hooks, after);
        CHECK_NEAR(before[5], 1, 0); /* the count: one more iteration */
        CHECK_NEAR(after[5], taken_off ? 0 : 1, 0);
        close_floor(&first);
        close_floor(&second);
    }
}

/* Files of older versions: hooks are told apart by their place among those that are alike. */
TEST(states_without_texts_are_read)
{
    double numbers[64], old[64] = {1, 2};
    size_t at = 2, count = 2;
    floor_of_test first = open_rules(strict, mild), second = open_rules(strict, mild);
    iterate(&first, 1);
    detach_first(&first);
    size_t all = save_state(first.hooks, numbers);
    CHECK_NEAR(numbers[0], 2, 0);
    CHECK_NEAR(numbers[1], 2, 0);
    while (at < all) { /* each without its second number */
        size_t size = 6 + (size_t)numbers[at + 5];
        old[count++] = numbers[at];
        memcpy(old + count, numbers + at + 2, (size - 2) * sizeof *old);
        count += size - 2;
        at += size;
    }
    CHECK_OK(sgm__hooks_set_state(second.hooks, old, count));
    CHECK_STR(texts_of(second.hooks), mild);
    old[0] = 3;
    CHECK_ERROR(sgm__hooks_set_state(second.hooks, old, count), "a format from 1 to 2");
    close_floor(&first);
    close_floor(&second);
}

TEST(damaged_states_are_refused)
{
    double numbers[64], damaged[64];
    resumable made;
    attach_resumable(&made);
    size_t count = save_state(made.at.hooks, numbers);
    static const double wrong[] = {-1, 0.5, 1e300, NAN, INFINITY};
    CHECK_ERROR(sgm__hooks_set_state(made.at.hooks, numbers, 1), "does not begin");
    for (size_t cut = 2; cut < count; cut++)
        CHECK(sgm__hooks_set_state(made.at.hooks, numbers, cut) != SGM_OK);
    for (size_t i = 0; i < count; i++) {
        if (i >= 2 && (i - 2) % 8 == 7)
            continue; /* a hook's own number */
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            memcpy(damaged, numbers, sizeof damaged);
            damaged[i] = wrong[j];
            CHECK(sgm__hooks_set_state(made.at.hooks, damaged, count) != SGM_OK);
        }
    }
    size_t room = count - 1;
    CHECK_ERROR(sgm__hooks_get_state(made.at.hooks, numbers, &room), "there is room for");
    close_floor(&made.at);
}

/* --- memory --- */

static const char *const two_reads[] = {"a.b", "c", NULL};

static void try_all(int64_t *frees, int64_t *made)
{
    probe_self probes[3] = {PROBE("r", 1), PROBE("d", 2, .act = ask), PROBE("x", 3)};
    *frees = *made = 0;
    sgm_registry *registry = sgm_registry_create();
    sgm__hooks *hooks = registry ? sgm__hooks_create("t", registry, NULL) : NULL;
    if (hooks) {
        sgm_hook *required = sgm_hook_create(&probe_type, &probes[0], .reads = two_reads);
        sgm_hook *hook = sgm_hook_create(&probe_type, &probes[1], .requires_hooks = {required});
        sgm_hook *other = sgm_hook_create(&probe_type, &probes[2], .background = true, .reads = two_reads);
        *made = 3;
        bool good = hook && sgm__hooks_attach(hooks, hook, NULL) == SGM_OK;
        CHECK_INT(sgm__hooks_count(hooks), good ? (required ? 2 : 1) : 0);
        sgm_hook_free(hook);
        if (other)
            sgm__hooks_attach(hooks, other, NULL);
        sgm_hook_free(other);
        sgm__hooks_event(hooks, SGM_ITERATION, 0, 1);
    }
    sgm__hooks_free(hooks);
    sgm_registry_free(registry);
    for (int i = 0; i < 3; i++)
        *frees += probes[i].frees;
}

TEST(any_allocation_may_fail)
{
    int64_t frees, made;
    for (long fail_at = 1;; fail_at++) {
        allocator_start(fail_at);
        sgm_set_logger(seen_message, NULL, SGM_LOG_WARNING);
        seen_runs[0] = seen_log[0] = 0;
        try_all(&frees, &made);
        long calls = atomic_load(&allocator_calls), live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK_INT(frees, made);
        if (calls < fail_at)
            break;
    }
    CHECK_INT(made, 3);
}

TEST(an_idle_event_allocates_nothing)
{
    probe_self probes[2] = {PROBE("a", 1), PROBE("b", 2)};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probes[0], .when = sgm_every(1000, SGM_ITERATION)));
    attach(&at, sgm_hook_create(&probe_type, &probes[1]));
    allocator_start(1); /* every allocation fails */
    iterate(&at, 100);
    CHECK_OK(sgm__hooks_event(at.hooks, SGM_EPOCH, 1, 1));
    long calls = atomic_load(&allocator_calls);
    allocator_stop();
    CHECK_INT(calls, 0);
    CHECK_INT(probes[1].runs, 100);
    close_floor(&at);
}
