/* dropout(0.2): forgets a share of the elements while training (Srivastava et al., 2014).
 *
 * y = x * mask / (1 - rate), a new mask in each run (sgm__layer_drop in blocks.c); while predicting y = x. */
#include "network/layers/blocks.h"

static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    return sgm__layer_drop(call, graph, inputs[0], sgm_layer_number(call, "rate"),
                           sgm_layer_integer(call, "seed"));
}

static const sgm_option arguments[] = {
    {.name = "rate",
     .kind = SGM_KIND_NUMBER,
     .required = true,
     .minimum = 0,
     .maximum = 0.9999,
     .doc = "the share of elements that become 0",
     .live = true},
    {.name = "seed",
     .kind = SGM_KIND_INTEGER,
     .maximum = 9e15,
     .doc =
         "of its own random numbers, which then depend on neither the training's seed nor other layers; 0: "
         "the training's"},
};

const sgm_layer_type sgm__layer_dropout = {
    .api = SGM_LAYER_API,
    .name = "dropout",
    .doc = "while training, sets a random share of the elements to 0 and scales the others by 1 / (1 - rate)",
    .arguments = arguments,
    .argument_count = 2,
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = x / (1 - rate) with probability 1 - rate, else 0; x itself outside of training",
    .example = "dropout(0.5)",
};
