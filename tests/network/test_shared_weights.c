/* share=NAME: layers that use the trained parameters of another one. */
#include "network/layer_bench.h"

/* The cost's gradients by all inputs and parameters of a network, in double precision against differences. */
static void check_gradients(const char *text, size_t parameters)
{
    sgm_network *network = sgm_network_parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_operand operands[16];
    sgm_tensor *tensors[16];
    size_t count = 0;
    CHECK_OK(network);
    CHECK_OK(sgm_network_record(network, graph, options(2, true), &recording));
    CHECK_INT(recording.parameter_count, parameters);
    for (size_t i = 0; i < recording.parameter_count; i++)
        operands[count++] = (sgm_operand){.value = recording.parameters[i].value};
    for (size_t i = 0; i < recording.input_count; i++)
        operands[count++] = (sgm_operand){.value = recording.inputs[i].value};
    operands[count++] = (sgm_operand){.value = recording.targets[0].value, .fixed = true};
    for (size_t i = 0; i < count; i++) {
        sgm_type type = sgm_value_type(graph, operands[i].value);
        tensors[i] = sgm_tensor_create(SGM_FLOAT64, &type.shape);
        for (int64_t k = 0; k < sgm_shape_elements(&type.shape); k++)
            ((double *)sgm_tensor_data(tensors[i]))[k] = sin(10.0 * (double)i + (double)k) * 0.7;
        operands[i].at = tensors[i];
    }
    CHECK_OK(sgm_gradient_check(graph, recording.total, operands, count, .tolerance = 1e-8));
    for (size_t i = 0; i < count; i++)
        sgm_tensor_free(tensors[i]);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(gradients_of_all_uses_add_up)
{
    check_gradients("input(3) + dense(3, tanh, name=w) + 2 * dense(3, tanh, share=w) + mean_squared", 2);
    check_gradients(
        "input(4) + dense(4, name=w) + concatenate(identity, dense(4, tanh, share=w)) + dense(2) + "
        "mean_squared(importance=3)",
        4);
}

/* A network with one layer twice, by its own multiplication. */
TEST(a_layer_that_is_applied_twice)
{
    bench b = open_text("input(2) + dense(2, name=w) + dense(2, share=w, relu)", 2, false);
    CHECK_INT(b.recording.parameter_count, 2);
    CHECK_STR(b.recording.parameters[0].name, "w.weights");
    CHECK_STR(b.recording.parameters[1].name, "w.biases");
    CHECK(!sgm_session_has(b.session, "2-dense.weights"));
    SET(&b, "w.weights", 1, 2, 3, -1);
    SET(&b, "w.biases", 0.5, -1);
    FEED(&b, "inputs", 1, 0, -1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    /* (1, 0) -> (1.5, 1) -> (5, 1); (-1, 2) -> (5.5, -5) -> (-9, 15) */
    CHECK_OUTPUT(&b, "output 2-dense", 5, 1, 0, 15);
    stop(&b);
}

TEST(branches_share_and_embeddings_too)
{
    bench b = open_text("left = input(1, name=left) + embedding(3, 2, name=words); "
                        "right = input(1, name=right) + embedding(3, 2, share=words); add(left, right)",
                        2, false);
    CHECK_INT(b.recording.parameter_count, 1);
    SET(&b, "words.weights", 1, 2, 10, 20, 100, 200);
    FEED(&b, "left", 0, 2);
    FEED(&b, "right", 1, 2);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OUTPUT(&b, "output 4-add", 11, 22, 200, 400);
    stop(&b);
}

/* Running means are not trained: each place has its own, and the gains are one. */
TEST(what_is_not_trained_stays_the_layers_own)
{
    bench b =
        open_text("input(2) + batch_norm(name=n) + batch_norm(share=n, name=m) + mean_squared", 4, true);
    CHECK(sgm_session_has(b.session, "n.gains"));
    CHECK(!sgm_session_has(b.session, "m.gains"));
    CHECK(sgm_session_has(b.session, "n.means"));
    CHECK(sgm_session_has(b.session, "m.means"));
    stop(&b);
}

TEST(sharing_has_a_text)
{
    check_text(sgm_chain(sgm_input(.shape = {3}), sgm_dense(.size = 3, .name = "w"),
                         sgm_dense(.size = 3, .activation = "tanh", .share = "w")),
               "input(3) + dense(3, name=w) + dense(3, tanh, share=w)");
    check_text(sgm_layer_parse("input(3) + dense(3, name=w) + dense(3, share=w, name=v)"),
               "input(3) + dense(3, name=w) + dense(3, name=v, share=w)");
}

TEST(mistakes_in_sharing)
{
    check_record_error("input(3) + dense(3, name=v) + dense(3, share=w) + mean_squared",
                       "share=w: no layer of this name with 'weights' comes before it; name one, as in "
                       "dense(8, name=w)");
    check_record_error("input(3) + dense(3, name=w, no_bias) + dense(3, share=w) + mean_squared",
                       "share=w: no layer of this name with 'biases' comes before it");
    check_record_error("input(3) + dense(4, name=w) + dense(4, share=w) + mean_squared",
                       "share=w: 'w.weights' is (3, 4), and this layer needs (4, 4)");
    check_record_error("input(3) + dense(3, name=w) + dropout(0.5, share=w) + mean_squared",
                       "share=w: dropout has no trained parameters to share; leave it out");
    CHECK_ERROR(sgm_layer_parse("dense(3, share=w, share=v)"), "argument 'share' of dense is given twice");
    CHECK_ERROR(sgm_layer_parse("dense(3, share=4)"), "a layer's name must be text, found '4'");
    CHECK_ERROR(sgm_layer_parse("dense(3, share=a#)"), "the name of a layer to share with must be");
}
