/* Memory of devices: what is in use, what happens when it is used up, and that runs take no more of it. */
#include "each_device.h"

static void check_out_of_memory(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    uint64_t used = device_of(handler)->used;
    sgm_graph *graph = product_graph(2000000, 1000000);
    CHECK_ERROR(sgm_session_prepare(session, graph), device_of(handler)->info.name);
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
    CHECK(strstr(sgm_last_error(), "a program with 0 bytes of state, 12.0 MB of inputs, 0 bytes of constants "
                                   "and 8.0 TB of arena (for 8.0 TB of activations)") != NULL);
    CHECK_INT(device_of(handler)->used, used);
    check_small_product(session);
    sgm_graph_free(graph);
    sgm_session_free(session);
    CHECK_INT(device_of(handler)->used, used);
}

TEST(out_of_memory_says_sizes_and_leaves_all_usable)
{
    with_devices(check_out_of_memory);
}

static void check_used_up(sgm_handler *handler)
{
    sgm__device *device = device_of(handler);
    sgm_session *session = sgm_session_create(handler);
    uint64_t memory = device->info.memory;
    device->info.memory = device->used + 3000000;
    double *zeros = calloc(500000, sizeof *zeros);
    set_state(session, "a", SGM_FLOAT32, DIMS(500000), zeros);
    sgm_tensor *tensor = tensor_of(SGM_FLOAT32, DIMS(500000), zeros);
    CHECK_ERROR(sgm_session_set(session, "b", tensor),
                "is used up: 2.1 MB are in use by this handler, and 2.1 MB more are wanted");
    CHECK_INT(sgm_last_status(), SGM_ERROR_MEMORY);
    CHECK(!sgm_session_has(session, "b"));
    CHECK_OK(sgm_session_set(session, "a", tensor));
    sgm_session_free(session);
    session = sgm_session_create(handler); /* what was given back can be had again */
    CHECK_OK(sgm_session_set(session, "b", tensor));
    sgm_session_free(session);
    device->info.memory = memory;
    sgm_tensor_free(tensor);
    free(zeros);
}

TEST(what_is_in_use_counts)
{
    with_devices(check_used_up);
}

static long resident_pages(void)
{
    long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (file != NULL)
        fclose(file);
    return resident;
}

#define MANY_RUNS 10000

static void check_flat(sgm_handler *handler)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    set_state(session, "w", SGM_FLOAT32, DIMS(100), (double[100]){0});
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(100));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, SCALAR);
    sgm_assign(graph, w, sgm_add(graph, w, x));
    sgm_graph_add_output(graph, "sum", sgm_reduce_sum(graph, w, NULL, 0, false));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    double sum = 0;
    uint64_t used = 0, kept = 0;
    long pages = 0;
    for (int i = 0; i < MANY_RUNS; i++) {
        CHECK_OK(sgm_session_feed_number(session, program, "x", 1));
        CHECK_OK(sgm_session_run(session, program));
        if (i == MANY_RUNS / 2) {
            used = device_of(handler)->used;
            kept = device_of(handler)->kept_bytes;
            pages = resident_pages();
        }
    }
    CHECK_OK(sgm_session_read_number(session, program, "sum", &sum));
    CHECK_NEAR(sum, 100.0 * (MANY_RUNS - 1), 0);
    CHECK_INT(device_of(handler)->used, used);
    CHECK_INT(device_of(handler)->kept_bytes, kept);
#if !defined SIGMA_ADDRESS_SANITIZER && !defined SIGMA_THREAD_SANITIZER /* which keep more than is in use */
    CHECK(resident_pages() - pages < 256);                              /* a MB */
#else
    CHECK(pages > 0);
#endif
    sgm_graph_free(graph);
    sgm_session_free(session);
}

TEST(memory_is_flat)
{
    with_devices(check_flat);
}

/* Each run sees what was fed before it, although nobody waits; the tensor changes at once. */
static void check_feeding(sgm_handler *handler)
{
    enum { COUNT = 300000, RUNS = 60 };
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = sgm_graph_create();
    double *values = calloc(COUNT, sizeof *values), expected = 0;
    set_state(session, "w", SGM_FLOAT32, DIMS(COUNT), values);
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(COUNT));
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(COUNT));
    sgm_assign(graph, w, sgm_subtract(graph, x, w));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm_tensor *fed = tensor_of(SGM_FLOAT32, DIMS(COUNT), values);
    float *numbers = sgm_tensor_data(fed);
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < COUNT; i++)
            numbers[i] = (float)(run * run % 1000 + i % 3);
        CHECK_OK(sgm_session_feed(session, program, "x", fed));
        CHECK_OK(sgm_session_run(session, program));
        expected = run * run % 1000 - expected;
    }
    sgm_tensor_free(fed);
    fed = sgm_session_get(session, "w");
    numbers = sgm_tensor_data(fed);
    for (int i = 0; i < COUNT; i++) /* what grows with i goes, as RUNS is even */
        if (numbers[i] != (float)expected)
            TEST_FAIL("element %d is %g, expected %g", i, (double)numbers[i], expected);
    sgm_tensor_free(fed);
    sgm_graph_free(graph);
    sgm_session_free(session);
    free(values);
}

TEST(each_run_has_what_was_fed_before_it)
{
    with_devices(check_feeding);
}
