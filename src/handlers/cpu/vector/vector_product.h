/* Template: tiles of matrix products, small products without packing, and the packing of operands. Internal.
 *
 * A tile computes up to TILE_ROWS rows by two vectors (wide) or one (narrow) of c over `depth` steps, with
 * all sums in registers: per step it loads one or two vectors of b and broadcasts one number of each row of
 * a. There is one function for each number of rows, width and layout of a, all made from one macro, so that
 * rows are no loop and nothing is computed in vain. product/product.c cuts products into tiles; the structs
 * are in vector.h. The file that includes this one defines TILE_ROWS: 14 rows of two vectors take 28 of 32
 * registers, 6 rows 12 of 16. Every sum goes in the order of k. */
#include "handlers/cpu/vector/vector.h"

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

/* For row i: its sums, one step, and their way to c. `rows` is a constant, so that conditions vanish. */
#define ROW_DECLARE(i) vec left##i = {0}, right##i = {0};
#define ROW_STEP(i)                                                                                          \
    if (rows > i) {                                                                                          \
        vec factor = splat(layout == APART ? ROW_APART(i) : a[i]);                                           \
        left##i = fma(factor, b0, left##i);                                                                  \
        if (wide)                                                                                            \
            right##i = fma(factor, b1, right##i);                                                            \
    }
#define ROW_STORE(i)                                                                                         \
    if (rows > i) {                                                                                          \
        element *c = (element *)tile->c + i * tile->c_stride;                                                \
        store(c, tile->add ? load(c) + left##i : left##i);                                                   \
        if (wide)                                                                                            \
            store(c + lanes, tile->add ? load(c + lanes) + right##i : right##i);                             \
    }

/* One tile. `rows`, `wide`, `keeps` and `layout` are constants where it is inlined. APART fetches the line of
 * one row in each step, in turn; TRANSPOSED the first and last line of a step ahead. With `keeps` the rows of
 * b are stored contiguously while they are read, and rows ahead are fetched. */
#define DEFINE_TILE(name, element_type, vector, letter, LETTER, lane_count)                                  \
    static inline __attribute__((always_inline)) void name(const sgm__tile *tile, int rows, bool wide,       \
                                                           bool keeps, int layout)                           \
    {                                                                                                        \
        typedef element_type element;                                                                        \
        typedef vector vec;                                                                                  \
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

#define UNROLL _Pragma("GCC unroll 16")
#define load load_f
#define load_part load_part_f
#define store_part store_part_f
#define store store_f
#define splat splat_f
#define fma FMA_F
DEFINE_TILE(tile_f32, float, vec_f, f, F, LANES)
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
DEFINE_TILE(tile_f64, double, vec_d, d, D, LANES_D)
DEFINE_SMALL(small_f64, double, vec_d, LANES_D)
#undef load
#undef load_part
#undef store_part
#undef store
#undef splat
#undef fma

/* Functions for each width and layout, named for the tables below. */
#define DEFINE_TILES_OF(type, name, layout, rows)                                                            \
    static void wide_##name##_##type##_##rows(const sgm__tile *tile)                                         \
    {                                                                                                        \
        tile_##type(tile, rows, true, false, layout);                                                        \
    }                                                                                                        \
    static void narrow_##name##_##type##_##rows(const sgm__tile *tile)                                       \
    {                                                                                                        \
        tile_##type(tile, rows, false, false, layout);                                                       \
    }
#define DEFINE_TILES(rows)                                                                                   \
    DEFINE_TILES_OF(f32, packed, PACKED, rows)                                                               \
    DEFINE_TILES_OF(f32, transposed, TRANSPOSED, rows)                                                       \
    DEFINE_TILES_OF(f32, apart, APART, rows)                                                                 \
    DEFINE_TILES_OF(f64, packed, PACKED, rows)                                                               \
    DEFINE_TILES_OF(f64, transposed, TRANSPOSED, rows)                                                       \
    DEFINE_TILES_OF(f64, apart, APART, rows)
DEFINE_TILES(1)
DEFINE_TILES(2)
DEFINE_TILES(3)
DEFINE_TILES(4)
DEFINE_TILES(5)
DEFINE_TILES(6)
#if TILE_ROWS == 14
DEFINE_TILES(7)
DEFINE_TILES(8)
DEFINE_TILES(9)
DEFINE_TILES(10)
DEFINE_TILES(11)
DEFINE_TILES(12)
DEFINE_TILES(13)
DEFINE_TILES(14)
#define TILE_TABLE(kind)                                                                                     \
    {                                                                                                        \
        kind##_1, kind##_2, kind##_3, kind##_4, kind##_5, kind##_6, kind##_7, kind##_8, kind##_9, kind##_10, \
            kind##_11, kind##_12, kind##_13, kind##_14                                                       \
    }
#else
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

/* --- packing --- */

/* Packs rows of `width` contiguous numbers, `stride` apart, filled up with zeros to `padded`. */
#define DEFINE_COPY_ROWS(name, element, letter, lanes)                                                       \
    static void name(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,        \
                     int64_t depth)                                                                          \
    {                                                                                                        \
        for (int64_t k = 0; k < depth; k++) {                                                                \
            element *to = (element *)target + k * padded;                                                    \
            const element *from = (const element *)source + k * stride;                                      \
            int64_t i = 0;                                                                                   \
            for (; i + (lanes) <= width; i += (lanes))                                                       \
                store_##letter(to + i, load_##letter(from + i));                                             \
            for (int64_t left = width - i; i < padded; i += (lanes), left = 0)                               \
                store_part_##letter(to + i, load_part_##letter(from + i, left),                              \
                                    padded - i < (lanes) ? padded - i : (lanes));                            \
        }                                                                                                    \
    }
DEFINE_COPY_ROWS(copy_rows_f32, float, f, LANES)
DEFINE_COPY_ROWS(copy_rows_f64, double, d, LANES_D)

#if VECTOR_BYTES == 64
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15                                                 \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7                                                                               \
    }
#elif VECTOR_BYTES == 32
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7                                                                               \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3                                                                                           \
    }
#else
#define LANE_NUMBERS_f                                                                                       \
    {                                                                                                        \
        0, 1, 2, 3                                                                                           \
    }
#define LANE_NUMBERS_d                                                                                       \
    {                                                                                                        \
        0, 1                                                                                                 \
    }
#endif

/* Transposes a square of as many rows as a vector has lanes, in registers: in stage d = lanes / 2, ..., 2, 1
 * rows i and i + d exchange the lanes in which bit d of the number differs. `_part`: rows from `filled` on
 * count as zeros, and of each row of the result the first `kept` elements are stored. */
#define DEFINE_SQUARE(name, element, letter, integer, lanes)                                                 \
    static inline void name##_lanes(vec_##letter *rows)                                                      \
    {                                                                                                        \
        UNROLL for (int d = (lanes) / 2; d > 0; d /= 2)                                                      \
        {                                                                                                    \
            const vec_##integer lane = LANE_NUMBERS_##letter, upper = (lane & d) != 0;                       \
            const vec_##integer low = lane + (upper & ((lanes)-d));                                          \
            const vec_##integer high = lane + d + (upper & ((lanes)-d));                                     \
            UNROLL for (int i = 0; i < (lanes); i++)                                                         \
            {                                                                                                \
                if ((i & d) != 0)                                                                            \
                    continue;                                                                                \
                vec_##letter a = rows[i], b = rows[i + d];                                                   \
                rows[i] = SHUFFLE_##letter(a, b, low);                                                       \
                rows[i + d] = SHUFFLE_##letter(a, b, high);                                                  \
            }                                                                                                \
        }                                                                                                    \
    }                                                                                                        \
    static void name(element *to, int64_t to_stride, const element *from, int64_t stride)                    \
    {                                                                                                        \
        vec_##letter rows[lanes];                                                                            \
        UNROLL for (int i = 0; i < (lanes); i++, from += stride) rows[i] = load_##letter(from);              \
        name##_lanes(rows);                                                                                  \
        UNROLL for (int i = 0; i < (lanes); i++, to += to_stride) store_##letter(to, rows[i]);               \
    }                                                                                                        \
    static void name##_part(element *to, int64_t to_stride, int64_t kept, const element *from,               \
                            int64_t stride, int64_t filled)                                                  \
    {                                                                                                        \
        static const element zeros[lanes];                                                                   \
        vec_##letter rows[lanes];                                                                            \
        UNROLL for (int i = 0; i < (lanes); i++) rows[i] =                                                   \
            load_##letter(i < filled ? from + i * stride : zeros);                                           \
        name##_lanes(rows);                                                                                  \
        UNROLL for (int i = 0; i < (lanes); i++, to += to_stride) store_part_##letter(to, rows[i], kept);    \
    }

/* Packs by transposing: squares, then squares with missing rows, then steps that do not fill a square
 * (`_edge`), which go by way of memory that is large enough. */
#define DEFINE_TRANSPOSE(name, square, element, letter, lanes)                                               \
    static void name##_edge(element *to, int64_t padded, int64_t kept, const element *from, int64_t stride,  \
                            int64_t filled, int64_t steps)                                                   \
    {                                                                                                        \
        element in[(lanes) * (lanes)], out[(lanes) * (lanes)];                                               \
        for (int64_t i = 0; i < (lanes); i++) {                                                              \
            vec_##letter row = {0};                                                                          \
            if (i < filled)                                                                                  \
                row = steps == (lanes) ? load_##letter(from + i * stride)                                    \
                                       : load_part_##letter(from + i * stride, steps);                       \
            store_##letter(in + i * (lanes), row);                                                           \
        }                                                                                                    \
        square(out, lanes, in, lanes);                                                                       \
        for (int64_t k = 0; k < steps; k++)                                                                  \
            store_part_##letter(to + k * padded, load_##letter(out + k * (lanes)), kept);                    \
    }                                                                                                        \
    static void name(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,        \
                     int64_t depth)                                                                          \
    {                                                                                                        \
        for (int64_t i = 0; i < padded; i += (lanes)) {                                                      \
            int64_t filled = sgm__minimum(width - i, lanes);                                                 \
            int64_t kept = sgm__minimum(padded - i, lanes);                                                  \
            const element *from = (const element *)source + i * stride;                                      \
            element *to = (element *)target + i;                                                             \
            int64_t k = 0;                                                                                   \
            for (; filled == (lanes) && k + (lanes) <= depth; k += (lanes))                                  \
                square(to + k * padded, padded, from + k, stride);                                           \
            for (; k + (lanes) <= depth; k += (lanes))                                                       \
                square##_part(to + k * padded, padded, kept, from + k, stride, filled);                      \
            for (; k < depth; k += (lanes))                                                                  \
                name##_edge(to + k * padded, padded, kept, from + k, stride, filled,                         \
                            sgm__minimum(depth - k, lanes));                                                 \
        }                                                                                                    \
    }
DEFINE_SQUARE(square_f32, float, f, i, LANES)
DEFINE_SQUARE(square_f64, double, d, l, LANES_D)
DEFINE_TRANSPOSE(transpose_f32, square_f32, float, f, LANES)
DEFINE_TRANSPOSE(transpose_f64, square_f64, double, d, LANES_D)
