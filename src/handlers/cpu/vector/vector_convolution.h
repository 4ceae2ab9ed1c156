/* Template: macros that make what convolutions of one type need. Internal.
 *
 * - Tiles of products whose left operand is read in place by offsets, and what brings their results to their
 *   places. A tile has up to six rows by up to GATHER_VECTORS vectors of sums, all in registers; for each
 * step it loads one row of the packed right operand and broadcasts one number of each of its rows from
 * a[rows[i]
 *   + steps[k]]. Convolution kernels (kernels/convolution/convolution.c) make the offsets. The wider a tile,
 * the fewer loads go with each multiplication: four vectors do 20 % more a second than two
 * (docs/performance.md, Convolutions).
 * - The transforms of convolutions of 3 x 3 by Winograd's minimal filtering, F(2 x 2, 3 x 3). Lavin and Gray,
 *   2016 ("Fast Algorithms for Convolutional Neural Networks"): a tile of 2 x 2 results Y of an image's 4 x 4
 *   pixels d and a kernel g is Y = A' [(G g G') * (B' d B)] A, where * multiplies element by element. So 16
 *   products take the place of 36, and summed over channels they are 16 matrix products. Lanes are tiles, or
 *   channels of weights; kernels/convolution/convolution_winograd.c says where they lie. What is transformed
 * is float32; `write` stores a vector of it as the `number`s that are multiplied.
 *
 * vector_product_convolution.h makes those of float32 and float64, vector_pairs.h those of bfloat16, whose
 * numbers are pairs. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_CONVOLUTION_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_CONVOLUTION_H

#include "handlers/cpu/vector/vector_packing.h"
#include "handlers/cpu/vector/vector_tile.h"

#if TILE_ROWS == 14
#define GATHER_VECTORS 4 /* of a wide panel: 6 x 4 of 32 registers are sums */
#else
#define GATHER_VECTORS 2
#endif

/* One tile: sums in registers over all steps, then stored, or added to c. `rows` and `vectors` are constants
 * where this is inlined, so that the loops unroll. Letters name the loads and stores of the numbers and of
 * the sums; multiply(a, b, sum) is a step. */
#define DEFINE_GATHER(name, element, vector, letter, sum_element, sum_vector, sum_letter, multiply, lanes)   \
    static inline __attribute__((always_inline)) void name(const sgm__gather *t, int rows, int vectors)      \
    {                                                                                                        \
        const element *a[SGM__GATHER_ROWS], *b = t->b;                                                       \
        sum_vector sums[SGM__GATHER_ROWS][GATHER_VECTORS];                                                   \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            a[i] = (const element *)t->a + t->rows[i];                                                       \
            UNROLL for (int v = 0; v < vectors; v++) sums[i][v] = (sum_vector){0};                           \
        }                                                                                                    \
        for (int64_t k = 0; k < t->depth; k++) {                                                             \
            int64_t step = t->steps[k];                                                                      \
            vector right[GATHER_VECTORS];                                                                    \
            UNROLL for (int v = 0; v < vectors; v++) right[v] = load_##letter(b + v * (lanes));              \
            UNROLL for (int i = 0; i < rows; i++)                                                            \
            {                                                                                                \
                vector factor = splat_##letter(a[i][step]);                                                  \
                UNROLL for (int v = 0; v < vectors; v++) sums[i][v] =                                        \
                    multiply(factor, right[v], sums[i][v]);                                                  \
            }                                                                                                \
            b += vectors * (lanes);                                                                          \
        }                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            sum_element *c = (sum_element *)t->c + t->c_rows[i] * vectors * (lanes);                         \
            UNROLL for (int v = 0; v < vectors; v++, c += (lanes))                                           \
                store_##sum_letter(c, t->add ? load_##sum_letter(c) + sums[i][v] : sums[i][v]);              \
        }                                                                                                    \
    }

/* A function for each number of rows and both widths. */
#define DEFINE_GATHER_ROWS(type, rows)                                                                       \
    static void gather_wide_##type##_##rows(const sgm__gather *t)                                            \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS);                                                              \
    }                                                                                                        \
    static void gather_narrow_##type##_##rows(const sgm__gather *t)                                          \
    {                                                                                                        \
        gather_##type(t, rows, GATHER_VECTORS / 2);                                                          \
    }
#define DEFINE_GATHERS(type)                                                                                 \
    DEFINE_GATHER_ROWS(type, 1)                                                                              \
    DEFINE_GATHER_ROWS(type, 2)                                                                              \
    DEFINE_GATHER_ROWS(type, 3)                                                                              \
    DEFINE_GATHER_ROWS(type, 4)                                                                              \
    DEFINE_GATHER_ROWS(type, 5)                                                                              \
    DEFINE_GATHER_ROWS(type, 6)
#define GATHER_TABLE(kind)                                                                                   \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6                                           \
    }

/* to[r * to_stride + c] = from[c * from_stride + r] + biases[r], kept between limits: squares of as many rows
 * as a vector has lanes are transposed into `block`; at the right edge by way of `edge`, which has zeros
 * where columns end. Rows of `from` may be read to the end of a vector. `number` is the type of results and
 * biases, with its stores, and `read` a bias; `element` that of the sums. */
#define DEFINE_SPREAD(name, square, element, vector, letter, lanes, number, write, write_part, read)         \
    static void name(void *target, int64_t to_stride, const void *source, int64_t from_stride, int64_t rows, \
                     int64_t columns, const void *biases, sgm__limits limits)                                \
    {                                                                                                        \
        element block[(lanes) * (lanes)], edge[(lanes) * (lanes)];                                           \
        for (int64_t r = 0; r < rows; r += (lanes))                                                          \
            for (int64_t c = 0; c < columns; c += (lanes)) {                                                 \
                const element *from = (const element *)source + c * from_stride + r;                         \
                number *to = (number *)target + r * to_stride + c;                                           \
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
                    element bias = biases != NULL ? read(((const number *)biases)[r + i]) : 0;               \
                    vector row = load_##letter(block + i * (lanes)) + splat_##letter(bias);                  \
                    row = limit_##letter(row, (element)limits.low, (element)limits.high);                    \
                    if (filled == (lanes))                                                                   \
                        write(to, row);                                                                      \
                    else                                                                                     \
                        write_part(to, row, filled);                                                         \
                }                                                                                            \
            }                                                                                                \
    }

/* --- Winograd --- */

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
