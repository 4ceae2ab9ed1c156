/* reshape: the same elements in row-major order, in another shape; flatten to two dimensions. Any type.
 *
 * A view of contiguous memory; otherwise the elements are packed. As elements keep their order, the gradient
 * is reshaped back. A dimension of -1 is computed while recording, so the instruction itself has a complete
 * shape. */
#include "ops/rules.h"

/* integers: the result's dimensions, all known. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char from[128], to[128];
    result->dtype = inputs[0].dtype;
    SGM_TRY(sgm__read_shape(attributes, 0, &result->shape));
    int64_t had = sgm_shape_elements(&inputs[0].shape), gets = sgm_shape_elements(&result->shape);
    if (had != gets)
        return sgm_fail(SGM_ERROR_SHAPE, "%s has %lld elements and cannot become %s, which has %lld",
                        sgm_shape_text(&inputs[0].shape, from, sizeof from), (long long)had,
                        sgm_shape_text(&result->shape, to, sizeof to), (long long)gets);
    return SGM_OK;
}

/* Only where no view is possible, such as behind a permute: packs the elements in row-major order. */
static sgm_status forward(const sgm_kernel_call *call)
{
    sgm__array_pack(&call->inputs[0], &call->output);
    return SGM_OK;
}

static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_shape shape = sgm_value_type(graph, call->inputs[0]).shape;
    if (call->wanted[0])
        gradients[0] = sgm_reshape(graph, call->gradient, &shape);
}

const sgm_op sgm__op_reshape = {SGM__OP("reshape", 1, "the same elements in another shape"),
                                .flags = SGM_OP_VIEW | SGM_OP_STRIDED, .infer = infer, .gradient = gradient,
                                .forward = forward};

/* Replaces a dimension of -1 by what the others leave for it. False and the graph's failure if there are two
 * of them, or if the others do not divide the number of elements. */
static bool complete(sgm_graph *graph, const sgm_shape *old, sgm_shape *shape)
{
    char from[128], to[128];
    int32_t open = -1;
    sgm_shape rest = *shape;
    for (int32_t i = 0; i < shape->rank && i < SGM_MAX_RANK; i++)
        if (shape->dims[i] == -1) {
            rest.dims[i] = 1;
            if (open < 0)
                open = i;
            else
                rest.dims[i] = -1; /* a second one */
        }
    if (open < 0)
        return true;
    int64_t known = sgm_shape_elements(&rest), elements = sgm_shape_elements(old);
    if (known <= 0 || elements % known != 0) {
        sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "reshape: %s cannot become %s: one dimension may be -1, and the others must divide the "
            "%lld elements",
            sgm_shape_text(old, from, sizeof from), sgm_shape_text(shape, to, sizeof to),
            (long long)elements);
        return false;
    }
    shape->dims[open] = elements / known;
    return true;
}

/* A shape that is there already records nothing. */
sgm_value sgm_reshape(sgm_graph *graph, sgm_value x, const sgm_shape *shape)
{
    if (!sgm__can_record(graph, "reshape", x) || !sgm__rank_fits(graph, "reshape", shape))
        return (sgm_value){-1};
    sgm_shape old = sgm_value_type(graph, x).shape, target = *shape;
    if (!complete(graph, &old, &target))
        return (sgm_value){-1};
    if (sgm_shape_equal(&old, &target))
        return x;
    sgm_attributes attributes = {0};
    sgm__add_shape(&attributes, &target);
    return sgm__record_one(graph, &sgm__op_reshape, x, &attributes);
}

/* Axes up to and with `axis` become the first dimension, the others the second. */
sgm_value sgm_flatten(sgm_graph *graph, sgm_value x, int32_t axis)
{
    if (!sgm__resolve_axis(graph, "flatten", x, &axis))
        return (sgm_value){-1};
    sgm_shape old = sgm_value_type(graph, x).shape;
    sgm_shape first = sgm_shape_create(axis + 1, old.dims);
    sgm_shape rest = sgm_shape_create(old.rank - axis - 1, old.dims + axis + 1);
    sgm_shape flat = sgm_shape_of(sgm_shape_elements(&first), sgm_shape_elements(&rest));
    return sgm_reshape(graph, x, &flat);
}
