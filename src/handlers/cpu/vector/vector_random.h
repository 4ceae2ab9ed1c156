/* Template: random numbers by Philox4x32-10 (Salmon et al., 2011), one block in each lane of 64 bits.
 * Internal.
 *
 * Numbers are those of sgm__philox() in base/base.h, in their order, so that they do not depend on the
 * instruction set. uniform_f32 is called by random.c. A word of 32 bits lies in the lower half of a lane of
 * 64, where a product of two words fits. */
#include "base/base.h"

#define PHILOX_ROUNDS 10

typedef uint64_t vec_w __attribute__((vector_size(VECTOR_BYTES))); /* words of 32 bits in lanes of 64 */

/* The same word in each lane. */
static inline vec_w splat_w(uint64_t x)
{
    return x + (vec_w){0};
}

/* 32-bit words to numbers in [0, 1): the upper 24 bits, which a float32 holds exactly, divided by 2^24. */
static inline vec_f uniform_lanes(vec_d words)
{
    vec_i bits = (vec_i)((vec_u)words >> 8);
    return __builtin_convertvector(bits, vec_f) * 0x1p-24f;
}

/* Ten rounds on the words of LANES_D blocks: lane i holds block i, c[k] word k of all blocks. In place. */
static inline void philox_lanes(vec_w c[4], uint64_t seed)
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        vec_w product0 = MULTIPLY_WORDS(c[0], splat_w(0xD2511F53u));
        vec_w product1 = MULTIPLY_WORDS(c[2], splat_w(0xCD9E8D57u));
        c[0] = (product1 >> 32) ^ c[1] ^ splat_w(key0);
        c[1] = product1 & splat_w(UINT32_MAX);
        c[2] = (product0 >> 32) ^ c[3] ^ splat_w(key1);
        c[3] = product0 & splat_w(UINT32_MAX);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* `counter` is the first block. Lanes hold blocks, memory has the four words of a block after each other:
 * words are paired in lanes of 64 bits, then lanes of the two pairs are interleaved by shuffles `low` and
 * `high`. The last numbers go by way of `last`. */
static void uniform_f32(int64_t n, float *out, uint64_t seed, uint64_t stream, uint64_t counter)
{
    const vec_w lane = LANE_NUMBERS_d;
    const vec_l number = LANE_NUMBERS_d;
    const vec_l low = (number >> 1) + (number & 1) * LANES_D, high = low + LANES_D / 2;
    float last[4 * LANES_D] = {0};
    for (int64_t i = 0; i < n; i += 4 * LANES_D, counter += LANES_D) {
        vec_w block = lane + counter;
        vec_w c[4] = {block & splat_w(UINT32_MAX), block >> 32, splat_w((uint32_t)stream),
                      splat_w(stream >> 32)};
        philox_lanes(c, seed);
        vec_d first = (vec_d)(c[0] | c[1] << 32), second = (vec_d)(c[2] | c[3] << 32);
        float *to = n - i < 4 * LANES_D ? last : out + i;
        store_f(to, uniform_lanes(SHUFFLE_d(first, second, low)));
        store_f(to + LANES, uniform_lanes(SHUFFLE_d(first, second, high)));
        if (to == last)
            memcpy(out + i, last, (size_t)(n - i) * sizeof *out);
    }
}
