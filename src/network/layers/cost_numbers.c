/* Costs of numbers: mean_absolute, huber, gaussian_nll, cosine_distance; squares are costs.c.
 *
 * All are means: over the elements of an example, the steps that count, and the examples. */
#include "network/layers/costs.h"

#include <math.h>

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

/* The first half of the last axis, or the second one: means, or logarithms of variances. */
static sgm_value half_of(sgm_graph *graph, sgm_value x, int64_t index)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    int64_t half = shape.dims[shape.rank - 1] / 2;
    return sgm_slice(graph, x, shape.rank - 1, index * half, (index + 1) * half, 1);
}

/* max(x, log(epsilon)), whose gradient is that of x also below: a variance that has become too small can grow
 * again. */
static sgm_value bounded(sgm_layer_call *call, sgm_graph *graph, sgm_value x)
{
    sgm_value least = sgm_live_number(graph, log(sgm_layer_number(call, "epsilon")));
    sgm_value missing = sgm_subtract(graph, sgm_maximum(graph, x, least), x);
    return sgm_add(graph, x, sgm_stop_gradient(graph, missing));
}

/* (s + (y - t)^2 / e^s) / 2 for means y and logarithms of variances s: -log of the probability density, but
 * for a constant (Nix and Weigend, "Estimating the mean and variance of the target probability distribution",
 * 1994).
 */
static sgm_value gaussian_nll(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    char text[128];
    if (shape.rank < 2 || shape.dims[shape.rank - 1] % 2 != 0)
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "gaussian_nll: expected a mean and a logarithm of a variance for each target, so "
            "twice as many numbers as targets, got %s",
            sgm_shape_text(&shape, text, sizeof text));
    sgm_value mean = half_of(graph, inputs[0], 0), s = bounded(call, graph, half_of(graph, inputs[0], 1));
    sgm_value difference = sgm_subtract(graph, mean, sgm__cost_targets(call, graph, mean));
    sgm_value squares =
        sgm_multiply(graph, sgm_square(graph, difference), sgm_exp(graph, sgm_negate(graph, s)));
    return sgm__cost_mean(call, graph,
                          sgm_multiply(graph, sgm_add(graph, s, squares), sgm_number(graph, 0.5)));
}

/* Means, then standard deviations. */
static sgm_value predict_deviations(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_value s = bounded(call, graph, half_of(graph, prediction, 1));
    sgm_value deviation = sgm_exp(graph, sgm_multiply(graph, s, sgm_number(graph, 0.5)));
    sgm_value both[] = {half_of(graph, prediction, 0), deviation};
    return sgm_concatenate(graph, both, 2, sgm_value_type(graph, prediction).shape.rank - 1);
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

static const sgm_option gaussian_arguments[] = {
    SGM__COST_ARGUMENTS,
    {.name = "epsilon",
     .kind = SGM_KIND_NUMBER,
     .minimum = 1e-30,
     .maximum = 1e12,
     .default_value = 1e-6,
     .doc = "the least variance",
     .live = true},
};

SGM__COST(mean_absolute, "the mean of all absolute differences", arguments, 0, NULL,
          .formula = "mean of |x - t|", .example = "mean_absolute");
SGM__COST(huber, "the mean of half the squared differences, and of a line where these are large",
          huber_arguments, 0, NULL,
          .formula = "mean of d^2 / 2 where |d| is at most delta, else delta (|d| - delta / 2), d = x - t",
          .example = "huber(delta=1)");
SGM__COST(
    gaussian_nll,
    "of a mean for each target, then a logarithm of its variance, -log of the density at the target; the "
    "output is means, then standard deviations",
    gaussian_arguments, SGM_LAYER_DEVIATIONS, predict_deviations,
    .formula = "(log v + (m - t)^2 / v) / 2, v = max(exp(x), epsilon)", .example = "gaussian_nll");
SGM__COST(cosine_distance, "1 minus the cosine between the last dimensions of prediction and targets",
          arguments, 0, NULL, .formula = "1 - x t / (|x| |t|)", .example = "cosine_distance");
