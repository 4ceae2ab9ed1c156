/* The same numbers as without a plan: graphs with states, run on a handler and by the interpreter. */
#ifndef SIGMA_TEST_RUNS_H
#define SIGMA_TEST_RUNS_H

#include "handlers/interpreter.h"
#include <math.h>
#include <sigma/handler.h>

static inline void fill(sgm_tensor *tensor, double *next)
{
    double values[64];
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    CHECK(count <= 64);
    for (size_t i = 0; i < count; i++)
        values[i] = sin((*next)++);
    CHECK_OK(sgm_tensor_write(tensor, values, count));
}

static inline void check_equal(const char *what, const sgm_tensor *expected, const sgm_tensor *actual)
{
    double a[64], b[64];
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(expected));
    CHECK_OK(sgm_tensor_read(expected, a, count));
    CHECK_OK(sgm_tensor_read(actual, b, count));
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i])
            TEST_FAIL("'%s' has %g at %zu, expected %g", what, b[i], i, a[i]);
}

static inline void check_run(const interpreter *oracle, sgm_session *session, sgm_program *program)
{
    const sgm_graph *graph = oracle->graph;
    for (size_t i = 0; i < graph->output_count; i++) {
        const char *name = sgm__graph_string(graph, graph->outputs[i].name);
        sgm_type type = sgm_program_output_type(program, name);
        sgm_tensor *actual = sgm_tensor_create(type.dtype, &type.shape);
        CHECK_OK(sgm_session_read(session, program, name, actual));
        check_equal(name, oracle->values[graph->outputs[i].value.index], actual);
        sgm_tensor_free(actual);
    }
}

/* Three runs of a graph on a handler: outputs and states are the interpreter's. */
static inline void check_runs_on(sgm_graph *graph, const char *name)
{
    CHECK_OK(sgm_graph_status(graph));
    sgm_handler *handler = sgm_handler_create(name);
    sgm_session *session = sgm_session_create(handler);
    CHECK_OK(session);
    interpreter oracle = interpreter_create(graph);
    double next = 1;
    for (size_t i = 0; i < oracle.graph->count; i++)
        if (oracle.graph->instructions[i].name > 0)
            fill(oracle.values[i], &next);
    for (size_t i = 0; i < oracle.graph->count; i++)
        if (oracle.graph->instructions[i].op == &sgm__op_state)
            CHECK_OK(sgm_session_set(session, sgm_value_name(oracle.graph, (sgm_value){(int32_t)i}),
                                     oracle.values[i]));
    sgm_program *program;
    CHECK_OK(program = sgm_session_prepare(session, graph));
    if (sgm_program_has_input(program, "x"))
        CHECK_OK(sgm_session_feed(session, program, "x", interpreter_source(&oracle, "x")));
    for (int run = 0; run < 3; run++) {
        interpreter_run(&oracle);
        CHECK_OK(sgm_session_run(session, program));
        check_run(&oracle, session, program);
        interpreter_assign(&oracle);
        const char *state;
        for (size_t i = 0; (state = sgm_session_state_at(session, i)) != NULL; i++) {
            sgm_tensor *actual = sgm_session_get(session, state);
            check_equal(state, interpreter_source(&oracle, state), actual);
            sgm_tensor_free(actual);
        }
    }
    interpreter_free(&oracle);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

#endif
