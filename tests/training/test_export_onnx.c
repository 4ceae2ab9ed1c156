/* Networks as ONNX models: exported, imported again, and asked the same. */
#include "export_c_test.h"

/* All examples of the random data at once, and a part of them: the number of examples is open. */
static void check_answers(exported *e, sgm_onnx *model, int64_t examples, double tolerance)
{
    sgm_tensor *inputs = sgm_tensor_slice(e->inputs, 0, 0, examples, 1);
    sgm_tensor *expected = sgm_trainer_predict(e->trainer, inputs, NULL);
    CHECK(expected != NULL);
    CHECK_OK(sgm_onnx_set(model, sgm_onnx_input_at(model, 0, NULL), inputs));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *actual = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
    CHECK(actual != NULL);
    CHECK(sgm_shape_equal(sgm_tensor_shape(actual), sgm_tensor_shape(expected)));
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    double *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b);
    CHECK_OK(sgm_tensor_read(actual, a, count));
    CHECK_OK(sgm_tensor_read(expected, b, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(a[i], b[i], tolerance * (1 + fabs(b[i])));
    free(a);
    free(b);
    sgm_tensor_free(actual);
    sgm_tensor_free(expected);
    sgm_tensor_free(inputs);
}

static sgm_onnx *export_model(exported *e, int64_t batch)
{
    sgm_status status = sgm_trainer_export_onnx(e->trainer, e->path, .batch = batch);
    if (status == SGM_ERROR_UNSUPPORTED && strstr(sgm_last_error(), "built without ONNX") != NULL) {
        export_end(e);
        SKIP("built without ONNX");
    }
    if (status != SGM_OK)
        TEST_FAIL("%s", sgm_last_error());
    sgm_onnx *model = sgm_onnx_load(e->path, .handler = "cpu");
    if (model == NULL)
        TEST_FAIL("%s", sgm_last_error());
    return model;
}

/* Some training first, so that nothing is as it began (running means, zeros of biases). */
static void check(const export_case *c, double tolerance)
{
    exported e = export_start(c);
    CHECK_OK(sgm_trainer_run(e.trainer, .iterations = EXPORT_STEPS));
    sgm_onnx *model = export_model(&e, 0);
    check_answers(&e, model, 1, tolerance);
    check_answers(&e, model, EXPORT_STEPS * c->batch, tolerance);
    sgm_onnx_free(model);
    export_end(&e);
}

#define EXPORT_CHECK(...) check(&(export_case){__VA_ARGS__}, 1e-6)

TEST(multi_layer_perceptron)
{
    EXPORT_CHECK(.network =
                     "input(8, 8) + dense(32, relu) + dropout(0.5) + dense(10) + softmax_cross_entropy",
                 .batch = 3);
}

TEST(le_net)
{
    EXPORT_CHECK(.network =
                     "input(1, 14, 14) + convolution(6, 5, padding=2, activation=relu) + max_pooling(2)"
                     " + convolution(8, 3, activation=tanh) + average_pooling(2) + dense(20, relu)"
                     " + dense(10) + softmax_cross_entropy",
                 .batch = 2);
}

TEST(lstm)
{
    EXPORT_CHECK(.network = "input(6, 3) + lstm(5) + dense(4, time_distributed) + softmax_cross_entropy",
                 .batch = 3);
}

TEST(transformer)
{
    EXPORT_CHECK(.network =
                     "input(6) + embedding(9, 8) + positions + transformer(heads=2, causal) + layer_norm"
                     " + dense(9, time_distributed) + softmax_cross_entropy",
                 .batch = 2, .tokens = 9);
}

TEST(layers_of_all_kinds)
{
    EXPORT_CHECK(.network =
                     "input(2, 6, 6) + batch_norm + convolution(4, 3, groups=2, stride=2, padding=1)"
                     " + add(identity, convolution(4, 1)) + group_norm(2) + activation(gelu)"
                     " + transposed_convolution(3, 2, stride=2) + max_pooling(3, stride=2, padding=1)"
                     " + average_pooling(2, padding=1, exclude_padding) + flatten + dense(2) + mean_squared",
                 .batch = 3);
    EXPORT_CHECK(.network =
                     "input(5, 4) + gru(6, bidirectional) + attention(heads=3) + rms_norm + rnn(3, last)"
                     " + dense(4, silu) + dense(1) + binary_cross_entropy",
                 .batch = 2);
    EXPORT_CHECK(.network = "input(6, 4) + concatenate(dense(3, sigmoid, time_distributed), dense(3, elu, "
                            "time_distributed))"
                            " + layer_norm + swiglu + dropout(0.3) + dense(6, softplus)"
                            " + dense(3) + huber",
                 .batch = 4);
    EXPORT_CHECK(
            .network =
                "input(3, 9) + convolution_1d(4, 3, mish) + prelu + max_pooling_1d(2) + flatten"
                " + dense(4, selu) + dense(4, hard_silu) + dense(4, leaky_relu) + dense(2) + mean_squared",
            .batch = 4);
}

TEST(more_layers)
{
    EXPORT_CHECK(.network = "input(6) + embedding(9, 8) + transformer(heads=4, causal, rotary, key_heads=2)"
                            " + dense(9, time_distributed) + softmax_cross_entropy",
                 .batch = 2, .tokens = 9);
    EXPORT_CHECK(.network =
                     "input(12) + dense(24, tanh) + reshape(4, 2, 3) + permute(3, 1, 2) + convolution(2, 2)"
                     " + flatten + dense(2) + mean_squared",
                 .batch = 3);
    EXPORT_CHECK(.network = "input(3, 8, 8) + upsampling(2, bilinear) + convolution(4, 3)"
                            " + adaptive_average_pooling(3) + flatten + dense(2) + mean_squared",
                 .batch = 2);
    EXPORT_CHECK(.network = "input(4, 8, 8) + instance_norm + prelu(channels) + upsampling(2)"
                            " + adaptive_max_pooling(3) + glu(channels) + global_average_pooling + geglu"
                            " + dense(2, softsign) + mean_squared",
                 .batch = 2);
    EXPORT_CHECK(.network = "input(12) + dense(8, hard_sigmoid) + dense(8, hard_tanh) + dense(8, relu6)"
                            " + dense(8, gelu_tanh) + dense(8, erf) + dense(8, atan) + dense(2, absolute)"
                            " + mean_squared",
                 .batch = 2);
}

TEST(parameters_keep_their_names_and_a_fixed_number_of_examples_is_written)
{
    exported e =
        export_start(&(export_case){.network = "input(4) + dense(3) + softmax_cross_entropy", .batch = 2});
    sgm_onnx *model = export_model(&e, 5);
    sgm_type type;
    CHECK_STR(sgm_onnx_input_at(model, 0, &type), "inputs");
    CHECK_INT(type.shape.dims[0], 5);
    CHECK(sgm_onnx_input_at(model, 1, NULL) == NULL);
    sgm_tensor *three = sgm_tensor_slice(e.inputs, 0, 0, 3, 1);
    CHECK_ERROR(sgm_onnx_set(model, "inputs", three), "input 'inputs' wants float32 (5, 4)");
    sgm_tensor_free(three);
    sgm_onnx_free(model);
    model = export_model(&e, 0);
    sgm_onnx_input_at(model, 0, &type);
    CHECK_INT(type.shape.dims[0], -1);
    sgm_onnx_free(model);
    char *text = malloc(1 << 16);
    FILE *file = fopen(e.path, "rb");
    size_t length = fread(text, 1, 1 << 16, file);
    fclose(file);
    CHECK(memmem(text, length, "1-dense.weights", 15) != NULL);
    CHECK(memmem(text, length, "1-dense.biases", 14) != NULL);
    free(text);
    export_end(&e);
}

TEST(what_cannot_be_written_is_named)
{
    exported e =
        export_start(&(export_case){.network = "input(4) + dense(3) + softmax_cross_entropy", .batch = 2});
    sgm_onnx_free(export_model(&e, 0));
    CHECK_ERROR(sgm_trainer_export_onnx(e.trainer, "/nowhere/model.onnx"), "/nowhere/model.onnx");
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(3, 3);
    sgm_graph_push_label(graph, "solver");
    sgm_graph_add_output(graph, "y", sgm_inverse(graph, sgm_input_value(graph, "x", SGM_FLOAT32, &shape)));
    sgm_graph_pop_label(graph);
    CHECK_ERROR(sgm_onnx_export(e.path, graph, NULL),
                "operation 'inverse' of 'solver': ONNX has no operator");
    sgm_graph_free(graph);
    export_end(&e);
}
