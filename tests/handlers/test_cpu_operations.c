/* The cpu handler against the reference: the same graph, the same inputs, near values; and the same bits with
 * one, two and three threads; with narrower vectors, near values. */
#include "base/allocator.h"
#include "base/base.h"
#include "graphs.h"
#include "handlers/cpu/cpu.h"

#define MOST_INPUTS 3
#define MOST_OUTPUTS 4

typedef struct input {
    sgm_dtype dtype;
    sgm_shape shape;
    double least, most;
} input;

typedef void (*recorder)(sgm_graph *graph, const sgm_value *inputs);

static sgm_tensor *random_input(const input *description, sgm__random *random)
{
    sgm_tensor *tensor = sgm_tensor_create(description->dtype, &description->shape);
    CHECK_OK(tensor);
    sgm_array array = {.dtype = description->dtype, .data = sgm_tensor_data(tensor)};
    int64_t count = sgm_shape_elements(&description->shape);
    for (int64_t i = 0; i < count; i++)
        sgm_array_store(&array, i,
                        description->least +
                            (description->most - description->least) * sgm__random_uniform(random));
    return tensor;
}

/* Runs on one handler; outputs "0", "1", ... as new tensors. */
static int run_on(const char *name, int threads, const char *dense, const sgm_graph *graph,
                  const input *inputs, int count, sgm_tensor **outputs)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    sgm_handler_options options = {.struct_size = sizeof options, .threads = threads, .dense = dense};
    sgm_handler *handler = sgm_handler_create_options(name, &options);
    CHECK_OK(handler);
    if (strcmp(name, "cpu") == 0)
        ((sgm__cpu *)handler->self)->shares_all = true; /* small ones, too */
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    sgm__random random = sgm__random_make(9, 1);
    for (int i = 0; i < count; i++) {
        sgm_tensor *tensor = random_input(&inputs[i], &random);
        if (sgm_program_has_input(program, names[i]))
            CHECK_OK(sgm_session_feed(session, program, names[i], tensor));
        sgm_tensor_free(tensor);
    }
    CHECK_OK(sgm_session_run(session, program));
    int output = 0;
    for (; output < MOST_OUTPUTS && sgm_program_has_output(program, names[output]); output++) {
        sgm_type type = sgm_program_output_type(program, names[output]);
        outputs[output] = sgm_tensor_create(type.dtype, &type.shape);
        CHECK_OK(sgm_session_read(session, program, names[output], outputs[output]));
    }
    sgm_session_free(session);
    sgm_handler_free(handler);
    return output;
}

static void check_near(const sgm_tensor *got, const sgm_tensor *expected, double tolerance, const char *what)
{
    sgm_array a = {.dtype = sgm_tensor_dtype(got), .data = (void *)(uintptr_t)sgm_tensor_const_data(got)};
    sgm_array b = {.dtype = sgm_tensor_dtype(got),
                   .data = (void *)(uintptr_t)sgm_tensor_const_data(expected)};
    int64_t count = sgm_shape_elements(sgm_tensor_shape(got));
    for (int64_t i = 0; i < count; i++) {
        double x = sgm_array_load(&a, i), y = sgm_array_load(&b, i);
        if (!test_near(x, y, tolerance * fmax(1, fabs(y))))
            TEST_FAIL("element %lld is %.9g, the reference has %.9g (%s)", (long long)i, x, y, what);
    }
}

static bool same_bits(const sgm_tensor *a, const sgm_tensor *b)
{
    size_t size = sgm_dtype_size(sgm_tensor_dtype(a));
    return memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                  (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * size) == 0;
}

/* Instruction sets that are not the widest here, where the processor has them. */
static void compare_others(const sgm_graph *graph, const input *inputs, int count,
                           sgm_tensor *const *expected, double tolerance)
{
    static const char *const names[] = {"cpu(instructions=portable)", "cpu(instructions=avx2)"};
    sgm_tensor *got[MOST_OUTPUTS];
    for (int k = 0; k < 2; k++) {
        sgm_handler *handler = sgm_handler_create(names[k]);
        bool runs_here = handler != NULL;
        sgm_handler_free(handler);
        int outputs = runs_here ? run_on(names[k], 2, NULL, graph, inputs, count, got) : 0;
        for (int i = 0; i < outputs; i++) {
            check_near(got[i], expected[i], tolerance, names[k]);
            sgm_tensor_free(got[i]);
        }
    }
    sgm_clear_error();
}

static void compare(recorder record, const input *inputs, int count, double tolerance)
{
    static const char *const names[] = {"0", "1", "2"};
    sgm_graph *graph = sgm_graph_create();
    sgm_value values[MOST_INPUTS];
    for (int i = 0; i < count; i++)
        values[i] = sgm_input_value(graph, names[i], inputs[i].dtype, &inputs[i].shape);
    record(graph, values);
    CHECK_OK(sgm_graph_status(graph));
    sgm_tensor *expected[MOST_OUTPUTS], *got[MOST_OUTPUTS], *first[MOST_OUTPUTS];
    int outputs = run_on("reference", 0, NULL, graph, inputs, count, expected);
    for (int threads = 1; threads <= 3; threads++) {
        CHECK_INT(run_on("cpu", threads, NULL, graph, inputs, count, got), outputs);
        for (int i = 0; i < outputs; i++) {
            char what[64];
            snprintf(what, sizeof what, "output %d, %d threads", i, threads);
            check_near(got[i], expected[i], tolerance, what);
            if (threads == 1)
                first[i] = sgm_tensor_retain(got[i]);
            else if (!same_bits(got[i], first[i]))
                TEST_FAIL("other bits: %s", what);
            sgm_tensor_free(got[i]);
        }
    }
    compare_others(graph, inputs, count, expected, tolerance);
    for (int i = 0; i < outputs; i++) {
        sgm_tensor_free(expected[i]);
        sgm_tensor_free(first[i]);
    }
    sgm_graph_free(graph);
}

#define COMPARE(record, tolerance, ...)                                                                      \
    compare(record, (const input[]){__VA_ARGS__}, (int)(sizeof((input[]){__VA_ARGS__}) / sizeof(input)),     \
            tolerance)
#define F32(...)                                                                                             \
    {                                                                                                        \
        SGM_FLOAT32, TEST_SHAPE(__VA_ARGS__), -2, 2                                                          \
    }
#define F64(...)                                                                                             \
    {                                                                                                        \
        SGM_FLOAT64, TEST_SHAPE(__VA_ARGS__), -2, 2                                                          \
    }
#define BF16(...)                                                                                            \
    {                                                                                                        \
        SGM_BFLOAT16, TEST_SHAPE(__VA_ARGS__), -2, 2                                                         \
    }
#define INDEX(most, ...)                                                                                     \
    {                                                                                                        \
        SGM_INT64, TEST_SHAPE(__VA_ARGS__), 0, most                                                          \
    }
#define INTEGERS(type, ...)                                                                                  \
    {                                                                                                        \
        SGM_##type, TEST_SHAPE(__VA_ARGS__), 0, 100                                                          \
    }
#define BITS(...)                                                                                            \
    {                                                                                                        \
        SGM_BOOL, TEST_SHAPE(__VA_ARGS__), -1, 1                                                             \
    }

/* --- elementwise --- */

static void record_unary(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = in[0], sum = x;
#define ADD(name, doc) sum = sgm_add(g, sum, sgm_##name(g, x));
    SGM_COMPOSED_UNARY_LIST(ADD)
    ADD(negate, )
    ADD(absolute, )
    ADD(sign, )
    ADD(exp, )
    ADD(sin, )
    ADD(cos, )
    ADD(atan, )
    ADD(tanh, )
    ADD(erf, )
    ADD(floor, )
#undef ADD
    sgm_output(g, "0", sum);
    sgm_value positive = sgm_add(g, sgm_absolute(g, x), sgm_number(g, 0.01));
    sgm_value roots = sgm_add(g, sgm_log(g, positive), sgm_log1p(g, positive));
    sgm_output(g, "1", sgm_add(g, roots, sgm_square_root(g, positive)));
    sgm_value within = sgm_clip(g, x, -0.9, 0.9);
    sgm_output(g, "2", sgm_add(g, sgm_add(g, sgm_asin(g, within), sgm_acos(g, within)), sgm_tan(g, within)));
    sgm_output(g, "3", sgm_is_finite(g, sgm_log(g, x)));
}

TEST(unary)
{
    COMPARE(record_unary, 3e-6, F32(3));
    COMPARE(record_unary, 3e-6, F32(37, 501));
    COMPARE(record_unary, 1e-12, F64(5, 31));
    COMPARE(record_unary, 0.05, BF16(11, 13));
    COMPARE(record_unary, 0, F32(0, 4));
}

static void record_binary(sgm_graph *g, const sgm_value *in)
{
    sgm_value a = in[0], b = in[1];
    sgm_value sum = sgm_add(g, sgm_multiply(g, a, b), sgm_subtract(g, a, b));
    sgm_value less = sgm_logical_or(g, sgm_less(g, a, b), sgm_equal(g, a, b));
    sgm_value more = sgm_logical_and(g, sgm_greater_equal(g, a, b), sgm_not_equal(g, a, b));
    sgm_output(g, "0", sgm_select(g, less, sum, sgm_maximum(g, sum, a)));
    sgm_output(g, "1", sgm_logical_not(g, sgm_logical_or(g, more, sgm_greater(g, b, a))));
    sgm_output(g, "2", sgm_minimum(g, sgm_maximum(g, a, b), sum));
    sgm_output(g, "3", sgm_cast(g, sgm_cast(g, less, SGM_INT64), SGM_FLOAT32));
}

TEST(binary)
{
    COMPARE(record_binary, 1e-6, F32(100, 300), F32(100, 300));
    COMPARE(record_binary, 1e-6, F32(100, 300), F32(300));   /* rows alike */
    COMPARE(record_binary, 1e-6, F32(100, 3000), F32(3000)); /* longer than a tile */
    COMPARE(record_binary, 1e-6, F32(100, 30), F32(100, 1)); /* columns alike */
    COMPARE(record_binary, 1e-6, F32(10, 3000), F32(10, 1));
    COMPARE(record_binary, 1e-6, F32(7, 5, 3, 11), F32(5, 1, 11));
    COMPARE(record_binary, 1e-6, F32(40, 1, 30), F32(1, 50, 1)); /* both */
    COMPARE(record_binary, 1e-6, F32(1), F32(2, 3));
    COMPARE(record_binary, 1e-14, F64(100, 30), F64(100, 1));
    COMPARE(record_binary, 1e-2, BF16(10, 30), BF16(30));
    COMPARE(record_binary, 0, INTEGERS(INT32, 10, 30), INTEGERS(INT32, 30));
    COMPARE(record_binary, 0, INTEGERS(INT64, 10, 30), INTEGERS(INT64, 30));
    COMPARE(record_binary, 0, INTEGERS(UINT8, 10, 30), INTEGERS(UINT8, 30));
}

static void record_float_binary(sgm_graph *g, const sgm_value *in)
{
    sgm_output(g, "0", sgm_divide(g, in[0], in[1]));
    sgm_output(g, "1", sgm_power(g, sgm_absolute(g, in[0]), in[1]));
    sgm_output(g, "2", sgm_square_root(g, in[0]));
}

TEST(division_and_powers)
{
    COMPARE(record_float_binary, 1e-6, F32(33, 65), F32(33, 65));
    COMPARE(record_float_binary, 1e-13, F64(33, 5), F64(5));
}

static void record_casts(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = sgm_multiply(g, in[0], sgm_number(g, 1000)), sum = sgm_cast(g, x, SGM_FLOAT64);
    for (int dtype = 0; dtype < SGM_DTYPE_COUNT; dtype++)
        for (int last = 0; last < SGM_DTYPE_COUNT; last++) {
            sgm_value twice = sgm_cast(g, sgm_cast(g, x, (sgm_dtype)dtype), (sgm_dtype)last);
            sum = sgm_add(g, sum, sgm_cast(g, twice, SGM_FLOAT64));
        }
    sgm_output(g, "0", sum);
}

TEST(casts)
{
    COMPARE(record_casts, 1e-12, F32(100));
    COMPARE(record_casts, 1e-12, F64(100));
}

/* --- views --- */

static void record_views(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = in[0], flipped = sgm_flip(g, x, 1), turned = sgm_transpose(g, x);
    sgm_output(g, "0", sgm_add(g, flipped, sgm_slice(g, sgm_transpose(g, in[1]), 0, 0, 40, 1)));
    sgm_output(g, "1", turned);
    sgm_output(g, "2", sgm_multiply(g, sgm_slice(g, x, 1, 1, 60, 3), sgm_slice(g, x, 1, 0, 59, 3)));
    sgm_output(g, "3", sgm_permute(g, in[2], (const int32_t[]){2, 0, 1}));
}

TEST(views)
{
    COMPARE(record_views, 1e-6, F32(40, 70), F32(70, 45), F32(5, 17, 33));
    COMPARE(record_views, 1e-14, F64(40, 70), F64(70, 45), F64(5, 17, 33));
    COMPARE(record_views, 1e-2, BF16(40, 70), BF16(70, 45), BF16(5, 17, 33));
    COMPARE(record_views, 0, INTEGERS(UINT8, 40, 70), INTEGERS(UINT8, 70, 45), INTEGERS(UINT8, 5, 17, 33));
}

static void record_turns(sgm_graph *g, const sgm_value *in)
{
    sgm_output(g, "0", sgm_transpose(g, in[0]));
    sgm_output(g, "1", sgm_transpose(g, in[1]));
}

TEST(large_turns)
{
    COMPARE(record_turns, 0, F32(333, 217), F32(3, 100, 90));
    COMPARE(record_turns, 0, F64(133, 217), F64(3, 100, 90));
}

/* --- products --- */

static void record_product(sgm_graph *g, const sgm_value *in)
{
    sgm_output(g, "0", sgm_matmul(g, in[0], in[1]));
    sgm_output(g, "1", sgm_matmul(g, sgm_transpose(g, in[1]), sgm_transpose(g, in[0])));
    sgm_output(g, "2", sgm_matmul(g, sgm_transpose(g, in[0]), in[0]));
    sgm_output(g, "3", sgm_matmul(g, in[1], sgm_transpose(g, in[1])));
}

TEST(products)
{
    COMPARE(record_product, 2e-5, F32(100, 70), F32(70, 130));
    COMPARE(record_product, 2e-5, F32(7, 3), F32(3, 10));
    COMPARE(record_product, 2e-5, F32(3, 50, 40), F32(3, 40, 30));
    COMPARE(record_product, 2e-5, F32(2, 13, 5, 8), F32(1, 1, 8, 9));
    COMPARE(record_product, 2e-5, F32(4, 70, 64), F32(64, 80)); /* rows of all in one product */
    COMPARE(record_product, 1e-12, F64(60, 70), F64(70, 50));
    COMPARE(record_product, 0.05, BF16(60, 70), BF16(70, 50));
    COMPARE(record_product, 0.05, BF16(3, 6, 7), BF16(7, 5));
    COMPARE(record_product, 0, INTEGERS(INT32, 6, 7), INTEGERS(INT32, 7, 5));
    COMPARE(record_product, 1e-5, F32(0, 7), F32(7, 5));
    COMPARE(record_product, 1e-5, F32(3, 0), F32(0, 5));
}

/* --- reductions --- */

static void record_reductions(sgm_graph *g, const sgm_value *in)
{
    const int32_t outer = 0, last = -1;
    sgm_output(g, "0", sgm_reduce_sum(g, in[0], &outer, 1, false));
    sgm_output(g, "1", sgm_reduce_sum(g, in[0], &last, 1, true));
    sgm_output(g, "2", sgm_sum(g, in[0]));
    sgm_value turned = sgm_permute(g, in[0], (const int32_t[]){1, 0, 2});
    sgm_output(g, "3", sgm_reduce_sum(g, turned, &last, 1, false));
}

static void record_extremes(sgm_graph *g, const sgm_value *in)
{
    const int32_t outer = 0, last = -1, both[] = {0, 2};
    sgm_output(g, "0", sgm_reduce_max(g, in[0], &outer, 1, false));
    sgm_output(g, "1", sgm_reduce_min(g, in[0], &last, 1, true));
    sgm_output(g, "2", sgm_reduce_max(g, in[0], NULL, 0, false));
    sgm_output(g, "3", sgm_reduce_variance(g, in[0], both, 2, false));
}

TEST(reductions)
{
    COMPARE(record_reductions, 1e-5, F32(30, 20, 10));
    COMPARE(record_reductions, 1e-5, F32(3000, 2, 40));
    COMPARE(record_reductions, 1e-5, F32(2, 3, 40000));
    COMPARE(record_reductions, 1e-5, F32(5, 700, 3));
    COMPARE(record_reductions, 1e-5, F32(1, 1, 1));
    COMPARE(record_reductions, 1e-12, F64(300, 20, 10));
    COMPARE(record_reductions, 0.05, BF16(3, 20, 10));
    COMPARE(record_reductions, 0, INTEGERS(INT64, 3, 20, 10));
    COMPARE(record_reductions, 0, F32(0, 4, 5));
    COMPARE(record_extremes, 1e-5, F32(30, 20, 10));
    COMPARE(record_extremes, 1e-5, F32(300, 2, 40));
    COMPARE(record_extremes, 1e-12, F64(30, 20, 10));
    COMPARE(record_extremes, 0.05, BF16(3, 20, 10));
}

/* --- classes --- */

static void record_softmax(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = sgm_multiply(g, in[0], sgm_number(g, 30));
    sgm_output(g, "0", sgm_softmax(g, x));
    sgm_output(g, "1", sgm_log_softmax(g, x));
    sgm_output(g, "2", sgm_softmax_cross_entropy_values(g, x, in[1]));
    sgm_output(g, "3", sgm_softmax(g, sgm_slice(g, x, -1, 1, 4, 1)));
}

TEST(softmax)
{
    COMPARE(record_softmax, 5e-6, F32(100, 10), F32(100, 10));
    COMPARE(record_softmax, 2e-5, F32(3, 50, 100), F32(3, 50, 100));
    COMPARE(record_softmax, 1e-12, F64(100, 10), F64(100, 10));
    COMPARE(record_softmax, 0.2, BF16(10, 10), BF16(10, 10));
}

/* --- movement --- */

static void record_movement(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = in[0], parts[] = {x, sgm_transpose(g, in[1]), sgm_slice(g, x, 0, 1, 4, 2)};
    sgm_output(g, "0", sgm_concatenate(g, parts, 3, 0));
    sgm_output(g, "1", sgm_concatenate(g, (const sgm_value[]){x, x}, 2, 1));
    sgm_output(g, "2", sgm_pad(g, sgm_pad(g, sgm_flip(g, x, 0), 1, 2, 3, 0), 0, 0, 1, 2));
    sgm_output(g, "3", sgm_cumulative_sum(g, x, 0, true));
}

TEST(movement)
{
    COMPARE(record_movement, 1e-5, F32(20, 30), F32(30, 7));
    COMPARE(record_movement, 1e-5, F32(200, 300), F32(300, 70));
    COMPARE(record_movement, 1e-12, F64(20, 30), F64(30, 7));
    COMPARE(record_movement, 0.1, BF16(5, 30), BF16(30, 7));
    COMPARE(record_movement, 0, INTEGERS(INT32, 5, 30), INTEGERS(INT32, 30, 7));
}

static void record_indices(sgm_graph *g, const sgm_value *in)
{
    sgm_output(g, "0", sgm_gather(g, in[0], in[1], 0));
    sgm_output(g, "1", sgm_gather(g, sgm_transpose(g, in[0]), in[1], 1));
    sgm_output(g, "2", sgm_scatter_add(g, sgm_gather(g, in[0], in[1], 0), in[1], 0, 25));
    sgm_output(g, "3", sgm_arg_max(g, in[0], -1));
}

TEST(indices)
{
    COMPARE(record_indices, 1e-5, F32(20, 30), INDEX(20, 50));
    COMPARE(record_indices, 1e-5, F32(20, 300), INDEX(20, 10, 50));
    COMPARE(record_indices, 1e-12, F64(20, 3), INDEX(20, 5));
    COMPARE(record_indices, 0.1, BF16(20, 3), INDEX(20, 5));
}

static void record_numbers(sgm_graph *g, const sgm_value *in)
{
    sgm_shape shape = sgm_shape_of(130, 77), small = sgm_shape_of(3);
    sgm_output(g, "0", sgm_random_uniform(g, in[0], in[1], 3, SGM_FLOAT32, &shape));
    sgm_output(g, "1", sgm_random_uniform(g, in[0], in[1], 4, SGM_FLOAT64, &small));
    sgm_output(g, "2", sgm_random_normal(g, in[0], in[1], 5, SGM_FLOAT32, &shape));
    sgm_output(g, "3", sgm_iota(g, SGM_FLOAT32, &shape, 1));
}

TEST(random_numbers)
{
    const input one = {SGM_INT64, {0}, 5, 100};
    COMPARE(record_numbers, 1e-5, one, one);
}

/* --- the handler itself --- */

TEST(libraries_agree)
{
    static const char *const names[] = {"openblas", "onednn", "own"};
    sgm_graph *graph = sgm_graph_create();
    const input inputs[] = {F32(90, 70), F32(70, 130)};
    sgm_value values[2];
    for (int i = 0; i < 2; i++)
        values[i] = sgm_input_value(graph, i == 0 ? "0" : "1", SGM_FLOAT32, &inputs[i].shape);
    record_product(graph, values);
    sgm_tensor *expected[MOST_OUTPUTS], *got[MOST_OUTPUTS];
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
    sgm_value cost = sgm_mean(graph, sgm_softmax(graph, sgm_matmul(graph, sgm_tanh(graph, x), w))), slope;
    CHECK_OK(sgm_gradients(graph, cost, &w, 1, &slope));
    sgm_assign(graph, w, sgm_subtract(graph, w, slope));
    sgm_output(graph, "cost", cost);
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
    sgm_output(graph, "y", sgm_gather(graph, x, i, 0));
    sgm_output(graph, "z", sgm_scatter_add(graph, sgm_slice(graph, x, 0, 0, 2, 1), i, 0, 3));
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
    sgm_value w = sgm_state(g, "w", SGM_FLOAT32, DIMS(310, 290)), slope;
    sgm_value sum = sgm_state(g, "sum", SGM_FLOAT32, DIMS(310, 290));
    sgm_value cost = sgm_sum(g, sgm_square(g, sgm_matmul(g, x, w)));
    CHECK_OK(sgm_gradients(g, cost, &w, 1, &slope));
    sgm_value squares = sgm_add(g, sum, sgm_square(g, slope));
    sgm_assign(g, sum, squares);
    sgm_value step = sgm_divide(g, slope, sgm_square_root(g, sgm_add(g, squares, sgm_number(g, 1e-3))));
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

/* Numbers below the smallest of full precision become zero, and the caller's own arithmetic stays as it was.
 */
TEST(tiny_numbers_are_zero)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT32, DIMS(2, 2));
    sgm_output(graph, "y", sgm_multiply(graph, x, sgm_number(graph, 0.9)));
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
