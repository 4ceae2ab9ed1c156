/* Blocks of products of bfloat16 for any processor: the sums of AMX in the order of AMX, in plain C.
 *
 * So that what cuts and packs for AMX can be tested everywhere, and its bits be had again; slower than tiles
 * of pairs. */
#include "handlers/cpu/product/blocks.h"

#include <string.h>

static inline float widen(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* To the nearest, of two as near to the even one; NaN stays NaN. */
static inline uint16_t rounded(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Adds to the sums of one row the products of up to SGM__BLOCK_STEPS pairs. A product of two bfloat16 is
 * exact in float32, so that it makes no difference whether it is rounded. */
static void add_steps(float *sums, const uint16_t *a, const uint16_t *b, int64_t b_stride, int64_t steps,
                      int32_t columns)
{
    float even[SGM__BLOCK_COLUMNS] = {0}, odd[SGM__BLOCK_COLUMNS] = {0};
    for (int64_t k = 0; k < steps; k++) {
        const uint16_t *row = b + 2 * k * b_stride;
        float first = widen(a[2 * k]), second = widen(a[2 * k + 1]);
        for (int32_t i = 0; i < columns; i++) {
            even[i] += first * widen(row[2 * i]);
            odd[i] += second * widen(row[2 * i + 1]);
        }
    }
    for (int32_t i = 0; i < columns; i++)
        sums[i] += even[i] + odd[i];
}

static void multiply(const sgm__tile *tile)
{
    for (int64_t row = 0; row < tile->rows; row++) {
        float sums[SGM__BLOCK_COLUMNS] = {0};
        const uint16_t *a = (const uint16_t *)tile->a + 2 * row * tile->a_row;
        size_t bytes = (size_t)tile->columns * sizeof *sums;
        if (tile->add)
            memcpy(sums, tile->sums + row * tile->sums_stride, bytes);
        for (int64_t k = 0; k < tile->depth; k += SGM__BLOCK_STEPS)
            add_steps(sums, a + 2 * k, (const uint16_t *)tile->b + 2 * k * tile->b_stride, tile->b_stride,
                      sgm__minimum(tile->depth - k, SGM__BLOCK_STEPS), tile->columns);
        if (!tile->rounds) {
            memcpy(tile->sums + row * tile->sums_stride, sums, bytes);
            continue;
        }
        uint16_t *c = (uint16_t *)tile->c + row * tile->c_stride;
        for (int32_t i = 0; i < tile->columns; i++)
            c[i] = rounded(sums[i]);
    }
}

/* A row of one half of a gathered block to c; NaN stays NaN. */
static void finish_row(const sgm__block_gather *g, int half, int64_t row)
{
    const float *sums = g->sums + row * SGM__BLOCK_COLUMNS + half * SGM__BLOCK_COLUMNS / 2;
    float bias = g->biases != NULL ? widen(g->biases[row]) : 0;
    for (int32_t i = 0; i < g->columns[half]; i++) {
        float x = sums[i] + bias;
        x = x < g->low ? g->low : x > g->high ? g->high : x;
        g->c[half][row * g->c_row + i / g->piece * g->c_apart + i % g->piece] = rounded(x);
    }
}

static void gather(const sgm__block_gather *g)
{
    const uint16_t *a = (const uint16_t *)(const void *)g->a;
    for (int64_t row = 0; row < g->rows; row++)
        for (int half = 0; half < 2 && g->columns[half] > 0; half++) {
            const uint16_t *b = (const uint16_t *)(const void *)g->b[half];
            float *sums = g->sums + row * SGM__BLOCK_COLUMNS + half * SGM__BLOCK_COLUMNS / 2;
            if (!g->add)
                memset(sums, 0, SGM__BLOCK_COLUMNS / 2 * sizeof *sums);
            for (int64_t k = 0; k < g->steps; k++)
                add_steps(sums, a + 2 * (row * g->a_row + g->a_steps[k]), b + 2 * g->b_steps[k], g->b_row,
                          SGM__BLOCK_STEPS, g->columns[half]);
            if (g->rounds)
                finish_row(g, half, row);
        }
}

const sgm__tiles sgm__blocks_portable = {
    .rows = SGM__BLOCK_ROWS, .columns = SGM__BLOCK_COLUMNS, .block = multiply, .block_gather = gather};
