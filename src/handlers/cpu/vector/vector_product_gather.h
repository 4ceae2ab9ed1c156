/* Template: tiles of products whose left operand is read in place by offsets, as convolutions need; and max
 * pooling of two by two. Internal.
 *
 * A tile has up to six rows by up to GATHER_VECTORS vectors of sums, all in registers; for each step it loads
 * one row of the packed right operand and broadcasts one number of each of its rows from a[rows[i] +
 * steps[k]]. Convolution kernels (kernels/convolution.c) make the offsets. The wider a tile, the fewer loads
 * go with each multiplication: four vectors do 20 % more a second than two (docs/performance.md,
 * Convolutions). Included after vector_product.h, whose squares and lane numbers it uses. */
#include "handlers/cpu/vector/vector.h"

#if TILE_ROWS == 14
#define GATHER_VECTORS 4 /* of a wide panel: 6 x 4 of 32 registers are sums */
#else
#define GATHER_VECTORS 2
#endif

/* One tile: sums in registers over all steps, then stored, or added to c. `rows` and `vectors` are constants
 * where this is inlined, so that the loops unroll. */
#define DEFINE_GATHER(name, element, vector, letter, LETTER, lanes)                                          \
    static inline __attribute__((always_inline)) void name(const sgm__gather *t, int rows, int vectors)      \
    {                                                                                                        \
        const element *a[SGM__GATHER_ROWS], *b = t->b;                                                       \
        vector sums[SGM__GATHER_ROWS][GATHER_VECTORS];                                                       \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            a[i] = (const element *)t->a + t->rows[i];                                                       \
            UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = (vector){0};                               \
        }                                                                                                    \
        for (int64_t k = 0; k < t->depth; k++) {                                                             \
            int64_t step = t->steps[k];                                                                      \
            vector right[GATHER_VECTORS];                                                                    \
            UNROLL for (int v = 0; v < vectors; v++) right[v] = load_##letter(b + v * (lanes));              \
            UNROLL for (int i = 0; i < rows; i++)                                                            \
            {                                                                                                \
                vector factor = splat_##letter(a[i][step]);                                                  \
                UNROLL for (int v = 0; v < vectors; v++) sums[i][v] =                                        \
                    FMA_##LETTER(factor, right[v], sums[i][v]);                                              \
            }                                                                                                \
            b += vectors * (lanes);                                                                          \
        }                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            element *c = (element *)t->c + t->c_rows[i] * vectors * (lanes);                                 \
            UNROLL for (int v = 0; v < vectors; v++, c += (lanes))                                           \
                store_##letter(c, t->add ? load_##letter(c) + sums[i][v] : sums[i][v]);                      \
        }                                                                                                    \
    }
DEFINE_GATHER(gather_f32, float, vec_f, f, F, LANES)
DEFINE_GATHER(gather_f64, double, vec_d, d, D, LANES_D)

/* A function for each number of rows and both widths. */
#define DEFINE_GATHERS(type, rows)                                                                           \
    static void gather_wide_##type##_##rows(const sgm__gather *t)                                            \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS);                                                              \
    }                                                                                                        \
    static void gather_narrow_##type##_##rows(const sgm__gather *t)                                          \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS / 2);                                                          \
    }
#define DEFINE_ALL_GATHERS(rows) DEFINE_GATHERS(f32, rows) DEFINE_GATHERS(f64, rows)
DEFINE_ALL_GATHERS(1)
DEFINE_ALL_GATHERS(2)
DEFINE_ALL_GATHERS(3)
DEFINE_ALL_GATHERS(4)
DEFINE_ALL_GATHERS(5)
DEFINE_ALL_GATHERS(6)
#define GATHER_TABLE(kind)                                                                                   \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6                                           \
    }

/* to[r * to_stride + c] = from[c * from_stride + r] + biases[r], kept between limits: squares of as many rows
 * as a vector has lanes are transposed into `block`; at the right edge by way of `edge`, which has zeros
 * where columns end. Rows of `from` may be read to the end of a vector. */
#define DEFINE_SPREAD(name, square, element, vector, letter, lanes)                                          \
    static void name(void *target, int64_t to_stride, const void *source, int64_t from_stride, int64_t rows, \
                     int64_t columns, const void *biases, sgm__limits limits)                                \
    {                                                                                                        \
        element block[(lanes) * (lanes)], edge[(lanes) * (lanes)];                                           \
        for (int64_t r = 0; r < rows; r += (lanes))                                                          \
            for (int64_t c = 0; c < columns; c += (lanes)) {                                                 \
                const element *from = (const element *)source + c * from_stride + r;                         \
                element *to = (element *)target + r * to_stride + c;                                         \
                int64_t filled = sgm__minimum(columns - c, lanes), kept = sgm__minimum(rows - r, lanes);     \
                if (filled == (lanes)) {                                                                     \
                    square(block, lanes, from, from_stride);                                                 \
                } else {                                                                                     \
                    for (int64_t i = 0; i < filled; i++)                                                     \
                        store_##letter(edge + i * (lanes), load_##letter(from + i * from_stride));           \
                    for (int64_t i = filled; i < (lanes); i++)                                               \
                        store_##letter(edge + i * (lanes), splat_##letter(0));                               \
                    square(block, lanes, edge, lanes);                                                       \
                }                                                                                            \
                for (int64_t i = 0; i < kept; i++, to += to_stride) {                                        \
                    element bias = biases != NULL ? ((const element *)biases)[r + i] : 0;                    \
                    vector row = load_##letter(block + i * (lanes)) + splat_##letter(bias);                  \
                    row = limit_##letter(row, (element)limits.low, (element)limits.high);                    \
                    if (filled == (lanes))                                                                   \
                        store_##letter(to, row);                                                             \
                    else                                                                                     \
                        store_part_##letter(to, row, filled);                                                \
                }                                                                                            \
            }                                                                                                \
    }
DEFINE_SPREAD(spread_f32, square_f32, float, vec_f, f, LANES)
DEFINE_SPREAD(spread_f64, square_f64, double, vec_d, d, LANES_D)

#define DEFINE_FINISH(name, element, vector, letter, lanes)                                                  \
    static void name(int64_t n, void *row, const void *bias, sgm__limits limits)                             \
    {                                                                                                        \
        vector shift = splat_##letter(bias != NULL ? *(const element *)bias : 0);                            \
        element low = (element)limits.low, high = (element)limits.high, *x = row;                            \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes))                                                               \
            store_##letter(x + i, limit_##letter(load_##letter(x + i) + shift, low, high));                  \
        if (i < n)                                                                                           \
            store_part_##letter(x + i, limit_##letter(load_part_##letter(x + i, n - i) + shift, low, high),  \
                                n - i);                                                                      \
    }
DEFINE_FINISH(finish_f32, float, vec_f, f, LANES)
DEFINE_FINISH(finish_f64, double, vec_d, d, LANES_D)

/* --- windows of two by two, side by side --- */

/* Lanes in which x takes the place of the best so far: x is larger, or NaN. */
static inline vec_i takes_place_f(vec_f x, vec_f best)
{
    return (x > best) | (x != x);
}

/* The elements at even and at odd places of 2n numbers, n at most LANES, with zeros behind them. */
static inline void load_pairs_f(const float *from, int64_t n, vec_f *evens, vec_f *odds)
{
    const vec_i lane = LANE_NUMBERS_f, even = lane * 2, odd = even + 1;
    int64_t first = sgm__minimum(2 * n, LANES), second = 2 * n - first;
    vec_f a = first == LANES ? load_f(from) : load_part_f(from, first), b = {0};
    if (second > 0)
        b = second == LANES ? load_f(from + LANES) : load_part_f(from + LANES, second);
    *evens = SHUFFLE_f(a, b, even);
    *odds = SHUFFLE_f(a, b, odd);
}

/* The inverse of load_pairs_f. */
static inline void store_pairs_f(float *to, int64_t n, vec_f evens, vec_f odds)
{
    const vec_i lane = LANE_NUMBERS_f, low = (lane >> 1) + (lane & 1) * LANES, high = low + LANES / 2;
    int64_t first = sgm__minimum(2 * n, LANES), second = 2 * n - first;
    vec_f a = SHUFFLE_f(evens, odds, low), b = SHUFFLE_f(evens, odds, high);
    if (first == LANES)
        store_f(to, a);
    else
        store_part_f(to, a, first);
    if (second == LANES)
        store_f(to + LANES, b);
    else if (second > 0)
        store_part_f(to + LANES, b, second);
}

/* LANES windows at a time. */
static void largest_pairs_f32(int64_t n, float *out, const float *row, const float *below)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = sgm__minimum(n - i, LANES);
        vec_f x[4], best;
        load_pairs_f(row + 2 * i, count, &x[0], &x[1]);
        load_pairs_f(below + 2 * i, count, &x[2], &x[3]);
        best = x[0];
        UNROLL for (int k = 1; k < 4; k++) best = select_f(takes_place_f(x[k], best), x[k], best);
        if (count == LANES)
            store_f(out + i, best);
        else
            store_part_f(out + i, best, count);
    }
}

/* Finds the winner of each window again, in the order of largest_pairs_f32: a later one that took the place
 * beats those before it. Exactly one of the four gets the gradient. */
static void spread_pairs_f32(int64_t n, float *out, float *out_below, const float *row, const float *below,
                             const float *gradient)
{
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = sgm__minimum(n - i, LANES);
        vec_f x[4], best, y = count == LANES ? load_f(gradient + i) : load_part_f(gradient + i, count);
        vec_i wins[4];
        load_pairs_f(row + 2 * i, count, &x[0], &x[1]);
        load_pairs_f(below + 2 * i, count, &x[2], &x[3]);
        best = x[0];
        UNROLL for (int k = 1; k < 4; k++)
        {
            wins[k] = takes_place_f(x[k], best);
            best = select_f(wins[k], x[k], best);
        }
        wins[2] &= ~wins[3];
        wins[1] &= ~(wins[2] | wins[3]);
        wins[0] = ~(wins[1] | wins[2] | wins[3]);
        UNROLL for (int k = 0; k < 4; k++) x[k] = (vec_f)((vec_i)y & wins[k]);
        store_pairs_f(out + 2 * i, count, x[0], x[1]);
        store_pairs_f(out_below + 2 * i, count, x[2], x[3]);
    }
}
