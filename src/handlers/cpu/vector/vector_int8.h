/* Template: tiles of products of integers of 8 bits, and the rounding of rows to such. Internal.
 *
 * A file that includes this says how wide its vectors are (VECTOR_BYTES) and, where the processor has
 * instructions for it, how four products at a time are added to each sum (INT8_STEP); else plain vectors do.
 * All give the same bits: sums are exact, and what is computed in float32 is one multiplication or addition
 * at a time. Weights are signed (-127 to 127), or, for the instruction vpdpbusd, which wants one unsigned
 * side, larger by 128 (INT8_UNSIGNED): sums of a row are then too large by 128 times the sum of the row's
 * codes. */
#include "base/base.h"
#include "handlers/cpu/vector/vector.h"

#define INT8_LANES (VECTOR_BYTES / 4)
/* Vectors of a panel's columns. */
#define INT8_VECTORS (SGM__INT8_COLUMNS / INT8_LANES)

typedef int32_t int8_sums __attribute__((vector_size(VECTOR_BYTES)));
typedef float int8_floats __attribute__((vector_size(VECTOR_BYTES)));
typedef int8_sums int8_sums_anywhere __attribute__((aligned(4), may_alias));
typedef int8_floats int8_floats_anywhere __attribute__((aligned(4), may_alias));
typedef uint32_t int8_bits __attribute__((may_alias));

/* sum + the products of four codes of a row, in `x`, and those of each column, four bytes of `weights` from
 * the lowest on. Two products of neighbours fit into 16 bits: 2 * 127 * 127. */
#ifndef INT8_STEP
#define INT8_STEP(sum, weights, x) step_int8(sum, weights, x)
typedef int16_t int8_halves __attribute__((vector_size(VECTOR_BYTES)));
static inline int8_sums step_int8(int8_sums sum, int8_sums weights, int32_t x)
{
    int8_halves w = (int8_halves)weights, codes = (int8_halves)(x + (int8_sums){0});
    int8_sums pairs = (int8_sums)((w << 8 >> 8) * (codes << 8 >> 8) + (w >> 8) * (codes >> 8));
    return sum + (pairs << 16 >> 16) + (pairs >> 16);
}
#endif

/* Group `group` of row `row`. */
static inline int32_t codes_int8(const sgm__int8_tile *t, int64_t row, int64_t group)
{
    int32_t x;
    memcpy(&x, t->a + row * t->a_row + group * SGM__INT8_GROUP, sizeof x);
    return x;
}

/* Bytes ahead of a tile of few rows from which its weights are fetched. Such a tile waits for memory longer
 * than it multiplies; this is further than the processor fetches by itself, also into the next panel. Tiles
 * of more rows read a panel several times, or have enough to do meanwhile. */
#define INT8_AHEAD 2048
#define INT8_FEW_ROWS 4

/* Adds one group to the sums of all rows. */
static inline __attribute__((always_inline)) void add_int8(const sgm__int8_tile *t, int32_t rows,
                                                           int64_t group, int8_sums (*sums)[INT8_VECTORS])
{
    const unsigned char *b = t->b + group * SGM__INT8_GROUP * SGM__INT8_COLUMNS;
    int8_sums weights[INT8_VECTORS];
    if (rows <= INT8_FEW_ROWS)
        for (int32_t v = 0; v < INT8_VECTORS; v++)
            __builtin_prefetch(b + INT8_AHEAD + v * VECTOR_BYTES);
    for (int32_t v = 0; v < INT8_VECTORS; v++)
        weights[v] = *(const int8_sums_anywhere *)(const void *)(b + v * VECTOR_BYTES);
    for (int32_t i = 0; i < rows; i++) {
        int32_t x = codes_int8(t, i, group);
        for (int32_t v = 0; v < INT8_VECTORS; v++)
            sums[i][v] = INT8_STEP(sums[i][v], weights[v], x);
    }
}

/* y = sum * (scale of the row * scale of the column). */
static inline __attribute__((always_inline)) void finish_int8(const sgm__int8_tile *t, int32_t row, int32_t v,
                                                              int8_sums sum)
{
    int8_floats scales = *(const int8_floats_anywhere *)(t->scales + v * INT8_LANES);
    int8_floats y = __builtin_convertvector(sum + t->corrections[row], int8_floats);
    *(int8_floats_anywhere *)(t->c + row * t->c_row + v * INT8_LANES) = y * (t->row_scales[row] * scales);
}

/* `parts` groups at a time have sums of their own, so that these wait for each other less. */
static inline __attribute__((always_inline)) void tile_int8(const sgm__int8_tile *t, int32_t rows,
                                                            int32_t parts)
{
    int8_sums sums[SGM__INT8_ROWS][INT8_VECTORS] = {{{0}}};
    int64_t group = 0;
    for (; group + parts <= t->groups; group += parts)
        for (int32_t k = 0; k < parts; k++)
            add_int8(t, rows, group + k, sums + k * rows);
    for (; group < t->groups; group++)
        add_int8(t, rows, group, sums);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t v = 0; v < INT8_VECTORS; v++) {
            for (int32_t k = 1; k < parts; k++)
                sums[i][v] += sums[k * rows + i][v];
            finish_int8(t, i, v, sums[i][v]);
        }
}

#define DEFINE_INT8_TILE(rows, parts)                                                                        \
    static void tile_int8_##rows(const sgm__int8_tile *t)                                                    \
    {                                                                                                        \
        tile_int8(t, rows, parts);                                                                           \
    }

/* --- rounding --- */

static uint32_t largest_int8(int64_t n, const float *x)
{
    const int8_bits *bits = (const void *)x;
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t magnitude = bits[i] & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static int32_t round_int8(int64_t n, int8_t *to, const float *x, float factor)
{
    int32_t sum = 0;
    for (int64_t i = 0; i < n; i++) {
        float scaled = x[i] * factor + 0.5f;
        int32_t code = (int32_t)scaled;
        code -= (float)code > scaled; /* towards 0 became down */
        to[i] = (int8_t)code;
        sum += code;
    }
    return sum;
}

#ifdef INT8_UNSIGNED
#define INT8_ZERO 128
#else
#define INT8_ZERO 0
#endif
#define INT8_TILES(tile_name, tile_rows, ...)                                                                \
    {                                                                                                        \
        .name = tile_name, .rows = tile_rows, .zero = INT8_ZERO, .largest = largest_int8,                    \
        .round = round_int8, .tiles = {                                                                      \
            __VA_ARGS__                                                                                      \
        }                                                                                                    \
    }
