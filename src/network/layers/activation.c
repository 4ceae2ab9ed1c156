/* activation(relu): an activation as a layer of its own, for any shape (batch, ...).
 *
 * The layers that sum (dense, convolution, ...) have an argument of the same name; this layer is for other
 * places. Which names there are is decided by arguments.c: all operations with the flag SGM_OP_ACTIVATION. */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), inputs[0]);
}

static const sgm_option arguments[] = {
    {.name = "activation", .kind = SGM_KIND_TEXT, .required = true, .doc = "its name, for example relu"},
};

const sgm_layer_type sgm__layer_activation = {
    .api = SGM_LAYER_API,
    .name = "activation",
    .doc = "an activation applied to each element",
    .arguments = arguments,
    .argument_count = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = activation(x)",
    .example = "activation(relu)",
};
