/* The cpu handler's attention_at against its definition in double: float32 and bfloat16, by each instruction
 * set, with the same bits from any number of threads, and nothing read behind the place. */
#include "base/base.h"
#include "graphs.h"

#include <math.h>
#include <stdlib.h>

typedef struct sizes {
    int64_t heads, rows, places, size, wide;
} sizes;

static const sizes cases[] = {
    {1, 1, 1, 1, 1},     {2, 1, 5, 3, 2},     {6, 1, 300, 64, 64},
    {3, 4, 131, 83, 35}, {2, 2, 66, 16, 130}, {2, 70, 90, 8, 9},
};

#define THREADS 3

/* Random numbers up to the place, NaN behind it. */
static sgm_tensor *rows_of(sgm_dtype dtype, const sizes *s, int64_t rows, int64_t size, int64_t seen,
                           uint64_t seed)
{
    sgm_shape shape = sgm_shape_of(s->heads, rows, size);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(tensor);
    sgm_array array = {.dtype = dtype, .data = sgm_tensor_data(tensor)};
    sgm__random random = sgm__random_make(seed, 0);
    for (int64_t i = 0; i < s->heads * rows * size; i++)
        sgm_array_store(&array, i, i / size % rows < seen ? sgm__random_normal(&random) : NAN);
    return tensor;
}

static double at(const sgm_tensor *tensor, int64_t index)
{
    sgm_array array = {.dtype = sgm_tensor_dtype(tensor),
                       .data = (void *)(uintptr_t)sgm_tensor_const_data(tensor)};
    return sgm_array_load(&array, index);
}

/* One row of the result by its definition, and the sum of magnitudes that it is made of. */
static void define(const sizes *s, sgm_tensor *const x[3], int64_t head, int64_t row, int64_t seen,
                   double *result, double *magnitude)
{
    double weights[512], sum = 0, largest = -INFINITY;
    CHECK(seen <= 512);
    for (int64_t j = 0; j < seen; j++) {
        weights[j] = 0;
        for (int64_t i = 0; i < s->size; i++)
            weights[j] += at(x[0], (head * s->rows + row) * s->size + i) *
                          at(x[1], (head * s->places + j) * s->size + i) / sqrt((double)s->size);
        largest = fmax(largest, weights[j]);
    }
    for (int64_t j = 0; j < seen; j++)
        sum += weights[j] = exp(weights[j] - largest);
    for (int64_t i = 0; i < s->wide; i++) {
        result[i] = magnitude[i] = 0;
        for (int64_t j = 0; j < seen; j++) {
            double value = weights[j] / sum * at(x[2], (head * s->places + j) * s->wide + i);
            result[i] += value;
            magnitude[i] += fabs(value);
        }
    }
}

/* How many places the test lets a row see: all the same, or, with `each`, fewer from row to row. */
static int64_t seen_by(bool each, int64_t row, int64_t place)
{
    return each ? place - row % (place + 1) + 1 : place + 1;
}

static void check_values(const sizes *s, sgm_tensor *const x[3], bool each, int64_t place,
                         const sgm_tensor *got)
{
    double result[256], magnitude[256], half = sgm_tensor_dtype(got) == SGM_BFLOAT16 ? 0x1p-8 * 1.001 : 0;
    for (int64_t line = 0; line < s->heads * s->rows; line++) {
        int64_t seen = seen_by(each, line % s->rows, place);
        define(s, x, line / s->rows, line % s->rows, seen, result, magnitude);
        for (int64_t i = 0; i < s->wide; i++)
            if (!(fabs(at(got, line * s->wide + i) - result[i]) <=
                  fabs(result[i]) * half + magnitude[i] * 3e-6))
                TEST_FAIL("head and row %lld, number %lld of %lld places: %.9g, not %.9g", (long long)line,
                          (long long)i, (long long)seen, at(got, line * s->wide + i), result[i]);
    }
}

static sgm_tensor *compute(sgm_handler *handler, const sizes *s, sgm_tensor *const x[3], bool each,
                           int64_t place)
{
    static const char *const names[] = {"q", "k", "v"};
    sgm_shape shape = each ? sgm_shape_of(s->rows) : sgm_scalar_shape();
    sgm_tensor *places = sgm_tensor_create(SGM_INT64, &shape);
    for (int64_t row = 0; row < sgm_shape_elements(&shape); row++)
        ((int64_t *)sgm_tensor_data(places))[row] = seen_by(each, row, place) - 1;
    sgm_graph *graph = sgm_graph_create();
    sgm_value values[3], at_place = sgm_input_value(graph, "place", SGM_INT64, &shape);
    for (int i = 0; i < 3; i++)
        values[i] = sgm_input_value(graph, names[i], sgm_tensor_dtype(x[i]), sgm_tensor_shape(x[i]));
    sgm_graph_add_output(graph, "y", sgm_attention_at(graph, values[0], values[1], values[2], at_place));
    CHECK_OK(sgm_graph_status(graph));
    sgm_session *session = sgm_session_create(handler);
    sgm_program *program = sgm_session_prepare(session, graph);
    CHECK_OK(program);
    for (int i = 0; i < 3; i++)
        CHECK_OK(sgm_session_feed(session, program, names[i], x[i]));
    CHECK_OK(sgm_session_feed(session, program, "place", places));
    sgm_tensor_free(places);
    CHECK_OK(sgm_session_run(session, program));
    sgm_type type = sgm_program_output_type(program, "y");
    sgm_tensor *result = sgm_tensor_create(type.dtype, &type.shape);
    CHECK_OK(sgm_session_read(session, program, "y", result));
    sgm_session_free(session);
    sgm_graph_free(graph);
    return result;
}

static void check_case(sgm_handler *const handlers[THREADS], const sizes *s, sgm_dtype dtype, bool each,
                       int64_t place)
{
    sgm_tensor *x[] = {rows_of(dtype, s, s->rows, s->size, s->rows, 1),
                       rows_of(dtype, s, s->places, s->size, place + 1, 2),
                       rows_of(dtype, s, s->places, s->wide, place + 1, 3)};
    sgm_tensor *results[THREADS];
    for (int t = 0; t < THREADS; t++)
        results[t] = compute(handlers[t], s, x, each, place);
    check_values(s, x, each, place, results[0]);
    size_t bytes = (size_t)(s->heads * s->rows * s->wide) * sgm_dtype_size(dtype);
    for (int t = 1; t < THREADS; t++)
        CHECK(memcmp(sgm_tensor_const_data(results[t]), sgm_tensor_const_data(results[0]), bytes) == 0);
    for (int t = 0; t < THREADS; t++)
        sgm_tensor_free(results[t]);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(x[i]);
}

static void check_instructions(const char *instructions)
{
    sgm_handler *handlers[THREADS];
    for (int t = 0; t < THREADS; t++) {
        handlers[t] = sgm_handler_create("cpu", .threads = t + 1, .instructions = instructions);
        if (handlers[t] == NULL)
            SKIP("this processor has no such instructions");
        CHECK_STR(sgm_handler_support(handlers[t], "attention_at", SGM_BFLOAT16), "kernel");
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t last = cases[i].places - 1;
        for (int64_t place = 0; place <= last;
             place = place * 2 + 1 < last || place == last ? place * 2 + 1 : last) {
            check_case(handlers, &cases[i], SGM_FLOAT32, false, place);
            check_case(handlers, &cases[i], SGM_BFLOAT16, false, place);
            check_case(handlers, &cases[i], SGM_FLOAT32, true, place);
            check_case(handlers, &cases[i], SGM_BFLOAT16, true, place);
        }
    }
    for (int t = 0; t < THREADS; t++)
        sgm_handler_free(handlers[t]);
}

TEST(by_the_best_instructions)
{
    check_instructions(NULL);
}

TEST(by_avx2)
{
    check_instructions("avx2");
}

TEST(by_plain_c)
{
    check_instructions("portable");
}
