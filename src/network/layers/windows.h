/* Functions and arguments that layers with windows share. Internal. */
#ifndef SGM_NETWORK_LAYERS_WINDOWS_H
#define SGM_NETWORK_LAYERS_WINDOWS_H

#include "network/network_internal.h"

/* `x` as (batch, channels, ...) with `dimensions` (1 or 2) axes after the channels; an example without
 * channels is one channel. Its lengths are dropped. Nothing, and the graph's failure, if it has another form
 * or single steps are recorded. */
sgm_value sgm__layer_channels(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions);
/* An argument of 1 or 2 numbers; one is for both dimensions. False: the graph has failed. */
bool sgm__layer_pair(const sgm_layer_call *call, sgm_graph *graph, const char *argument, int32_t dimensions,
                     int64_t default_value, int64_t *pair);
/* Stride (`stride` unless given), dilation, padding. `size` is the window's, `x` what it moves over: for
 * "same". */
bool sgm__layer_window(const sgm_layer_call *call, sgm_graph *graph, int32_t dimensions, sgm_value x,
                       const int64_t *stride, sgm_window_options *window);

/* forward_NAME, of a layer with one input. */
#define SGM__LAYER_FORWARD(name, expression)                                                                 \
    static sgm_value forward_##name(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,         \
                                    int32_t count)                                                           \
    {                                                                                                        \
        (void)count;                                                                                         \
        return expression;                                                                                   \
    }

#define SGM__ARGUMENT_PAIR(argument_name, lowest, argument_doc)                                              \
    {                                                                                                        \
        .name = argument_name, .kind = SGM_KIND_INTEGER, .list = true, .minimum = lowest, .maximum = 1e6,    \
        .doc = argument_doc                                                                                  \
    }
#define SGM__ARGUMENT_STRIDE(default_value)                                                                  \
    SGM__ARGUMENT_PAIR("stride", 1, "elements from one window to the next; " default_value)
#define SGM__ARGUMENT_PADDING                                                                                \
    SGM__ARGUMENT_PAIR("padding", 0,                                                                         \
                       "elements around the data; 2 numbers: above and below, left and right; 4: above, "    \
                       "left, below, right; 0 unless given")
#define SGM__ARGUMENT_DILATION                                                                               \
    SGM__ARGUMENT_PAIR("dilation", 1, "elements from one place of the window to the next; 1 unless given")
#define SGM__ARGUMENT_SAME                                                                                   \
    {                                                                                                        \
        .name = "same", .kind = SGM_KIND_BOOLEAN,                                                            \
        .doc = "as much padding as keeps the size, divided by the stride; also written padding=same"         \
    }

#endif
