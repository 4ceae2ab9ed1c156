/* The cpu handler as a whole: libraries, memory, errors, steps that run together. */
#include "base/allocator.h"
#include "handlers/comparison.h"

TEST(libraries_agree)
{
    static const char *const names[] = {"openblas", "onednn", "own"};
    sgm_graph *graph = sgm_graph_create();
    const input inputs[] = {F32(90, 70), F32(70, 130)};
    sgm_value values[2];
    for (int i = 0; i < 2; i++)
        values[i] = sgm_input_value(graph, i == 0 ? "0" : "1", SGM_FLOAT32, &inputs[i].shape);
    sgm_graph_add_output(graph, "0", sgm_matmul(graph, values[0], values[1]));
    sgm_graph_add_output(graph, "1",
                         sgm_matmul(graph, sgm_transpose(graph, values[1]), sgm_transpose(graph, values[0])));
    sgm_tensor *expected[MAXIMUM_OUTPUTS], *got[MAXIMUM_OUTPUTS];
    int outputs = run_on("reference", 0, NULL, graph, inputs, 2, expected);
    for (int k = 0; k < 3; k++) {
        sgm_handler *handler = sgm_handler_create("cpu", .dense = names[k]);
        if (handler == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND)
            continue;
        sgm_handler_free(handler);
        CHECK_INT(run_on("cpu", 2, names[k], graph, inputs, 2, got), outputs);
        for (int i = 0; i < outputs; i++) {
            check_near(got[i], expected[i], 2e-5, names[k]);
            sgm_tensor_free(got[i]);
        }
    }
    for (int i = 0; i < outputs; i++)
        sgm_tensor_free(expected[i]);
    sgm_graph_free(graph);
}

TEST(runs_allocate_nothing)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(50, 60));
    sgm_value w = sgm_state(graph, "w", SGM_FLOAT32, DIMS(60, 40));
    sgm_value cost = sgm_mean(graph, sgm_softmax(graph, sgm_matmul(graph, sgm_tanh(graph, x), w))), gradient;
    CHECK_OK(sgm_gradients(graph, cost, &w, 1, &gradient));
    sgm_assign(graph, w, sgm_subtract(graph, w, gradient));
    sgm_graph_add_output(graph, "cost", cost);
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 2);
    sgm_session *session = sgm_session_create(handler);
    static const double zeros[3000];
    set_state(session, "w", SGM_FLOAT32, DIMS(60, 40), zeros);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    feed(session, program, "x", SGM_FLOAT32, DIMS(50, 60), zeros);
    allocator_start(0);
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_run(session, program));
    allocator_stop();
    CHECK_INT(atomic_load(&allocator_calls), 0);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

TEST(indices_out_of_range)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(3, 2));
    sgm_value i = sgm_input_value(graph, "i", SGM_INT32, DIMS(2));
    sgm_graph_add_output(graph, "y", sgm_gather(graph, x, i, 0));
    sgm_graph_add_output(graph, "z", sgm_scatter_add(graph, sgm_slice(graph, x, 0, 0, 2, 1), i, 0, 3));
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    feed(session, program, "x", SGM_FLOAT32, DIMS(3, 2), NUMBERS(1, 2, 3, 4, 5, 6));
    feed(session, program, "i", SGM_INT32, DIMS(2), NUMBERS(2, 2));
    CHECK_OK(sgm_session_run(session, program));
    check_output(session, program, "y", NUMBERS(5, 6, 5, 6), 0);
    check_output(session, program, "z", NUMBERS(0, 0, 0, 0, 4, 6), 0);
    feed(session, program, "i", SGM_INT32, DIMS(2), NUMBERS(0, 3));
    CHECK_ERROR(sgm_session_run(session, program), "index 3 is out of range: axis 0 has 3 entries");
    feed(session, program, "i", SGM_INT32, DIMS(2), NUMBERS(-1, 0));
    CHECK_ERROR(sgm_session_run(session, program), "gather");
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* What is multiplied by a sigmoid that is next to nothing is nothing, however large. */
TEST(silu_of_large_numbers)
{
    static const sgm_handler_options options[] = {
        {.struct_size = sizeof *options},
        {.struct_size = sizeof *options, .approximate = true},
        {.struct_size = sizeof *options, .instructions = "portable"}};
    sgm_graph *graph = sgm_graph_create();
    sgm_graph_add_output(graph, "y", sgm_silu(graph, sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(4))));
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        sgm_handler *handler = sgm_handler_create_with("cpu", &options[i]);
        CHECK_OK(handler);
        sgm_session *session = sgm_session_create(handler);
        sgm_program *program = sgm_session_prepare(session, graph);
        feed(session, program, "x", SGM_FLOAT32, DIMS(4), NUMBERS(-1e38, -3e30, -100, 100));
        CHECK_OK(sgm_session_run(session, program));
        check_output(session, program, "y", NUMBERS(0, 0, 0, 100), 1e-30);
        sgm_session_free(session);
        sgm_handler_free(handler);
    }
    sgm_graph_free(graph);
}

TEST(says_what_it_is)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 3, .dense = "own");
    char *text = sgm_handler_describe(handler);
    CHECK(strstr(text, "threads: 3\n") != NULL);
    CHECK(strstr(text, "matrix products: own loops\n") != NULL);
    CHECK(strstr(text, "instructions: ") != NULL);
    sgm_string_free(text);
    CHECK_STR(sgm_handler_support(handler, "matmul", SGM_FLOAT32), "kernel");
    CHECK_STR(sgm_handler_support(handler, "matmul", SGM_INT64), "reference loop");
    CHECK_STR(sgm_handler_support(handler, "softmax", SGM_FLOAT32), "kernel");
    CHECK_STR(sgm_handler_support(handler, "softmax", SGM_FLOAT64), "composed");
    CHECK_STR(sgm_handler_support(handler, "less", SGM_FLOAT32), "kernel");
    CHECK_STR(sgm_handler_support(handler, "inverse", SGM_FLOAT32), "reference loop");
    CHECK_STR(sgm_handler_support(handler, "silu", SGM_FLOAT32), "composed");
    sgm_handler_free(handler);
    CHECK_ERROR(sgm_handler_create("cpu", .threads = 100000), "threads is 100000");
    CHECK_ERROR(sgm_handler_create("cpu", .dense = "mkl"), "dense is 'mkl'");
}

/* --- products that run together with an update: the watched handler runs step by step, without that --- */

static void record_update(sgm_graph *g)
{
    sgm_value x = sgm_input_value(g, "x", SGM_FLOAT32, DIMS(50, 310));
    sgm_value w = sgm_state(g, "w", SGM_FLOAT32, DIMS(310, 290)), gradient;
    sgm_value sum = sgm_state(g, "sum", SGM_FLOAT32, DIMS(310, 290));
    sgm_value cost = sgm_sum(g, sgm_square(g, sgm_matmul(g, x, w)));
    CHECK_OK(sgm_gradients(g, cost, &w, 1, &gradient));
    sgm_value squares = sgm_add(g, sum, sgm_square(g, gradient));
    sgm_assign(g, sum, squares);
    sgm_value step = sgm_divide(g, gradient, sgm_square_root(g, sgm_add(g, squares, sgm_number(g, 1e-3))));
    sgm_assign(g, w, sgm_subtract(g, w, sgm_multiply(g, step, sgm_number(g, 0.1))));
    CHECK_OK(sgm_graph_status(g));
}

static void run_update(const char *name, int threads, const sgm_graph *graph, sgm_tensor **result)
{
    static const input inputs[] = {F32(50, 310), F32(310, 290)};
    sgm_handler *handler = sgm_handler_create(name, .threads = threads);
    if (strcmp(name, "cpu") == 0)
        ((sgm__cpu *)handler->self)->shares_all = true;
    sgm_session *session = sgm_session_create(handler);
    sgm__random random = sgm__random_make(2, 3);
    sgm_tensor *x = random_input(&inputs[0], &random), *w = random_input(&inputs[1], &random);
    sgm_tensor *zeros = sgm_tensor_create(SGM_FLOAT32, &inputs[1].shape);
    CHECK_OK(sgm_session_set(session, "w", w));
    CHECK_OK(sgm_session_set(session, "sum", zeros));
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", x));
    for (int i = 0; i < 3; i++)
        CHECK_OK(sgm_session_run(session, program));
    *result = sgm_session_get(session, "w");
    CHECK_OK(*result);
    sgm_tensor_free(x);
    sgm_tensor_free(w);
    sgm_tensor_free(zeros);
    sgm_session_free(session);
    sgm_handler_free(handler);
}

TEST(updates_together_with_products)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_tensor *alone, *together, *threads, *expected;
    record_update(graph);
    run_update("debug:cpu", 1, graph, &alone);
    run_update("cpu", 1, graph, &together);
    run_update("cpu", 3, graph, &threads);
    run_update("reference", 1, graph, &expected);
    CHECK(same_bits(alone, together));
    CHECK(same_bits(alone, threads));
    check_near(together, expected, 1e-3, "after three updates");
    sgm_tensor_free(alone);
    sgm_tensor_free(together);
    sgm_tensor_free(threads);
    sgm_tensor_free(expected);
    sgm_graph_free(graph);
}

/* --- numbers below the smallest of full precision --- */

/* How many of many halves of 1.2e-38 are 0, by a handler with several threads. */
static int count_zeros(sgm_handler *handler)
{
    enum { COUNT = 100000 };
    static float x[COUNT], y[COUNT];
    sgm_graph *graph = sgm_graph_create();
    sgm_value fed_value = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(COUNT));
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, fed_value, sgm_number(graph, 0.5)));
    CHECK_OK(handler);
    ((sgm__cpu *)handler->self)->shares_all = true;
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1.2e-38f;
    sgm_tensor *fed = sgm_tensor_wrap(SGM_FLOAT32, DIMS(COUNT), x, NULL, NULL);
    sgm_tensor *result = sgm_tensor_wrap(SGM_FLOAT32, DIMS(COUNT), y, NULL, NULL);
    CHECK_OK(sgm_session_feed(session, program, "x", fed));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", result));
    int zeros = 0;
    static const float zero = 0, half = 0.6e-38f;
    for (int i = 0; i < COUNT; i++) { /* by their bits: the caller may take such numbers for 0 */
        bool is_zero = memcmp(&y[i], &zero, sizeof zero) == 0;
        CHECK(is_zero || memcmp(&y[i], &half, sizeof half) == 0);
        zeros += is_zero;
    }
    sgm_tensor_free(fed);
    sgm_tensor_free(result);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return zeros;
}

TEST(subnormal_numbers_are_kept_where_that_is_wanted)
{
    CHECK_INT(count_zeros(sgm_handler_create("cpu", .threads = 3)), 100000);
    CHECK_INT(count_zeros(sgm_handler_create("cpu", .threads = 3, .keep_subnormals = true)), 0);
    CHECK_INT(count_zeros(sgm_handler_create("cpu(keep_subnormals=true)", .threads = 3)), 0);
    sgm_handler *handler = sgm_handler_create("cpu", .keep_subnormals = true);
    char *text = sgm_handler_describe(handler);
    CHECK(strstr(text, "subnormal numbers: kept\n") != NULL);
    sgm_string_free(text);
    sgm_handler_free(handler);
}

#ifdef __x86_64__
/* A program whose compiler was told to be fast takes such operands for 0, and so do threads that it starts:
 * that changes nothing here. */
TEST(what_the_caller_does_with_subnormal_numbers_changes_nothing)
{
    uint32_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u);
    int zeros = count_zeros(sgm_handler_create("cpu", .threads = 3, .keep_subnormals = true));
    uint32_t after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    CHECK_INT(zeros, 0);
    CHECK_INT(after & 0x8040u, 0x8040u);
}
#endif

/* Numbers below the smallest of full precision become zero, and the caller's own arithmetic stays as it was.
 */
TEST(tiny_numbers_are_zero)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 2));
    sgm_graph_add_output(graph, "y", sgm_multiply(graph, x, sgm_number(graph, 0.9)));
    sgm_handler *handler = sgm_handler_create("cpu");
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    feed(session, program, "x", SGM_FLOAT32, DIMS(2, 2), NUMBERS(1e-40, 1.2e-38, -1e-30, 2));
    CHECK_OK(sgm_session_run(session, program));
    float y[4];
    sgm_tensor *result = sgm_tensor_wrap(SGM_FLOAT32, DIMS(2, 2), y, NULL, NULL);
    CHECK_OK(sgm_session_read(session, program, "y", result));
    CHECK(y[0] == 0 && y[1] == 0 && y[2] == -1e-30f * 0.9f && y[3] == 1.8f);
    volatile float tiny = 1e-40f;
    CHECK(tiny * 0.5f > 0);
    sgm_tensor_free(result);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* The type is that of operands, also where results have one of their own. */
TEST(kernels_are_told_by_the_type_of_operands)
{
    static const struct {
        const char *operation;
        sgm_dtype dtype;
        const char *support;
    } cases[] = {{"accuracy", SGM_FLOAT32, "kernel"},
                 {"accuracy", SGM_FLOAT64, "reference loop"},
                 {"accuracy", SGM_BFLOAT16, "reference loop"},
                 {"arg_max", SGM_FLOAT32, "kernel"},
                 {"arg_max", SGM_INT64, "reference loop"},
                 {"arg_max", SGM_BFLOAT16, "reference loop"},
                 {"matmul", SGM_FLOAT32, "kernel"},
                 {"matmul", SGM_INT64, "reference loop"}};
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .dense = "own");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sgm_handler_support(handler, cases[i].operation, cases[i].dtype), cases[i].support);
    sgm_handler_free(handler);
}
