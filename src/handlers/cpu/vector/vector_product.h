/* Template: tiles of matrix products, small products without packing, and the packing of operands, of float32
 * and float64. Internal.
 *
 * Tiles and packing are made by the macros of vector_tile.h and vector_packing.h. */
#include "handlers/cpu/vector/vector_packing.h"
#include "handlers/cpu/vector/vector_tile.h"

/* The sums of row i, or their sum with c, to c. */
#define ROW_STORE(i)                                                                                         \
    if (rows > i) {                                                                                          \
        element *c = (element *)tile->c + i * tile->c_stride;                                                \
        store(c, tile->add ? load(c) + left##i : left##i);                                                   \
        if (wide)                                                                                            \
            store(c + lanes, tile->add ? load(c + lanes) + right##i : right##i);                             \
    }

#if VECTOR_BYTES == 64
#define SMALL_PAIRS 8 /* rows with two vectors of sums each: as many as there are registers for */
#else
#define SMALL_PAIRS 4
#endif
/* Small products, read where they lie. `_rows` computes 4 or 8 rows of c by one vector of columns, of which
 * the last may be partial; if fewer rows are left, the last one is computed again and not stored. `_pairs`
 * computes SMALL_PAIRS rows by two whole vectors, where a number of a serves two multiplications. The
 * function itself goes over columns, then rows. */
#define DEFINE_SMALL(name, element_type, vector, lane_count)                                                 \
    static inline __attribute__((always_inline)) void name##_rows(const sgm__small_product *p, int64_t row,  \
                                                                  int64_t column, int rows)                  \
    {                                                                                                        \
        typedef element_type element;                                                                        \
        enum { lanes = lane_count };                                                                         \
        int64_t filled = p->n - column < lanes ? p->n - column : lanes, left = p->m - row;                   \
        const element *b = (const element *)p->b + column, *a[8];                                            \
        vector sums[8];                                                                                      \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            a[i] = (const element *)p->a + (row + (i < left ? i : left - 1)) * p->a_row;                     \
            sums[i] = (vector){0};                                                                           \
        }                                                                                                    \
        for (int64_t k = 0; k < p->k; k++, b += p->b_row) {                                                  \
            vector y = filled == lanes ? load(b) : load_part(b, filled);                                     \
            UNROLL for (int i = 0; i < rows; i++) sums[i] = fma(splat(a[i][k * p->a_column]), y, sums[i]);   \
        }                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            element *c = (element *)p->c + (row + i) * p->c_row + column;                                    \
            if (i < left && filled == lanes)                                                                 \
                store(c, sums[i]);                                                                           \
            else if (i < left)                                                                               \
                store_part(c, sums[i], filled);                                                              \
        }                                                                                                    \
    }                                                                                                        \
    static inline __attribute__((always_inline)) void name##_pairs(const sgm__small_product *p, int64_t row, \
                                                                   int64_t column, int rows)                 \
    {                                                                                                        \
        typedef element_type element;                                                                        \
        enum { lanes = lane_count };                                                                         \
        const element *b = (const element *)p->b + column, *a[8];                                            \
        vector sums[8], more[8];                                                                             \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            a[i] = (const element *)p->a + (row + i) * p->a_row;                                             \
            sums[i] = more[i] = (vector){0};                                                                 \
        }                                                                                                    \
        for (int64_t k = 0; k < p->k; k++, b += p->b_row) {                                                  \
            vector y = load(b), z = load(b + lanes);                                                         \
            UNROLL for (int i = 0; i < rows; i++)                                                            \
            {                                                                                                \
                vector x = splat(a[i][k * p->a_column]);                                                     \
                sums[i] = fma(x, y, sums[i]);                                                                \
                more[i] = fma(x, z, more[i]);                                                                \
            }                                                                                                \
        }                                                                                                    \
        UNROLL for (int i = 0; i < rows; i++)                                                                \
        {                                                                                                    \
            element *c = (element *)p->c + (row + i) * p->c_row + column;                                    \
            store(c, sums[i]);                                                                               \
            store(c + lanes, more[i]);                                                                       \
        }                                                                                                    \
    }                                                                                                        \
    static void name(const sgm__small_product *p)                                                            \
    {                                                                                                        \
        for (int64_t column = 0, wide; column < p->n; column += wide) {                                      \
            int64_t row = 0;                                                                                 \
            wide = p->n - column >= 2 * lane_count && p->m >= SMALL_PAIRS ? 2 * lane_count : lane_count;     \
            for (; wide > lane_count && row + SMALL_PAIRS <= p->m; row += SMALL_PAIRS)                       \
                name##_pairs(p, row, column, SMALL_PAIRS);                                                   \
            for (int64_t at = column; at < column + wide; at += lane_count) {                                \
                int64_t rest = row;                                                                          \
                for (; rest + 4 < p->m; rest += 8)                                                           \
                    name##_rows(p, rest, at, 8);                                                             \
                if (rest < p->m)                                                                             \
                    name##_rows(p, rest, at, 4);                                                             \
            }                                                                                                \
        }                                                                                                    \
    }

#define load load_f
#define load_part load_part_f
#define store_part store_part_f
#define store store_f
#define splat splat_f
#define fma FMA_F
DEFINE_TILE(tile_f32, float, vec_f, vec_f, LANES)
DEFINE_SMALL(small_f32, float, vec_f, LANES)
#undef load
#undef load_part
#undef store_part
#undef store
#undef splat
#undef fma
#define load load_d
#define load_part load_part_d
#define store_part store_part_d
#define store store_d
#define splat splat_d
#define fma FMA_D
DEFINE_TILE(tile_f64, double, vec_d, vec_d, LANES_D)
DEFINE_SMALL(small_f64, double, vec_d, LANES_D)
#undef load
#undef load_part
#undef store_part
#undef store
#undef splat
#undef fma
#undef ROW_STORE

#define DEFINE_ROW(name, element, vector, letter, LETTER, lanes)                                             \
    static void name(const sgm__tile *t, int64_t apart)                                                      \
    {                                                                                                        \
        const element *a = t->a, *b = t->b;                                                                  \
        element *c = t->c;                                                                                   \
        vector sums[2 * SGM__ROW_PANELS];                                                                    \
        UNROLL for (int i = 0; i < 2 * SGM__ROW_PANELS; i++) sums[i] = (vector){0};                          \
        for (int64_t k = 0; k < t->depth; k++, b += 2 * (lanes)) {                                           \
            vector x = splat_##letter(a[k * t->a_step]);                                                     \
            UNROLL for (int i = 0; i < 2 * SGM__ROW_PANELS; i++) sums[i] =                                   \
                FMA_##LETTER(x, load_##letter(b + i / 2 * apart + i % 2 * (lanes)), sums[i]);                \
        }                                                                                                    \
        UNROLL for (int i = 0; i < 2 * SGM__ROW_PANELS; i++, c += (lanes))                                   \
            store_##letter(c, t->add ? load_##letter(c) + sums[i] : sums[i]);                                \
    }
DEFINE_ROW(row_f32, float, vec_f, f, F, LANES)
DEFINE_ROW(row_f64, double, vec_d, d, D, LANES_D)

DEFINE_TILES(f32, packed, PACKED)
DEFINE_TILES(f32, transposed, TRANSPOSED)
DEFINE_TILES(f32, apart, APART)
DEFINE_TILES(f64, packed, PACKED)
DEFINE_TILES(f64, transposed, TRANSPOSED)
DEFINE_TILES(f64, apart, APART)
DEFINE_KEEP(f32, packed, PACKED)
DEFINE_KEEP(f32, transposed, TRANSPOSED)
DEFINE_KEEP(f32, apart, APART)
DEFINE_KEEP(f64, packed, PACKED)
DEFINE_KEEP(f64, transposed, TRANSPOSED)
DEFINE_KEEP(f64, apart, APART)

#define TILE_FUNCTIONS(name, type)                                                                           \
    {                                                                                                        \
        TILE_TABLE(wide_##name##_##type), TILE_TABLE(narrow_##name##_##type), keep_##name##_##type           \
    }

DEFINE_COPY_ROWS(copy_rows_f32, float, f, LANES)
DEFINE_COPY_ROWS(copy_rows_f64, double, d, LANES_D)
DEFINE_SQUARE(square_f32, float, f, i, LANES)
DEFINE_SQUARE(square_f64, double, d, l, LANES_D)
DEFINE_TRANSPOSE(transpose_f32, square_f32, float, f, LANES)
DEFINE_TRANSPOSE(transpose_f64, square_f64, double, d, LANES_D)
