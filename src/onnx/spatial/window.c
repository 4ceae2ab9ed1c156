/* Applies windows with the library's operations, which have windows over one and two axes.
 *
 * Over three axes, a convolution is one of two axes whose channels are those of all slices that the window
 * sees at once: the depth of the window becomes channels, and the places along the depth become examples. A
 * pooling of three axes is one along the depth, then one of two axes. */
#include "onnx/spatial/window.h"

/* Slices along the depth of a window: each is an instruction. */
#define DEEPEST_WINDOW 1024

/* The options of the library's operations for two axes from `first` on. Entries of axes that data does not
 * have stay 0; with one axis the library takes the first entry of each array. */
static sgm_window_options options_of(const sgm__onnx_window *w, int32_t first, int64_t groups)
{
    sgm_window_options options = {.struct_size = sizeof options, .groups = groups};
    for (int32_t i = 0; i < 2 && first + i < w->axes; i++) {
        options.size[i] = w->size[first + i];
        options.stride[i] = w->stride[first + i];
        options.before[i] = w->before[first + i];
        options.after[i] = w->after[first + i];
        options.dilation[i] = w->dilation[first + i];
    }
    return options;
}

/* Those of a convolution, which takes the size from the weights and wants 0 here. */
static sgm_window_options convolution_options(const sgm__onnx_window *w, int64_t groups)
{
    sgm_window_options options = options_of(w, w->axes == 3 ? 1 : 0, groups);
    memset(options.size, 0, sizeof options.size);
    return options;
}

static sgm_shape shape_of(const sgm_graph *g, sgm_value x)
{
    return sgm_value_type(g, x).shape;
}

/* Weights (a, b, depth, height, width) as (a, b depth, height, width). */
static sgm_value join_depth(sgm_graph *g, sgm_value weights)
{
    sgm_shape s = shape_of(g, weights);
    if (s.dims[2] > DEEPEST_WINDOW)
        return sgm_graph_fail(g, SGM_ERROR_UNSUPPORTED, "a window of %lld slices, more than %d",
                              (long long)s.dims[2], DEEPEST_WINDOW);
    return sgm_reshape(g, weights, SGM__ONNX_SHAPE(s.dims[0], s.dims[1] * s.dims[2], s.dims[3], s.dims[4]));
}

/* How many windows begin along the first axis; 0: not one fits. */
static int64_t places_along_depth(const sgm__onnx_window *w)
{
    int64_t room = w->in[0] + w->before[0] + w->after[0] - (w->size[0] - 1) * w->dilation[0] - 1;
    return room < 0 ? 0 : room / w->stride[0] + 1;
}

/* x (n, channels, depth, height, width) as (n places, channels size, height, width): for each place of the
 * window along the depth, the slices that it sees there. */
static sgm_value slices_seen(sgm_graph *g, sgm_value x, const sgm__onnx_window *w)
{
    int64_t places = places_along_depth(w), step = w->stride[0];
    sgm_shape s = shape_of(g, x);
    if (places == 0)
        return sgm_graph_fail(g, SGM_ERROR_SHAPE, "a depth of %lld is less than the window's",
                              (long long)s.dims[2]);
    sgm_value *slices = sgm__alloc((size_t)w->size[0] * sizeof *slices);
    if (slices == NULL)
        return sgm__onnx_fail(g);
    x = sgm_pad(g, x, 2, w->before[0], w->after[0], 0);
    for (int64_t i = 0; i < w->size[0]; i++) {
        int64_t start = i * w->dilation[0];
        slices[i] = sgm_slice(g, x, 2, start, start + (places - 1) * step + 1, step);
        slices[i] =
            sgm_reshape(g, slices[i], SGM__ONNX_SHAPE(s.dims[0], s.dims[1], 1, places, s.dims[3], s.dims[4]));
    }
    x = sgm_concatenate(g, slices, (int32_t)w->size[0], 2);
    sgm__free(slices);
    x = sgm_permute(g, x, (const int32_t[]){0, 3, 1, 2, 4, 5});
    return sgm_reshape(g, x,
                       SGM__ONNX_SHAPE(s.dims[0] * places, s.dims[1] * w->size[0], s.dims[3], s.dims[4]));
}

sgm_value sgm__onnx_window_convolution(sgm_graph *g, sgm_value x, sgm_value weights, sgm_value biases,
                                       const sgm__onnx_window *w, int64_t groups)
{
    sgm_window_options options = convolution_options(w, groups);
    if (w->axes < 3)
        return sgm_convolution(g, x, weights, biases, &options);
    int64_t examples = shape_of(g, x).dims[0], places = places_along_depth(w);
    weights = join_depth(g, weights);
    if (g->status != SGM_OK)
        return weights;
    sgm_value y = sgm_convolution(g, slices_seen(g, x, w), weights, biases, &options);
    sgm_shape s = shape_of(g, y);
    y = sgm_reshape(g, y, SGM__ONNX_SHAPE(examples, places, s.dims[1], s.dims[2], s.dims[3]));
    return sgm_permute(g, y, (const int32_t[]){0, 2, 1, 3, 4});
}

/* The sum of what each place of the depth adds to the slices around it: y is (n depth, filters size, height,
 * width), the result (n, filters, new depth, height, width). */
static sgm_value add_slices(sgm_graph *g, sgm_value y, int64_t examples, const sgm__onnx_window *w)
{
    int64_t size = w->size[0], depth = w->in[0];
    int64_t whole = (depth - 1) * w->stride[0] + (size - 1) * w->dilation[0] + 1;
    sgm_shape s = shape_of(g, y);
    int64_t filters = s.dims[1] / size;
    sgm_value sum = {-1};
    y = sgm_reshape(g, y, SGM__ONNX_SHAPE(examples, depth, filters, size, s.dims[2], s.dims[3]));
    y = sgm_permute(g, y, (const int32_t[]){0, 2, 3, 1, 4, 5});
    for (int64_t i = 0; i < size; i++) {
        sgm_value part = sgm_reshape(g, sgm_slice(g, y, 2, i, i + 1, 1),
                                     SGM__ONNX_SHAPE(examples, filters, depth, s.dims[2], s.dims[3]));
        part = sgm_pad(g, part, 2, i * w->dilation[0], (size - 1 - i) * w->dilation[0], w->stride[0] - 1);
        sum = i == 0 ? part : sgm_add(g, sum, part);
    }
    return sgm_slice(g, sum, 2, w->before[0], whole - w->after[0], 1);
}

sgm_value sgm__onnx_window_transposed(sgm_graph *g, sgm_value x, sgm_value weights, const sgm__onnx_window *w,
                                      int64_t groups)
{
    sgm_window_options options = convolution_options(w, groups);
    if (w->axes < 3)
        return sgm_transposed_convolution(g, x, weights, (sgm_value){-1}, NULL, &options);
    sgm_shape s = shape_of(g, x);
    x = sgm_permute(g, x, (const int32_t[]){0, 2, 1, 3, 4});
    x = sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0] * s.dims[2], s.dims[1], s.dims[3], s.dims[4]));
    sgm_value y = sgm_transposed_convolution(g, x, join_depth(g, weights), (sgm_value){-1}, NULL, &options);
    return g->status == SGM_OK ? add_slices(g, y, s.dims[0], w) : y;
}

/* --- poolings --- */

typedef sgm_value (*pooling)(sgm_graph *g, sgm_value x, const sgm_window_options *options);

/* A convolution of each channel with ones. */
static sgm_value sum(sgm_graph *g, sgm_value x, const sgm_window_options *options)
{
    sgm_shape s = shape_of(g, x), ones = {.rank = s.rank, .dims = {1, 1}}, single = s;
    sgm_window_options convolution = *options;
    single.dims[0] = s.dims[0] * s.dims[1];
    single.dims[1] = 1;
    for (int32_t i = 2; i < s.rank; i++) {
        ones.dims[i] = options->size[i - 2];
        convolution.size[i - 2] = 0;
    }
    sgm_value one = sgm_cast(g, sgm_number(g, 1), sgm_value_type(g, x).dtype);
    x = sgm_convolution(g, sgm_reshape(g, x, &single), sgm_broadcast(g, one, &ones), (sgm_value){-1},
                        &convolution);
    sgm_shape result = shape_of(g, x);
    result.dims[0] = s.dims[0];
    result.dims[1] = s.dims[1];
    return sgm_reshape(g, x, &result);
}

/* Where the window has gaps, the sum of the elements divided by how many there are. */
static sgm_value average(sgm_graph *g, sgm_value x, const sgm_window_options *options)
{
    sgm_window_options data_alone = *options;
    data_alone.exclude_padding = true;
    return options->dilation[0] <= 1 && options->dilation[1] <= 1
               ? sgm_average_pooling(g, x, &data_alone)
               : sgm_divide(g, sum(g, x, options), sum(g, sgm_filled_like(g, x, 1), options));
}

/* Along the depth, where each slice is one long row, then in each slice. */
static sgm_value pool(sgm_graph *g, sgm_value x, const sgm__onnx_window *w, pooling function)
{
    sgm_window_options options = options_of(w, w->axes == 3 ? 1 : 0, 0);
    if (w->axes < 3)
        return function(g, x, &options);
    sgm_shape s = shape_of(g, x);
    sgm_window_options along = {.struct_size = sizeof along,
                                .size = {w->size[0], 1},
                                .stride = {w->stride[0], 1},
                                .before = {w->before[0]},
                                .after = {w->after[0]},
                                .dilation = {w->dilation[0], 1}};
    x = function(g,
                 sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1], s.dims[2], s.dims[3] * s.dims[4])),
                 &along);
    int64_t depth = shape_of(g, x).dims[2];
    x = sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1] * depth, s.dims[3], s.dims[4]));
    x = function(g, x, &options);
    sgm_shape slice = shape_of(g, x);
    return sgm_reshape(g, x, SGM__ONNX_SHAPE(s.dims[0], s.dims[1], depth, slice.dims[2], slice.dims[3]));
}

sgm_value sgm__onnx_window_maximum(sgm_graph *g, sgm_value x, const sgm__onnx_window *w)
{
    return pool(g, x, w, sgm_max_pooling);
}

sgm_value sgm__onnx_window_average(sgm_graph *g, sgm_value x, const sgm__onnx_window *w)
{
    return pool(g, x, w, average);
}

sgm_value sgm__onnx_window_sum(sgm_graph *g, sgm_value x, const sgm__onnx_window *w)
{
    return pool(g, x, w, sum);
}
