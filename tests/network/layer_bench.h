/* What tests of layers share: a network that is recorded and run on the reference handler. */
#ifndef SIGMA_TEST_LAYER_BENCH_H
#define SIGMA_TEST_LAYER_BENCH_H

#include "bench.h"

__attribute__((unused)) static const sgm_recording_options *options(int64_t batch, bool training)
{
    static sgm_recording_options result;
    result = (sgm_recording_options){.struct_size = sizeof result,
                                     .batch = batch,
                                     .dtype = SGM_FLOAT64,
                                     .training = training,
                                     .costs = true};
    return &result;
}

__attribute__((unused)) static void set(bench *b, const char *state, const double *values)
{
    sgm_type type;
    CHECK_OK(sgm_session_state_type(b->session, state, &type));
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(&type.shape)));
    CHECK_OK(sgm_session_set(b->session, state, tensor));
    sgm_tensor_free(tensor);
}
#define SET(b, state, ...) set(b, state, (const double[]){__VA_ARGS__})

/* Outputs of the program: what the recording names, costs after "cost of", and the total. */
__attribute__((unused)) static void add_outputs(bench *b)
{
    const sgm_recording *r = &b->recording;
    char name[200];
    for (size_t i = 0; i < r->output_count; i++) {
        snprintf(name, sizeof name, "output %s", r->outputs[i].name);
        sgm_graph_add_output(b->graph, name, r->outputs[i].value);
    }
    for (size_t i = 0; i < r->cost_count; i++) {
        snprintf(name, sizeof name, "cost %s", r->costs[i].name);
        sgm_graph_add_output(b->graph, name, r->costs[i].value);
    }
    if (sgm_value_exists(r->total))
        sgm_graph_add_output(b->graph, "total", r->total);
}

__attribute__((unused)) static bench start(sgm_network *network, int64_t batch, bool training)
{
    bench b = {.network = network,
               .graph = sgm_graph_create(),
               .handler = sgm_handler_create("reference", .threads = 1)};
    CHECK_OK(network);
    CHECK_OK(sgm_network_record(network, b.graph, options(batch, training), &b.recording));
    add_outputs(&b);
    CHECK_OK(sgm_graph_verify(b.graph));
    b.session = sgm_session_create(b.handler);
    for (size_t i = 0; i < b.recording.parameter_count; i++)
        add_state(&b, b.recording.parameters[i].name, b.recording.parameters[i].type.dtype,
                  &b.recording.parameters[i].type.shape);
    add_random(&b);
    b.program = sgm_session_prepare(b.session, b.graph);
    CHECK_OK(b.program);
    return b;
}

__attribute__((unused)) static bench open_text(const char *text, int64_t batch, bool training)
{
    return start(sgm_network_parse(text), batch, training);
}

#define FEED(b, name, ...) feed(b, name, (const double[]){__VA_ARGS__})

__attribute__((unused)) static void read_output(bench *b, const char *name, double *values, size_t count)
{
    sgm_type type = sgm_program_output_type(b->program, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_INT(sgm_shape_elements(&type.shape), count);
    CHECK_OK(sgm_session_read(b->session, b->program, name, tensor));
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    sgm_tensor_free(tensor);
}

__attribute__((unused)) static void check_output(bench *b, const char *name, const double *expected,
                                                 size_t count)
{
    double values[64];
    CHECK(count <= 64);
    read_output(b, name, values, count);
    for (size_t i = 0; i < count; i++)
        if (!test_near(values[i], expected[i], 1e-9 * (1 + fabs(expected[i]))))
            TEST_FAIL("element %zu of '%s' is %.17g, expected %.17g", i, name, values[i], expected[i]);
}
#define CHECK_OUTPUT(b, name, ...)                                                                           \
    check_output(b, name, (const double[]){__VA_ARGS__},                                                     \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

__attribute__((unused)) static void check_record_error(const char *text, const char *message)
{
    sgm_network *network = sgm_network_parse(text);
    CHECK_OK(network);
    sgm_graph *graph = sgm_graph_create();
    sgm_recording recording;
    CHECK_ERROR(sgm_network_record(network, graph, options(2, true), &recording), message);
    sgm_graph_free(graph);
    sgm_network_free(network);
}

__attribute__((unused)) static void check_text(sgm_layer *layers, const char *expected)
{
    sgm_network *network = sgm_network_create(layers);
    CHECK_OK(network);
    char *text = sgm_network_text(network);
    CHECK_STR(text, expected);
    sgm_string_free(text);
    sgm_network_free(network);
}

#endif
