/* dense(100, relu): every output is a weighted sum of all inputs, plus a bias.
 *
 * y = activation(x W + b), x (batch, features), W (features, size), b (size). An example of several
 * dimensions is flattened, unless time_distributed: then x (..., features) is taken as rows, and the same W
 * serves at each place. */
#include "network/network_internal.h"

/* Sizes of features are known only here, from what comes in, so the weights' shape is, too. */
static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value x = inputs[0];
    sgm_shape shape = sgm_value_type(graph, x).shape;
    if (shape.rank < 1)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "dense: expected (batch, features), got one number: ()");
    bool time_distributed = sgm_layer_flag(call, "time_distributed") && shape.rank > 1;
    if (shape.rank != 2)
        x = sgm_flatten(graph, x, time_distributed ? shape.rank - 2 : 0);
    int64_t size = sgm_layer_integer(call, "size");
    int64_t features = sgm_value_type(graph, x).shape.dims[1];
    sgm_shape weights_shape = sgm_shape_of(features, size), biases_shape = sgm_shape_of(size);
    sgm_value weights = sgm_layer_matrix(call, graph, "weights", &weights_shape, features, size, "glorot");
    /* Recorded before the product, so that no cast lies between product and sum, which then fuse. */
    sgm_value biases = {-1};
    if (!sgm_layer_flag(call, "no_bias"))
        biases = sgm_layer_parameter(call, graph, "biases", &biases_shape, 0, 0, true, "constant(0)");
    sgm_value y = sgm_layer_matmul(call, graph, x, weights);
    if (sgm_value_exists(biases))
        y = sgm_add(graph, y, biases);
    y = sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), y);
    if (!time_distributed || shape.rank == 2)
        return y;
    shape.dims[shape.rank - 1] = size;
    return sgm_reshape(graph, y, &shape);
}

static const sgm_option arguments[] = {
    {.name = "size",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1e9,
     .doc = "the number of outputs of an example"},
    {.name = "activation", .kind = SGM_KIND_TEXT, .doc = "applied to the sums; none if not given"},
    {.name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only the weighted sums, no biases"},
    {.name = "time_distributed",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "acts on the last dimension alone, with the same weights at each place of the others"},
};

const sgm_layer_type sgm__layer_dense = {
    .api = SGM_LAYER_API,
    .name = "dense",
    .doc = "activation(x * weights + biases); an example of several dimensions is flattened first, unless "
           "time_distributed",
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = activation(x W + b)",
    .example = "dense(100, relu)",
};
