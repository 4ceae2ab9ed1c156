/* Decimal digits eight at a time, by arithmetic on a word, and the numbers that most cells of tables hold.
 * Internal.
 *
 * Inline, since a table may have hundreds of millions of them, and a call for each costs a good part of
 * reading it. */
#ifndef SGM_BASE_NUMBER_DIGITS_H
#define SGM_BASE_NUMBER_DIGITS_H

#include "base/base.h"

#include <float.h>
#include <string.h>

#define SGM__DIGITS_EACH UINT64_C(0x0101010101010101)

/* Eight digits as bytes: '0' is taken out of their bits. The first one becomes the lowest byte on all
 * processors. */
static inline uint64_t sgm__digits_load(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word ^ 0x30 * SGM__DIGITS_EACH;
}

/* The highest bit of each byte that is no digit, at least up to the first one: adding 0x76 to more than 9
 * sets it. A carry out of a byte only reaches later ones. */
static inline uint64_t sgm__digits_find_others(uint64_t digits)
{
    return ((digits + 0x76 * SGM__DIGITS_EACH) | digits) & 0x80 * SGM__DIGITS_EACH;
}

/* The number of the first `count` digits, 1 to 8: these are moved to the word's end, behind zeros, and added
 * up in pairs, fours and eights. */
static inline uint64_t sgm__digits_add_up(uint64_t digits, int count)
{
    const uint64_t bytes = UINT64_C(0x000000ff000000ff);
    digits <<= 64 - 8 * count;
    digits = digits * 10 + (digits >> 8);
    digits = (digits & bytes) * (100 + (UINT64_C(1000000) << 32)) +
             (digits >> 16 & bytes) * (1 + (UINT64_C(10000) << 32));
    return digits >> 32;
}

/* A number of at most eight digits, with a point and a minus or without, behind whose final 0 eight more
 * bytes may be read. False: it is another one, or none. The sign is that of the divisor, so that it costs
 * neither a branch, which would be taken at random, nor time. */
static inline bool sgm__parse_eight_digits(const char *text, double *value)
{
    static const double divisors[2][9] = {{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8},
                                          {-1e0, -1e1, -1e2, -1e3, -1e4, -1e5, -1e6, -1e7, -1e8}};
    bool is_negative = *text == '-';
    text += is_negative;
    uint64_t digits = sgm__digits_load(text), others = sgm__digits_find_others(digits);
    if (FLT_EVAL_METHOD != 0 || others == 0)
        return false;
    int count = __builtin_ctzll(others) / 8, decimals = 0;
    text += count;
    if (*text == '.') {
        uint64_t behind = sgm__digits_load(text + 1), others_behind = sgm__digits_find_others(behind);
        if (others_behind == 0)
            return false;
        decimals = __builtin_ctzll(others_behind) / 8;
        text += 1 + decimals;
        digits = (digits & ((UINT64_C(1) << 8 * count) - 1)) | behind << 8 * count;
        count += decimals;
    }
    if (*text != '\0' || count == 0 || count > 8)
        return false;
    *value = (double)(int64_t)sgm__digits_add_up(digits, count) / divisors[is_negative][decimals];
    return true;
}

#endif
