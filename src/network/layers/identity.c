/* identity: the value itself, as a branch that goes round the others: add(identity, dense(16)) is a residual
 * connection. */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    (void)graph;
    (void)count;
    return inputs[0];
}

const sgm_layer_type sgm__layer_identity = {
    .api = SGM_LAYER_API,
    .name = "identity",
    .doc = "the value itself: a branch that goes round the others",
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = x",
    .example = "identity",
};
