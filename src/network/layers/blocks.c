/* Functions that layers of sequences share: which steps count, parameters with a prefix, dropout.
 *
 * A layer made of several parts (attention.c, norms.c, heads.c) names the parameters of each part with a
 * prefix, such as "hidden_norm_gains", so that one layer can have two of a kind. */
#include "network/layers/blocks.h"

#include <stdio.h>

sgm_value sgm__layer_steps(sgm_graph *graph, sgm_value lengths, int64_t time)
{
    int64_t batch = sgm_value_type(graph, lengths).shape.dims[0];
    sgm_shape line = sgm_shape_of(1, time), column = sgm_shape_of(batch, 1);
    return sgm_less(graph, sgm_iota(graph, SGM_INT64, &line, 1), sgm_reshape(graph, lengths, &column));
}

sgm_value sgm__layer_prefixed(sgm_layer_call *call, sgm_graph *graph, const char *prefix, const char *name,
                              const sgm_shape *shape, const char *initialiser)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return shape->rank == 2
               ? sgm_layer_matrix(call, graph, full, shape, shape->dims[0], shape->dims[1], initialiser)
               : sgm_layer_parameter(call, graph, full, shape, 0, 0, true, initialiser);
}

/* Numbers of a layer's own seed. The network counts a stream all the same, as the step has to go on. */
static sgm_value own_random(sgm_layer_call *call, sgm_graph *graph, const sgm_shape *shape, int64_t seed)
{
    sgm_shape scalar = sgm_scalar_shape();
    sgm_tensor *number = sgm_tensor_create_from(SGM_INT64, &scalar, &seed);
    if (number == NULL)
        return sgm__record_fail(graph);
    sgm_value own = sgm_constant(graph, number), step = sgm_state(graph, "random.step", SGM_INT64, &scalar);
    sgm_tensor_free(number);
    call->network->streams++;
    return sgm_random_uniform(graph, own, step, 0, SGM_FLOAT32, shape);
}

sgm_value sgm__layer_drop(sgm_layer_call *call, sgm_graph *graph, sgm_value x, double rate, int64_t seed)
{
    if (!sgm_layer_is_training(call) || rate == 0)
        return x;
    sgm_shape shape = sgm_value_type(graph, x).shape;
    /* The draw is compared with all its digits: in bfloat16 it would be rounded, and the share of zeros
     * would not be `rate`. */
    sgm_value random = seed != 0 ? own_random(call, graph, &shape, seed)
                                 : sgm__mixed_cast(graph, sgm_layer_random(call, graph, &shape), SGM_FLOAT32);
    sgm_value kept = sgm_greater_equal(graph, random, sgm_live_number(graph, rate));
    /* Scaling keeps the expected value the same as when the network predicts, where nothing is dropped. */
    sgm_value scaled = sgm_multiply(graph, x, sgm_live_number(graph, 1 / (1 - rate)));
    return sgm_select(graph, kept, scaled, sgm_filled_like(graph, scaled, 0));
}
