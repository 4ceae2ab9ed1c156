/* packed_attention against its definition in double, loop by loop: result and gradient, of float32 and of
 * bfloat16, by vectors and by portable code, with sequences that begin and end anywhere in blocks of rows,
 * and the same bits from any number of threads. */
#include "test.h"

#include <sigma/graph.h>
#include <sigma/handler.h>

#include <math.h>
#include <string.h>

#define MAXIMUM 60000 /* numbers of a result and its gradient together */
#define MAXIMUM_TIME 400

/* Rows of the batch have sequences of these lengths in turn, each row beginning with another; its end cuts
 * the last one. */
typedef struct packed_case {
    int64_t batch, time, heads, size;
    int64_t lengths[6]; /* until 0 */
} packed_case;

static const packed_case cases[] = {
    {2, 7, 3, 5, {1}},                     /* each sees itself alone */
    {1, 1, 1, 1, {1}},                     /* nothing but one place */
    {1, 150, 2, 33, {1000}},               /* one sequence */
    {2, 70, 2, 16, {1, 31, 1, 33}},        /* ends around those of blocks */
    {1, 128, 1, 64, {32, 64}},             /* ends of blocks */
    {3, 97, 2, 8, {5, 90, 2}},             /* a long one between short ones */
    {1, 300, 2, 17, {100, 63, 1, 1, 129}}, /* blocks that see nothing of those before them */
    {1, 131, 1, 32, {65}},                 /* an odd one, and a rest */
};
#define CASES (sizeof cases / sizeof *cases)

static int64_t features_of(const packed_case *c)
{
    return c->heads * c->size;
}

static int64_t results_of(const packed_case *c)
{
    return c->batch * c->time * features_of(c);
}

/* Where the sequence of each place begins. */
static void place_sequences(const packed_case *c, int64_t *starts)
{
    int64_t count = 0;
    while (count < 6 && c->lengths[count] > 0)
        count++;
    for (int64_t row = 0; row < c->batch; row++) {
        int64_t next = row, first = 0, end = c->lengths[next % count];
        for (int64_t t = 0; t < c->time; t++) {
            if (t == end) {
                first = end;
                end += c->lengths[++next % count];
            }
            starts[row * c->time + t] = first;
        }
    }
}

/* Numbers that bfloat16 has, so that operands are the same in each type. */
static double number_at(int64_t index, int64_t which)
{
    return (double)((index * 7919 + which * 31 + 13) % 257) / 64 - 2;
}

/* --- the definition --- */

/* What one query of one head sees: offsets in x of its own numbers and of those of the first key. */
typedef struct query {
    int64_t at, first_key, wide, features, size, seen;
    const double *x;
} query;

static double key(const query *q, int64_t j, int64_t i)
{
    return q->x[q->first_key + j * q->wide + q->features + i];
}

static double value(const query *q, int64_t j, int64_t i)
{
    return q->x[q->first_key + j * q->wide + 2 * q->features + i];
}

static void weights_of(const query *q, double *weights)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < q->seen; j++) {
        weights[j] = 0;
        for (int64_t i = 0; i < q->size; i++)
            weights[j] += q->x[q->at + i] * key(q, j, i) / sqrt((double)q->size);
        largest = fmax(largest, weights[j]);
    }
    for (int64_t j = 0; j < q->seen; j++)
        sum += weights[j] = exp(weights[j] - largest);
    for (int64_t j = 0; j < q->seen; j++)
        weights[j] /= sum;
}

/* One query's result, and what it adds to the gradient of x, with `by` the gradient of the result. */
static void define_query(const query *q, const double *by, double *result, double *gradient)
{
    double weights[MAXIMUM_TIME], by_weights[MAXIMUM_TIME], mean = 0;
    weights_of(q, weights);
    for (int64_t i = 0; i < q->size; i++) {
        result[i] = 0;
        for (int64_t j = 0; j < q->seen; j++)
            result[i] += weights[j] * value(q, j, i);
    }
    for (int64_t j = 0; j < q->seen; j++) {
        by_weights[j] = 0;
        for (int64_t i = 0; i < q->size; i++)
            by_weights[j] += by[i] * value(q, j, i);
        mean += weights[j] * by_weights[j];
    }
    for (int64_t j = 0; j < q->seen; j++) {
        const double by_score = weights[j] * (by_weights[j] - mean) / sqrt((double)q->size);
        double *by_key = gradient + q->first_key + j * q->wide + q->features;
        for (int64_t i = 0; i < q->size; i++) {
            gradient[q->at + i] += by_score * key(q, j, i);
            by_key[i] += by_score * q->x[q->at + i];
            by_key[q->features + i] += weights[j] * by[i];
        }
    }
}

/* The result, then the gradient of x, where the gradient of the result is number_at(..., 1). */
static void define(const packed_case *c, const int64_t *starts, double *values)
{
    static double x[MAXIMUM], by[MAXIMUM];
    const int64_t features = features_of(c), count = results_of(c);
    for (int64_t i = 0; i < 3 * count; i++)
        x[i] = number_at(i, 0);
    for (int64_t i = 0; i < count; i++)
        by[i] = number_at(i, 1);
    memset(values + count, 0, (size_t)(3 * count) * sizeof *values);
    for (int64_t t = 0; t < c->batch * c->time; t++)
        for (int64_t head = 0; head < c->heads; head++) {
            const int64_t row = t / c->time * c->time, shift = head * c->size;
            const query q = {.at = t * 3 * features + shift,
                             .first_key = (row + starts[t]) * 3 * features + shift,
                             .wide = 3 * features,
                             .features = features,
                             .size = c->size,
                             .seen = t - row - starts[t] + 1,
                             .x = x};
            const int64_t at = t * features + shift;
            define_query(&q, by + at, values + at, values + count);
        }
}

/* --- what a handler computes --- */

static sgm_tensor *numbers_of(sgm_dtype dtype, const sgm_shape *shape, int64_t which)
{
    static double numbers[MAXIMUM];
    const int64_t count = sgm_shape_elements(shape);
    CHECK(count <= MAXIMUM);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = number_at(i, which);
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    CHECK_OK(sgm_tensor_write(tensor, numbers, (size_t)count));
    return tensor;
}

static sgm_tensor *integers_of(sgm_dtype dtype, const sgm_shape *shape, const int64_t *integers)
{
    sgm_tensor *tensor = sgm_tensor_create(dtype, shape);
    sgm_array array = {.dtype = dtype, .data = sgm_tensor_data(tensor)};
    for (int64_t i = 0; i < sgm_shape_elements(shape); i++)
        sgm_array_store(&array, i, (double)integers[i]);
    return tensor;
}

static void attend(const char *name, int32_t threads, sgm_dtype dtype, sgm_dtype index, const packed_case *c,
                   const int64_t *starts, double *values)
{
    const sgm_shape shape = sgm_shape_of(c->batch, c->time, 3 * features_of(c)),
                    small = sgm_shape_of(c->batch, c->time, features_of(c)),
                    line = sgm_shape_of(c->batch, c->time);
    sgm_tensor *x_tensor = numbers_of(dtype, &shape, 0), *factors = numbers_of(dtype, &small, 1),
               *places = integers_of(index, &line, starts);
    sgm_graph *graph = sgm_graph_create();
    sgm_value x = sgm_input_value(graph, "x", dtype, &shape), gradient;
    sgm_value y = sgm_packed_attention(graph, x, c->heads, sgm_input_value(graph, "starts", index, &line));
    sgm_value cost = sgm_sum(graph, sgm_multiply(graph, y, sgm_constant(graph, factors)));
    CHECK_OK(sgm_gradients(graph, cost, &x, 1, &gradient));
    sgm_graph_add_output(graph, "y", y);
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_handler *handler = sgm_handler_create(name, .threads = threads);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    CHECK_OK(sgm_session_feed(session, program, "x", x_tensor));
    CHECK_OK(sgm_session_feed(session, program, "starts", places));
    CHECK_OK(sgm_session_run(session, program));
    CHECK_OK(sgm_session_read(session, program, "y", factors));
    CHECK_OK(sgm_session_read(session, program, "gradient", x_tensor));
    const size_t count = (size_t)results_of(c);
    CHECK_OK(sgm_tensor_read(factors, values, count));
    CHECK_OK(sgm_tensor_read(x_tensor, values + count, 3 * count));
    sgm_tensor_free(x_tensor);
    sgm_tensor_free(factors);
    sgm_tensor_free(places);
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
}

/* The largest difference may be `tolerance` of the largest number, of the
 * result and of the gradient alike. */
static void check_near(const char *name, size_t which, const packed_case *c, const double *values,
                       const double *expected, double tolerance)
{
    const int64_t count = results_of(c);
    for (int part = 0; part < 2; part++) {
        double error = 0, largest = 0;
        for (int64_t i = part * count; i < (part == 0 ? count : 4 * count); i++) {
            error = fmax(error, isnan(values[i]) ? INFINITY : fabs(values[i] - expected[i]));
            largest = fmax(largest, fabs(expected[i]));
        }
        if (!(error <= tolerance * largest))
            TEST_FAIL("%s, case %zu: the error of part %d is %.3g of %.3g", name, which, part, error,
                      largest);
    }
}

static double expected[MAXIMUM], values[MAXIMUM], again[MAXIMUM];

static void check_handler(const char *name, sgm_dtype dtype, double tolerance)
{
    static int64_t starts[MAXIMUM_TIME * 3];
    for (size_t i = 0; i < CASES; i++) {
        const packed_case *c = &cases[i];
        place_sequences(c, starts);
        define(c, starts, expected);
        attend(name, 1, dtype, SGM_INT32, c, starts, values);
        check_near(name, i, c, values, expected, tolerance);
        for (int32_t threads = 2; threads <= 3; threads++) {
            attend(name, threads, dtype, SGM_INT64, c, starts, again);
            CHECK(memcmp(values, again, 4 * (size_t)results_of(c) * sizeof *values) == 0);
        }
    }
}

TEST(blocks_of_instructions_are_the_definition)
{
    check_handler("reference", SGM_FLOAT64, 1e-13);
    check_handler("cpu", SGM_FLOAT64, 1e-13);
}

TEST(float32_is_the_definition)
{
    check_handler("cpu", SGM_FLOAT32, 4e-6);
    check_handler("cpu(instructions=portable)", SGM_FLOAT32, 4e-6);
}

/* Weights are rounded for the products after softmax: within a unit of bfloat16 of the largest result. */
TEST(bfloat16_is_the_definition)
{
    static const char *const names[] = {"cpu(bfloat16=own)", "cpu(bfloat16=own,instructions=portable)",
                                        "cpu(bfloat16=amx)", "cpu(bfloat16=amx,instructions=portable)"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_handler(names[i], SGM_BFLOAT16, 0x1p-7);
}

/* Any starts are allowed: places of one row may see back unequally far, what is before the row is its
 * beginning, and what is behind a place is the place itself. */
TEST(starts_need_not_be_those_of_sequences)
{
    static const packed_case c = {2, 90, 2, 16, {1}};
    static const char *const names[] = {"cpu", "cpu(bfloat16=own)", "cpu(bfloat16=amx)"};
    int64_t starts[180], clamped[180];
    for (int64_t i = 0; i < 180; i++) {
        const int64_t t = i % 90;
        starts[i] = i % 7 == 0 ? -5 : i % 5 == 0 ? t + 3 : i % 3 == 0 ? t / 2 : t - t % 11;
        clamped[i] = starts[i] < 0 ? 0 : starts[i] > t ? t : starts[i];
    }
    define(&c, clamped, expected);
    for (size_t i = 0; i < 3; i++) {
        attend(names[i], 2, i == 0 ? SGM_FLOAT32 : SGM_BFLOAT16, SGM_INT64, &c, starts, values);
        check_near(names[i], 0, &c, values, expected, i == 0 ? 4e-6 : 0x1p-7);
    }
}

/* Bytes of a step, forward and backward. */
static int64_t arena_of(bool packed, sgm_dtype dtype, const char *name)
{
    const sgm_shape shape = sgm_shape_of(1, 2048, 96), line = sgm_shape_of(1, 2048);
    sgm_graph *graph = sgm_graph_create();
    sgm_handler *handler = sgm_handler_create(name, .threads = 1);
    sgm_value x = sgm_input_value(graph, "x", dtype, &shape), gradient;
    sgm_value starts = sgm_input_value(graph, "starts", SGM_INT32, &line);
    sgm_value y = packed ? sgm_packed_attention(graph, x, 4, starts) : sgm_self_attention(graph, x, 4, true);
    CHECK_OK(sgm_gradients(graph, sgm_sum(graph, sgm_square(graph, y)), &x, 1, &gradient));
    sgm_graph_add_output(graph, "gradient", gradient);
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    const int64_t bytes = sgm_program_get_memory(program).arena;
    sgm_session_free(session);
    sgm_handler_free(handler);
    sgm_graph_free(graph);
    return bytes;
}

/* So it is a kernel as self_attention's, and no scores are kept. */
TEST(memory_is_that_of_self_attention)
{
    const int64_t starts = 2048 * (int64_t)sizeof(int32_t);
    CHECK(arena_of(true, SGM_FLOAT32, "cpu") <= arena_of(false, SGM_FLOAT32, "cpu") + starts);
    CHECK(arena_of(true, SGM_BFLOAT16, "cpu(bfloat16=own)") <=
          arena_of(false, SGM_BFLOAT16, "cpu(bfloat16=own)") + starts);
}
