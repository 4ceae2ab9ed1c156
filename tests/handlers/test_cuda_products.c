/* Matrix products by cuBLASLt, through the CUDA plug-in: rows, columns, batches and types, on the stand-in.
 */
#include "cuda_driver_test.h"

enum { MOST = 4096 }; /* elements of a matrix with its batch */

typedef struct bench {
    const sgm_device_driver *driver;
    void *self;
    void *buffers[3];
} bench;

static bench open_bench(void)
{
    bench b;
    b.driver = open_cuda(0, &b.self);
    for (int i = 0; i < 3; i++)
        DONE(b.driver->allocate(b.self, MOST * sizeof(double), &b.buffers[i], message));
    return b;
}

static void close_bench(const bench *b)
{
    for (int i = 0; i < 3; i++)
        b->driver->release(b->self, b->buffers[i]);
    b->driver->close(b->self);
}

/* Small whole numbers, which all types hold, and whose sums they hold. */
static double number(int which, int64_t batch, int64_t row, int64_t column)
{
    return (double)((which * 5 + batch * 3 + row * 2 + column * 7) % 5 - 2);
}

static size_t size_of(sgm_device_type type)
{
    return type == SGM_DEVICE_FLOAT64 ? 8 : type == SGM_DEVICE_FLOAT32 ? 4 : 2;
}

static void put(unsigned char *memory, sgm_device_type type, int64_t at, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    uint16_t half;
    memcpy(&bits, &narrow, sizeof bits);
    half = (uint16_t)(bits >> 16);
    memcpy(memory + (size_t)at * size_of(type),
           type == SGM_DEVICE_FLOAT64   ? (const void *)&value
           : type == SGM_DEVICE_FLOAT32 ? (const void *)&narrow
                                        : (const void *)&half,
           size_of(type));
}

static double get(const unsigned char *memory, sgm_device_type type, int64_t at)
{
    double value;
    float narrow;
    uint16_t half;
    uint32_t bits;
    if (type == SGM_DEVICE_FLOAT64) {
        memcpy(&value, memory + at * 8, sizeof value);
        return value;
    }
    if (type == SGM_DEVICE_FLOAT32) {
        memcpy(&narrow, memory + at * 4, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&half, memory + at * 2, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&narrow, &bits, sizeof narrow);
    return (double)narrow;
}

static int64_t element(const sgm_device_matrix *m, int64_t batch, int64_t row, int64_t column)
{
    return batch * m->batch + row * m->row + column * m->column;
}

static void fill(const bench *b, int which, const sgm_device_matrix *m, int64_t batches, int64_t rows,
                 int64_t columns)
{
    static unsigned char host[MOST * sizeof(double)];
    memset(host, 0xFF, sizeof host);
    for (int64_t batch = 0; batch < batches && which < 2; batch++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++)
                put(host, m->type, element(m, batch, row, column),
                    number(which, m->batch > 0 ? batch : 0, row, column));
    DONE(b->driver->write(b->self, (sgm_device_place){b->buffers[which], 0}, host, sizeof host, message));
}

static void check_product(const bench *b, const sgm_device_product *p)
{
    static unsigned char host[MOST * sizeof(double)];
    fill(b, 0, &p->left, p->batch, p->rows, p->depth);
    fill(b, 1, &p->right, p->batch, p->depth, p->columns);
    fill(b, 2, &p->result, p->batch, p->rows, p->columns);
    if (!b->driver->takes(b->self, p))
        TEST_FAIL("%lld x %lld x %lld is not taken", (long long)p->rows, (long long)p->columns,
                  (long long)p->depth);
    DONE(b->driver->multiply(b->self, p, message));
    DONE(b->driver->read(b->self, (sgm_device_place){b->buffers[2], 0}, host, sizeof host, message));
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++) {
                double sum = 0;
                for (int64_t k = 0; k < p->depth; k++)
                    sum += number(0, p->left.batch > 0 ? batch : 0, row, k) *
                           number(1, p->right.batch > 0 ? batch : 0, k, column);
                CHECK_NEAR(get(host, p->result.type, element(&p->result, batch, row, column)), sum, 0);
            }
}

/* A matrix in rows or columns, with some elements between them if there is a gap. */
static sgm_device_matrix matrix(const bench *b, int which, sgm_device_type type, bool in_columns,
                                int64_t rows, int64_t columns, int64_t gap)
{
    int64_t leading = (in_columns ? rows : columns) + gap;
    return (sgm_device_matrix){.place = {b->buffers[which], 0},
                               .type = type,
                               .row = in_columns ? 1 : leading,
                               .column = in_columns ? leading : 1,
                               .batch = leading * (in_columns ? columns : rows) + gap};
}

static void check_ways(const bench *b, sgm_device_type type, sgm_device_type result, const int64_t *sizes)
{
    for (int way = 0; way < 8; way++)
        for (int64_t gap = 0; gap <= 4; gap += 4) {
            sgm_device_product p = {
                .rows = sizes[0], .columns = sizes[1], .depth = sizes[2], .batch = sizes[3]};
            p.left = matrix(b, 0, type, way & 1, p.rows, p.depth, gap);
            p.right = matrix(b, 1, type, way >> 1 & 1, p.depth, p.columns, gap);
            p.result = matrix(b, 2, result, way >> 2 & 1, p.rows, p.columns, gap);
            check_product(b, &p);
        }
}

TEST(rows_and_columns_of_all_types)
{
    static const int64_t sizes[][4] = {{8, 16, 24, 1}, {5, 3, 7, 1}, {1, 9, 4, 1},  {6, 1, 5, 1},
                                       {4, 3, 1, 1},   {1, 1, 1, 1}, {4, 8, 16, 3}, {1, 2, 3, 4}};
    bench b = open_bench();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_ways(&b, SGM_DEVICE_FLOAT32, SGM_DEVICE_FLOAT32, sizes[i]);
        check_ways(&b, SGM_DEVICE_FLOAT64, SGM_DEVICE_FLOAT64, sizes[i]);
        if (!cuda_is_real() || sizes[i][0] % 8 == 0) { /* cuBLASLt wants aligned rows of bfloat16 */
            check_ways(&b, SGM_DEVICE_BFLOAT16, SGM_DEVICE_BFLOAT16, sizes[i]);
            check_ways(&b, SGM_DEVICE_BFLOAT16, SGM_DEVICE_FLOAT32, sizes[i]);
        }
    }
    close_bench(&b);
}

TEST(one_matrix_for_the_whole_batch)
{
    bench b = open_bench();
    sgm_device_product p = {.rows = 4, .columns = 6, .depth = 5, .batch = 3, .narrow = true};
    p.left = matrix(&b, 0, SGM_DEVICE_FLOAT32, false, 4, 5, 0);
    p.right = matrix(&b, 1, SGM_DEVICE_FLOAT32, true, 5, 6, 0);
    p.result = matrix(&b, 2, SGM_DEVICE_FLOAT32, false, 4, 6, 0);
    p.right.batch = 0;
    check_product(&b, &p);
    p.right.batch = 30;
    p.left.batch = 0;
    check_product(&b, &p);
    close_bench(&b);
}

TEST(a_product_can_be_recorded)
{
    bench b = open_bench();
    void *recording = NULL;
    float host[4] = {1, 2, 3, 4}, unit[4] = {0, 1, 1, 0};
    sgm_device_product p = {.rows = 2, .columns = 2, .depth = 2, .batch = 1};
    p.left = matrix(&b, 0, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.right = matrix(&b, 1, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.result = matrix(&b, 2, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    CHECK(b.driver->takes(b.self, &p));
    DONE(b.driver->write(b.self, p.left.place, host, sizeof host, message));
    DONE(b.driver->write(b.self, p.right.place, unit, sizeof unit, message));
    DONE(b.driver->record(b.self, message));
    DONE(b.driver->multiply(b.self, &p, message));
    DONE(b.driver->keep(b.self, &recording, message));
    DONE(b.driver->replay(b.self, recording, message));
    DONE(b.driver->read(b.self, p.result.place, host, sizeof host, message));
    CHECK_NEAR(host[0], 2, 0);
    CHECK_NEAR(host[1], 1, 0);
    CHECK_NEAR(host[2], 4, 0);
    b.driver->forget(b.self, recording);
    close_bench(&b);
}

TEST(what_it_cannot_see_is_not_taken)
{
    bench b = open_bench();
    sgm_device_product p = {.rows = 4, .columns = 6, .depth = 5, .batch = 1};
    p.left = matrix(&b, 0, SGM_DEVICE_FLOAT32, false, 4, 5, 0);
    p.right = matrix(&b, 1, SGM_DEVICE_FLOAT32, false, 5, 6, 0);
    p.result = matrix(&b, 2, SGM_DEVICE_FLOAT32, false, 4, 6, 0);
    CHECK(b.driver->takes(b.self, &p));
    p.left.type = SGM_DEVICE_FLOAT64;
    CHECK(!b.driver->takes(b.self, &p));
    p.left.type = SGM_DEVICE_FLOAT32;
    p.left.row = 0; /* one row for all */
    CHECK(!b.driver->takes(b.self, &p));
    p.left.row = 10;
    p.left.column = 2; /* every other element */
    CHECK(!b.driver->takes(b.self, &p));
    p.left.column = 1;
    p.depth = 0;
    CHECK(!b.driver->takes(b.self, &p));
    CHECK_INT(b.driver->multiply(b.self, &p, message), SGM_DEVICE_DECLINED);
    CHECK(strstr(message, "does not take") != NULL);
    close_bench(&b);
}
