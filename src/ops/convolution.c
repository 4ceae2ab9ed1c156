/* convolution and its two gradients, which are each other's gradients, too (LeCun et al., 1989; as
 * everywhere today the kernel is not flipped, so that this is a correlation).
 *
 * Data is (batch, channels, [height,] width), weights (filters, channels / groups, [height,] width). The
 * three operations see one window (ops/window.h): y from x and w, the gradient by x from that of y and w
 * (which is also the transposed convolution), and the gradient by w from x and that of y. Each is linear
 * in both operands, so the gradient of one is always one of the other two. Loops here are the reference;
 * src/handlers/cpu/kernels and the devices have their own. */
#include "ops/window.h"

/* An element as double; the usual types without a call. */
static double at(const sgm_array *array, int64_t offset)
{
    if (array->dtype == SGM_FLOAT64)
        return ((const double *)array->data)[offset];
    return array->dtype == SGM_FLOAT32 ? (double)((const float *)array->data)[offset]
                                       : sgm_array_load(array, offset);
}

/* SGM_OK, or an error if the shape's number of elements overflows. */
static sgm_status too_large(const sgm_shape *shape)
{
    char text[128];
    if (sgm_shape_elements(shape) >= 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "the result %s has more elements than memory can address",
                    sgm_shape_text(shape, text, sizeof text));
}

/* --- convolution --- */

/* Inputs: data, weights, and perhaps a bias for each filter. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    char text[SGM__TYPE_TEXT];
    sgm__window w;
    SGM_TRY(sgm__window_convolution(&inputs[0], &inputs[1], attributes, &w));
    const sgm_type *biases = &inputs[2];
    if (count == 3 &&
        (biases->dtype != inputs[0].dtype || biases->shape.rank != 1 || biases->shape.dims[0] != w.filters))
        return sgm_fail(SGM_ERROR_SHAPE, "wants one bias for each of %lld filters, %s (%lld,), got %s",
                        (long long)w.filters, sgm_dtype_name(inputs[0].dtype), (long long)w.filters,
                        sgm__type_text(biases, text));
    *result = (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.batch, w.filters, w.out)};
    return too_large(&result->shape);
}

/* Where the element of one channel of one example begins in (batch, channels, extent). */
static int64_t plane(int64_t example, int64_t channel, int64_t channels, const int64_t *extent)
{
    return (example * channels + channel) * extent[0] * extent[1];
}

/* One element of a result (outer, inner, row, column). */
typedef double (*element_function)(const sgm_kernel_call *call, const sgm__window *w, int64_t outer,
                                   int64_t inner, int64_t row, int64_t column);

/* The result (outer, inner, extent), element by element. */
static sgm_status fill(const sgm_kernel_call *call, const sgm__window *w, int64_t outer, int64_t inner,
                       const int64_t *extent, element_function element)
{
    int64_t number = 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t n = 0; n < inner; n++)
            for (int64_t i = 0; i < extent[0]; i++)
                for (int64_t k = 0; k < extent[1]; k++)
                    sgm_array_store(&call->output, number++, element(call, w, o, n, i, k));
    return SGM_OK;
}

/* y[n, f, i, k] = bias[f] + sum over channels of f's group and places of the window of w x, in double. The
 * span leaves out places in the padding, which is 0. */
static double convolve(const sgm_kernel_call *call, const sgm__window *w, int64_t example, int64_t filter,
                       int64_t row, int64_t column)
{
    const sgm_array *x = &call->inputs[0], *weights = &call->inputs[1];
    int64_t each = w->channels / w->groups, group = filter / (w->filters / w->groups);
    sgm__window_span down = sgm__window_at(w, 0, row), along = sgm__window_at(w, 1, column);
    double sum = call->input_count == 3 ? at(&call->inputs[2], filter) : 0;
    for (int64_t c = 0; c < each; c++) {
        int64_t from = plane(example, group * each + c, w->channels, w->in);
        int64_t factor = plane(filter, c, each, w->size);
        for (int64_t i = down.first; i < down.last; i++)
            for (int64_t k = along.first; k < along.last; k++)
                sum += at(weights, factor + i * w->size[1] + k) *
                       at(x, from + (down.origin + i * w->dilation[0]) * w->in[1] + along.origin +
                                 k * w->dilation[1]);
    }
    return sum;
}

static sgm_status forward(const sgm_kernel_call *call)
{
    sgm_type x = sgm__window_type(&call->inputs[0]), weights = sgm__window_type(&call->inputs[1]);
    sgm__window w;
    SGM_TRY(sgm__window_convolution(&x, &weights, call->attributes, &w));
    return fill(call, &w, w.batch, w.filters, w.out, convolve);
}

/* Records another of the three operations on the same window. Extent and size are set only where the
 * operation cannot know them from its operands. */
static sgm_value record(sgm_graph *graph, const sgm_op *op, sgm_value a, sgm_value b,
                        sgm_attributes attributes, const sgm_type *extent, const sgm_type *size)
{
    int64_t *integers = attributes.integers;
    for (int i = 0; i < 2; i++)
        integers[SGM__WINDOW_SIZE + i] = integers[SGM__WINDOW_EXTENT + i] = 0;
    if (extent != NULL)
        sgm__window_set_extent(&attributes, extent);
    if (size != NULL)
        sgm__window_set_size(&attributes, size);
    return sgm_record(graph, op, (sgm_value[]){a, b}, 2, &attributes);
}

/* The gradients by data, weights and biases; the last is the sum over batch and positions. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_type x = sgm_value_type(graph, call->inputs[0]), weights = sgm_value_type(graph, call->inputs[1]);
    if (call->wanted[0])
        gradients[0] = record(graph, &sgm__op_convolution_input_gradient, call->gradient, call->inputs[1],
                              *call->attributes, &x, NULL);
    if (call->wanted[1])
        gradients[1] = record(graph, &sgm__op_convolution_weights_gradient, call->inputs[0], call->gradient,
                              *call->attributes, NULL, &weights);
    if (call->input_count == 3 && call->wanted[2])
        gradients[2] =
            sgm_reduce_sum(graph, call->gradient, (const int32_t[]){0, 2, 3}, x.shape.rank - 1, false);
}

const sgm_op sgm__op_convolution = {.api = SGM_OP_API,
                                    .name = "convolution",
                                    .doc = "weighted sums over windows of one or two axes, plus biases",
                                    .min_inputs = 2,
                                    .max_inputs = 3,
                                    .infer = infer,
                                    .gradient = gradient,
                                    .forward = forward};

/* --- its gradient by the input: the transposed convolution --- */

/* (batch, channels, extent), where the extent is an attribute: several inputs' extents give the same
 * result's. */
static sgm_status infer_input(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                              sgm_type *result)
{
    (void)count;
    sgm__window w;
    SGM_TRY(sgm__window_input_gradient(&inputs[0], &inputs[1], attributes, &w));
    *result = (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.batch, w.channels, w.in)};
    return too_large(&result->shape);
}

/* The position of the result whose window has element `index` of the input at its place `place`; -1: none
 * has. It inverts index = position * stride - before + place * dilation. */
static int64_t position_of(const sgm__window *w, int axis, int64_t index, int64_t place)
{
    int64_t distance = index + w->before[axis] - place * w->dilation[axis];
    if (distance < 0 || distance % w->stride[axis] != 0 || distance / w->stride[axis] >= w->out[axis])
        return -1;
    return distance / w->stride[axis];
}

/* dx[n, c, i, k]: all elements of dy that saw this one, with their weights. Gathering instead of
 * scattering makes each element of the result one sum. */
static double spread(const sgm_kernel_call *call, const sgm__window *w, int64_t example, int64_t channel,
                     int64_t row, int64_t column)
{
    const sgm_array *gradient = &call->inputs[0], *weights = &call->inputs[1];
    int64_t each = w->channels / w->groups, filters = w->filters / w->groups, group = channel / each;
    double sum = 0;
    for (int64_t i = 0; i < w->size[0]; i++) {
        int64_t down = position_of(w, 0, row, i);
        for (int64_t k = 0; k < w->size[1] && down >= 0; k++) {
            int64_t along = position_of(w, 1, column, k);
            for (int64_t f = group * filters; f < (group + 1) * filters && along >= 0; f++)
                sum += at(gradient, plane(example, f, w->filters, w->out) + down * w->out[1] + along) *
                       at(weights, plane(f, channel - group * each, each, w->size) + i * w->size[1] + k);
        }
    }
    return sum;
}

static sgm_status forward_input(const sgm_kernel_call *call)
{
    sgm_type gradient = sgm__window_type(&call->inputs[0]), weights = sgm__window_type(&call->inputs[1]);
    sgm__window w;
    SGM_TRY(sgm__window_input_gradient(&gradient, &weights, call->attributes, &w));
    return fill(call, &w, w.batch, w.channels, w.in, spread);
}

/* The operation is linear in both operands: by the gradient it is the convolution, by the weights the
 * weights' gradient with the roles of data and gradient exchanged. */
static void gradient_input(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_type weights = sgm_value_type(graph, call->inputs[1]);
    if (call->wanted[0])
        gradients[0] = record(graph, &sgm__op_convolution, call->gradient, call->inputs[1], *call->attributes,
                              NULL, NULL);
    if (call->wanted[1])
        gradients[1] = record(graph, &sgm__op_convolution_weights_gradient, call->gradient, call->inputs[0],
                              *call->attributes, NULL, &weights);
}

const sgm_op sgm__op_convolution_input_gradient = {
    SGM__OP("convolution_input_gradient", 2,
            "the gradient of convolution by its input: a transposed convolution"),
    .infer = infer_input, .gradient = gradient_input, .forward = forward_input};

/* --- its gradient by the weights --- */

static sgm_status infer_weights(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count;
    sgm__window w;
    SGM_TRY(sgm__window_weights_gradient(&inputs[0], &inputs[1], attributes, &w));
    *result =
        (sgm_type){inputs[0].dtype, sgm__window_shape(&inputs[0], w.filters, w.channels / w.groups, w.size)};
    return too_large(&result->shape);
}

/* dw[f, c, i, k] = sum over batch and positions of dy times the element of x that the window had there. */
static double correlate(const sgm_kernel_call *call, const sgm__window *w, int64_t filter, int64_t channel,
                        int64_t i, int64_t k)
{
    const sgm_array *x = &call->inputs[0], *gradient = &call->inputs[1];
    int64_t group = filter / (w->filters / w->groups);
    double sum = 0;
    channel += group * (w->channels / w->groups);
    for (int64_t row = 0; row < w->out[0]; row++) {
        int64_t down = row * w->stride[0] - w->before[0] + i * w->dilation[0];
        for (int64_t column = 0; column < w->out[1] && down >= 0 && down < w->in[0]; column++) {
            int64_t along = column * w->stride[1] - w->before[1] + k * w->dilation[1];
            for (int64_t n = 0; n < w->batch && along >= 0 && along < w->in[1]; n++)
                sum += at(x, plane(n, channel, w->channels, w->in) + down * w->in[1] + along) *
                       at(gradient, plane(n, filter, w->filters, w->out) + row * w->out[1] + column);
        }
    }
    return sum;
}

static sgm_status forward_weights(const sgm_kernel_call *call)
{
    sgm_type x = sgm__window_type(&call->inputs[0]), gradient = sgm__window_type(&call->inputs[1]);
    sgm__window w;
    SGM_TRY(sgm__window_weights_gradient(&x, &gradient, call->attributes, &w));
    return fill(call, &w, w.filters, w.channels / w.groups, w.size, correlate);
}

/* `call->gradient` has the shape of weights. By x it is their transposed convolution of dy, by dy their
 * convolution of x. */
static void gradient_weights(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_type x = sgm_value_type(graph, call->inputs[0]);
    if (call->wanted[0])
        gradients[0] = record(graph, &sgm__op_convolution_input_gradient, call->inputs[1], call->gradient,
                              *call->attributes, &x, NULL);
    if (call->wanted[1])
        gradients[1] = record(graph, &sgm__op_convolution, call->inputs[0], call->gradient, *call->attributes,
                              NULL, NULL);
}

const sgm_op sgm__op_convolution_weights_gradient = {
    SGM__OP("convolution_weights_gradient", 2, "the gradient of convolution by its weights"),
    .infer = infer_weights, .gradient = gradient_weights, .forward = forward_weights};

/* --- recording --- */

/* The size in the attributes stays 0, since the weights have it. */
sgm_value sgm_convolution(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value biases,
                          const sgm_window_options *options)
{
    sgm_attributes attributes;
    if (!sgm__window_attributes(graph, "convolution", x, options, &attributes))
        return (sgm_value){-1};
    for (int i = 0; i < 2; i++)
        attributes.integers[SGM__WINDOW_SIZE + i] = 0;
    return sgm_record(graph, &sgm__op_convolution, (sgm_value[]){x, weights, biases},
                      sgm_value_exists(biases) ? 3 : 2, &attributes);
}

/* The gradient of a convolution by its input, recorded as an operation on data: x is what would be that
 * convolution's result. Its extent is (n - 1) stride + (size - 1) dilation + 1 + output_padding - before -
 * after for each axis, where output_padding chooses among the extents that the stride makes equal. Shapes
 * that do not fit are left to the rule of the operation. */
sgm_value sgm_transposed_convolution(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value biases,
                                     const int64_t *output_padding, const sgm_window_options *options)
{
    sgm_attributes attributes;
    if (!sgm__window_attributes(graph, "transposed_convolution", x, options, &attributes) ||
        !sgm__can_record(graph, "transposed_convolution", weights))
        return (sgm_value){-1};
    sgm_type type = sgm_value_type(graph, x), kernel = sgm_value_type(graph, weights);
    int64_t *integers = attributes.integers;
    int32_t rank = type.shape.rank;
    for (int i = 0; i < 2; i++)
        integers[SGM__WINDOW_SIZE + i] = 0;
    integers[SGM__WINDOW_EXTENT] = 1;
    for (int32_t i = rank > 4 || rank < 3 || kernel.shape.rank != rank ? rank : 2; i < rank; i++) {
        int64_t axis = i + 4 - rank - 2, extent, reach;
        bool fits =
            !__builtin_mul_overflow(type.shape.dims[i] - 1, integers[SGM__WINDOW_STRIDE + axis], &extent) &&
            !__builtin_mul_overflow(kernel.shape.dims[i] - 1, integers[SGM__WINDOW_DILATION + axis],
                                    &reach) &&
            !__builtin_add_overflow(extent, reach + 1, &extent) &&
            !__builtin_add_overflow(extent, output_padding != NULL ? output_padding[i - 2] : 0, &extent);
        if (!fits ||
            (output_padding != NULL &&
             (output_padding[i - 2] < 0 || output_padding[i - 2] >= integers[SGM__WINDOW_STRIDE + axis])))
            return sgm_graph_fail(
                graph, SGM_ERROR_ARGUMENT,
                "transposed_convolution: %lld output_padding along axis %d; it is at least 0 and less "
                "than the stride, and the result must fit in memory",
                (long long)(output_padding != NULL ? output_padding[i - 2] : 0), i);
        integers[SGM__WINDOW_EXTENT + axis] =
            extent - integers[SGM__WINDOW_BEFORE + axis] - integers[SGM__WINDOW_AFTER + axis];
    }
    sgm_value y =
        sgm_record(graph, &sgm__op_convolution_input_gradient, (sgm_value[]){x, weights}, 2, &attributes);
    if (!sgm_value_exists(biases) || !sgm_value_exists(y))
        return y;
    sgm_shape column = rank == 4 ? sgm_shape_of(-1, 1, 1) : sgm_shape_of(-1, 1);
    return sgm_add(graph, y, sgm_reshape(graph, biases, &column));
}
