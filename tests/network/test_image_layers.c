/* Layers with windows: what they make of examples and arguments, what they refuse, and that they learn. */
#include "test.h"

#include <sigma/sigma.h>

static sgm_network *parse(const char *text)
{
    sgm_network *network = sgm_network_parse(text);
    CHECK_OK(network);
    return network;
}

static const sgm_recording_options options = {
    .struct_size = sizeof options, .batch = 7, .dtype = SGM_FLOAT32, .costs = true, .training = true};

/* Shape of what the text ends with; with parameters as "NAME (shape) fan_in fan_out" lines. */
static void check_shapes(const char *text, const char *output, const char *parameters)
{
    sgm_network *network = parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    char shape[128], lines[1000] = "";
    if (sgm_network_record(network, graph, &options, &recording) != SGM_OK)
        TEST_FAIL("%s: %s", text, sgm_last_error());
    CHECK_INT(recording.output_count, 1);
    sgm_type type = sgm_value_type(graph, recording.outputs[0].value);
    CHECK_STR(sgm_shape_text(&type.shape, shape, sizeof shape), output);
    for (size_t i = 0; i < recording.parameter_count && parameters != NULL; i++) {
        const sgm_parameter *p = &recording.parameters[i];
        size_t length = strlen(lines);
        snprintf(lines + length, sizeof lines - length, "%s%s %s %lld %lld", i > 0 ? "; " : "", p->name,
                 sgm_shape_text(&p->type.shape, shape, sizeof shape), (long long)p->fan_in,
                 (long long)p->fan_out);
    }
    if (parameters != NULL)
        CHECK_STR(lines, parameters);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(shapes_and_parameters_are_those_of_the_literature)
{
    check_shapes("input(28, 28) + convolution(32, 5, relu) + max_pooling(2) + convolution(64, 5, relu) + "
                 "max_pooling(2) + dense(128, relu) + dense(10)",
                 "(7, 10)",
                 "1-convolution.weights (32, 1, 5, 5) 25 800; 1-convolution.biases (32,) 0 0; "
                 "3-convolution.weights (64, 32, 5, 5) 800 1600; 3-convolution.biases (64,) 0 0; "
                 "5-dense.weights (1024, 128) 1024 128; 5-dense.biases (128,) 0 0; "
                 "6-dense.weights (128, 10) 128 10; 6-dense.biases (10,) 0 0");
    check_shapes("input(3, 20, 30) + convolution(8, 3, 5, stride=(2, 1), padding=(1, 2), no_bias)",
                 "(7, 8, 10, 30)", "1-convolution.weights (8, 3, 3, 5) 45 120");
    check_shapes("input(4, 20, 30) + convolution(8, 3, padding=(0, 1, 2, 3), dilation=2, groups=4)",
                 "(7, 8, 18, 30)", "1-convolution.weights (8, 1, 3, 3) 9 18; 1-convolution.biases (8,) 0 0");
    check_shapes("input(3, 21, 30) + convolution(8, 3, padding=same)", "(7, 8, 21, 30)", NULL);
    check_shapes("input(3, 21, 30) + convolution(8, 4, same, stride=2)", "(7, 8, 11, 15)", NULL);
    check_shapes("input(100) + convolution_1d(6, 5) + max_pooling_1d(2, stride=3) + average_pooling_1d(4)",
                 "(7, 6, 8)", "1-convolution_1d.weights (6, 1, 5) 5 30; 1-convolution_1d.biases (6,) 0 0");
    check_shapes(
        "input(8, 4, 5) + transposed_convolution(6, 3, stride=2, padding=1, output_padding=1, groups=2)",
        "(7, 6, 8, 10)",
        "1-transposed_convolution.weights (8, 3, 3, 3) 36 27; "
        "1-transposed_convolution.biases (6,) 0 0");
    check_shapes("input(2, 9) + transposed_convolution_1d(3, 4, tanh, stride=2)", "(7, 3, 20)", NULL);
    check_shapes("input(9, 9) + max_pooling(3, stride=2, padding=1)", "(7, 1, 5, 5)", NULL);
    check_shapes("input(2, 9, 8) + average_pooling(3, 2, same, exclude_padding)", "(7, 2, 3, 4)", NULL);
    check_shapes("input(2, 9, 8) + global_average_pooling", "(7, 2)", NULL);
}

TEST(texts_come_back)
{
    static const char *const texts[] = {
        "input(28, 28) + convolution(32, 5, relu, stride=2, padding=(1, 0)) + max_pooling(2) + dense(3)",
        "input(28, 28) + convolution(32, 3, 5, activation=relu, groups=1, padding=same) + "
        "average_pooling(2, 3, same)",
    };
    static const char *const expected[] = {
        "input(28, 28) + convolution(32, 5, activation=relu, stride=2, padding=(1, 0)) + max_pooling(2) + "
        "dense(3)",
        "input(28, 28) + convolution(32, 3, 5, activation=relu, groups=1, same=true) + "
        "average_pooling(2, 3, same=true)"};
    for (size_t i = 0; i < 2; i++) {
        sgm_network *network = parse(texts[i]), *again = parse(expected[i]);
        char *text = sgm_network_text(network), *second = sgm_network_text(again);
        CHECK_STR(text, expected[i]);
        CHECK_STR(second, expected[i]);
        sgm_string_free(text);
        sgm_string_free(second);
        sgm_network_free(again);
        sgm_network_free(network);
    }
}

static void check_refused(const char *text, const char *message)
{
    sgm_network *network = sgm_network_parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    if (network != NULL && sgm_network_record(network, graph, &options, &recording) == SGM_OK)
        TEST_FAIL("%s was accepted, expected: %s", text, message);
    if (strstr(sgm_last_error(), message) == NULL)
        TEST_FAIL("%s gives \"%s\", expected \"%s\"", text, sgm_last_error(), message);
    sgm_clear_error();
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(what_does_not_fit_is_said_with_the_layers_name)
{
    check_refused(
        "input(784) + convolution(32, 5)",
        "convolution wants examples of (height, width) or (channels, height, width), got (784,): give "
        "the input its dimensions, for example input(1, 28, 28)");
    check_refused("input(3, 8, 8) + convolution_1d(32, 5)", "images go to the layer without _1d in its name");
    check_refused("input(8, 8) + convolution(4, 5) + max_pooling(2) + convolution(4, 3)",
                  "the height of 2, 2 with padding, is smaller than the window's 3");
    check_refused("input(8, 8) + convolution(4, 5) + max_pooling(2) + convolution(4, 3)", "3-convolution");
    check_refused("input(3, 8, 8) + convolution(4, 3, groups=2)",
                  "2 groups do not divide the 3 channels that come and the 4 that go evenly");
    check_refused("input(8, 8) + convolution(4, 3, same, padding=1)", "both padding and same");
    check_refused("input(8, 8) + convolution(4, 3, padding=(1, 2, 3))",
                  "takes 1, 2 or 4 numbers as padding, 3");
    check_refused("input(8, 8) + convolution(4, 3, 3, 3)", "at most 2 numbers as kernel, 3 are given");
    check_refused("input(8) + max_pooling_1d(2, stride=(1, 2))", "at most 1 number as stride, 2 are given");
    check_refused("input(8, 8) + convolution(4)", "convolution needs its argument 'kernel'");
    check_refused("input(8, 8) + convolution(4, 0)", "it must be between 1 and 1000000");
    check_refused("input(8, 8) + convolution(4, 3, padding=valid)",
                  "takes whole numbers from 0 to 1000000, found 'valid'");
    check_refused("input(8) + global_average_pooling", "with something to pool, got (7, 8)");
}

TEST(calls_make_the_same_layers)
{
    sgm_network *network = sgm_network_create(sgm_chain(
        sgm_input(.shape = {28, 28}),
        sgm_convolution_layer(.size = 8, .kernel = {3, 5}, .stride = {2}, .same = true, .activation = "relu"),
        sgm_max_pooling_layer(.size = 2), sgm_dense(.size = 3)));
    CHECK_OK(network);
    char *text = sgm_network_text(network);
    CHECK_STR(text, "input(28, 28) + convolution(8, 3, 5, activation=relu, stride=2, same=true) + "
                    "max_pooling(2) + dense(3)");
    sgm_string_free(text);
    sgm_network_free(network);
}
