/* The mathematical functions that a file of C brings along, so that it needs no library, and templates.
 *
 * Many a small device has no library of mathematics, or one in double only. Each function is in C99, in the
 * type of numbers that the file computes in, and does not look at the bits of a number, so it works for float
 * and double alike. The aim is the precision of float; most functions are a few units in the last place of
 * double. Kernels for devices have their own (handlers/device/code/code_functions.c), as their languages have
 * most of these.
 */
#include "handlers/source/source.h"

#include <stdio.h>

#define NEEDS(name) ((uint32_t)1 << SGM__SOURCE_##name)

typedef struct function_text {
    uint32_t needs; /* bits of the earlier functions that this one calls */
    const char *words;
} function_text;

/* In the order of sgm__source_function. `$`, `@` and `~` are explained at sgm__source_write_template. */
static const function_text functions[SGM__SOURCE_FUNCTION_COUNT] = {
    /* log 2 is subtracted in two parts, whose first has few bits, so that k times it is exact; the series has
     * 13 terms for |r| <= log(2) / 2. The power of 2 is made by squaring, so that no bits of a number are
     * needed. */
    [SGM__SOURCE_EXP] = {0,
                         "/* e to the x: with x = k log 2 + r, 2 to the k times Taylor's series of r. */\n"
                         "static @ $_exp(@ x)\n"
                         "{\n"
                         "    static const @ terms[] = {(@)2.505210838544172e-08, (@)2.755731922398589e-07,\n"
                         "                              (@)2.7557319223985893e-06, (@)2.48015873015873e-05,\n"
                         "                              (@)0.0001984126984126984, (@)0.001388888888888889,\n"
                         "                              (@)0.008333333333333333, (@)0.041666666666666664,\n"
                         "                              (@)0.16666666666666666, (@)0.5, 1, 1};\n"
                         "    @ sum = (@)2.08767569878681e-09, power = 1, factor = 2, r;\n"
                         "    long k;\n"
                         "    if (x != x)\n"
                         "        return x;\n"
                         "    x = x > 20000 ? 20000 : x < -20000 ? -20000 : x;\n"
                         "    k = (long)(x * (@)1.4426950408889634 + (x < 0 ? (@)-0.5 : (@)0.5));\n"
                         "    r = x - (@)k * (@)0.693145751953125 - (@)k * (@)1.42860682030941723e-06;\n"
                         "    for (int i = 0; i < 12; i++)\n"
                         "        sum = sum * r + terms[i];\n"
                         "    if (k < 0) {\n"
                         "        factor = (@)0.5;\n"
                         "        k = -k;\n"
                         "    } else if (k > 0) { /* 2 to the k may be too large where the result is not */\n"
                         "        sum *= 2;\n"
                         "        k--;\n"
                         "    }\n"
                         "    for (; k > 0; k /= 2) {\n"
                         "        if (k % 2 != 0)\n"
                         "            power *= factor;\n"
                         "        factor *= factor;\n"
                         "    }\n"
                         "    return sum * power;\n"
                         "}\n"},
    /* m is within [sqrt(1/2), sqrt(2)], so |y| < 0.172, and 11 odd terms suffice for double. */
    [SGM__SOURCE_LOG] =
        {0, "/* The natural logarithm: x = m 2^k, and the series of artanh for (m - 1) / (m + 1). "
            "*/\n"
            "static @ $_log(@ x)\n"
            "{\n"
            "    @ y, square, sum = 0;\n"
            "    long k = 0;\n"
            "    if (x <= 0)\n"
            "        return x < 0 ? (x - x) / (x - x) : -1 / (x * x);\n"
            "    if (x - x != 0)\n"
            "        return x;\n"
            "    for (; x >= 65536; k += 16)\n"
            "        x /= 65536;\n"
            "    for (; x < (@)1.52587890625e-05; k -= 16)\n"
            "        x *= 65536;\n"
            "    for (; x > (@)1.4142135623730951; k++)\n"
            "        x /= 2;\n"
            "    for (; x < (@)0.7071067811865476; k--)\n"
            "        x *= 2;\n"
            "    y = (x - 1) / (x + 1);\n"
            "    square = y * y;\n"
            "    for (int i = 21; i > 0; i -= 2)\n"
            "        sum = sum * square + 1 / (@)i;\n"
            "    return 2 * y * sum + (@)k * (@)0.6931471805599453;\n"
            "}\n"},
    [SGM__SOURCE_LOG1P] = {NEEDS(LOG), "/* log(1 + x), exact for small x (Kahan). */\n"
                                       "static @ $_log1p(@ x)\n"
                                       "{\n"
                                       "    const @ y = 1 + x;\n"
                                       "    if (y == 1 || y - y != 0)\n"
                                       "        return x;\n"
                                       "    return $_log(y) * (x / (y - 1));\n"
                                       "}\n"},
    /* After scaling x is within [1, 4), where five iterations from (1 + x) / 2 reach the precision of
     * double. */
    [SGM__SOURCE_SQRT] = {0, "/* The square root, by Newton's iteration. */\n"
                             "static @ $_sqrt(@ x)\n"
                             "{\n"
                             "    @ scale = 1, root;\n"
                             "    if (x <= 0 || x - x != 0)\n"
                             "        return x < 0 ? (x - x) / (x - x) : x;\n"
                             "    for (; x >= 65536; scale *= 256)\n"
                             "        x /= 65536;\n"
                             "    for (; x < (@)1.52587890625e-05; scale /= 256)\n"
                             "        x *= 65536;\n"
                             "    for (; x >= 4; scale *= 2)\n"
                             "        x /= 4;\n"
                             "    for (; x < 1; scale /= 2)\n"
                             "        x *= 4;\n"
                             "    root = (1 + x) / 2;\n"
                             "    for (int i = 0; i < 5; i++)\n"
                             "        root = (root + x / root) / 2;\n"
                             "    return root * scale;\n"
                             "}\n"},
    /* exp is taken of the negative side only, so that it cannot overflow. */
    [SGM__SOURCE_SIGMOID] = {NEEDS(EXP), "static @ $_sigmoid(@ x)\n"
                                         "{\n"
                                         "    const @ e = $_exp(x < 0 ? x : -x);\n"
                                         "    return x < 0 ? e / (1 + e) : 1 / (1 + e);\n"
                                         "}\n"},
    [SGM__SOURCE_TANH] = {NEEDS(EXP), "/* Near 0 by Lambert's continued fraction. */\n"
                                      "static @ $_tanh(@ x)\n"
                                      "{\n"
                                      "    @ sum = 15;\n"
                                      "    if (x > (@)0.6)\n"
                                      "        return 1 - 2 / ($_exp(2 * x) + 1);\n"
                                      "    if (x < (@)-0.6)\n"
                                      "        return 2 / ($_exp(-2 * x) + 1) - 1;\n"
                                      "    for (int i = 13; i > 0; i -= 2)\n"
                                      "        sum = (@)i + x * x / sum;\n"
                                      "    return x / sum;\n"
                                      "}\n"},
    [SGM__SOURCE_ERF_SERIES] =
        {NEEDS(EXP), "/* erf of x from 0 to 2.5: x e^(-x^2) 2 / sqrt(pi) sum of (2 x^2)^k / (1 3 5 ...). */\n"
                     "static @ $_erf_series(@ x)\n"
                     "{\n"
                     "    @ term = x, sum = x;\n"
                     "    for (int i = 3; i < 120 && term > sum * (@)1e-17; i += 2) {\n"
                     "        term *= 2 * x * x / (@)i;\n"
                     "        sum += term;\n"
                     "    }\n"
                     "    return (@)1.1283791670955126 * $_exp(-x * x) * sum;\n"
                     "}\n"},
    /* Up to 2.5 from the series of erf; beyond by the continued fraction of Laplace, as 1 - erf(x) would
     * cancel. Beyond 30 the result is 0 in double, too. */
    [SGM__SOURCE_ERFC] =
        {NEEDS(EXP) | NEEDS(ERF_SERIES),
         "/* The share of a normal distribution beyond x: a series near 0, a continued fraction far off. "
         "*/\n"
         "static @ $_erfc(@ x)\n"
         "{\n"
         "    const @ y = x < 0 ? -x : x;\n"
         "    @ part;\n"
         "    if (x != x)\n"
         "        return x;\n"
         "    if (y < (@)2.5) {\n"
         "        part = 1 - $_erf_series(y);\n"
         "    } else if (y < 30) {\n"
         "        @ sum = y;\n"
         "        for (int i = 50; i > 0; i--)\n"
         "            sum = y + (@)i / 2 / sum;\n"
         "        part = (@)0.5641895835477563 * $_exp(-y * y) / sum;\n"
         "    } else {\n"
         "        part = 0;\n"
         "    }\n"
         "    return x < 0 ? 2 - part : part;\n"
         "}\n"},
    /* 1 - erfc(x) alone would have no right digits near 0. */
    [SGM__SOURCE_ERF] = {NEEDS(ERFC) | NEEDS(ERF_SERIES),
                         "static @ $_erf(@ x)\n"
                         "{\n"
                         "    const @ y = x < 0 ? -x : x, part = y < (@)2.5 ? $_erf_series(y) : 1 - "
                         "$_erfc(y);\n"
                         "    return x < 0 ? -part : part;\n"
                         "}\n"},
    /* x erfc(-x / sqrt(2)) / 2; below -40 the factor is 0, and -infinity times it would be NaN. */
    [SGM__SOURCE_GELU] = {NEEDS(ERFC),
                          "static @ $_gelu(@ x)\n"
                          "{\n"
                          "    return x < -40 ? 0 : x * $_erfc(x * (@)-0.7071067811865476) / 2;\n"
                          "}\n"},
    [SGM__SOURCE_GELU_GRADIENT] =
        {NEEDS(ERFC) | NEEDS(EXP),
         "static @ $_gelu_gradient(@ x)\n"
         "{\n"
         "    if (x > 40 || x < -40)\n"
         "        return x > 0;\n"
         "    return $_erfc(x * (@)-0.7071067811865476) / 2 + x * $_exp(x * x / -2) * "
         "(@)0.3989422804014327;\n"
         "}\n"},
    /* The multiple of pi / 2 that is nearest to x is subtracted in three parts, the first two with few bits;
     * x beyond 1e8 gives 0. The series are those of sine and cosine, in the order of Horner. */
    [SGM__SOURCE_TURN] = {0, "/* The sine of x + turns * pi / 2, by the series that is nearer. */\n"
                             "static @ $_turn(@ x, long turns)\n"
                             "{\n"
                             "    const @ limit = 100000000;\n"
                             "    long k;\n"
                             "    @ square, sum = 0;\n"
                             "    if (!(x < limit && x > -limit))\n"
                             "        return x - x;\n"
                             "    k = (long)(x * (@)0.6366197723675814 + (x < 0 ? (@)-0.5 : (@)0.5));\n"
                             "    x = x - (@)k * (@)1.5703125 - (@)k * (@)0.0004837512969970703 - (@)k * "
                             "(@)7.54978995489188216e-08;\n"
                             "    k = ((k + turns) % 4 + 4) % 4;\n"
                             "    square = x * x;\n"
                             "    for (int i = k % 2 != 0 ? 16 : 15; i > 1; i -= 2)\n"
                             "        sum = (1 - sum) * square / (@)(i * (i - 1));\n"
                             "    sum = (1 - sum) * (k % 2 != 0 ? 1 : x);\n"
                             "    return k > 1 ? -sum : sum;\n"
                             "}\n"},
    [SGM__SOURCE_SIN] = {NEEDS(TURN), "static @ $_sin(@ x)\n"
                                      "{\n"
                                      "    return $_turn(x, 0);\n"
                                      "}\n"},
    [SGM__SOURCE_COS] = {NEEDS(TURN), "static @ $_cos(@ x)\n"
                                      "{\n"
                                      "    return $_turn(x, 1);\n"
                                      "}\n"},
    [SGM__SOURCE_TAN] = {NEEDS(TURN), "static @ $_tan(@ x)\n"
                                      "{\n"
                                      "    return $_turn(x, 0) / $_turn(x, 1);\n"
                                      "}\n"},
    /* atan(z) = 2 atan(z / (1 + sqrt(1 + z^2))), twice, leaves z below 0.2, where 12 terms suffice. */
    [SGM__SOURCE_ATAN] = {NEEDS(SQRT), "/* The angle is halved twice, then Gregory's series. */\n"
                                       "static @ $_atan(@ x)\n"
                                       "{\n"
                                       "    const @ y = x < 0 ? -x : x;\n"
                                       "    @ z = y > 1 ? 1 / y : y, sum = 0;\n"
                                       "    if (x != x)\n"
                                       "        return x;\n"
                                       "    z = z / (1 + $_sqrt(1 + z * z));\n"
                                       "    z = z / (1 + $_sqrt(1 + z * z));\n"
                                       "    for (int i = 23; i > 0; i -= 2)\n"
                                       "        sum = 1 / (@)i - sum * z * z;\n"
                                       "    sum = 4 * z * sum;\n"
                                       "    sum = y > 1 ? (@)1.5707963267948966 - sum : sum;\n"
                                       "    return x < 0 ? -sum : sum;\n"
                                       "}\n"},
    /* atan(x / sqrt(1 - x^2)); (1 - x)(1 + x) does not cancel near 1. */
    [SGM__SOURCE_ASIN] = {NEEDS(ATAN) | NEEDS(SQRT), "static @ $_asin(@ x)\n"
                                                     "{\n"
                                                     "    const @ rest = $_sqrt((1 - x) * (1 + x));\n"
                                                     "    if (rest == 0)\n"
                                                     "        return x * (@)1.5707963267948966;\n"
                                                     "    return $_atan(x / rest);\n"
                                                     "}\n"},
    /* pi / 2 - asin(x) would cancel near 1; -1 has an infinite quotient, whose angle is pi / 2. */
    [SGM__SOURCE_ACOS] = {NEEDS(ATAN) | NEEDS(SQRT), "static @ $_acos(@ x)\n"
                                                     "{\n"
                                                     "    return 2 * $_atan($_sqrt((1 - x) / (1 + x)));\n"
                                                     "}\n"},
    /* From 2^52 on all numbers are whole. */
    [SGM__SOURCE_FLOOR] = {0, "static @ $_floor(@ x)\n"
                              "{\n"
                              "    const @ limit = (@)4503599627370496.0;\n"
                              "    int64_t whole;\n"
                              "    if (!(x < limit && x > -limit))\n"
                              "        return x;\n"
                              "    whole = (int64_t)x;\n"
                              "    return (@)(whole - ((@)whole > x));\n"
                              "}\n"},
    /* Whole exponents by squaring give the right sign for negative x, whose logarithm does not exist. From
     * 2^53 on all numbers are even. */
    [SGM__SOURCE_POWER] = {NEEDS(EXP) | NEEDS(LOG) | NEEDS(FLOOR),
                           "/* x to the y: whole numbers by squaring, others by the logarithm. */\n"
                           "static @ $_power(@ x, @ y)\n"
                           "{\n"
                           "    const @ limit = (@)9007199254740992.0;\n"
                           "    const int far = !(y < limit && y > -limit);\n"
                           "    @ power = 1;\n"
                           "    if (y == 0 || x == 1)\n"
                           "        return 1;\n"
                           "    if (y != y)\n"
                           "        return y;\n"
                           "    if (!far && $_floor(y) == y) {\n"
                           "        for (int64_t k = (int64_t)(y < 0 ? -y : y); k > 0; k /= 2) {\n"
                           "            if (k % 2 != 0)\n"
                           "                power *= x;\n"
                           "            x *= x;\n"
                           "        }\n"
                           "        return y < 0 ? 1 / power : power;\n"
                           "    }\n"
                           "    if (x < 0 && (far || x - x != 0))\n"
                           "        x = -x;\n"
                           "    if (x == 0 || x == 1)\n"
                           "        return x == 1 ? 1 : y < 0 ? 1 / (x * x) : 0;\n"
                           "    return $_exp(y * $_log(x));\n"
                           "}\n"},
    [SGM__SOURCE_COMPLEMENT] =
        {0, "/* 1 - x to the k, in double: a power near 1 leaves few digits of float. */\n"
            "static @ $_complement(double x, int64_t k)\n"
            "{\n"
            "    double power = 1;\n"
            "    for (; k > 0; k /= 2) {\n"
            "        if (k % 2 != 0)\n"
            "            power *= x;\n"
            "        x *= x;\n"
            "    }\n"
            "    return (@)(1 - power);\n"
            "}\n"},
    [SGM__SOURCE_INTEGER] =
        {0, "/* A number without its fraction, within limits; what is no number is 0. */\n"
            "static int64_t $_integer(@ x, int64_t minimum, int64_t maximum)\n"
            "{\n"
            "    if (x != x)\n"
            "        return 0;\n"
            "    return x >= (@)maximum ? maximum : x <= (@)minimum ? minimum : (int64_t)x;\n"
            "}\n"},
    [SGM__SOURCE_WITHIN] = {0, "/* A whole number within limits. */\n"
                               "static int64_t $_within(int64_t x, int64_t minimum, int64_t maximum)\n"
                               "{\n"
                               "    return x > maximum ? maximum : x < minimum ? minimum : x;\n"
                               "}\n"},
    [SGM__SOURCE_DRAW] =
        {0, "/* Four random words, a function of seed, step, stream and number: Philox4x32-10 (Salmon et "
            "al., 2011). "
            "*/\n"
            "static void $_draw(uint64_t seed, uint64_t step, uint64_t stream, long block, uint32_t *words)\n"
            "{\n" SGM__SOURCE_PHILOX "}\n"},
};

char *sgm__source_capitals(const char *name, char *buffer, size_t size)
{
    size_t length = 0;
    for (; name[length] != '\0' && length + 1 < size; length++)
        buffer[length] =
            (char)(name[length] >= 'a' && name[length] <= 'z' ? name[length] - 'a' + 'A' : name[length]);
    buffer[length] = '\0';
    return buffer;
}

char *sgm__source_real(const sgm__source_request *request, char *buffer, size_t size)
{
    char capitals[SGM__SOURCE_NAME];
    sgm__source_capitals(request->name, capitals, sizeof capitals);
    snprintf(buffer, size, request->real == SGM_FLOAT32 ? "%s_REAL" : "double", capitals);
    return buffer;
}

void sgm__source_write_template(const sgm__source_request *request, const char *words, sgm__text *text)
{
    char capitals[SGM__SOURCE_NAME], real[SGM__SOURCE_NAME];
    sgm__source_capitals(request->name, capitals, sizeof capitals);
    sgm__source_real(request, real, sizeof real);
    for (const char *c = words; *c != '\0'; c++)
        if (*c == '$' || *c == '@' || *c == '~')
            sgm__text_append(text, "%s", *c == '$' ? request->name : *c == '@' ? real : capitals);
        else
            sgm__text_append_bytes(text, c, 1);
}

/* Goes backwards to find what is needed, as functions call only earlier ones, then writes in order. */
void sgm__source_write_functions(const sgm__source_request *request, uint32_t needed, sgm__text *text)
{
    for (int i = SGM__SOURCE_FUNCTION_COUNT; i-- > 0;)
        if ((needed >> i & 1) != 0)
            needed |= functions[i].needs;
    for (int i = 0; i < SGM__SOURCE_FUNCTION_COUNT; i++)
        if ((needed >> i & 1) != 0) {
            sgm__source_write_template(request, functions[i].words, text);
            sgm__text_append(text, "\n");
        }
}
