/* The loops of convolutions and poolings in every instruction set, against plain ones. */
#include "handlers/cpu/cpu.h"
#include "test.h"

#define DEPTH 37
#define WIDEST 64
#define GUARD 77 /* where nothing may be written */

static const int64_t rows[] = {3, 0, 19, 20, 41, 7}, c_rows[] = {4, 1, 0, 7, 2, 5};

static void check_gather(const sgm__tiles *tiles, bool wide_type, int count, bool wide, bool add)
{
    static double a_d[400], b_d[DEPTH * WIDEST], c_d[8 * WIDEST];
    static float a_f[400], b_f[DEPTH * WIDEST], c_f[8 * WIDEST];
    int64_t steps[DEPTH], columns = wide ? tiles->gather_columns : tiles->gather_columns / 2;
    CHECK(columns <= WIDEST);
    sgm__random random = sgm__random_make(4, (uint64_t)count);
    for (int i = 0; i < 400; i++)
        a_f[i] = (float)(a_d[i] = (double)(float)(sgm__random_uniform(&random) - 0.5));
    for (int i = 0; i < DEPTH * WIDEST; i++)
        b_f[i] = (float)(b_d[i] = (double)(float)(sgm__random_uniform(&random) - 0.5));
    for (int i = 0; i < 8 * WIDEST; i++)
        c_f[i] = (float)(c_d[i] = GUARD);
    for (int k = 0; k < DEPTH; k++)
        steps[k] = k * 9 % 350;
    sgm__gather tile = {.depth = DEPTH,
                        .a = wide_type ? (const void *)a_d : a_f,
                        .b = wide_type ? (const void *)b_d : b_f,
                        .rows = rows,
                        .steps = steps,
                        .c_rows = c_rows,
                        .c = wide_type ? (void *)c_d : c_f,
                        .add = add};
    (wide ? tiles->gather_wide : tiles->gather_narrow)[count - 1](&tile);
    for (int64_t r = 0; r < 8; r++)
        for (int64_t k = 0; k < columns; k++) {
            double expected = GUARD;
            for (int i = 0; i < count; i++)
                if (c_rows[i] == r) {
                    expected = add ? GUARD : 0;
                    for (int d = 0; d < DEPTH; d++)
                        expected += a_d[rows[i] + steps[d]] * b_d[d * columns + k];
                }
            double got = wide_type ? c_d[r * columns + k] : (double)c_f[r * columns + k];
            CHECK_NEAR(got, expected, (wide_type ? 1e-13 : 1e-5) * (1 + fabs(expected)));
        }
}

static void check_spread(const sgm__tiles *tiles, bool wide_type, int64_t count, int64_t columns, bool biased)
{
    enum { MAXIMUM = 40 };
    static double from_d[MAXIMUM * MAXIMUM + 64], to_d[MAXIMUM * MAXIMUM], biases_d[MAXIMUM];
    static float from_f[MAXIMUM * MAXIMUM + 64], to_f[MAXIMUM * MAXIMUM], biases_f[MAXIMUM];
    for (int i = 0; i < MAXIMUM * MAXIMUM + 64; i++)
        from_f[i] = (float)(from_d[i] = i % 1001);
    for (int i = 0; i < MAXIMUM * MAXIMUM; i++)
        to_f[i] = (float)(to_d[i] = GUARD);
    for (int i = 0; i < MAXIMUM; i++)
        biases_f[i] = (float)(biases_d[i] = -i);
    const void *biases = wide_type ? (const void *)biases_d : biases_f;
    tiles->spread(wide_type ? (void *)to_d : to_f, MAXIMUM, wide_type ? (const void *)from_d : from_f,
                  MAXIMUM, count, columns, biased ? biases : NULL,
                  biased ? (sgm__limits){-7, 600} : SGM__NO_LIMITS);
    for (int64_t r = 0; r < MAXIMUM; r++)
        for (int64_t c = 0; c < MAXIMUM; c++) {
            double value = (double)((c * MAXIMUM + r) % 1001) - (biased ? (double)r : 0);
            value = biased ? fmax(-7, fmin(value, 600)) : value;
            double expected = r < count && c < columns ? value : GUARD;
            CHECK_NEAR(wide_type ? to_d[r * MAXIMUM + c] : (double)to_f[r * MAXIMUM + c], expected, 0);
        }
}

static void check_pairs(const sgm__vector *vector, int64_t n)
{
    enum { MAXIMUM = 80 };
    float row[MAXIMUM], below[MAXIMUM], out[MAXIMUM], up[MAXIMUM], down[MAXIMUM], gradient[MAXIMUM];
    sgm__random random = sgm__random_make(8, (uint64_t)n);
    for (int i = 0; i < MAXIMUM; i++) {
        row[i] = sgm__random_below(&random, 9) == 0 ? NAN : (float)sgm__random_below(&random, 3);
        below[i] = sgm__random_below(&random, 9) == 0 ? NAN : (float)sgm__random_below(&random, 3);
        out[i] = up[i] = down[i] = GUARD;
        gradient[i] = (float)i + 1;
    }
    vector->largest_pairs_f32(n, out, row, below);
    vector->spread_pairs_f32(n, up, down, row, below, gradient);
    for (int64_t i = 0; i < MAXIMUM / 2; i++) {
        const float x[] = {row[2 * i], row[2 * i + 1], below[2 * i], below[2 * i + 1]};
        const float y[] = {up[2 * i], up[2 * i + 1], down[2 * i], down[2 * i + 1]};
        int best = 0;
        for (int k = 1; k < 4; k++)
            best = x[k] > x[best] || isnan(x[k]) ? k : best;
        CHECK(i < n ? isnan(out[i]) == isnan(x[best]) : out[i] == GUARD);
        CHECK(i >= n || isnan(x[best]) || out[i] == x[best]);
        for (int k = 0; k < 4; k++)
            CHECK_NEAR(y[k], i >= n ? GUARD : k == best ? gradient[i] : 0, 0);
    }
}

TEST(all_instruction_sets_compute_the_same)
{
    bool runs_here;
    const sgm__vector *vector;
    for (int32_t v = 0; (vector = sgm__vector_at(v, &runs_here)) != NULL; v++) {
        for (int which = 0; which < 2 && runs_here; which++) {
            const sgm__tiles *tiles = which == 0 ? &vector->f32 : &vector->f64;
            for (int count = 1; count <= SGM__GATHER_ROWS; count++)
                for (int kind = 0; kind < 4; kind++)
                    check_gather(tiles, which == 1, count, (kind & 1) != 0, (kind & 2) != 0);
            for (int64_t count = 1; count <= 35; count += 2)
                for (int64_t columns = 1; columns <= 36; columns += 5)
                    check_spread(tiles, which == 1, count, columns, count % 4 == 1);
        }
        for (int64_t n = 0; n <= 40 && runs_here; n++)
            check_pairs(vector, n);
    }
}
