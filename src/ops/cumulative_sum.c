/* cumulative_sum: each element becomes the sum up to and with itself along an axis, from either end.
 *
 * y[k] = sum of x[i] for i <= k, or for i >= k in reverse. Sums are in double, of int64 exactly. From a NaN
 * on, all sums are NaN. The gradient is the same sum from the other end: an element has a part in all sums
 * that come behind it. */
#include "ops/rules.h"

/* integers: axis, reverse. Any type but bool; the result has the input's type and shape. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_number(&inputs[0]));
    SGM_TRY(sgm__want_integers(attributes, 2));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    *result = inputs[0];
    return SGM_OK;
}

/* One line along the axis, element k at first + k * stride. */
static void sum_line(const sgm_array *x, int64_t first, int64_t stride, const sgm_array *y, int64_t y_first,
                     int64_t y_stride, int64_t size)
{
    if (x->dtype == SGM_INT64) {
        uint64_t sum = 0; /* wraps around like machine arithmetic */
        for (int64_t k = 0; k < size; k++) {
            sum += (uint64_t)sgm__array_index(x, first + k * stride);
            memcpy(sgm__array_at(y, y_first + k * y_stride), &sum, sizeof sum);
        }
        return;
    }
    double sum = 0;
    for (int64_t k = 0; k < size; k++) {
        sum += sgm_array_load(x, first + k * stride);
        sgm_array_store(y, y_first + k * y_stride, sum);
    }
}

/* One line for each position of the other axes; in reverse a line begins at its end with negative strides. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *y = &call->output;
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t size = x->shape.dims[axis], stride = x->strides[axis], y_stride = y->strides[axis];
    if (sgm_shape_elements(&x->shape) == 0)
        return SGM_OK;
    sgm_array x_rest = sgm__array_pick(x, axis, 0), y_rest = sgm__array_pick(y, axis, 0);
    sgm__cursor read = sgm__cursor_make(&x_rest.shape, x_rest.strides);
    sgm__cursor write = sgm__cursor_make(&y_rest.shape, y_rest.strides);
    int64_t lines = sgm_shape_elements(&x_rest.shape);
    for (int64_t i = 0; i < lines; i++) {
        if (call->attributes->integers[1] != 0)
            sum_line(x, read.offset + (size - 1) * stride, -stride, y, write.offset + (size - 1) * y_stride,
                     -y_stride, size);
        else
            sum_line(x, read.offset, stride, y, write.offset, y_stride, size);
        sgm__cursor_next(&read);
        sgm__cursor_next(&write);
    }
    return SGM_OK;
}

/* The gradient of element k is the sum of g over the elements whose sums it is part of: from k to the other
 * end. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    const int64_t *integers = call->attributes->integers;
    if (call->wanted[0])
        gradients[0] = sgm_cumulative_sum(graph, call->gradient, (int32_t)integers[0], integers[1] == 0);
}

const sgm_op sgm__op_cumulative_sum = {
    SGM__OP("cumulative_sum", 1, "sums up to and with each element along an axis"), .flags = SGM_OP_STRIDED,
    .infer = infer, .gradient = gradient, .forward = forward};

sgm_value sgm_cumulative_sum(sgm_graph *graph, sgm_value x, int32_t axis, bool reverse)
{
    if (!sgm__resolve_axis(graph, "cumulative_sum", x, &axis))
        return (sgm_value){-1};
    return sgm__record_one(graph, &sgm__op_cumulative_sum, x, &SGM__INTEGERS(axis, reverse));
}
