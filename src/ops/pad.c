/* pad: zeros before, after and between the entries of one axis. Any type; entries are copied bit by bit.
 *
 * An axis of n becomes before + n + (n - 1) between + after. Zeros between entries are what the gradient of
 * a slice with a step needs, and what a convolution's gradient with a stride looks like. slice is its
 * gradient, and it is the gradient of slice. */
#include "ops/rules.h"

/* Size of the padded axis; -1: too large. */
static int64_t padded_size(int64_t size, const int64_t *integers)
{
    int64_t gaps = 0, total = size;
    if (size > 1 && __builtin_mul_overflow(size - 1, integers[3], &gaps))
        return -1;
    if (__builtin_add_overflow(total, gaps, &total) || __builtin_add_overflow(total, integers[1], &total) ||
        __builtin_add_overflow(total, integers[2], &total))
        return -1;
    return total;
}

/* integers: axis, before, after, between. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[128];
    const int64_t *integers = attributes->integers;
    SGM_TRY(sgm__want_integers(attributes, 4));
    SGM_TRY(sgm__want_axis(&inputs[0], integers[0]));
    *result = inputs[0];
    if (integers[1] < 0 || integers[2] < 0 || integers[3] < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%lld before, %lld after and %lld between: none may be negative (slice removes)",
                        (long long)integers[1], (long long)integers[2], (long long)integers[3]);
    result->shape.dims[integers[0]] = padded_size(inputs[0].shape.dims[integers[0]], integers);
    if (sgm_shape_elements(&result->shape) < 0)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "axis %lld of %s with %lld before, %lld after and %lld between is too large",
                        (long long)integers[0], sgm_shape_text(&inputs[0].shape, text, sizeof text),
                        (long long)integers[1], (long long)integers[2], (long long)integers[3]);
    return SGM_OK;
}

/* Zeros everywhere, then the input into every (between + 1)-th place. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *y = &call->output;
    const int64_t *integers = call->attributes->integers;
    int32_t axis = (int32_t)integers[0];
    memset(y->data, 0, (size_t)sgm_shape_elements(&y->shape) * sgm_dtype_size(y->dtype));
    sgm_array part = sgm__array_part(y, axis, integers[1], x->shape.dims[axis], integers[3] + 1);
    sgm__array_move(x, &part);
    return SGM_OK;
}

/* The slice of the places that the input went to. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    const int64_t *integers = call->attributes->integers;
    if (!call->wanted[0])
        return;
    int64_t size = sgm_value_type(graph, call->inputs[0]).shape.dims[integers[0]];
    int64_t step = size > 1 ? integers[3] + 1 : 1;
    int64_t stop = size > 0 ? integers[1] + (size - 1) * step + 1 : integers[1];
    gradients[0] = sgm_slice(graph, call->gradient, (int32_t)integers[0], integers[1], stop, step);
}

const sgm_op sgm__op_pad = {SGM__OP("pad", 1, "zeros before, after and between the entries of one axis"),
                            .flags = SGM_OP_STRIDED, .infer = infer, .gradient = gradient,
                            .forward = forward};

/* No zeros at all record nothing. */
sgm_value sgm_pad(sgm_graph *graph, sgm_value x, int32_t axis, int64_t before, int64_t after, int64_t between)
{
    if (!sgm__resolve_axis(graph, "pad", x, &axis))
        return (sgm_value){-1};
    if (before == 0 && after == 0 && between == 0)
        return x;
    return sgm__record_one(graph, &sgm__op_pad, x, &SGM__INTEGERS(axis, before, after, between));
}
