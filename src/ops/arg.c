/* arg_max, arg_min: where the first largest or smallest element of an axis is, as int64.
 *
 * The axis goes away. NaN is before all numbers in both, so that it is seen. There is no gradient:
 * positions do not change with the numbers, but where elements are equal. argsort (sort.c) gives all
 * positions. */
#include "ops/rules.h"

/* integers: axis. Any type; the result is int64 without the axis. An empty axis has no position to give. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[128];
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    int32_t axis = (int32_t)attributes->integers[0];
    if (inputs[0].shape.dims[axis] == 0)
        return sgm_fail(SGM_ERROR_SHAPE, "axis %d of %s is empty: there is no largest or smallest element",
                        axis, sgm_shape_text(&inputs[0].shape, text, sizeof text));
    *result = (sgm_type){.dtype = SGM_INT64};
    for (int32_t i = 0; i < inputs[0].shape.rank; i++)
        if (i != axis)
            result->shape.dims[result->shape.rank++] = inputs[0].shape.dims[i];
    return SGM_OK;
}

/* One search along the axis for each position of the other axes; `rest` has those with their strides. */
static sgm_status forward(const sgm_kernel_call *call, bool largest)
{
    const sgm_array *x = &call->inputs[0];
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t size = x->shape.dims[axis], stride = x->strides[axis], *positions = call->output.data;
    sgm_array rest = sgm__array_pick(x, axis, 0);
    sgm__cursor cursor = sgm__cursor_make(&rest.shape, rest.strides);
    int64_t count = sgm_shape_elements(&rest.shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&cursor)) {
        positions[i] = 0;
        for (int64_t k = 1; k < size; k++)
            if (sgm__array_beats(x, cursor.offset + k * stride, cursor.offset + positions[i] * stride,
                                 largest))
                positions[i] = k;
    }
    return SGM_OK;
}

static sgm_status forward_max(const sgm_kernel_call *call)
{
    return forward(call, true);
}

static sgm_status forward_min(const sgm_kernel_call *call)
{
    return forward(call, false);
}

/* The first of equal elements is chosen, on every handler. */
const sgm_op sgm__op_arg_max = {SGM__OP("arg_max", 1, "position of the first largest element along an axis"),
                                .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward_max};
const sgm_op sgm__op_arg_min = {SGM__OP("arg_min", 1, "position of the first smallest element along an axis"),
                                .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward_min};

/* A negative axis counts from the end. */
static sgm_value record(sgm_graph *graph, const sgm_op *op, sgm_value x, int32_t axis)
{
    if (!sgm__resolve_axis(graph, op->name, x, &axis))
        return (sgm_value){-1};
    return sgm__record_one(graph, op, x, &SGM__INTEGERS(axis));
}

sgm_value sgm_arg_max(sgm_graph *graph, sgm_value x, int32_t axis)
{
    return record(graph, &sgm__op_arg_max, x, axis);
}

sgm_value sgm_arg_min(sgm_graph *graph, sgm_value x, int32_t axis)
{
    return record(graph, &sgm__op_arg_min, x, axis);
}
