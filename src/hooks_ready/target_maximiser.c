/* Looks for an input that the network takes for a class (target_maximiser): gradient descent on the input
 * of an inference copy of the network, with the parameters fixed (Simonyan, Vedaldi and Zisserman, Deep
 * Inside Convolutional Networks, 2013).
 *
 * Two callers: the hook, on the training's thread, which waits for the search; and sgm__target_maximise
 * for the web monitor, on a thread of its own, which locks the trainer only until its parameters are
 * copied. The descent is Adam (Kingma and Ba, 2015) in double precision on the host; only cost and
 * gradient are computed by the trainer's handler. Which parts of an input matter for a prediction is not
 * asked here. */
#include "hooks_ready/target_maximiser.h"
#include "hooks/hook_text.h"
#include "infer/inference_copy.h"
#include "trainer/view.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

#define MAXIMUM_STEPS 1000000
#define MAXIMUM_ATTEMPTS 1000

/* What is wanted, the self of the hook: class `wanted`, or `options.targets` instead. The name goes before
 * the results, and seeds the noise, so that two searches of one trainer start from different places. */
typedef struct target {
    int64_t wanted;
    char *name;
    sgm_target_options options; /* `targets` is retained */
} target;

/* One search, of one or more attempts. x, g, m, v and best have `count` elements each (of one example's
 * input) and lie one behind the other in the memory that begins at x. */
typedef struct descent {
    const target *self;
    const atomic_bool *ending; /* NULL: nobody ends it */
    sgm__inference_copy frozen;
    sgm_program *program;
    const char *input, *wanted;     /* names */
    sgm_tensor *values, *gradients; /* of the input */
    double *x, *g, *m, *v;          /* input, gradient, and Adam's means of gradients and of their squares */
    size_t count;
    double cost, best_cost;
    double *best; /* the input with the lowest cost of all attempts */
    bool found;   /* the cost fell below the desired one, which ends the search */
} descent;

/* --- the program --- */

/* Gives the inference copy a parameter of the trainer: a new tensor. */
static sgm_tensor *parameter_of(void *trainer, const char *name)
{
    return sgm_session_get(sgm__trainer_look(trainer).session, name);
}

/* Records forward pass and cost for a batch of one example, and the gradient of the cost with respect to
 * the input behind them; copies the parameters; compiles. The trainer must be locked, or this is its
 * thread. */
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
    if (recording->input_count != 1 || recording->target_count != 1 || !sgm_value_exists(recording->total))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the network has %zu inputs and %zu targets, expected one of each",
                        recording->input_count, recording->target_count);
    d->input = recording->inputs[0].name;
    d->wanted = recording->targets[0].name;
    sgm_value gradient;
    SGM_TRY(sgm_gradients(d->frozen.graph, recording->total, &recording->inputs[0].value, 1, &gradient));
    sgm_graph_add_output(d->frozen.graph, "target.gradient", gradient);
    sgm_graph_add_output(d->frozen.graph, "target.cost", recording->total);
    SGM_TRY(sgm_graph_status(d->frozen.graph));
    SGM_TRY(sgm__inference_copy_fill(&d->frozen, parameter_of, trainer));
    d->program = sgm__inference_copy_prepare(&d->frozen);
    return d->program ? SGM_OK : sgm_last_status();
}

/* Feeds the targets, which stay the same over all steps: 1 for the wanted class and 0 for the others, or
 * the targets that were given. */
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

/* The tensors have the network's type, for the program; the arrays are doubles, for Adam. */
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

/* Runs the program once: cost and gradient at x. */
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

/* One step of Adam with decay rates 0.9 and 0.999; `step` counts from 1. The corrections for the means'
 * start at 0 are folded into the rate: x -= rate * sqrt(1 - 0.999^t) / (1 - 0.9^t) * m / (sqrt(v) + 1e-8). */
static void step_down(descent *d, int64_t step)
{
    double rate = d->self->options.rate * sqrt(1 - pow(0.999, (double)step)) / (1 - pow(0.9, (double)step));
    for (size_t i = 0; i < d->count; i++) {
        d->m[i] = 0.9 * d->m[i] + 0.1 * d->g[i];
        d->v[i] = 0.999 * d->v[i] + 0.001 * d->g[i] * d->g[i];
        d->x[i] -= rate * d->m[i] / (sqrt(d->v[i]) + 1e-8);
    }
}

/* One descent from new Gaussian noise. A cost that is not finite ends the attempt, not the search. The
 * best input is kept, since Adam may leave it again. */
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

/* The best input without the batch dimension, as float32. If no attempt had a finite cost, the input is 0
 * and the cost infinite. */
static sgm_status take_result(const descent *d, sgm__target_found *found)
{
    const sgm_shape *full = sgm_tensor_shape(d->values);
    sgm_shape shape = sgm_shape_create(full->rank - 1, full->dims + 1);
    *found = (sgm__target_found){sgm_tensor_create(SGM_FLOAT32, &shape), d->best_cost, d->found};
    return found->input ? sgm_tensor_write(found->input, d->best, d->count) : SGM_ERROR_MEMORY;
}

/* As shared.NAME_cost, NAME_found and NAME_input (the input's shape without the batch dimension, float32). */
static sgm_status share_result(const target *self, sgm_hook_call *call, const sgm__target_found *found)
{
    SGM_TRY(share(self, call, "cost", sgm_number_content(found->cost)));
    SGM_TRY(share(self, call, "found", sgm_boolean_content(found->found)));
    return share(self, call, "input", sgm_tensor_content(found->input));
}

/* Attempts until one succeeds; later ones begin from other noise and compete for the best input. */
static sgm_status search(descent *d, sgm__random *random)
{
    SGM_TRY(feed_wanted(d));
    SGM_TRY(allocate(d));
    for (int64_t i = 0; i < d->self->options.attempts && !d->found; i++)
        SGM_TRY(attempt(d, random));
    return SGM_OK;
}

/* Records, lets the trainer go on (`copied`), searches. The noise depends on the trainer's seed, the name
 * and the iteration, so that a search can be repeated, and the next event starts from other noise. */
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

/* invoke(): the training waits until the search is over. */
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

/* Names are compared, as equal searches with two names leave two results. */
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

/* Without check(): whether the class exists, only the recorded network tells. */
static const sgm_hook_type target_type = {.api = SGM_HOOK_API,
                                          .name = "target_maximiser",
                                          .doc = "looks for an input that the network takes for a class",
                                          .invoke = maximise,
                                          .equal = is_equal,
                                          .free = free_target,
                                          .only_global = "it looks into the network of the trainer"};

/* 0 stands for the default in options. */
static void or_default(double *value, double default_value)
{
    if (*value == 0)
        *value = default_value;
}

/* Fills in defaults and checks. The bounds of steps and attempts only keep a slip of the pen from stopping
 * the training for days. */
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
             "above 0, 1 to %d steps and 1 to %d attempts; got %lld, %g, %g, %g, %lld and %lld",
             MAXIMUM_STEPS, MAXIMUM_ATTEMPTS, (long long)wanted, options->desired_cost, options->rate,
             options->standard_deviation, (long long)options->steps, (long long)options->attempts);
    return false;
}

/* Priority -200: before reporters, one of which may draw the result (text_art.c). */
sgm_hook *sgm_target_maximiser_with(int64_t wanted, sgm_time_step when, const sgm_target_options *given)
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

/* Rate and standard deviation of the noise have no argument: the defaults suit inputs of a range near 1. */
static sgm_hook *parse_target(const sgm__call *call, sgm_time_step when)
{
    return sgm_target_maximiser(sgm__call_integer(call, "class"), when, .name = sgm__call_text(call, "name"),
                                .desired_cost = sgm__call_number(call, "desired_cost"),
                                .steps = sgm__call_integer(call, "steps"),
                                .attempts = sgm__call_integer(call, "attempts"));
}

const sgm__hook_row sgm__target_maximiser_row = {
    .name = "target_maximiser",
    .example = "every 5 epochs target_maximiser(3)",
    .doc = "looks for an input that the network takes for a class, as shared.NAME_input, _cost and _found",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"class", SGM_KIND_INTEGER, .required = true, .doc = "the wanted one", .minimum = 0,
                   .maximum = 999999999},
                  {"name", SGM_KIND_TEXT, .doc = "if not given: as in target_3"},
                  {"desired_cost", SGM_KIND_NUMBER, .default_value = 0.06,
                   .doc = "below it, the search ends"},
                  {"steps", SGM_KIND_INTEGER, .default_value = 1024, .doc = "of an attempt", .minimum = 1,
                   .maximum = MAXIMUM_STEPS},
                  {"attempts", SGM_KIND_INTEGER, .default_value = 2, .doc = "from other noise each",
                   .minimum = 1, .maximum = MAXIMUM_ATTEMPTS}},
    .create = parse_target,
    .global = true,
};

/* For callers without a hook; the name serves only as a seed. `copied` is called also when the options are
 * refused, since the caller holds the trainer's lock until then. */
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
