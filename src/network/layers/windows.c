/* Windows of layers: arguments of one or two numbers, padding, channels.
 *
 * convolution.c, pooling.c and adaptive.c read their arguments here into sgm_window_options; whether a
 * window fits its data is checked by the operations (src/ops/window.c). */
#include "network/layers/windows.h"

/* Windows mix neighbouring elements, so neither a single step nor lengths make sense behind them. */
sgm_value sgm__layer_channels(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    if (sgm__layer_refuses_step(call, graph, "its windows may lie across steps"))
        return (sgm_value){-1};
    sgm__layer_set_lengths(call, (sgm_value){-1}); /* the first dimension of an example is no time */
    if (shape.rank == dimensions + 2)
        return x;
    if (shape.rank == dimensions + 1) { /* one channel */
        sgm_shape wide = {.rank = dimensions + 2, .dims = {shape.dims[0], 1}};
        for (int32_t i = 0; i < dimensions; i++)
            wide.dims[2 + i] = shape.dims[1 + i];
        return sgm_reshape(graph, x, &wide);
    }
    sgm_shape example = sgm_shape_create(shape.rank > 0 ? shape.rank - 1 : 0, shape.dims + 1);
    return sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s wants examples of (%s) or (channels, %s), got %s%s",
                          call->entry->layer->type->name, dimensions == 2 ? "height, width" : "length",
                          dimensions == 2 ? "height, width" : "length",
                          sgm_shape_text(&example, text, sizeof text),
                          dimensions == 2   ? ": give the input its dimensions, for example input(1, 28, 28)"
                          : shape.rank == 4 ? ": images go to the layer without _1d in its name"
                                            : ": give the input its dimensions, for example input(2, 100)");
}

/* For data of one dimension the second number of the pair is 0, which stands for "no second axis" in
 * sgm_window_options. */
bool sgm__layer_pair(const sgm_layer_call *call, sgm_graph *graph, const char *argument, int32_t dimensions,
                     int64_t default_value, int64_t *pair)
{
    sgm_shape given = sgm_layer_shape(call, argument);
    if (given.rank > dimensions) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s takes at most %d number%s as %s, %d are given",
                       call->entry->layer->type->name, dimensions, dimensions == 1 ? "" : "s", argument,
                       given.rank);
        return false;
    }
    pair[0] = given.rank > 0 ? given.dims[0] : default_value;
    pair[1] = dimensions == 1 ? 0 : given.rank == 2 ? given.dims[1] : pair[0];
    return true;
}

/* As much padding as makes ceil(size / stride) windows, as in TensorFlow: (windows - 1) stride + reach -
 * size in all. An odd element goes behind. */
static void pad_same(sgm_window_options *window, const int64_t *sizes, int32_t dimensions)
{
    for (int32_t i = 0; i < dimensions; i++) {
        /* A stride below 1 is refused later, by the operation. */
        int64_t stride = window->stride[i] > 1 ? window->stride[i] : 1;
        int64_t windows = (sizes[i] + stride - 1) / stride;
        int64_t needed = (windows - 1) * stride + (window->size[i] - 1) * window->dilation[i] + 1 - sizes[i];
        window->before[i] = needed > 0 ? needed / 2 : 0;
        window->after[i] = needed > 0 ? needed - needed / 2 : 0;
    }
}

/* One number is for all sides; one for each dimension is for both of its sides; with twice as many come all
 * sides before, then all behind (top, left, bottom, right). */
static bool read_padding(const sgm_layer_call *call, sgm_graph *graph, int32_t dimensions,
                         sgm_window_options *window)
{
    sgm_shape given = sgm_layer_shape(call, "padding");
    int32_t count = given.rank;
    if (count > 1 && count != dimensions && count != 2 * dimensions) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s takes %s numbers as padding, %d are given",
                       call->entry->layer->type->name, dimensions == 1 ? "1 or 2" : "1, 2 or 4", count);
        return false;
    }
    for (int32_t i = 0; i < dimensions && count > 0; i++) {
        window->before[i] = given.dims[count == 1 ? 0 : i];
        window->after[i] = given.dims[count == 1 ? 0 : count == dimensions ? i : dimensions + i];
    }
    return true;
}

/* Stride, dilation and padding. Types that have no argument "dilation" or "same" are served, too. */
bool sgm__layer_window(const sgm_layer_call *call, sgm_graph *graph, int32_t dimensions, sgm_value x,
                       const int64_t *stride, sgm_window_options *window)
{
    const sgm_layer_type *type = call->entry->layer->type;
    window->dilation[0] = window->dilation[1] = 1;
    if (!sgm__layer_pair(call, graph, "stride", dimensions, stride[0], window->stride))
        return false;
    if (sgm_layer_shape(call, "stride").rank == 0)
        memcpy(window->stride, stride, sizeof window->stride);
    if (sgm__argument_find(type, "dilation") >= 0 &&
        !sgm__layer_pair(call, graph, "dilation", dimensions, 1, window->dilation))
        return false;
    if (sgm__argument_find(type, "same") < 0 || !sgm_layer_flag(call, "same"))
        return read_padding(call, graph, dimensions, window);
    if (sgm_layer_shape(call, "padding").rank > 0) {
        sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s has both padding and same: take one of them",
                       type->name);
        return false;
    }
    sgm_shape shape = sgm_value_type(graph, x).shape;
    pad_same(window, shape.dims + 2, dimensions);
    return true;
}
