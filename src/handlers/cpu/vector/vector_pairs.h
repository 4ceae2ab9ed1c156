/* Template: tiles and packing of matrix products of bfloat16. Internal.
 *
 * What is multiplied are pairs: of two neighbouring steps of k, 32 bits. In a row of a whose columns are
 * contiguous they lie ready; a packed panel of b has the pair of each column for steps 0 and 1, then those
 * for 2 and 3 (the layout that Intel calls VNNI). A step of a tile multiplies pairs and adds both products to
 * a sum of float32, as the instruction vdpbf16ps does where a file defines MULTIPLY_PAIRS for it; elsewhere
 * both numbers of a pair are widened first. An odd k ends with a pair whose second number is 0. */
#include "handlers/cpu/vector/vector_convolution.h"
#include "tensor/tensor_internal.h"

/* At any address of a bfloat16, which the two numbers were written as. */
typedef uint32_t pair __attribute__((aligned(2), may_alias));
DEFINE_WHOLE(u, pair)
#if VECTOR_BYTES == 64
static inline vec_u load_part_u(const pair *from, int64_t n)
{
    return (vec_u)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), from);
}

static inline void store_part_u(pair *to, vec_u x, int64_t n)
{
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << n) - 1), (__m512i)x);
}
#else
static inline vec_u load_part_u(const pair *from, int64_t n)
{
    vec_u x = {0};
    memcpy(&x, from, (size_t)n * sizeof *from);
    return x;
}

static inline void store_part_u(pair *to, vec_u x, int64_t n)
{
    memcpy(to, &x, (size_t)n * sizeof *to);
}
#endif

static inline vec_u splat_u(uint32_t x)
{
    return x - (vec_u){0};
}

/* What a file may define: a step, sum + both products of pairs a and b; the rounding of sums, as they are
 * stored and as words whose upper halves are 0. */
#ifndef MULTIPLY_PAIRS
#define MULTIPLY_PAIRS(a, b, sum) multiply_pairs(a, b, sum)
static inline vec_f multiply_pairs(vec_u a, vec_u b, vec_f sum)
{
    vec_u upper = splat_u(0xffff0000u);
    sum = FMA_F((vec_f)(a & upper), (vec_f)(b & upper), sum);
    return FMA_F((vec_f)(a << 16), (vec_f)(b << 16), sum);
}
#endif
#ifndef STORE_ROUNDED
#define STORE_ROUNDED(to, x) store_h(to, x)
#define ROUNDED_WORDS(x) __builtin_convertvector(narrow_h(x), vec_u)
#endif

/* A vector of sums of a row: from and to `sums`, or rounded to c in the end. */
static inline __attribute__((always_inline)) void finish_pairs(const sgm__tile *tile, int64_t row,
                                                               int64_t column, vec_f x)
{
    int64_t at = row * tile->sums_stride + column;
    if (tile->add)
        x += load_f(tile->sums + at);
    if (tile->rounds)
        STORE_ROUNDED((uint16_t *)tile->c + row * tile->c_stride + column, x);
    else
        store_f(tile->sums + at, x);
}

#define ROW_STORE(i)                                                                                         \
    if (rows > i) {                                                                                          \
        finish_pairs(tile, i, 0, left##i);                                                                   \
        if (wide)                                                                                            \
            finish_pairs(tile, i, lanes, right##i);                                                          \
    }
#define load load_u
#define store store_u
#define splat splat_u
#define fma MULTIPLY_PAIRS
DEFINE_TILE(tile_pairs, pair, vec_u, vec_f, LANES)
#undef load
#undef store
#undef splat
#undef fma
#undef ROW_STORE

DEFINE_TILES(pairs, packed, PACKED)
DEFINE_TILES(pairs, apart, APART)

#define PAIR_FUNCTIONS(name)                                                                                 \
    {                                                                                                        \
        .wide = TILE_TABLE(wide_##name##_pairs), .narrow = TILE_TABLE(narrow_##name##_pairs)                 \
    }

/* --- packing --- */

/* Pairs of the numbers in two rows, the first `n` of a vector; `second` NULL: zeros. */
static inline vec_u join_rows(const uint16_t *first, const uint16_t *second, int64_t n)
{
    vec_u low = (vec_u)(n == LANES ? load_h(first) : load_part_h(first, n)) >> 16;
    if (second == NULL)
        return low;
    return low | (vec_u)(n == LANES ? load_h(second) : load_part_h(second, n));
}

/* Rows that are fetched ahead: they lie too far apart for the processor to guess. */
#define PAIR_ROWS_AHEAD 16
#define HALVES_OF_LINE 32

static inline void fetch_row(const uint16_t *row, int64_t width)
{
    for (int64_t i = 0; i < width; i += HALVES_OF_LINE)
        __builtin_prefetch(row + i);
}

/* Rows of b, or of a transposed a: two of them become a row of pairs. */
static void copy_rows_pairs(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,
                            int64_t depth)
{
    for (int64_t k = 0; k < depth; k += 2) {
        pair *to = (pair *)target + k / 2 * padded;
        const uint16_t *first = (const uint16_t *)source + k * stride;
        const uint16_t *second = k + 1 < depth ? first + stride : NULL;
        int64_t i = 0;
        for (int64_t row = PAIR_ROWS_AHEAD; row < PAIR_ROWS_AHEAD + 2 && k + row < depth; row++)
            fetch_row(first + row * stride, width);
        for (; i + LANES <= width; i += LANES)
            store_u(to + i, join_rows(first + i, second != NULL ? second + i : NULL, LANES));
        for (int64_t left = width - i; i < padded; i += LANES, left = 0) {
            vec_u x = {0};
            if (left > 0)
                x = join_rows(first + i, second != NULL ? second + i : NULL, left);
            store_part_u(to + i, x, sgm__minimum(padded - i, LANES));
        }
    }
}

DEFINE_SQUARE(square_pairs, float, f, i, LANES)
DEFINE_TRANSPOSE(transpose_whole_pairs, square_pairs, float, f, LANES)

/* Rows whose pairs lie ready: they are transposed as numbers of 32 bits. `stride` is even. */
static void transpose_pairs(void *target, int64_t padded, const void *source, int64_t stride, int64_t width,
                            int64_t depth)
{
    const uint16_t *from = source;
    transpose_whole_pairs(target, padded, source, stride / 2, width, depth / 2);
    if (depth % 2 == 0)
        return;
    pair *to = (pair *)target + depth / 2 * padded;
    for (int64_t i = 0; i < padded; i++)
        to[i] = i < width ? from[i * stride + depth - 1] : 0;
}

/* --- convolutions --- */

DEFINE_GATHER(gather_pairs, pair, vec_u, u, float, vec_f, f, MULTIPLY_PAIRS, LANES)
DEFINE_GATHERS(pairs)

DEFINE_SPREAD(spread_halves, square_pairs, float, vec_f, f, LANES, uint16_t, STORE_ROUNDED, store_part_h,
              sgm__bfloat16_to_float)

/* A pair is two neighbouring pixels. */
static void split_pairs_halves(int64_t n, void *evens, void *odds, const void *pairs)
{
    const pair *from = pairs;
    float *left = evens, *right = odds;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vec_u x = load_u(from + i);
        store_f(left + i, (vec_f)(x << 16));
        store_f(right + i, (vec_f)(x & splat_u(0xffff0000u)));
    }
    if (i < n) {
        vec_u x = load_part_u(from + i, n - i);
        store_part_f(left + i, (vec_f)(x << 16), n - i);
        store_part_f(right + i, (vec_f)(x & splat_u(0xffff0000u)), n - i);
    }
}

static inline vec_u join_rounded(vec_f even, vec_f odd)
{
    return ROUNDED_WORDS(even) | ROUNDED_WORDS(odd) << 16;
}

static void join_pairs_halves(int64_t n, void *pairs, const void *evens, const void *odds)
{
    const float *left = evens, *right = odds;
    pair *to = pairs;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_u(to + i, join_rounded(load_f(left + i), load_f(right + i)));
    if (i < n) {
        vec_u x = join_rounded(load_part_f(left + i, n - i), load_part_f(right + i, n - i));
        store_part_u(to + i, x, n - i);
    }
}

#define WRITE_FIRST(to, x) store_u(to, ROUNDED_WORDS(x))
#define WRITE_SECOND(to, x) store_u(to, load_u(to) | ROUNDED_WORDS(x) << 16)
DEFINE_WINOGRAD_INPUT(winograd_input_halves, uint16_t, STORE_ROUNDED)
DEFINE_WINOGRAD_INPUT(winograd_input_first, pair, WRITE_FIRST)
DEFINE_WINOGRAD_INPUT(winograd_input_second, pair, WRITE_SECOND)
DEFINE_WINOGRAD_WEIGHTS(winograd_weights_halves, uint16_t, STORE_ROUNDED)
DEFINE_WINOGRAD_RESULTS(winograd_results_halves, uint16_t, STORE_ROUNDED)
#define WINOGRAD_PAIRS                                                                                       \
    {                                                                                                        \
        .input = winograd_input_halves, .input_first = winograd_input_first,                                 \
        .input_second = winograd_input_second, .weights = winograd_weights_halves,                           \
        .results = winograd_results_halves                                                                   \
    }

#define PAIR_TILES                                                                                           \
    {                                                                                                        \
        .rows = TILE_ROWS, .columns = 2 * LANES, .packed = PAIR_FUNCTIONS(packed),                           \
        .apart = PAIR_FUNCTIONS(apart), .copy_rows = copy_rows_pairs, .transpose = transpose_pairs,          \
        .gather_columns = GATHER_VECTORS * LANES, .gather_wide = GATHER_TABLE(gather_wide_pairs),            \
        .gather_narrow = GATHER_TABLE(gather_narrow_pairs), .spread = spread_halves, .vector_lanes = LANES,  \
        .split_pairs = split_pairs_halves, .join_pairs = join_pairs_halves, .winograd = WINOGRAD_PAIRS       \
    }
