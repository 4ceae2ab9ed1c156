/* Matrix products against double loops: shapes, strides, threads, libraries, instruction sets. */
#include "handlers/cpu/product/dense.h"
#include "test.h"

#define MAXIMUM (64 * 1024)

static double left[MAXIMUM], right[MAXIMUM];
static unsigned char a[MAXIMUM * 8], b[MAXIMUM * 8], c[MAXIMUM * 8], again[MAXIMUM * 8],
    scratch[MAXIMUM * 64];

static double get(const void *array, sgm_dtype dtype, int64_t i)
{
    return dtype == SGM_FLOAT32 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static void put(void *array, sgm_dtype dtype, int64_t i, double value)
{
    if (dtype == SGM_FLOAT32)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static void fill(void *array, sgm_dtype dtype, double *values, sgm__random *random)
{
    for (int64_t i = 0; i < MAXIMUM; i++) {
        values[i] = (double)(float)(sgm__random_uniform(random) - 0.5);
        put(array, dtype, i, values[i]);
    }
}

static void check_product(const sgm__product *p)
{
    double tolerance = p->dtype == SGM_FLOAT32 ? 2e-7 : 1e-15;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->c_row; j++) {
            double sum = j < p->n ? 0 : 77; /* beyond a row nothing is written */
            for (int64_t k = 0; j < p->n && k < p->k; k++)
                sum += left[i * p->a_row + k * p->a_column] * right[k * p->b_row + j * p->b_column];
            CHECK_NEAR(get(p->c, p->dtype, i * p->c_row + j), sum,
                       tolerance * (double)(p->k + 4) * fmax(1, fabs(sum) / 8));
        }
}

/* One of: rows together, columns together, neither, one number for all. */
static void strides(int kind, int64_t rows, int64_t columns, int64_t *row, int64_t *column)
{
    *row = kind == 0 ? columns + 3 : kind == 1 ? 1 : kind == 2 ? 2 * columns : 0;
    *column = kind == 0 ? 1 : kind == 1 ? rows + 1 : kind == 2 ? 2 : 0;
}

static void clear_result(sgm_dtype dtype)
{
    for (int64_t i = 0; i < MAXIMUM; i++)
        put(c, dtype, i, 77);
}

typedef struct setting {
    const sgm__vector *vector;
    sgm__dense *dense;
    sgm__pool *pools[3];
} setting;

static void try_product(const setting *s, sgm__product p)
{
    for (int threads = 0; threads < 3; threads++) {
        clear_result(p.dtype);
        sgm__pool *pool = s->pools[threads];
        size_t bytes = sgm__dense_scratch(s->dense, s->vector, &p, sgm__pool_threads(pool));
        CHECK(bytes <= sizeof scratch - 64);
        unsigned char *aligned = scratch + (64 - (uintptr_t)scratch % 64) % 64;
        sgm__dense_run(s->dense, s->vector, pool, &p, aligned);
        check_product(&p);
        if (threads == 0)
            memcpy(again, c, sizeof c);
        else if (strncmp(sgm__dense_text(s->dense), "own", 3) == 0)
            CHECK(memcmp(again, c, sizeof c) == 0); /* the same bits */
    }
}

static void try_shapes(const setting *s, sgm_dtype dtype, sgm__random *random)
{
    /* The last: a is packed, rows of a lie pages apart, many rows with a in place and packed. */
    static const int64_t shapes[][3] = {
        {1, 1, 1},     {0, 3, 4},     {3, 0, 4},     {3, 4, 0},     {10, 12, 4},   {14, 32, 20},
        {15, 33, 7},   {1, 100, 50},  {100, 1, 50},  {100, 10, 64}, {29, 31, 300}, {64, 96, 40},
        {43, 16, 600}, {13, 530, 30}, {9, 20, 1021}, {271, 40, 19}, {267, 241, 11}};
    fill(a, dtype, left, random);
    fill(b, dtype, right, random);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kinds = 0; kinds < 16; kinds++) {
            sgm__product p = {.dtype = dtype, .m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2]};
            p.a = a;
            p.b = b;
            p.c = c;
            p.c_row = p.n + (kinds == 5 ? 2 : 0);
            strides(kinds % 4, p.m, p.k, &p.a_row, &p.a_column);
            strides(kinds / 4, p.k, p.n, &p.b_row, &p.b_column);
            try_product(s, p);
        }
}

static void try_all(const char *name, const sgm__vector *vector)
{
    setting s = {.vector = vector, .dense = sgm__dense_create(name)};
    if (s.dense == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND)
        SKIP("this library is not installed");
    CHECK(s.dense != NULL);
    for (int i = 0; i < 3; i++)
        s.pools[i] = sgm__pool_create(i + 1, false);
    sgm__random random = sgm__random_make(3, 0);
    try_shapes(&s, SGM_FLOAT32, &random);
    try_shapes(&s, SGM_FLOAT64, &random);
    for (int i = 0; i < 3; i++)
        sgm__pool_free(s.pools[i]);
    sgm__dense_free(s.dense);
}

/* A b that no second cache holds, whose panels are copied while the ones before are used: two depth blocks,
 * and a last panel that is not full. Its rows begin `gap` numbers after the end of the one before, and those
 * numbers are NaN. */
enum { TALL = 131, WIDE = 450, DEEP = 300 };

static void try_large(const sgm__vector *vector, sgm_dtype dtype, int64_t gap)
{
    size_t size = sgm_dtype_size(dtype);
    int64_t row = WIDE + gap;
    sgm__product p = {
        .dtype = dtype, .m = TALL, .n = WIDE, .k = DEEP, .a_row = DEEP, .a_column = 1, .b_row = row};
    p.b_column = 1;
    p.c_row = WIDE;
    sgm__random random = sgm__random_make(5, 0);
    double *x = calloc(TALL * DEEP, sizeof *x), *y = calloc((size_t)(DEEP * row), sizeof *y);
    unsigned char *first = calloc(TALL * DEEP, size), *second = calloc((size_t)(DEEP * row), size);
    unsigned char *results[2] = {calloc(TALL * WIDE, size), calloc(TALL * WIDE, size)};
    for (int64_t i = 0; i < TALL * DEEP; i++)
        put(first, dtype, i, x[i] = (double)(float)(sgm__random_uniform(&random) - 0.5));
    for (int64_t i = 0; i < DEEP * row; i++)
        put(second, dtype, i, y[i] = i % row < WIDE ? (double)(float)sgm__random_uniform(&random) : NAN);
    p.a = first;
    p.b = second;
    for (int threads = 1; threads <= 2; threads++) {
        sgm__pool *pool = sgm__pool_create(threads, false);
        unsigned char *memory = sgm__alloc_aligned(sgm__product_scratch(vector, &p, threads));
        p.c = results[threads - 1];
        sgm__product_post(vector, pool, &p, memory);
        sgm__pool_finish(pool);
        sgm__free_aligned(memory);
        sgm__pool_free(pool);
    }
    CHECK(memcmp(results[0], results[1], TALL * WIDE * size) == 0); /* the same bits */
    for (int64_t i = 0; i < TALL; i++)
        for (int64_t j = 0; j < WIDE; j++) {
            double sum = 0;
            for (int64_t k = 0; k < DEEP; k++)
                sum += x[i * DEEP + k] * y[k * row + j];
            CHECK_NEAR(get(results[0], dtype, i * WIDE + j), sum, dtype == SGM_FLOAT32 ? 1e-5 : 1e-13);
        }
    free(x);
    free(y);
    free(first);
    free(second);
    free(results[0]);
    free(results[1]);
}

static void try_instructions(int32_t index)
{
    bool runs_here;
    const sgm__vector *vector = sgm__vector_at(index, &runs_here);
    if (vector == NULL || !runs_here)
        SKIP("this processor has not these instructions");
    try_all("own", vector);
    try_large(vector, SGM_FLOAT32, 0);
    try_large(vector, SGM_FLOAT32, 574); /* rows a page apart */
    try_large(vector, SGM_FLOAT64, 3);
}

TEST(portable_loops)
{
    try_instructions(0);
}

TEST(loops_of_32_bytes_or_neon)
{
    try_instructions(1);
}

TEST(loops_of_64_bytes)
{
    try_instructions(2);
}

TEST(openblas)
{
    try_all("openblas", sgm__vector_best());
}

TEST(onednn)
{
    try_all("onednn", sgm__vector_best());
}

TEST(unknown_library)
{
    CHECK(sgm__dense_create("mkl") == NULL);
    CHECK_INT(sgm_last_status(), SGM_ERROR_ARGUMENT);
    CHECK(strstr(sgm_last_error(), "\"openblas\", \"onednn\" or \"own\"") != NULL);
}
