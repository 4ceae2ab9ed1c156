/* Blocks of products of bfloat16 for x86-64 with AMX: tdpbf16ps multiplies 16 rows of 16 pairs by 16 pairs of
 * 16 columns.
 *
 * A block is two by two such tiles, so that each tile of an operand that is loaded is used twice; four of the
 * eight registers keep the sums. Rows of a are read as they lie. The registers are set up once for a size of
 * blocks, and given back at the end of each task, as other code of the process may use them in between.
 * bfloat16.c asks the system for the permission to use them. The whole file is compiled for AMX and
 * AVX512_BF16 (CMakeLists.txt). */
#include "handlers/cpu/product/blocks.h"

#if defined(__AMX_BF16__)
#include <immintrin.h>
#include <string.h>

#define TILE_ROWS 16
#define TILE_BYTES 64 /* of a row: 16 pairs or sums */
#define PAIR_BYTES 4
#define SUM_BYTES 4
/* What registers hold: sums of the four tiles, two tiles of each operand. Compilers put these numbers into
 * the names of registers, so they cannot be an enum. */
#define LEFT_ABOVE 0
#define RIGHT_ABOVE 1
#define LEFT_BELOW 2
#define RIGHT_BELOW 3
#define A_ABOVE 4
#define A_BELOW 5
#define B_LEFT 6
#define B_RIGHT 7
#define REGISTERS 8

/* The layout in memory that ldtilecfg reads. */
typedef struct configuration {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} configuration;

/* The compilers' functions do not say which memory they read. */
#define MEMORY_IS_READ() __asm__ volatile("" : : : "memory")

/* Sets the registers up for blocks of `rows` rows. Those of the lower half do not exist if it is empty. */
static void configure(int32_t rows)
{
    configuration c = {.palette = 1};
    uint8_t above = (uint8_t)(rows < TILE_ROWS ? rows : TILE_ROWS), below = (uint8_t)(rows - above);
    const uint8_t counts[REGISTERS] = {above, above, below, below, above, below, TILE_ROWS, TILE_ROWS};
    for (int i = 0; i < REGISTERS; i++) {
        c.rows[i] = counts[i];
        c.row_bytes[i] = counts[i] > 0 ? TILE_BYTES : 0;
    }
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}

/* SGM__BLOCK_STEPS steps. Strides count bytes. `left` and `right`: b's halves. */
static inline __attribute__((always_inline)) void multiply(const char *a, int64_t a_stride, const char *left,
                                                           const char *right, int64_t b_stride, bool tall,
                                                           bool wide)
{
    _tile_loadd(B_LEFT, left, b_stride);
    _tile_loadd(A_ABOVE, a, a_stride);
    _tile_dpbf16ps(LEFT_ABOVE, A_ABOVE, B_LEFT);
    if (wide) {
        _tile_loadd(B_RIGHT, right, b_stride);
        _tile_dpbf16ps(RIGHT_ABOVE, A_ABOVE, B_RIGHT);
    }
    if (tall) {
        _tile_loadd(A_BELOW, a + TILE_ROWS * a_stride, a_stride);
        _tile_dpbf16ps(LEFT_BELOW, A_BELOW, B_LEFT);
    }
    if (tall && wide)
        _tile_dpbf16ps(RIGHT_BELOW, A_BELOW, B_RIGHT);
}

/* The last steps, fewer than SGM__BLOCK_STEPS, filled up with zeros in memory of their own. */
static void multiply_rest(const sgm__tile *tile, const char *a, int64_t a_stride, const char *b,
                          int64_t b_stride, int64_t steps)
{
    _Alignas(64) char rows[SGM__BLOCK_ROWS][TILE_BYTES] = {{0}};
    _Alignas(64) char columns[SGM__BLOCK_STEPS][2 * TILE_BYTES] = {{0}};
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy(rows[i], a + i * a_stride, (size_t)(steps * PAIR_BYTES));
    for (int64_t k = 0; k < steps; k++)
        memcpy(columns[k], b + k * b_stride, (size_t)(tile->columns * PAIR_BYTES));
    MEMORY_IS_READ();
    bool tall = tile->rows > TILE_ROWS, wide = tile->columns == SGM__BLOCK_COLUMNS;
    if (tall && wide)
        multiply(rows[0], TILE_BYTES, columns[0], columns[0] + TILE_BYTES, 2 * TILE_BYTES, true, true);
    else if (tall)
        multiply(rows[0], TILE_BYTES, columns[0], columns[0] + TILE_BYTES, 2 * TILE_BYTES, true, false);
    else if (wide)
        multiply(rows[0], TILE_BYTES, columns[0], columns[0] + TILE_BYTES, 2 * TILE_BYTES, false, true);
    else
        multiply(rows[0], TILE_BYTES, columns[0], columns[0] + TILE_BYTES, 2 * TILE_BYTES, false, false);
}

/* Sums of a block into registers, or zeros. In these functions, too, `tall` and `wide` are constants where
 * they are inlined. */
static inline __attribute__((always_inline)) void begin(const char *sums, int64_t stride, bool add, bool tall,
                                                        bool wide)
{
    _tile_zero(LEFT_ABOVE);
    if (wide)
        _tile_zero(RIGHT_ABOVE);
    if (tall)
        _tile_zero(LEFT_BELOW);
    if (tall && wide)
        _tile_zero(RIGHT_BELOW);
    if (!add)
        return;
    MEMORY_IS_READ();
    _tile_loadd(LEFT_ABOVE, sums, stride);
    if (wide)
        _tile_loadd(RIGHT_ABOVE, sums + TILE_BYTES, stride);
    if (tall)
        _tile_loadd(LEFT_BELOW, sums + TILE_ROWS * stride, stride);
    if (tall && wide)
        _tile_loadd(RIGHT_BELOW, sums + TILE_ROWS * stride + TILE_BYTES, stride);
}

/* Sums of a block to memory. */
static inline __attribute__((always_inline)) void end(char *sums, int64_t stride, bool tall, bool wide)
{
    _tile_stored(LEFT_ABOVE, sums, stride);
    if (wide)
        _tile_stored(RIGHT_ABOVE, sums + TILE_BYTES, stride);
    if (tall)
        _tile_stored(LEFT_BELOW, sums + TILE_ROWS * stride, stride);
    if (tall && wide)
        _tile_stored(RIGHT_BELOW, sums + TILE_ROWS * stride + TILE_BYTES, stride);
    MEMORY_IS_READ();
}

/* Rounds all sums of a block to c. */
static void round_sums(const sgm__tile *tile, const float *sums)
{
    for (int64_t row = 0; row < tile->rows; row++, sums += SGM__BLOCK_COLUMNS) {
        uint16_t *c = (uint16_t *)tile->c + row * tile->c_stride;
        for (int64_t i = 0; i < tile->columns; i += 16)
            _mm256_storeu_si256((__m256i *)(void *)(c + i),
                                (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(sums + i)));
    }
}

/* Fetches the weights of a later step. Blocks of few rows wait for memory longer than they multiply; this is
 * further ahead than the processor fetches by itself, also into the next panel. */
#define STEPS_AHEAD 2
static inline __attribute__((always_inline)) void fetch_ahead(const char *b, int64_t b_stride)
{
    const char *next = b + STEPS_AHEAD * SGM__BLOCK_STEPS * b_stride;
    for (int64_t line = 0; line < SGM__BLOCK_STEPS * b_stride; line += TILE_BYTES)
        _mm_prefetch(next + line, _MM_HINT_T0);
}

/* One block. `tall`, `wide`: it has a lower, a right half. */
static inline __attribute__((always_inline)) void block(const sgm__tile *tile, bool tall, bool wide)
{
    _Alignas(64) float last[SGM__BLOCK_ROWS * SGM__BLOCK_COLUMNS]; /* sums that are rounded */
    const char *a = tile->a, *b = tile->b;
    int64_t a_stride = tile->a_row * PAIR_BYTES, b_stride = tile->b_stride * PAIR_BYTES, k = 0;
    begin((const char *)tile->sums, tile->sums_stride * SUM_BYTES, tile->add, tall, wide);
    MEMORY_IS_READ();
    for (; k + SGM__BLOCK_STEPS <= tile->depth; k += SGM__BLOCK_STEPS) {
        if (!tall)
            fetch_ahead(b, b_stride);
        multiply(a, a_stride, b, b + TILE_BYTES, b_stride, tall, wide);
        a += TILE_BYTES;
        b += SGM__BLOCK_STEPS * b_stride;
    }
    if (k < tile->depth)
        multiply_rest(tile, a, a_stride, b, b_stride, tile->depth - k);
    if (!tile->rounds) {
        end((char *)tile->sums, tile->sums_stride * SUM_BYTES, tall, wide);
        return;
    }
    end((char *)last, SGM__BLOCK_COLUMNS * SUM_BYTES, tall, wide);
    round_sums(tile, last);
}

/* Sets the registers up, unless they are. */
static inline void prepare(int32_t *configured, int32_t rows)
{
    if (*configured == rows)
        return;
    configure(rows);
    *configured = rows;
}

static void run(const sgm__tile *tile)
{
    prepare(tile->configured, tile->rows);
    bool tall = tile->rows > TILE_ROWS, wide = tile->columns == SGM__BLOCK_COLUMNS;
    if (tall && wide)
        block(tile, true, true);
    else if (tall)
        block(tile, true, false);
    else if (wide)
        block(tile, false, true);
    else
        block(tile, false, false);
}

/* All steps of a gathered block, into its sums. */
static inline __attribute__((always_inline)) void gather_sums(const sgm__block_gather *g, bool tall,
                                                              bool wide)
{
    int64_t a_stride = g->a_row * PAIR_BYTES, b_stride = g->b_row * PAIR_BYTES;
    int64_t sums_stride = SGM__BLOCK_COLUMNS * SUM_BYTES;
    begin((const char *)g->sums, sums_stride, g->add, tall, wide);
    MEMORY_IS_READ();
    for (int64_t k = 0; k < g->steps; k++) {
        int64_t at = g->b_steps[k] * PAIR_BYTES;
        multiply((const char *)g->a + g->a_steps[k] * PAIR_BYTES, a_stride, (const char *)g->b[0] + at,
                 (const char *)g->b[1] + at, b_stride, tall, wide);
    }
    end((char *)g->sums, sums_stride, tall, wide);
}

/* Rounded results of a row, to each piece's place. */
static inline void store_pieces(const sgm__block_gather *g, int half, int64_t row, __m256i results)
{
    uint16_t *c = g->c[half] + row * g->c_row;
    if (g->piece >= g->columns[half]) {
        _mm256_mask_storeu_epi16(c, (__mmask16)((1U << g->columns[half]) - 1), results);
        return;
    }
    _Alignas(32) uint16_t all[TILE_ROWS];
    _mm256_store_si256((__m256i *)(void *)all, results);
    for (int32_t i = 0; i < g->columns[half]; i += g->piece, c += g->c_apart)
        memcpy(c, all + i, (size_t)g->piece * sizeof *c);
}

/* Sums of a gathered block to c. */
static void finish_gather(const sgm__block_gather *g)
{
    __m512 low = _mm512_set1_ps(g->low), high = _mm512_set1_ps(g->high);
    for (int half = 0; half < 2 && g->columns[half] > 0; half++) {
        const float *sums = g->sums + half * TILE_ROWS;
        for (int64_t row = 0; row < g->rows; row++) {
            uint32_t bias = g->biases != NULL ? (uint32_t)g->biases[row] << 16 : 0;
            __m512 x = _mm512_add_ps(_mm512_load_ps(sums + row * SGM__BLOCK_COLUMNS),
                                     _mm512_castsi512_ps(_mm512_set1_epi32((int)bias)));
            /* A NaN is the second operand, which stays. */
            x = _mm512_min_ps(high, _mm512_max_ps(low, x));
            store_pieces(g, half, row, (__m256i)_mm512_cvtneps_pbh(x));
        }
    }
}

static void run_gather(const sgm__block_gather *g)
{
    bool tall = g->rows > TILE_ROWS, wide = g->columns[1] > 0;
    prepare(g->configured, tall ? SGM__BLOCK_ROWS : TILE_ROWS);
    if (tall && wide)
        gather_sums(g, true, true);
    else if (tall)
        gather_sums(g, true, false);
    else if (wide)
        gather_sums(g, false, true);
    else
        gather_sums(g, false, false);
    if (g->rounds)
        finish_gather(g);
}

static void give_back(void)
{
    _tile_release();
}

const sgm__tiles sgm__blocks_amx = {.rows = SGM__BLOCK_ROWS,
                                    .columns = SGM__BLOCK_COLUMNS,
                                    .block = run,
                                    .block_gather = run_gather,
                                    .block_end = give_back};
#elif defined(__x86_64__)
const sgm__tiles sgm__blocks_amx = {0};
#endif
