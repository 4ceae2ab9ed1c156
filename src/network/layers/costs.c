/* Costs: how far a prediction is from the targets, a section of the data of the prediction's shape.
 *
 * A cost gives one number for each record, which the recorder averages over the batch; only
 * squared_difference is a sum over the whole batch, as it always was in Sigma. */
#include "network/network_internal.h"

/* Probabilities are kept above this before their logarithm is taken. */
#define LEAST_PROBABILITY 1e-7

/* The targets of the prediction's shape; nothing on failure. */
static sgm_value targets_of(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    if (shape.rank < 2) {
        char text[128];
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected a prediction (batch, features), got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    }
    sgm_shape record = sgm_shape_make(shape.rank - 1, shape.dims + 1);
    return sgm_layer_section(call, graph, sgm_layer_text(call, "targets"), &record);
}

/* Of costs of classes: a share for each class, in the prediction's shape. Flags say what the data has:
 * shares, or one number of a class for each place of the prediction; without a flag, those with further
 * dimensions than (batch, classes) have numbers, as sequences do. */
static sgm_value shares_of(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    bool classes = sgm_layer_flag(call, "classes"), shares = sgm_layer_flag(call, "shares");
    const char *layer = call->entry->layer->type->name;
    if (classes && shares)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "%s: targets are numbers of classes or shares, not both", layer);
    if (shares || shape.rank < 2 || (shape.rank == 2 && !classes))
        return targets_of(call, graph, prediction);
    sgm_shape record = sgm_shape_make(shape.rank - 2, shape.dims + 1);
    sgm_value numbers = sgm_layer_section(call, graph, sgm_layer_text(call, "targets"), &record);
    return sgm_one_hot_classes(graph, sgm_cast(graph, numbers, SGM_INT64), shape.dims[shape.rank - 1],
                               sgm_layer_dtype(call));
}

/* (batch, steps...) to (batch). */
static sgm_value mean_of_steps(sgm_graph *graph, sgm_value x)
{
    if (sgm_value_type(graph, x).shape.rank == 1)
        return x;
    return sgm_reduce_mean(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
}

/* (batch, features...) to (batch). */
static sgm_value sum_of_records(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_sum(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
}

static sgm_value softmax_cross_entropy(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                       int32_t count)
{
    (void)count;
    sgm_value targets = shares_of(call, graph, inputs[0]);
    return mean_of_steps(graph, sgm_softmax_cross_entropy_values(graph, inputs[0], targets));
}

static sgm_value predict_softmax(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_softmax(graph, prediction);
}

static sgm_value squared_difference(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                    int32_t count)
{
    (void)count;
    sgm_value difference = sgm_subtract(graph, inputs[0], targets_of(call, graph, inputs[0]));
    return sgm_sum(graph, sgm_square(graph, difference));
}

static sgm_value mean_squared(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value difference = sgm_subtract(graph, inputs[0], targets_of(call, graph, inputs[0]));
    return sgm_mean(graph, sgm_square(graph, difference));
}

/* -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)) = softplus(x) - t x, which never overflows. */
static sgm_value binary_cross_entropy(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                      int32_t count)
{
    (void)count;
    sgm_value agreement = sgm_multiply(graph, targets_of(call, graph, inputs[0]), inputs[0]);
    return sum_of_records(graph, sgm_subtract(graph, sgm_softplus(graph, inputs[0]), agreement));
}

static sgm_value predict_sigmoid(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_sigmoid(graph, prediction);
}

static sgm_value negative_log_likelihood(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                         int32_t count)
{
    (void)count;
    sgm_value logarithm = sgm_log(graph, sgm_clip(graph, inputs[0], LEAST_PROBABILITY, 1));
    sgm_value likelihood = sgm_multiply(graph, shares_of(call, graph, inputs[0]), logarithm);
    likelihood = sgm_reduce_sum(graph, likelihood, (const int32_t[]){-1}, 1, false);
    return sgm_negate(graph, mean_of_steps(graph, likelihood));
}

#define COST_ARGUMENTS                                                                                       \
    {.name = "targets",                                                                                      \
     .kind = SGM_ARGUMENT_TEXT,                                                                              \
     .standard_text = "targets",                                                                             \
     .doc = "the section of the data with what should come out"},                                            \
    {                                                                                                        \
        .name = "importance", .kind = SGM_ARGUMENT_NUMBER, .least = 0, .most = 1e12, .standard = 1,          \
        .doc = "the factor of this cost in the total", .live = true                                          \
    }

static const sgm_argument arguments[] = {COST_ARGUMENTS};
static const sgm_argument class_arguments[] = {
    COST_ARGUMENTS,
    {.name = "classes",
     .kind = SGM_ARGUMENT_FLAG,
     .doc = "the targets are numbers of classes, from 0; so they are without a flag after (batch, time, "
            "classes)"},
    {.name = "shares",
     .kind = SGM_ARGUMENT_FLAG,
     .doc = "the targets are a share for each class; so they are without a flag after (batch, classes)"},
};

#define COST(text, words, table, extra_flags, prediction)                                                    \
    const sgm_layer_type sgm__layer_##text = {                                                               \
        .api = SGM_LAYER_API,                                                                                \
        .flags = SGM_LAYER_COST | (extra_flags),                                                             \
        .name = #text,                                                                                       \
        .doc = words,                                                                                        \
        .arguments = table,                                                                                  \
        .argument_count = sizeof table / sizeof table[0],                                                    \
        .min_inputs = 1,                                                                                     \
        .max_inputs = 1,                                                                                     \
        .forward = text,                                                                                     \
        .predict = prediction,                                                                               \
    }

COST(softmax_cross_entropy,
     "-log of the probability of the right class, for logits; the output is their softmax", class_arguments,
     SGM_LAYER_CLASSIFIES, predict_softmax);
COST(squared_difference, "the sum of all squared differences in the batch", arguments, 0, NULL);
COST(mean_squared, "the mean of all squared differences", arguments, 0, NULL);
COST(binary_cross_entropy, "for each output on its own, on logits; the output is their sigmoid", arguments,
     SGM_LAYER_CLASSIFIES, predict_sigmoid);
COST(negative_log_likelihood, "-log of the probability of the right class, for probabilities not below 1e-7",
     class_arguments, SGM_LAYER_CLASSIFIES, NULL);
