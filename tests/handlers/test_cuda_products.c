/* Matrix products by cuBLASLt, through the CUDA plug-in: rows, columns, batches and types, on the stand-in.
 */
#include "cuda_driver_test.h"

enum { MAXIMUM = 4096 }; /* elements of a matrix with its batch */
enum { LEFT, RIGHT, RESULT, ADDEND, BIAS, OPERANDS };

typedef struct bench {
    const sgm_device_driver *driver;
    void *self;
    void *buffers[OPERANDS];
} bench;

static bench open_bench(void)
{
    bench b;
    b.driver = open_cuda(0, &b.self);
    for (int i = 0; i < OPERANDS; i++)
        DONE(b.driver->allocate(b.self, MAXIMUM * sizeof(double), &b.buffers[i], message));
    return b;
}

static void close_bench(const bench *b)
{
    for (int i = 0; i < OPERANDS; i++)
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
    static unsigned char host[MAXIMUM * sizeof(double)];
    memset(host, 0xFF, sizeof host);
    for (int64_t batch = 0; batch < batches && which != RESULT; batch++)
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++)
                put(host, m->type, element(m, batch, row, column),
                    number(which, m->batch > 0 ? batch : 0, row, column));
    DONE(b->driver->write(b->self, (sgm_device_place){b->buffers[which], 0}, host, sizeof host, message));
}

/* As the driver should see it: in double. */
static double expected(const sgm_device_product *p, int64_t batch, int64_t row, int64_t column)
{
    double sum = 0;
    for (int64_t k = 0; k < p->depth; k++)
        sum += number(LEFT, p->left.batch > 0 ? batch : 0, row, k) *
               number(RIGHT, p->right.batch > 0 ? batch : 0, k, column);
    if (p->has_addend)
        sum += number(ADDEND, batch, row, column);
    if (p->has_bias)
        sum += number(BIAS, 0, 0, column);
    return p->rectified && sum < 0 ? 0 : sum;
}

static void fill_epilogue(const bench *b, sgm_device_product *p)
{
    const sgm_device_matrix bias = {.type = p->result.type, .row = p->columns, .column = 1};
    fill(b, BIAS, &bias, 1, 1, p->columns);
    p->bias = (sgm_device_place){b->buffers[BIAS], 0};
    p->addend = p->result;
    p->addend.place.buffer = b->buffers[ADDEND];
    fill(b, ADDEND, &p->addend, p->batch, p->rows, p->columns);
}

static void check_product(const bench *b, sgm_device_product *p)
{
    static unsigned char host[MAXIMUM * sizeof(double)];
    fill(b, LEFT, &p->left, p->batch, p->rows, p->depth);
    fill(b, RIGHT, &p->right, p->batch, p->depth, p->columns);
    fill(b, RESULT, &p->result, p->batch, p->rows, p->columns);
    fill_epilogue(b, p);
    if (!b->driver->takes(b->self, p))
        TEST_FAIL("%lld x %lld x %lld is not taken", (long long)p->rows, (long long)p->columns,
                  (long long)p->depth);
    DONE(b->driver->multiply(b->self, p, message));
    DONE(b->driver->read(b->self, (sgm_device_place){b->buffers[RESULT], 0}, host, sizeof host, message));
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++)
                CHECK_NEAR(get(host, p->result.type, element(&p->result, batch, row, column)),
                           expected(p, batch, row, column), 0);
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
        for (int64_t gap = 0; gap <= 8; gap += 8) {
            sgm_device_product p = {
                .rows = sizes[0], .columns = sizes[1], .depth = sizes[2], .batch = sizes[3]};
            p.left = matrix(b, LEFT, type, way & 1, p.rows, p.depth, gap);
            p.right = matrix(b, RIGHT, type, way >> 1 & 1, p.depth, p.columns, gap);
            p.result = matrix(b, RESULT, result, way >> 2 & 1, p.rows, p.columns, gap);
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
    p.left = matrix(&b, LEFT, SGM_DEVICE_FLOAT32, false, 4, 5, 0);
    p.right = matrix(&b, RIGHT, SGM_DEVICE_FLOAT32, true, 5, 6, 0);
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, false, 4, 6, 0);
    p.right.batch = 0;
    check_product(&b, &p);
    p.right.batch = 30;
    p.left.batch = 0;
    check_product(&b, &p);
    close_bench(&b);
}

/* Eight of them: with and without a bias, an addend, and what cuts off below 0. */
static void set_epilogue(sgm_device_product *p, int which)
{
    p->has_bias = which & 1;
    p->has_addend = which >> 1 & 1;
    p->rectified = which >> 2 & 1;
}

static void check_epilogues(const bench *b, sgm_device_type type, int64_t batch, bool in_columns)
{
    for (int which = 0; which < 8; which++) {
        sgm_device_product p = {.rows = 8, .columns = 16, .depth = 24, .batch = batch};
        p.left = matrix(b, LEFT, type, in_columns, 8, 24, 0);
        p.right = matrix(b, RIGHT, type, !in_columns, 24, 16, 8);
        p.result = matrix(b, RESULT, type, false, 8, 16, 8);
        set_epilogue(&p, which);
        check_product(b, &p);
    }
}

TEST(a_bias_an_addend_and_rectifying_in_one_go)
{
    bench b = open_bench();
    for (int way = 0; way < 4; way++) {
        check_epilogues(&b, SGM_DEVICE_FLOAT32, way & 1 ? 3 : 1, way >> 1);
        check_epilogues(&b, SGM_DEVICE_BFLOAT16, way & 1 ? 3 : 1, way >> 1);
    }
    close_bench(&b);
}

TEST(equal_products_have_each_their_own_bias)
{
    bench b = open_bench();
    float host[2][4] = {{1, 2, 3, 4}, {50, 60, 70, 80}}, unit[4] = {1, 0, 0, 1};
    sgm_device_product p = {.rows = 2, .columns = 2, .depth = 2, .batch = 1, .has_bias = true};
    p.left = matrix(&b, LEFT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.right = matrix(&b, RIGHT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.bias = (sgm_device_place){b.buffers[BIAS], 0};
    DONE(b.driver->write(b.self, p.left.place, unit, sizeof unit, message));
    DONE(b.driver->write(b.self, p.right.place, unit, sizeof unit, message));
    DONE(b.driver->write(b.self, p.bias, host, sizeof host, message));
    DONE(b.driver->multiply(b.self, &p, message));
    p.bias.offset = sizeof *host;
    p.result.place.offset = 256;
    DONE(b.driver->multiply(b.self, &p, message));
    DONE(b.driver->read(b.self, (sgm_device_place){b.buffers[RESULT], 0}, host[0], sizeof *host, message));
    DONE(b.driver->read(b.self, p.result.place, host[1], sizeof *host, message));
    CHECK_NEAR(host[0][0], 2, 0);
    CHECK_NEAR(host[0][3], 3, 0);
    CHECK_NEAR(host[1][0], 51, 0);
    CHECK_NEAR(host[1][3], 61, 0);
    close_bench(&b);
}

/* A training that went wrong must be seen to. */
TEST(rectifying_leaves_nan)
{
    bench b = open_bench();
    float host[64] = {0};
    sgm_device_product p = {.rows = 8, .columns = 8, .depth = 8, .batch = 1, .rectified = true};
    p.left = matrix(&b, LEFT, SGM_DEVICE_FLOAT32, false, 8, 8, 0);
    p.right = matrix(&b, RIGHT, SGM_DEVICE_FLOAT32, false, 8, 8, 0);
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, false, 8, 8, 0);
    DONE(b.driver->write(b.self, p.right.place, host, sizeof host, message));
    host[8] = NAN;
    DONE(b.driver->write(b.self, p.left.place, host, sizeof host, message));
    CHECK(b.driver->takes(b.self, &p));
    DONE(b.driver->multiply(b.self, &p, message));
    DONE(b.driver->read(b.self, p.result.place, host, sizeof host, message));
    for (int i = 0; i < 64; i++)
        CHECK(i / 8 == 1 ? isnan(host[i]) : host[i] == 0);
    close_bench(&b);
}

TEST(a_product_can_be_recorded)
{
    bench b = open_bench();
    void *recording = NULL;
    float host[4] = {1, 2, 3, 4}, unit[4] = {0, 1, 1, 0};
    sgm_device_product p = {.rows = 2, .columns = 2, .depth = 2, .batch = 1};
    p.left = matrix(&b, LEFT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.right = matrix(&b, RIGHT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, false, 2, 2, 0);
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
    p.left = matrix(&b, LEFT, SGM_DEVICE_FLOAT32, false, 4, 5, 0);
    p.right = matrix(&b, RIGHT, SGM_DEVICE_FLOAT32, false, 5, 6, 0);
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, false, 4, 6, 0);
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
    p.result = matrix(&b, RESULT, SGM_DEVICE_FLOAT32, true, 4, 6, 0);
    CHECK(b.driver->takes(b.self, &p));
    p.has_bias = true; /* a number for each row, as it sees that */
    p.bias = (sgm_device_place){b.buffers[BIAS], 0};
    CHECK(!b.driver->takes(b.self, &p));
    p.has_bias = false;
    p.depth = 0;
    CHECK(!b.driver->takes(b.self, &p));
    CHECK_INT(b.driver->multiply(b.self, &p, message), SGM_DEVICE_DECLINED);
    CHECK(strstr(message, "does not take") != NULL);
    close_bench(&b);
}
