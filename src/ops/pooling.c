/* max_pooling and average_pooling over windows of the last one or two axes, with their gradients.
 *
 * max_pooling_pick(x, v) gives from each window the element of v where that of x is the largest, and
 * max_pooling_gradient(x, g) sends g there: each is the other's gradient by its second operand, and
 * neither changes with x but where elements are equal. The average is linear, so it and its gradient are
 * each other's. Windows are read and checked by ops/window.c. The loops here are the reference;
 * src/handlers/cpu/kernels and the devices have their own. */
#include "ops/window.h"

#include <math.h>

/* --- loops over windows --- */

/* The element of x that a window takes, as an offset from the beginning of its plane: the first largest, or
 * the last NaN; -1 if the window sees only padding, which is never the largest. `plane` is the offset of one
 * channel of one example. */
static int64_t find_largest(const sgm_array *x, int64_t plane, const sgm__window *w, int64_t row,
                            int64_t column)
{
    sgm__window_span down = sgm__window_at(w, 0, row), along = sgm__window_at(w, 1, column);
    int64_t best = -1;
    double largest = -INFINITY;
    for (int64_t i = down.first; i < down.last; i++)
        for (int64_t k = along.first; k < along.last; k++) {
            int64_t at = (down.origin + i * w->dilation[0]) * w->in[1] + along.origin + k * w->dilation[1];
            double value = sgm_array_load(x, plane + at);
            if (best < 0 || value > largest || isnan(value)) {
                best = at;
                largest = value;
            }
        }
    return best;
}

/* y = the element of `from` where x's window is largest, for every window. A window of padding alone gives
 * -infinity as a maximum, and 0 of another array. */
static void pick(const sgm_array *x, const sgm_array *from, const sgm_array *y, const sgm__window *w)
{
    int64_t number = 0, plane = w->in[0] * w->in[1];
    for (int64_t p = 0; p < w->batch * w->channels; p++)
        for (int64_t i = 0; i < w->out[0]; i++)
            for (int64_t k = 0; k < w->out[1]; k++) {
                int64_t best = find_largest(x, p * plane, w, i, k);
                double value = x == from ? -INFINITY : 0;
                sgm_array_store(y, number++, best < 0 ? value : sgm_array_load(from, p * plane + best));
            }
}

static void clear(const sgm_array *y)
{
    memset(y->data, 0, (size_t)sgm_shape_elements(&y->shape) * sgm_dtype_size(y->dtype));
}

/* y[offset] += value. */
static void add(const sgm_array *y, int64_t offset, double value)
{
    sgm_array_store(y, offset, sgm_array_load(y, offset) + value);
}

/* --- maximum --- */

/* x (batch, channels, [height,] width) of a float type; the result has as many places as the window has
 * positions. */
static sgm_status infer_max(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count;
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&inputs[0], attributes, &w));
    *result = (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.batch, w.channels, w.out)};
    return SGM_OK;
}

static sgm_status forward_max(const sgm_kernel_call *call)
{
    sgm_type x = sgm__window_type(&call->inputs[0]);
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&x, call->attributes, &w));
    pick(&call->inputs[0], &call->inputs[0], &call->output, &w);
    return SGM_OK;
}

/* All operations of the maximum have the same attributes. */
static sgm_value record(sgm_graph *graph, const sgm_op *op, sgm_value x, sgm_value other,
                        const sgm_attributes *attributes)
{
    return sgm_record(graph, op, (sgm_value[]){x, other}, 2, attributes);
}

/* The gradient goes to the element that was taken; to the first one of equal elements. */
static void gradient_max(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] =
            record(graph, &sgm__op_max_pooling_gradient, call->inputs[0], call->gradient, call->attributes);
}

const sgm_op sgm__op_max_pooling = {SGM__OP("max_pooling", 1, "the largest element of each window"),
                                    .infer = infer_max, .gradient = gradient_max, .forward = forward_max};

/* x and v have one type; the result is that of the pooling. */
static sgm_status infer_pick(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    SGM_TRY(sgm__want_equal(&inputs[0], &inputs[1]));
    return infer_max(inputs, count, attributes, result);
}

static sgm_status forward_pick(const sgm_kernel_call *call)
{
    sgm_type x = sgm__window_type(&call->inputs[0]);
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&x, call->attributes, &w));
    pick(&call->inputs[0], &call->inputs[1], &call->output, &w);
    return SGM_OK;
}

static void gradient_pick(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[1])
        gradients[1] =
            record(graph, &sgm__op_max_pooling_gradient, call->inputs[0], call->gradient, call->attributes);
}

const sgm_op sgm__op_max_pooling_pick = {
    SGM__OP("max_pooling_pick", 2, "from each window the element where the other operand's is the largest"),
    .infer = infer_pick, .gradient = gradient_pick, .forward = forward_pick};

/* Inputs: x and the gradient of its pooling; the result has x's type. */
static sgm_status infer_max_gradient(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                     sgm_type *result)
{
    sgm_type pooled;
    SGM_TRY(infer_max(inputs, count, attributes, &pooled));
    SGM_TRY(sgm__want_equal(&pooled, &inputs[1]));
    *result = inputs[0];
    return SGM_OK;
}

/* Windows may overlap, so gradients of several windows add up in one element. */
static sgm_status forward_max_gradient(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *gradient = &call->inputs[1];
    sgm_type type = sgm__window_type(x);
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&type, call->attributes, &w));
    int64_t number = 0, plane = w.in[0] * w.in[1];
    clear(&call->output);
    for (int64_t p = 0; p < w.batch * w.channels; p++)
        for (int64_t i = 0; i < w.out[0]; i++)
            for (int64_t k = 0; k < w.out[1]; k++, number++) {
                int64_t best = find_largest(x, p * plane, &w, i, k);
                if (best >= 0)
                    add(&call->output, p * plane + best, sgm_array_load(gradient, number));
            }
    return SGM_OK;
}

static void gradient_max_gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[1])
        gradients[1] =
            record(graph, &sgm__op_max_pooling_pick, call->inputs[0], call->gradient, call->attributes);
}

const sgm_op sgm__op_max_pooling_gradient = {
    SGM__OP("max_pooling_gradient", 2, "sends a gradient to the largest element of each window"),
    .infer = infer_max_gradient, .gradient = gradient_max_gradient, .forward = forward_max_gradient};

/* --- average --- */

/* A window with holes has no mean here; a depthwise convolution does that. */
static sgm_status check_average(const sgm__window *w)
{
    if (w->dilation[0] == 1 && w->dilation[1] == 1)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "dilation %lld x %lld: an average has none; a convolution with equal weights has",
                    (long long)w->dilation[0], (long long)w->dilation[1]);
}

static sgm_status infer_average(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count;
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&inputs[0], attributes, &w));
    *result = (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.batch, w.channels, w.out)};
    return check_average(&w);
}

/* The mean in double. sgm__window_share is the weight of one element: 1 / the window's size, with or without
 * the places in the padding. */
static sgm_status forward_average(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0];
    sgm_type type = sgm__window_type(x);
    sgm__window w;
    SGM_TRY(sgm__window_pooling(&type, call->attributes, &w));
    int64_t number = 0;
    for (int64_t p = 0; p < w.batch * w.channels; p++)
        for (int64_t i = 0; i < w.out[0]; i++)
            for (int64_t k = 0; k < w.out[1]; k++, number++) {
                sgm__window_span down = sgm__window_at(&w, 0, i), along = sgm__window_at(&w, 1, k);
                double sum = 0;
                for (int64_t row = down.first; row < down.last; row++)
                    for (int64_t column = along.first; column < along.last; column++)
                        sum += sgm_array_load(x, (p * w.in[0] + down.origin + row) * w.in[1] + along.origin +
                                                     column);
                sgm_array_store(&call->output, number, sum * sgm__window_share(&w, &down, &along));
            }
    return SGM_OK;
}

/* The gradient cannot know the input's extent from its operand, so it is an attribute. */
static void gradient_average(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_attributes attributes = *call->attributes;
    sgm_type x = sgm_value_type(graph, call->inputs[0]);
    sgm__window_set_extent(&attributes, &x);
    if (call->wanted[0])
        gradients[0] = sgm__record_one(graph, &sgm__op_average_pooling_gradient, call->gradient, &attributes);
}

const sgm_op sgm__op_average_pooling = {SGM__OP("average_pooling", 1, "the mean of each window"),
                                        .infer = infer_average, .gradient = gradient_average,
                                        .forward = forward_average};

static sgm_status infer_average_gradient(const sgm_type *inputs, int32_t count,
                                         const sgm_attributes *attributes, sgm_type *result)
{
    (void)count;
    sgm__window w;
    SGM_TRY(sgm__window_pooling_gradient(&inputs[0], attributes, &w));
    *result = (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.batch, w.channels, w.in)};
    return check_average(&w);
}

/* Every element of a window gets the gradient times its share; overlapping windows add up. */
static sgm_status forward_average_gradient(const sgm_kernel_call *call)
{
    const sgm_array *gradient = &call->inputs[0], *y = &call->output;
    sgm_type type = sgm__window_type(gradient);
    sgm__window w;
    SGM_TRY(sgm__window_pooling_gradient(&type, call->attributes, &w));
    int64_t number = 0;
    clear(y);
    for (int64_t p = 0; p < w.batch * w.channels; p++)
        for (int64_t i = 0; i < w.out[0]; i++)
            for (int64_t k = 0; k < w.out[1]; k++, number++) {
                sgm__window_span down = sgm__window_at(&w, 0, i), along = sgm__window_at(&w, 1, k);
                double part = sgm_array_load(gradient, number) * sgm__window_share(&w, &down, &along);
                for (int64_t row = down.first; row < down.last; row++)
                    for (int64_t column = along.first; column < along.last; column++)
                        add(y, (p * w.in[0] + down.origin + row) * w.in[1] + along.origin + column, part);
            }
    return SGM_OK;
}

/* The gradient of the gradient is the pooling. Its extent is cleared, since equal poolings must be equal
 * instructions for the graph to find them. */
static void gradient_average_gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_attributes attributes = *call->attributes;
    for (int i = 0; i < 2; i++)
        attributes.integers[SGM__WINDOW_EXTENT + i] = 0;
    if (call->wanted[0])
        gradients[0] = sgm__record_one(graph, &sgm__op_average_pooling, call->gradient, &attributes);
}

const sgm_op sgm__op_average_pooling_gradient = {
    SGM__OP("average_pooling_gradient", 1, "spreads a gradient evenly over each window"),
    .infer = infer_average_gradient, .gradient = gradient_average_gradient,
    .forward = forward_average_gradient};

/* --- recording --- */

/* Options to attributes; the number of dimensions is that of x. */
static sgm_value pool(sgm_graph *graph, const sgm_op *op, sgm_value x, const sgm_window_options *options)
{
    sgm_attributes attributes;
    if (!sgm__window_attributes(graph, op->name, x, options, &attributes))
        return (sgm_value){-1};
    return sgm__record_one(graph, op, x, &attributes);
}

sgm_value sgm_max_pooling(sgm_graph *graph, sgm_value x, const sgm_window_options *options)
{
    return pool(graph, &sgm__op_max_pooling, x, options);
}

sgm_value sgm_average_pooling(sgm_graph *graph, sgm_value x, const sgm_window_options *options)
{
    return pool(graph, &sgm__op_average_pooling, x, options);
}
