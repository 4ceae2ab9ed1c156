/* Layers of attention against PyTorch (attention_torch.py), on two handlers; what they refuse. */
#include "bench.h"

#include "attention_torch.h"

#include <stdlib.h>

#define MAXIMUM_PARAMETERS 40

/* base + 0.3 sin(1 + 0.7 i + 1.3 number) */
static void fill_parameter(bench *b, size_t number)
{
    const sgm_parameter *parameter = &b->recording.parameters[number];
    size_t count = (size_t)sgm_shape_elements(&parameter->type.shape);
    size_t length = strlen(parameter->name);
    double base = length > 5 && strcmp(parameter->name + length - 5, "gains") == 0 ? 1 : 0;
    double *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = base + 0.3 * sin(1 + 0.7 * (double)i + 1.3 * (double)number);
    sgm_tensor *tensor = sgm_tensor_create(parameter->type.dtype, &parameter->type.shape);
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    CHECK_OK(sgm_session_set(b->session, parameter->name, tensor));
    sgm_tensor_free(tensor);
    free(values);
}

/* Outputs "loss", "0", "1", ...: the gradients by the parameters. */
static bench start(const char *text, const char *handler, int threads, sgm_dtype dtype)
{
    bench b = {.network = sgm_network_parse(text),
               .graph = sgm_graph_create(),
               .handler = sgm_handler_create(handler, .threads = threads)};
    CHECK_OK(b.network);
    CHECK_OK(sgm_network_record(
        b.network, b.graph,
        &(sgm_recording_options){
            .struct_size = sizeof(sgm_recording_options), .batch = 2, .dtype = dtype, .training = true},
        &b.recording));
    CHECK(b.recording.parameter_count <= MAXIMUM_PARAMETERS);
    sgm_value values[MAXIMUM_PARAMETERS], gradients[MAXIMUM_PARAMETERS];
    for (size_t i = 0; i < b.recording.parameter_count; i++)
        values[i] = b.recording.parameters[i].value;
    sgm_graph_add_output(b.graph, "loss", b.recording.total);
    CHECK_OK(
        sgm_gradients(b.graph, b.recording.total, values, (int32_t)b.recording.parameter_count, gradients));
    for (size_t i = 0; i < b.recording.parameter_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i);
        sgm_graph_add_output(b.graph, name, gradients[i]);
    }
    CHECK_OK(sgm_graph_verify(b.graph));
    b.session = sgm_session_create(b.handler);
    for (size_t i = 0; i < b.recording.parameter_count; i++)
        fill_parameter(&b, i);
    add_random(&b);
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    return b;
}

/* An output times cos(0.9 i), added up. */
static double project(bench *b, const char *name)
{
    sgm_type type = sgm_program_output_type(b->program, name);
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    double *values = malloc(count * sizeof *values), sum = 0;
    CHECK_OK(sgm_session_read(b->session, b->program, name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    for (size_t i = 0; i < count; i++)
        sum += values[i] * cos(0.9 * (double)i);
    sgm_tensor_free(tensor);
    free(values);
    return sum;
}

typedef struct expectation {
    const char *text;
    bool tokens; /* numbers in and out; else sines and cosines */
    const double *numbers;
    size_t count;
} expectation;

#define BEHIND_DENSE(size, layer)                                                                            \
    "input(3, 4) + dense(" #size ", time_distributed) + " layer " + mean_squared"
#define EXPECT(numbers) numbers, sizeof(numbers) / sizeof *(numbers)
static const expectation expectations[] = {
    {BEHIND_DENSE(6, "layer_norm"), false, EXPECT(torch_layer_norm)},
    {BEHIND_DENSE(6, "rms_norm"), false, EXPECT(torch_rms_norm)},
    {BEHIND_DENSE(4, "attention(heads=2, causal)"), false, EXPECT(torch_causal)},
    {BEHIND_DENSE(4, "attention(heads=4)"), false, EXPECT(torch_attention)},
    {"input(4) + embedding(5, 8, name=tokens) + positions + 2 * transformer(heads=2, causal, hidden=16)"
     " + layer_norm + tied_dense(of=tokens) + softmax_cross_entropy",
     true, EXPECT(torch_gpt)},
    /* a transformer is the same put together by hand */
    {"input(4) + embedding(5, 8, name=tokens) + positions"
     " + 2 * (add(identity, layer_norm + attention(heads=2, causal))"
     " + add(identity, layer_norm + dense(16, gelu, time_distributed) + dense(8, time_distributed)))"
     " + layer_norm + tied_dense(of=tokens) + softmax_cross_entropy",
     true, EXPECT(torch_gpt)},
};

static void feed_all(bench *b, bool tokens)
{
    double inputs[24], targets[36];
    for (int i = 0; i < 36; i++) {
        int example = i / 4, step = i % 4;
        if (i < 24)
            inputs[i] = tokens ? (3 * example + 2 * step) % 5 : sin(0.37 * i + 0.2);
        targets[i] = tokens ? (example + 3 * step + 1) % 5 : cos(0.5 * i);
    }
    feed(b, "inputs", inputs);
    feed(b, "targets", targets);
}

/* The loss and a number of each parameter's gradient. */
static size_t compute(const expectation *e, const char *handler, int threads, sgm_dtype dtype,
                      double *numbers)
{
    bench b = start(e->text, handler, threads, dtype);
    size_t count = b.recording.parameter_count + 1;
    feed_all(&b, e->tokens);
    CHECK_OK(sgm_session_run(b.session, b.program));
    CHECK_OK(sgm_session_read_number(b.session, b.program, "loss", &numbers[0]));
    for (size_t i = 1; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%zu", i - 1);
        numbers[i] = project(&b, name);
    }
    stop(&b);
    return count;
}

static void compare(const expectation *e, const char *handler, sgm_dtype dtype, double tolerance)
{
    double numbers[MAXIMUM_PARAMETERS + 1];
    CHECK_INT(compute(e, handler, 1, dtype, numbers), e->count);
    for (size_t i = 0; i < e->count; i++)
        if (!test_near(numbers[i], e->numbers[i], tolerance * (1 + fabs(e->numbers[i]))))
            TEST_FAIL("%s on %s: number %zu is %.12g, PyTorch has %.12g", e->text, handler, i, numbers[i],
                      e->numbers[i]);
}

TEST(losses_and_gradients_are_pytorchs)
{
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        compare(&expectations[i], "reference", SGM_FLOAT64, 1e-10);
        compare(&expectations[i], "cpu", SGM_FLOAT64, 1e-10);
        compare(&expectations[i], "cpu", SGM_FLOAT32, 1e-5);
    }
}

TEST(threads_make_no_difference)
{
    const char *text = "input(40) + embedding(5, 48, name=tokens) + positions + transformer(heads=3, causal)"
                       " + layer_norm + tied_dense(of=tokens) + softmax_cross_entropy";
    double numbers[2][MAXIMUM_PARAMETERS + 1], inputs[80];
    for (int i = 0; i < 80; i++)
        inputs[i] = i * i % 5;
    for (int t = 0; t < 2; t++) {
        bench b = start(text, "cpu", t + 1, SGM_FLOAT32);
        feed(&b, "inputs", inputs);
        feed(&b, "targets", inputs);
        CHECK_OK(sgm_session_run(b.session, b.program));
        for (size_t i = 0; i < b.recording.parameter_count; i++) {
            char name[32];
            snprintf(name, sizeof name, "%zu", i);
            numbers[t][i] = project(&b, name);
            CHECK(numbers[t][i] == numbers[0][i]);
        }
        stop(&b);
    }
}

TEST(activations_are_pytorchs)
{
    const double points[] = {-3.5, -1.25, -0.3, 0.4, 1.75, 7};
    sgm_shape shape = sgm_shape_of(6);
    for (size_t a = 0; a < sizeof torch_activations / sizeof *torch_activations; a++) {
        sgm_graph *graph = sgm_graph_create();
        sgm_tensor *tensor = sgm_tensor_create(SGM_FLOAT64, &shape);
        CHECK_OK(sgm_tensor_write(tensor, points, 6));
        sgm_value x = sgm_constant(graph, tensor), gradient;
        const sgm_op *op = sgm_find_op(torch_activations[a].name);
        CHECK_OK(op);
        sgm_value y = sgm_record(graph, op, &x, 1, NULL);
        CHECK_OK(sgm_gradients(graph, sgm_sum(graph, y), &x, 1, &gradient));
        sgm_graph_add_output(graph, "y", y);
        sgm_graph_add_output(graph, "gradient", gradient);
        sgm_handler *handler = sgm_handler_create("reference");
        sgm_session *session = sgm_session_create(handler);
        sgm_program *program = sgm_session_prepare(session, graph);
        CHECK_OK(program);
        CHECK_OK(sgm_session_run(session, program));
        for (int part = 0; part < 2; part++) {
            double values[6];
            const double *expected = part == 0 ? torch_activations[a].values : torch_activations[a].gradients;
            CHECK_OK(sgm_session_read(session, program, part == 0 ? "y" : "gradient", tensor));
            CHECK_OK(sgm_tensor_read(tensor, values, 6));
            /* a sixth, hard_sigmoid's gradient, is one of single precision in PyTorch */
            double tolerance = strncmp(torch_activations[a].name, "hard", 4) == 0 ? 1e-7 : 1e-10;
            for (int i = 0; i < 6; i++)
                if (!test_near(values[i], expected[i], tolerance * (1 + fabs(expected[i]))))
                    TEST_FAIL("%s%s at %g is %.15g, PyTorch has %.15g", torch_activations[a].name,
                              part == 0 ? "" : "'s gradient", points[i], values[i], expected[i]);
        }
        sgm_tensor_free(tensor);
        sgm_session_free(session);
        sgm_handler_free(handler);
        sgm_graph_free(graph);
    }
}

/* --- mistakes --- */

static sgm_status record_text(const char *text)
{
    sgm_network *network = sgm_network_parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_status status = SGM_ERROR_ARGUMENT;
    if (network != NULL)
        status = sgm_network_record(network, graph,
                                    &(sgm_recording_options){.struct_size = sizeof(sgm_recording_options),
                                                             .batch = 2,
                                                             .dtype = SGM_FLOAT32,
                                                             .training = true},
                                    &recording);
    sgm_graph_free(graph);
    sgm_network_free(network);
    return status;
}

TEST(mistakes_are_named)
{
    CHECK_ERROR(record_text("input(3, 4) + attention(heads=3, causal)"),
                "attention: 3 heads do not divide the 4 features of a position");
    CHECK_ERROR(record_text("input(4) + attention(heads=2)"), "expected a sequence (batch, time, features)");
    CHECK_ERROR(record_text("input(4) + transformer(heads=2)"),
                "expected a sequence (batch, time, features)");
    CHECK_ERROR(record_text("input(4) + positions"), "positions: expected a sequence");
    CHECK_ERROR(record_text("input(3, 4) + tied_dense(of=tokens)"),
                "no layer 'tokens' with weights comes before it");
    CHECK_ERROR(
        record_text("input(3) + embedding(5, 8, name=a) + dense(4, time_distributed) + tied_dense(of=a)"),
        "last dimensions must be equal");
    CHECK_ERROR(record_text("input(3, 4) + attention(heads=0)"), "heads");
    CHECK_ERROR(record_text("input(3, 4) + transformer(activation=gelo)"), "did you mean 'gelu'");
}

TEST(dropout_of_a_transformer_forgets_only_while_training)
{
    bench b =
        start("input(3, 4) + transformer(heads=2, dropout=0.5) + mean_squared", "reference", 1, SGM_FLOAT64);
    CHECK(b.recording.random);
    stop(&b);
    b = start("input(3, 4) + transformer(heads=2) + mean_squared", "reference", 1, SGM_FLOAT64);
    CHECK(!b.recording.random);
    stop(&b);
}
