/* Examples and iterations a second, and how much of the time the training waited for data (throughput).
 *
 * The hook runs at every iteration and keeps the newest `span` of them in a ring; every `every` iterations
 * it leaves the rates over the ring as shared.time_throughput_*. How long an iteration or an epoch takes
 * is compute.c (running_time). Times are the trainer's running time, so a pause does not count, and time
 * spent in hooks and validation does. A worker of an operator has a ring of its own, filled with its part
 * of each minibatch. */
#include "hooks/hook_text.h"
#include "trainer/view.h"

#include <sigma/hooks.h>
#include <stdio.h>

#define DEFAULT_SPAN 100
#define MAXIMUM_SPAN 10000
#define DEFAULT_EVERY 10
#define LONG_WAIT 0.1 /* share of an iteration's time from which a wait for data is counted */

/* What one iteration took, in seconds, of which `waited` went by until the data gave a minibatch. */
typedef struct lap {
    double seconds, waited;
    int64_t examples;
} lap;

/* The self. It is not part of checkpoints: rates from before a break say nothing about the time after it. */
typedef struct throughput {
    int64_t span, every; /* iterations in the ring; iterations between two results */
    int64_t count, next; /* laps in the ring; where the next one goes */
    int64_t iterations;  /* since the last result */
    bool runs;           /* `running_time` and `waited` are those of the last iteration */
    double running_time, waited;
    lap laps[];
} throughput;

/* As shared.time_throughput_WHAT. */
static sgm_status share(sgm_hook_call *call, const char *what, double value)
{
    char name[64];
    snprintf(name, sizeof name, "time_throughput_%s", what);
    return sgm_hook_share(call, name, sgm_number_content(value));
}

/* The rates over the ring: sums of examples and iterations over the sum of seconds, not means of rates,
 * which short iterations would dominate. */
static sgm_status share_all(const throughput *self, sgm_hook_call *call)
{
    double seconds = 0, waited = 0;
    int64_t examples = 0, long_waits = 0;
    for (int64_t i = 0; i < self->count; i++) {
        const lap *each = &self->laps[i];
        seconds += each->seconds;
        waited += each->waited;
        examples += each->examples;
        long_waits += each->waited > LONG_WAIT * each->seconds;
    }
    if (seconds <= 0)
        return SGM_OK;
    SGM_TRY(share(call, "examples", (double)examples / seconds));
    SGM_TRY(share(call, "iterations", (double)self->count / seconds));
    SGM_TRY(share(call, "waiting", waited / seconds));
    return share(call, "waited", (double)long_waits);
}

/* invoke(). An iteration's times are differences of the trainer's sums. The first iteration only notes the
 * sums; so does one whose running time is smaller than before, after a reset. */
static sgm_status measure(void *state, sgm_hook_call *call)
{
    throughput *self = state;
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (!trainer)
        return sgm_fail(SGM_ERROR_STATE, "throughput is measured of a trainer, in the foreground");
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    lap newest = {view.seconds - self->running_time, view.waited - self->waited, view.examples};
    bool first = !self->runs || newest.seconds <= 0;
    self->runs = true;
    self->running_time = view.seconds;
    self->waited = view.waited;
    if (first)
        return SGM_OK;
    self->laps[self->next] = newest;
    self->next = (self->next + 1) % self->span;
    if (self->count < self->span)
        self->count++;
    if (++self->iterations < self->every)
        return SGM_OK;
    self->iterations = 0;
    return share_all(self, call);
}

/* What has been measured is not compared. */
static bool is_equal(const void *a, const void *b)
{
    const throughput *left = a, *right = b;
    return left->span == right->span && left->every == right->every;
}

/* A self for a worker, with an empty ring. */
static void *copy_throughput(const void *state)
{
    const throughput *from = state;
    throughput *self = sgm__calloc(1, sizeof *self + (size_t)from->span * sizeof(lap));
    if (!self)
        return NULL;
    self->span = from->span;
    self->every = from->every;
    return self;
}

/* Local or not: with copy() each worker measures itself; without `local` the trainer's iterations are
 * measured. */
static const sgm_hook_type throughput_type = {.api = SGM_HOOK_API,
                                              .name = "throughput",
                                              .doc = "examples and iterations a second",
                                              .invoke = measure,
                                              .equal = is_equal,
                                              .free = sgm__free,
                                              .copy = copy_throughput};

/* Priority -1000: before reporters. The step is every iteration; `every` is counted in measure(). */
sgm_hook *sgm_throughput_with(const sgm_throughput_options *given)
{
    sgm_throughput_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_throughput") != SGM_OK)
        return NULL;
    if (options.span == 0)
        options.span = DEFAULT_SPAN;
    if (options.every == 0)
        options.every = DEFAULT_EVERY;
    if (options.span < 1 || options.span > MAXIMUM_SPAN || options.every < 1) {
        sgm_fail(
            SGM_ERROR_ARGUMENT,
            "throughput: expected a .span of 1 to %d iterations and .every of 1 or more, got %lld and %lld",
            MAXIMUM_SPAN, (long long)options.span, (long long)options.every);
        return NULL;
    }
    throughput *self = sgm__calloc(1, sizeof *self + (size_t)options.span * sizeof(lap));
    if (!self)
        return NULL;
    self->span = options.span;
    self->every = options.every;
    return sgm_hook_create(&throughput_type, self, .priority = -1000);
}

/* --- as text --- */

/* The time step of the text becomes `every`: "every 50 iterations throughput". */
static sgm_hook *parse_throughput(const sgm__call *call, sgm_time_step when)
{
    if (when.scale != SGM_ITERATION || when.live > 0) {
        sgm__call_fail(call, NULL, "results come every few iterations");
        return NULL;
    }
    return sgm_throughput(.span = sgm__call_integer(call, "span"), .every = when.interval);
}

const sgm__hook_row sgm__throughput_row = {
    .name = "throughput",
    .example = "throughput",
    .doc = "examples and iterations a second, and the share of the time that waited for data, as "
           "shared.time_throughput_examples, _iterations, _waiting and _waited",
    .when = {SGM_ITERATION, DEFAULT_EVERY, 0},
    .arguments = {{"span", SGM_KIND_INTEGER, .default_value = 100, .doc = "the newest so many iterations",
                   .minimum = 1, .maximum = MAXIMUM_SPAN}},
    .create = parse_throughput,
};
