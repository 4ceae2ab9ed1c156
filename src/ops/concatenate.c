/* concatenate: arrays one after the other along an axis, (..., a, ...) and (..., b, ...) to (..., a + b,
 * ...). Any type; elements are copied bit by bit.
 *
 * The gradient of each input is its slice of the result's gradient. Where it can, a plan makes the inputs in
 * the memory of the result (src/handlers/plan/plan_buffers.c), and nothing is copied. */
#include "ops/rules.h"

/* `x` fits behind `first`: the same type, rank and dimensions but for the axis. */
static sgm_status check_fit(const sgm_type *first, const sgm_type *x, int32_t number, int64_t axis)
{
    char a[SGM__TYPE_TEXT], b[SGM__TYPE_TEXT];
    sgm_shape alike = x->shape;
    alike.dims[axis] = first->shape.dims[axis];
    if (x->dtype != first->dtype)
        return sgm_fail(SGM_ERROR_TYPE, "wants equal types, but input 0 is %s and input %d is %s: cast it",
                        sgm__type_text(first, a), number, sgm__type_text(x, b));
    if (x->shape.rank != first->shape.rank || !sgm_shape_equal(&alike, &first->shape))
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants shapes that are equal but for axis %lld, but input 0 is %s and input %d is %s",
                        (long long)axis, sgm__type_text(first, a), number, sgm__type_text(x, b));
    return SGM_OK;
}

/* integers: axis. Any type; sizes along the axis add up. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    int64_t axis = attributes->integers[0];
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_axis(&inputs[0], axis));
    *result = inputs[0];
    for (int32_t i = 1; i < count; i++) {
        SGM_TRY(check_fit(&inputs[0], &inputs[i], i, axis));
        if (__builtin_add_overflow(result->shape.dims[axis], inputs[i].shape.dims[axis],
                                   &result->shape.dims[axis]))
            return sgm_fail(SGM_ERROR_SHAPE, "axis %lld would be too large", (long long)axis);
    }
    return SGM_OK;
}

/* Each input is moved to its part of the result. */
static sgm_status forward(const sgm_kernel_call *call)
{
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t start = 0;
    for (int32_t i = 0; i < call->input_count; i++) {
        int64_t size = call->inputs[i].shape.dims[axis];
        sgm_array part = sgm__array_part(&call->output, axis, start, size, 1);
        sgm__array_move(&call->inputs[i], &part);
        start += size;
    }
    return SGM_OK;
}

/* Each input gets its slice of the gradient. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t start = 0;
    for (int32_t i = 0; i < call->input_count; i++) {
        int64_t stop = start + sgm_value_type(graph, call->inputs[i]).shape.dims[axis];
        if (call->wanted[i])
            gradients[i] = sgm_slice(graph, call->gradient, axis, start, stop, 1);
        start = stop;
    }
}

const sgm_op sgm__op_concatenate = {.api = SGM_OP_API,
                                    .flags = SGM_OP_STRIDED,
                                    .name = "concatenate",
                                    .doc = "arrays one after the other along an axis",
                                    .min_inputs = 1,
                                    .max_inputs = INT16_MAX,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .forward = forward};

/* A negative axis counts from the end. One value is allowed and gives itself. */
sgm_value sgm_concatenate(sgm_graph *graph, const sgm_value *values, int32_t count, int32_t axis)
{
    if (count < 1)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "concatenate: wants at least one value");
    if (!sgm__resolve_axis(graph, "concatenate", values[0], &axis))
        return (sgm_value){-1};
    return sgm_record(graph, &sgm__op_concatenate, values, count, &SGM__INTEGERS(axis));
}
