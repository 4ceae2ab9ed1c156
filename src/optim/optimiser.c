/* What all optimisers share, recorded as instructions around the update of each (optimisers.c, lbfgs.c).
 *
 * In this order: gradients of the loss, which autodiff records behind it; adding up the gradients of several
 * minibatches (accumulate); clipping; L2 weight decay; the optimiser's update; modifiers; moving averages of
 * the parameters. Numbers that change from update to update (learning rate, step, bias corrections) are
 * inputs of the program, of rank 0, so that a schedule needs no new recording. src/train/trainer_program.c
 * calls this, and src/train/trainer_step.c feeds the numbers. */
#include "optim/updates.h"
#include "text/names.h"

#include <math.h>
#include <stdio.h>

/* In an options struct 0 means the default. */
static void or_default(double *value, double default_value)
{
    if (*value == 0)
        *value = default_value;
}

/* The error for a name that no type has: what it may mean, or all of them. */
static void fail_unknown(const char *name, const char *const *names, size_t count)
{
    char hint[SGM__NAME_HINT];
    sgm__text known = {0};
    for (size_t i = 0; i < count; i++)
        sgm__text_append(&known, "%s%s", i > 0 ? ", " : "; there are ", names[i]);
    sgm__name_hint(SGM__NAME_OPTIMISER, name, names, count, hint);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown optimiser '%s'%s", name,
             hint[0] != '\0'      ? hint
             : known.data != NULL ? known.data
                                  : "");
    sgm__text_free(&known);
}

static const sgm_optimiser_type *find_type(const char *name)
{
    const char *names[64];
    size_t count = 0;
    if (name == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "an optimiser expects a type, such as 'adam'; got NULL");
        return NULL;
    }
    for (const sgm_optimiser_type *type; count < 64 && (type = sgm_optimiser_type_at(count)) != NULL;
         count++) {
        if (strcmp(type->name, name) == 0)
            return type;
        names[count] = type->name;
    }
    const char *real = sgm__name_real(SGM__NAME_OPTIMISER, name, names, count, NULL);
    if (real != NULL)
        return find_type(real);
    fail_unknown(name, names, count);
    return NULL;
}

/* Refuses options that the type does not use, fills in its defaults for those that are 0, and checks all of
 * them. */
sgm_optimiser *sgm_optimiser_create(const char *type, const sgm_optimiser_options *options)
{
    const sgm_optimiser_type *found = find_type(type);
    sgm_optimiser_options given;
    if (found == NULL || sgm__options_read(&given, sizeof given, options, type) != SGM_OK ||
        sgm__optimiser_check_given(found, &given) != SGM_OK)
        return NULL;
    sgm_optimiser *optimiser = sgm__calloc(1, sizeof(sgm_optimiser));
    if (optimiser == NULL)
        return NULL;
    optimiser->type = found;
    optimiser->options = given;
    sgm_optimiser_options *own = &optimiser->options;
    or_default(&own->learning_rate, found->defaults.learning_rate);
    or_default(&own->momentum, found->defaults.momentum);
    or_default(&own->decay_rate, found->defaults.decay_rate);
    or_default(&own->beta1, found->defaults.beta1);
    or_default(&own->beta2, found->defaults.beta2);
    or_default(&own->epsilon, found->defaults.epsilon);
    or_default(&own->weight_decay, found->defaults.weight_decay);
    or_default(&own->tolerance, found->defaults.tolerance);
    if (own->history == 0)
        own->history = found->defaults.history > 0 ? found->defaults.history : 1;
    if (own->accumulate == 0)
        own->accumulate = 1;
    if (sgm__optimiser_check(type, own) == SGM_OK)
        return optimiser;
    sgm__free(optimiser);
    return NULL;
}

void sgm_optimiser_free(sgm_optimiser *optimiser)
{
    sgm__free(optimiser);
}

/* --- what an update is fed --- */

const char *const sgm__fed_names[SGM__FED_COUNT] = {
    [SGM__FED_LEARNING_RATE] = "optimiser.learning_rate",
    [SGM__FED_STEP] = "optimiser.step",
    [SGM__FED_BIAS_CORRECTION1] = "optimiser.bias_correction1",
    [SGM__FED_BIAS_CORRECTION2] = "optimiser.bias_correction2",
};

/* 1 - beta^step, in double: beta^step is near 1 at first, and the difference of two float32 would have few
 * right digits. expm1 keeps all of them. */
static double bias_correction(double beta, int64_t step)
{
    return -expm1((double)step * log(beta));
}

double sgm__fed_value(const sgm_optimiser *optimiser, sgm__fed_number number, double rate, int64_t step)
{
    switch (number) {
    case SGM__FED_LEARNING_RATE:
        return rate;
    case SGM__FED_BIAS_CORRECTION1:
        return bias_correction(optimiser->options.beta1, step);
    case SGM__FED_BIAS_CORRECTION2:
        return bias_correction(optimiser->options.beta2, step);
    default:
        return (double)step;
    }
}

sgm__fed_number sgm__fed_number_of(const char *input)
{
    int number = 0;
    while (number < SGM__FED_COUNT && strcmp(input, sgm__fed_names[number]) != 0)
        number++;
    return (sgm__fed_number)number;
}

/* --- recording --- */

/* The state of the graph whose name is prefix, slot ("momentum.") and parameter put together; zeros at first.
 */
static sgm_value named_state_of(sgm_graph *graph, const char *prefix, const char *slot, const char *name,
                                const sgm_type *type)
{
    char *full = sgm__format("%s%s%s", prefix, slot, name);
    if (full == NULL)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the name of an optimiser state");
    sgm_value state = sgm_state(graph, full, type->dtype, &type->shape);
    sgm__free(full);
    return state;
}

static sgm_value named_state(sgm_graph *graph, const char *prefix, const char *slot, const char *name,
                             sgm_value like)
{
    sgm_type type = sgm_value_type(graph, like);
    return named_state_of(graph, prefix, slot, name, &type);
}

/* A slot has the parameter's shape, or 1 in place of some of its dimensions, as adafactor's means of rows and
 * columns do. used_rows.c tells by the first dimension whether a slot belongs to rows of the parameter. */
sgm_value sgm_optimiser_slot_shaped(const sgm_update_call *call, const char *slot, const sgm_shape *shape)
{
    sgm_type type = {.dtype = sgm_value_type(call->graph, call->parameter).dtype, .shape = *shape};
    sgm_shape own = sgm_value_type(call->graph, call->parameter).shape;
    bool fits = shape->rank == own.rank;
    for (int32_t i = 0; i < own.rank && fits; i++)
        fits = shape->dims[i] == own.dims[i] || shape->dims[i] == 1;
    char dotted[96], text[128];
    if (!fits)
        return sgm_graph_fail(
            call->graph, SGM_ERROR_SHAPE,
            "slot '%s' must have the parameter's shape, or 1 in place of its dimensions; got %s", slot,
            sgm_shape_text(shape, text, sizeof text));
    if (strlen(slot) + 2 > sizeof dotted)
        return sgm_graph_fail(call->graph, SGM_ERROR_ARGUMENT, "the name of slot '%s' is too long", slot);
    snprintf(dotted, sizeof dotted, "%s.", slot);
    return named_state_of(call->graph, SGM__SLOT_PREFIX, dotted, call->parameter_name, &type);
}

sgm_value sgm_optimiser_slot(const sgm_update_call *call, const char *slot)
{
    sgm_shape shape = sgm_value_type(call->graph, call->parameter).shape;
    return sgm_optimiser_slot_shaped(call, slot, &shape);
}

/* value * factor, where the factor is a constant of the program. */
static sgm_value scale(sgm_graph *graph, sgm_value value, double factor)
{
    return sgm_multiply(graph, value, sgm_number(graph, factor));
}

/* With clip_norm every update needs the norm of all gradients. With accumulate the sums of all parameters are
 * complete only with the last minibatch. Workers that sum gradients bucket by bucket ask this: without
 * either, the update of one parameter may begin while gradients of others are still being summed. */
bool sgm__optimiser_looks_across(const sgm_optimiser *optimiser)
{
    return optimiser->options.clip_norm > 0 || optimiser->options.accumulate > 1;
}

/* Adds the gradients of this minibatch to those of earlier ones, which are states. `update`: the sums become
 * the gradients of an update, divided by the number of minibatches, and the states begin again at zero. */
static void accumulate(const sgm_optimiser *optimiser, sgm_graph *graph,
                       const sgm__trained_parameter *parameters, size_t count, sgm_value *gradients,
                       bool update)
{
    if (optimiser->options.accumulate == 1)
        return;
    for (size_t i = 0; i < count; i++) {
        sgm_value sum =
            named_state(graph, SGM__SLOT_PREFIX, "accumulated.", parameters[i].name, parameters[i].value);
        sgm_value total = sgm_add(graph, sum, gradients[i]);
        sgm_assign(graph, sum, update ? sgm_filled_like(graph, sum, 0) : total);
        gradients[i] = scale(graph, total, 1.0 / (double)optimiser->options.accumulate);
    }
}

/* Multiplies all gradients by limit / max(norm, limit), where the norm is that of all elements of all
 * gradients (Pascanu et al., 2013). */
static void clip_norm(sgm_graph *graph, double limit, sgm_value *gradients, size_t count)
{
    sgm_value squares = {-1};
    for (size_t i = 0; i < count; i++) {
        sgm_value sum = sgm_sum(graph, sgm_square(graph, gradients[i]));
        squares = i == 0 ? sum : sgm_add(graph, squares, sum);
    }
    sgm_value norm = sgm_square_root(graph, squares), largest = sgm_filled_like(graph, norm, limit);
    sgm_value factor = sgm_divide(graph, largest, sgm_maximum(graph, norm, largest)); /* finite also for 0 */
    for (size_t i = 0; i < count; i++)
        gradients[i] = sgm_multiply(graph, gradients[i], factor);
}

/* Clips each element to [-clip_value, clip_value] first, then limits the norm of all clipped gradients
 * together. */
static void clip(const sgm_optimiser_options *options, sgm_graph *graph, sgm_value *gradients, size_t count)
{
    for (size_t i = 0; i < count && options->clip_value > 0; i++)
        gradients[i] = sgm_clip(graph, gradients[i], -options->clip_value, options->clip_value);
    if (options->clip_norm > 0)
        clip_norm(graph, options->clip_norm, gradients, count);
}

sgm_value sgm__update_fed(sgm_graph *graph, sgm_value parameter, sgm__fed_number number)
{
    sgm_shape scalar = sgm_scalar_shape();
    return sgm_input_value(graph, sgm__fed_names[number], sgm_value_type(graph, parameter).dtype, &scalar);
}

/* The arguments of a parameter's update. L2 weight decay is added to the gradient here; optimisers whose
 * decay is decoupled apply it themselves. */
static sgm_update_call call_of(const sgm_optimiser *optimiser, sgm_graph *graph,
                               const sgm__trained_parameter *parameter, sgm_value gradient)
{
    const sgm_optimiser_options *options = &optimiser->options;
    bool decoupled = optimiser->type->decoupled || optimiser->type->defaults.weight_decay > 0;
    if (options->weight_decay > 0 && !decoupled)
        gradient = sgm_add(graph, gradient, scale(graph, parameter->value, options->weight_decay));
    return (sgm_update_call){.graph = graph,
                             .options = options,
                             .parameter_name = parameter->name,
                             .parameter = parameter->value,
                             .gradient = gradient,
                             .learning_rate =
                                 sgm__update_fed(graph, parameter->value, SGM__FED_LEARNING_RATE),
                             .step = sgm__update_fed(graph, parameter->value, SGM__FED_STEP)};
}

/* Moves the average of a parameter towards its updated value: a + (1 - decay) (p - a). `later`: another
 * program does that; the state is only named here, so that it begins at the parameter's value before the
 * first update. */
static void average_parameter(const sgm_optimiser *optimiser, sgm_graph *graph,
                              const sgm__trained_parameter *parameter, sgm_value updated, bool later)
{
    double share = 1 - optimiser->options.average;
    if (optimiser->options.average == 0)
        return;
    sgm_value average = named_state(graph, SGM__AVERAGE_PREFIX, "", parameter->name, parameter->value);
    if (later)
        return;
    sgm_value step = scale(graph, sgm_subtract(graph, updated, average), share);
    sgm_assign(graph, average, sgm_add(graph, average, step));
}

/* For updates that were recorded with averages_apart: every rank then has all averages, though it updates
 * only its own parameters. */
sgm_status sgm__optimiser_record_averages(const sgm_optimiser *optimiser, sgm_graph *graph,
                                          const sgm__trained_parameter *parameters, size_t count)
{
    sgm_graph_push_label(graph, "optimiser");
    for (size_t i = 0; i < count; i++)
        average_parameter(optimiser, graph, &parameters[i], parameters[i].value, false);
    sgm_graph_pop_label(graph);
    return sgm_graph_status(graph);
}

/* Records the new value of one parameter. Of a sparse one only the rows with a gradient change, and the slots
 * of these rows. */
static void update_parameter(const sgm_optimiser *optimiser, const sgm__update_request *request,
                             const sgm__trained_parameter *parameter, const sgm_update_call *call,
                             sgm_value gradient)
{
    sgm_graph *graph = call->graph;
    size_t assignments = sgm__assignments_so_far(graph);
    sgm_value used = {-1};
    if (parameter->sparse)
        used = sgm__used_rows(graph, gradient);
    sgm_value updated = sgm__modifiers_record(request->modifiers, request->modifier_count, graph,
                                              parameter->name, optimiser->type->update(call));
    if (parameter->sparse)
        updated = sgm__update_used_rows(graph, used, assignments, parameter->value, updated);
    if (request->keep_updates)
        sgm_assign(graph, named_state(graph, SGM__UPDATE_PREFIX, "", parameter->name, parameter->value),
                   sgm_subtract(graph, updated, parameter->value));
    sgm_assign(graph, parameter->value, updated);
    average_parameter(optimiser, graph, parameter, updated, request->averages_apart);
}

/* Records the updates of all parameters, after `prepare` of an optimiser that looks at all of them.
 * Parameters that another rank updates get their average only. Each parameter's instructions carry its name
 * as a label, for messages and for the times of layers. */
static sgm_status update_parameters(const sgm_optimiser *optimiser, sgm_graph *graph,
                                    const sgm__update_request *request, const sgm_value *gradients)
{
    sgm_update_call *calls = sgm__calloc(request->count + 1, sizeof *calls);
    if (calls == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < request->count; i++) {
        sgm_graph_push_label(graph, request->parameters[i].name);
        calls[i] = call_of(optimiser, graph, &request->parameters[i], gradients[i]);
        if (request->parameters[i].sparse && optimiser->type->prepare != NULL)
            sgm_graph_fail(
                graph, SGM_ERROR_UNSUPPORTED,
                "the optimiser %s takes steps of all parameters together, and '%s' is sparse: take "
                "another optimiser, or an embedding that is not sparse",
                optimiser->type->name, request->parameters[i].name);
        sgm_graph_pop_label(graph);
    }
    if (optimiser->type->prepare != NULL && request->count > 0)
        optimiser->type->prepare(calls, request->count);
    for (size_t i = 0; i < request->count; i++) {
        const sgm__trained_parameter *parameter = &request->parameters[i];
        sgm_graph_push_label(graph, parameter->name);
        if (!parameter->elsewhere)
            update_parameter(optimiser, request, parameter, &calls[i], gradients[i]);
        else
            average_parameter(optimiser, graph, parameter, parameter->value, request->averages_apart);
        sgm_graph_pop_label(graph);
    }
    sgm__free(calls);
    return SGM_OK;
}

/* Records everything of an update, in the order that the opening comment gives. `values` and `gradients` are
 * the two halves of one array. Gradients are kept for readers before they are clipped. */
sgm_status sgm__optimiser_record(const sgm_optimiser *optimiser, sgm_graph *graph,
                                 const sgm__update_request *request)
{
    if (optimiser->type->search != NULL) /* nothing is recorded of it */
        return sgm_graph_status(graph);
    size_t count = request->count;
    sgm_value *values = sgm__calloc(count + 1, 2 * sizeof(sgm_value));
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    sgm_value *gradients = values + count;
    for (size_t i = 0; i < count; i++)
        values[i] = request->parameters[i].value;
    sgm_status status = SGM_OK;
    if (request->gradients != NULL)
        memcpy(gradients, request->gradients, count * sizeof(sgm_value));
    else
        status = sgm_gradients(graph, request->cost, values, (int32_t)count, gradients);
    sgm_graph_push_label(graph, "optimiser");
    if (status == SGM_OK)
        accumulate(optimiser, graph, request->parameters, count, gradients, request->update);
    if (status == SGM_OK && request->update) {
        for (size_t i = 0; i < count && request->keep_gradients; i++)
            if (!request->parameters[i].elsewhere)
                sgm_assign(
                    graph,
                    named_state(graph, SGM__GRADIENT_PREFIX, "", request->parameters[i].name, values[i]),
                    gradients[i]);
        clip(&optimiser->options, graph, gradients, count);
        status = update_parameters(optimiser, graph, request, gradients);
    }
    sgm_graph_pop_label(graph);
    sgm__free(values);
    return status == SGM_OK ? sgm_graph_status(graph) : status;
}
