/* Errors of the vector functions of single precision, against libm in double, over all exponents and on all
 * instruction sets: the bounds that docs/performance.md and src/handlers/cpu/vector/vector_math.h state.
 *
 * `make test` takes every 4093rd float and all edges. SIGMA_TEST_FLOATS=all takes all 4 billion (some minutes
 * a function), SIGMA_TEST_FLOATS=E those with 2^E <= |x| < 2^(E + 1); both print the largest errors. */
#include "base/base.h"
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"
#include "test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK 4096
#define STEP 4093 /* a prime: all mantissas come, over the exponents */
#define MAXIMUM_SETS 3

static const sgm__vector *sets[MAXIMUM_SETS];
static int set_count;

static void find_sets(void)
{
    bool runs_here;
    set_count = 0;
    for (int32_t i = 0; sgm__vector_at(i, &runs_here) != NULL; i++)
        if (runs_here)
            sets[set_count++] = sgm__vector_at(i, &runs_here);
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Distance in units of the last place of the true value; of what has no such distance, 0 or infinity. */
static double units(float got, double truth)
{
    if (isnan(truth) || isinf((float)truth) || !isfinite(got))
        return (isnan(truth) && isnan(got)) || got == (float)truth ? 0 : INFINITY;
    uint64_t bits;
    memcpy(&bits, &truth, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    return fabs((double)got - truth) * ldexp(1, 23 - (exponent < -126 ? -126 : exponent));
}

typedef struct worst {
    double error;
    float at, got;
} worst;

static void compare(const sgm_op *op, int64_t n, const float *x, worst *worsts)
{
    static float y[BLOCK];
    static double truth[BLOCK];
    for (int64_t i = 0; i < n; i++) {
        double value = (double)x[i];
        truth[i] = op->scalar(&value, NULL);
    }
    for (int s = 0; s < set_count; s++) {
        sgm__vector_find(sets[s], op, SGM_FLOAT32, SGM_FLOAT32)(n, y, (const void *[]){x}, 0);
        for (int64_t i = 0; i < n; i++) {
            double error = units(y[i], truth[i]);
            if (!(error <= worsts[s].error))
                worsts[s] = (worst){error, x[i], y[i]};
        }
    }
}

/* All floats that were asked for: bits first, first + step, ... up to last. */
static void sweep(const sgm_op *op, uint64_t first, uint64_t last, uint64_t step, worst *worsts)
{
    static float x[BLOCK];
    int64_t n = 0;
    for (uint64_t bits = first; bits <= last; bits += step) {
        x[n++] = float_of((uint32_t)bits);
        if (n == BLOCK) {
            compare(op, n, x, worsts);
            n = 0;
        }
    }
    compare(op, n, x, worsts);
}

/* Around what is special: limits of ranges, overflow and underflow, where functions change their way. */
static void sweep_edges(const sgm_op *op, worst *worsts)
{
    static const float edges[] = {0,       1e-45f,   FLT_MIN,  1e-30f,    1e-8f,       0x1p-24f, 0x1p-12f,
                                  0.5f,    0.625f,   0.6931f,  0.93f,     0.70710678f, 1,        1.41421f,
                                  2,       3.93f,    8.66f,    9.02f,     10,          17.32f,   44.36f,
                                  87.336f, 88.0297f, 88.7228f, 103.2789f, 103.97f,     104,      0x1p23f,
                                  0x1p24f, 1e30f,    FLT_MAX,  INFINITY};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        for (int sign = 0; sign < 2; sign++) {
            uint32_t middle = bits_of(edges[i]) | (uint32_t)sign << 31;
            uint32_t below = (middle & INT32_MAX) < 1000 ? middle & INT32_MAX : 1000;
            sweep(op, middle - below, middle + 1000, 1, worsts);
        }
}

static void sweep_wanted(const sgm_op *op, worst *worsts)
{
    const char *wanted = getenv("SIGMA_TEST_FLOATS");
    sweep_edges(op, worsts);
    if (wanted == NULL) {
        sweep(op, 0, UINT32_MAX, STEP, worsts);
    } else if (strcmp(wanted, "all") == 0) {
        sweep(op, 0, UINT32_MAX, 1, worsts);
    } else {
        uint64_t first = (uint64_t)(atoi(wanted) + 127) << 23;
        sweep(op, first, first + (1 << 23) - 1, 1, worsts);
        sweep(op, first | 1u << 31, (first | 1u << 31) + (1 << 23) - 1, 1, worsts);
    }
    for (int s = 0; s < set_count && wanted != NULL; s++)
        printf("%-12s %-9s %.3f units at %.9g (%a)\n", op->name, sets[s]->name, worsts[s].error,
               (double)worsts[s].at, (double)worsts[s].at);
}

/* `bound`: in units in the last place of the true value. */
static void check_function(const sgm_op *op, double bound)
{
    worst worsts[MAXIMUM_SETS] = {{0, 0, 0}};
    find_sets();
    sweep_wanted(op, worsts);
    for (int s = 0; s < set_count; s++)
        if (!(worsts[s].error <= bound))
            TEST_FAIL("%s(%.9g) is %.9g on %s, %.3f units away; stated are %g", op->name,
                      (double)worsts[s].at, (double)worsts[s].got, sets[s]->name, worsts[s].error, bound);
}

TEST(exp)
{
    check_function(&sgm__op_exp, 1.1);
}

TEST(log)
{
    check_function(&sgm__op_log, 1);
}

TEST(log1p)
{
    check_function(&sgm__op_log1p, 2);
}

TEST(tanh)
{
    check_function(&sgm__op_tanh, 2.5);
}

TEST(erf)
{
    check_function(&sgm__op_erf, 2);
}

/* Down to the smallest number that does not become zero in a program; below, it is smaller. */
TEST(sigmoid)
{
    static float x[BLOCK], y[BLOCK];
    find_sets();
    for (int s = 0; s < set_count; s++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = -87.25f + 110.0f * (float)i / BLOCK;
        sgm__vector_find(sets[s], &sgm__op_sigmoid, SGM_FLOAT32, SGM_FLOAT32)(BLOCK, y, (const void *[]){x},
                                                                              0);
        for (int i = 0; i < BLOCK; i++)
            CHECK_NEAR((double)y[i] * (1 + exp(-(double)x[i])), 1, 3e-7);
        x[0] = -88;
        x[1] = -1000;
        x[2] = -3e38f;
        sgm__vector_find(sets[s], &sgm__op_sigmoid, SGM_FLOAT32, SGM_FLOAT32)(3, y, (const void *[]){x}, 0);
        CHECK(y[0] < 1.1754944e-38f && y[1] < 1.1754944e-38f && y[2] < 1.1754944e-38f);
    }
}

TEST(gelu)
{
    check_function(&sgm__op_gelu, 12);
}

TEST(sin)
{
    check_function(&sgm__op_sin, 1);
}

TEST(cos)
{
    check_function(&sgm__op_cos, 1);
}

TEST(square_root)
{
    check_function(&sgm__op_square_root, 0.5);
}

/* Pairs of all exponents: the nearest float, which is the nearest of the nearest double. */
TEST(division)
{
    static float x[BLOCK], y[BLOCK], z[BLOCK];
    sgm__random random = sgm__random_make(3, 0);
    find_sets();
    for (int round = 0; round < 256; round++) {
        for (int i = 0; i < BLOCK; i++) {
            x[i] = float_of(sgm__random_uint32(&random));
            y[i] = float_of(sgm__random_uint32(&random));
        }
        for (int s = 0; s < set_count; s++) {
            sgm__vector_find(sets[s], &sgm__op_divide, SGM_FLOAT32, SGM_FLOAT32)(BLOCK, z,
                                                                                 (const void *[]){x, y}, 0);
            for (int i = 0; i < BLOCK; i++) {
                float nearest = (float)((double)x[i] / (double)y[i]);
                if (bits_of(z[i]) != bits_of(nearest) && !(isnan(z[i]) && isnan(nearest)))
                    TEST_FAIL("%.9g / %.9g is %.9g on %s, not %.9g", (double)x[i], (double)y[i], (double)z[i],
                              sets[s]->name, (double)nearest);
            }
        }
    }
}

/* Zeros keep their signs, and infinities go where the mathematics goes: to the bit. */
TEST(special_values)
{
    static const struct {
        const sgm_op *op;
        float x, y;
    } cases[] = {
        {&sgm__op_exp, 0.0f, 1.0f},           {&sgm__op_exp, -0.0f, 1.0f},
        {&sgm__op_exp, INFINITY, INFINITY},   {&sgm__op_exp, -INFINITY, 0.0f},
        {&sgm__op_log, 1.0f, 0.0f},           {&sgm__op_log, 0.0f, -INFINITY},
        {&sgm__op_log, -0.0f, -INFINITY},     {&sgm__op_log, INFINITY, INFINITY},
        {&sgm__op_log1p, 0.0f, 0.0f},         {&sgm__op_log1p, -0.0f, -0.0f},
        {&sgm__op_log1p, -1.0f, -INFINITY},   {&sgm__op_log1p, INFINITY, INFINITY},
        {&sgm__op_tanh, -0.0f, -0.0f},        {&sgm__op_tanh, INFINITY, 1.0f},
        {&sgm__op_tanh, -INFINITY, -1.0f},    {&sgm__op_erf, -0.0f, -0.0f},
        {&sgm__op_erf, INFINITY, 1.0f},       {&sgm__op_erf, -INFINITY, -1.0f},
        {&sgm__op_square_root, -0.0f, -0.0f}, {&sgm__op_square_root, INFINITY, INFINITY},
        {&sgm__op_tanh, 1e-45f, 1e-45f},      {&sgm__op_log1p, -1e-45f, -1e-45f},
        {&sgm__op_floor, -0.0f, -0.0f},
    };
    find_sets();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int s = 0; s < set_count; s++) {
            float y;
            sgm__vector_find(sets[s], cases[i].op, SGM_FLOAT32,
                             SGM_FLOAT32)(1, &y, (const void *[]){&cases[i].x}, 0);
            if (bits_of(y) != bits_of(cases[i].y))
                TEST_FAIL("%s(%g) is %.9g on %s, not %.9g", cases[i].op->name, (double)cases[i].x, (double)y,
                          sets[s]->name, (double)cases[i].y);
        }
}

/* --- approximations, which have bounds of their own --- */

/* The largest error between `from` and `to`, relative or absolute. */
static double fast_error(const sgm__vector *set, const sgm_op *op, double from, double to, bool relative)
{
    static float x[BLOCK], y[BLOCK];
    sgm__vector fast = *set;
    fast.approximate = true;
    double maximum = 0;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < BLOCK; i++)
            x[i] = (float)(from + (to - from) * (round * BLOCK + i) / (200.0 * BLOCK - 1));
        sgm__vector_find(&fast, op, SGM_FLOAT32, SGM_FLOAT32)(BLOCK, y, (const void *[]){x}, 0);
        for (int i = 0; i < BLOCK; i++) {
            double value = (double)x[i], truth = op->scalar(&value, NULL);
            double error = fabs((double)y[i] - truth) / (relative ? truth : 1);
            maximum = error <= maximum ? maximum : error;
        }
    }
    return maximum;
}

TEST(approximations)
{
    find_sets();
    for (int s = 0; s < set_count; s++) {
        CHECK(fast_error(sets[s], &sgm__op_exp, -87, 88, true) < 0.00011);
        CHECK(fast_error(sets[s], &sgm__op_exp, -1, 1, true) < 0.00011);
        CHECK(fast_error(sets[s], &sgm__op_tanh, -10, 10, false) < 0.0001);
        CHECK(fast_error(sets[s], &sgm__op_tanh, -1e30, 1e30, false) < 0.0001);
        CHECK(fast_error(sets[s], &sgm__op_exp, -1, 1, true) > 1e-6); /* it is another function */
        sgm__vector fast = *sets[s];
        fast.approximate = true;
        float x[4] = {NAN, INFINITY, -INFINITY, 0.0f}, y[4];
        sgm__vector_find(&fast, &sgm__op_exp, SGM_FLOAT32, SGM_FLOAT32)(4, y, (const void *[]){x}, 0);
        CHECK(isnan(y[0]) && y[1] > 1e38f && y[2] < 2e-38f && y[3] == 1.0f);
        sgm__vector_find(&fast, &sgm__op_tanh, SGM_FLOAT32, SGM_FLOAT32)(4, y, (const void *[]){x}, 0);
        CHECK(isnan(y[0]) && y[1] <= 1.0f && y[1] > 0.9998f && y[2] == -y[1] && y[3] == 0.0f);
    }
}

TEST(exact)
{
    check_function(&sgm__op_floor, 0);
    check_function(&sgm__op_negate, 0);
    check_function(&sgm__op_absolute, 0);
}
