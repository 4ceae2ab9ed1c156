/* convolution(32, 5, relu), convolution_1d, transposed_convolution, transposed_convolution_1d: weighted sums
 * over windows.
 *
 * Images are (batch, channels, height, width), lines (batch, channels, length); the result has `size`
 * channels. Weights are (outer, inner, kernel...): (size, channels / groups, ...) for a convolution,
 * (channels, size / groups, ...) for a transposed one, whose forward pass is the convolution's gradient by
 * its input. This is PyTorch's layout, so its weights fit as they are. Arguments of windows are read in
 * windows.c; the mathematics is src/ops/convolution.c. */
#include "network/layers/windows.h"

/* Weights (outer, inner, [height,] width) and biases (size), which are nothing if the layer has none. Fans
 * are what one output sums over and what one input reaches: channels of a group times places of the window.
 * Glorot's initialiser takes them. */
static bool get_parameters(sgm_layer_call *call, sgm_graph *graph, int32_t dimensions, int64_t outer,
                           int64_t inner, const int64_t *kernel, bool transposed, sgm_value *weights,
                           sgm_value *biases)
{
    int64_t places = kernel[0] * (dimensions == 2 ? kernel[1] : 1);
    int64_t groups = sgm_layer_integer(call, "groups"), size = sgm_layer_integer(call, "size");
    sgm_shape shape = dimensions == 2 ? sgm_shape_of(outer, inner, kernel[0], kernel[1])
                                      : sgm_shape_of(outer, inner, kernel[0]);
    sgm_shape biases_shape = sgm_shape_of(size);
    int64_t others = outer / groups;
    *weights = sgm_layer_parameter(call, graph, "weights", &shape, (transposed ? others : inner) * places,
                                   (transposed ? inner : others) * places, true, "glorot");
    *biases = (sgm_value){-1};
    if (!sgm_layer_flag(call, "no_bias"))
        *biases = sgm_layer_parameter(call, graph, "biases", &biases_shape, 0, 0, true, "constant(0)");
    return sgm_value_exists(*weights);
}

/* Groups must divide both the channels that come in and those that go out; each group is a convolution by
 * itself. */
static bool check_groups(sgm_layer_call *call, sgm_graph *graph, int64_t channels)
{
    int64_t groups = sgm_layer_integer(call, "groups"), size = sgm_layer_integer(call, "size");
    if (channels % groups == 0 && size % groups == 0)
        return true;
    sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                   "%s: %lld groups do not divide the %lld channels that come and the %lld that go evenly",
                   call->entry->layer->type->name, (long long)groups, (long long)channels, (long long)size);
    return false;
}

/* activation(convolution(x, weights) + biases). The window's size in the options is 0, since the operation
 * takes it from the weights. */
static sgm_value convolve(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    sgm_value weights, biases, nothing = {-1};
    x = sgm__layer_channels(call, graph, x, dimensions);
    if (!sgm_value_exists(x) || !sgm__layer_pair(call, graph, "kernel", dimensions, 1, window.size) ||
        !sgm__layer_window(call, graph, dimensions, x, (const int64_t[]){1, 1}, &window))
        return nothing;
    int64_t channels = sgm_value_type(graph, x).shape.dims[1], kernel[] = {window.size[0], window.size[1]};
    window.groups = sgm_layer_integer(call, "groups");
    window.size[0] = window.size[1] = 0;
    if (!check_groups(call, graph, channels) ||
        !get_parameters(call, graph, dimensions, sgm_layer_integer(call, "size"), channels / window.groups,
                        kernel, false, &weights, &biases))
        return nothing;
    sgm_value y = sgm_convolution(graph, x, weights, biases, &window);
    return sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), y);
}

/* The result is larger by the stride: (in - 1) stride - padding + reach + output_padding along each
 * dimension. Several sizes give the same convolution where the stride rounds down; output_padding chooses
 * among them. */
static sgm_value transposed(sgm_layer_call *call, sgm_graph *graph, sgm_value x, int32_t dimensions)
{
    sgm_window_options window = {.struct_size = sizeof window};
    sgm_value weights, biases, nothing = {-1};
    int64_t output_padding[2];
    x = sgm__layer_channels(call, graph, x, dimensions);
    if (!sgm_value_exists(x) || !sgm__layer_pair(call, graph, "kernel", dimensions, 1, window.size) ||
        !sgm__layer_pair(call, graph, "output_padding", dimensions, 0, output_padding) ||
        !sgm__layer_window(call, graph, dimensions, x, (const int64_t[]){1, 1}, &window))
        return nothing;
    int64_t channels = sgm_value_type(graph, x).shape.dims[1], kernel[] = {window.size[0], window.size[1]};
    window.groups = sgm_layer_integer(call, "groups");
    window.size[0] = window.size[1] = 0;
    if (!check_groups(call, graph, channels) ||
        !get_parameters(call, graph, dimensions, channels, sgm_layer_integer(call, "size") / window.groups,
                        kernel, true, &weights, &biases))
        return nothing;
    sgm_value y = sgm_transposed_convolution(graph, x, weights, biases, output_padding, &window);
    return sgm_layer_activate(call, graph, sgm_layer_text(call, "activation"), y);
}

SGM__LAYER_FORWARD(convolution, convolve(call, graph, inputs[0], 2))
SGM__LAYER_FORWARD(convolution_1d, convolve(call, graph, inputs[0], 1))
SGM__LAYER_FORWARD(transposed_convolution, transposed(call, graph, inputs[0], 2))
SGM__LAYER_FORWARD(transposed_convolution_1d, transposed(call, graph, inputs[0], 1))

#define FIRST_ARGUMENTS                                                                                      \
    {.name = "size",                                                                                         \
     .kind = SGM_KIND_INTEGER,                                                                               \
     .required = true,                                                                                       \
     .minimum = 1,                                                                                           \
     .maximum = 1e6,                                                                                         \
     .doc = "the number of channels that it gives"},                                                         \
        {.name = "kernel",                                                                                   \
         .kind = SGM_KIND_INTEGER,                                                                           \
         .list = true,                                                                                       \
         .required = true,                                                                                   \
         .minimum = 1,                                                                                       \
         .maximum = 1e6,                                                                                     \
         .doc = "height and width of the window; one number: both"},                                         \
        {.name = "activation", .kind = SGM_KIND_TEXT, .doc = "applied to the sums; none if not given"},      \
        SGM__ARGUMENT_STRIDE("1 unless given"), SGM__ARGUMENT_PADDING, SGM__ARGUMENT_DILATION,               \
        {.name = "groups",                                                                                   \
         .kind = SGM_KIND_INTEGER,                                                                           \
         .minimum = 1,                                                                                       \
         .maximum = 1e6,                                                                                     \
         .default_value = 1,                                                                                 \
         .doc = "of channels that do not see each other; as many as channels: depthwise"},                   \
    {                                                                                                        \
        .name = "no_bias", .kind = SGM_KIND_BOOLEAN, .doc = "only the weighted sums, no biases"              \
    }

static const sgm_option arguments[] = {FIRST_ARGUMENTS, SGM__ARGUMENT_SAME};
static const sgm_option transposed_arguments[] = {
    FIRST_ARGUMENTS,
    SGM__ARGUMENT_PAIR("output_padding", 0, "elements behind the smallest result; 0 unless given"),
};

SGM__LAYER(
    convolution,
    "weighted sums over windows of an image, (channels, height, width); (height, width) is one channel",
    arguments, SGM__COUNT(arguments),
    .formula = "y[k] = activation(sum over channels c of W[k, c] * x[c] + b[k]), * sliding over the image",
    .example = "convolution(32, 5, relu, padding=same)");
SGM__LAYER(convolution_1d, "the same along one dimension, (channels, length); (length) is one channel",
           arguments, SGM__COUNT(arguments),
           .formula = "y[k] = activation(sum over channels c of W[k, c] * x[c] + b[k]), * along the length",
           .example = "convolution_1d(32, 5, relu)");
SGM__LAYER(transposed_convolution, "from the windows back to an image that is larger by the stride",
           transposed_arguments, SGM__COUNT(transposed_arguments),
           .formula = "size = (in - 1) stride - padding + dilation (kernel - 1) + output_padding + 1",
           .example = "transposed_convolution(16, 4, stride=2)");
SGM__LAYER(transposed_convolution_1d, "the same along one dimension, (channels, length)",
           transposed_arguments, SGM__COUNT(transposed_arguments),
           .formula = "size = (in - 1) stride - padding + dilation (kernel - 1) + output_padding + 1",
           .example = "transposed_convolution_1d(16, 4, stride=2)");
