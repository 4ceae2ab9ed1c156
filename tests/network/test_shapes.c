/* reshape and permute: where numbers go, and their gradients back; lengths of sequences; what they refuse. */
#include "network/layer_bench.h"

TEST(numbers_keep_their_order_or_change_it)
{
    bench b = open_text(
        "x = input(2, 3); x + reshape(3, 2); x + reshape(6, 1, 1); x + permute(2, 1); x + permute(1, 2)", 2,
        false);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 1-reshape", 1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60);
    CHECK_OUTPUT(&b, "output 2-reshape", 1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60);
    CHECK_OUTPUT(&b, "output 3-permute", 1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60);
    CHECK_OUTPUT(&b, "output 4-permute", 1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60);
    static const char *const shapes[] = {"(2, 3, 2)", "(2, 6, 1, 1)", "(2, 3, 2)", "(2, 2, 3)"};
    for (size_t i = 0; i < 4; i++) {
        char text[64];
        sgm_shape shape = sgm_value_type(b.graph, b.recording.outputs[i].value).shape;
        CHECK_STR(sgm_shape_text(&shape, text, sizeof text), shapes[i]);
    }
    stop(&b);
}

TEST(three_dimensions_in_another_order)
{
    bench b = open_text("input(8) + reshape(2, 2, 2) + permute(3, 1, 2)", 1, false);
    FEED(&b, "inputs", 0, 1, 2, 3, 4, 5, 6, 7);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 2-permute", 0, 2, 4, 6, 1, 3, 5, 7); /* the last dimension is the first now */
    stop(&b);
}

/* w (1, ..., 6) as (2, 3), transposed, times v: 1 * 1 + 4 * 2 + 2 * 3 + 5 * 4 + 3 * 5 + 6 * 6 = 86, of which
 * 80 is wanted: the gradient of the square by an element of w is 2 * 6 * x * its v. */
TEST(gradients_go_back_the_same_way)
{
    sgm_network *network =
        sgm_network_parse("input(6) + elementwise(no_bias, name=w) + reshape(2, 3) + permute(2, 1)"
                          " + dense(1, no_bias, name=v) + squared_difference");
    bench b = {.network = network, .graph = sgm_graph_create(), .handler = sgm_handler_create("reference")};
    CHECK_OK(sgm_network_record(network, b.graph, options(1, true), &b.recording));
    sgm_value gradient;
    CHECK_OK(sgm_gradients(b.graph, b.recording.total, &b.recording.parameters[0].value, 1, &gradient));
    sgm_graph_add_output(b.graph, "gradient", gradient);
    b.session = sgm_session_create(b.handler);
    for (int i = 0; i < 2; i++)
        add_state(&b, b.recording.parameters[i].name, SGM_FLOAT64, &b.recording.parameters[i].type.shape);
    SET(&b, "w.weights", 1, 1, 1, 1, 1, 1);
    SET(&b, "v.weights", 1, 2, 3, 4, 5, 6);
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6);
    FEED(&b, "targets", 80);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "gradient", 12 * 1 * 1, 12 * 2 * 3, 12 * 3 * 5, 12 * 4 * 2, 12 * 5 * 4, 12 * 6 * 6);
    stop(&b);
}

TEST(lengths_stay_while_steps_do)
{
    static const struct {
        const char *layers;
        bool stay;
    } cases[] = {{"permute(1, 2)", true},
                 {"permute(2, 1)", false},
                 {"reshape(3, 3, 1)", true},
                 {"reshape(9)", false},
                 {"reshape(1, 9)", false},
                 {"permute(2, 1) + permute(2, 1)", false},
                 {"reshape(3, 1, 3) + permute(1, 3, 2)", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[160];
        snprintf(text, sizeof text, "input(3, lengths=n) + embedding(5, 3) + %s", cases[i].layers);
        bench b = open_text(text, 2, false);
        CHECK_INT(sgm_value_exists(b.recording.lengths), cases[i].stay);
        stop(&b);
    }
}

TEST(what_does_not_fit_is_refused)
{
    check_record_error(
        "input(28, 28) + reshape(32, 49)",
        "layer 1-reshape: an example of (28, 28) has 784 numbers, one of (32, 49) would have 1568");
    check_record_error(
        "input(2, 3) + permute(1)",
        "layer 1-permute: expected the numbers 1 to 2, each once, for the dimensions of an example "
        "of (2, 3)");
    check_record_error("input(2, 3) + permute(2, 2)", "expected the numbers 1 to 2, each once");
    check_record_error("input(2, 3) + permute(1, 2, 3)", "expected the numbers 1 to 2, each once");
    check_record_error("input(2, 3) + permute(1, 7)", "expected the numbers 1 to 2, each once");
    CHECK_ERROR(sgm_network_parse("input(4) + reshape"), "reshape needs its argument 'shape'");
    CHECK_ERROR(sgm_network_parse("input(4) + permute(0)"), "permute");
    CHECK_ERROR(sgm_network_parse("input(4) + reshape(1000000000, 1000000000, 1000000000)"),
                "argument 'shape' of reshape has more elements than memory can address");
}

TEST(calls_and_notation_say_the_same)
{
    check_text(sgm_chain(sgm_input(.shape = {8}),
                         sgm_layer_create("reshape", SGM_LAYER_OPTIONS(.shape = {2, 4})),
                         sgm_layer_parse("permute(2, 1)")),
               "input(8) + reshape(2, 4) + permute(2, 1)");
}
