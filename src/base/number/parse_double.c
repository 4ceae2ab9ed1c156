/* Reads decimal numbers: the nearest double, to even at a tie, as strtod has it, but several times faster,
 * since a table may have hundreds of millions of them.
 *
 * Digits are taken eight at a time (digits.h). What they are times a power of ten is then rounded once: by
 * one multiplication or division where both factors are exact in double (Clinger, "How to read floating point
 * numbers accurately", 1990), else from the first 64 or 128 bits of the product with a power of five (Lemire,
 * "Number parsing at a gigabyte per second", 2021; that this decides every case, with at most 19 digits, is
 * shown by Mushtak and Lemire, "Fast number parsing without fallback", 2023).
 * Everything else, such as more digits, infinity and texts that are no numbers, goes to strtod. */
#include "base/number/parse_double.h"

#include "base/characters.h"
#include "base/number/digits.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#define MAXIMUM_DIGITS 19 /* always fit in 64 bits */
#define LONGEST_SHORT 64
#define LARGEST_EXPONENT 9999 /* more is the same: infinite or 0 */

/* The number digits * 10^power. */
typedef struct decimal {
    uint64_t digits;
    int count; /* of digits, leading zeros included */
    int64_t power;
} decimal;

static const char *skip_spaces(const char *text)
{
    while (sgm__is_space(*text))
        text++;
    return text;
}

/* --- digits --- */

/* How many of 8 bytes are digits before the first one that is none; *value is their number. */
static inline int take_word(const char *text, uint64_t *value)
{
    uint64_t digits = sgm__digits_load(text), others = sgm__digits_find_others(digits);
    int count = others != 0 ? __builtin_ctzll(others) / 8 : 8;
    *value = count > 0 ? sgm__digits_add_up(digits, count) : 0;
    return count;
}

/* Appends the digits at `text` and returns what follows. More than 19 overflow, which `count` shows. */
static inline const char *take_digits(const char *text, decimal *number)
{
    static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    int count;
    do {
        uint64_t value;
        count = take_word(text, &value);
        number->digits = number->digits * powers[count] + value;
        number->count += count;
        text += count;
    } while (count == 8);
    return text;
}

/* An exponent without its e; NULL if there is none. */
static const char *take_exponent(const char *text, int64_t *exponent)
{
    int64_t value = 0;
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (!sgm__is_digit(*text))
        return NULL;
    for (; sgm__is_digit(*text); text++)
        if (value < LARGEST_EXPONENT)
            value = value * 10 + (*text - '0');
    *exponent = is_negative ? -value : value;
    return text;
}

/* The number, without its sign, that is all of the text but for spaces behind it; false if it is another one,
 * or none. */
static inline bool take_decimal(const char *text, decimal *number)
{
    *number = (decimal){0};
    text = take_digits(text, number);
    if (*text == '.') {
        int before = number->count;
        text = take_digits(text + 1, number);
        number->power = before - number->count;
    }
    if (number->count == 0 || number->count > MAXIMUM_DIGITS)
        return false;
    if ((*text | 0x20) == 'e') {
        int64_t exponent;
        text = take_exponent(text + 1, &exponent);
        if (text == NULL)
            return false;
        number->power += exponent;
    }
    return *text == '\0' || *skip_spaces(text) == '\0';
}

/* --- powers of five --- */

#ifdef __SIZEOF_INT128__

#define MINIMUM_POWER (-342) /* smaller ones make every number of 19 digits 0 */
#define GREATEST_POWER 308
/* Those whose inverse is rounded up, as the proof has it. */
#define MINIMUM_ROUNDED (-27)
#define WORDS 16 /* of 64 bits: 2^1023, and 5^308 */

typedef struct power {
    uint64_t high, low; /* the first 128 bits of 5^n, the highest one set */
} power;

static power powers_of_five[GREATEST_POWER - MINIMUM_POWER + 1];

/* The first 128 bits of a number of WORDS words, the lowest first. */
static power first_bits(const uint64_t *words)
{
    int top = WORDS - 1;
    while (words[top] == 0)
        top--;
    uint64_t next[3] = {words[top], top > 0 ? words[top - 1] : 0, top > 1 ? words[top - 2] : 0};
    int shift = __builtin_clzll(words[top]);
    if (shift == 0)
        return (power){next[0], next[1]};
    return (power){next[0] << shift | next[1] >> (64 - shift), next[1] << shift | next[2] >> (64 - shift)};
}

__extension__ typedef unsigned __int128 wide;

static void multiply_by_five(uint64_t *words)
{
    wide carry = 0;
    for (int i = 0; i < WORDS; i++) {
        carry += (wide)words[i] * 5;
        words[i] = (uint64_t)carry;
        carry >>= 64;
    }
}

static void divide_by_five(uint64_t *words)
{
    wide rest = 0;
    for (int i = WORDS; i-- > 0;) {
        rest = rest << 64 | words[i];
        words[i] = (uint64_t)(rest / 5);
        rest %= 5;
    }
}

/* 5^n by multiplying, and 2^1023 / 5^n by dividing: rounding down at each step is rounding down once. */
static void make_powers(void)
{
    uint64_t up[WORDS] = {1}, down[WORDS] = {[WORDS - 1] = UINT64_C(1) << 63};
    for (int n = 0; n <= GREATEST_POWER; n++, multiply_by_five(up))
        powers_of_five[n - MINIMUM_POWER] = first_bits(up);
    for (int n = -1; n >= MINIMUM_POWER; n--) {
        divide_by_five(down);
        power *made = &powers_of_five[n - MINIMUM_POWER];
        *made = first_bits(down);
        if (n >= MINIMUM_ROUNDED)
            made->high += ++made->low == 0;
    }
}

/* --- the nearest double --- */

/* Bits of a double's significand that are stored, and what its exponent has added. */
#define STORED_BITS 52
#define EXPONENT_BIAS 1023
#define INFINITE_EXPONENT 0x7ff

/* The first 128 bits of the product of a word with its highest bit set and 5^n. The second half of the power
 * is multiplied only if it could change the bits that are kept. */
static wide multiply_by_power(uint64_t word, int64_t n)
{
    const power *by = &powers_of_five[n - MINIMUM_POWER];
    wide product = (wide)word * by->high;
    const uint64_t below = UINT64_MAX >> (STORED_BITS + 3);
    if (((uint64_t)(product >> 64) & below) == below)
        product += (uint64_t)((wide)word * by->low >> 64);
    return product;
}

/* floor(log2(10^n)) + 63, for the powers that there are: 217706 is 2^16 log2(10). */
static int exponent_of_ten(int64_t n)
{
    return (int)((217706 * n) >> 16) + 63;
}

/* A significand of 54 bits or fewer, of which the last is half a unit, that belongs to a number below the
 * normal ones: as the bits of a double. */
static uint64_t subnormal(uint64_t significand, int exponent)
{
    if (1 - exponent >= 64)
        return 0;
    significand >>= 1 - exponent;
    return (significand + (significand & 1)) >> 1; /* 2^52 is the smallest normal number, and its bits */
}

/* The bits of the double that is nearest to digits * 10^n, digits > 0; those of infinity if it is too large.
 * Steps 1 to 9 of Lemire's algorithm 1. */
static uint64_t nearest_bits(uint64_t digits, int64_t n)
{
    if (n < MINIMUM_POWER)
        return 0;
    if (n > GREATEST_POWER)
        return (uint64_t)INFINITE_EXPONENT << STORED_BITS;
    int zeros = __builtin_clzll(digits);
    wide product = multiply_by_power(digits << zeros, n);
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    int upper = (int)(high >> 63), shift = upper + 64 - STORED_BITS - 3;
    uint64_t significand = high >> shift; /* with a bit more than a double keeps */
    int exponent = exponent_of_ten(n) + upper - zeros + EXPONENT_BIAS;
    if (exponent <= 0)
        return subnormal(significand, exponent);
    /* Halfway between two doubles, which only small powers can be: to the even one. */
    bool is_tie = low <= 1 && n >= -4 && n <= 23 && (significand & 3) == 1 && significand << shift == high;
    significand = (significand + (significand & 1 & !is_tie)) >> 1;
    if (significand >> (STORED_BITS + 1) != 0) {
        significand >>= 1;
        exponent++;
    }
    if (exponent >= INFINITE_EXPONENT)
        return (uint64_t)INFINITE_EXPONENT << STORED_BITS;
    return (significand & ~(UINT64_C(1) << STORED_BITS)) | (uint64_t)exponent << STORED_BITS;
}

/* False for infinity, which strtod then says, too. */
static bool round_decimal(const decimal *number, double *value)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;
    pthread_once(&made, make_powers);
    uint64_t bits = number->digits > 0 ? nearest_bits(number->digits, number->power) : 0;
    memcpy(value, &bits, sizeof *value);
    return bits >> STORED_BITS != INFINITE_EXPONENT;
}

#else /* a processor of 32 bits */

static bool round_decimal(const decimal *number, double *value)
{
    (void)number, (void)value;
    return false;
}

#endif

/* --- texts --- */

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static inline double with_sign(double number, bool is_negative)
{
    uint64_t bits; /* without a branch, which would be taken at random */
    memcpy(&bits, &number, sizeof bits);
    bits |= (uint64_t)is_negative << 63;
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* A number of at most 19 digits. */
static bool parse_nineteen(const char *text, double *value)
{
    decimal number;
    double parsed;
    text = skip_spaces(text);
    bool is_negative = *text == '-';
    text += *text == '-' || *text == '+';
    if (!take_decimal(text, &number))
        return false;
    /* A processor that computes with more digits than it stores would round twice. */
    bool is_exact = FLT_EVAL_METHOD == 0 && number.digits <= UINT64_C(1) << 53;
    if (is_exact && number.power <= 0 && number.power >= -22)
        parsed = (double)(int64_t)number.digits / powers_of_ten[-number.power];
    else if (is_exact && number.power > 0 && number.power <= 22)
        parsed = (double)(int64_t)number.digits * powers_of_ten[number.power];
    else if (!round_decimal(&number, &parsed))
        return false;
    *value = with_sign(parsed, is_negative);
    return true;
}

static bool parse_short(const char *text, double *value)
{
    return sgm__parse_eight_digits(text, value) || parse_nineteen(text, value);
}

/* strtod would also take hexadecimal numbers and NaN payloads, which no format of the library has, so their
 * letters are refused first. Overflow is an error, underflow is not: the nearest double is small or 0 then.
 * errno is restored. */
static bool parse_any(const char *text, double *value)
{
    if (strpbrk(text, "xX("))
        return false;
    char *end;
    int saved = errno;
    locale_t own = sgm__use_c_locale();
    errno = 0;
    double parsed = strtod(text, &end);
    bool overflow = errno == ERANGE && isinf(parsed);
    errno = saved;
    uselocale(own);
    if (end == text || overflow || *skip_spaces(end) != '\0')
        return false;
    *value = parsed;
    return true;
}

bool sgm__parse_double_padded(const char *text, double *value)
{
    return parse_short(text, value) || parse_any(text, value);
}

bool sgm__parse_double(const char *text, double *value)
{
    char padded[LONGEST_SHORT + 8] = "";
    if (!text)
        return false;
    size_t length = strnlen(text, LONGEST_SHORT);
    if (length < LONGEST_SHORT) {
        memcpy(padded, text, length);
        if (parse_short(padded, value))
            return true;
    }
    return parse_any(text, value);
}
