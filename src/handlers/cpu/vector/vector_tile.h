/* Template: macros that make the functions of tiles of one type. Internal.
 *
 * A tile computes up to TILE_ROWS rows by two vectors (wide) or one (narrow) of c over `depth` steps, with
 * all sums in registers: per step it loads one or two vectors of b and broadcasts one element of each row of
 * a. There is one function for each number of rows, width and layout of a, all made from one macro, so that
 * rows are no loop and nothing is computed in vain. product/product.c cuts products into tiles; the structs
 * are in vector.h. The file that includes the templates defines TILE_ROWS: 14 rows of two vectors take 28 of
 * 32 registers, 6 rows 12 of 16. Every sum goes in the order of k.
 *
 * vector_product.h makes those of float32 and float64, vector_pairs.h those of bfloat16. Before DEFINE_TILE
 * they define load, store, splat and fma for their type, and ROW_STORE(i), the way of row i's sums to c. */
#ifndef SGM_HANDLERS_CPU_VECTOR_VECTOR_TILE_H
#define SGM_HANDLERS_CPU_VECTOR_VECTOR_TILE_H

#include "handlers/cpu/vector/vector.h"

#define UNROLL _Pragma("GCC unroll 16")
/* Rows as a list of names, since sums that shall be registers are variables of their own, not an array. */
#define TILE_ROW_LIST(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

/* How far ahead tiles fetch an a that is not packed: so many steps of an a whose columns are contiguous, so
 * many bytes of each row of an a whose rows are. */
#define TRANSPOSED_STEPS 32
#define BYTES_AHEAD 128

/* How a lies. PACKED: panels. TRANSPOSED: in place, the rows of a step contiguous as in a panel, but steps
 * far from each other. APART: in place, the steps of a row contiguous, rows far from each other. */
enum { PACKED, TRANSPOSED, APART };

/* The number of row i of an a whose rows are apart. An address of x86 is a register plus 1, 2, 4 or 8 times
 * another one; so two pointers (rows 0 and 7) and three distances (1, 3 and 5 rows) reach all 14 rows. */
#define ROW_APART(i)                                                                                         \
    *(const element *)(((i) < 7 ? upper : lower) + ((i) % 7 == 0   ? 0                                       \
                                                    : (i) % 7 == 1 ? row                                     \
                                                    : (i) % 7 == 2 ? 2 * row                                 \
                                                    : (i) % 7 == 3 ? three_rows                              \
                                                    : (i) % 7 == 4 ? 4 * row                                 \
                                                    : (i) % 7 == 5 ? five_rows                               \
                                                                   : 2 * three_rows))
/* Hides from the compiler where a variable comes from: else it computes the addresses of all rows before the
 * loop, more than there are registers. */
#define HOLD(variable) __asm__("" : "+r"(variable))

/* For row i: its sums, and one step. `rows` is a constant, so that conditions vanish. */
#define ROW_DECLARE(i) sums left##i = {0}, right##i = {0};
#define ROW_STEP(i)                                                                                          \
    if (rows > i) {                                                                                          \
        vec factor = splat(layout == APART ? ROW_APART(i) : a[i]);                                           \
        left##i = fma(factor, b0, left##i);                                                                  \
        if (wide)                                                                                            \
            right##i = fma(factor, b1, right##i);                                                            \
    }

/* One tile of elements in vectors of one type, with sums in vectors of another or the same. `rows`, `wide`,
 * `keeps` and `layout` are constants where it is inlined. APART fetches the line of one row in each step, in
 * turn; TRANSPOSED the first and last line of a step ahead. With `keeps` the rows of b are stored
 * contiguously while they are read, and rows ahead are fetched. */
#define DEFINE_TILE(name, element_type, vector, sums_type, lane_count)                                       \
    static inline __attribute__((always_inline)) void name(const sgm__tile *tile, int rows, bool wide,       \
                                                           bool keeps, int layout)                           \
    {                                                                                                        \
        typedef element_type element;                                                                        \
        typedef vector vec;                                                                                  \
        typedef sums_type sums;                                                                              \
        enum { lanes = lane_count };                                                                         \
        const element *a = tile->a, *b = tile->b;                                                            \
        element *keep = tile->keep;                                                                          \
        int64_t row = tile->a_row * (int64_t)sizeof *a, three_rows = 3 * row, five_rows = 5 * row;           \
        const char *upper = tile->a, *lower = upper + 7 * row, *ahead = upper;                               \
        int64_t fetched_rows = tile->keep_ahead * tile->b_stride;                                            \
        int fetched = rows;                                                                                  \
        if (layout == APART) {                                                                               \
            HOLD(row);                                                                                       \
            HOLD(three_rows);                                                                                \
            HOLD(five_rows);                                                                                 \
        }                                                                                                    \
        TILE_ROW_LIST(ROW_DECLARE)                                                                           \
        for (int64_t k = 0; k < tile->depth; k++) {                                                          \
            if (layout == APART) {                                                                           \
                ahead = fetched < rows ? ahead + row : upper + BYTES_AHEAD;                                  \
                fetched = fetched < rows ? fetched + 1 : 1;                                                  \
                __builtin_prefetch(ahead);                                                                   \
            }                                                                                                \
            if (layout == TRANSPOSED) {                                                                      \
                __builtin_prefetch(a + TRANSPOSED_STEPS * tile->a_step);                                     \
                __builtin_prefetch(a + TRANSPOSED_STEPS * tile->a_step + rows - 1);                          \
            }                                                                                                \
            vec b0 = load(b), b1 = wide ? load(b + lanes) : b0;                                              \
            if (keeps) {                                                                                     \
                __builtin_prefetch(b + fetched_rows);                                                        \
                __builtin_prefetch(b + fetched_rows + lanes);                                                \
                store(keep, b0);                                                                             \
                store(keep + lanes, b1);                                                                     \
                keep += 2 * lanes;                                                                           \
            }                                                                                                \
            TILE_ROW_LIST(ROW_STEP)                                                                          \
            if (layout == APART) {                                                                           \
                upper += sizeof(element);                                                                    \
                lower += sizeof(element);                                                                    \
                HOLD(upper);                                                                                 \
                HOLD(lower);                                                                                 \
            } else {                                                                                         \
                a += tile->a_step;                                                                           \
            }                                                                                                \
            b += tile->b_stride;                                                                             \
        }                                                                                                    \
        TILE_ROW_LIST(ROW_STORE)                                                                             \
    }

/* Functions for each width and number of rows, named for the tables. */
#define DEFINE_TILES_OF(type, name, layout, rows)                                                            \
    static void wide_##name##_##type##_##rows(const sgm__tile *tile)                                         \
    {                                                                                                        \
        tile_##type(tile, rows, true, false, layout);                                                        \
    }                                                                                                        \
    static void narrow_##name##_##type##_##rows(const sgm__tile *tile)                                       \
    {                                                                                                        \
        tile_##type(tile, rows, false, false, layout);                                                       \
    }
#define DEFINE_SIX_TILES(type, name, layout)                                                                 \
    DEFINE_TILES_OF(type, name, layout, 1)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 2)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 3)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 4)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 5)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 6)
#if TILE_ROWS == 14
#define DEFINE_TILES(type, name, layout)                                                                     \
    DEFINE_SIX_TILES(type, name, layout)                                                                     \
    DEFINE_TILES_OF(type, name, layout, 7)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 8)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 9)                                                                   \
    DEFINE_TILES_OF(type, name, layout, 10)                                                                  \
    DEFINE_TILES_OF(type, name, layout, 11)                                                                  \
    DEFINE_TILES_OF(type, name, layout, 12)                                                                  \
    DEFINE_TILES_OF(type, name, layout, 13)                                                                  \
    DEFINE_TILES_OF(type, name, layout, 14)
#define TILE_TABLE(kind)                                                                                     \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6, kind##_7, kind##_8, kind##_9, kind##_10, \
            kind##_11, kind##_12, kind##_13, kind##_14                                                       \
    }
#else
#define DEFINE_TILES(type, name, layout) DEFINE_SIX_TILES(type, name, layout)
#define TILE_TABLE(kind)                                                                                     \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6                                           \
    }
#endif
/* The largest wide tile, which also stores b. */
#define DEFINE_KEEP(type, name, layout)                                                                      \
    static void keep_##name##_##type(const sgm__tile *tile)                                                  \
    {                                                                                                        \
        tile_##type(tile, TILE_ROWS, true, true, layout);                                                    \
    }

#endif
