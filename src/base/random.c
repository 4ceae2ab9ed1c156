/* Makes random numbers and hashes that are the same on every machine, with any number of threads, on every
 * device.
 *
 * Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC
 * 2011). It is counter-based: block n of a stream is a function of (seed, stream, n) alone, so any thread or
 * kernel computes its own part without what came before, and a checkpoint needs to save only a counter.
 * Handlers have the block function a second time in their kernels; both must give the same bits. The hash
 * below finds equal graphs and names; it is not for security. */
#include "base/base.h"

#include <math.h>

#define PHILOX_ROUNDS 10

/* Ten rounds of two 32 x 32 to 64 bit multiplications; the constants are those of the paper. The key takes a
 * step of a Weyl sequence before each further round. */
void sgm__philox(uint64_t seed, uint64_t stream, uint64_t counter, uint32_t out[4])
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * c0;
        uint64_t product1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ key0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ key1;
        c3 = (uint32_t)product0;
        key0 += 0x9E3779B9u; /* the golden ratio's fraction, times 2^32 */
        key1 += 0xBB67AE85u; /* (sqrt(3) - 1), times 2^32 */
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

sgm__random sgm__random_make(uint64_t seed, uint64_t stream)
{
    return (sgm__random){.seed = seed, .stream = stream};
}

uint32_t sgm__random_uint32(sgm__random *random)
{
    /* `left` may come from a checkpoint, so it is not trusted to be at most 4. */
    if (random->left == 0 || random->left > 4) {
        sgm__philox(random->seed, random->stream, random->counter++, random->buffer);
        random->left = 4;
    }
    return random->buffer[4 - random->left--];
}

static uint64_t random_uint64(sgm__random *random)
{
    uint64_t low = sgm__random_uint32(random);
    return low | (uint64_t)sgm__random_uint32(random) << 32;
}

/* Unbiased: `value % bound` alone would favour small results, because 2^64 is rarely a multiple of bound.
 * Values below 2^64 mod bound are drawn again; the number of those that remain is a multiple of bound. */
uint64_t sgm__random_below(sgm__random *random, uint64_t bound)
{
    uint64_t excess = (UINT64_MAX - bound + 1) % bound;
    uint64_t value;
    do {
        value = random_uint64(random);
    } while (value < excess);
    return value % bound;
}

/* The upper 53 bits times 2^-53: every result is a multiple of 2^-53, exactly representable, below 1. */
double sgm__random_uniform(sgm__random *random)
{
    return (double)(random_uint64(random) >> 11) * 0x1p-53;
}

/* Box and Muller (1958): sqrt(-2 ln u) cos(2 pi v) is normally distributed. The second value, with sin, is
 * not kept: so each call takes exactly two 64-bit draws, and the state stays a counter. */
double sgm__random_normal(sgm__random *random)
{
    const double two_pi = 6.283185307179586;
    double u = 1.0 - sgm__random_uniform(random); /* (0, 1]: its logarithm is finite */
    double v = sgm__random_uniform(random);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

/* --- hashing --- */

/* A bijection of 64-bit numbers that spreads every input bit: the multiplications by an odd constant carry
 * low bits up, the shifts by 32 bring the high half down. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

/* Up to eight bytes as a number, the first one lowest, whatever the machine's byte order and alignment. */
static uint64_t load_bytes(const unsigned char *bytes, size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t sgm__hash(const void *bytes, size_t length, uint64_t seed)
{
    const unsigned char *next = bytes;
    /* The length takes part: otherwise trailing zeros would not change the result. */
    uint64_t hash = mix(seed + 0x9E3779B97F4A7C15u * ((uint64_t)length + 1));
    for (; length >= 8; length -= 8, next += 8)
        hash = mix(hash ^ load_bytes(next, 8)) + 0x9E3779B97F4A7C15u;
    if (length > 0)
        hash = mix(hash ^ load_bytes(next, length)) + 0x9E3779B97F4A7C15u;
    return mix(hash);
}

uint64_t sgm__hash_text(const char *text)
{
    return sgm__hash(text, strlen(text), 0);
}
