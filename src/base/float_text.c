/* Writes float32 numbers as decimal text, fast: an answer of the web server or a configuration may hold
 * millions of them.
 *
 * sgm__float_text gives the shortest decimal of at most 9 digits that reads back as the same float32 (9
 * digits tell all float32 numbers apart). printf in a loop over precisions does the same with ten or so calls
 * per number; here the digits come from one multiplication and one rounding in double per precision, since a
 * float32 and a power of ten up to 10^22 are exact in double. Where the power is not exact, the result is
 * checked by reading it back. Other numbers (infinite, NaN, 0) go to sgm__number_text in text.c, which also
 * serves double. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>

#define MAXIMUM_DIGITS 9 /* tell all numbers of float32 from each other */
/* Exponents of ten from SMALLEST_PLAIN up to but excluding LARGEST_PLAIN are written without an exponent. */
#define LARGEST_PLAIN 16
#define SMALLEST_PLAIN (-5)

/* 10^power. Exact for 0 to 22, where 10^power has at most 53 significant bits (5^22 < 2^53); beyond, rounded
 * several times. */
static double ten_to(int power)
{
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int size = power < 0 ? -power : power;
    double value = 1;
    for (; size > 22; size -= 22)
        value *= exact[22];
    value *= exact[size];
    return power < 0 ? 1 / value : value;
}

/* value times ten to the power, with one rounding where the power is exact. */
static double shifted(double value, int power)
{
    return power < 0 ? value / ten_to(-power) : value * ten_to(power);
}

/* Writes the `count` decimal digits of `digits`, the first of which stands for 10^exponent, as plain decimal
 * or as d.ddde+x. Returns the end of the text. */
static char *write_digits(char *to, int64_t digits, int count, int exponent)
{
    char text[MAXIMUM_DIGITS + 2] = "";
    for (int i = count; i-- > 0; digits /= 10)
        text[i] = (char)('0' + digits % 10);
    bool plain = exponent >= SMALLEST_PLAIN && exponent < LARGEST_PLAIN;
    int before = !plain ? 1 : exponent + 1; /* digits before the point */
    if (before <= 0)
        *to++ = '0';
    for (int i = 0; i < before; i++)
        *to++ = i < count ? text[i] : '0';
    if (before < count)
        *to++ = '.';
    for (int i = before; i < count; i++)
        *to++ = i < 0 ? '0' : text[i];
    if (!plain)
        to += sprintf(to, "e%d", exponent);
    *to = '\0';
    return to;
}

/* Rounds `number` to `count` decimal digits, the first of which stands for 10^exponent, and returns these
 * digits as an integer in a double; 0 if they no longer read back as `number`. */
static double nearest(float number, int count, int exponent)
{
    double digits = nearbyint(shifted((double)number, count - 1 - exponent));
    return (float)shifted(digits, exponent - count + 1) == number ? digits : 0;
}

/* Tries 1, 2, ... 9 digits and takes the first that reads back. Most trained numbers need 7 digits or more,
 * so one try with 6 decides whether counting begins at 7: what 6 digits cannot tell, fewer cannot either. */
char *sgm__float_text(float number, char *buffer, size_t size)
{
    double value = fabs((double)number), again;
    if (!isfinite(number) || number == 0 || size < SGM__FLOAT_TEXT)
        return sgm__number_text(number, buffer, size);
    char *to = buffer;
    if (number < 0)
        *to++ = '-';
    int exponent = (int)floor(log10(value));
    int first = nearest((float)value, 6, exponent) == 0 ? 7 : 1;
    for (int count = first; count <= MAXIMUM_DIGITS; count++) {
        double digits = nearest((float)value, count, exponent);
        int power = count - 1 - exponent;
        if (digits == 0)
            continue;
        /* rounding made one digit more: 99.99 to 3 digits is 1000 and means 100 */
        bool carried = digits >= ten_to(count);
        write_digits(to, (int64_t)(carried ? digits / 10 : digits), count, exponent + carried);
        /* with an exact power, nearest() rounded once, as a correct reader of the text does, so its
         * comparison is proof */
        bool exact = power >= -22 && power <= 22;
        if (exact || (sgm__parse_double(to, &again) && (float)again == (float)value))
            return buffer;
    }
    return sgm__number_text(number, buffer, size);
}
