/* Hooks in the background: order, copies, what is left out, time limits, the end. */
#include "base/allocator.h"
#include "hooks/hooks_internal.h"
#include "hooks_test.h"

#include <time.h>

/* --- a gate that hooks wait at --- */

typedef struct hook_gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting, passes; /* who waits; how many may go on */
} hook_gate;

#define GATE                                                                                                 \
    {                                                                                                        \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0                                            \
    }

static void gate_pass(hook_gate *gate)
{
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (gate->passes == 0)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->passes--;
    gate->waiting--;
    pthread_mutex_unlock(&gate->lock);
}

static void gate_await(hook_gate *gate, int waiting)
{
    pthread_mutex_lock(&gate->lock);
    while (gate->waiting < waiting)
        pthread_cond_wait(&gate->changed, &gate->lock);
    pthread_mutex_unlock(&gate->lock);
}

static void gate_open(hook_gate *gate, int passes)
{
    pthread_mutex_lock(&gate->lock);
    gate->passes += passes;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

static sgm_status wait_at_gate(probe_self *self, sgm_hook_call *call)
{
    if (!call->background)
        return sgm_fail(SGM_ERROR_STATE, "in the foreground");
    gate_pass(self->user);
    return SGM_OK;
}

/* --- order --- */

static sgm_status share_seven(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    return sgm_hook_share(call, "seven", sgm_number_content(7));
}

static sgm_status read_seven(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    double seven;
    SGM_TRY(sgm_hook_number(call, "shared.seven", &seven));
    return sgm_hook_share(call, "square", sgm_number_content(seven * seven));
}

TEST(a_group_runs_in_order_and_sees_its_own_results)
{
    probe_self probes[3] = {PROBE("r", 1, .act = share_seven, .seconds = 0.01),
                            PROBE("d", 2, .act = read_seven), PROBE("e", 3, .act = read_seven)};
    floor_of_test at = open_floor();
    sgm_hook *required = sgm_hook_create(&probe_type, &probes[0], .background = true, .priority = 9);
    attach(&at, sgm_hook_create(&probe_type, &probes[2], .background = true, .priority = 5,
                                .requires_hooks = {sgm_hook_retain(required)}));
    attach(&at, sgm_hook_create(&probe_type, &probes[1], .background = true, .requires_hooks = {required}));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_runs, "r d e");
    CHECK_STR(seen_log, "");
    CHECK_NEAR(shared_number(&at, "square"), 49, 0);
    CHECK_INT(sgm__hooks_skipped(at.hooks), 0);
    close_floor(&at);
}

TEST(independent_groups_run_at_the_same_time)
{
    hook_gate gate = GATE;
    probe_self probes[2] = {PROBE("a", 1, .act = wait_at_gate, .user = &gate),
                            PROBE("b", 2, .act = wait_at_gate, .user = &gate)};
    floor_of_test at = open_floor();
    for (int i = 0; i < 2; i++)
        attach(&at, sgm_hook_create(&probe_type, &probes[i], .background = true));
    iterate(&at, 1);
    gate_await(&gate, 2); /* would last for ever if one waited for the other */
    gate_open(&gate, 2);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(probes[0].runs + probes[1].runs, 2);
    close_floor(&at);
}

/* --- copies --- */

typedef struct reader {
    hook_gate gate;
    double rate, weight, dense;
    sgm_status unnamed;
    char message[256];
} reader;

static sgm_status read_copies(probe_self *self, sgm_hook_call *call)
{
    reader *seen = self->user;
    sgm_content content;
    double values[2];
    gate_pass(&seen->gate);
    SGM_TRY(sgm_hook_number(call, "optimiser.rate", &seen->rate));
    SGM_TRY(sgm_hook_number(call, "layers.*<dense>.units", &seen->dense));
    SGM_TRY(sgm_hook_get(call, "layers.first.weights", &content));
    sgm_status status = sgm_tensor_read(content.as.tensor, values, 2);
    sgm_content_clear(&content);
    seen->weight = values[0];
    double other;
    seen->unnamed = sgm_hook_number(call, "optimiser.other", &other);
    snprintf(seen->message, sizeof seen->message, "%s", sgm_last_error());
    if (sgm_registry_count(call->registry) != 2)
        return sgm_fail(SGM_ERROR_STATE, "the copy has more than optimiser and layers");
    return status;
}

/* optimiser.rate and .other, layers.zeroth (not dense), layers.first (dense, with a tensor). */
static sgm_tensor *fill_registry(sgm_registry *root)
{
    sgm_registry *optimiser = sgm_registry_create(), *layers = sgm_registry_create();
    sgm_registry *zeroth = sgm_registry_create(), *first = sgm_registry_create();
    const double values[] = {1, 2};
    sgm_shape shape = sgm_shape_of(2);
    sgm_tensor *weights = sgm_tensor_create_from(SGM_FLOAT64, &shape, values);
    CHECK_OK(sgm_registry_put(root, "optimiser", optimiser));
    CHECK_OK(sgm_registry_put(root, "layers", layers));
    CHECK_OK(sgm_registry_put(layers, "zeroth", zeroth));
    CHECK_OK(sgm_registry_put(layers, "first", first));
    CHECK_OK(sgm_registry_add_tag(first, "dense"));
    CHECK_OK(sgm_registry_set(optimiser, "rate", sgm_number_content(0.5)));
    CHECK_OK(sgm_registry_set(optimiser, "other", sgm_number_content(9)));
    CHECK_OK(sgm_registry_set(zeroth, "units", sgm_integer_content(3)));
    CHECK_OK(sgm_registry_set(first, "units", sgm_integer_content(4)));
    CHECK_OK(sgm_registry_set(first, "weights", sgm_tensor_content(weights)));
    sgm_registry_free(optimiser);
    sgm_registry_free(layers);
    sgm_registry_free(zeroth);
    sgm_registry_free(first);
    return weights;
}

static void check_copies(const char *const *reads)
{
    reader seen = {.gate = GATE};
    probe_self probe = {.name = "a", .act = read_copies, .user = &seen};
    floor_of_test at = open_floor();
    sgm_tensor *weights = fill_registry(at.registry);
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true, .reads = reads));
    iterate(&at, 1);
    CHECK_OK(sgm_registry_resolve_set(at.registry, "optimiser.rate", sgm_number_content(0.25), NULL, NULL));
    int64_t place = 0;
    sgm_tensor_set(weights, &place, 100);
    gate_open(&seen.gate, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_log, "");
    CHECK_NEAR(seen.rate, 0.5, 0);
    CHECK_NEAR(seen.dense, 4, 0);
    CHECK_NEAR(seen.weight, 1, 0);
    sgm_tensor_free(weights);
    close_floor(&at);
    if (!strchr(reads[0], '.')) /* the whole registry was asked for */
        return;
    CHECK_INT(seen.unnamed, SGM_ERROR_NOT_FOUND);
    CHECK(strstr(seen.message, "name it in .reads") != NULL);
}

TEST(background_hooks_see_copies_of_just_what_they_read)
{
    check_copies((const char *const[]){"optimiser.rate", "layers.*.units", "layers.first.weights", NULL});
    check_copies((const char *const[]){"optimiser", "layers", NULL});
    check_copies((const char *const[]){"optimiser.ra*", "layers.*", "nothing.there", NULL});
}

TEST(what_criteria_ask_for_is_copied_too)
{
    probe_self probe = {.name = "a"};
    floor_of_test at = open_floor();
    CHECK_OK(sgm_registry_set(at.registry, "cost", sgm_number_content(1)));
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true,
                                .only_if = sgm_threshold_criteria("cost", SGM_BELOW, 2, false)));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(probe.runs, 1);
    close_floor(&at);
}

static sgm_status read_nothing(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    return call->registry ? SGM_OK : sgm_fail(SGM_ERROR_STATE, "a call without a registry");
}

/* The n-th allocation from the event on fails; false: there were fewer. */
static bool copy_with_failure(long n)
{
    static const char *const reads[] = {"optimiser", "layers.*<dense>.*", "layers.zeroth.units", NULL};
    probe_self probe = {.name = "a", .act = read_nothing};
    allocator_start(0);
    floor_of_test at = open_floor();
    sgm_tensor *weights = fill_registry(at.registry);
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true, .reads = reads));
    long before = atomic_load(&allocator_calls);
    atomic_store(&allocator_fail_at, before + n);
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    bool was_reached = atomic_load(&allocator_calls) >= before + n;
    atomic_store(&allocator_fail_at, 0);
    CHECK_INT(probe.runs, was_reached ? 0 : 1);
    CHECK_INT(sgm__hooks_count(at.hooks), was_reached ? 0 : 1);
    CHECK(!was_reached || strstr(seen_log, "copying what background hooks read: cannot allocate") != NULL);
    sgm_tensor_free(weights);
    close_floor(&at);
    CHECK_INT(probe.frees, 1);
    CHECK_INT(atomic_load(&allocator_live), 0);
    allocator_stop();
    return was_reached;
}

TEST(a_copy_that_cannot_be_made_takes_its_hooks_off)
{
    long n = 1;
    while (copy_with_failure(n))
        n++;
    CHECK(n > 10);
}

/* --- copies of hooks --- */

typedef struct copied_self {
    hook_gate gate;
    bool runs;          /* invoke() is at work; guarded by the hook's turn alone */
    atomic_int amid_it; /* copies that were made meanwhile */
} copied_self;

static sgm_status run_slowly(void *self, sgm_hook_call *call)
{
    copied_self *own = self;
    (void)call;
    own->runs = true;
    gate_pass(&own->gate);
    own->runs = false;
    return SGM_OK;
}

static void *copy_self(const void *self)
{
    copied_self *own = (copied_self *)(uintptr_t)self;
    atomic_fetch_add(&own->amid_it, own->runs);
    return own;
}

static void *copy_hook(void *hook)
{
    sgm_hook *copy = sgm__hook_copy(hook);
    CHECK(copy != NULL);
    sgm_hook_free(copy);
    return NULL;
}

TEST(a_hook_is_not_copied_while_it_runs)
{
    static const sgm_hook_type type = {
        .api = SGM_HOOK_API, .name = "slow", .invoke = run_slowly, .copy = copy_self};
    copied_self self = {.gate = GATE};
    floor_of_test at = open_floor();
    sgm_hook *hook = sgm_hook_create(&type, &self, .background = true,
                                     .only_if = sgm_extremum_criteria("optimiser.loss", SGM_MINIMUM));
    pthread_t thread;
    sgm_registry *optimiser = sgm_registry_create();
    CHECK_OK(sgm_registry_set(optimiser, "loss", sgm_number_content(1)));
    CHECK_OK(sgm_registry_put(at.registry, "optimiser", optimiser));
    sgm_registry_free(optimiser);
    CHECK_OK(sgm__hooks_attach(at.hooks, hook, NULL));
    iterate(&at, 1);
    gate_await(&self.gate, 1);
    CHECK_INT(pthread_create(&thread, NULL, copy_hook, hook), 0);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    gate_open(&self.gate, 1);
    pthread_join(thread, NULL);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(atomic_load(&self.amid_it), 0);
    sgm_hook_free(hook);
    close_floor(&at);
}

/* --- what is left out --- */

TEST(events_while_a_group_still_runs_are_left_out_and_counted)
{
    hook_gate gate = GATE;
    probe_self probe = {.name = "a", .act = wait_at_gate, .user = &gate};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true));
    iterate(&at, 1);
    gate_await(&gate, 1);
    iterate(&at, 3);
    CHECK_INT(sgm__hooks_skipped(at.hooks), 3);
    gate_open(&gate, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(probe.runs, 1);
    gate_open(&gate, 1);
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(probe.runs, 2);
    CHECK_INT(sgm__hooks_skipped(at.hooks), 3);
    close_floor(&at);
}

TEST(a_hook_that_joins_a_busy_group_waits_for_its_turn)
{
    hook_gate gate = GATE;
    probe_self probes[2] = {PROBE("r", 1, .act = wait_at_gate, .user = &gate), PROBE("d", 2)};
    floor_of_test at = open_floor();
    sgm_hook *required = sgm_hook_create(&probe_type, &probes[0], .background = true);
    CHECK_OK(sgm__hooks_attach(at.hooks, required, NULL));
    iterate(&at, 1);
    gate_await(&gate, 1);
    attach(&at, sgm_hook_create(&probe_type, &probes[1], .background = true, .requires_hooks = {required}));
    iterate(&at, 1);
    CHECK_INT(sgm__hooks_skipped(at.hooks), 2);
    gate_open(&gate, 2);
    sgm__hooks_wait(at.hooks);
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_runs, "r r d");
    close_floor(&at);
}

/* --- time limits --- */

static sgm_status note_place(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    seen_append(seen_runs, sizeof seen_runs, call->background ? "behind" : "in-front");
    return SGM_OK;
}

TEST(a_hook_over_its_time_limit_goes_to_the_background_with_its_dependents)
{
    probe_self probes[3] = {PROBE("r", 1, .act = note_place),
                            PROBE("slow", 2, .act = note_place, .seconds = 0.02),
                            PROBE("d", 3, .act = note_place)};
    floor_of_test at = open_floor();
    sgm_hook *required = sgm_hook_create(&probe_type, &probes[0]);
    sgm_hook *slow =
        sgm_hook_create(&probe_type, &probes[1], .time_limit = 0.001, .requires_hooks = {required});
    attach(&at, sgm_hook_create(&probe_type, &probes[2], .requires_hooks = {slow}));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_runs, "r in-front slow in-front d behind");
    CHECK(strstr(seen_log, "trainer 'mnist': hook 'probe' took ") != NULL);
    CHECK(strstr(seen_log, "its limit is 1.0 ms: from now on it runs in the background") != NULL);
    seen_clear();
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_runs, "r in-front slow behind d behind");
    CHECK_STR(seen_log, "");
    close_floor(&at);
}

TEST(a_hook_within_its_time_limit_stays)
{
    probe_self probe = {.name = "a", .act = note_place};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe, .time_limit = 10));
    iterate(&at, 2);
    CHECK_STR(seen_runs, "a in-front a in-front");
    close_floor(&at);
}

/* --- failures and the end --- */

TEST(a_background_hook_that_fails_is_taken_off)
{
    probe_self probes[2] = {PROBE("r", 1, .status = SGM_ERROR_FILE), PROBE("d", 2)};
    floor_of_test at = open_floor();
    attach(&at,
           sgm_hook_create(&probe_type, &probes[1], .background = true,
                           .requires_hooks = {sgm_hook_create(&probe_type, &probes[0], .background = true)}));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_STR(seen_runs, "r");
    CHECK(strstr(seen_log, "failed and is taken off, with 'probe', which requires it: r is broken") != NULL);
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    CHECK_INT(probes[0].frees, 1);
    close_floor(&at);
}

TEST(a_background_failure_may_stop_the_run_at_the_next_event)
{
    probe_self probe = {.name = "a", .status = SGM_ERROR_FILE};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true, .failure = SGM_HOOK_STOP));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(sgm__hooks_event(at.hooks, SGM_EPOCH, 1, 1), SGM_ERROR_FILE);
    CHECK_STR(sgm_last_error(), "hook 'probe': a is broken (at epoch 0, iteration 1)");
    CHECK_OK(sgm__hooks_event(at.hooks, SGM_EPOCH, 1, 1)); /* it is told once */
    close_floor(&at);
}

TEST(a_hook_that_died_or_was_detached_while_it_ran_is_freed_afterwards)
{
    hook_gate gate = GATE;
    probe_self probes[2] = {PROBE("once", 1, .act = wait_at_gate, .user = &gate),
                            PROBE("off", 2, .act = wait_at_gate, .user = &gate)};
    floor_of_test at = open_floor();
    attach(&at,
           sgm_hook_create(&probe_type, &probes[0], .background = true, .when = sgm_after(1, SGM_ITERATION)));
    sgm_hook *hook = sgm_hook_create(&probe_type, &probes[1], .background = true);
    CHECK_OK(sgm__hooks_attach(at.hooks, hook, NULL));
    iterate(&at, 1);
    gate_await(&gate, 2);
    CHECK_OK(sgm__hooks_detach(at.hooks, hook));
    sgm_hook_free(hook);
    CHECK_INT(sgm__hooks_count(at.hooks), 0);
    CHECK_INT(probes[0].frees + probes[1].frees, 0);
    gate_open(&gate, 2);
    sgm__hooks_wait(at.hooks);
    CHECK_INT(probes[0].frees, 0); /* a reset would bring it back */
    CHECK_INT(probes[1].frees, 1);
    CHECK_INT(probes[0].runs + probes[1].runs, 2);
    close_floor(&at);
    CHECK_INT(probes[0].frees, 1);
}

static sgm_status finish_late(probe_self *self, sgm_hook_call *call)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    self->state = 1;
    return sgm_hook_request_stop(call, "late");
}

TEST(free_and_states_wait_for_the_background)
{
    double numbers[64];
    probe_self probe = {.name = "a", .act = finish_late};
    floor_of_test at = open_floor();
    attach(&at, sgm_hook_create(&probe_type, &probe, .background = true));
    iterate(&at, 1);
    size_t count = save_state(at.hooks, numbers);
    CHECK_NEAR(numbers[count - 1], 1, 0);
    probe.state = 0;
    iterate(&at, 1);
    close_floor(&at);
    CHECK_NEAR(probe.state, 1, 0);
    CHECK_INT(probe.frees, 1);
}

/* --- many threads --- */

#define ROUNDS 200

typedef struct crowd {
    floor_of_test *at;
    int number;
} crowd;

static sgm_status share_iteration(probe_self *self, sgm_hook_call *call)
{
    (void)self;
    double rate;
    SGM_TRY(sgm_hook_number(call, "rate", &rate));
    return sgm_hook_share(call, "iteration", sgm_integer_content(call->iteration));
}

static void *attach_and_detach(void *argument)
{
    static const char *const reads[] = {"rate", NULL};
    const crowd *self = argument;
    for (int i = 0; i < ROUNDS; i++) {
        probe_self probes[2] = {PROBE("x", 100 + self->number, .act = share_iteration),
                                PROBE("y", 200 + self->number, .act = share_iteration)};
        bool background = i % 2;
        sgm_hook *required =
            sgm_hook_create(&probe_type, &probes[0], .reads = reads, .background = background);
        sgm_hook *hook = sgm_hook_create(&probe_type, &probes[1], .reads = reads, .background = background,
                                         .requires_hooks = {required});
        sgm__hooks_attach(self->at->hooks, hook, NULL);
        sched_yield();
        if (sgm__hooks_detach(self->at->hooks, hook) != SGM_OK)
            TEST_FAIL("%s", sgm_last_error());
        sgm_hook_free(hook);
        sgm__hooks_wait(self->at->hooks); /* before the probes go */
        while (atomic_load(&probes[0].frees) == 0 || atomic_load(&probes[1].frees) == 0)
            sched_yield();
    }
    return NULL;
}

TEST(any_thread_may_attach_and_detach_while_events_run)
{
    static const char *const reads[] = {"rate", NULL};
    probe_self probe = {.name = "steady", .act = share_iteration};
    floor_of_test at = open_floor();
    crowd crowds[2] = {{&at, 0}, {&at, 1}};
    pthread_t threads[2];
    CHECK_OK(sgm_registry_set(at.registry, "rate", sgm_number_content(1)));
    attach(&at, sgm_hook_create(&probe_type, &probe, .reads = reads, .background = true));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, attach_and_detach, &crowds[i]);
    for (int i = 0; i < 20 * ROUNDS; i++)
        if (sgm__hooks_event(at.hooks, SGM_ITERATION, 0, i) != SGM_OK)
            TEST_FAIL("%s", sgm_last_error());
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_STR(seen_log, "");
    CHECK_INT(sgm__hooks_count(at.hooks), 1);
    CHECK_INT(probe.runs + sgm__hooks_skipped(at.hooks) > 0, 1);
    close_floor(&at);
}
