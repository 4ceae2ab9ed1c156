/* When kernels come to a device: as they are first started, or in a later run. */
#include "each_device.h"

#include "handlers/session.h"
#include <sigma/base.h>

/* What was told while a program ran for the first time; it has 2 steps or more. */
typedef struct told {
    int begun;
    sgm_task_info newest;
} told;

static void note_task(void *user, const sgm_task_info *info)
{
    told *t = user;
    t->begun += info->kind == SGM_TASK_COMPILE && info->status != SGM_TASK_RUNNING;
    t->newest = *info;
}

static void check_told(sgm_handler *handler)
{
    told t = {0};
    if (!device_of(handler)->info.is_processor)
        return;
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 3));
    sgm_graph_add_output(
        graph, "y", sgm_reduce_sum(graph, sgm_matmul(graph, x, sgm_transpose(graph, x)), NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 3), NUMBERS(1, 2, 3, 4, 5, 6));
    CHECK_OK(sgm_task_watch(note_task, &t));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_INT(t.begun, 1);
    CHECK_INT(t.newest.kind, SGM_TASK_COMPILE);
    CHECK(strstr(t.newest.description, "as each is first started") != NULL);
    CHECK_INT(t.newest.done, program->plan->step_count);
    CHECK_INT(t.newest.total, program->plan->step_count);
    CHECK_OK(sgm_session_run(session, program));
    CHECK_INT(t.begun, 1);
    check_output(session, program, "y", NUMBERS(14 + 32 + 32 + 77), 1e-4);
    sgm_task_unwatch(note_task, &t);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(kernels_that_are_compiled_when_they_start_are_told_of)
{
    with_devices(check_told);
}

/* --- a kernel that comes late --- */

static const sgm_device_driver *true_driver;
static bool loads_fail;

static sgm_device_result load_or_fail(void *self, const void *binary, size_t bytes, void **module,
                                      char *message)
{
    if (!loads_fail)
        return true_driver->load(self, binary, bytes, module, message);
    snprintf(message, SGM_DEVICE_MESSAGE, "it does not load today");
    return SGM_DEVICE_FAILED;
}

/* The kernel that is to stand in for a product cannot be had, and can a run later. */
static void check_late_kernel(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = product_graph(2, 3);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 1), NUMBERS(2, -3));
    feed(session, program, "y", SGM_FLOAT32, DIMS(1, 3), NUMBERS(1, 10, 100));
    loads_fail = true;
    for (int run = 0; run < 2; run++)
        CHECK_ERROR(sgm_session_run(session, program), "it does not load today");
    loads_fail = false;
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "sum", NUMBERS(2, 20, 200, -3, -30, -300), 0);
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(a_kernel_that_did_not_load_is_loaded_by_a_later_run)
{
    if (!is_here("cuda") || getenv("SIGMA_TEST_CUDA") != NULL)
        SKIP("the stand-in for CUDA is wanted");
    setenv("SIGMA_FAKE_CUDA_PRODUCTS", "promised", 1);
    sgm_handler *handler = sgm_handler_create("cuda");
    true_driver = device_of(handler)->driver;
    sgm_device_driver driver = *true_driver;
    driver.load = load_or_fail;
    device_of(handler)->driver = &driver;
    check_late_kernel(handler);
    device_of(handler)->driver = true_driver;
    sgm_handler_free(handler);
    unsetenv("SIGMA_FAKE_CUDA_PRODUCTS");
}
