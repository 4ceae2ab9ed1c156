/* Finds bytes in text, 64 at a time: bit i of a mask tells of byte i. Internal to src/data/csv.
 *
 * With SSE2, which every processor of x86-64 has, 16 bytes are compared at once; elsewhere 8, by arithmetic
 * on a word. Longer vectors gain little: what is done with a cell takes far longer than finding its end. */
#ifndef SGM_DATA_CSV_CSV_SCAN_H
#define SGM_DATA_CSV_CSV_SCAN_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

typedef __m128i sgm__scan_vector;
#define SGM__SCAN_STEP 16

static inline sgm__scan_vector sgm__scan_load(const char *text)
{
    sgm__scan_vector vector;
    memcpy(&vector, text, sizeof vector);
    return vector;
}

static inline sgm__scan_vector sgm__scan_equal(sgm__scan_vector vector, char byte)
{
    return _mm_cmpeq_epi8(vector, _mm_set1_epi8(byte));
}

static inline sgm__scan_vector sgm__scan_or(sgm__scan_vector a, sgm__scan_vector b)
{
    return _mm_or_si128(a, b);
}

static inline uint64_t sgm__scan_bits(sgm__scan_vector found)
{
    return (uint64_t)(uint32_t)_mm_movemask_epi8(found);
}

#else

typedef uint64_t sgm__scan_vector;
#define SGM__SCAN_STEP 8

/* The first byte becomes the lowest one on all processors. */
static inline sgm__scan_vector sgm__scan_load(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#define SGM__SCAN_EACH UINT64_C(0x0101010101010101)

/* The highest bit of each byte that is equal: of a difference of 0, and only of it, neither the seven low
 * bits carry into the highest one when 0x7f is added, nor is that set. */
static inline sgm__scan_vector sgm__scan_equal(sgm__scan_vector word, char byte)
{
    const uint64_t low = 0x7f * SGM__SCAN_EACH;
    uint64_t difference = word ^ ((unsigned char)byte * SGM__SCAN_EACH);
    return ~(((difference & low) + low) | difference | low);
}

static inline sgm__scan_vector sgm__scan_or(sgm__scan_vector a, sgm__scan_vector b)
{
    return a | b;
}

/* Gathers the highest bits: the product puts bit 8 i to bit 56 + i. */
static inline uint64_t sgm__scan_bits(sgm__scan_vector found)
{
    return ((found >> 7) * UINT64_C(0x0102040810204080)) >> 56;
}

#endif

/* Of 64 bytes, those that are equal to `byte`. */
static inline uint64_t sgm__scan_find(const char *text, char byte)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += SGM__SCAN_STEP)
        mask |= sgm__scan_bits(sgm__scan_equal(sgm__scan_load(text + i), byte)) << i;
    return mask;
}

/* Of 64 bytes, those that are equal to one of `count` bytes; inlined with a constant count. */
static inline uint64_t sgm__scan_find_any(const char *text, const char *bytes, int count)
{
    uint64_t mask = 0;
    for (int i = 0; i < 64; i += SGM__SCAN_STEP) {
        sgm__scan_vector vector = sgm__scan_load(text + i), found = sgm__scan_equal(vector, bytes[0]);
        for (int k = 1; k < count; k++)
            found = sgm__scan_or(found, sgm__scan_equal(vector, bytes[k]));
        mask |= sgm__scan_bits(found) << i;
    }
    return mask;
}

#endif
