/* add(a, b, ...) and concatenate(a, b, ...): several branches become one value.
 *
 * These are the types with SGM_LAYER_JOIN: their arguments in the text are chains, which all start from the
 * same value (walk_branches in src/network/network.c). Shapes are never broadcast, since that would hide
 * mistakes. */
#include "network/network_internal.h"

/* More than any network needs; bounds what a short text can ask for. */
#define MAXIMUM_BRANCHES 1000

/* Shapes must be equal, but for dimension `except` (-1: none). */
static bool check_shapes(sgm_graph *graph, const char *operation, const sgm_value *inputs, int32_t count,
                         int32_t except)
{
    sgm_shape first = sgm_value_type(graph, inputs[0]).shape;
    for (int32_t i = 1; i < count; i++) {
        sgm_shape shape = sgm_value_type(graph, inputs[i]).shape, compared = shape;
        if (except >= 0 && except < shape.rank)
            compared.dims[except] = first.dims[except];
        char a[128], b[128];
        if (sgm_shape_equal(&first, &compared))
            continue;
        sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: branch 1 is %s, but branch %d is %s; %s must be equal",
                       operation, sgm_shape_text(&first, a, sizeof a), i + 1,
                       sgm_shape_text(&shape, b, sizeof b),
                       except < 0 ? "they" : "all but the last dimension");
        return false;
    }
    return true;
}

static sgm_value add(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    if (!check_shapes(graph, "add", inputs, count, -1))
        return (sgm_value){-1};
    sgm_value sum = inputs[0];
    for (int32_t i = 1; i < count; i++)
        sum = sgm_add(graph, sum, inputs[i]);
    return sum;
}

/* Along the last axis: the features, or the width of images. */
static sgm_value concatenate(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    int32_t last = sgm_value_type(graph, inputs[0]).shape.rank - 1;
    if (last < 1)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "concatenate: branches must have features beside the batch");
    if (!check_shapes(graph, "concatenate", inputs, count, last))
        return (sgm_value){-1};
    return count == 1 ? inputs[0] : sgm_concatenate(graph, inputs, count, last);
}

const sgm_layer_type sgm__layer_add = {
    .api = SGM_LAYER_API,
    .flags = SGM_LAYER_JOIN,
    .name = "add",
    .doc = "the sum of its branches, which have one shape",
    .min_inputs = 1,
    .max_inputs = MAXIMUM_BRANCHES,
    .forward = add,
    .formula = "y = a + b + ...",
    .example = "add(identity, dense(10))",
};

const sgm_layer_type sgm__layer_concatenate = {
    .api = SGM_LAYER_API,
    .flags = SGM_LAYER_JOIN,
    .name = "concatenate",
    .doc = "its branches side by side along the last dimension",
    .min_inputs = 1,
    .max_inputs = MAXIMUM_BRANCHES,
    .forward = concatenate,
    .formula = "y = (a, b, ...), one behind the other",
    .example = "concatenate(dense(10), dense(5))",
};
