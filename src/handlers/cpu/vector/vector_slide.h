/* Template: convolutions of few channels, whose lanes are neighbouring pixels of one image. Internal.
 *
 * Where a tile's lanes are filters (vector_product_gather.h), a group of one filter would use one lane of
 * each vector. Here an image lies in memory so that all products of one weight are at one distance from their
 * results, whatever the stride (kernels/convolution_direct.c): a result is a sum of the image, slid by an
 * offset for each weight. */
#include "handlers/cpu/vector/vector.h"

/* Vectors of results in registers at once: enough for two multiplications in each cycle, which take four. */
#define SLIDE_VECTORS 8

/* Results from `at` on: `vectors` vectors, a constant where this is inlined, the last of which may be a part.
 */
#define DEFINE_SLIDE_BLOCK(name, element, vector, letter, LETTER, lanes)                                     \
    static inline __attribute__((always_inline)) void name(const sgm__slide *s, int64_t at, int vectors)     \
    {                                                                                                        \
        const element *image = (const element *)s->image + at, *weights = s->weights;                        \
        element *to = (element *)s->to + at;                                                                 \
        vector sums[SLIDE_VECTORS];                                                                          \
        UNROLL for (int v = 0; v < vectors; v++) sums[v] =                                                   \
            splat_##letter(s->bias != NULL ? *(const element *)s->bias : 0);                                 \
        for (int64_t k = 0; k < s->depth; k++) {                                                             \
            const element *from = image + s->steps[k];                                                       \
            vector factor = splat_##letter(weights[k]);                                                      \
            UNROLL for (int v = 0; v < vectors; v++) sums[v] =                                               \
                FMA_##LETTER(factor, load_##letter(from + v * (lanes)), sums[v]);                            \
        }                                                                                                    \
        UNROLL for (int v = 0; v < vectors; v++) sums[v] =                                                   \
            limit_##letter(sums[v], (element)s->limits.low, (element)s->limits.high);                        \
        UNROLL for (int v = 0; v < vectors - 1; v++) store_##letter(to + v * (lanes), sums[v]);              \
        int64_t last = s->count - at - (vectors - 1) * (lanes);                                              \
        if (last >= (lanes))                                                                                 \
            store_##letter(to + (vectors - 1) * (lanes), sums[vectors - 1]);                                 \
        else                                                                                                 \
            store_part_##letter(to + (vectors - 1) * (lanes), sums[vectors - 1], last);                      \
    }
DEFINE_SLIDE_BLOCK(slide_block_f32, float, vec_f, f, F, LANES)
DEFINE_SLIDE_BLOCK(slide_block_f64, double, vec_d, d, D, LANES_D)

#define DEFINE_SLIDE(name, block, lanes)                                                                     \
    static void name(const sgm__slide *s)                                                                    \
    {                                                                                                        \
        int64_t at = 0;                                                                                      \
        for (; at + SLIDE_VECTORS * (lanes) <= s->count; at += SLIDE_VECTORS * (lanes))                      \
            block(s, at, SLIDE_VECTORS);                                                                     \
        switch ((s->count - at + (lanes)-1) / (lanes)) {                                                     \
        case 8:                                                                                              \
            block(s, at, 8);                                                                                 \
            break;                                                                                           \
        case 7:                                                                                              \
            block(s, at, 7);                                                                                 \
            break;                                                                                           \
        case 6:                                                                                              \
            block(s, at, 6);                                                                                 \
            break;                                                                                           \
        case 5:                                                                                              \
            block(s, at, 5);                                                                                 \
            break;                                                                                           \
        case 4:                                                                                              \
            block(s, at, 4);                                                                                 \
            break;                                                                                           \
        case 3:                                                                                              \
            block(s, at, 3);                                                                                 \
            break;                                                                                           \
        case 2:                                                                                              \
            block(s, at, 2);                                                                                 \
            break;                                                                                           \
        case 1:                                                                                              \
            block(s, at, 1);                                                                                 \
            break;                                                                                           \
        }                                                                                                    \
    }
DEFINE_SLIDE(slide_f32, slide_block_f32, LANES)
DEFINE_SLIDE(slide_f64, slide_block_f64, LANES_D)

/* sums[k] += factors times the image slid by steps[k], lane by lane, for `steps` values of k, a constant. */
#define DEFINE_SLIDE_SUMS(name, element, vector, letter, LETTER, lanes)                                      \
    static inline                                                                                            \
        __attribute__((always_inline)) void name##_block(const sgm__slide_sums *s, int64_t first, int steps) \
    {                                                                                                        \
        const element *factors = s->factors, *from[9];                                                       \
        element *to = (element *)s->sums + first * (lanes);                                                  \
        vector sums[9];                                                                                      \
        UNROLL for (int k = 0; k < steps; k++)                                                               \
        {                                                                                                    \
            from[k] = (const element *)s->image + s->steps[first + k];                                       \
            sums[k] = load_##letter(to + k * (lanes));                                                       \
        }                                                                                                    \
        for (int64_t i = 0; i < s->count; i += (lanes)) {                                                    \
            vector factor = load_##letter(factors + i);                                                      \
            UNROLL for (int k = 0; k < steps; k++) sums[k] =                                                 \
                FMA_##LETTER(factor, load_##letter(from[k] + i), sums[k]);                                   \
        }                                                                                                    \
        UNROLL for (int k = 0; k < steps; k++) store_##letter(to + k * (lanes), sums[k]);                    \
    }                                                                                                        \
    static void name(const sgm__slide_sums *s)                                                               \
    {                                                                                                        \
        int64_t k = 0;                                                                                       \
        for (; k + 9 <= s->depth; k += 9)                                                                    \
            name##_block(s, k, 9);                                                                           \
        for (; k + 5 <= s->depth; k += 5)                                                                    \
            name##_block(s, k, 5);                                                                           \
        for (; k + 3 <= s->depth; k += 3)                                                                    \
            name##_block(s, k, 3);                                                                           \
        for (; k < s->depth; k++)                                                                            \
            name##_block(s, k, 1);                                                                           \
    }
DEFINE_SLIDE_SUMS(slide_sums_f32, float, vec_f, f, F, LANES)
DEFINE_SLIDE_SUMS(slide_sums_f64, double, vec_d, d, D, LANES_D)

/* 2n numbers to those at even and those at odd places, and back: how the pixels of a stride of two come to
 * lie together. */
#define DEFINE_PAIRS(type, element, vector, integer, letter, lanes)                                          \
    static void split_pairs_##type(int64_t n, void *evens, void *odds, const void *pairs)                    \
    {                                                                                                        \
        const integer lane = LANE_NUMBERS_##letter, even = lane * 2, odd = even + 1;                         \
        const element *from = pairs;                                                                         \
        element *left = evens, *right = odds;                                                                \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector a = load_##letter(from + 2 * i), b = load_##letter(from + 2 * i + (lanes));               \
            store_##letter(left + i, SHUFFLE_##letter(a, b, even));                                          \
            store_##letter(right + i, SHUFFLE_##letter(a, b, odd));                                          \
        }                                                                                                    \
        for (; i < n; i++) {                                                                                 \
            left[i] = from[2 * i];                                                                           \
            right[i] = from[2 * i + 1];                                                                      \
        }                                                                                                    \
    }                                                                                                        \
    static void join_pairs_##type(int64_t n, void *pairs, const void *evens, const void *odds)               \
    {                                                                                                        \
        const integer lane = LANE_NUMBERS_##letter, low = (lane >> 1) + (lane & 1) * (lanes);                \
        const integer high = low + (lanes) / 2;                                                              \
        const element *left = evens, *right = odds;                                                          \
        element *to = pairs;                                                                                 \
        int64_t i = 0;                                                                                       \
        for (; i + (lanes) <= n; i += (lanes)) {                                                             \
            vector a = load_##letter(left + i), b = load_##letter(right + i);                                \
            store_##letter(to + 2 * i, SHUFFLE_##letter(a, b, low));                                         \
            store_##letter(to + 2 * i + (lanes), SHUFFLE_##letter(a, b, high));                              \
        }                                                                                                    \
        for (; i < n; i++) {                                                                                 \
            to[2 * i] = left[i];                                                                             \
            to[2 * i + 1] = right[i];                                                                        \
        }                                                                                                    \
    }
DEFINE_PAIRS(f32, float, vec_f, vec_i, f, LANES)
DEFINE_PAIRS(f64, double, vec_d, vec_l, d, LANES_D)
