/* Layers with parameters: products, convolutions, normalisations; and poolings, which have windows as
 * convolutions do.
 *
 * Matrices are transposed where the file has (outputs, inputs). A product takes the addition of its biases
 * along. */
#include "onnx/translate.h"

#include <stdlib.h>
#include <string.h>

/* The transposed matrix; takes the matrix. NULL on failure. */
static sgm_tensor *transpose(sgm_tensor *matrix)
{
    sgm_tensor *view = sgm_tensor_permute(matrix, (const int32_t[]){1, 0});
    sgm_tensor *copy = view != NULL ? sgm_tensor_cast(view, sgm_tensor_dtype(view)) : NULL;
    sgm_tensor_free(view);
    sgm_tensor_free(matrix);
    return copy;
}

/* The same numbers as a list; takes the tensor. */
static sgm_tensor *as_list(sgm_tensor *tensor)
{
    sgm_shape list = sgm_shape_of(sgm_shape_elements(sgm_tensor_shape(tensor)));
    sgm_tensor *reshaped = sgm_tensor_reshape(tensor, &list);
    sgm_tensor_free(tensor);
    return reshaped;
}

static bool is_float(const sgm_tensor *tensor)
{
    return tensor != NULL && sgm_dtype_is_float(sgm_tensor_dtype(tensor));
}

/* --- products and their biases --- */

/* The node that does nothing but add a list of `count` numbers to what this node gives: the list, and the
 * node. NULL: there is none. `places`: dimensions of 1 behind the list. */
static sgm_tensor *take_biases(sgm__translation *t, int64_t count, int32_t places, size_t *adds)
{
    sgm_onnx_node_info info;
    size_t consumer = sgm__translation_consumer(t, t->node);
    *adds = t->node;
    if (consumer == SIZE_MAX || !sgm_onnx_node_at(t->model, consumer, &info) || strcmp(info.type, "Add") != 0)
        return NULL;
    const char *output = sgm_onnx_node_output(t->model, t->node, 0);
    const char *first = sgm_onnx_node_input(t->model, consumer, 0),
               *second = sgm_onnx_node_input(t->model, consumer, 1);
    if (first == NULL || second == NULL)
        return NULL;
    sgm_tensor *biases = sgm_onnx_constant(t->model, strcmp(first, output) == 0 ? second : first);
    const sgm_shape *shape = biases != NULL ? sgm_tensor_shape(biases) : NULL;
    bool fits = is_float(biases) && sgm_shape_elements(shape) == count && shape->rank > places &&
                shape->dims[shape->rank - 1 - places] == count;
    if (!fits) {
        sgm_tensor_free(biases);
        return NULL;
    }
    *adds = consumer;
    t->done[consumer] = true;
    return as_list(biases);
}

/* A dense layer of `weights` (features, size), which it takes, and `biases`, or those that are added next. */
static void write_dense(sgm__translation *t, sgm_tensor *weights, sgm_tensor *biases, int32_t rank)
{
    size_t adds = t->node;
    int64_t size = sgm_tensor_shape(weights)->dims[1];
    if (biases == NULL)
        biases = take_biases(t, size, 0, &adds);
    sgm__translation_begin(t, 1, "dense(%lld%s%s", (long long)size, rank > 2 ? ", time_distributed" : "",
                           biases == NULL ? ", no_bias" : "");
    sgm__translation_parameter(t, "weights", weights);
    if (biases != NULL)
        sgm__translation_parameter(t, "biases", biases);
    sgm__translation_end(t, 0, adds, rank);
}

void sgm__translation_matmul(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    sgm_tensor *weights = sgm__translation_constant(t, 1);
    if (x != NULL && is_float(weights) && sgm_tensor_shape(weights)->rank == 2) {
        write_dense(t, weights, NULL, x->rank);
        return;
    }
    sgm_tensor_free(weights);
    sgm__translation_refuse(t, "a product with something else than a matrix of the file");
}

void sgm__translation_gemm(sgm__translation *t)
{
    sgm_tensor *weights = sgm__translation_constant(t, 1), *biases = sgm__translation_constant(t, 2);
    bool given = sgm_onnx_node_input(t->model, t->node, 2) != NULL;
    bool transposes = sgm__translation_integer(t, "transB", 0) != 0;
    if (sgm__translation_number(t, "alpha", 1) != 1 || sgm__translation_number(t, "beta", 1) != 1 ||
        sgm__translation_integer(t, "transA", 0) != 0 || !is_float(weights) ||
        sgm_tensor_shape(weights)->rank != 2 || (given && !is_float(biases))) {
        sgm_tensor_free(weights);
        sgm_tensor_free(biases);
        sgm__translation_refuse(t,
                                "a product with factors, or with something else than a matrix of the file");
        return;
    }
    weights = transposes ? transpose(weights) : weights;
    if (weights == NULL) {
        sgm_tensor_free(biases);
        t->status = sgm_last_status();
        return;
    }
    if (biases != NULL && sgm_shape_elements(sgm_tensor_shape(biases)) != sgm_tensor_shape(weights)->dims[1])
        sgm__translation_refuse(t, "biases that are not one for each output");
    write_dense(t, weights, biases != NULL ? as_list(biases) : NULL, 2);
}

void sgm__translation_gather(sgm__translation *t)
{
    sgm_tensor *table = sgm__translation_constant(t, 0);
    const sgm__translation_chain *x = sgm__translation_input(t, 1);
    if (x == NULL || !is_float(table) || sgm_tensor_shape(table)->rank != 2 ||
        sgm__translation_integer(t, "axis", 0) != 0) {
        sgm_tensor_free(table);
        sgm__translation_refuse(t, "something else than rows of a matrix of the file");
        return;
    }
    const int64_t *dims = sgm_tensor_shape(table)->dims;
    sgm__translation_begin(t, 0, "embedding(%lld, %lld", (long long)dims[0], (long long)dims[1]);
    sgm__translation_parameter(t, "weights", table);
    sgm__translation_end(t, 1, t->node, x->rank + 1);
}

/* --- windows --- */

/* ", stride=(2, 1)", unless all are `usual`. */
static void write_list(sgm__translation *t, const char *name, const int64_t *list, int32_t count,
                       int64_t usual)
{
    bool plain = true;
    for (int32_t i = 0; i < count; i++)
        plain = plain && list[i] == usual;
    if (plain)
        return;
    sgm__translation_argument(t, count > 1 ? ", %s=(" : ", %s=", name);
    for (int32_t i = 0; i < count; i++)
        sgm__translation_argument(t, "%s%lld", i > 0 ? ", " : "", (long long)list[i]);
    sgm__translation_argument(t, count > 1 ? ")" : "");
}

/* The arguments of all windows over `axes` axes. */
static void write_window(sgm__translation *t, int32_t axes, bool pooling)
{
    int64_t list[SGM__TRANSLATION_MOST_DIMENSIONS] = {1, 1, 1, 1};
    if (sgm__translation_integers(t, "strides", list, 4) >= 0 || pooling)
        write_list(t, "stride", list, axes, pooling ? 0 : 1);
    if (sgm__translation_integers(t, "dilations", list, 4) >= 0)
        write_list(t, "dilation", list, axes, 1);
    bool has_pads = sgm__translation_integers(t, "pads", list, 4) >= 0;
    if (sgm__translation_text_is(t, "auto_pad", "NOTSET", "SAME_UPPER"))
        sgm__translation_argument(t, ", same");
    else if (sgm__translation_text_is(t, "auto_pad", "NOTSET", "SAME_LOWER"))
        sgm__translation_refuse(t, "padding with SAME_LOWER");
    else if (has_pads && !sgm__translation_text_is(t, "auto_pad", "NOTSET", "VALID"))
        write_list(t, "padding", list, 2 * axes, 0);
}

/* Weights of one or two axes; 0 and an end otherwise. */
static int32_t window_axes(sgm__translation *t, const sgm_tensor *weights)
{
    int32_t rank = is_float(weights) ? sgm_tensor_shape(weights)->rank : 0;
    if (rank == 3 || rank == 4)
        return rank - 2;
    sgm__translation_refuse(
        t, "a convolution over other than one or two axes, or with weights that are computed");
    return 0;
}

static void write_convolution(sgm__translation *t, bool transposed)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    sgm_tensor *weights = sgm__translation_constant(t, 1), *biases = sgm__translation_constant(t, 2);
    int32_t axes = window_axes(t, weights);
    int64_t groups = sgm__translation_integer(t, "group", 1), list[4];
    if (x == NULL || axes == 0) {
        sgm_tensor_free(weights);
        sgm_tensor_free(biases);
        return;
    }
    const int64_t *dims = sgm_tensor_shape(weights)->dims;
    int64_t size = transposed ? dims[1] * groups : dims[0];
    size_t adds = t->node;
    bool given = sgm_onnx_node_input(t->model, t->node, 2) != NULL;
    if (!given)
        biases = take_biases(t, size, axes, &adds);
    else if (biases == NULL)
        sgm__translation_refuse(t, "biases that are computed");
    sgm__translation_begin(t, 1, "%sconvolution%s(%lld", transposed ? "transposed_" : "",
                           axes == 1 ? "_1d" : "", (long long)size);
    write_list(t, "kernel", dims + 2, axes, -1);
    sgm__translation_integers(t, "kernel_shape", list, 4);
    write_window(t, axes, false);
    if (transposed && sgm__translation_integers(t, "output_padding", list, 4) >= 0)
        write_list(t, "output_padding", list, axes, 0);
    if (groups != 1)
        sgm__translation_argument(t, ", groups=%lld", (long long)groups);
    if (biases == NULL)
        sgm__translation_argument(t, ", no_bias");
    int32_t rank = x->rank;
    sgm__translation_parameter(t, "weights", weights);
    if (biases != NULL)
        sgm__translation_parameter(t, "biases", biases);
    sgm__translation_end(t, 0, adds, rank);
}

void sgm__translation_convolution(sgm__translation *t)
{
    write_convolution(t, false);
}

void sgm__translation_transposed_convolution(sgm__translation *t)
{
    write_convolution(t, true);
}

/* Where it has no strides, ONNX's windows are one element apart, the layer's by their size. */
static void write_pooling(sgm__translation *t, bool average)
{
    int64_t size[4];
    int32_t axes = sgm__translation_integers(t, "kernel_shape", size, 4);
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    if (axes < 1 || axes > 2 || sgm__translation_integer(t, "ceil_mode", 0) != 0) {
        sgm__translation_refuse(
            t, "windows over other than one or two axes, or that reach over the end (ceil_mode)");
        return;
    }
    sgm__translation_begin(t, SIZE_MAX, "%s_pooling%s(", average ? "average" : "max", axes == 1 ? "_1d" : "");
    sgm__translation_argument(t, "%lld", (long long)size[0]);
    if (axes == 2 && size[0] != size[1])
        sgm__translation_argument(t, ", %lld", (long long)size[1]);
    write_window(t, axes, true);
    sgm__translation_integer(t, "storage_order", 0);
    if (average && sgm__translation_integer(t, "count_include_pad", 0) == 0)
        sgm__translation_argument(t, ", exclude_padding");
    sgm__translation_end(t, 0, t->node, x != NULL ? x->rank : 0);
}

void sgm__translation_max_pool(sgm__translation *t)
{
    write_pooling(t, false);
}

void sgm__translation_average_pool(sgm__translation *t)
{
    write_pooling(t, true);
}

/* One number for each channel, which stays an image of 1 x 1. */
static void write_global(sgm__translation *t, const char *kind, int32_t rank)
{
    char layers[64];
    if (rank != 3 && rank != 4)
        sgm__translation_refuse(t, "a pooling over other than one or two axes");
    snprintf(layers, sizeof layers, "adaptive_%s_pooling%s(1)", kind, rank == 3 ? "_1d" : "");
    sgm__translation_follow(t, 0, layers, rank);
}

void sgm__translation_global_average(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    write_global(t, "average", x != NULL ? x->rank : 3);
}

void sgm__translation_global_maximum(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    write_global(t, "max", x != NULL ? x->rank : 3);
}

/* Whether axes, in any order, are those behind examples and channels. */
static bool are_all_places(const int64_t *axes, int32_t count, int32_t rank)
{
    uint32_t seen = 0;
    for (int32_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 2 || axis >= rank)
            return false;
        seen |= UINT32_C(1) << axis;
    }
    return count > 0 && count == rank - 2 && seen == (UINT32_C(1) << rank) - 4;
}

/* The mean of all places of each channel, which some exporters write instead. */
void sgm__translation_reduce_mean(sgm__translation *t)
{
    int64_t axes[4];
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    int32_t count = sgm__translation_integers(t, "axes", axes, 4);
    if (count < 0)
        count = sgm__translation_constant_integers(t, 1, axes, 4);
    bool keeps = sgm__translation_integer(t, "keepdims", 1) != 0;
    sgm__translation_integer(t, "noop_with_empty_axes", 0); /* there are some, or it is refused */
    if (x == NULL)
        return;
    if (!are_all_places(axes, count, x->rank))
        sgm__translation_refuse(t, "a mean over other axes than those of all places");
    else if (keeps)
        write_global(t, "average", x->rank);
    else
        sgm__translation_follow(t, 0, "global_average_pooling", 2);
}

/* --- normalisations --- */

/* The inputs from the second on, as parameters of these names; NULL ends them. */
static void take_parameters(sgm__translation *t, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        sgm_tensor *value = sgm__translation_constant(t, i + 1);
        if (!is_float(value)) {
            sgm__translation_refuse(t, "its input %zu is computed", i + 1);
            sgm_tensor_free(value);
            return;
        }
        sgm__translation_parameter(t, names[i], as_list(value));
    }
}

void sgm__translation_batch_norm(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    double epsilon = sgm__translation_number(t, "epsilon", 1e-5);
    double momentum = sgm__translation_number(t, "momentum", 0.9);
    if (sgm__translation_integer(t, "training_mode", 0) != 0 ||
        sgm__translation_integer(t, "spatial", 1) != 1)
        sgm__translation_refuse(t, "it trains, or has numbers for each place");
    sgm__translation_begin(t, 1, "batch_norm(%.7g, %.7g", 1 - momentum, epsilon);
    take_parameters(t, (const char *const[]){"gains", "biases", "means", "variances", NULL});
    sgm__translation_end(t, 0, t->node, x != NULL ? x->rank : 0);
}

void sgm__translation_layer_norm(sgm__translation *t)
{
    const sgm__translation_chain *x = sgm__translation_input(t, 0);
    int64_t axis = sgm__translation_integer(t, "axis", -1);
    double epsilon = sgm__translation_number(t, "epsilon", 1e-5);
    bool biased = sgm_onnx_node_input(t->model, t->node, 2) != NULL;
    sgm__translation_integer(t, "stash_type", 1);
    if (x != NULL && axis != -1 && axis != x->rank - 1)
        sgm__translation_refuse(t, "a norm over other axes than the last");
    sgm__translation_begin(t, 1, "layer_norm(%.7g%s", epsilon, biased ? "" : ", no_bias");
    take_parameters(t, biased ? (const char *const[]){"gains", "biases", NULL}
                              : (const char *const[]){"gains", NULL});
    sgm__translation_end(t, 0, t->node, x != NULL ? x->rank : 0);
}
