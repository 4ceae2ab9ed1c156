/* slice: entries start, start + step, ... below stop, along one axis. Any type.
 *
 * A view: handlers move the pointer and multiply the stride. Its gradient is pad, which puts zeros where
 * entries were left out. Steps are above 0; flip goes backwards. */
#include "ops/rules.h"

/* How many entries there are: (stop - start) / step, rounded up. */
static int64_t slice_count(const int64_t *integers)
{
    int64_t length = integers[2] - integers[1], step = integers[3];
    return length / step + (length % step != 0);
}

/* integers: axis, start, stop, step, with 0 <= start <= stop <= size and a step above 0. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[128];
    const int64_t *integers = attributes->integers;
    SGM_TRY(sgm__want_integers(attributes, 4));
    SGM_TRY(sgm__want_axis(&inputs[0], integers[0]));
    int64_t size = inputs[0].shape.dims[integers[0]];
    if (integers[1] < 0 || integers[1] > integers[2] || integers[2] > size || integers[3] < 1)
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "%lld to %lld by %lld is not within axis %lld of %s: wants 0 <= start <= stop <= %lld "
            "and a step above 0 (flip goes backwards)",
            (long long)integers[1], (long long)integers[2], (long long)integers[3], (long long)integers[0],
            sgm_shape_text(&inputs[0].shape, text, sizeof text), (long long)size);
    *result = inputs[0];
    result->shape.dims[integers[0]] = slice_count(integers);
    return SGM_OK;
}

/* Only where no view is possible: copies every step-th entry. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const int64_t *integers = call->attributes->integers;
    sgm_array part = sgm__array_part(&call->inputs[0], (int32_t)integers[0], integers[1],
                                     slice_count(integers), integers[3]);
    sgm__array_move(&part, &call->output);
    return SGM_OK;
}

/* Zeros before, between and after, so that the result has the input's size. Without entries all are zeros. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    const int64_t *integers = call->attributes->integers;
    if (!call->wanted[0])
        return;
    int64_t size = sgm_value_type(graph, call->inputs[0]).shape.dims[integers[0]];
    int64_t count = slice_count(integers), step = integers[3], start = count > 0 ? integers[1] : size;
    int64_t covered = count > 0 ? (count - 1) * step + 1 : 0;
    int64_t between = count > 1 ? step - 1 : 0;
    gradients[0] =
        sgm_pad(graph, call->gradient, (int32_t)integers[0], start, size - start - covered, between);
}

const sgm_op sgm__op_slice = {SGM__OP("slice", 1, "a part of one axis, with a step"),
                              .flags = SGM_OP_VIEW | SGM_OP_STRIDED, .infer = infer, .gradient = gradient,
                              .forward = forward};

/* Negative numbers count from the end, as in Python; INT64_MAX as `stop` means the end. */
sgm_value sgm_slice(sgm_graph *graph, sgm_value x, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    if (!sgm__resolve_axis(graph, "slice", x, &axis))
        return (sgm_value){-1};
    int64_t size = sgm_value_type(graph, x).shape.dims[axis];
    start = start < 0 ? start + size : start;
    stop = stop == INT64_MAX ? size : stop < 0 ? stop + size : stop;
    return sgm__record_one(graph, &sgm__op_slice, x, &SGM__INTEGERS(axis, start, stop, step));
}
