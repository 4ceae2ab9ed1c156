/* dropout(0.2): forgets a share of the elements while training (Srivastava et al., 2014). */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    double rate = sgm_layer_number(call, "rate");
    if (!sgm_layer_is_training(call) || rate == 0)
        return inputs[0];
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    /* with all its digits, so that the share is the same in bfloat16 */
    sgm_value random = sgm__mixed_cast(graph, sgm_layer_random(call, graph, &shape), SGM_FLOAT32);
    sgm_value kept = sgm_greater_equal(graph, random, sgm_number(graph, rate));
    /* scaled, so that the expected value does not depend on whether the network trains */
    sgm_value scaled = sgm_multiply(graph, inputs[0], sgm_number(graph, 1 / (1 - rate)));
    return sgm_select(graph, kept, scaled, sgm_filled_like(graph, scaled, 0));
}

static const sgm_argument arguments[] = {
    {.name = "rate",
     .kind = SGM_ARGUMENT_NUMBER,
     .required = true,
     .least = 0,
     .most = 0.9999,
     .doc = "the share of elements that become 0",
     .live = true},
};

const sgm_layer_type sgm__layer_dropout = {
    .api = SGM_LAYER_API,
    .name = "dropout",
    .doc = "while training, sets a random share of the elements to 0 and scales the others by 1 / (1 - rate)",
    .arguments = arguments,
    .argument_count = 1,
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
};
