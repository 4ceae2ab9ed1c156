/* Template: what convolutions of float32 and float64 need (vector_convolution.h), with the transforms of
 * Winograd's products back to results, all transforms of tiles of 4 x 4 results, and max pooling of two by
 * two. Internal.
 *
 * Included after vector_product.h, whose squares and lane numbers it uses. */
#include "handlers/cpu/vector/vector_convolution.h"

DEFINE_GATHER(gather_f32, float, vec_f, f, float, vec_f, f, FMA_F, LANES)
DEFINE_GATHER(gather_f64, double, vec_d, d, double, vec_d, d, FMA_D, LANES_D)
DEFINE_GATHERS(f32)
DEFINE_GATHERS(f64)

#define AS_IT_IS(x) (x)
DEFINE_SPREAD(spread_f32, square_f32, float, vec_f, f, LANES, float, store_f, store_part_f, AS_IT_IS)
DEFINE_SPREAD(spread_f64, square_f64, double, vec_d, d, LANES_D, double, store_d, store_part_d, AS_IT_IS)

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

/* --- Winograd --- */

DEFINE_WINOGRAD_INPUT(winograd_input_f32, float, store_f)
DEFINE_WINOGRAD_WEIGHTS(winograd_weights_f32, float, store_f)
DEFINE_WINOGRAD_RESULTS(winograd_results_f32, float, store_f)

/* A' M A + bias, kept between limits, for `count` tiles and on to the end of a vector: result (i, k) of the
 * tiles goes to to + (2 * i + k) * to_stride. */
static void winograd_output_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                int64_t from_stride, float bias, sgm__limits limits)
{
    float low = (float)limits.low, high = (float)limits.high;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f upper[4], lower[4], shift = splat_f(bias);
        UNROLL for (int k = 0; k < 4; k++)
        {
            const float *m = from + k * from_stride + n;
            vec_f m0 = load_f(m), m1 = load_f(m + 4 * from_stride);
            vec_f m2 = load_f(m + 8 * from_stride), m3 = load_f(m + 12 * from_stride);
            upper[k] = m0 + m1 + m2;
            lower[k] = m1 - m2 - m3;
        }
        store_f(to + n, limit_f(upper[0] + upper[1] + upper[2] + shift, low, high));
        store_f(to + to_stride + n, limit_f(upper[1] - upper[2] - upper[3] + shift, low, high));
        store_f(to + 2 * to_stride + n, limit_f(lower[0] + lower[1] + lower[2] + shift, low, high));
        store_f(to + 3 * to_stride + n, limit_f(lower[1] - lower[2] - lower[3] + shift, low, high));
    }
}

/* out = G' x: of four rows (or columns). */
#define WINOGRAD_KERNELS(out, x0, x1, x2, x3)                                                                \
    do {                                                                                                     \
        vec_f even = ((x1) + (x2)) * splat_f(0.5f);                                                          \
        (out)[0] = (x0) + even;                                                                              \
        (out)[1] = ((x1) - (x2)) * splat_f(0.5f);                                                            \
        (out)[2] = even + (x3);                                                                              \
    } while (0)

/* G' s G for `count` kernels and on to the end of a vector: element e of 16 lies at from + e * from_stride,
 * place (i, k) of the kernels goes to to + (3 * i + k) * to_stride. */
static void winograd_kernels_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                 int64_t from_stride)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[4][3], out[3];
        UNROLL for (int k = 0; k < 4; k++)
        {
            const float *s = from + k * from_stride + n;
            WINOGRAD_KERNELS(columns[k], load_f(s), load_f(s + 4 * from_stride), load_f(s + 8 * from_stride),
                             load_f(s + 12 * from_stride));
        }
        UNROLL for (int i = 0; i < 3; i++)
        {
            WINOGRAD_KERNELS(out, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
            UNROLL for (int k = 0; k < 3; k++) store_f(to + (3 * i + k) * to_stride + n, out[k]);
        }
    }
}

#define WINOGRAD_f32                                                                                         \
    {                                                                                                        \
        .input = winograd_input_f32, .weights = winograd_weights_f32, .results = winograd_results_f32,       \
        .output = winograd_output_f32, .kernels = winograd_kernels_f32                                       \
    }
#define WINOGRAD_f64                                                                                         \
    {                                                                                                        \
        .input = NULL                                                                                        \
    }

/* --- Winograd by tiles of 4 x 4 results, F(4 x 4, 3 x 3), of float32 --- */

/* A tile comes from 6 x 6 pixels: 36 products take the place of 144. B', G and A' evaluate polynomials at 0,
 * 3/4, -3/4, 3/2, -3/2 and infinity. With these points what is transformed is of the size of what it was made
 * of, and their squares are exact, so that rounding errors are a quarter of those with the usual 1 and 2
 * (docs/performance.md, Convolutions). */
#define NEAR_POINT 0.75f
#define FAR_POINT 1.5f
#define NEAR_SQUARE (NEAR_POINT * NEAR_POINT)
#define FAR_SQUARE (FAR_POINT * FAR_POINT)
/* What G divides the rows of a point by: the product of its distances from the others. */
#define ORIGIN_DISTANCES (NEAR_SQUARE * FAR_SQUARE)
#define NEAR_DISTANCES (2 * NEAR_SQUARE * (NEAR_SQUARE - FAR_SQUARE))
#define FAR_DISTANCES (2 * FAR_SQUARE * (FAR_SQUARE - NEAR_SQUARE))

/* out = B' x: of six rows (or columns). */
static inline __attribute__((always_inline)) void fours_input(vec_f *out, const vec_f *x)
{
    vec_f near_even = FMA_F(x[2], splat_f(-FAR_SQUARE), x[4]);
    vec_f near_odd = FMA_F(x[1], splat_f(-FAR_SQUARE), x[3]) * splat_f(NEAR_POINT);
    vec_f far_even = FMA_F(x[2], splat_f(-NEAR_SQUARE), x[4]);
    vec_f far_odd = FMA_F(x[1], splat_f(-NEAR_SQUARE), x[3]) * splat_f(FAR_POINT);
    const vec_f squares = splat_f(-(NEAR_SQUARE + FAR_SQUARE)), origin = splat_f(ORIGIN_DISTANCES);
    out[0] = FMA_F(x[0], origin, FMA_F(x[2], squares, x[4]));
    out[1] = near_even + near_odd;
    out[2] = near_even - near_odd;
    out[3] = far_even + far_odd;
    out[4] = far_even - far_odd;
    out[5] = FMA_F(x[1], origin, FMA_F(x[3], squares, x[5]));
}

/* B' d B for `count` tiles and on to the end of a vector. Pixel (i, k) of the tiles lies at from[i % 4][k %
 * 4] (phases, `plane` numbers apart), i / 4 rows of `pitch` numbers and k / 4 further. Element e of 36 goes
 * to target + e * to_stride. */
static void winograd_input_fours(int64_t count, void *target, int64_t to_stride, const float *from,
                                 int64_t plane, int64_t pitch)
{
    float *to = target;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[6][6], x[6], out[6];
        UNROLL for (int k = 0; k < 6; k++)
        {
            const float *d = from + k % 4 * plane + k / 4 + n;
            UNROLL for (int i = 0; i < 6; i++) x[i] = load_f(d + i % 4 * 4 * plane + i / 4 * pitch);
            fours_input(columns[k], x);
        }
        UNROLL for (int i = 0; i < 6; i++)
        {
            UNROLL for (int k = 0; k < 6; k++) x[k] = columns[k][i];
            fours_input(out, x);
            UNROLL for (int k = 0; k < 6; k++) store_f(to + (6 * i + k) * to_stride + n, out[k]);
        }
    }
}

/* out = G x: of three rows (or columns). */
static inline __attribute__((always_inline)) void fours_weights(vec_f *out, const vec_f *x)
{
    vec_f near_even = FMA_F(x[2], splat_f(NEAR_SQUARE), x[0]) * splat_f(1 / NEAR_DISTANCES);
    vec_f near_odd = x[1] * splat_f(NEAR_POINT / NEAR_DISTANCES);
    vec_f far_even = FMA_F(x[2], splat_f(FAR_SQUARE), x[0]) * splat_f(1 / FAR_DISTANCES);
    vec_f far_odd = x[1] * splat_f(FAR_POINT / FAR_DISTANCES);
    out[0] = x[0] * splat_f(1 / ORIGIN_DISTANCES);
    out[1] = near_even + near_odd;
    out[2] = near_even - near_odd;
    out[3] = far_even + far_odd;
    out[4] = far_even - far_odd;
    out[5] = x[2];
}

/* G g G' for `count` kernels and on to the end of a vector. Place (i, k) of the kernels lies at from + (3 * i
 * + k) * from_stride, which may be below 0. Element e of 36 goes to target + e * to_stride. */
static void winograd_weights_fours(int64_t count, void *target, int64_t to_stride, const float *from,
                                   int64_t from_stride)
{
    float *to = target;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[3][6], x[3], out[6];
        UNROLL for (int k = 0; k < 3; k++)
        {
            UNROLL for (int i = 0; i < 3; i++) x[i] = load_f(from + (3 * i + k) * from_stride + n);
            fours_weights(columns[k], x);
        }
        UNROLL for (int i = 0; i < 6; i++)
        {
            UNROLL for (int k = 0; k < 3; k++) x[k] = columns[k][i];
            fours_weights(out, x);
            UNROLL for (int k = 0; k < 6; k++) store_f(to + (6 * i + k) * to_stride + n, out[k]);
        }
    }
}

/* out = A' x: of six rows (or columns). */
static inline __attribute__((always_inline)) void fours_output(vec_f *out, const vec_f *x)
{
    vec_f near_even = x[1] + x[2], near_odd = (x[1] - x[2]) * splat_f(NEAR_POINT);
    vec_f far_even = x[3] + x[4], far_odd = (x[3] - x[4]) * splat_f(FAR_POINT);
    out[0] = x[0] + near_even + far_even;
    out[1] = near_odd + far_odd;
    out[2] = FMA_F(near_even, splat_f(NEAR_SQUARE), far_even * splat_f(FAR_SQUARE));
    out[3] = FMA_F(near_odd, splat_f(NEAR_SQUARE), FMA_F(far_odd, splat_f(FAR_SQUARE), x[5]));
}

/* A' M A + bias, kept between limits, for `count` tiles and on to the end of a vector: result (i, k) of the
 * tiles goes to to + (4 * i + k) * to_stride. */
static void winograd_output_fours(int64_t count, float *to, int64_t to_stride, const float *from,
                                  int64_t from_stride, float bias, sgm__limits limits)
{
    float low = (float)limits.low, high = (float)limits.high;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[6][4], x[6], out[4], shift = splat_f(bias);
        UNROLL for (int k = 0; k < 6; k++)
        {
            UNROLL for (int i = 0; i < 6; i++) x[i] = load_f(from + (6 * i + k) * from_stride + n);
            fours_output(columns[k], x);
        }
        UNROLL for (int i = 0; i < 4; i++)
        {
            UNROLL for (int k = 0; k < 6; k++) x[k] = columns[k][i];
            fours_output(out, x);
            UNROLL for (int k = 0; k < 4; k++)
                store_f(to + (4 * i + k) * to_stride + n, limit_f(out[k] + shift, low, high));
        }
    }
}

/* out = A x: of four rows (or columns). */
static inline __attribute__((always_inline)) void fours_results(vec_f *out, const vec_f *x)
{
    vec_f near_even = FMA_F(x[2], splat_f(NEAR_SQUARE), x[0]);
    vec_f near_odd = FMA_F(x[3], splat_f(NEAR_SQUARE), x[1]) * splat_f(NEAR_POINT);
    vec_f far_even = FMA_F(x[2], splat_f(FAR_SQUARE), x[0]);
    vec_f far_odd = FMA_F(x[3], splat_f(FAR_SQUARE), x[1]) * splat_f(FAR_POINT);
    out[0] = x[0];
    out[1] = near_even + near_odd;
    out[2] = near_even - near_odd;
    out[3] = far_even + far_odd;
    out[4] = far_even - far_odd;
    out[5] = x[3];
}

/* A y A' for `count` tiles and on to the end of a vector. Result (i, k) of the tiles lies in phase (i, k) of
 * `from`, `plane` numbers apart. Element e of 36 goes to target + e * to_stride. */
static void winograd_results_fours(int64_t count, void *target, int64_t to_stride, const float *from,
                                   int64_t plane)
{
    float *to = target;
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[4][6], x[4], out[6];
        UNROLL for (int k = 0; k < 4; k++)
        {
            UNROLL for (int i = 0; i < 4; i++) x[i] = load_f(from + (4 * i + k) * plane + n);
            fours_results(columns[k], x);
        }
        UNROLL for (int i = 0; i < 6; i++)
        {
            UNROLL for (int k = 0; k < 4; k++) x[k] = columns[k][i];
            fours_results(out, x);
            UNROLL for (int k = 0; k < 6; k++) store_f(to + (6 * i + k) * to_stride + n, out[k]);
        }
    }
}

/* out = G' x: of six rows (or columns). */
static inline __attribute__((always_inline)) void fours_kernels(vec_f *out, const vec_f *x)
{
    vec_f near_even = (x[1] + x[2]) * splat_f(1 / NEAR_DISTANCES);
    vec_f far_even = (x[3] + x[4]) * splat_f(1 / FAR_DISTANCES);
    vec_f near_odd = (x[1] - x[2]) * splat_f(NEAR_POINT / NEAR_DISTANCES);
    vec_f far_odd = (x[3] - x[4]) * splat_f(FAR_POINT / FAR_DISTANCES);
    out[0] = FMA_F(x[0], splat_f(1 / ORIGIN_DISTANCES), near_even + far_even);
    out[1] = near_odd + far_odd;
    out[2] = FMA_F(near_even, splat_f(NEAR_SQUARE), FMA_F(far_even, splat_f(FAR_SQUARE), x[5]));
}

/* G' s G for `count` kernels and on to the end of a vector: element e of 36 lies at from + e * from_stride,
 * place (i, k) of the kernels goes to to + (3 * i + k) * to_stride. */
static void winograd_kernels_fours(int64_t count, float *to, int64_t to_stride, const float *from,
                                   int64_t from_stride)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[6][3], x[6], out[3];
        UNROLL for (int k = 0; k < 6; k++)
        {
            UNROLL for (int i = 0; i < 6; i++) x[i] = load_f(from + (6 * i + k) * from_stride + n);
            fours_kernels(columns[k], x);
        }
        UNROLL for (int i = 0; i < 3; i++)
        {
            UNROLL for (int k = 0; k < 6; k++) x[k] = columns[k][i];
            fours_kernels(out, x);
            UNROLL for (int k = 0; k < 3; k++) store_f(to + (3 * i + k) * to_stride + n, out[k]);
        }
    }
}

#define WINOGRAD_FOURS_f32                                                                                   \
    {                                                                                                        \
        .input = winograd_input_fours, .weights = winograd_weights_fours, .results = winograd_results_fours, \
        .output = winograd_output_fours, .kernels = winograd_kernels_fours                                   \
    }
#define WINOGRAD_FOURS_f64                                                                                   \
    {                                                                                                        \
        .input = NULL                                                                                        \
    }

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
