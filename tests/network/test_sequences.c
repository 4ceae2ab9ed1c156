/* Layers of sequences against PyTorch (golden/golden_sequences.py): outputs, loss and all gradients. */
#include "bench.h"

#include "golden/golden_sequences.h"

#define BATCH 3
#define TIME 5
#define CLASSES 7

/* Parameter number k: 0.5 sin(1.7 i + k). */
static void set_parameter(bench *b, size_t k)
{
    const sgm_parameter *parameter = &b->recording.parameters[k];
    sgm_tensor *tensor = sgm_tensor_create(parameter->type.dtype, &parameter->type.shape);
    size_t count = (size_t)sgm_shape_elements(&parameter->type.shape);
    static double values[8192];
    CHECK(count <= 8192);
    for (size_t i = 0; i < count; i++)
        values[i] = 0.5 * sin(1.7 * (double)i + (double)k);
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    CHECK_OK(sgm_session_set(b->session, parameter->name, tensor));
    sgm_tensor_free(tensor);
}

static void record(bench *b, const char *text, sgm_dtype dtype)
{
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = BATCH, .dtype = dtype, .training = true};
    sgm_value parameters[16], gradients[16];
    char name[32];
    b->network = sgm_network_parse(text);
    CHECK_OK(b->network);
    CHECK_OK(sgm_network_record(b->network, b->graph, &options, &b->recording));
    int32_t count = (int32_t)b->recording.parameter_count;
    CHECK(count <= 16);
    for (int32_t i = 0; i < count; i++)
        parameters[i] = b->recording.parameters[i].value;
    CHECK_OK(sgm_gradients(b->graph, b->recording.total, parameters, count, gradients));
    sgm_graph_add_output(b->graph, "loss", b->recording.total);
    sgm_graph_add_output(b->graph, "output", b->recording.outputs[0].value);
    for (int32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "gradient %d", i);
        sgm_graph_add_output(b->graph, name, gradients[i]);
    }
    CHECK_OK(sgm_graph_verify(b->graph));
}

static bench start(const char *text, const char *handler, int threads, sgm_dtype dtype)
{
    bench b = {.graph = sgm_graph_create(), .handler = sgm_handler_create(handler, .threads = threads)};
    double tokens[BATCH * TIME], targets[BATCH * TIME];
    record(&b, text, dtype);
    b.session = sgm_session_create(b.handler);
    for (size_t i = 0; i < b.recording.parameter_count; i++)
        set_parameter(&b, i);
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    bool last = sgm_value_type(b.graph, b.recording.outputs[0].value).shape.rank == 2;
    for (int i = 0; i < BATCH; i++)
        for (int j = 0; j < TIME; j++) {
            tokens[i * TIME + j] = (i * 5 + j * 3 + i * j) % CLASSES;
            targets[last ? i : i * TIME + j] = (i * 2 + (last ? 0 : j) * 4 + 1) % CLASSES;
        }
    feed(&b, b.recording.inputs[0].name, tokens);
    feed(&b, b.recording.targets[0].name, targets);
    CHECK_OK(sgm_session_run(b.session, b.program));
    return b;
}

static size_t read_output(bench *b, const char *name, double *values, size_t maximum)
{
    sgm_type type = sgm_program_output_type(b->program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    size_t count = (size_t)sgm_shape_elements(&type.shape);
    CHECK(count <= maximum);
    CHECK_OK(sgm_session_read(b->session, b->program, name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    sgm_tensor_free(tensor);
    return count;
}

/* The loss, the outputs, the gradients. */
static size_t read_all(bench *b, double *values, size_t maximum)
{
    char name[32];
    size_t count = read_output(b, "loss", values, maximum);
    count += read_output(b, "output", values + count, maximum - count);
    for (size_t i = 0; i < b->recording.parameter_count; i++) {
        snprintf(name, sizeof name, "gradient %zu", i);
        count += read_output(b, name, values + count, maximum - count);
    }
    return count;
}

typedef struct golden {
    const char *layer;
    const double *numbers;
    size_t count;
} golden;
#define GOLDEN(layer, name)                                                                                  \
    {                                                                                                        \
        layer, golden_##name, sizeof golden_##name / sizeof(double)                                          \
    }
static const golden cases[] = {
    GOLDEN("rnn(3) + dense(7, time_distributed)", rnn),
    GOLDEN("rnn(3, relu, last) + dense(7)", rnn_relu),
    GOLDEN("gru(3) + dense(7, time_distributed)", gru),
    GOLDEN("gru(3, bidirectional, last) + dense(7)", gru_both_last),
    GOLDEN("lstm(3) + dense(7, time_distributed)", lstm),
    GOLDEN("lstm(3, forget_bias=1, last) + dense(7)", lstm_forget),
    GOLDEN("lstm(3, reverse) + dense(7, time_distributed)", lstm_reverse),
    GOLDEN("lstm(3, bidirectional) + dense(7, time_distributed)", lstm_both),
};
#define CASE_COUNT (sizeof cases / sizeof *cases)

static void check_case(const golden *wanted, const char *handler, sgm_dtype dtype, double tolerance)
{
    char text[200];
    double values[512];
    bool last = strstr(wanted->layer, "last") != NULL;
    snprintf(text, sizeof text, "input(5) + embedding(7, 4) + %s + softmax_cross_entropy%s", wanted->layer,
             last ? "(classes)" : "");
    bench b = start(text, handler, 1, dtype);
    size_t count = read_all(&b, values, 512);
    CHECK_INT(count, wanted->count);
    for (size_t i = 0; i < count; i++)
        if (!test_near(values[i], wanted->numbers[i], tolerance))
            TEST_FAIL("%s on %s: number %zu is %.17g, PyTorch's %.17g", wanted->layer, handler, i, values[i],
                      wanted->numbers[i]);
    stop(&b);
}

/* Single steps are of sequences that go on together. */
TEST(steps_of_inputs_of_different_lengths_are_refused)
{
    sgm_network *network = sgm_network_parse("a = input(6, 2, name=a) + positions; b = input(4, 2, name=b); "
                                             "add(a, b)");
    CHECK_OK(network);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    const sgm_recording_options steps = {
        .struct_size = sizeof steps, .batch = 1, .dtype = SGM_FLOAT32, .step = true};
    CHECK_ERROR(sgm_network_record(network, graph, &steps, &recording),
                "input: one step at a time is read of sequences of one length: this one declares 4 steps, an "
                "input before it 6");
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(the_reference_agrees_with_pytorch)
{
    for (size_t i = 0; i < CASE_COUNT; i++)
        check_case(&cases[i], "reference", SGM_FLOAT64, 1e-13);
}

TEST(the_cpu_agrees_with_pytorch)
{
    for (size_t i = 0; i < CASE_COUNT; i++) {
        check_case(&cases[i], "cpu", SGM_FLOAT64, 1e-13);
        check_case(&cases[i], "cpu", SGM_FLOAT32, 1e-6);
    }
}

TEST(one_thread_and_two_give_the_same_bits)
{
    static double one[20000], two[20000];
    for (int threads = 1; threads <= 2; threads++) {
        bench b = start(
            "input(5) + embedding(7, 16) + lstm(32) + gru(8, bidirectional) + dense(7, time_distributed) + "
            "softmax_cross_entropy",
            "cpu", threads, SGM_FLOAT32);
        size_t count = read_all(&b, threads == 1 ? one : two, 20000);
        if (threads == 2)
            CHECK_INT(memcmp(one, two, count * sizeof *one), 0);
        stop(&b);
    }
}

static void check_record_error(const char *text, const char *message)
{
    sgm_network *network = sgm_network_parse(text);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    sgm_recording_options options = {
        .struct_size = sizeof options, .batch = 2, .dtype = SGM_FLOAT32, .training = true};
    CHECK_OK(network);
    CHECK_ERROR(sgm_network_record(network, graph, &options, &recording), message);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

TEST(mistakes_are_told)
{
    check_record_error("input(5) + lstm(3)",
                       "layer 1-lstm: lstm: expected (batch, time, features), got (2, 5); an "
                       "embedding makes features of numbers");
    check_record_error("input(5000, 2) + gru(3)",
                       "layer 1-gru: gru: 5000 steps; at most 4096 can be unrolled");
    check_record_error("input(5, 2) + rnn(3, reverse, bidirectional)",
                       "layer 1-rnn: rnn: it is reverse or bidirectional, not both");
    sgm_network *network = sgm_network_parse("input(5, 2) + lstm(forget_bias=1)");
    CHECK(network == NULL);
    CHECK(strstr(sgm_last_error(), "lstm") != NULL && strstr(sgm_last_error(), "size") != NULL);
}
