/* Sequences of different lengths, CTC, and heads that turn or share: PyTorch's values and gradients
 * (sequences_torch.py); what does not count is never seen; mistakes. */
#include "network/layer_bench.h"
#include "network/sequences_torch.h"

TEST(sequences_are_those_of_pytorch)
{
    VALUES_CHECK(sequences_torch);
}

TEST(what_does_not_count_is_never_seen)
{
    static const char *const texts[] = {
        "input(3, 2, lengths=n) + attention(1) + global_max_pooling(steps, name=end)",
        "input(3, 2, lengths=n) + attention(1, causal, rotary) + global_average_pooling(steps, name=end)",
        "input(3, 2, lengths=n) + lstm(1, bidirectional) + global_average_pooling(steps, name=end)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double short_one[2], long_one[2];
        bench b = open_text(texts[i], 1, false);
        for (size_t k = 0; k < b.recording.parameter_count; k++) {
            double values[64];
            int64_t elements = sgm_shape_elements(&b.recording.parameters[k].type.shape);
            CHECK(elements <= 64);
            for (int64_t e = 0; e < elements; e++)
                values[e] = sin(1.3 * (double)e + (double)k);
            set(&b, b.recording.parameters[k].name, values);
        }
        FEED(&b, "n", 2);
        FEED(&b, "inputs", 1, 2, 3, 4, 0, 0);
        CHECK_OK(sgm_session_run(b.session, b.program));
        read_output(&b, "output end", short_one, 2);
        FEED(&b, "inputs", 1, 2, 3, 4, 500, -600);
        CHECK_OK(sgm_session_run(b.session, b.program));
        read_output(&b, "output end", long_one, 2);
        for (size_t k = 0; k < 2; k++)
            CHECK_NEAR(short_one[k], long_one[k], 0);
        stop(&b);
    }
}

static void check_run_error(const char *text, const char *field, const double *values, const char *message)
{
    bench b = open_text(text, 1, true);
    FEED(&b, "inputs", 1, 2, 3, 4, 5, 6);
    FEED(&b, "targets", 1, 1);
    if (strstr(text, "lengths=") != NULL)
        FEED(&b, "n", 3);
    feed(&b, field, values);
    CHECK_ERROR(sgm_session_run(b.session, b.program), message);
    stop(&b);
}

TEST(wrong_numbers_of_the_data_are_told)
{
    const char *text = "input(3, 2, lengths=n) + ctc(2)";
    check_run_error(text, "n", (const double[]){4}, "4");
    check_run_error(text, "n", (const double[]){-1}, "-1");
    check_run_error(
        text, "n", (const double[]){2},
        "example 0 of the minibatch has 2 labels, which need 3 steps, but only 2 steps: leave such "
        "examples out, give them more steps, or set the flag skip");
    check_run_error(text, "targets", (const double[]){1, 2}, "label 2 is out of range: there are 2 classes");
    check_record_error("input(3, 2) + ctc(2, blank=2)", "the blank 2 is none of the 2 classes");
    check_record_error("input(6) + ctc(2)", "ctc: expected a prediction (batch, time, classes), got (2, 6)");
    check_record_error(
        "input(2, 3, 4) + global_max_pooling(steps)",
        "global_max_pooling(steps) wants a sequence (batch, time, features), got (2, 2, 3, 4)");
    check_record_error("input(3, 6) + attention(6, key_heads=4)",
                       "attention: 4 key_heads do not divide the 6 heads that share them");
    check_record_error("input(3, 6) + attention(2, rotary)",
                       "attention: rotary turns pairs, but a head has 3 features");
}

TEST(lengths_end_where_steps_do)
{
    /* the channels of a convolution are no steps, even if there are as many */
    bench b = open_text("input(4, 3, lengths=n) + convolution_1d(4, 3, same) + dense(3, time_distributed)"
                        " + softmax_cross_entropy",
                        1, true);
    CHECK(!sgm_value_exists(b.recording.lengths));
    stop(&b);
    b = open_text(
        "input(4, lengths=n) + embedding(5, 3) + add(identity, lstm(3)) + dense(3, time_distributed)"
        " + softmax_cross_entropy",
        1, true);
    CHECK(sgm_value_exists(b.recording.lengths));
    stop(&b);
}

TEST(options_say_what_the_notation_says)
{
    check_text(sgm_chain(sgm_input(.shape = {9, 3}, .lengths = "n"),
                         sgm_ctc_cost(.labels = 4, .blank = 2, .skip = true)),
               "input(9, 3, lengths=n) + ctc(4, blank=2, skip=true)");
    check_text(sgm_chain(sgm_input(.shape = {9, 3}),
                         sgm_layer_create("global_max_pooling", SGM_LAYER_OPTIONS(.steps = true))),
               "input(9, 3) + global_max_pooling(steps=true)");
}

TEST(ctc_has_no_second_gradient)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape logits = sgm_shape_of(1, 4, 3), labels = sgm_shape_of(1, 2), lengths = sgm_shape_of(1);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &logits), gradient;
    sgm_value cost = sgm_ctc(graph, x, sgm_input_value(graph, "labels", SGM_INT64, &labels),
                             sgm_input_value(graph, "lengths", SGM_INT64, &lengths), 0, false);
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, cost), &x, 1, &gradient));
    sgm_value norm = sgm_sum(graph, sgm_square(graph, gradient)), second;
    CHECK_ERROR(
        sgm_gradients(graph, norm, &x, 1, &second),
        "ctc has a gradient, but no second one: leave it out of what is differentiated twice, or stop the "
        "gradient of its gradient");
    sgm_graph_free(graph);
}
