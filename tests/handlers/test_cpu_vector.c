/* Vector loops on all instruction sets: all lengths, sums of rows, bfloat16. Errors of functions:
 * test_cpu_functions.c. */
#include "handlers/cpu/vector/vector.h"
#include "ops/ops.h"
#include "test.h"

#define COUNT 4096

static float x[COUNT], y[COUNT];

/* Each table is called as the list of choices has it. */
TEST(names_of_the_tables)
{
    bool runs_here;
    int32_t count = 0;
    for (; sgm__vector_names[count] != NULL; count++)
        CHECK_STR(sgm__vector_at(count, &runs_here)->name, sgm__vector_names[count]);
    CHECK(sgm__vector_at(count, &runs_here) == NULL);
    CHECK(!runs_here);
}

/* An element has the same bits wherever it lies, and nothing beyond the end is written. */
TEST(all_lengths)
{
    const sgm_op *const ops[] = {&sgm__op_exp, &sgm__op_tanh, &sgm__op_add, &sgm__op_maximum};
    bool runs_here;
    const sgm__vector *vector;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)sin(i);
    for (int32_t v = 0; (vector = sgm__vector_at(v, &runs_here)) != NULL; v++)
        for (int o = 0; o < 4 && runs_here; o++) {
            sgm__vector_function function = sgm__vector_find(vector, ops[o], SGM_FLOAT32, SGM_FLOAT32);
            static float all[100];
            function(100, all, (const void *[]){x, x + 7}, 0);
            for (int n = 0; n < 70; n++) {
                for (int i = 0; i < 100; i++)
                    y[i] = 55;
                function(n, y, (const void *[]){x, x + 7}, 0);
                CHECK(memcmp(y, all, (size_t)n * sizeof *y) == 0);
                for (int i = n; i < 100; i++)
                    CHECK(y[i] == 55);
            }
        }
}

/* An operand that is one number gives what an array of that number gives. */
TEST(still_operands)
{
    const sgm_op *const ops[] = {&sgm__op_add, &sgm__op_subtract, &sgm__op_divide, &sgm__op_minimum};
    bool runs_here;
    const sgm__vector *vector;
    float same[70], still[16], expected[70];
    for (int i = 0; i < 70; i++)
        same[i] = still[i % 16] = 0.3f, x[i] = (float)sin(i);
    for (int32_t v = 0; (vector = sgm__vector_at(v, &runs_here)) != NULL; v++)
        for (int o = 0; o < 4 && runs_here; o++) {
            sgm__vector_function function = sgm__vector_find(vector, ops[o], SGM_FLOAT32, SGM_FLOAT32);
            function(69, expected, (const void *[]){x, same}, 0);
            function(69, y, (const void *[]){x, still}, 2);
            CHECK(memcmp(y, expected, 69 * sizeof *y) == 0);
            function(69, expected, (const void *[]){same, x}, 0);
            function(69, y, (const void *[]){still, x}, 1);
            CHECK(memcmp(y, expected, 69 * sizeof *y) == 0);
        }
}

/* Sums of rows are the plain loop's to the bit, and nothing else is written. */
TEST(rows_are_added_in_order)
{
    bool here;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(1.0 / (i + 1) - 0.3);
    for (int32_t v = 0; sgm__vector_at(v, &here) != NULL; v++)
        for (int64_t n = 0; here && n < 40; n++) {
            double sums[41], wide[COUNT], again[41];
            sums[n] = again[n] = 77;
            for (int i = 0; i < COUNT; i++)
                wide[i] = (double)x[i];
            sgm__vector_at(v, &here)->add_rows_f32(n, sums, x, 9, 43);
            sgm__vector_at(v, &here)->add_rows_f64(n, again, wide, 9, 43);
            for (int64_t i = 0; i < n; i++) {
                double sum = 0;
                for (int64_t row = 0; row < 9; row++)
                    sum += wide[row * 43 + i];
                CHECK_NEAR(sums[i], sum, 0);
                CHECK_NEAR(again[i], sum, 0);
            }
            CHECK_NEAR(sums[n], 77, 0);
            CHECK_NEAR(again[n], 77, 0);
        }
}

/* Sums, largest elements and what is made of them, of all lengths, against plain loops in double. */
static void check_row(const sgm__vector *vector, int64_t n)
{
    double sum = 0, dot = 0, largest = -INFINITY, weights = 0, sums[72], softmax[72];
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
        dot += (double)x[i] * (double)x[i + 7];
        largest = (double)x[i] > largest ? (double)x[i] : largest;
        sums[i] = (double)x[i + 9];
    }
    for (int64_t i = 0; i < n; i++)
        weights += softmax[i] = exp(((double)x[i] - largest) * 0.5);
    CHECK_NEAR(vector->sum_f32(n, x), sum, 1e-13 * (double)n);
    CHECK_NEAR(vector->dot_f32(n, x, x + 7), dot, 1e-13 * (double)n);
    CHECK(n == 0 || (double)vector->largest_f32(n, x) == largest);
    y[n] = 55;
    if (n > 0)
        vector->softmax_f32(n, y, x, 0.5f);
    for (int64_t i = 0; i < n; i++)
        CHECK_NEAR(y[i], softmax[i] / weights, 3e-7);
    CHECK(y[n] == 55);
    sums[n] = 77;
    vector->add_f32(n, sums, x, 5, 43);
    for (int64_t i = 0; i < n; i++) {
        double expected = (double)x[i + 9];
        for (int row = 0; row < 5; row++)
            expected += (double)x[row * 43 + i];
        CHECK_NEAR(sums[i], expected, 0);
    }
    CHECK_NEAR(sums[n], 77, 0);
}

TEST(rows_of_all_lengths)
{
    bool here;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(3 * sin(i * i));
    for (int32_t v = 0; sgm__vector_at(v, &here) != NULL; v++)
        for (int64_t n = 0; here && n < 72; n++)
            check_row(sgm__vector_at(v, &here), n);
}

TEST(largest_of_what_is_no_number)
{
    bool here;
    for (int32_t v = 0; sgm__vector_at(v, &here) != NULL; v++)
        for (int64_t at = 0; here && at < 40; at++) {
            for (int i = 0; i < 40; i++)
                x[i] = (float)-i - 1;
            CHECK(sgm__vector_at(v, &here)->largest_f32(40, x) == -1);
            x[at] = NAN;
            CHECK(isnan(sgm__vector_at(v, &here)->largest_f32(40, x)));
        }
}

TEST(bfloat16_rounds_to_even)
{
    const float from[] = {1.0f, 1.00390625f, 1.01171875f, 1.005f, -2.0f, 3e38f, INFINITY, NAN};
    const uint16_t expected[] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xc000, 0x7f62, 0x7f80, 0x7fc0};
    bool runs_here;
    const sgm__vector *vector;
    for (int32_t v = 0; (vector = sgm__vector_at(v, &runs_here)) != NULL; v++) {
        uint16_t to[8];
        if (!runs_here)
            continue;
        sgm__vector_find(vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16)(8, to, (const void *[]){from}, 0);
        for (int i = 0; i < 8; i++)
            CHECK_INT(to[i], expected[i]);
        sgm__vector_find(vector, &sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32)(5, y, (const void *[]){to}, 0);
        CHECK(y[0] == 1.0f && y[2] == 1.015625f && y[4] == -2.0f);
    }
}
