/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011). */
#include "base/base.h"

#include <math.h>

#define PHILOX_ROUNDS 10

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
        key0 += 0x9E3779B9u; /* the golden ratio */
        key1 += 0xBB67AE85u; /* sqrt(3) - 1 */
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

uint64_t sgm__random_below(sgm__random *random, uint64_t bound)
{
    /* 2^64 mod bound: leaving out that many values makes the rest a whole number of rounds. */
    uint64_t excess = (UINT64_MAX - bound + 1) % bound;
    uint64_t value;
    do {
        value = random_uint64(random);
    } while (value < excess);
    return value % bound;
}

double sgm__random_uniform(sgm__random *random)
{
    return (double)(random_uint64(random) >> 11) * 0x1p-53;
}

double sgm__random_normal(sgm__random *random)
{
    const double two_pi = 6.283185307179586;
    double u = 1.0 - sgm__random_uniform(random); /* (0, 1]: its logarithm is finite */
    double v = sgm__random_uniform(random);
    return sqrt(-2.0 * log(u)) * cos(two_pi * v);
}

/* --- hashing --- */

static uint64_t mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

/* Up to eight bytes, the first one lowest, on any machine. */
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
