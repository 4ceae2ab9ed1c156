/* learned_tokens: vectors that are learnt, in front of a sequence (batch, time, features), such as the one
 * whose result a vision transformer classifies by (Dosovitskiy et al., 2021). */
#include "network/network_internal.h"

/* The weights (count, features) are the first steps of each example. */
static sgm_value forward_learned_tokens(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                        int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    int64_t tokens = sgm_layer_integer(call, "count");
    char text[128];
    if (shape.rank != 3)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "learned_tokens: expected a sequence (batch, time, features), got %s",
                              sgm_shape_text(&shape, text, sizeof text));
    if (sgm__layer_refuses_step(call, graph, "it puts steps in front of the first one"))
        return (sgm_value){-1};
    sgm_shape own = sgm_shape_of(tokens, shape.dims[2]),
              all = sgm_shape_of(shape.dims[0], tokens, shape.dims[2]);
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &own, 0, 0, true, "gaussian(0.02)");
    sgm_value lengths = sgm_layer_lengths(call);
    if (sgm_value_exists(lengths))
        sgm__layer_set_lengths(call, sgm_add(graph, lengths, sgm_number(graph, (double)tokens)));
    return sgm_concatenate(graph, (const sgm_value[]){sgm_broadcast(graph, weights, &all), inputs[0]}, 2, 1);
}

static const sgm_option arguments[] = {{.name = "count",
                                        .kind = SGM_KIND_INTEGER,
                                        .minimum = 1,
                                        .maximum = 1e6,
                                        .default_value = 1,
                                        .doc = "how many vectors"}};

SGM__LAYER(learned_tokens, "vectors that are learnt, in front of a sequence", arguments,
           SGM__COUNT(arguments), .formula = "y = W, then x[0], x[1], ...", .example = "learned_tokens(1)");
