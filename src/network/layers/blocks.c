/* What layers of sequences share. */
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
    bool matrix = shape->rank == 2;
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return sgm_layer_parameter(call, graph, full, shape, matrix ? shape->dims[0] : 0,
                               matrix ? shape->dims[1] : 0, true, initialiser);
}
