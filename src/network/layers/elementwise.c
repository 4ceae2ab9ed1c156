/* elementwise(4, tanh): a weight for each element of an example, and one bias for all.
 *
 * y = activation(x * w + b), w of an example's shape, starting at 1, and b one number, starting at 0. No
 * element sees another one. */
#include "network/network_internal.h"

/* The argument `size` changes nothing: it is checked against the input, so that a text documents its sizes.
 */
static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_value_type(graph, inputs[0]).shape;
    char text[128];
    if (shape.rank < 1)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "elementwise: expected (batch, features), got one number: ()");
    sgm_shape example = sgm_shape_create(shape.rank - 1, shape.dims + 1), scalar = sgm_scalar_shape();
    int64_t size = sgm_layer_integer(call, "size");
    if (size != 0 && size != sgm_shape_elements(&example))
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "elementwise: its size is (%lld), but an example of its input is %s; leave the size out or "
            "make it fit",
            (long long)size, sgm_shape_text(&example, text, sizeof text));
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &example, 1, 1, true, "constant(1)");
    sgm_value y = sgm_multiply(graph, inputs[0], weights);
    if (!sgm_layer_flag(call, "no_bias")) {
        sgm_value bias = sgm_layer_parameter(call, graph, "bias", &scalar, 0, 0, true, "constant(0)");
        y = sgm_add(graph, y, bias);
    }
    return sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), y);
}

static const sgm_option arguments[] = {
    {.name = "size",
     .kind = SGM_KIND_INTEGER,
     .minimum = 1,
     .maximum = 1e9,
     .doc = "the number of elements of an example, which is checked; not needed"},
    {.name = "activation", .kind = SGM_KIND_TEXT, .doc = "applied to each element; none if not given"},
    {.name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only the weights"},
};

const sgm_layer_type sgm__layer_elementwise = {
    .api = SGM_LAYER_API,
    .name = "elementwise",
    .doc = "activation(x * weights + bias) with a weight for each element and one bias",
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = activation(w x + b), element by element",
    .example = "elementwise(relu)",
};
