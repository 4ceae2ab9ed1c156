/* output: makes a value an output of the network under this layer's name, and passes it on, so that a cost
 * can follow.
 *
 * network.c knows the type and adds its entries to the outputs; the layer itself records nothing. */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    (void)graph;
    (void)count;
    return inputs[0];
}

const sgm_layer_type sgm__layer_output = {
    .api = SGM_LAYER_API,
    .name = "output",
    .doc = "an output of the network under this layer's name; passes the value on, so that a cost can follow",
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "x itself, as one more result of the network",
    .example = "output(name=features)",
};
