/* The cpu handler against the reference: the same graph, the same inputs, near values; and the same bits with
 * one, two and three threads; with narrower vectors, near values. */
#include "handlers/comparison.h"

typedef void (*recorder)(sgm_graph *graph, const sgm_value *inputs);

/* Instruction sets that are not the widest here, where the processor has them. */
static void compare_others(const sgm_graph *graph, const input *inputs, int count,
                           sgm_tensor *const *expected, double tolerance)
{
    static const char *const names[] = {"cpu(instructions=portable)", "cpu(instructions=avx2)"};
    sgm_tensor *got[MAXIMUM_OUTPUTS];
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
    sgm_value values[MAXIMUM_INPUTS];
    for (int i = 0; i < count; i++)
        values[i] = sgm_input_value(graph, names[i], inputs[i].dtype, &inputs[i].shape);
    record(graph, values);
    CHECK_OK(sgm_graph_status(graph));
    sgm_tensor *expected[MAXIMUM_OUTPUTS], *got[MAXIMUM_OUTPUTS], *first[MAXIMUM_OUTPUTS];
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
#define F64(...)                                                                                             \
    {                                                                                                        \
        SGM_FLOAT64, TEST_SHAPE(__VA_ARGS__), -2, 2                                                          \
    }
#define BF16(...)                                                                                            \
    {                                                                                                        \
        SGM_BFLOAT16, TEST_SHAPE(__VA_ARGS__), -2, 2                                                         \
    }
#define INDEX(maximum, ...)                                                                                  \
    {                                                                                                        \
        SGM_INT64, TEST_SHAPE(__VA_ARGS__), 0, maximum                                                       \
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
    ADD(softplus, )
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
    sgm_graph_add_output(g, "0", sum);
    sgm_value positive = sgm_add(g, sgm_absolute(g, x), sgm_number(g, 0.01));
    sgm_value roots = sgm_add(g, sgm_log(g, positive), sgm_log1p(g, positive));
    sgm_graph_add_output(g, "1", sgm_add(g, roots, sgm_square_root(g, positive)));
    sgm_value within = sgm_clip(g, x, -0.9, 0.9);
    sgm_graph_add_output(
        g, "2", sgm_add(g, sgm_add(g, sgm_asin(g, within), sgm_acos(g, within)), sgm_tan(g, within)));
    sgm_graph_add_output(g, "3", sgm_is_finite(g, sgm_log(g, x)));
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
    sgm_graph_add_output(g, "0", sgm_select(g, less, sum, sgm_maximum(g, sum, a)));
    sgm_graph_add_output(g, "1", sgm_logical_not(g, sgm_logical_or(g, more, sgm_greater(g, b, a))));
    sgm_graph_add_output(g, "2", sgm_minimum(g, sgm_maximum(g, a, b), sum));
    sgm_graph_add_output(g, "3", sgm_cast(g, sgm_cast(g, less, SGM_INT64), SGM_FLOAT32));
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
    sgm_graph_add_output(g, "0", sgm_divide(g, in[0], in[1]));
    sgm_graph_add_output(g, "1", sgm_power(g, sgm_absolute(g, in[0]), in[1]));
    sgm_graph_add_output(g, "2", sgm_square_root(g, in[0]));
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
    sgm_graph_add_output(g, "0", sum);
}

TEST(casts)
{
    COMPARE(record_casts, 1e-12, F32(100));
    COMPARE(record_casts, 1e-12, F64(100));
}

/* --- views --- */

static void record_views(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = in[0], flipped = sgm_flip(g, x, 1), transposed = sgm_transpose(g, x);
    sgm_graph_add_output(g, "0", sgm_add(g, flipped, sgm_slice(g, sgm_transpose(g, in[1]), 0, 0, 40, 1)));
    sgm_graph_add_output(g, "1", transposed);
    sgm_graph_add_output(g, "2", sgm_multiply(g, sgm_slice(g, x, 1, 1, 60, 3), sgm_slice(g, x, 1, 0, 59, 3)));
    sgm_graph_add_output(g, "3", sgm_permute(g, in[2], (const int32_t[]){2, 0, 1}));
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
    sgm_graph_add_output(g, "0", sgm_transpose(g, in[0]));
    sgm_graph_add_output(g, "1", sgm_transpose(g, in[1]));
}

TEST(large_turns)
{
    COMPARE(record_turns, 0, F32(333, 217), F32(3, 100, 90));
    COMPARE(record_turns, 0, F64(133, 217), F64(3, 100, 90));
}

/* --- products --- */

static void record_product(sgm_graph *g, const sgm_value *in)
{
    sgm_graph_add_output(g, "0", sgm_matmul(g, in[0], in[1]));
    sgm_graph_add_output(g, "1", sgm_matmul(g, sgm_transpose(g, in[1]), sgm_transpose(g, in[0])));
    sgm_graph_add_output(g, "2", sgm_matmul(g, sgm_transpose(g, in[0]), in[0]));
    sgm_graph_add_output(g, "3", sgm_matmul(g, in[1], sgm_transpose(g, in[1])));
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
    sgm_graph_add_output(g, "0", sgm_reduce_sum(g, in[0], &outer, 1, false));
    sgm_graph_add_output(g, "1", sgm_reduce_sum(g, in[0], &last, 1, true));
    sgm_graph_add_output(g, "2", sgm_sum(g, in[0]));
    sgm_value transposed = sgm_permute(g, in[0], (const int32_t[]){1, 0, 2});
    sgm_graph_add_output(g, "3", sgm_reduce_sum(g, transposed, &last, 1, false));
}

static void record_extremes(sgm_graph *g, const sgm_value *in)
{
    const int32_t outer = 0, last = -1, both[] = {0, 2};
    sgm_graph_add_output(g, "0", sgm_reduce_max(g, in[0], &outer, 1, false));
    sgm_graph_add_output(g, "1", sgm_reduce_min(g, in[0], &last, 1, true));
    sgm_graph_add_output(g, "2", sgm_reduce_max(g, in[0], NULL, 0, false));
    sgm_graph_add_output(g, "3", sgm_reduce_variance(g, in[0], both, 2, false));
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
    COMPARE(record_extremes, 1e-5, F32(3000, 2, 40)); /* in parts */
    COMPARE(record_extremes, 1e-5, F32(2, 3, 40000));
    COMPARE(record_extremes, 1e-12, F64(30, 20, 10));
    COMPARE(record_extremes, 1e-12, F64(2, 3, 40000));
    COMPARE(record_extremes, 0.05, BF16(3, 20, 10));
}

/* --- classes --- */

static void record_softmax(sgm_graph *g, const sgm_value *in)
{
    sgm_value x = sgm_multiply(g, in[0], sgm_number(g, 30));
    sgm_graph_add_output(g, "0", sgm_softmax(g, x));
    sgm_graph_add_output(g, "1", sgm_log_softmax(g, x));
    sgm_graph_add_output(g, "2", sgm_softmax_cross_entropy_values(g, x, in[1]));
    sgm_graph_add_output(g, "3", sgm_softmax(g, sgm_slice(g, x, -1, 1, 4, 1)));
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
    sgm_graph_add_output(g, "0", sgm_concatenate(g, parts, 3, 0));
    sgm_graph_add_output(g, "1", sgm_concatenate(g, (const sgm_value[]){x, x}, 2, 1));
    sgm_graph_add_output(g, "2", sgm_pad(g, sgm_pad(g, sgm_flip(g, x, 0), 1, 2, 3, 0), 0, 0, 1, 2));
    sgm_graph_add_output(g, "3", sgm_cumulative_sum(g, x, 0, true));
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
    sgm_graph_add_output(g, "0", sgm_gather(g, in[0], in[1], 0));
    sgm_graph_add_output(g, "1", sgm_gather(g, sgm_transpose(g, in[0]), in[1], 1));
    sgm_graph_add_output(g, "2", sgm_scatter_add(g, sgm_gather(g, in[0], in[1], 0), in[1], 0, 25));
    sgm_graph_add_output(g, "3", sgm_arg_max(g, in[0], -1));
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
    sgm_graph_add_output(g, "0", sgm_random_uniform(g, in[0], in[1], 3, SGM_FLOAT32, &shape));
    sgm_graph_add_output(g, "1", sgm_random_uniform(g, in[0], in[1], 4, SGM_FLOAT64, &small));
    sgm_graph_add_output(g, "2", sgm_random_normal(g, in[0], in[1], 5, SGM_FLOAT32, &shape));
    sgm_graph_add_output(g, "3", sgm_iota(g, SGM_FLOAT32, &shape, 1));
}

TEST(random_numbers)
{
    const input one = {SGM_INT64, {0}, 5, 100};
    COMPARE(record_numbers, 1e-5, one, one);
}

/* --- products that run together with steps that read one number for each column, or row; the watched handler
 * runs step by step, without that --- */

static void record_layer(sgm_graph *g, const sgm_value *in)
{
    sgm_graph_add_output(g, "0", sgm_tanh(g, sgm_add(g, sgm_matmul(g, in[0], in[1]), in[2])));
}

static void record_transposed_layer(sgm_graph *g, const sgm_value *in)
{
    sgm_value product = sgm_matmul(g, sgm_transpose(g, in[0]), sgm_transpose(g, in[1]));
    sgm_value y = sgm_multiply(g, product, in[2]);
    sgm_graph_add_output(g, "0", y);
    sgm_graph_add_output(g, "1", sgm_tanh(g, y));
}

static void compare_layer(recorder record, const input *inputs)
{
    sgm_graph *graph = sgm_graph_create();
    static const char *const names[] = {"0", "1", "2"};
    sgm_tensor *alone[MAXIMUM_OUTPUTS], *together[MAXIMUM_OUTPUTS];
    sgm_value values[MAXIMUM_INPUTS];
    for (int i = 0; i < 3; i++)
        values[i] = sgm_input_value(graph, names[i], inputs[i].dtype, &inputs[i].shape);
    record(graph, values);
    int outputs = run_on("debug:cpu", 1, NULL, graph, inputs, 3, alone);
    CHECK_INT(run_on("cpu", 2, NULL, graph, inputs, 3, together), outputs);
    for (int i = 0; i < outputs; i++) {
        CHECK(same_bits(alone[i], together[i]));
        sgm_tensor_free(alone[i]);
        sgm_tensor_free(together[i]);
    }
    sgm_graph_free(graph);
    compare(record, inputs, 3, 1e-5);
}

TEST(products_together_with_biases)
{
    compare_layer(record_layer, (const input[]){F32(257, 61), F32(61, 333), F32(333)});
    compare_layer(record_layer, (const input[]){F32(257, 61), F32(61, 333), F32(257, 1)});
    compare_layer(record_transposed_layer, (const input[]){F32(61, 1001), F32(67, 61), F32(67)});
    compare_layer(record_transposed_layer, (const input[]){F32(19, 301), F32(240, 19), F32(301, 1)});
}
