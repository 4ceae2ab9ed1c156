/* Template: macros that make tiles of products whose left operand is read in place by offsets, as
 * convolutions need, and what brings their results to their places, for one type. Internal.
 *
 * A tile has up to six rows by up to GATHER_VECTORS vectors of sums, all in registers; for each step it loads
 * one row of the packed right operand and broadcasts one number of each of its rows from a[rows[i] +
 * steps[k]]. Convolution kernels (kernels/convolution.c) make the offsets. The wider a tile, the fewer loads
 * go with each multiplication: four vectors do 20 % more a second than two (docs/performance.md,
 * Convolutions).
 *
 * vector_product_gather.h makes those of float32 and float64, vector_pairs.h those of bfloat16, whose numbers
 * are pairs. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_GATHER_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_GATHER_H

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

#endif
