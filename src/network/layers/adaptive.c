/* Poolings to a size, adaptive_average_pooling(7) and adaptive_max_pooling(7), and upsampling(2).
 *
 * All take (batch, channels, [height,] width) and work along one dimension after the other, since the window
 * of a result is a product of intervals. Where the input's size is a multiple of the result's, the windows
 * are equal, and the ordinary poolings do it. Otherwise means and linear interpolation are products with
 * constant matrices, whose gradients come with the matmul, and maxima are a gather of each window's
 * elements. Poolings with a size of their own are pooling.c. */
#include "network/layers/windows.h"

/* The axis of dimension i, counted from the last: i = 0 is the width. Dimensions come after (batch,
 * channels). */
#define AXIS(dimensions, i) (2 + (dimensions)-1 - (i))

/* The windows of PyTorch: the i-th of `count` over n elements goes from floor(i n / count) to ceil((i + 1) n
 * / count), so windows may overlap by one element, and none is empty. */
static int64_t window_start(int64_t i, int64_t n, int64_t count)
{
    return i * n / count;
}

static int64_t window_end(int64_t i, int64_t n, int64_t count)
{
    return ((i + 1) * n + count - 1) / count;
}

/* --- sums with fixed weights: matrices (elements, results) --- */

/* Fills a matrix (n elements, count results) of zeros, in row-major order, whose product with a line gives
 * its results. */
typedef void (*weights_function)(double *weights, int64_t n, int64_t count);

/* 1 / size of the window for each of its elements. */
static void average_weights(double *weights, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t start = window_start(i, n, count), end = window_end(i, n, count);
        for (int64_t k = start; k < end; k++)
            weights[k * count + i] = 1.0 / (double)(end - start);
    }
}

/* Linear interpolation: result i lies at (i + 1/2) n / count - 1/2 among the elements, whose centres are at
 * whole numbers, and takes from both neighbours by their distance. Places beyond the ends get the end
 * elements. As PyTorch with align_corners=False. */
static void linear_weights(double *weights, int64_t n, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double place = ((double)i + 0.5) * (double)n / (double)count - 0.5;
        place = place < 0 ? 0 : place;
        int64_t low = (int64_t)place, high = low + 1 < n ? low + 1 : low;
        weights[low * count + i] += 1 - (place - (double)low);
        weights[high * count + i] += place - (double)low;
    }
}

/* The matrix of `fill` as a constant of type `dtype`; the graph fails if memory is short. */
static sgm_value weights_of(sgm_graph *graph, sgm_dtype dtype, int64_t n, int64_t count,
                            weights_function fill)
{
    sgm_shape shape = sgm_shape_of(n, count);
    int64_t elements = sgm_shape_elements(&shape);
    double *weights = elements < 0 ? NULL : sgm__calloc((size_t)elements + 1, sizeof(double));
    sgm_tensor *tensor = weights != NULL ? sgm_tensor_create(dtype, &shape) : NULL;
    sgm_value value = {-1};
    if (tensor != NULL) {
        fill(weights, n, count);
        if (sgm_tensor_write(tensor, weights, (size_t)elements) == SGM_OK)
            value = sgm_constant(graph, tensor);
    }
    sgm_tensor_free(tensor);
    sgm__free(weights);
    if (!sgm_value_exists(value))
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for weights of (%lld, %lld)", (long long)n,
                              (long long)count);
    return value;
}

/* Multiplies each dimension by a matrix: the last one from the right, x W, the one before it from the left,
 * W^T x. Leading axes are matrices of a batched matmul. */
static sgm_value weigh(sgm_graph *graph, sgm_value x, int32_t dimensions, const int64_t *sizes,
                       weights_function fill)
{
    for (int32_t i = 0; i < dimensions && sgm_value_exists(x); i++) {
        sgm_type type = sgm_value_type(graph, x);
        int32_t axis = AXIS(dimensions, i);
        sgm_value weights = weights_of(graph, type.dtype, type.shape.dims[axis], sizes[axis - 2], fill);
        x = i == 0 ? sgm_matmul(graph, x, weights) : sgm_matmul(graph, sgm_transpose(graph, weights), x);
    }
    return x;
}

/* --- poolings --- */

/* The indices of the elements of all windows along a dimension, int64 (count, longest). A shorter window has
 * its last element more than once, which changes no maximum; the gradients of the copies are added up. */
static sgm_value window_places(sgm_graph *graph, int64_t n, int64_t count)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t length = window_end(i, n, count) - window_start(i, n, count);
        longest = length > longest ? length : longest;
    }
    sgm_shape shape = sgm_shape_of(count, longest);
    sgm_tensor *tensor = sgm_tensor_create(SGM_INT64, &shape);
    if (tensor == NULL)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the places of %lld windows",
                              (long long)count);
    int64_t *places = sgm_tensor_data(tensor);
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < longest; k++) {
            int64_t place = window_start(i, n, count) + k, last = window_end(i, n, count) - 1;
            places[i * longest + k] = place < last ? place : last;
        }
    sgm_value value = sgm_constant(graph, tensor);
    sgm_tensor_free(tensor);
    return value;
}

/* Gathers (..., count, longest, ...) along each dimension and takes the maximum over the windows' axis. */
static sgm_value largest(sgm_graph *graph, sgm_value x, int32_t dimensions, const int64_t *sizes)
{
    for (int32_t i = 0; i < dimensions && sgm_value_exists(x); i++) {
        int32_t axis = AXIS(dimensions, i);
        int64_t n = sgm_value_type(graph, x).shape.dims[axis];
        x = sgm_gather(graph, x, window_places(graph, n, sizes[axis - 2]), axis);
        x = sgm_reduce_max(graph, x, (const int32_t[]){axis + 1}, 1, false);
    }
    return x;
}

/* Windows of one size side by side, if every dimension is a multiple of its result; false otherwise. */
static bool even_window(const sgm_shape *shape, int32_t dimensions, const int64_t *sizes,
                        sgm_window_options *window)
{
    *window = (sgm_window_options){.struct_size = sizeof *window};
    for (int32_t i = 0; i < dimensions; i++) {
        if (shape->dims[2 + i] % sizes[i] != 0)
            return false;
        window->size[i] = window->stride[i] = shape->dims[2 + i] / sizes[i];
    }
    return true;
}

/* Both poolings; `dimensions` is 1 or 2. */
static sgm_value adaptive(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions,
                          bool is_max)
{
    int64_t sizes[2];
    sgm_window_options window;
    x = sgm__layer_channels(call, graph, x, dimensions);
    if (!sgm_value_exists(x) || !sgm__layer_pair(call, graph, "size", dimensions, 1, sizes))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    if (sgm_shape_elements(&shape) == 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: there is nothing to pool",
                              call->entry->layer->type->name);
    if (even_window(&shape, dimensions, sizes, &window))
        return is_max ? sgm_max_pooling(graph, x, &window) : sgm_average_pooling(graph, x, &window);
    return is_max ? largest(graph, x, dimensions, sizes)
                  : weigh(graph, x, dimensions, sizes, average_weights);
}

/* --- upsampling --- */

/* The nearest element: reshapes to (..., height, 1, width, 1), broadcasts the 1s to the factors, and
 * reshapes to the larger size. The gradient is the sum over the copies. */
static sgm_value repeat(sgm_graph *graph, sgm_value x, int32_t dimensions, const int64_t *factors)
{
    sgm_shape shape = sgm_value_type(graph, x).shape, apart = {.rank = 2 + 2 * dimensions}, wide,
              together = shape;
    apart.dims[0] = shape.dims[0];
    apart.dims[1] = shape.dims[1];
    for (int32_t i = 0; i < dimensions; i++) {
        apart.dims[2 + 2 * i] = shape.dims[2 + i];
        apart.dims[3 + 2 * i] = 1;
    }
    wide = apart;
    for (int32_t i = 0; i < dimensions; i++) {
        wide.dims[3 + 2 * i] = factors[i];
        together.dims[2 + i] *= factors[i];
    }
    return sgm_reshape(graph, sgm_broadcast(graph, sgm_reshape(graph, x, &apart), &wide), &together);
}

/* Result (batch, channels, height * factor, width * factor). */
static sgm_value upsample(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions,
                          bool linear)
{
    int64_t factors[2], sizes[2];
    x = sgm__layer_channels(call, graph, x, dimensions);
    if (!sgm_value_exists(x) || !sgm__layer_pair(call, graph, "factor", dimensions, 1, factors))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    if (sgm_shape_elements(&shape) == 0)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: there is nothing to enlarge",
                              call->entry->layer->type->name);
    for (int32_t i = 0; i < dimensions; i++)
        sizes[i] = shape.dims[2 + i] * factors[i];
    return linear ? weigh(graph, x, dimensions, sizes, linear_weights)
                  : repeat(graph, x, dimensions, factors);
}

SGM__LAYER_FORWARD(adaptive_average_pooling, adaptive(call, graph, inputs[0], 2, false))
SGM__LAYER_FORWARD(adaptive_average_pooling_1d, adaptive(call, graph, inputs[0], 1, false))
SGM__LAYER_FORWARD(adaptive_max_pooling, adaptive(call, graph, inputs[0], 2, true))
SGM__LAYER_FORWARD(adaptive_max_pooling_1d, adaptive(call, graph, inputs[0], 1, true))
SGM__LAYER_FORWARD(upsampling, upsample(call, graph, inputs[0], 2, sgm_layer_flag(call, "bilinear")))
SGM__LAYER_FORWARD(upsampling_1d, upsample(call, graph, inputs[0], 1, sgm_layer_flag(call, "linear")))

static const sgm_option adaptive_arguments[] = {
    {.name = "size",
     .kind = SGM_KIND_INTEGER,
     .list = true,
     .required = true,
     .minimum = 1,
     .maximum = 65536,
     .doc = "height and width that it gives; one number: both"},
};
#define FACTOR                                                                                               \
    {                                                                                                        \
        .name = "factor", .kind = SGM_KIND_INTEGER, .list = true, .required = true, .minimum = 1,            \
        .maximum = 4096, .doc = "how many times as high and as wide; one number: both"                       \
    }
static const sgm_option upsampling_arguments[] = {
    FACTOR,
    {.name = "bilinear",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "means of the neighbours by their distance; otherwise the nearest element"},
};
static const sgm_option upsampling_1d_arguments[] = {
    FACTOR,
    {.name = "linear",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "means of the neighbours by their distance; otherwise the nearest element"},
};

SGM__LAYER(adaptive_average_pooling, "means of as many windows as give this size, whatever comes",
           adaptive_arguments, SGM__COUNT(adaptive_arguments),
           .formula = "y[i] = mean of x from floor(i n / size) to ceil((i + 1) n / size)",
           .example = "adaptive_average_pooling(7, 7)");
SGM__LAYER(adaptive_average_pooling_1d, "the same along one dimension, (channels, length)",
           adaptive_arguments, SGM__COUNT(adaptive_arguments),
           .formula = "y[i] = mean of x from floor(i n / size) to ceil((i + 1) n / size)",
           .example = "adaptive_average_pooling_1d(8)");
SGM__LAYER(adaptive_max_pooling, "the largest elements of as many windows as give this size, whatever comes",
           adaptive_arguments, SGM__COUNT(adaptive_arguments),
           .formula = "y[i] = max of x from floor(i n / size) to ceil((i + 1) n / size)",
           .example = "adaptive_max_pooling(7, 7)");
SGM__LAYER(adaptive_max_pooling_1d, "the same along one dimension, (channels, length)", adaptive_arguments,
           SGM__COUNT(adaptive_arguments),
           .formula = "y[i] = max of x from floor(i n / size) to ceil((i + 1) n / size)",
           .example = "adaptive_max_pooling_1d(8)");
SGM__LAYER(upsampling, "an image that is larger by a factor", upsampling_arguments,
           SGM__COUNT(upsampling_arguments),
           .formula = "y[i] = x[floor(i / factor)], or between neighbours with bilinear",
           .example = "upsampling(2)");
SGM__LAYER(upsampling_1d, "the same along one dimension, (channels, length)", upsampling_1d_arguments,
           SGM__COUNT(upsampling_1d_arguments),
           .formula = "y[i] = x[floor(i / factor)], or between neighbours with linear",
           .example = "upsampling_1d(2)");
