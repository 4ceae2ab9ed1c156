/* The null handler: memory is real, computation is not. */
#include "base/allocator.h"
#include "handlers/graphs.h"

TEST(runs_and_leaves_everything_as_it_was)
{
    sgm_handler *handler = sgm_handler_create("null");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    CHECK_OK(session);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(2));
    sgm_value sum = sgm_add(graph, x, w);
    sgm_assign(graph, w, sum);
    sgm_graph_add_output(graph, "probabilities", sgm_softmax(graph, sum));
    set_state(session, "w", SGM_FLOAT32, DIMS(2), NUMBERS(5, 6));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2), NUMBERS(1, 2));
    allocator_start(0);
    CHECK_OK(sgm_session_run(session, program));
    CHECK_INT(atomic_load(&allocator_calls), 0);
    allocator_stop();
    check_output(session, program, "probabilities", NUMBERS(0, 0), 0);
    sgm_tensor *state = sgm_session_get(session, "w");
    double values[2];
    CHECK_OK(sgm_tensor_read(state, values, 2));
    CHECK_NEAR(values[0], 5, 0);
    CHECK_NEAR(values[1], 6, 0);
    sgm_tensor_free(state);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

TEST(the_debug_handler_finds_nothing_in_zeros)
{
    sgm_handler *handler = sgm_handler_create("debug:null");
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2));
    sgm_graph_add_output(graph, "log", sgm_log(graph, x));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2), NUMBERS(0, -1));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "log", NUMBERS(0, 0), 0);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}
