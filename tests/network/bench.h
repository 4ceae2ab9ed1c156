/* A network that is recorded and run by itself, for tests of layers. */
#ifndef SIGMA_TEST_BENCH_H
#define SIGMA_TEST_BENCH_H

#include "test.h"

#include <sigma/handler.h>
#include <sigma/network.h>

typedef struct bench {
    sgm_network *network;
    sgm_graph *graph;
    sgm_recording recording;
    sgm_handler *handler;
    sgm_session *session;
    sgm_program *program;
} bench;

__attribute__((unused)) static void stop(bench *b)
{
    sgm_session_free(b->session);
    sgm_handler_free(b->handler);
    sgm_graph_free(b->graph);
    sgm_network_free(b->network);
}

/* Zeros. */
__attribute__((unused)) static void add_state(bench *b, const char *name, sgm_dtype dtype,
                                              const sgm_shape *shape)
{
    sgm_tensor *zeros = sgm_tensor_create(dtype, shape);
    CHECK_OK(sgm_session_set(b->session, name, zeros));
    sgm_tensor_free(zeros);
}

__attribute__((unused)) static void add_random(bench *b)
{
    sgm_shape scalar = sgm_scalar_shape();
    if (!b->recording.random)
        return;
    add_state(b, "random.seed", SGM_INT64, &scalar);
    add_state(b, "random.step", SGM_INT64, &scalar);
}

__attribute__((unused)) static sgm_type type_of_input(const bench *b, const char *name)
{
    for (size_t i = 0; i < b->recording.input_count; i++)
        if (strcmp(b->recording.inputs[i].name, name) == 0)
            return sgm_value_type(b->graph, b->recording.inputs[i].value);
    for (size_t i = 0; i < b->recording.target_count; i++)
        if (strcmp(b->recording.targets[i].name, name) == 0)
            return sgm_value_type(b->graph, b->recording.targets[i].value);
    TEST_FAIL("the network has no input '%s'", name);
    return (sgm_type){0};
}

__attribute__((unused)) static void feed(bench *b, const char *name, const double *values)
{
    sgm_type type = type_of_input(b, name);
    sgm_tensor *tensor = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)sgm_shape_elements(&type.shape)));
    CHECK_OK(sgm_session_feed(b->session, b->program, name, tensor));
    sgm_tensor_free(tensor);
}

#endif
