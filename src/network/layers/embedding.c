/* embedding(65, 128): a vector of its own for each number that may come in.
 *
 * A gather of rows from weights (vocabulary, size): (batch, time) becomes (batch, time, size). The gradient
 * is a scatter_add, zero in rows that no example used; `sparse` makes optimisers leave such rows alone, with
 * their moments. tied_dense (positions.c) uses the same weights in the other direction. Numbers out of range
 * are refused when they are fed (indices.c). */
#include "network/network_internal.h"

/* The weights start with standard deviation 1, as PyTorch's. */
static sgm_value forward(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    int64_t vocabulary = sgm_layer_integer(call, "vocabulary"), size = sgm_layer_integer(call, "size");
    sgm_shape shape = sgm_shape_of(vocabulary, size);
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &shape, vocabulary, size, true,
                                            "gaussian(standard_deviation=1)");
    if (sgm_layer_flag(call, "sparse"))
        sgm__layer_sparse(call);
    return sgm_gather(graph, weights, sgm__layer_index(call, graph, inputs[0], vocabulary - 1), 0);
}

static const sgm_option arguments[] = {
    {.name = "vocabulary",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1 << 24,
     .doc = "how many numbers there are, from 0"},
    {.name = "size",
     .kind = SGM_KIND_INTEGER,
     .required = true,
     .minimum = 1,
     .maximum = 1e9,
     .doc = "the elements of a number's vector"},
    {.name = "sparse",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "only rows that were used are updated, also where the optimiser would move the others"},
};

const sgm_layer_type sgm__layer_embedding = {
    .api = SGM_LAYER_API,
    .name = "embedding",
    .doc =
        "a vector for each number: (batch, time) becomes (batch, time, size); others than 0 to vocabulary - "
        "1 are an error",
    .arguments = arguments,
    .argument_count = sizeof arguments / sizeof arguments[0],
    .min_inputs = 1,
    .max_inputs = 1,
    .forward = forward,
    .formula = "y = W[i] for each index i",
    .example = "embedding(1000, 64)",
};
