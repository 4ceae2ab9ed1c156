/* Build functions of windows that move over one, two or three axes: convolutions and poolings.
 *
 * Data is (batch, channels, [[depth,] height,] width). Attributes are read into an sgm__onnx_window, which
 * window.c applies. Called by import.c through operators.c; build_quantised.c uses sgm__onnx_convolve.
 *
 * ONNX's forms that the library's operations lack are brought to them by padding before or after:
 * automatic padding (auto_pad), windows that reach over the end (ceil_mode), output shapes of transposed
 * convolutions. */
#include "onnx/spatial/window.h"

/* Sizes, strides, dilations and pads of an axis are at most this, so that the product of two of them fits
 * into 64 bits. */
#define MAXIMUM_EXTENT ((int64_t)1 << 30)

/* Reads an attribute with `axes` integers, each from `minimum` to MAXIMUM_EXTENT. False if there is no
 * such attribute, and also on failure (the graph's status tells which). */
static bool read_list(sgm__onnx_node *n, const char *name, int32_t axes, int64_t minimum, int64_t *list)
{
    int32_t count = sgm__onnx_integers(n, name, list, 2 * SGM__ONNX_WINDOW_AXES);
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
static void pad_same(sgm__onnx_node *n, sgm__onnx_window *w)
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
static bool read_window(sgm__onnx_node *n, sgm_value x, sgm__onnx_window *w)
{
    sgm_shape shape = sgm__onnx_type(n, x).shape;
    int64_t pads[2 * SGM__ONNX_WINDOW_AXES];
    *w = (sgm__onnx_window){.axes = shape.rank - 2};
    if (w->axes < 1 || w->axes > SGM__ONNX_WINDOW_AXES) {
        sgm__onnx_unsupported(n, "windows of 1 to 3 axes are supported, this has %d", w->axes);
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
static bool read_size(sgm__onnx_node *n, sgm__onnx_window *w, const sgm_shape *weights)
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

/* --- convolutions --- */

sgm_value sgm__onnx_convolve(sgm__onnx_node *n, sgm_value x, sgm_value weights, sgm_value biases)
{
    sgm__onnx_window w;
    sgm_shape shape = sgm__onnx_type(n, weights).shape;
    if (!read_window(n, x, &w) || !read_size(n, &w, &shape))
        return (sgm_value){-1};
    if (pads_itself(n))
        pad_same(n, &w);
    return sgm__onnx_window_convolution(n->graph, x, weights, biases, &w, read_groups(n));
}

SGM__ONNX_BUILD(conv, n, sgm__onnx_convolve(n, n->inputs[0], n->inputs[1], sgm__onnx_in(n, 2)))

/* Padding of a transposed convolution, which cuts off the result instead of enlarging the data. `full` is
 * the size without padding; what it exceeds the wanted size by (`shape`, or in * stride for SAME_*) is
 * cut, half on each side. An odd entry is cut in front, unless auto_pad is SAME_UPPER. Where the wanted
 * size is larger, `after` becomes negative: entries to add. */
static void cut_to_shape(sgm__onnx_node *n, sgm__onnx_window *w, const int64_t *output_padding,
                         const int64_t *shape, bool has_shape)
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
 * size. They are first balanced against the padding behind (which would cut as many off), and the rest,
 * `beyond`, is added as zeros after the convolution. Biases are added last, since they apply to those zeros
 * as well. */
sgm_value sgm__onnx_conv_transpose(sgm__onnx_node *n)
{
    sgm__onnx_window w;
    int64_t output_padding[2 * SGM__ONNX_WINDOW_AXES] = {0}, shape[2 * SGM__ONNX_WINDOW_AXES];
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
    int64_t beyond[SGM__ONNX_WINDOW_AXES];
    for (int32_t i = 0; i < w.axes; i++) {
        beyond[i] = output_padding[i] - (w.after[i] < 0 ? w.after[i] : 0);
        w.after[i] = w.after[i] < 0 ? 0 : w.after[i];
        if (beyond[i] <= w.after[i]) {
            w.after[i] -= beyond[i];
            beyond[i] = 0;
        } else {
            beyond[i] -= w.after[i];
            w.after[i] = 0;
        }
    }
    sgm_value y = sgm__onnx_window_transposed(n->graph, n->inputs[0], n->inputs[1], &w, read_groups(n));
    for (int32_t i = 0; i < w.axes; i++)
        if (beyond[i] > 0)
            y = sgm_pad(n->graph, y, i + 2, 0, beyond[i], 0);
    if (!sgm_value_exists(sgm__onnx_in(n, 2)))
        return y;
    sgm_shape column = {.rank = w.axes + 1, .dims = {-1, 1, 1, 1}};
    return sgm_add(n->graph, y, sgm_reshape(n->graph, n->inputs[2], &column));
}

/* --- poolings --- */

/* With ceil_mode a last window that is not complete counts, if it begins within the data or the padding in
 * front. `extra` is the padding behind that completes it. `room` is how far the first window can move. */
static void pad_ceil(sgm__onnx_window *w, int64_t *extra)
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
static bool read_pooling(sgm__onnx_node *n, sgm__onnx_window *w, int64_t *extra)
{
    if (!read_window(n, n->inputs[0], w) || !read_size(n, w, NULL))
        return false;
    memset(extra, 0, SGM__ONNX_WINDOW_AXES * sizeof *extra);
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
    sgm__onnx_window w;
    int64_t extra[SGM__ONNX_WINDOW_AXES];
    if (!read_pooling(n, &w, extra))
        return (sgm_value){-1};
    for (int32_t i = 0; i < w.axes; i++)
        w.after[i] += extra[i];
    sgm_value x = n->inputs[0];
    if (sgm_dtype_is_float(sgm__onnx_type(n, x).dtype))
        return sgm__onnx_window_maximum(n->graph, x, &w);
    if (sgm__onnx_type(n, x).dtype == SGM_INT64)
        return sgm__onnx_unsupported(n, "numbers of int64 are not pooled here");
    sgm_value y = sgm__onnx_window_maximum(n->graph, sgm_cast(n->graph, x, SGM_FLOAT64), &w);
    return sgm__onnx_cast_like(n->graph, y, x);
}

/* The library's mean leaves all padding out. With count_include_pad the padding given by the attributes
 * becomes data (zeros), and only the extra one of ceil_mode stays padding: ONNX never counts that. */
sgm_value sgm__onnx_average_pool(sgm__onnx_node *n)
{
    sgm__onnx_window w;
    int64_t extra[SGM__ONNX_WINDOW_AXES];
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
    return sgm__onnx_window_average(n->graph, x, &w);
}

/* (sum |x|^p)^(1/p) of each window. */
sgm_value sgm__onnx_lp_pool(sgm__onnx_node *n)
{
    sgm__onnx_window w;
    int64_t extra[SGM__ONNX_WINDOW_AXES];
    sgm_graph *g = n->graph;
    if (!read_pooling(n, &w, extra))
        return (sgm_value){-1};
    for (int32_t i = 0; i < w.axes; i++)
        w.after[i] += extra[i];
    double p = (double)sgm__onnx_integer(n, "p", 2);
    sgm_value powers = sgm_power(g, sgm_absolute(g, n->inputs[0]), sgm_number(g, p));
    return sgm_power(g, sgm__onnx_window_sum(g, powers, &w), sgm_number(g, 1 / p));
}

SGM__ONNX_BUILD(global_average_pool, n, sgm__onnx_over_places(n, n->inputs[0], sgm_reduce_mean))
SGM__ONNX_BUILD(global_max_pool, n, sgm__onnx_over_places(n, n->inputs[0], sgm_reduce_max))
