/* Costs of numbers: mean_absolute, huber, cosine_distance; squares are costs.c.
 *
 * All are means: over the elements of an example, the steps that count, and the examples. */
#include "network/layers/costs.h"

/* |prediction - targets|, elementwise. */
static sgm_value distance(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_value targets = sgm__cost_targets(call, graph, prediction);
    return sgm_absolute(graph, sgm_subtract(graph, prediction, targets));
}

static sgm_value mean_absolute(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return sgm__cost_mean(call, graph, distance(call, graph, inputs[0]));
}

/* d^2 / 2 up to delta, then delta (d - delta / 2) (Huber, 1964). With m = min(d, delta) both are m (d - m /
 * 2), so no branch is needed, and the gradient is m. */
static sgm_value huber(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value far = distance(call, graph, inputs[0]);
    sgm_value near = sgm_minimum(graph, far, sgm_live_number(graph, sgm_layer_number(call, "delta")));
    sgm_value half = sgm_multiply(graph, near, sgm_number(graph, 0.5));
    return sgm__cost_mean(call, graph, sgm_multiply(graph, near, sgm_subtract(graph, far, half)));
}

/* x divided by the largest magnitude along the last axis, if that is above 1. Squares of large numbers would
 * overflow, and an angle does not depend on the length, so the divisor needs no gradient. */
static sgm_value shrunk(sgm_graph *graph, sgm_value x)
{
    sgm_value largest = sgm_reduce_max(graph, sgm_absolute(graph, x), (const int32_t[]){-1}, 1, true);
    largest = sgm_maximum(graph, sgm_stop_gradient(graph, largest), sgm_number(graph, 1));
    return sgm_divide(graph, x, largest);
}

/* sum(x^2) + 1e-12 along the last axis: the division by its root stays finite for zeros, as does the root's
 * gradient. */
static sgm_value squared_length(sgm_graph *graph, sgm_value x)
{
    sgm_value squares = sgm__cost_sum_of_last(graph, sgm_square(graph, x), false);
    return sgm_add(graph, squares, sgm_number(graph, 1e-12));
}

/* 1 - y.t / (|y| |t|) along the last axis, averaged over the others. */
static sgm_value cosine_distance(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                 int32_t count)
{
    (void)count;
    sgm_value y = shrunk(graph, inputs[0]);
    sgm_value targets = shrunk(graph, sgm__cost_targets(call, graph, inputs[0]));
    sgm_value along = sgm__cost_sum_of_last(graph, sgm_multiply(graph, y, targets), false);
    sgm_value lengths = sgm_multiply(graph, squared_length(graph, y), squared_length(graph, targets));
    sgm_value cosine = sgm_divide(graph, along, sgm_square_root(graph, lengths));
    return sgm__cost_mean_of_steps(call, graph, sgm_subtract(graph, sgm_number(graph, 1), cosine));
}

static const sgm_option arguments[] = {SGM__COST_ARGUMENTS};
static const sgm_option huber_arguments[] = {
    SGM__COST_ARGUMENTS,
    {.name = "delta",
     .kind = SGM_KIND_NUMBER,
     .minimum = 1e-6,
     .maximum = 1e12,
     .default_value = 1,
     .doc = "the difference up to which the cost is a square, and from which on it is a line",
     .live = true},
};

SGM__COST(mean_absolute, "the mean of all absolute differences", arguments, 0, NULL);
SGM__COST(huber, "the mean of half the squared differences, and of a line where these are large",
          huber_arguments, 0, NULL);
SGM__COST(cosine_distance, "1 minus the cosine between the last dimensions of prediction and targets",
          arguments, 0, NULL);
