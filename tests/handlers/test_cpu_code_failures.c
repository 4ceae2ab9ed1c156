/* Machine code that cannot be made: the system refuses memory that is run, or there is no memory at all.
 * Steps are interpreted then, or the error says so; nothing is lost, and results are the same. */
#include "base/allocator.h"
#include "base/base.h"
#include "handlers/graphs.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT 1000
#define LONG_CHAIN 3000

static bool refuses; /* memory that is run */

/* In place of the C library's. */
int mprotect(void *address, size_t size, int protection)
{
    return refuses && (protection & PROT_EXEC) != 0 ? -1
                                                    : (int)syscall(SYS_mprotect, address, size, protection);
}

typedef struct run {
    bool done;
    float values[COUNT];
} run;

/* Two elementwise steps with a sum between them, each with calls and values that are kept. */
static void record(sgm_graph *graph)
{
    sgm_shape shape = sgm_shape_of(COUNT);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, &shape);
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, &shape);
    sgm_value y = sgm_add(graph, sgm_exp(graph, sgm_multiply(graph, x, w)), x);
    sgm_value share = sgm_divide(graph, y, sgm_sum(graph, y));
    sgm_graph_add_output(graph, "share",
                         sgm_select(graph, sgm_greater(graph, x, w), sgm_tanh(graph, share), share));
    sgm_assign(graph, w, sgm_subtract(graph, w, sgm_multiply(graph, share, sgm_number(graph, 0.5))));
}

static bool run_in(sgm_session *session, sgm_graph *graph, const sgm_tensor *start, sgm_tensor *result)
{
    if (sgm_graph_status(graph) != SGM_OK || sgm_session_set(session, "w", start) != SGM_OK)
        return false;
    sgm_program *program = sgm_session_prepare(session, graph);
    if (program == NULL)
        return false;
    CHECK_INT(sgm_last_status(), SGM_OK);
    return sgm_session_feed(session, program, "x", start) == SGM_OK &&
           sgm_session_run(session, program) == SGM_OK && sgm_session_run(session, program) == SGM_OK &&
           sgm_session_read(session, program, "share", result) == SGM_OK;
}

static run run_once(bool interpreted)
{
    run r = {0};
    float numbers[COUNT];
    sgm_shape shape = sgm_shape_of(COUNT);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)(i % 37) / 16 - 1;
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .no_machine_code = interpreted);
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm_graph *graph = sgm_graph_create();
    sgm_tensor *start = sgm_tensor_create_from(SGM_FLOAT32, &shape, numbers);
    sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &shape);
    if (session != NULL && graph != NULL && start != NULL && result != NULL) {
        record(graph);
        r.done = run_in(session, graph, start, result);
    }
    if (r.done)
        memcpy(r.values, sgm_tensor_data(result), sizeof r.values);
    sgm_tensor_free(start);
    sgm_tensor_free(result);
    sgm_graph_free(graph);
    sgm_session_free(session);
    sgm_handler_free(handler);
    return r;
}

TEST(the_system_refuses_code)
{
    run expected = run_once(true);
    CHECK(expected.done);
    sgm_handler *before = sgm_handler_create("cpu", .threads = 1);
    refuses = true;
    run actual = run_once(false);
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    char *text = sgm_handler_describe(handler);
    refuses = false;
    CHECK(actual.done);
    CHECK(memcmp(actual.values, expected.values, sizeof actual.values) == 0);
    bool here = strstr(text, "instructions: avx") != NULL;
    CHECK(!here || strstr(text, "elementwise steps: interpreted: the system lets no code be made") != NULL);
    sgm_string_free(text);
    sgm_handler_free(handler);
    sgm_handler_free(before);
}

TEST(each_allocation_fails_once)
{
    run expected = run_once(true);
    allocator_start(0);
    run whole = run_once(false);
    long calls = atomic_load(&allocator_calls), live = atomic_load(&allocator_live);
    allocator_stop();
    CHECK(whole.done && memcmp(whole.values, expected.values, sizeof whole.values) == 0);
    CHECK_INT(live, 0);
    int done = 0;
    for (long n = 1; n <= calls; n++) {
        sgm_clear_error();
        allocator_start_once(n);
        run r = run_once(false);
        live = atomic_load(&allocator_live);
        allocator_stop();
        CHECK_INT(live, 0);
        CHECK(r.done || sgm_last_status() == SGM_ERROR_MEMORY);
        CHECK(!r.done || memcmp(r.values, expected.values, sizeof r.values) == 0);
        done += r.done;
    }
    CHECK(done < calls);
}

/* More code than memory of one page, jumps that are far, and a handler that the system begins to refuse. */
static void check_long_chain(bool refused_later)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_shape shape = sgm_shape_of(53);
    sgm_value x = sgm_state(graph, "x", SGM_FLOAT32, &shape), y = x;
    for (int i = 0; i < LONG_CHAIN; i++) {
        y = sgm_multiply(graph, sgm_tanh(graph, y), sgm_number(graph, 1 + (i % 7) / 8.0));
        y = i % 5 == 0 ? sgm_maximum(graph, y, x) : y;
        y = i % 100 == 0 ? sgm_subtract(graph, y, sgm_mean(graph, y)) : y;
    }
    sgm_graph_add_output(graph, "y", y);
    float numbers[53], results[2][53];
    for (int i = 0; i < 53; i++)
        numbers[i] = (float)i / 32 - 1;
    sgm_tensor *start = sgm_tensor_create_from(SGM_FLOAT32, &shape, numbers);
    for (int k = 0; k < 2; k++) {
        sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .no_machine_code = k == 1);
        refuses = refused_later;
        sgm_session *session = sgm_session_create(handler);
        CHECK_OK(sgm_session_set(session, "x", start));
        sgm_program *program = sgm_session_prepare(session, graph);
        CHECK_OK(program);
        refuses = false;
        CHECK_OK(sgm_session_run(session, program));
        sgm_tensor *read = sgm_tensor_create(SGM_FLOAT32, &shape);
        CHECK_OK(sgm_session_read(session, program, "y", read));
        memcpy(results[k], sgm_tensor_data(read), sizeof results[k]);
        sgm_tensor_free(read);
        sgm_session_free(session);
        sgm_handler_free(handler);
    }
    CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
    sgm_tensor_free(start);
    sgm_graph_free(graph);
}

TEST(thousands_of_operations)
{
    check_long_chain(false);
}

TEST(the_system_refuses_code_later)
{
    check_long_chain(true);
}
