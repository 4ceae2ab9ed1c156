/* PoCL compiles each kernel once, when it is first started. */
#include "each_device.h"

#include "../base/folder.h"

/* Compiled kernels that PoCL keeps. */
static int count_kept(void)
{
    char command[96];
    int count = -1;
    snprintf(command, sizeof command, "find '%s' -name '*.so' | wc -l", folder);
    FILE *list = popen(command, "r");
    CHECK(list != NULL && fscanf(list, "%d", &count) == 1);
    pclose(list);
    return count;
}

/* Two kernels: a chain, and a sum of what it gives. */
static sgm_program *prepare(sgm_session *session)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, x, x));
    sgm_graph_add_output(graph, "sum", sgm_reduce_sum(graph, x, NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    sgm_graph_free(graph);
    CHECK_OK(program);
    return program;
}

static void run(sgm_session *session, sgm_program *program)
{
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "sum", NUMBERS(21), 0);
}

/* The folder is told before PoCL is loaded. */
TEST(a_kernel_is_compiled_when_it_is_started)
{
    open_folder();
    setenv("POCL_CACHE_DIR", folder, 1);
    setenv("SIGMA_CACHE_DIR", in_folder("sigma"), 1);
    sgm_handler *handler = sgm_handler_create("opencl");
    if (handler == NULL || strstr(device_of(handler)->info.driver, "PoCL") == NULL) {
        sgm_handler_free(handler);
        close_folder();
        SKIP("there is no OpenCL device of PoCL's");
    }
    for (int time = 0; time < 2; time++) { /* then from what is kept */
        sgm_session *session = sgm_session_create(handler);
        sgm_program *program = prepare(session);
        CHECK_INT(count_kept(), time == 0 ? 0 : 2);
        run(session, program);
        CHECK_INT(count_kept(), 2);
        sgm_session_free(session);
    }
    sgm_handler_free(handler);
    close_folder();
}
