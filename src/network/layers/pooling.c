/* max_pooling(2), average_pooling(2), both also as _1d, global_average_pooling and global_max_pooling.
 *
 * Images are (batch, channels, height, width), lines (batch, channels, length). Windows lie side by side
 * unless a stride is given. Global poolings reduce everything behind the channels, or, with the flag
 * `steps`, the steps of a sequence. Poolings to a size are adaptive.c; arguments of windows are read in
 * windows.c. */
#include "network/layers/blocks.h"
#include "network/layers/windows.h"

/* Below all that could be the largest element: nearly the minimum of float32 and bfloat16. */
#define LOWEST (-3e38)

/* The options' size, stride, padding and dilation; the stride is the window's size unless it is given.
 * False: the graph has failed. */
static bool read_window(const sgm_layer_call *call, sgm_graph *graph, int32_t dimensions, sgm_value x,
                        sgm_window_options *window)
{
    return sgm_value_exists(x) && sgm__layer_pair(call, graph, "size", dimensions, 1, window->size) &&
           sgm__layer_window(call, graph, dimensions, x, (const int64_t[]){window->size[0], window->size[1]},
                             window);
}

/* (batch, channels, out...) of the largest elements; padding is never the largest. */
static sgm_value largest(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    x = sgm__layer_channels(call, graph, x, dimensions);
    return read_window(call, graph, dimensions, x, &window) ? sgm_max_pooling(graph, x, &window)
                                                            : (sgm_value){-1};
}

/* (batch, channels, out...) of the means, with or without the padding among what is averaged. */
static sgm_value average(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    x = sgm__layer_channels(call, graph, x, dimensions);
    window.exclude_padding = sgm_layer_flag(call, "exclude_padding");
    return read_window(call, graph, dimensions, x, &window) ? sgm_average_pooling(graph, x, &window)
                                                            : (sgm_value){-1};
}

/* (batch, time, features) to (batch, features) over the steps that count. An example without any gives
 * zeros: its maximum would be LOWEST, its mean 0 / 0. Means divide by the example's own length. */
static sgm_value over_steps(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool is_max)
{
    static const int32_t second[] = {1};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    sgm_value lengths = sgm_layer_lengths(call);
    char text[128];
    if (sgm__layer_refuses_step(call, graph, "it looks at all steps"))
        return (sgm_value){-1};
    if (shape.rank != 3)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "%s(steps) wants a sequence (batch, time, features), got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    if (!sgm_value_exists(lengths))
        return is_max ? sgm_reduce_max(graph, x, second, 1, false)
                      : sgm_reduce_mean(graph, x, second, 1, false);
    sgm_shape wide = sgm_shape_of(shape.dims[0], shape.dims[1], 1), column = sgm_shape_of(shape.dims[0], 1);
    sgm_value counts = sgm_reshape(graph, sgm__layer_steps(graph, lengths, shape.dims[1]), &wide);
    /* Steps that do not count are replaced by what changes neither a maximum nor a sum. */
    sgm_value seen = sgm_select(graph, counts, x, sgm_filled_like(graph, x, is_max ? LOWEST : 0));
    sgm_value number = sgm_reshape(graph, lengths, &column);
    if (is_max) {
        sgm_value largest = sgm_reduce_max(graph, seen, second, 1, false);
        return sgm_select(graph, sgm_greater(graph, number, sgm_number(graph, 0)), largest,
                          sgm_filled_like(graph, largest, 0));
    }
    number = sgm_maximum(graph, sgm_cast(graph, number, sgm_layer_dtype(call)), sgm_number(graph, 1));
    return sgm_divide(graph, sgm_reduce_sum(graph, seen, second, 1, false), number);
}

/* (batch, channels, ...) to (batch, channels). */
static sgm_value global(sgm_layer_call *call, sgm_graph *graph, sgm_value x, bool is_max)
{
    static const int32_t axes[] = {2, 3, 4, 5, 6, 7};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    if (sgm_layer_flag(call, "steps"))
        return over_steps(call, graph, x, is_max);
    if (shape.rank < 3)
        return sgm_graph_fail(graph, SGM_ERROR_SHAPE,
                              "%s wants (batch, channels, ...) with something to pool, got %s",
                              call->entry->layer->type->name, sgm_shape_text(&shape, text, sizeof text));
    return is_max ? sgm_reduce_max(graph, x, axes, shape.rank - 2, false)
                  : sgm_reduce_mean(graph, x, axes, shape.rank - 2, false);
}

SGM__LAYER_FORWARD(max_pooling, largest(call, graph, inputs[0], 2))
SGM__LAYER_FORWARD(max_pooling_1d, largest(call, graph, inputs[0], 1))
SGM__LAYER_FORWARD(average_pooling, average(call, graph, inputs[0], 2))
SGM__LAYER_FORWARD(average_pooling_1d, average(call, graph, inputs[0], 1))
SGM__LAYER_FORWARD(global_average_pooling, global(call, graph, inputs[0], false))
SGM__LAYER_FORWARD(global_max_pooling, global(call, graph, inputs[0], true))

#define SIZE                                                                                                 \
    {                                                                                                        \
        .name = "size", .kind = SGM_KIND_INTEGER, .list = true, .required = true, .minimum = 1,              \
        .maximum = 1e6, .doc = "height and width of the window; one number: both"                            \
    }
static const sgm_option max_arguments[] = {SIZE, SGM__ARGUMENT_STRIDE("the window's size unless given"),
                                           SGM__ARGUMENT_PADDING, SGM__ARGUMENT_DILATION, SGM__ARGUMENT_SAME};
static const sgm_option average_arguments[] = {
    SIZE,
    SGM__ARGUMENT_STRIDE("the window's size unless given"),
    SGM__ARGUMENT_PADDING,
    SGM__ARGUMENT_SAME,
    {.name = "exclude_padding",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "the average of the data in the window; otherwise padding counts as zeros"},
};
static const sgm_option global_arguments[] = {
    {.name = "steps",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "of a sequence (time, features) over the steps that count: (features)"},
};

SGM__LAYER(max_pooling, "the largest element of each window of an image", max_arguments,
           SGM__COUNT(max_arguments), .formula = "y = max of x over each window",
           .example = "max_pooling(2)");
SGM__LAYER(max_pooling_1d, "the same along one dimension, (channels, length)", max_arguments,
           SGM__COUNT(max_arguments), .formula = "y = max of x over each window",
           .example = "max_pooling_1d(2)");
SGM__LAYER(average_pooling, "the mean of each window of an image", average_arguments,
           SGM__COUNT(average_arguments), .formula = "y = mean of x over each window",
           .example = "average_pooling(2)");
SGM__LAYER(average_pooling_1d, "the same along one dimension, (channels, length)", average_arguments,
           SGM__COUNT(average_arguments), .formula = "y = mean of x over each window",
           .example = "average_pooling_1d(2)");
SGM__LAYER(global_average_pooling, "the mean of each channel: (channels, height, width) becomes (channels)",
           global_arguments, SGM__COUNT(global_arguments), .formula = "y[c] = mean of x[c]",
           .example = "global_average_pooling");
SGM__LAYER(global_max_pooling,
           "the largest element of each channel: (channels, height, width) becomes (channels)",
           global_arguments, SGM__COUNT(global_arguments), .formula = "y[c] = max of x[c]",
           .example = "global_max_pooling");
