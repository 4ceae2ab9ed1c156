/* Reporters of time and of means: progress_reporter, running_time_reporter, mean_reporter.
 *
 * They write lines as report.c does. Running times are measured by running_time (compute.c), which the
 * reporter requires. The mean needs a value of every iteration, while the report comes every so many: so a
 * second hook, with the self `tally`, adds up at every iteration, and the reporter requires it.
 *
 * All three may be local. A reporter's self is never copied for workers (it changes nothing, and calls
 * take turns); a tally is, and the worker's reporter finds its own one by sgm__hook_required_self. */
#include "base/base.h"
#include "hooks/hook_text.h"
#include "hooks_ready/reporting.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

/* Sum and number of a value since the last report: the self of the hook that adds up. The hook that
 * reports begins it anew; both run on one thread, the training's or the worker's. */
typedef struct tally {
    char *identifier;
    double sum;
    int64_t count;
} tally;

/* The self of all three reporters. */
typedef struct reporter {
    sgm_value_reporter_options options;
    sgm_time_scale scale; /* of running times */
    char *identifier;     /* of means; NULL: another reporter */
} reporter;

/* The scale is the time step's, which the engine compares. */
static bool is_equal(const void *a, const void *b)
{
    const reporter *left = a, *right = b;
    return sgm__reports_alike(&left->options, &right->options) &&
           (!left->identifier || strcmp(left->identifier, right->identifier) == 0);
}

static void free_reporter(void *state)
{
    reporter *self = state;
    if (self->options.release)
        self->options.release(self->options.user);
    sgm__free(self->identifier);
    sgm__free(self);
}

/* --- epoch and iteration --- */

/* invoke(). The line is the time itself, so `with_time` is taken out of a copy of the options. */
static sgm_status report_progress(void *state, sgm_hook_call *call)
{
    char text[96];
    snprintf(text, sizeof text, "epoch %lld, iteration %lld", (long long)call->epoch,
             (long long)call->iteration);
    reporter plain = *(reporter *)state;
    plain.options.with_time = false;
    return sgm__report(&plain.options, call, text);
}

/* --- running times --- */

/* A result of running_time, in seconds. */
static sgm_status get_time(sgm_hook_call *call, sgm_time_scale scale, const char *what, double *seconds)
{
    char identifier[96];
    snprintf(identifier, sizeof identifier, "shared.time_%s_%s", sgm_time_scale_name(scale), what);
    return sgm_hook_number(call, identifier, seconds);
}

/* invoke(): "12.4 iterations/s, on average 80.6 ms, last 81.2 ms". Before the second event there is no
 * time between two events, and no line. An average of 0 (a clock too coarse) gives a rate of 0, not
 * infinity. */
static sgm_status report_times(void *state, sgm_hook_call *call)
{
    const reporter *self = state;
    double average, last;
    char rate[64], average_text[64], last_text[64], line[256], unit[32];
    sgm_status status = get_time(call, self->scale, "average", &average);
    if (status == SGM_OK)
        status = get_time(call, self->scale, "last", &last);
    if (status == SGM_ERROR_NOT_FOUND)
        return SGM_OK;
    SGM_TRY(status);
    snprintf(unit, sizeof unit, "%ss", sgm_time_scale_name(self->scale));
    snprintf(line, sizeof line, "%s, on average %s, last %s",
             sgm_rate_text(average > 0 ? 1 / average : 0, unit, rate, sizeof rate),
             sgm_duration_text(average, average_text, sizeof average_text),
             sgm_duration_text(last, last_text, sizeof last_text));
    return sgm__report(&self->options, call, line);
}

/* --- means --- */

/* invoke() of the tally, at every iteration. An iteration without a value does not count. */
static sgm_status add_value(void *state, sgm_hook_call *call)
{
    tally *sums = state;
    double value;
    sgm_status status = sgm_hook_number(call, sums->identifier, &value);
    if (status == SGM_ERROR_NOT_FOUND)
        return SGM_OK;
    SGM_TRY(status);
    sums->sum += value;
    sums->count++;
    return SGM_OK;
}

/* invoke(). The identifier is cut at 160 bytes so that the line fits. */
static sgm_status report_mean(void *state, sgm_hook_call *call)
{
    const reporter *self = state;
    tally *sums = sgm__hook_required_self(call);
    char text[256];
    if (sums->count == 0)
        return SGM_OK;
    snprintf(text, sizeof text, "%.160s = %.6g (mean of %lld)", sums->identifier,
             sums->sum / (double)sums->count, (long long)sums->count);
    sums->sum = 0;
    sums->count = 0;
    return sgm__report(&self->options, call, text);
}

/* A tally is equal only to itself: two reporters that shared one would begin each other's sum anew. */
static bool equal_tallies(const void *a, const void *b)
{
    return a == b;
}

/* In checkpoints, so that the first report after a resume has the iterations from before. */
static sgm_status get_tally(void *state, double *numbers, size_t *count)
{
    const tally *sums = state;
    *count = 2;
    if (numbers) {
        numbers[0] = sums->sum;
        numbers[1] = (double)sums->count;
    }
    return SGM_OK;
}

/* 9e15 is below 2^53, up to which a double holds every count. */
static sgm_status set_tally(void *state, const double *numbers, size_t count)
{
    tally *sums = state;
    if (count != 2 || !(numbers[1] >= 0 && numbers[1] < 9e15))
        return sgm_fail(SGM_ERROR_FORMAT, "expected a sum and a number of values");
    sums->sum = numbers[0];
    sums->count = (int64_t)numbers[1];
    return SGM_OK;
}

static void free_tally(void *state)
{
    tally *sums = state;
    sgm__free(sums->identifier);
    sgm__free(sums);
}

/* Begins at 0; NULL: no memory. */
static tally *new_tally(const char *identifier)
{
    tally *sums = sgm__calloc(1, sizeof *sums);
    if (sums && !(sums->identifier = sgm__strdup(identifier))) {
        sgm__free(sums);
        return NULL;
    }
    return sums;
}

/* A tally for a worker, with nothing added up yet. */
static void *copy_tally(const void *state)
{
    return new_tally(((const tally *)state)->identifier);
}

/* --- hooks --- */

/* Only the tally has a state and a copy(): the reporters' selves do not change. A tally is equal to none
 * but itself, since each of two reporters begins its own sum anew when it reports. */
static const sgm_hook_type progress_type = {.api = SGM_HOOK_API,
                                            .name = "progress_reporter",
                                            .doc = "reports epoch and iteration",
                                            .invoke = report_progress,
                                            .equal = is_equal,
                                            .free = free_reporter},
                           times_type = {.api = SGM_HOOK_API,
                                         .name = "running_time_reporter",
                                         .doc = "reports how long iterations or epochs take",
                                         .invoke = report_times,
                                         .equal = is_equal,
                                         .free = free_reporter},
                           mean_type = {.api = SGM_HOOK_API,
                                        .name = "mean_reporter",
                                        .doc = "reports the mean of a value since the last report",
                                        .invoke = report_mean,
                                        .equal = is_equal,
                                        .free = free_reporter},
                           tally_type = {.api = SGM_HOOK_API,
                                         .name = "mean_reporter_sum",
                                         .doc = "adds up what a mean_reporter reports",
                                         .invoke = add_value,
                                         .equal = equal_tallies,
                                         .get_state = get_tally,
                                         .set_state = set_tally,
                                         .free = free_tally,
                                         .copy = copy_tally};

/* The self with the options read; NULL after a failure, with `user` released and the criteria freed. Only
 * options that could not be read at all are left as they are: nothing is known of their members. */
static reporter *make(const sgm_value_reporter_options *given, const char *what)
{
    sgm_value_reporter_options options;
    if (sgm__options_read(&options, sizeof options, given, what) != SGM_OK)
        return NULL;
    reporter *self = sgm__calloc(1, sizeof *self);
    if (!self) {
        if (options.release)
            options.release(options.user);
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    self->options = options;
    return self;
}

/* Hands self, its criteria and the required hook to a new hook. */
static sgm_hook *make_hook(const sgm_hook_type *type, reporter *self, sgm_time_step when, int32_t priority,
                           sgm_hook *required)
{
    sgm_criteria *only_if = self->options.only_if;
    self->options.only_if = NULL;
    return sgm_hook_create(type, self, .when = when, .only_if = only_if, .priority = priority,
                           .requires_hooks = {required});
}

/* For failures before make_hook: the criteria still belong to self. */
static void give_up(reporter *self)
{
    sgm_criteria_free(self->options.only_if);
    free_reporter(self);
}

/* Priority -10000, before all others: lines of other reporters stand behind the time that they belong to. */
sgm_hook *sgm_progress_reporter_with(sgm_time_step when, const sgm_value_reporter_options *options)
{
    reporter *self = make(options, "sgm_progress_reporter");
    return self ? make_hook(&progress_type, self, when, -10000, NULL) : NULL;
}

/* Only iterations and epochs: other events (start, pause) do not follow each other in a rhythm. */
sgm_hook *sgm_running_time_reporter_with(sgm_time_step when, const sgm_value_reporter_options *options)
{
    reporter *self = make(options, "sgm_running_time_reporter");
    if (!self)
        return NULL;
    self->scale = when.scale;
    sgm_hook *times = NULL;
    if (when.scale == SGM_ITERATION || when.scale == SGM_EPOCH)
        times = sgm_running_time(when.scale);
    else
        sgm_fail(SGM_ERROR_ARGUMENT, "running times are reported every so many iterations or epochs");
    if (times)
        return make_hook(&times_type, self, when, 0, times);
    give_up(self);
    return NULL;
}

/* Without `when`: every iteration. Priority -500: after running_time, before reporters. */
static sgm_hook *make_tally(reporter *self, const char *identifier)
{
    if (!identifier || !identifier[0]) {
        sgm_fail(SGM_ERROR_ARGUMENT, "mean reporter: expected the identifier of a number, got none");
        return NULL;
    }
    self->identifier = sgm__strdup(identifier);
    tally *sums = self->identifier ? new_tally(identifier) : NULL;
    if (!sums)
        return NULL;
    const char *const reads[] = {identifier, NULL};
    return sgm_hook_create(&tally_type, sums, .reads = reads, .priority = -500);
}

/* The required hook is due at every iteration, and so covers each time step of the reporter. */
sgm_hook *sgm_mean_reporter_with(const char *identifier, sgm_time_step when,
                                 const sgm_value_reporter_options *options)
{
    reporter *self = make(options, "sgm_mean_reporter");
    sgm_hook *sums = self ? make_tally(self, identifier) : NULL;
    if (sums)
        return make_hook(&mean_type, self, when, 0, sums);
    if (self)
        give_up(self);
    return NULL;
}

/* --- as text --- */

static sgm_hook *parse_progress(const sgm__call *call, sgm_time_step when)
{
    (void)call;
    return sgm_progress_reporter(when, .report = NULL);
}

const sgm__hook_row sgm__progress_reporter_row = {
    .name = "progress_reporter",
    .example = "every 100 iterations progress_reporter",
    .doc = "logs epoch and iteration",
    .when = {SGM_EPOCH, 1, 0},
    .create = parse_progress,
};

#define WITH_TIME                                                                                            \
    {                                                                                                        \
        "with_time", SGM_KIND_BOOLEAN, .doc = "begins with epoch and iteration"                              \
    }

/* Texts report to the log, as all reporters do that were made from one. */
static sgm_hook *parse_times(const sgm__call *call, sgm_time_step when)
{
    return sgm_running_time_reporter(when, .with_time = sgm__call_flag(call, "with_time"));
}

const sgm__hook_row sgm__running_time_reporter_row = {
    .name = "running_time_reporter",
    .example = "running_time_reporter",
    .doc = "logs how many iterations or epochs there are a second, and how long they take",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {WITH_TIME},
    .create = parse_times,
};

static sgm_hook *parse_mean(const sgm__call *call, sgm_time_step when)
{
    return sgm_mean_reporter(sgm__call_text(call, "value"), when,
                             .with_time = sgm__call_flag(call, "with_time"));
}

const sgm__hook_row sgm__mean_reporter_row = {
    .name = "mean_reporter",
    .example = "mean_reporter(optimiser.loss)",
    .doc = "logs the mean of a value over the iterations since the last report",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true, .doc = "optimiser.loss"},
                  WITH_TIME},
    .create = parse_mean,
};
