/* self_attention of long sequences: blocks of rows give what all rows at once give, and memory grows with the
 * length. */
#include "test.h"

#include <sigma/graph.h>
#include <sigma/handler.h>

#include <math.h>

#define TIME 300 /* three blocks, the last of which is shorter */
#define FEATURES 4
#define HEADS 2
#define COUNT (TIME * 3 * FEATURES)

/* Queries, keys or values: (1, heads, time, features of a head). */
static sgm_value part_of(sgm_graph *graph, sgm_value x, int64_t which)
{
    sgm_shape heads = sgm_shape_of(1, TIME, HEADS, FEATURES / HEADS);
    x = sgm_reshape(graph, sgm_slice(graph, x, 2, which * FEATURES, (which + 1) * FEATURES, 1), &heads);
    return sgm_permute(graph, x, (const int32_t[]){0, 2, 1, 3});
}

static sgm_value at_once(sgm_graph *graph, sgm_value x, bool causal)
{
    sgm_shape joined = sgm_shape_of(1, TIME, FEATURES);
    sgm_value y =
        sgm_attention(graph, part_of(graph, x, 0), part_of(graph, x, 1), part_of(graph, x, 2), causal);
    return sgm_reshape(graph, sgm_permute(graph, y, (const int32_t[]){0, 2, 1, 3}), &joined);
}

static void run(const char *handler_name, bool blocks, bool causal, double *result, double *result_gradient)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create_with(handler_name, NULL);
    sgm_shape shape = sgm_shape_of(1, TIME, 3 * FEATURES), whole = sgm_shape_of(1, TIME, FEATURES);
    sgm_tensor *values = sgm_tensor_create(SGM_FLOAT64, &shape),
               *factors = sgm_tensor_create(SGM_FLOAT64, &whole);
    for (int64_t i = 0; i < COUNT; i++)
        ((double *)sgm_tensor_data(values))[i] = 2 * sin(0.7 * (double)i + 0.001 * (double)(i * i));
    for (int64_t i = 0; i < TIME * FEATURES; i++)
        ((double *)sgm_tensor_data(factors))[i] = cos(0.9 * (double)i);
    sgm_value x = sgm_input_value(graph, "x", SGM_FLOAT64, &shape), gradient;
    sgm_value y = blocks ? sgm_self_attention(graph, x, HEADS, causal) : at_once(graph, x, causal);
    sgm_value cost = sgm_sum(graph, sgm_multiply(graph, y, sgm_constant(graph, factors)));
    CHECK_OK(sgm_gradients(graph, cost, &x, 1, &gradient));
    sgm_graph_add_output(graph, "y", y);
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", values));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", factors));
    CHECK_OK(sgm_session_read(session, program, "gradient", values));
    CHECK_OK(sgm_tensor_read(factors, result, TIME * FEATURES));
    CHECK_OK(sgm_tensor_read(values, result_gradient, COUNT));
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    sgm_tensor_free(values);
    sgm_tensor_free(factors);
}

TEST(blocks_of_rows_give_what_all_at_once_give)
{
    static double expected[TIME * FEATURES], expected_gradient[COUNT], result[TIME * FEATURES],
        gradient[COUNT];
    static const char *const handlers[] = {"reference", "cpu"};
    for (int causal = 0; causal < 2; causal++)
        for (int h = 0; h < 2; h++) {
            run(handlers[h], false, causal == 1, expected, expected_gradient);
            run(handlers[h], true, causal == 1, result, gradient);
            for (int i = 0; i < TIME * FEATURES; i++)
                CHECK_NEAR(result[i], expected[i], 1e-13);
            for (int i = 0; i < COUNT; i++)
                CHECK_NEAR(gradient[i], expected_gradient[i], 1e-12);
        }
}

/* Bytes of a step, forward and backward. */
static int64_t arena_of(int64_t time, sgm_dtype dtype)
{
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    sgm_shape shape = sgm_shape_of(1, time, 96);
    sgm_value x = sgm_input_value(graph, "x", dtype, &shape), gradient;
    sgm_value y = sgm_self_attention(graph, x, 4, true);
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, sgm_square(graph, y)), &x, 1, &gradient));
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    int64_t bytes = sgm_program_get_memory(program).arena;
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return bytes;
}

TEST(memory_grows_with_the_length)
{
    CHECK(arena_of(4096, SGM_FLOAT32) < 3 * arena_of(2048, SGM_FLOAT32));
    CHECK(arena_of(4096, SGM_FLOAT32) < 4096 * 4096 * (int64_t)sizeof(float)); /* one head's scores */
    CHECK(arena_of(2048, SGM_FLOAT64) < 2 * 4 * 2048 * 2048 * (int64_t)sizeof(double) / 2);
}

/* --- bfloat16 --- */

#define MAXIMUM_VALUES 60000

typedef struct head_case {
    int64_t batch, time, heads, size;
    bool causal;
} head_case;

/* The result, then the gradient, of operands that bfloat16 has. */
static size_t attend(const char *name, int32_t threads, sgm_dtype dtype, const head_case *c, double *values)
{
    int64_t features = c->heads * c->size;
    sgm_shape shapes[] = {sgm_shape_of(c->batch, c->time, 3 * features),
                          sgm_shape_of(c->batch, c->time, features)};
    sgm_graph *graph = sgm_graph_create();
    sgm_tensor *tensors[2];
    static double numbers[MAXIMUM_VALUES];
    for (int i = 0; i < 2; i++) {
        int64_t count = sgm_shape_elements(&shapes[i]);
        for (int64_t k = 0; k < count; k++)
            numbers[k] = (double)((k * 7919 + i * 31 + 13) % 257) / 64 - 2;
        tensors[i] = sgm_tensor_create(dtype, &shapes[i]);
        CHECK_OK(sgm_tensor_write(tensors[i], numbers, (size_t)count));
    }
    sgm_value x = sgm_input_value(graph, "x", dtype, &shapes[0]), gradient;
    sgm_value y = sgm_self_attention(graph, x, c->heads, c->causal);
    sgm_value cost = sgm_sum(graph, sgm_multiply(graph, y, sgm_constant(graph, tensors[1])));
    CHECK_OK(sgm_gradients(graph, cost, &x, 1, &gradient));
    sgm_graph_add_output(graph, "y", y);
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_handler *handler = sgm_handler_create(name, .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", tensors[0]));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", tensors[1]));
    CHECK_OK(sgm_session_read(session, program, "gradient", tensors[0]));
    size_t first = (size_t)sgm_shape_elements(&shapes[1]), second = (size_t)sgm_shape_elements(&shapes[0]);
    CHECK(first + second <= MAXIMUM_VALUES);
    CHECK_OK(sgm_tensor_read(tensors[1], values, first));
    CHECK_OK(sgm_tensor_read(tensors[0], values + first, second));
    for (int i = 0; i < 2; i++)
        sgm_tensor_free(tensors[i]);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return first;
}

/* What softmax makes is rounded for the products after it: within a unit of bfloat16 of the largest result.
 */
TEST(tiles_and_blocks_of_bfloat16_give_what_double_gives)
{
    static const head_case cases[] = {{2, 7, 3, 5, true},    {1, 43, 1, 2, false},  {3, 42, 2, 32, true},
                                      {1, 85, 2, 33, true},  {2, 64, 4, 16, true},  {1, 1, 1, 1, false},
                                      {1, 129, 1, 64, true}, {1, 100, 2, 17, false}};
    static const char *const names[] = {"cpu(bfloat16=own)", "cpu(bfloat16=own,instructions=portable)",
                                        "cpu(bfloat16=amx)", "cpu(bfloat16=amx,instructions=portable)"};
    static double expected[MAXIMUM_VALUES], values[MAXIMUM_VALUES], again[MAXIMUM_VALUES];
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        const head_case *c = &cases[i / 4];
        size_t count = attend("reference", 1, SGM_FLOAT64, c, expected), at = 0;
        CHECK_INT(attend(names[i % 4], 1, SGM_BFLOAT16, c, values), count);
        for (int part = 0; part < 2; part++, at += count, count *= 3) {
            double error = 0, largest = 0;
            for (size_t k = at; k < at + count; k++) {
                error = fmax(error, fabs(values[k] - expected[k]));
                largest = fmax(largest, fabs(expected[k]));
            }
            if (!(error <= 0x1p-7 * largest))
                TEST_FAIL("case %zu: the error of part %d is %.3g of %.3g", i, part, error, largest);
        }
        for (int32_t threads = 2; threads <= 3; threads++) {
            attend(names[i % 4], threads, SGM_BFLOAT16, c, again);
            CHECK(memcmp(values, again, at * sizeof *values) == 0);
        }
    }
}
