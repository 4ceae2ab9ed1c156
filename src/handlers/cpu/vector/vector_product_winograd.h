/* Template: the transforms of convolutions of 3 x 3 by Winograd's minimal filtering, F(2 x 2, 3 x 3).
 * Internal.
 *
 * Lavin and Gray, 2016 ("Fast Algorithms for Convolutional Neural Networks"): a tile of 2 x 2 results Y of an
 * image's 4 x 4 pixels d and a kernel g is Y = A' [(G g G') * (B' d B)] A, where * multiplies element by
 * element. So 16 products take the place of 36, and summed over channels they are 16 matrix products. Lanes
 * are tiles, or channels of weights; kernels/convolution_winograd.c says where they lie. float32 only. */
#include "handlers/cpu/vector/vector.h"

/* out = B' x: of four rows (or columns). */
#define WINOGRAD_INPUT(out, x0, x1, x2, x3)                                                                  \
    do {                                                                                                     \
        (out)[0] = (x0) - (x2);                                                                              \
        (out)[1] = (x1) + (x2);                                                                              \
        (out)[2] = (x2) - (x1);                                                                              \
        (out)[3] = (x1) - (x3);                                                                              \
    } while (0)

/* B' d B for `count` tiles and on to the end of a vector. Pixel (i, k) of the tiles lies at from[i % 2][k %
 * 2] (phases, `plane` numbers apart), i / 2 rows of `pitch` numbers and k / 2 further. Element e of 16 goes
 * to to + e * to_stride. */
static void winograd_input_f32(int64_t count, float *to, int64_t to_stride, const float *from, int64_t plane,
                               int64_t pitch)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[4][4], out[4];
        UNROLL for (int k = 0; k < 4; k++)
        {
            const float *x = from + k % 2 * plane + k / 2 + n;
            vec_f d0 = load_f(x), d1 = load_f(x + 2 * plane);
            vec_f d2 = load_f(x + pitch), d3 = load_f(x + 2 * plane + pitch);
            WINOGRAD_INPUT(columns[k], d0, d1, d2, d3);
        }
        UNROLL for (int i = 0; i < 4; i++)
        {
            WINOGRAD_INPUT(out, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);
            UNROLL for (int k = 0; k < 4; k++) store_f(to + (4 * i + k) * to_stride + n, out[k]);
        }
    }
}

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

/* out = G x: of three rows (or columns). */
#define WINOGRAD_WEIGHTS(out, x0, x1, x2)                                                                    \
    do {                                                                                                     \
        vec_f outer = ((x0) + (x2)) * splat_f(0.5f), inner = (x1)*splat_f(0.5f);                             \
        (out)[0] = (x0);                                                                                     \
        (out)[1] = outer + inner;                                                                            \
        (out)[2] = outer - inner;                                                                            \
        (out)[3] = (x2);                                                                                     \
    } while (0)

/* G g G' for `count` kernels and on to the end of a vector. Place (i, k) of the kernels lies at from + (3 * i
 * + k) * from_stride, which may be below 0. Element e of 16 goes to to + e * to_stride. */
static void winograd_weights_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                 int64_t from_stride)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[3][4], out[4];
        UNROLL for (int k = 0; k < 3; k++)
        {
            const float *g = from + k * from_stride + n;
            WINOGRAD_WEIGHTS(columns[k], load_f(g), load_f(g + 3 * from_stride), load_f(g + 6 * from_stride));
        }
        UNROLL for (int i = 0; i < 4; i++)
        {
            WINOGRAD_WEIGHTS(out, columns[0][i], columns[1][i], columns[2][i]);
            UNROLL for (int k = 0; k < 4; k++) store_f(to + (4 * i + k) * to_stride + n, out[k]);
        }
    }
}

/* The other way round, for the gradient by the weights: that of g is G' [(A y A') * (B' d B)] G, summed over
 * all tiles, where y is the gradient of the results. */

/* out = A x: of two rows (or columns). */
#define WINOGRAD_RESULTS(out, x0, x1)                                                                        \
    do {                                                                                                     \
        (out)[0] = (x0);                                                                                     \
        (out)[1] = (x0) + (x1);                                                                              \
        (out)[2] = (x0) - (x1);                                                                              \
        (out)[3] = -(x1);                                                                                    \
    } while (0)

/* A y A' for `count` tiles and on to the end of a vector. Gradient (i, k) of the tiles lies at from[i][k], in
 * phases as above. Element e of 16 goes to to + e * to_stride. */
static void winograd_results_f32(int64_t count, float *to, int64_t to_stride, const float *from,
                                 int64_t plane)
{
    for (int64_t n = 0; n < count; n += LANES) {
        vec_f columns[2][4], out[4];
        UNROLL for (int k = 0; k < 2; k++)
        {
            const float *y = from + k * plane + n;
            WINOGRAD_RESULTS(columns[k], load_f(y), load_f(y + 2 * plane));
        }
        UNROLL for (int i = 0; i < 4; i++)
        {
            WINOGRAD_RESULTS(out, columns[0][i], columns[1][i]);
            UNROLL for (int k = 0; k < 4; k++) store_f(to + (4 * i + k) * to_stride + n, out[k]);
        }
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
