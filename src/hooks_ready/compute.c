/* Results for other hooks: sums and means of a value (accumulator), and running times (running_time).
 *
 * They do not report; reporters.c and report.c write what these leave as shared.NAME (sgm_hook_share).
 * Both run early in an event (priorities -500 and -1000), so that reporters and rules of the same event
 * see this event's result. Both may run once for each worker of an operator; the functions copy() then
 * give each worker sums and times of its own. */
#include "hooks/hook_text.h"

#include <math.h>
#include <stdio.h>

/* --- sums and means --- */

/* Sum and number of the values since it began anew. `mean`, `each_epoch` and `reset_every` are the
 * options. */
typedef struct accumulator {
    char *identifier, *name;
    bool mean, each_epoch;
    int64_t reset_every; /* values; 0: never */
    double sum;
    int64_t count, epoch; /* the epoch of the newest value */
} accumulator;

/* invoke(). The sum begins anew before a value is added, not after: so the result of a full span stays
 * readable until the next value. While the identifier has no value, nothing is added and nothing shared. */
static sgm_status accumulate(void *state, sgm_hook_call *call)
{
    accumulator *self = state;
    double value;
    sgm_status status = sgm_hook_number(call, self->identifier, &value);
    if (status == SGM_ERROR_NOT_FOUND)
        return SGM_OK;
    SGM_TRY(status);
    bool is_full = self->reset_every > 0 && self->count >= self->reset_every;
    if (is_full || (self->each_epoch && self->epoch != call->epoch)) {
        self->sum = 0;
        self->count = 0;
    }
    self->epoch = call->epoch;
    self->sum += value;
    self->count++;
    double result = self->mean ? self->sum / (double)self->count : self->sum;
    return sgm_hook_share(call, self->name, sgm_number_content(result));
}

/* Equal hooks are attached only once, so everything that changes the result or its name is compared. What
 * was added up so far is not: it differs between a hook that runs and its equal that is about to be
 * attached. */
static bool equal_accumulators(const void *a, const void *b)
{
    const accumulator *left = a, *right = b;
    return strcmp(left->identifier, right->identifier) == 0 && strcmp(left->name, right->name) == 0 &&
           left->mean == right->mean && left->each_epoch == right->each_epoch &&
           left->reset_every == right->reset_every;
}

/* State in a checkpoint: sum, number of values, epoch of the newest. Epoch and number are exact as doubles
 * up to 2^53. */
static sgm_status get_accumulator(void *state, double *numbers, size_t *count)
{
    const accumulator *self = state;
    *count = 3;
    if (!numbers)
        return SGM_OK;
    numbers[0] = self->sum;
    numbers[1] = (double)self->count;
    numbers[2] = (double)self->epoch;
    return SGM_OK;
}

/* Whether a number from a checkpoint can be a count: whole, and exact as a double (up to 2^53). */
static bool is_count(double number)
{
    return number >= 0 && number <= 9007199254740992.0 && number == floor(number);
}

/* The state of a checkpoint: refused as a whole if it cannot come from get_accumulator. */
static sgm_status set_accumulator(void *state, const double *numbers, size_t count)
{
    accumulator *self = state;
    if (count != 3 || !is_count(numbers[1]) || !is_count(numbers[2]))
        return sgm_fail(SGM_ERROR_FORMAT, "expected a sum, a number of values and an epoch");
    self->sum = numbers[0];
    self->count = (int64_t)numbers[1];
    self->epoch = (int64_t)numbers[2];
    return SGM_OK;
}

static void free_accumulator(void *state)
{
    accumulator *self = state;
    sgm__free(self->identifier);
    sgm__free(self->name);
    sgm__free(self);
}

/* A self for a worker: the same options, with nothing added up yet. */
static void *copy_accumulator(const void *state)
{
    const accumulator *from = state;
    accumulator *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->identifier = sgm__strdup(from->identifier);
    self->name = sgm__strdup(from->name);
    self->mean = from->mean;
    self->each_epoch = from->each_epoch;
    self->reset_every = from->reset_every;
    if (self->identifier && self->name)
        return self;
    free_accumulator(self);
    return NULL;
}

/* It may be local: nothing in it touches the trainer, so copy() is all that a worker needs. */
static const sgm_hook_type accumulator_type = {.api = SGM_HOOK_API,
                                               .name = "accumulator",
                                               .doc = "sum or mean of a value so far",
                                               .invoke = accumulate,
                                               .equal = equal_accumulators,
                                               .get_state = get_accumulator,
                                               .set_state = set_accumulator,
                                               .free = free_accumulator,
                                               .copy = copy_accumulator};

/* The default name of the result: "training.loss" becomes "training_loss_mean", as
 * "shared.training.loss_mean" could not be told from a registry inside of shared. */
static char *result_name(const char *identifier, bool mean)
{
    char *name = sgm__format("%s_%s", identifier, mean ? "mean" : "sum");
    for (char *c = name; c && *c; c++)
        if (!(sgm__is_alphanumeric(*c) || *c == '-'))
            *c = '_';
    return name;
}

/* Refuses before it allocates; from sgm_hook_create on the hook owns self, also when that fails. */
sgm_hook *sgm_accumulator_with(const char *identifier, const sgm_accumulator_options *given)
{
    sgm_accumulator_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_accumulator") != SGM_OK)
        return NULL;
    if (!identifier || !identifier[0] || options.reset_every < 0) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "an accumulator needs an identifier, and .reset_every of 0 or more; got "
                 "'%s' and %lld",
                 identifier ? identifier : "", (long long)options.reset_every);
        return NULL;
    }
    accumulator *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->identifier = sgm__strdup(identifier);
    self->name = options.name ? sgm__strdup(options.name) : result_name(identifier, options.mean);
    self->mean = options.mean;
    self->each_epoch = options.each_epoch;
    self->reset_every = options.reset_every;
    if (!self->identifier || !self->name) {
        free_accumulator(self);
        return NULL;
    }
    const char *const reads[] = {identifier, NULL};
    return sgm_hook_create(&accumulator_type, self, .when = options.when, .reads = reads, .priority = -500);
}

static sgm_hook *parse_accumulator(const sgm__call *call, sgm_time_step when)
{
    return sgm_accumulator(sgm__call_text(call, "value"), .when = when, .name = sgm__call_text(call, "name"),
                           .mean = sgm__call_flag(call, "mean"),
                           .reset_every = sgm__call_integer(call, "reset_every"),
                           .each_epoch = sgm__call_flag(call, "each_epoch"));
}

/* The flags have defaults as text, so that `sigma info --hooks` shows them. */
const sgm__hook_row sgm__accumulator_row = {
    .name = "accumulator",
    .example = "accumulator(training.loss, mean=true)",
    .doc = "sum or mean of a value so far, as shared.NAME",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true, .doc = "what is added up"},
                  {"name", SGM_KIND_TEXT, .doc = "if not given: as in training_loss_sum"},
                  {"mean", SGM_KIND_BOOLEAN, .doc = "instead of the sum"},
                  {"reset_every", SGM__KIND_COUNT, .doc = "begins anew after so many values"},
                  {"each_epoch", SGM_KIND_BOOLEAN, .doc = "begins anew in each epoch"}},
    .create = parse_accumulator,
};

/* --- running times --- */

#define MAXIMUM_TIMES 64 /* the ring lies in the struct, and is sorted by insertion */

/* The newest `span` times between two events of a scale, in seconds, as a ring. Minimum and maximum are
 * those of all times since the hook was made. Nothing of it goes into checkpoints: times of another
 * machine, or from before a break, would mislead. */
typedef struct stopwatch {
    sgm_time_scale scale;
    int32_t span, next; /* size of the ring; where the next time goes */
    bool runs;          /* `start` is set */
    double start;       /* running time at the newest event */
    int32_t count;      /* of `times` */
    double minimum, maximum, times[MAXIMUM_TIMES];
} stopwatch;

/* Mean of the times without the floor(sqrt(count / 2)) ones that are farthest from the median, a trimmed
 * mean: the first iteration of a run takes longer, and so does one that saved a checkpoint. The times are
 * sorted, so the farthest one is always at one of the two ends; `first` and `count` bound what is left. */
static double usual_mean(const stopwatch *self)
{
    double sorted[MAXIMUM_TIMES] = {0};
    int32_t first = 0, count = self->count;
    for (int32_t i = 0; i < count; i++) {
        int32_t at = i;
        for (; at > 0 && sorted[at - 1] > self->times[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = self->times[i];
    }
    double median = sorted[count / 2], sum = 0;
    for (int32_t dropped = (int32_t)sqrt(count / 2.0); dropped > 0 && count > 1; dropped--, count--)
        if (median - sorted[first] > sorted[first + count - 1] - median)
            first++;
    for (int32_t i = first; i < first + count; i++)
        sum += sorted[i];
    return sum / count;
}

/* As shared.time_SCALE_WHAT, "shared.time_epoch_average". */
static sgm_status share_time(const stopwatch *self, sgm_hook_call *call, const char *what, double seconds)
{
    char name[64];
    snprintf(name, sizeof name, "time_%s_%s", sgm_time_scale_name(self->scale), what);
    return sgm_hook_share(call, name, sgm_number_content(seconds));
}

/* invoke(). The running time of the registry stands still in a pause; without one (a hook of an engine
 * that has no trainer) the clock counts. The first event only starts the watch. So does one whose running
 * time is smaller than before: a reset sets the running time back. */
static sgm_status measure(void *state, sgm_hook_call *call)
{
    stopwatch *self = state;
    double now;
    if (sgm_hook_number(call, "running_time", &now) != SGM_OK)
        now = sgm__now();
    double seconds = now - self->start;
    bool is_first = !self->runs || seconds < 0; /* a reset sets the running time back */
    self->start = now;
    self->runs = true;
    if (is_first)
        return SGM_OK;
    self->times[self->next] = seconds;
    self->next = (self->next + 1) % self->span;
    self->minimum = self->count == 0 || seconds < self->minimum ? seconds : self->minimum;
    self->maximum = self->count == 0 || seconds > self->maximum ? seconds : self->maximum;
    if (self->count < self->span)
        self->count++;
    SGM_TRY(share_time(self, call, "last", seconds));
    SGM_TRY(share_time(self, call, "average", usual_mean(self)));
    SGM_TRY(share_time(self, call, "min", self->minimum));
    return share_time(self, call, "max", self->maximum);
}

/* The engine compares the time steps, and with them the scales; the ring's size is left. */
static bool equal_stopwatches(const void *a, const void *b)
{
    return ((const stopwatch *)a)->span == ((const stopwatch *)b)->span;
}

/* A self for a worker, whose watch has not been started: the times of workers differ. */
static void *copy_stopwatch(const void *state)
{
    const stopwatch *from = state;
    stopwatch *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->scale = from->scale;
    self->span = from->span;
    return self;
}

/* Without get_state(): a resumed run measures anew. */
static const sgm_hook_type stopwatch_type = {.api = SGM_HOOK_API,
                                             .name = "running_time",
                                             .doc = "seconds between events of a scale",
                                             .invoke = measure,
                                             .equal = equal_stopwatches,
                                             .free = sgm__free,
                                             .copy = copy_stopwatch};

/* Priority -1000, before accumulators and reporters, which may read the times. */
sgm_hook *sgm_running_time_with(sgm_time_scale scale, const sgm_running_time_options *given)
{
    static const char *const reads[] = {"running_time", NULL};
    sgm_running_time_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_running_time") != SGM_OK)
        return NULL;
    if (options.span == 0)
        options.span = 4;
    if (options.span < 1 || options.span > MAXIMUM_TIMES) {
        sgm_fail(SGM_ERROR_ARGUMENT, "running time: .span is %d, expected 1 to %d", (int)options.span,
                 MAXIMUM_TIMES);
        return NULL;
    }
    stopwatch *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->scale = scale;
    self->span = options.span;
    return sgm_hook_create(&stopwatch_type, self, .when = sgm_every(1, scale), .reads = reads,
                           .priority = -1000);
}

/* "every 10 iterations running_time" would measure the wrong thing, so it is refused instead of changed. */
static sgm_hook *parse_running_time(const sgm__call *call, sgm_time_step when)
{
    int64_t span = sgm__call_integer(call, "span");
    if (when.interval > 1 || when.live != 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "running_time measures every event: every iteration, or every epoch");
        return NULL;
    }
    return sgm_running_time(when.scale, .span = (int32_t)span);
}

/* One row for both scales: the time step of the text chooses, "every epoch running_time". */
const sgm__hook_row sgm__running_time_row = {
    .name = "running_time",
    .example = "running_time(16)",
    .doc = "seconds between events, as shared.time_iteration_last, _average, _min and _max",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"span", SGM_KIND_INTEGER, .default_value = 4,
                   .doc = "the average is of so many times, without the most unusual ones", .minimum = 1,
                   .maximum = MAXIMUM_TIMES}},
    .create = parse_running_time,
};
