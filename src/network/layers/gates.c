/* prelu, and layers that halve their features: glu, swiglu, geglu. For (batch, features) or (batch,
 * channels, ...).
 *
 * The flag `channels` makes the first dimension of an example (axis 1) the one that has slopes or is halved;
 * otherwise prelu has one slope, and the last axis is halved. Activations without parameters are
 * activation.c. */
#include "network/network_internal.h"

/* x where x > 0, else slope * x, with slopes that are learnt from 0.25 on (He et al., 2015). Parameters:
 * "slopes" (1) or (channels). */
static sgm_value forward_prelu(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value x = inputs[0];
    sgm_shape shape = sgm_value_type(graph, x).shape, line = sgm_shape_of(1), wide = shape;
    bool channels = sgm_layer_flag(call, "channels");
    if (shape.rank < 2)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "prelu: expected (batch, features), got one number for "
                              "each example");
    if (channels)
        line.dims[0] = shape.dims[1];
    for (int32_t i = 0; i < shape.rank; i++)
        wide.dims[i] = i == 1 ? line.dims[0] : 1;
    sgm_value slopes = sgm_layer_parameter(call, graph, "slopes", &line, 0, 0, true, "constant(0.25)");
    sgm_value below = sgm_multiply(graph, x, sgm_reshape(graph, slopes, &wide));
    return sgm_select(graph, sgm_greater(graph, x, sgm_number(graph, 0)), x, below);
}

/* first half * activation(second half) along the axis (Dauphin et al., 2016; Shazeer, 2020): the result has
 * half the features. */
static sgm_value halve(sgm_layer_call *call, sgm_graph *graph, sgm_value x, const char *activation)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    int32_t axis = sgm_layer_flag(call, "channels") ? 1 : shape.rank - 1;
    char text[128];
    if (shape.rank < 2 || shape.dims[axis] % 2 != 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "%s: expected (batch, ..., features) with two halves of features, got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    int64_t half = shape.dims[axis] / 2;
    sgm_value first = sgm_slice(graph, x, axis, 0, half, 1);
    sgm_value second = sgm_slice(graph, x, axis, half, 2 * half, 1);
    return sgm_multiply(graph, first, sgm_layer_activate(call, graph, activation, second));
}

static sgm_value forward_glu(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return halve(call, graph, inputs[0], sgm_layer_text(call, "activation"));
}

static sgm_value forward_swiglu(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                int32_t count)
{
    (void)count;
    return halve(call, graph, inputs[0], "silu");
}

static sgm_value forward_geglu(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return halve(call, graph, inputs[0], "gelu");
}

#define CHANNELS                                                                                             \
    {                                                                                                        \
        .name = "channels", .kind = SGM_KIND_BOOLEAN, .doc = "halves the first dimension of an example"      \
    }

static const sgm_option prelu_arguments[] = {
    {.name = "channels",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "a slope for each channel, the first dimension of an example; otherwise one for all"},
};
static const sgm_option glu_arguments[] = {
    {.name = "activation", .kind = SGM_KIND_TEXT, .default_text = "sigmoid", .doc = "of the second half"},
    CHANNELS,
};
static const sgm_option halving_arguments[] = {CHANNELS};

SGM__LAYER(prelu, "x where it is above 0, else x times a slope that is learnt", prelu_arguments,
           SGM__COUNT(prelu_arguments), .formula = "y = max(x, 0) + a min(x, 0), with a learnt",
           .example = "prelu");
SGM__LAYER(glu, "the first half of the features times an activation of the second one", glu_arguments,
           SGM__COUNT(glu_arguments), .formula = "y = a activation(b), (a, b) = the halves of x",
           .example = "glu");
SGM__LAYER(swiglu, "the first half of the features times the silu of the second one", halving_arguments,
           SGM__COUNT(halving_arguments), .formula = "y = a silu(b), (a, b) = the halves of x",
           .example = "swiglu");
SGM__LAYER(geglu, "the first half of the features times the gelu of the second one", halving_arguments,
           SGM__COUNT(halving_arguments), .formula = "y = a gelu(b), (a, b) = the halves of x",
           .example = "geglu");
