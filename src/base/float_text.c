/* Numbers of float32 as text, fast: answers have millions of them. */
#include "base/base.h"

#include <math.h>
#include <stdio.h>

#define MAXIMUM_DIGITS 9 /* tell all numbers of float32 from each other */
#define LARGEST_PLAIN 16
#define SMALLEST_PLAIN (-5)

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

/* `count` digits, the first of which stands for 10^exponent. */
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

/* The number that has so many digits and is nearest; 0: it is another float32. */
static double nearest(float number, int count, int exponent)
{
    double digits = nearbyint(shifted((double)number, count - 1 - exponent));
    return (float)shifted(digits, exponent - count + 1) == number ? digits : 0;
}

char *sgm__float_text(float number, char *buffer, size_t size)
{
    double value = fabs((double)number), again;
    if (!isfinite(number) || number == 0 || size < SGM__FLOAT_TEXT)
        return sgm__number_text(number, buffer, size);
    char *to = buffer;
    if (number < 0)
        *to++ = '-';
    int exponent = (int)floor(log10(value));
    /* most have more than six */
    int first = nearest((float)value, 6, exponent) == 0 ? 7 : 1;
    for (int count = first; count <= MAXIMUM_DIGITS; count++) {
        double digits = nearest((float)value, count, exponent);
        int power = count - 1 - exponent;
        if (digits == 0)
            continue;
        bool carried = digits >= ten_to(count); /* 99.99 to 100 */
        write_digits(to, (int64_t)(carried ? digits / 10 : digits), count, exponent + carried);
        /* with an exact power the division above was rounded once, as reading the text is */
        bool exact = power >= -22 && power <= 22;
        if (exact || (sgm__parse_double(to, &again) && (float)again == (float)value))
            return buffer;
    }
    return sgm__number_text(number, buffer, size);
}
