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

/* (batch, features...) to (batch). */
static sgm_value sum_of_records(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_sum(graph, sgm_flatten(graph, x, 0), (const int32_t[]){1}, 1, false);
}

static sgm_value softmax_cross_entropy(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                       int32_t count)
{
    (void)count;
    return sgm_softmax_cross_entropy_values(graph, inputs[0], targets_of(call, graph, inputs[0]));
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
    sgm_value likelihood = sgm_multiply(graph, targets_of(call, graph, inputs[0]), logarithm);
    return sgm_negate(graph, sum_of_records(graph, likelihood));
}

static const sgm_argument arguments[] = {
    {.name = "targets",
     .kind = SGM_ARGUMENT_TEXT,
     .standard_text = "targets",
     .doc = "the section of the data with what should come out"},
    {.name = "importance",
     .kind = SGM_ARGUMENT_NUMBER,
     .least = 0,
     .most = 1e12,
     .standard = 1,
     .doc = "the factor of this cost in the total",
     .live = true},
};

#define COST(text, words, extra_flags, prediction)                                                           \
    const sgm_layer_type sgm__layer_##text = {                                                               \
        .api = SGM_LAYER_API,                                                                                \
        .flags = SGM_LAYER_COST | (extra_flags),                                                             \
        .name = #text,                                                                                       \
        .doc = words,                                                                                        \
        .arguments = arguments,                                                                              \
        .argument_count = sizeof arguments / sizeof arguments[0],                                            \
        .min_inputs = 1,                                                                                     \
        .max_inputs = 1,                                                                                     \
        .forward = text,                                                                                     \
        .predict = prediction,                                                                               \
    }

COST(softmax_cross_entropy,
     "-log of the probability of the right class, for logits; the output is their softmax",
     SGM_LAYER_CLASSIFIES, predict_softmax);
COST(squared_difference, "the sum of all squared differences in the batch", 0, NULL);
COST(mean_squared, "the mean of all squared differences", 0, NULL);
COST(binary_cross_entropy, "for each output on its own, on logits; the output is their sigmoid",
     SGM_LAYER_CLASSIFIES, predict_sigmoid);
COST(negative_log_likelihood, "-log of the probability of the right class, for probabilities not below 1e-7",
     SGM_LAYER_CLASSIFIES, NULL);
