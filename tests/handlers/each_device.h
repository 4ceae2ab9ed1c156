/* A check for each device that is here, and what such checks share. */
#ifndef SIGMA_TEST_EACH_DEVICE_H
#define SIGMA_TEST_EACH_DEVICE_H

#include "devices.h"
#include "graphs.h"

#include "handlers/device/run/device.h"

/* Calls `check` with each device's handler that is here. */
__attribute__((unused)) static void with_devices(void (*check)(sgm_handler *handler))
{
    static const char *const names[] = {"opencl", "cuda"};
    char reasons[1024] = "";
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sgm_handler *handler = sgm_handler_create_with(names[i], NULL);
        size_t length = strlen(reasons);
        if (handler != NULL)
            check(handler);
        else
            snprintf(reasons + length, sizeof reasons - length, "%s%s", length > 0 ? "; " : "",
                     sgm_last_error());
        found += handler != NULL;
        sgm_handler_free(handler);
    }
    if (found == 0)
        SKIP(reasons);
}

__attribute__((unused)) static sgm__device *device_of(sgm_handler *handler)
{
    return handler->self;
}

__attribute__((unused)) static sgm_graph *product_graph(int64_t rows, int64_t columns)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(rows, 1));
    sgm_value y = sgm_input_value(graph, "y", SGM_FLOAT32, DIMS(1, columns));
    sgm_graph_add_output(graph, "sum", sgm_matmul(graph, x, y));
    return graph;
}

__attribute__((unused)) static void check_small_product(sgm_session *session)
{
    sgm_graph *graph = product_graph(2, 3);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 1), NUMBERS(2, -3));
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 3), NUMBERS(1, 10, 100));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "sum", NUMBERS(2, 20, 200, -3, -30, -300), 0);
    sgm_graph_free(graph);
}

#endif
