/* batch_norm (Ioffe and Szegedy, 2015), group_norm (Wu and He, 2018), instance_norm (Ulyanov et al., 2016).
 *
 * All are y = (x - mean) / sqrt(variance + epsilon) * gain + bias with a gain and a bias for each channel,
 * the second axis of (batch, channels, ...). They differ in what mean and variance are over: batch_norm over
 * the minibatch and all places of a channel, group_norm over the channels of a group and their places in one
 * example, instance_norm over one channel of one example. Norms of the last axis are norms.c. batch_norm
 * keeps running statistics as states that are not trained; predictions use these. */
#include "network/network_internal.h"

/* An input and the shapes that its channels have. */
typedef struct channels {
    sgm_value x;
    sgm_shape shape, line, wide; /* of x; (channels); (1, channels, 1, ...) */
    int64_t each;                /* elements of a channel in the batch */
} channels;

/* Checks the input and fills in `c`; false: the graph has failed. With mixed precision x becomes float32,
 * since sums of many squares need the digits. */
static bool find_channels(sgm_layer_call *call, sgm_graph *graph, sgm_value x, channels *c)
{
    char text[128];
    /* sums of many squares need the digits of float32 */
    sgm_dtype dtype = sgm_layer_dtype(call);
    *c = (channels){.x = sgm__mixed_cast(graph, x, dtype == SGM_BFLOAT16 ? SGM_FLOAT32 : dtype),
                    .shape = sgm_value_type(graph, x).shape};
    int64_t elements = sgm_shape_elements(&c->shape);
    if (c->shape.rank < 2 || elements == 0) {
        sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected (batch, channels, ...) with elements, got %s",
                       call->entry->layer->type->name, sgm_shape_text(&c->shape, text, sizeof text));
        return false;
    }
    c->line = sgm_shape_of(c->shape.dims[1]);
    c->wide = c->shape;
    for (int32_t i = 0; i < c->shape.rank; i++)
        c->wide.dims[i] = i == 1 ? c->shape.dims[1] : 1;
    c->each = elements / c->shape.dims[1];
    return true;
}

/* A trainable parameter with one number for each channel, as (1, channels, 1, ...) in x's type, ready to
 * broadcast. */
static sgm_value parameter(sgm_layer_call *call, sgm_graph *graph, const channels *c, const char *name,
                           const char *initialiser)
{
    sgm_value value = sgm_layer_parameter(call, graph, name, &c->line, 0, 0, true, initialiser);
    return sgm_reshape(graph, sgm__mixed_cast(graph, value, sgm_value_type(graph, c->x).dtype), &c->wide);
}

/* normalised * gains + biases, cast to the layer's type. */
static sgm_value scale(sgm_layer_call *call, sgm_graph *graph, const channels *c, sgm_value normalised)
{
    sgm_value y = sgm_multiply(graph, normalised, parameter(call, graph, c, "gains", "constant(1)"));
    if (!sgm_layer_flag(call, "no_bias"))
        y = sgm_add(graph, y, parameter(call, graph, c, "biases", "constant(0)"));
    return sgm__mixed_cast(graph, y, sgm_layer_dtype(call));
}

/* running = (1 - momentum) running + momentum value. `value` is cut off from the gradient: the running
 * statistics are not part of the cost. */
static void follow(sgm_layer_call *call, sgm_graph *graph, const channels *c, sgm_value running,
                   sgm_value value)
{
    double momentum = sgm_layer_number(call, "momentum");
    value = sgm_reshape(graph, sgm_stop_gradient(graph, value), &c->line);
    sgm_assign(graph, running,
               sgm_add(graph, sgm_multiply(graph, running, sgm_live_number(graph, 1 - momentum)),
                       sgm_multiply(graph, value, sgm_live_number(graph, momentum))));
}

/* (x - mean) / sqrt(variance + epsilon) * gains + biases, with one factor and one shift for each channel, so
 * that forward and backward are one pass over x each, and the gradient takes two sums of a channel: of the
 * gradient, and of the gradient times the distance from the mean. For that, x is centred by a mean without a
 * gradient. What the mean does is in the shift, as a term that is 0. */
static sgm_value normalise(sgm_layer_call *call, sgm_graph *graph, const channels *c, sgm_value mean,
                           sgm_value variance)
{
    sgm_value epsilon = sgm_live_number(graph, sgm_layer_number(call, "epsilon"));
    sgm_value deviation = sgm_square_root(graph, sgm_add(graph, variance, epsilon));
    sgm_value gains = parameter(call, graph, c, "gains", "constant(1)");
    sgm_value factor = sgm_divide(graph, gains, deviation), centre = sgm_stop_gradient(graph, mean);
    sgm_value y = sgm_multiply(graph, sgm_subtract(graph, c->x, centre), factor), shift = {-1};
    if (sgm_layer_is_training(call))
        shift = sgm_multiply(graph, sgm_subtract(graph, centre, mean), factor);
    if (!sgm_layer_flag(call, "no_bias")) {
        sgm_value biases = parameter(call, graph, c, "biases", "constant(0)");
        shift = sgm_value_exists(shift) ? sgm_add(graph, shift, biases) : biases;
    }
    y = sgm_value_exists(shift) ? sgm_add(graph, y, shift) : y;
    return sgm__mixed_cast(graph, y, sgm_layer_dtype(call));
}

/* The mean over batch and places, (1, channels, 1, ...). With `sums` it is the mean over the whole minibatch
 * that workers share: the sum over the workers of share * mean of the own part. */
static sgm_value mean_of(sgm_layer_call *call, sgm_graph *graph, const channels *c, sgm_value x, bool sums)
{
    static const int32_t axes[] = {0, 2, 3, 4, 5, 6, 7};
    sgm_value mean = sgm_reduce_mean(graph, x, axes, c->shape.rank - 1, true);
    if (!sums)
        return mean;
    sgm_value share = sgm__mixed_cast(graph, sgm_layer_share(call, graph), sgm_value_type(graph, x).dtype);
    return sgm_layer_all_reduce(call, graph, sgm_multiply(graph, mean, share));
}

/* The factor n / (n - 1) by which the variance of a minibatch becomes an estimate for all data, where n
 * elements of a channel are in the minibatch. With `sums`, n = own elements / own share. */
static sgm_value unbiased(sgm_layer_call *call, sgm_graph *graph, const channels *c, bool sums)
{
    if (!sums)
        return sgm_number(graph, (double)c->each / (double)(c->each - 1));
    sgm_value share = sgm__mixed_cast(graph, sgm_layer_share(call, graph), sgm_value_type(graph, c->x).dtype);
    sgm_value whole = sgm_divide(graph, sgm_number(graph, (double)c->each), share);
    return sgm_divide(graph, whole, sgm_subtract(graph, whole, sgm_number(graph, 1)));
}

/* With one number for each channel, mean is x and variance 0: every output would be the bias. */
static sgm_value fail_alone(const sgm_layer_call *call, sgm_graph *graph)
{
    return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                          "batch_norm: one number for each channel has no variance: take minibatches of more "
                          "than 1 example%s",
                          sgm_layer_is_part(call) ? " for each worker, or leave `local` out" : "");
}

/* While training, x is normalised with the statistics of this minibatch, otherwise with the running ones.
 * Variances are means of squared distances from the mean, not E[x^2] - E[x]^2, which loses digits. `sums`:
 * workers share the minibatch and normalise it as one, which costs two all_reduces. */
static sgm_value forward_batch_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                    int32_t count)
{
    (void)count;
    channels c;
    if (!find_channels(call, graph, inputs[0], &c))
        return (sgm_value){-1};
    sgm_value means = sgm_layer_parameter(call, graph, "means", &c.line, 0, 0, false, "constant(0)");
    sgm_value variances = sgm_layer_parameter(call, graph, "variances", &c.line, 0, 0, false, "constant(1)");
    if (!sgm_layer_is_training(call))
        return normalise(call, graph, &c, sgm_reshape(graph, means, &c.wide),
                         sgm_reshape(graph, variances, &c.wide));
    bool sums = sgm_layer_is_part(call) && !sgm_layer_flag(call, "local");
    if (c.each < 2 && !sums)
        return fail_alone(call, graph);
    sgm_value mean = mean_of(call, graph, &c, c.x, sums);
    /* The variance is the mean squared distance from any number, less the square of that number's distance
     * from the mean: 0 here, but with the derivatives that a mean without a gradient leaves out. */
    sgm_value centre = sgm_stop_gradient(graph, mean), off = sgm_subtract(graph, mean, centre);
    sgm_value centred = sgm_subtract(graph, c.x, centre);
    sgm_value variance =
        sgm_subtract(graph, mean_of(call, graph, &c, sgm_multiply(graph, centred, centred), sums),
                     sgm_multiply(graph, off, off));
    follow(call, graph, &c, means, mean);
    follow(call, graph, &c, variances, sgm_multiply(graph, variance, unbiased(call, graph, &c, sums)));
    return normalise(call, graph, &c, mean, variance);
}

/* Reshapes to (batch, groups, elements of a group), where each row is what layer_norm normalises, and back;
 * then gain and bias for each channel. `group` names a group in the message. */
static sgm_value normalise_groups(sgm_layer_call *call, sgm_graph *graph, const channels *c, int64_t groups,
                                  const char *group)
{
    if (c->each * c->shape.dims[1] == c->shape.dims[0] * groups)
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "%s: %s of one number has no variance: it wants (batch, channels, ...) with more "
            "than that",
            call->entry->layer->type->name, group);
    sgm_shape flat = sgm_shape_of(c->shape.dims[0], groups, -1);
    sgm_value y = sgm_layer_norm(graph, sgm_reshape(graph, c->x, &flat), sgm_layer_number(call, "epsilon"));
    return scale(call, graph, c, sgm_reshape(graph, y, &c->shape));
}

/* A group for each channel. */
static sgm_value forward_instance_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                       int32_t count)
{
    (void)count;
    channels c;
    if (!find_channels(call, graph, inputs[0], &c))
        return (sgm_value){-1};
    return normalise_groups(call, graph, &c, c.shape.dims[1], "a channel");
}

static sgm_value forward_group_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                    int32_t count)
{
    (void)count;
    channels c;
    int64_t groups = sgm_layer_integer(call, "groups");
    if (!find_channels(call, graph, inputs[0], &c))
        return (sgm_value){-1};
    if (c.shape.dims[1] % groups != 0)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "group_norm: %lld groups do not divide the %lld channels evenly",
                              (long long)groups, (long long)c.shape.dims[1]);
    return normalise_groups(call, graph, &c, groups, "a group");
}

#define EPSILON                                                                                              \
    {                                                                                                        \
        .name = "epsilon", .kind = SGM_KIND_NUMBER, .minimum = 0, .maximum = 1, .default_value = 1e-5,       \
        .doc = "added to the variance, so that nothing is divided by 0", .live = true                        \
    }
#define NO_BIAS                                                                                              \
    {                                                                                                        \
        .name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only a gain for each channel, no bias"          \
    }

static const sgm_option batch_arguments[] = {
    {.name = "momentum",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 1,
     .default_value = 0.1,
     .doc = "the share of a minibatch in the running statistics",
     .live = true},
    EPSILON,
    NO_BIAS,
    {.name = "local",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "workers that share a minibatch each normalise their part by itself, not by all of it"},
};
static const sgm_option instance_arguments[] = {EPSILON, NO_BIAS};
static const sgm_option group_arguments[] = {
    {.name = "groups",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1e6,
     .doc = "of channels; as many as channels: each by itself (instance normalisation)"},
    EPSILON,
    NO_BIAS,
};

const sgm_layer_type sgm__layer_batch_norm = {
    .api = SGM_LAYER_API,
    .name = "batch_norm",
    .doc = "each channel with mean 0 and standard deviation 1 over the minibatch (trained: over all), times "
           "gains, plus biases",
    .arguments = batch_arguments,
    .argument_count = sizeof batch_arguments / sizeof batch_arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_batch_norm,
    .formula = "y = scale (x - mean) / sqrt(variance + epsilon) + shift, over the minibatch for each channel",
    .example = "batch_norm",
};

const sgm_layer_type sgm__layer_group_norm = {
    .api = SGM_LAYER_API,
    .name = "group_norm",
    .doc =
        "each group of channels of an example with mean 0 and standard deviation 1, times gains, plus biases",
    .arguments = group_arguments,
    .argument_count = sizeof group_arguments / sizeof group_arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_group_norm,
    .formula =
        "y = scale (x - mean) / sqrt(variance + epsilon) + shift, over each group of channels of an example",
    .example = "group_norm(8)",
};

const sgm_layer_type sgm__layer_instance_norm = {
    .api = SGM_LAYER_API,
    .name = "instance_norm",
    .doc = "each channel of an example with mean 0 and standard deviation 1, times gains, plus biases",
    .arguments = instance_arguments,
    .argument_count = sizeof instance_arguments / sizeof instance_arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_instance_norm,
    .formula = "y = scale (x - mean) / sqrt(variance + epsilon) + shift, over each channel of an example",
    .example = "instance_norm",
};
