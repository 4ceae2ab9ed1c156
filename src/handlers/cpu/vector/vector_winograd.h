/* Template: macros that make the transforms of convolutions of 3 x 3 by Winograd's minimal filtering, F(2 x
 * 2, 3 x 3), for products of one type. Internal.
 *
 * Lavin and Gray, 2016 ("Fast Algorithms for Convolutional Neural Networks"): a tile of 2 x 2 results Y of an
 * image's 4 x 4 pixels d and a kernel g is Y = A' [(G g G') * (B' d B)] A, where * multiplies element by
 * element. So 16 products take the place of 36, and summed over channels they are 16 matrix products. Lanes
 * are tiles, or channels of weights; kernels/convolution_winograd.c says where they lie. What is transformed
 * is float32; `write` stores a vector of it as the `number`s that are multiplied.
 *
 * vector_product_winograd.h makes those of float32, vector_pairs.h those of bfloat16. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_WINOGRAD_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_WINOGRAD_H

#include "handlers/cpu/vector/vector_tile.h"

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
 * to target + e * to_stride. */
#define DEFINE_WINOGRAD_INPUT(name, number, write)                                                           \
    static void name(int64_t count, void *target, int64_t to_stride, const float *from, int64_t plane,       \
                     int64_t pitch)                                                                          \
    {                                                                                                        \
        number *to = target;                                                                                 \
        for (int64_t n = 0; n < count; n += LANES) {                                                         \
            vec_f columns[4][4], out[4];                                                                     \
            UNROLL for (int k = 0; k < 4; k++)                                                               \
            {                                                                                                \
                const float *x = from + k % 2 * plane + k / 2 + n;                                           \
                vec_f d0 = load_f(x), d1 = load_f(x + 2 * plane);                                            \
                vec_f d2 = load_f(x + pitch), d3 = load_f(x + 2 * plane + pitch);                            \
                WINOGRAD_INPUT(columns[k], d0, d1, d2, d3);                                                  \
            }                                                                                                \
            UNROLL for (int i = 0; i < 4; i++)                                                               \
            {                                                                                                \
                WINOGRAD_INPUT(out, columns[0][i], columns[1][i], columns[2][i], columns[3][i]);             \
                UNROLL for (int k = 0; k < 4; k++) write(to + (4 * i + k) * to_stride + n, out[k]);          \
            }                                                                                                \
        }                                                                                                    \
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
 * + k) * from_stride, which may be below 0. Element e of 16 goes to target + e * to_stride. */
#define DEFINE_WINOGRAD_WEIGHTS(name, number, write)                                                         \
    static void name(int64_t count, void *target, int64_t to_stride, const float *from, int64_t from_stride) \
    {                                                                                                        \
        number *to = target;                                                                                 \
        for (int64_t n = 0; n < count; n += LANES) {                                                         \
            vec_f columns[3][4], out[4];                                                                     \
            UNROLL for (int k = 0; k < 3; k++)                                                               \
            {                                                                                                \
                const float *g = from + k * from_stride + n;                                                 \
                WINOGRAD_WEIGHTS(columns[k], load_f(g), load_f(g + 3 * from_stride),                         \
                                 load_f(g + 6 * from_stride));                                               \
            }                                                                                                \
            UNROLL for (int i = 0; i < 4; i++)                                                               \
            {                                                                                                \
                WINOGRAD_WEIGHTS(out, columns[0][i], columns[1][i], columns[2][i]);                          \
                UNROLL for (int k = 0; k < 4; k++) write(to + (4 * i + k) * to_stride + n, out[k]);          \
            }                                                                                                \
        }                                                                                                    \
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
 * phases as above. Element e of 16 goes to target + e * to_stride. */
#define DEFINE_WINOGRAD_RESULTS(name, number, write)                                                         \
    static void name(int64_t count, void *target, int64_t to_stride, const float *from, int64_t plane)       \
    {                                                                                                        \
        number *to = target;                                                                                 \
        for (int64_t n = 0; n < count; n += LANES) {                                                         \
            vec_f columns[2][4], out[4];                                                                     \
            UNROLL for (int k = 0; k < 2; k++)                                                               \
            {                                                                                                \
                const float *y = from + k * plane + n;                                                       \
                WINOGRAD_RESULTS(columns[k], load_f(y), load_f(y + 2 * plane));                              \
            }                                                                                                \
            UNROLL for (int i = 0; i < 4; i++)                                                               \
            {                                                                                                \
                WINOGRAD_RESULTS(out, columns[0][i], columns[1][i]);                                         \
                UNROLL for (int k = 0; k < 4; k++) write(to + (4 * i + k) * to_stride + n, out[k]);          \
            }                                                                                                \
        }                                                                                                    \
    }

#endif
