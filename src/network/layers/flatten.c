/* flatten: each example in one row, (batch, 28, 28) becomes (batch, 784).
 *
 * The elements stay in row-major order and in place. dense flattens by itself, so this layer is for values
 * that others take. */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    (void)count;
    return sgm_flatten(graph, inputs[0], 0);
}

const sgm_layer_type sgm__layer_flatten = {
    .api = SGM_LAYER_API,
    .name = "flatten",
    .doc = "each example in one row: (batch, 28, 28) becomes (batch, 784)",
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "(batch, a, b, ...) becomes (batch, a b ...)",
    .example = "flatten",
};
