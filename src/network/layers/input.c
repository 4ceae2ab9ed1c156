/* input(28, 28): a section of the data; its name's, or "inputs". */
#include "network/network_internal.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)inputs;
    (void)count;
    sgm_shape record = sgm_layer_shape(call, "shape");
    bool named = call->entry->layer->name != NULL;
    return sgm_layer_section(call, graph, named ? sgm_layer_name(call) : "inputs", &record);
}

static const sgm_argument arguments[] = {
    {.name = "shape",
     .kind = SGM_ARGUMENT_SHAPE,
     .required = true,
     .least = 1,
     .most = 1e9,
     .doc = "the dimensions of one record, without the batch"},
};

const sgm_layer_type sgm__layer_input = {
    .api = SGM_LAYER_API,
    .name = "input",
    .doc = "records of the data: the section of the layer's name, or \"inputs\" if it has none",
    .arguments = arguments,
    .argument_count = 1,
    .min_inputs = 0,
    .max_inputs = 0,
    .forward = forward,
};
