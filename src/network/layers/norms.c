/* layer_norm and rms_norm: the features of each position at one scale, then a gain, and a bias, for each
 * feature. unit_norm: a vector of length 1, without parameters.
 *
 * y = (x - mean) / sqrt(variance + epsilon) * gains + biases over the last axis of (batch, ..., features);
 * rms_norm: y = x / sqrt(mean of squares + epsilon) * gains. The normalising itself is src/ops/normalise.c.
 * transformer (attention.c) uses sgm__layer_normalise with prefixes. Norms of channels are batch_norm.c. */
#include "network/layers/blocks.h"

/* Parameters "PREFIXgains" (features), from 1 on, and "PREFIXbiases" (features), from 0 on, if `biased`. */
sgm_value sgm__layer_normalise(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool centred, bool biased,
                               const char *prefix, double epsilon)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    if (shape.rank < 2)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected (batch, ..., features), got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    sgm_shape features = sgm_shape_of(shape.dims[shape.rank - 1]);
    sgm_value gains = sgm__layer_prefixed(call, graph, prefix, "gains", &features, "constant(1)");
    sgm_value y = centred ? sgm_layer_norm(graph, x, epsilon) : sgm_rms_norm(graph, x, epsilon);
    y = sgm_multiply(graph, y, gains);
    if (biased)
        y = sgm_add(graph, y, sgm__layer_prefixed(call, graph, prefix, "biases", &features, "constant(0)"));
    return y;
}

static sgm_value forward_layer_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                    int32_t count)
{
    (void)count;
    return sgm__layer_normalise(call, graph, inputs[0], true, !sgm_layer_flag(call, "no_bias"), "",
                                sgm_layer_number(call, "epsilon"));
}

static sgm_value forward_rms_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                  int32_t count)
{
    (void)count;
    return sgm__layer_normalise(call, graph, inputs[0], false, false, "", sgm_layer_number(call, "epsilon"));
}

/* x / |x| over the last axis; a vector shorter than LEAST is divided by that. */
#define LEAST 1e-12
sgm_value sgm__layer_normalise_length(sgm_graph *graph, sgm_value x)
{
    const int32_t last = sgm_value_type(graph, x).shape.rank - 1;
    sgm_value squares = sgm_reduce_sum(graph, sgm_multiply(graph, x, x), &last, 1, true);
    squares = sgm_maximum(graph, squares, sgm_number(graph, LEAST * LEAST));
    return sgm_divide(graph, x, sgm_square_root(graph, squares));
}

static sgm_value forward_unit_norm(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                   int32_t count)
{
    (void)count;
    if (sgm_value_type(graph, inputs[0]).shape.rank < 2)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: expected (batch, ..., features), got (batch)",
                              call->entry->layer->type->name);
    return sgm__layer_normalise_length(graph, inputs[0]);
}

static const sgm_option arguments[] = {
    {.name = "epsilon",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 1,
     .default_value = 1e-5,
     .doc = "added to the variance, so that nothing is divided by 0",
     .live = true},
    {.name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only a gain for each feature, no bias"},
};

const sgm_layer_type sgm__layer_layer_norm = {
    .api = SGM_LAYER_API,
    .name = "layer_norm",
    .doc = "the last dimension with mean 0 and standard deviation 1, times gains, plus biases",
    .arguments = arguments,
    .argument_count = 2,
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_layer_norm,
    .formula = "y = scale (x - mean) / sqrt(variance + epsilon) + shift, over the last dimension",
    .example = "layer_norm",
};

const sgm_layer_type sgm__layer_rms_norm = {
    .api = SGM_LAYER_API,
    .name = "rms_norm",
    .doc = "the last dimension with mean square 1, times gains",
    .arguments = arguments,
    .argument_count = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward_rms_norm,
    .formula = "y = scale x / sqrt(mean of x^2 + epsilon), over the last dimension",
    .example = "rms_norm",
};

SGM__LAYER(unit_norm, "the last dimension with length 1", NULL, 0,
           .formula = "y = x / |x|, over the last dimension", .example = "unit_norm");
