/* Build functions of windows that move over one or two axes (convolutions, poolings) and of
 * normalisations.
 *
 * Data is (batch, channels, height, width) or (batch, channels, length). Attributes are read into a
 * `window`, which the library's operations take as sgm_window_options. Called by import.c through
 * operators.c; build_quantised.c uses sgm__onnx_convolve.
 *
 * ONNX's forms that the library's operations lack are brought to them by padding before or after:
 * automatic padding (auto_pad), windows that reach over the end (ceil_mode), output shapes of transposed
 * convolutions. */
#include "onnx/nodes/onnx.h"

#define MAXIMUM_AXES 2
/* Sizes, strides, dilations and pads of an axis are at most this, so that the product of two of them fits
 * into 64 bits. */
#define MAXIMUM_EXTENT ((int64_t)1 << 30)

/* A window as the attributes describe it. The arrays have an entry for each of the `axes` axes behind
 * batch and channels. `in` is the size of the data, `before` and `after` the padding around it. */
typedef struct window {
    int32_t axes;
    int64_t in[MAXIMUM_AXES], size[MAXIMUM_AXES], stride[MAXIMUM_AXES], dilation[MAXIMUM_AXES];
    int64_t before[MAXIMUM_AXES], after[MAXIMUM_AXES];
} window;

/* Reads an attribute with `axes` integers, each from `minimum` to MAXIMUM_EXTENT. False if there is no
 * such attribute, and also on failure (the graph's status tells which). */
static bool read_list(sgm__onnx_node *n, const char *name, int32_t axes, int64_t minimum, int64_t *list)
{
    int32_t count = sgm__onnx_integers(n, name, list, 2 * MAXIMUM_AXES);
    for (int32_t i = 0; i < count; i++)
        if (list[i] < minimum || list[i] > MAXIMUM_EXTENT) {
            sgm_graph_fail(n->graph, SGM_ERROR_ARGUMENT, "'%s' has the entry %lld", name, (long long)list[i]);
            return false;
        }
    if (count >= 0 && count != axes)
        sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "'%s' has %d entries, expected %d", name, count, axes);
    return count == axes;
}

/* Whether auto_pad is `way`; it is NOTSET by default. */
static bool pads_by(const sgm__onnx_node *n, const char *way)
{
    return sgm__onnx_text_is(n, "auto_pad", "NOTSET", way);
}

/* Whether the padding is deduced from the sizes. */
static bool pads_itself(const sgm__onnx_node *n)
{
    return pads_by(n, "SAME_UPPER") || pads_by(n, "SAME_LOWER");
}

/* sgm_window_options takes 0 for 1; ONNX does not allow 0. */
static int64_t read_groups(sgm__onnx_node *n)
{
    int64_t groups = sgm__onnx_integer(n, "group", 1);
    if (groups < 1)
        sgm_graph_fail(n->graph, SGM_ERROR_ARGUMENT, "'group' is %lld, and must be at least 1",
                       (long long)groups);
    return groups;
}

/* Padding for as many windows as ceil(in / stride): what the last of them reaches beyond the data,
 *
 *     all = (ceil(in / stride) - 1) stride + (size - 1) dilation + 1 - in, at least 0,
 *
 * half on each side. An odd entry goes behind with SAME_UPPER, in front with SAME_LOWER. */
static void pad_same(sgm__onnx_node *n, window *w)
{
    bool lower = pads_by(n, "SAME_LOWER");
    for (int32_t i = 0; i < w->axes; i++) {
        int64_t count = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        int64_t all = (count - 1) * w->stride[i] + (w->size[i] - 1) * w->dilation[i] + 1 - w->in[i];
        all = all < 0 ? 0 : all;
        w->before[i] = lower ? all - all / 2 : all / 2;
        w->after[i] = all - w->before[i];
    }
}

/* Everything but the size of the window. pads has all sizes before, then all sizes after; with SAME_* they
 * are replaced by pad_same. False on failure. */
static bool read_window(sgm__onnx_node *n, sgm_value x, window *w)
{
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int64_t pads[2 * MAXIMUM_AXES];
    *w = (window){.axes = shape.rank - 2};
    if (w->axes < 1 || w->axes > MAXIMUM_AXES) {
        sgm__onnx_unsupported(n, "windows of 1 or 2 axes are supported, this has %d", w->axes);
        return false;
    }
    for (int32_t i = 0; i < w->axes; i++) {
        w->in[i] = shape.dims[i + 2];
        w->stride[i] = w->dilation[i] = 1;
        if (w->in[i] > MAXIMUM_EXTENT)
            sgm__onnx_unsupported(n, "%lld places along an axis", (long long)w->in[i]);
    }
    read_list(n, "strides", w->axes, 1, w->stride);
    read_list(n, "dilations", w->axes, 1, w->dilation);
    if (!pads_itself(n) && !pads_by(n, "NOTSET") && !pads_by(n, "VALID"))
        sgm__onnx_unsupported(n, "'auto_pad' is none of NOTSET, SAME_UPPER, SAME_LOWER and VALID");
    if (read_list(n, "pads", 2 * w->axes, 0, pads) && !pads_by(n, "VALID"))
        for (int32_t i = 0; i < w->axes; i++) {
            w->before[i] = pads[i];
            w->after[i] = pads[i + w->axes];
        }
    return n->graph->status == SGM_OK;
}

/* The size of the window from kernel_shape, or from the weights (channels, ..., height, width); both must
 * agree. `weights` NULL: a pooling, which must have the attribute. False on failure. */
static bool read_size(sgm__onnx_node *n, window *w, const sgm_shape *weights)
{
    bool given = read_list(n, "kernel_shape", w->axes, 1, w->size);
    for (int32_t i = 0; i < w->axes && weights != NULL; i++) {
        if (weights->rank != w->axes + 2 || weights->dims[i + 2] > MAXIMUM_EXTENT ||
            (given && w->size[i] != weights->dims[i + 2])) {
            sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "the weights do not have the kernel's shape");
            return false;
        }
        w->size[i] = weights->dims[i + 2];
    }
    if (!given && weights == NULL)
        sgm_graph_fail(n->graph, SGM_ERROR_FORMAT, "'kernel_shape' is missing");
    return n->graph->status == SGM_OK;
}

/* The options of the library's operations. Entries of axes that data does not have stay 0; with one axis
 * the library takes the first entry of each array. */
static sgm_window_options options_of(const window *w, int64_t groups)
{
    sgm_window_options options = {.struct_size = sizeof options, .groups = groups};
    memcpy(options.size, w->size, sizeof w->size);
    memcpy(options.stride, w->stride, sizeof w->stride);
    memcpy(options.before, w->before, sizeof w->before);
    memcpy(options.after, w->after, sizeof w->after);
    memcpy(options.dilation, w->dilation, sizeof w->dilation);
    return options;
}

/* --- convolutions --- */

/* sgm_convolution takes the size from the weights and wants 0 here. */
sgm_value sgm__onnx_convolve(sgm__onnx_node *n, sgm_value x, sgm_value weights, sgm_value biases)
{
    window w;
    sgm_shape shape = sgm__onnx_type(n, weights).shape;
    if (!read_window(n, x, &w) || !read_size(n, &w, &shape))
        return (sgm_value){-1};
    if (pads_itself(n))
        pad_same(n, &w);
    sgm_window_options options = options_of(&w, read_groups(n));
    memset(options.size, 0, sizeof options.size);
    return sgm_convolution(n->graph, x, weights, biases, &options);
}

SGM__ONNX_BUILD(conv, n, sgm__onnx_convolve(n, n->inputs[0], n->inputs[1], sgm__onnx_in(n, 2)))

/* Padding of a transposed convolution, which cuts off the result instead of enlarging the data. `full` is
 * the size without padding; what it exceeds the wanted size by (`shape`, or in * stride for SAME_*) is
 * cut, half on each side. An odd entry is cut in front, unless auto_pad is SAME_UPPER. Where the wanted
 * size is larger, `after` becomes negative: entries to add. */
static void cut_to_shape(sgm__onnx_node *n, window *w, const int64_t *output_padding, const int64_t *shape,
                         bool has_shape)
{
    bool lower = !pads_by(n, "SAME_UPPER"); /* also without auto_pad */
    for (int32_t i = 0; i < w->axes; i++) {
        int64_t full =
            (w->in[i] - 1) * w->stride[i] + output_padding[i] + (w->size[i] - 1) * w->dilation[i] + 1;
        int64_t cut = full - (has_shape ? shape[i] : w->in[i] * w->stride[i]);
        w->before[i] = lower ? cut - cut / 2 : cut / 2;
        w->after[i] = cut - w->before[i];
        if (cut < 0) {
            w->before[i] = 0;
            w->after[i] = cut;
        }
    }
}

/* Places that no window reaches are zeros: output_padding, and what an output_shape asks beyond the full
 * size. sgm_transposed_convolution takes less than the stride of them, so they are first balanced against
 * the padding behind (which would cut as many off), and the rest, `beyond`, is added as zeros after the
 * convolution. Biases are added last, since they apply to those zeros as well. */
sgm_value sgm__onnx_conv_transpose(sgm__onnx_node *n)
{
    window w;
    int64_t output_padding[2 * MAXIMUM_AXES] = {0}, shape[2 * MAXIMUM_AXES];
    sgm_shape weights = sgm__onnx_type(n, n->inputs[1]).shape;
    if (!read_window(n, n->inputs[0], &w) || !read_size(n, &w, &weights))
        return (sgm_value){-1};
    read_list(n, "output_padding", w.axes, 0, output_padding);
    bool has_shape = read_list(n, "output_shape", w.axes, 1, shape);
    if (n->graph->status != SGM_OK)
        return (sgm_value){-1};
    if (has_shape || pads_itself(n))
        cut_to_shape(n, &w, output_padding, shape, has_shape);
    /* Balances the places beyond the windows against the padding behind; one of the two becomes 0. */
    int64_t beyond[MAXIMUM_AXES];
    for (int32_t i = 0; i < w.axes; i++) {
        beyond[i] = output_padding[i] - (w.after[i] < 0 ? w.after[i] : 0);
        w.after[i] = w.after[i] < 0 ? 0 : w.after[i];
        output_padding[i] = 0;
        if (beyond[i] <= w.after[i]) {
            w.after[i] -= beyond[i];
            beyond[i] = 0;
        } else {
            beyond[i] -= w.after[i];
            w.after[i] = 0;
        }
    }
    sgm_window_options options = options_of(&w, read_groups(n));
    memset(options.size, 0, sizeof options.size);
    sgm_value y = sgm_transposed_convolution(n->graph, n->inputs[0], n->inputs[1], (sgm_value){-1},
                                             output_padding, &options);
    for (int32_t i = 0; i < w.axes; i++)
        if (beyond[i] > 0)
            y = sgm_pad(n->graph, y, i + 2, 0, beyond[i], 0);
    if (!sgm_value_exists(sgm__onnx_in(n, 2)))
        return y;
    sgm_shape column = w.axes == 2 ? sgm_shape_of(-1, 1, 1) : sgm_shape_of(-1, 1);
    return sgm_add(n->graph, y, sgm_reshape(n->graph, n->inputs[2], &column));
}

/* --- poolings --- */

/* With ceil_mode a last window that is not complete counts, if it begins within the data or the padding in
 * front. `extra` is the padding behind that completes it. `room` is how far the first window can move. */
static void pad_ceil(window *w, int64_t *extra)
{
    for (int32_t i = 0; i < w->axes; i++) {
        int64_t reach = (w->size[i] - 1) * w->dilation[i] + 1;
        int64_t room = w->in[i] + w->before[i] + w->after[i] - reach;
        int64_t rest = room >= 0 ? room % w->stride[i] : 0;
        extra[i] = rest == 0 ? 0 : w->stride[i] - rest;
        if (extra[i] > 0 && (room - rest) + w->stride[i] >= w->in[i] + w->before[i])
            extra[i] = 0;
    }
}

/* Reads the window of a pooling; `extra` gets what ceil_mode needs behind each axis. */
static bool read_pooling(sgm__onnx_node *n, window *w, int64_t *extra)
{
    if (!read_window(n, n->inputs[0], w) || !read_size(n, w, NULL))
        return false;
    memset(extra, 0, MAXIMUM_AXES * sizeof *extra);
    bool ceils = sgm__onnx_integer(n, "ceil_mode", 0) != 0;
    if (pads_itself(n))
        pad_same(n, w);
    else if (ceils)
        pad_ceil(w, extra);
    return true;
}

/* The library pools floats, and padding never wins; integers go through float64, which does not hold all of
 * int64. The second output (places) is not made. */
sgm_value sgm__onnx_max_pool(sgm__onnx_node *n)
{
    window w;
    int64_t extra[MAXIMUM_AXES];
    if (!read_pooling(n, &w, extra))
        return (sgm_value){-1};
    for (int32_t i = 0; i < w.axes; i++)
        w.after[i] += extra[i];
    sgm_window_options options = options_of(&w, 0);
    sgm_value x = n->inputs[0];
    if (sgm_dtype_is_float(sgm__onnx_type(n, x).dtype))
        return sgm_max_pooling(n->graph, x, &options);
    if (sgm__onnx_type(n, x).dtype == SGM_INT64)
        return sgm__onnx_unsupported(n, "numbers of int64 are not pooled here");
    sgm_value y = sgm_max_pooling(n->graph, sgm_cast(n->graph, x, SGM_FLOAT64), &options);
    return sgm__onnx_cast_like(n->graph, y, x);
}

/* The library's mean leaves all padding out. With count_include_pad the padding given by the attributes
 * becomes data (zeros), and only the extra one of ceil_mode stays padding: ONNX never counts that. */
sgm_value sgm__onnx_average_pool(sgm__onnx_node *n)
{
    window w;
    int64_t extra[MAXIMUM_AXES];
    sgm_value x = n->inputs[0];
    if (!read_pooling(n, &w, extra))
        return (sgm_value){-1};
    bool counts = sgm__onnx_integer(n, "count_include_pad", 0) != 0;
    for (int32_t i = 0; i < w.axes; i++) { /* zeros that count become data */
        if (counts && w.before[i] + w.after[i] > 0)
            x = sgm_pad(n->graph, x, i + 2, w.before[i], w.after[i], 0);
        w.before[i] = counts ? 0 : w.before[i];
        w.after[i] = (counts ? 0 : w.after[i]) + extra[i];
    }
    sgm_window_options options = options_of(&w, 0);
    options.exclude_padding = true;
    return sgm_average_pooling(n->graph, x, &options);
}

/* Reduces all axes behind batch and channels; they stay as dimensions of 1. */
static sgm_value over_places(sgm__onnx_node *n, sgm_value x, sgm__onnx_reduction function)
{
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    for (int32_t i = 2; i < rank; i++)
        axes[count++] = i;
    if (count == 0)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of batch, channels and places is needed");
    return function(n->graph, x, axes, count, true);
}

SGM__ONNX_BUILD(global_average_pool, n, over_places(n, n->inputs[0], sgm_reduce_mean))
SGM__ONNX_BUILD(global_max_pool, n, over_places(n, n->inputs[0], sgm_reduce_max))

/* --- normalisations --- */

/* Shapes a list with one number for each channel as (channels, 1, ...), which broadcasts against (batch,
 * channels, ...). */
static sgm_value by_channel(sgm__onnx_node *n, sgm_value numbers)
{
    sgm_shape shape = {.rank = sgm__onnx_type(n, n->inputs[0]).shape.rank - 1, .dims = {-1}};
    for (int32_t i = 1; i < shape.rank; i++)
        shape.dims[i] = 1;
    return shape.rank < 1 ? sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of batch and channels is needed")
                          : sgm_reshape(n->graph, numbers, &shape);
}

/* scale (x - mean) / sqrt(variance + epsilon) + bias, with one factor for each channel: where the variance is
 * known, so is that, before the run. */
static sgm_value normalise(sgm__onnx_node *n, sgm_value x, sgm_value mean, sgm_value variance)
{
    sgm_graph *g = n->graph;
    sgm_value epsilon = sgm_number(g, sgm__onnx_number(n, "epsilon", 1e-5));
    sgm_value factor =
        sgm_divide(g, by_channel(n, n->inputs[1]), sgm_square_root(g, sgm_add(g, variance, epsilon)));
    return sgm_add(g, sgm_multiply(g, sgm_subtract(g, x, mean), factor), by_channel(n, n->inputs[2]));
}

/* Running statistics: momentum * old + (1 - momentum) * batch. In ONNX momentum is the share of the old
 * value, in PyTorch that of the new one. */
static sgm_value moved(sgm__onnx_node *n, sgm_value old, sgm_value batch)
{
    double momentum = sgm__onnx_number(n, "momentum", 0.9);
    sgm_value kept = sgm_multiply(n->graph, old, sgm_number(n->graph, momentum));
    batch = sgm_reshape(n->graph, batch, SGM__ONNX_SHAPE(-1));
    return sgm_add(n->graph, kept, sgm_multiply(n->graph, batch, sgm_number(n->graph, 1 - momentum)));
}

/* scale (x - mean) / sqrt(variance + epsilon) + bias, with the statistics of the inputs, or in training
 * mode with those of the batch over all axes but the channels; the new running statistics are further
 * outputs then. The variance is that of the population (divided by the number of elements). */
sgm_value sgm__onnx_batch_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], mean = by_channel(n, n->inputs[3]), variance = by_channel(n, n->inputs[4]);
    if (sgm__onnx_integer(n, "spatial", 1) != 1)
        return sgm__onnx_unsupported(n, "statistics for each place (spatial is 0) are not supported");
    if (sgm__onnx_integer(n, "training_mode", 0) != 0) {
        int32_t axes[SGM_MAX_RANK] = {0}, count = 1, rank = sgm__onnx_type(n, x).shape.rank;
        for (int32_t i = 2; i < rank; i++)
            axes[count++] = i;
        sgm_value batch_mean = sgm_reduce_mean(g, x, axes, count, true);
        sgm_value batch_variance = sgm_reduce_variance(g, x, axes, count, true);
        n->outputs[1] = moved(n, n->inputs[3], batch_mean);
        n->outputs[2] = moved(n, n->inputs[4], batch_variance);
        mean = batch_mean;
        variance = batch_variance;
    }
    return normalise(n, x, mean, variance);
}

sgm_value sgm__onnx_instance_normalisation(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0];
    return normalise(n, x, over_places(n, x, sgm_reduce_mean), over_places(n, x, sgm_reduce_variance));
}

/* Normalises over all axes from `axis` on together. The variance is the mean of the squared centred
 * values, which does not cancel as mean(x^2) - mean^2 would. Over one axis the result is the library's
 * single operation, which has a kernel of its own. Outputs 1 and 2 are the mean and 1 / standard
 * deviation; simplification drops them where nothing reads them. */
sgm_value sgm__onnx_layer_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    int32_t first = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), rank);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    for (int32_t i = first; i < rank; i++)
        axes[count++] = i;
    if (first < 0)
        return (sgm_value){-1};
    sgm_value mean = sgm_reduce_mean(g, x, axes, count, true), centred = sgm_subtract(g, x, mean);
    sgm_value variance = sgm_reduce_mean(g, sgm_square(g, centred), axes, count, true);
    sgm_value standard_deviation = sgm_square_root(g, sgm_add(g, variance, sgm_number(g, epsilon)));
    sgm_value inverse = sgm_reciprocal(g, standard_deviation);
    n->outputs[1] = mean;
    n->outputs[2] = inverse;
    sgm_value y = count == 1 ? sgm_layer_norm(g, x, epsilon) : sgm_multiply(g, centred, inverse);
    y = sgm_multiply(g, y, n->inputs[1]);
    return sgm_value_exists(sgm__onnx_in(n, 2)) ? sgm_add(g, y, n->inputs[2]) : y;
}

/* x / sqrt(mean(x^2) + epsilon) over all axes from `axis` on together, times the scale; float16 and bfloat16
 * in float32. */
sgm_value sgm__onnx_rms_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axes[SGM_MAX_RANK], count = 0, rank = sgm__onnx_type(n, x).shape.rank;
    int32_t first = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), rank);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    if (sgm__onnx_integer(n, "stash_type", 1) != 1)
        return sgm__onnx_unsupported(n, "'stash_type' is not 1");
    for (int32_t i = first; i < rank; i++)
        axes[count++] = i;
    if (first < 0)
        return (sgm_value){-1};
    if (count == 1)
        return sgm_multiply(g, sgm_rms_norm(g, x, epsilon), n->inputs[1]);
    sgm_value square = sgm_reduce_mean(g, sgm_square(g, x), axes, count, true);
    sgm_value root = sgm_square_root(g, sgm_add(g, square, sgm_number(g, epsilon)));
    return sgm_multiply(g, sgm_divide(g, x, root), n->inputs[1]);
}

/* Channels in groups: each group of an example is normalised over its channels and places. Up to opset 20
 * there is a factor for each group, since then for each channel. */
sgm_value sgm__onnx_group_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], numbers[2];
    sgm_shape s = sgm__onnx_type(n, x).shape;
    int64_t groups = sgm__onnx_integer(n, "num_groups", 0);
    double epsilon = sgm__onnx_number(n, "epsilon", 1e-5);
    if (sgm__onnx_integer(n, "stash_type", 1) != 1)
        return sgm__onnx_unsupported(n, "'stash_type' is not 1");
    if (s.rank < 3 || groups < 1 || s.dims[1] % groups != 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "%lld groups of channels", (long long)groups);
    x = sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0], groups, -1));
    x = sgm_reshape(g, sgm_layer_norm(g, x, epsilon), &s);
    for (int i = 0; i < 2; i++) {
        numbers[i] = n->inputs[i + 1];
        if (n->opset < 21) {
            numbers[i] = sgm_reshape(g, numbers[i], SGM__ONNX_SHAPE(groups, 1));
            numbers[i] = sgm_broadcast(g, numbers[i], SGM__ONNX_SHAPE(groups, s.dims[1] / groups));
            numbers[i] = sgm_reshape(g, numbers[i], SGM__ONNX_SHAPE(s.dims[1]));
        }
        numbers[i] = by_channel(n, numbers[i]);
    }
    return sgm_add(g, sgm_multiply(g, x, numbers[0]), numbers[1]);
}

/* x / (sum |x|^p)^(1/p) along an axis, p 1 or 2; 0 where that is 0. */
sgm_value sgm__onnx_lp_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    int32_t axis = sgm__onnx_axis(n, sgm__onnx_integer(n, "axis", -1), sgm__onnx_type(n, x).shape.rank);
    int64_t p = sgm__onnx_integer(n, "p", 2);
    if (p != 1 && p != 2)
        return sgm__onnx_unsupported(n, "'p' is %lld, not 1 or 2", (long long)p);
    if (axis < 0)
        return (sgm_value){-1};
    sgm_value size = sgm_reduce_sum(g, p == 1 ? sgm_absolute(g, x) : sgm_square(g, x), &axis, 1, true);
    size = p == 1 ? size : sgm_square_root(g, size);
    sgm_value is_zero = sgm_equal(g, size, sgm_number(g, 0));
    return sgm_select(g, is_zero, sgm_filled_like(g, x, 0), sgm_divide(g, x, size));
}

/* (x - mean) / (standard deviation + 1e-9), as the function body in ONNX's specification has it. */
sgm_value sgm__onnx_mean_variance_normalisation(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    int64_t list[SGM_MAX_RANK] = {0, 2, 3};
    int32_t axes[SGM_MAX_RANK], count = sgm__onnx_integers(n, "axes", list, SGM_MAX_RANK);
    sgm_value x = n->inputs[0];
    count = count < 0 ? 3 : count;
    for (int32_t i = 0; i < count; i++)
        axes[i] = sgm__onnx_axis(n, list[i], sgm__onnx_type(n, x).shape.rank);
    if (g->status != SGM_OK)
        return (sgm_value){-1};
    sgm_value centred = sgm_subtract(g, x, sgm_reduce_mean(g, x, axes, count, true));
    sgm_value standard_deviation = sgm_reduce_standard_deviation(g, x, axes, count, true);
    return sgm_divide(g, centred, sgm_add(g, standard_deviation, sgm_number(g, 1e-9)));
}

/* Local response normalisation (Krizhevsky et al., 2012): x / (bias + alpha / size * sum of squares of the
 * `size` channels around)^beta. The sum is one of `size` slices of the squares, padded with zeros along
 * the channels, of which (size - 1) / 2 lie in front. `size` is bounded because each slice is an
 * instruction. */
sgm_value sgm__onnx_lrn(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], sum = {-1};
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int64_t size = sgm__onnx_integer(n, "size", 1), before = (size - 1) / 2;
    if (shape.rank < 2 || size < 1 || size > 1024)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a sum over %lld channels", (long long)size);
    sgm_value padded = sgm_pad(g, sgm_square(g, x), 1, before, size - 1 - before, 0);
    for (int64_t i = 0; i < size; i++) {
        sgm_value part = sgm_slice(g, padded, 1, i, i + shape.dims[1], 1);
        sum = i == 0 ? part : sgm_add(g, sum, part);
    }
    sum = sgm_multiply(g, sum, sgm_number(g, sgm__onnx_number(n, "alpha", 1e-4) / (double)size));
    sum = sgm_add(g, sum, sgm_number(g, sgm__onnx_number(n, "bias", 1)));
    return sgm_divide(g, x, sgm_power(g, sum, sgm_number(g, sgm__onnx_number(n, "beta", 0.75))));
}
