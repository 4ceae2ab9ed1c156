/* Which input the network takes for a class: descent on the input of a inference copy. */
#include "hooks_ready/target_maximiser.h"
#include "hooks/hook_text.h"
#include "infer/inference_copy.h"
#include "trainer/view.h"

#include <math.h>
#include <sigma/diagnostics.h>
#include <stdio.h>

#define MAXIMUM_STEPS 1000000
#define MAXIMUM_ATTEMPTS 1000

typedef struct target {
    int64_t wanted;
    char *name;
    sgm_target_options options; /* `targets` is retained */
} target;

/* One search. */
typedef struct descent {
    const target *self;
    const atomic_bool *ending; /* NULL: nobody ends it */
    sgm__inference_copy frozen;
    sgm_program *program;
    const char *input, *wanted;     /* names */
    sgm_tensor *values, *gradients; /* of the input */
    double *x, *g, *m, *v;          /* the same, and Adam's memory of them */
    size_t count;
    double cost, best_cost;
    double *best;
    bool found;
} descent;

/* --- the program --- */

static sgm_tensor *parameter_of(void *trainer, const char *name)
{
    return sgm_session_get(sgm__trainer_look(trainer).session, name);
}

static sgm_status record(descent *d, sgm_trainer *trainer)
{
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    char *text = sgm_network_text(view.network);
    if (!text)
        return sgm_last_status();
    sgm_status status = sgm__inference_copy_record(&d->frozen, view.handler, text, 1, view.precision, true);
    sgm_string_free(text);
    SGM_TRY(status);
    const sgm_recording *recording = &d->frozen.recording;
    if (recording->input_count != 1 || recording->target_count != 1 || !sgm_value_is(recording->total))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network has %zu inputs and %zu targets, expected one of each",
                        recording->input_count, recording->target_count);
    d->input = recording->inputs[0].name;
    d->wanted = recording->targets[0].name;
    sgm_value gradient;
    SGM_TRY(sgm_gradients(d->frozen.graph, recording->total, &recording->inputs[0].value, 1, &gradient));
    sgm_output(d->frozen.graph, "target.gradient", gradient);
    sgm_output(d->frozen.graph, "target.cost", recording->total);
    SGM_TRY(sgm_graph_status(d->frozen.graph));
    SGM_TRY(sgm__inference_copy_fill(&d->frozen, parameter_of, trainer));
    d->program = sgm__inference_copy_prepare(&d->frozen);
    return d->program ? SGM_OK : sgm_last_status();
}

/* The wanted class as one of many, or the targets that were given. */
static sgm_status feed_wanted(descent *d)
{
    if (d->frozen.recording.targets == NULL)
        return sgm_fail(SGM_ERROR_STATE, "a network without targets cannot be asked for one");
    sgm_type type = sgm_value_type(d->frozen.graph, d->frozen.recording.targets[0].value);
    int64_t classes = sgm_shape_elements(&type.shape);
    const sgm_tensor *given = d->self->options.targets;
    if (given ? sgm_shape_elements(sgm_tensor_shape(given)) != classes : d->self->wanted >= classes)
        return sgm_fail(SGM_ERROR_SHAPE, "an example's targets have %lld elements: %s", (long long)classes,
                        given ? "those that are wanted have another number" : "there is no such class");
    sgm_tensor *wanted = sgm_tensor_create(type.dtype, &type.shape);
    double *values = sgm__calloc((size_t)classes, sizeof(double));
    sgm_status status = wanted && values ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && given)
        status = sgm_tensor_read(given, values, (size_t)classes);
    else if (status == SGM_OK)
        values[d->self->wanted] = 1;
    if (status == SGM_OK)
        status = sgm_tensor_write(wanted, values, (size_t)classes);
    if (status == SGM_OK)
        status = sgm_session_feed(d->frozen.session, d->program, d->wanted, wanted);
    sgm__free(values);
    sgm_tensor_free(wanted);
    return status;
}

static sgm_status allocate(descent *d)
{
    sgm_type type = sgm_value_type(d->frozen.graph, d->frozen.recording.inputs[0].value);
    d->count = (size_t)sgm_shape_elements(&type.shape);
    d->values = sgm_tensor_create(type.dtype, &type.shape);
    d->gradients = sgm_tensor_create(type.dtype, &type.shape);
    d->x = sgm__calloc(d->count, 5 * sizeof(double));
    if (!d->values || !d->gradients || !d->x)
        return SGM_ERROR_MEMORY;
    d->g = d->x + d->count;
    d->m = d->g + d->count;
    d->v = d->m + d->count;
    d->best = d->v + d->count;
    d->best_cost = INFINITY;
    return SGM_OK;
}

/* --- descent --- */

static sgm_status look(descent *d)
{
    sgm_session *session = d->frozen.session;
    SGM_TRY(sgm_tensor_write(d->values, d->x, d->count));
    SGM_TRY(sgm_session_feed(session, d->program, d->input, d->values));
    SGM_TRY(sgm_session_run(session, d->program));
    SGM_TRY(sgm_session_read_number(session, d->program, "target.cost", &d->cost));
    SGM_TRY(sgm_session_read(session, d->program, "target.gradient", d->gradients));
    return sgm_tensor_read(d->gradients, d->g, d->count);
}

static void step_down(descent *d, int64_t step)
{
    double rate = d->self->options.rate * sqrt(1 - pow(0.999, (double)step)) / (1 - pow(0.9, (double)step));
    for (size_t i = 0; i < d->count; i++) {
        d->m[i] = 0.9 * d->m[i] + 0.1 * d->g[i];
        d->v[i] = 0.999 * d->v[i] + 0.001 * d->g[i] * d->g[i];
        d->x[i] -= rate * d->m[i] / (sqrt(d->v[i]) + 1e-8);
    }
}

static sgm_status attempt(descent *d, sgm__random *random)
{
    for (size_t i = 0; i < d->count; i++) {
        d->x[i] = d->self->options.standard_deviation * sgm__random_normal(random);
        d->m[i] = d->v[i] = 0;
    }
    for (int64_t step = 1; step <= d->self->options.steps && !d->found; step++) {
        if (d->ending && atomic_load(d->ending))
            return sgm_fail(SGM_ERROR_STATE, "the run has just ended");
        SGM_TRY(look(d));
        if (!isfinite(d->cost))
            return SGM_OK;
        if (d->cost < d->best_cost) {
            d->best_cost = d->cost;
            memcpy(d->best, d->x, d->count * sizeof(double));
        }
        d->found = d->cost < d->self->options.desired_cost;
        if (!d->found)
            step_down(d, step);
    }
    return SGM_OK;
}

/* --- results --- */

static sgm_status share(const target *self, sgm_hook_call *call, const char *what, sgm_content content)
{
    char *name = sgm__format("%s_%s", self->name, what);
    sgm_status status = name ? sgm_hook_share(call, name, content) : SGM_ERROR_MEMORY;
    sgm__free(name);
    return status;
}

static sgm_status take_result(const descent *d, sgm__target_found *found)
{
    const sgm_shape *full = sgm_tensor_shape(d->values);
    sgm_shape shape = sgm_shape_make(full->rank - 1, full->dims + 1);
    *found = (sgm__target_found){sgm_tensor_create(SGM_FLOAT32, &shape), d->best_cost, d->found};
    return found->input ? sgm_tensor_write(found->input, d->best, d->count) : SGM_ERROR_MEMORY;
}

static sgm_status share_result(const target *self, sgm_hook_call *call, const sgm__target_found *found)
{
    SGM_TRY(share(self, call, "cost", sgm_number_content(found->cost)));
    SGM_TRY(share(self, call, "found", sgm_boolean_content(found->found)));
    return share(self, call, "input", sgm_tensor_content(found->input));
}

static sgm_status search(descent *d, sgm__random *random)
{
    SGM_TRY(feed_wanted(d));
    SGM_TRY(allocate(d));
    for (int64_t i = 0; i < d->self->options.attempts && !d->found; i++)
        SGM_TRY(attempt(d, random));
    return SGM_OK;
}

static sgm_status descend(const target *self, sgm_trainer *trainer, void (*copied)(void *trainer),
                          const atomic_bool *ending, sgm__target_found *found)
{
    descent d = {.self = self, .ending = ending};
    sgm_status status = record(&d, trainer);
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    sgm__random random = sgm__random_make(view.seed, sgm__hash_text(self->name) + (uint64_t)view.iteration);
    if (copied)
        copied(trainer);
    if (status == SGM_OK)
        status = search(&d, &random);
    if (status == SGM_OK)
        status = take_result(&d, found);
    sgm__inference_copy_free(&d.frozen);
    sgm_tensor_free(d.values);
    sgm_tensor_free(d.gradients);
    sgm__free(d.x);
    return status;
}

static sgm_status maximise(void *state, sgm_hook_call *call)
{
    const target *self = state;
    sgm_trainer *trainer = sgm_hook_trainer(call);
    sgm__target_found found = {0};
    if (!trainer)
        return sgm_fail(SGM_ERROR_STATE, "a target is sought of a trainer, in the foreground");
    sgm_status status = descend(self, trainer, NULL, NULL, &found);
    if (status == SGM_OK)
        status = share_result(self, call, &found);
    sgm_tensor_free(found.input);
    return status;
}

/* --- the hook --- */

static bool is_equal(const void *a, const void *b)
{
    const target *left = a, *right = b;
    const sgm_target_options *x = &left->options, *y = &right->options;
    return left->wanted == right->wanted && strcmp(left->name, right->name) == 0 &&
           x->targets == y->targets && x->desired_cost == y->desired_cost && x->rate == y->rate &&
           x->standard_deviation == y->standard_deviation && x->steps == y->steps &&
           x->attempts == y->attempts;
}

static void free_target(void *state)
{
    target *self = state;
    sgm_tensor_free(self->options.targets);
    sgm__free(self->name);
    sgm__free(self);
}

static const sgm_hook_type target_type = {.api = SGM_HOOK_API,
                                          .name = "target_maximiser",
                                          .doc = "looks for an input that the network takes for a class",
                                          .invoke = maximise,
                                          .equal = is_equal,
                                          .free = free_target,
                                          .only_global = "it looks into the network of the trainer"};

static void or_default(double *value, double default_value)
{
    if (*value == 0)
        *value = default_value;
}

static bool check(int64_t wanted, sgm_target_options *options)
{
    or_default(&options->desired_cost, 0.06);
    or_default(&options->rate, 0.05);
    or_default(&options->standard_deviation, 0.01);
    if (options->steps == 0)
        options->steps = 1024;
    if (options->attempts == 0)
        options->attempts = 2;
    if (wanted >= 0 && options->desired_cost > 0 && options->rate > 0 && options->standard_deviation > 0 &&
        isfinite(options->rate) && isfinite(options->standard_deviation) && options->steps >= 1 &&
        options->steps <= MAXIMUM_STEPS && options->attempts >= 1 && options->attempts <= MAXIMUM_ATTEMPTS)
        return true;
    sgm_fail(SGM_ERROR_ARGUMENT,
             "target maximiser: expected a class from 0, a desired cost, a rate and a standard deviation "
             "above 0, 1 to %d "
             "steps and 1 to %d attempts; got %lld, %g, %g, %g, %lld and %lld",
             MAXIMUM_STEPS, MAXIMUM_ATTEMPTS, (long long)wanted, options->desired_cost, options->rate,
             options->standard_deviation, (long long)options->steps, (long long)options->attempts);
    return false;
}

sgm_hook *sgm_target_maximiser_create(int64_t wanted, sgm_time_step when, const sgm_target_options *given)
{
    sgm_target_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_target_maximiser") != SGM_OK ||
        !check(wanted, &options))
        return NULL;
    target *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->wanted = wanted;
    self->options = options;
    self->options.targets = options.targets ? sgm_tensor_retain(options.targets) : NULL;
    self->name = options.name ? sgm__strdup(options.name) : sgm__format("target_%lld", (long long)wanted);
    if (self->name)
        return sgm_hook_create(&target_type, self, .when = when, .priority = -200);
    free_target(self);
    return NULL;
}

/* --- as text --- */

static sgm_hook *parse_target(const sgm__hook_text *call)
{
    return sgm_target_maximiser(
        sgm__hook_count_of(call, "class"), call->when, .name = sgm__hook_text_of(call, "name"),
        .desired_cost = sgm__hook_number_of(call, "desired_cost"), .steps = sgm__hook_count_of(call, "steps"),
        .attempts = sgm__hook_count_of(call, "attempts"));
}

const sgm__hook_row sgm__target_maximiser_row = {
    .name = "target_maximiser",
    .doc = "looks for an input that the network takes for a class, as shared.NAME_input, _cost and _found",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"class", SGM__ARGUMENT_COUNT, .needed = true, .doc = "the wanted one", .minimum = 0,
                   .maximum = 999999999},
                  {"name", SGM__ARGUMENT_WORD, .doc = "if not given: as in target_3"},
                  {"desired_cost", SGM__ARGUMENT_NUMBER, .default_value = "0.06",
                   .doc = "below it, the search ends"},
                  {"steps", SGM__ARGUMENT_COUNT, .default_value = "1024", .doc = "of an attempt",
                   .minimum = 1, .maximum = MAXIMUM_STEPS},
                  {"attempts", SGM__ARGUMENT_COUNT, .default_value = "2", .doc = "from other noise each",
                   .minimum = 1, .maximum = MAXIMUM_ATTEMPTS}},
    .create = parse_target,
    .global = true,
};

sgm_status sgm__target_maximise(sgm_trainer *trainer, int64_t wanted, const sgm_target_options *options,
                                void (*copied)(void *trainer), const atomic_bool *ending,
                                sgm__target_found *found)
{
    target self = {.wanted = wanted, .name = (char[]){"target"}, .options = *options};
    if (check(wanted, &self.options))
        return descend(&self, trainer, copied, ending, found);
    if (copied)
        copied(trainer);
    return SGM_ERROR_ARGUMENT;
}
