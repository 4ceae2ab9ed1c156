/* lora(...): adapters of products, by formulas worked out by hand and by differences. */
#include "network/layer_bench.h"

/* y = x W + b + alpha / rank (x A) B with x (1, 2), (3, -1), W ((1, 0), (0, 1)), b (0.5, 0), alpha / rank 2.
 */
TEST(a_product_gets_what_the_adapter_adds)
{
    bench b = open_text("input(2) + dense(2, name=d); lora(1, alpha=2)", 2, false);
    CHECK_INT(b.recording.parameter_count, 4);
    SET(&b, "d.weights", 1, 0, 0, 1);
    SET(&b, "d.biases", 0.5, 0);
    SET(&b, "d.weights_lora_a", 1, -1);
    SET(&b, "d.weights_lora_b", 3, 0.25);
    FEED(&b, "inputs", 1, 2, 3, -1);
    CHECK_OK(sgm_session_run(b.session, b.program));
    /* x A: -1 and 4; times 2 B (6, 0.5): (-6, -0.5) and (24, 2) */
    CHECK_OUTPUT(&b, "output d", 1.5 - 6, 2 - 0.5, 3.5 + 24, -1 + 2.0);
    stop(&b);
}

/* Two adapters side by side, of one column each, and one of them stabilised: 3 / sqrt(4) and 1. */
TEST(adapters_of_some_columns)
{
    bench b = open_text("input(1) + dense(3, no_bias, name=d); "
                        "lora(4, alpha=3, on=\"d.weights\", rank_stabilised, columns=(0, 1), name=left); "
                        "lora(1, on=d, columns=(2, 1), name=right)",
                        1, false);
    SET(&b, "d.weights", 1, 2, 3);
    SET(&b, "d.left_lora_a", 1, 2, 3, 4);
    SET(&b, "d.left_lora_b", 1, 1, 1, 1);
    SET(&b, "d.right_lora_a", 5);
    SET(&b, "d.right_lora_b", -1);
    FEED(&b, "inputs", 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output d", 2 + 1.5 * 20, 4, 6 - 10);
    stop(&b);
}

static const sgm_parameter *find(const sgm_recording *recording, const char *name)
{
    for (size_t i = 0; i < recording->parameter_count; i++)
        if (strcmp(recording->parameters[i].name, name) == 0)
            return &recording->parameters[i];
    TEST_FAIL("there is no parameter '%s'", name);
    return NULL;
}

TEST(what_is_adapted_and_what_is_trained)
{
    bench b =
        open_text("input(4, 6) + attention(2, name=look) + rms_norm(name=norm) + lstm(3, name=memory) + "
                  "dense(2, name=logits) + mean_squared; "
                  "lora(2, on=\"look memory.recurrent\", train=\"norm* logits.biases\")",
                  2, true);
    const sgm_recording *r = &b.recording;
    sgm_shape a = sgm_shape_of(6, 2), wide = sgm_shape_of(2, 18);
    CHECK(sgm_shape_equal(&find(r, "look.weights_lora_a")->type.shape, &a));
    CHECK(sgm_shape_equal(&find(r, "look.weights_lora_b")->type.shape, &wide));
    CHECK_STR(find(r, "look.weights_lora_a")->initialiser, "uniform(-0.40824829, 0.40824829)");
    CHECK_STR(find(r, "look.output_weights_lora_b")->initialiser, "constant(0)");
    CHECK(find(r, "memory.recurrent_lora_a")->adapts != NULL && !find(r, "memory.recurrent_lora_a")->frozen);
    CHECK(find(r, "memory.recurrent")->frozen && find(r, "memory.weights")->frozen);
    CHECK(find(r, "look.biases")->frozen && find(r, "logits.weights")->frozen);
    CHECK(!find(r, "norm.gains")->frozen && !find(r, "logits.biases")->frozen);
    CHECK(find(r, "norm.gains")->adapts == NULL);
    CHECK_STR(find(r, "look.weights_lora_b")->adapts, "look.weights");
    CHECK_INT(r->parameter_count, 4 + 1 + 3 + 2 + 6);
    stop(&b);
}

/* The cost's gradients by all parameters, in double precision against differences: also where a layer is
 * shared, which shares its adapters, and where a step's product is made several times. */
TEST(gradients_are_right)
{
    sgm_network *network = sgm_network_parse(
        "input(3, 2) + dense(2, tanh, time_distributed, name=w) + dense(2, time_distributed, share=w) + "
        "gru(2) + dense(2) + mean_squared; lora(2, alpha=3)");
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_operand operands[20];
    sgm_tensor *tensors[20];
    size_t count = 0;
    CHECK_OK(network);
    CHECK_OK(sgm_network_record(network, graph, options(2, true), &recording));
    CHECK_INT(recording.parameter_count, 2 + 4 + 2 + 8);
    for (size_t i = 0; i < recording.parameter_count; i++)
        operands[count++] = (sgm_operand){.value = recording.parameters[i].value};
    operands[count++] = (sgm_operand){.value = recording.inputs[0].value, .fixed = true};
    operands[count++] = (sgm_operand){.value = recording.targets[0].value, .fixed = true};
    for (size_t i = 0; i < count; i++) {
        sgm_type type = sgm_value_type(graph, operands[i].value);
        tensors[i] = sgm_tensor_create(SGM_FLOAT64, &type.shape);
        for (int64_t k = 0; k < sgm_shape_elements(&type.shape); k++)
            ((double *)sgm_tensor_data(tensors[i]))[k] = sin(7.0 * (double)i + (double)k) * 0.6;
        operands[i].at = tensors[i];
    }
    CHECK_OK(sgm_gradient_check(graph, recording.total, operands, count, .tolerance = 1e-7));
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(tensors[i]);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

/* Half of what A sees becomes 0, the rest twice as large; the product with W sees all. */
TEST(dropout_is_before_the_adapter_alone)
{
    enum { SIZE = 1000 };
    bench b =
        open_text("input(1000) + dense(1, no_bias, name=d) + mean_squared; lora(1, dropout=0.5)", 1, true);
    static double ones[SIZE], zeros[SIZE];
    double cost;
    for (int i = 0; i < SIZE; i++)
        ones[i] = 1;
    set(&b, "d.weights", zeros);
    set(&b, "d.weights_lora_a", ones);
    SET(&b, "d.weights_lora_b", 0.001);
    feed(&b, "inputs", ones);
    FEED(&b, "targets", 0);
    CHECK_OK(sgm_session_run(b.session, b.program));
    read_output(&b, "total", &cost, 1);
    CHECK(fabs(cost - 1) > 1e-6 && fabs(cost - 1) < 0.2);
    stop(&b);
}

TEST(adapters_are_part_of_the_notation)
{
    const char *text = "input(3) + dense(2) + mean_squared; lora(4, \"*dense*\", 8, 0.05, \"*.biases\")";
    sgm_network *network = sgm_network_parse("input(3) + dense(2) + mean_squared");
    CHECK_OK(sgm_network_adapt(
        network, sgm_lora(.rank = 4, .alpha = 8, .dropout = 0.05, .on = "*dense*", .train = "*.biases")));
    char *written = sgm_network_text(network);
    CHECK_STR(written, text);
    sgm_network *again = sgm_network_parse(written);
    CHECK_OK(sgm_network_adapt(again, sgm_layer_parse("lora(2, columns=(0, 1), name=more)")));
    sgm_string_free(written);
    written = sgm_network_text(again);
    CHECK(strstr(written, "; lora(2, columns=(0, 1), name=more)") != NULL);
    sgm_string_free(written);
    sgm_network_drop_adapters(again);
    written = sgm_network_text(again);
    CHECK_STR(written, "input(3) + dense(2) + mean_squared");
    CHECK_INT(sgm_network_layers(again), 3);
    sgm_string_free(written);
    sgm_network_free(again);
    sgm_network_free(network);
    check_text(sgm_statements(sgm_chain(sgm_input(.shape = {2}), sgm_dense(.size = 4)),
                              sgm_lora(.rank = 1, .rank_stabilised = true, .columns = {1, 2})),
               "input(2) + dense(4); lora(1, rank_stabilised=true, columns=(1, 2))");
}

TEST(each_adapter_has_a_notation)
{
    static const char *const texts[] = {"lora(2)", "lora(4, \"1-dense\", 8, columns=(0, 1), name=more)"};
    sgm_network *network = sgm_network_parse("input(3) + dense(2); lora(2)");
    CHECK_OK(sgm_network_adapt(
        network, sgm_layer_parse("lora(4, alpha=8, on=\"1-dense\", columns=(0, 1), name=more)")));
    for (size_t i = 0; i < 2; i++) {
        char *text = sgm_network_adapter_text(network, i);
        CHECK_STR(text, texts[i]);
        sgm_string_free(text);
    }
    CHECK_ERROR(sgm_network_adapter_text(network, 2), "expected a network that has the adapter");
    CHECK_ERROR(sgm_network_adapter_text(NULL, 0), "expected a network that has the adapter");
    sgm_network_free(network);
}

TEST(mistakes_in_adapters)
{
    check_record_error("input(1, 4, 4) + convolution(2, 3, name=c) + mean_squared; lora(2)",
                       "lora: on=\"*\" has no matrix that can be adapted: 'c.weights' matches, but its layer "
                       "does not multiply its inputs by it as dense and attention do");
    check_record_error("input(3) + dense(2) + mean_squared; lora(2, on=\"*.wights\")",
                       "lora: on=\"*.wights\" matches no parameter of the network, whose first is "
                       "'1-dense.weights'");
    check_record_error("input(3) + dense(2) + mean_squared; lora(2, train=norm)",
                       "lora: train=\"norm\" matches no parameter of the network");
    check_record_error(
        "input(3) + dense(2) + mean_squared; lora(2); lora(3)",
        "'1-dense.weights' and '1-dense.weights' get adapters of one name, 'weights': give others: "
        "lora(..., name=queries)");
    check_record_error("input(4, 2) + attention(name=a) + mean_squared; lora(2, name=b)",
                       "'a.weights' and 'a.output_weights' get adapters of one name, 'b'");
    check_record_error("input(3) + dense(2) + mean_squared; lora(2, columns=(1, 2))",
                       "lora: columns wants two numbers, (first, count), within the 2 columns of '1-dense'");
    CHECK_ERROR(sgm_network_parse("input(3) + lora(2)"),
                "column 12: lora is a statement of its own: put it at the end, behind a ';'");
    CHECK_ERROR(sgm_network_parse("input(3) + dense(2); lora(2, on=\"a..b\")"),
                "column 22: lora, argument 'on': pattern 'a..b', column 3: a part is empty");
    sgm_network *network = sgm_network_parse("input(3) + dense(2)");
    CHECK_ERROR(sgm_network_adapt(network, sgm_dense(.size = 2)),
                "a network is adapted by a layer such as lora(8), not by dense");
    CHECK_ERROR(sgm_network_adapt(network, sgm_layer_parse("lora")), "lora needs its argument 'rank'");
    sgm_network_free(network);
}
