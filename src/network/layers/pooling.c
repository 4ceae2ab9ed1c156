/* max_pooling(2), average_pooling(2), both also as _1d, global_average_pooling and global_max_pooling. */
#include "network/layers/windows.h"

/* Windows lie side by side unless a stride is given. */
static bool read_window(const sgm_layer_call *call, sgm_graph *graph, int32_t dimensions, sgm_value x,
                        sgm_window_options *window)
{
    return sgm_value_is(x) && sgm__layer_pair(call, graph, "size", dimensions, 1, window->size) &&
           sgm__layer_window(call, graph, dimensions, x, (const int64_t[]){window->size[0], window->size[1]},
                             window);
}

static sgm_value largest(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    x = sgm__layer_channels(call, graph, x, dimensions);
    return read_window(call, graph, dimensions, x, &window) ? sgm_max_pooling(graph, x, &window)
                                                            : (sgm_value){-1};
}

static sgm_value average(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    x = sgm__layer_channels(call, graph, x, dimensions);
    window.leave_padding = sgm_layer_flag(call, "leave_padding");
    return read_window(call, graph, dimensions, x, &window) ? sgm_average_pooling(graph, x, &window)
                                                            : (sgm_value){-1};
}

static sgm_value global(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool is_max)
{
    static const int32_t axes[] = {2, 3, 4, 5, 6, 7};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    if (shape.rank < 3)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "%s wants (batch, channels, ...) with something to pool, got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    return is_max ? sgm_reduce_max(graph, x, axes, shape.rank - 2, false)
                  : sgm_reduce_mean(graph, x, axes, shape.rank - 2, false);
}

#define FORWARD(name, expression)                                                                            \
    static sgm_value forward_##name(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,         \
                                    int32_t count)                                                           \
    {                                                                                                        \
        (void)count;                                                                                         \
        return expression;                                                                                   \
    }
FORWARD(max_pooling, largest(call, graph, inputs[0], 2))
FORWARD(max_pooling_1d, largest(call, graph, inputs[0], 1))
FORWARD(average_pooling, average(call, graph, inputs[0], 2))
FORWARD(average_pooling_1d, average(call, graph, inputs[0], 1))
FORWARD(global_average_pooling, global(call, graph, inputs[0], false))
FORWARD(global_max_pooling, global(call, graph, inputs[0], true))

#define SIZE                                                                                                 \
    {                                                                                                        \
        .name = "size", .kind = SGM_ARGUMENT_SHAPE, .required = true, .least = 1, .most = 1e6,               \
        .doc = "height and width of the window; one number: both"                                            \
    }
static const sgm_argument max_arguments[] = {SIZE, SGM__ARGUMENT_STRIDE("the window's size unless given"),
                                             SGM__ARGUMENT_PADDING, SGM__ARGUMENT_DILATION,
                                             SGM__ARGUMENT_SAME};
static const sgm_argument average_arguments[] = {
    SIZE,
    SGM__ARGUMENT_STRIDE("the window's size unless given"),
    SGM__ARGUMENT_PADDING,
    SGM__ARGUMENT_SAME,
    {.name = "leave_padding",
     .kind = SGM_ARGUMENT_FLAG,
     .doc = "the average of the data in the window; otherwise padding counts as zeros"},
};

SGM__LAYER(max_pooling, "the largest element of each window of an image", max_arguments,
           SGM__COUNT(max_arguments));
SGM__LAYER(max_pooling_1d, "the same along one dimension, (channels, length)", max_arguments,
           SGM__COUNT(max_arguments));
SGM__LAYER(average_pooling, "the mean of each window of an image", average_arguments,
           SGM__COUNT(average_arguments));
SGM__LAYER(average_pooling_1d, "the same along one dimension, (channels, length)", average_arguments,
           SGM__COUNT(average_arguments));
SGM__LAYER(global_average_pooling, "the mean of each channel: (channels, height, width) becomes (channels)",
           NULL, 0);
SGM__LAYER(global_max_pooling,
           "the largest element of each channel: (channels, height, width) becomes (channels)", NULL, 0);
