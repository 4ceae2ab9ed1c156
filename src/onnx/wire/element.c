/* The types of ONNX's elements, and how tensors hold them.
 *
 * Types that the library lacks are held in the next wider one that it has: the integers of 2 to 16 bits in
 * int32, uint32 and uint64 in int64, the floats of 4 to 16 bits in float32. Every number of the narrow type
 * is exact there (uint64 up to 2^63 - 1). What a cast to the narrow type would do to a number is
 * sgm__onnx_narrow. Which values of a graph are of a narrow type is known while a model is recorded
 * (nodes/narrow.c). */
#include "onnx/wire/wire.h"

#include <math.h>

typedef enum kind { NONE, OWN, SIGNED, UNSIGNED, FLOAT, POWER } kind;

/* Indexed by TensorProto.DataType. NONE: a name for the error alone. OWN: a type of the library. FLOAT: with
 * that many bits behind the leading one, the exponent of code 0 negated, and the largest number; without
 * infinities unless `infinite`. `nan`: the code of the one that is no number, -1: none; with infinities it is
 * every code behind theirs. POWER: of two, without a sign or a zero. Texts are names of classes
 * alone, which classes.c makes numbers of. */
static const struct element {
    const char *name;
    kind kind;
    sgm_dtype dtype;
    int bits, mantissa, bias;
    double largest;
    bool infinite;
    int nan;
} elements[] = {
    [1] = {"float", OWN, SGM_FLOAT32, 32},
    [2] = {"uint8", OWN, SGM_UINT8, 8},
    [3] = {"int8", SIGNED, SGM_INT32, 8},
    [4] = {"uint16", UNSIGNED, SGM_INT32, 16},
    [5] = {"int16", SIGNED, SGM_INT32, 16},
    [6] = {"int32", OWN, SGM_INT32, 32},
    [7] = {"int64", OWN, SGM_INT64, 64},
    [8] = {"string", NONE, 0, 0},
    [9] = {"bool", OWN, SGM_BOOL, 8},
    [10] = {"float16", FLOAT, SGM_FLOAT32, 16, 10, 15, 65504, true, -1},
    [11] = {"double", OWN, SGM_FLOAT64, 64},
    [12] = {"uint32", UNSIGNED, SGM_INT64, 32},
    [13] = {"uint64", UNSIGNED, SGM_INT64, 64},
    [14] = {"complex64", NONE, 0, 0},
    [15] = {"complex128", NONE, 0, 0},
    [16] = {"bfloat16", OWN, SGM_BFLOAT16, 16},
    [17] = {"float8e4m3fn", FLOAT, SGM_FLOAT32, 8, 3, 7, 448, false, 0x7f},
    [18] = {"float8e4m3fnuz", FLOAT, SGM_FLOAT32, 8, 3, 8, 240, false, 0x80},
    [19] = {"float8e5m2", FLOAT, SGM_FLOAT32, 8, 2, 15, 57344, true, -1},
    [20] = {"float8e5m2fnuz", FLOAT, SGM_FLOAT32, 8, 2, 16, 57344, false, 0x80},
    [21] = {"uint4", UNSIGNED, SGM_INT32, 4},
    [22] = {"int4", SIGNED, SGM_INT32, 4},
    [23] = {"float4e2m1", FLOAT, SGM_FLOAT32, 4, 1, 1, 6, false, -1},
    [24] = {"float8e8m0", POWER, SGM_FLOAT32, 8, 0, 127, 0x1p127, false, 0xff},
    [25] = {"uint2", UNSIGNED, SGM_INT32, 2},
    [26] = {"int2", SIGNED, SGM_INT32, 2},
    [27] = {"float6e2m3", FLOAT, SGM_FLOAT32, 6, 3, 1, 7.5, false, -1},
    [28] = {"float6e3m2", FLOAT, SGM_FLOAT32, 6, 2, 3, 28, false, -1},
};
#define ELEMENT_COUNT ((int64_t)(sizeof elements / sizeof elements[0]))

/* --- names and widths --- */

sgm_status sgm__onnx_dtype(int64_t number, sgm_dtype *dtype)
{
    if (number < 1 || number >= ELEMENT_COUNT)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "type number %lld is unknown here", (long long)number);
    if (elements[number].kind == NONE)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "type %s is not supported: tensors are of numbers, integers and bool",
                        elements[number].name);
    *dtype = elements[number].dtype;
    return SGM_OK;
}

int32_t sgm__onnx_type_number(sgm_dtype dtype)
{
    for (int32_t i = 1; i < ELEMENT_COUNT; i++)
        if (elements[i].kind == OWN && elements[i].dtype == dtype)
            return i;
    return 0;
}

bool sgm__onnx_is_narrow(int64_t number)
{
    return number > 0 && number < ELEMENT_COUNT && elements[number].kind > OWN;
}

int sgm__onnx_bits(int32_t number)
{
    return elements[number].bits;
}

bool sgm__onnx_is_integer(int32_t number)
{
    const struct element *e = &elements[number];
    return e->kind == SIGNED || e->kind == UNSIGNED ||
           (e->kind == OWN && !sgm_dtype_is_float(e->dtype) && e->dtype != SGM_BOOL);
}

/* uint8 is the one such type that the library has. */
bool sgm__onnx_is_unsigned(int32_t number)
{
    return elements[number].kind == UNSIGNED || elements[number].dtype == SGM_UINT8;
}

void sgm__onnx_limits(int32_t number, double *minimum, double *maximum)
{
    const struct element *e = &elements[number];
    bool is_unsigned = sgm__onnx_is_unsigned(number);
    *minimum = is_unsigned ? 0 : -ldexp(1, e->bits - 1);
    *maximum = ldexp(1, is_unsigned ? e->bits : e->bits - 1) - 1;
    if (e->kind == FLOAT) {
        *minimum = -e->largest;
        *maximum = e->largest;
    }
}

/* --- to the narrow type --- */

int64_t sgm__onnx_wrap(int32_t number, int64_t value)
{
    const struct element *e = &elements[number];
    if (e->bits == 64)
        return value;
    uint64_t code = (uint64_t)value & (((uint64_t)1 << e->bits) - 1), sign = (uint64_t)1 << (e->bits - 1);
    return sgm__onnx_is_unsigned(number) ? (int64_t)code : (int64_t)(code ^ sign) - (int64_t)sign;
}

/* To the nearest number, halves to the even one: a multiple of the last digit's weight, which below the
 * smallest normal number stays as it is there. nearbyint follows the processor's mode, to the nearest. */
static double round_float(const struct element *e, double x, bool saturates)
{
    bool has_nan = e->infinite || e->nan >= 0;
    if (isnan(x))
        return has_nan ? x : 0;
    int exponent = x == 0 || isinf(x) || ilogb(x) < 1 - e->bias ? 1 - e->bias : ilogb(x);
    double digit = ldexp(1, exponent - e->mantissa), y = nearbyint(x / digit) * digit;
    if (fabs(y) <= e->largest)
        return y == 0 && e->nan == 0x80 ? 0 : y; /* the code of -0 is no number there */
    if (saturates || !has_nan)
        return copysign(e->largest, x);
    return e->infinite ? copysign(INFINITY, x) : NAN;
}

/* To a power of two: above, below, or the nearest, halves up. */
static double round_power(double x, bool saturates, sgm__onnx_direction direction)
{
    int exponent;
    if (isnan(x) || x < 0)
        return NAN;
    if (x < 0x1p-127)
        return 0x1p-127;
    double part = isinf(x) ? (exponent = 1025, 0.5) : frexp(x, &exponent); /* x = part * 2^exponent */
    bool up = direction == SGM__ONNX_UP ? part > 0.5 : direction == SGM__ONNX_NEAREST && part >= 0.75;
    exponent -= up ? 0 : 1;
    if (exponent > 127)
        return saturates ? 0x1p127 : NAN;
    return ldexp(1, exponent);
}

double sgm__onnx_narrow(int32_t number, double value, bool saturates, sgm__onnx_direction direction)
{
    const struct element *e = &elements[number];
    if (e->kind == POWER)
        return round_power(value, saturates, direction);
    if (e->kind == FLOAT)
        return round_float(e, value, saturates && e->bits < 16);
    return (double)sgm__onnx_wrap(number, (int64_t)value);
}

/* --- from its code --- */

static double decode_float(const struct element *e, uint64_t code)
{
    uint64_t digits = code & (((uint64_t)1 << e->mantissa) - 1);
    bool minus = code >> (e->bits - 1) != 0;
    int exponent = (int)(code >> e->mantissa) & ((1 << (e->bits - 1 - e->mantissa)) - 1);
    bool last = exponent == (1 << (e->bits - 1 - e->mantissa)) - 1;
    if ((e->nan >= 0 && (code & (e->nan == 0x80 ? 0xff : 0x7f)) == (uint64_t)e->nan) ||
        (e->infinite && last && digits != 0))
        return NAN;
    double size = exponent == 0 ? ldexp((double)digits, 1 - e->bias - e->mantissa)
                                : ldexp((double)(digits + ((uint64_t)1 << e->mantissa)),
                                        exponent - e->bias - e->mantissa);
    size = e->infinite && last ? INFINITY : size;
    return minus ? -size : size;
}

sgm_status sgm__onnx_widen(int32_t number, const uint8_t *bytes, size_t stride, size_t count, void *target)
{
    const struct element *e = &elements[number];
    uint64_t mask = e->bits == 64 ? UINT64_MAX : ((uint64_t)1 << e->bits) - 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t code = 0;
        size_t at = i * stride, last = at + (size_t)e->bits - 1;
        for (size_t k = last / 8 + 1; k-- > at / 8;)
            code = code << 8 | bytes[k];
        code = code >> at % 8 & mask;
        if (e->kind == UNSIGNED && code > INT64_MAX)
            return sgm_fail(SGM_ERROR_UNSUPPORTED,
                            "it has the element %llu: of uint64 those to 2^63 - 1 are held",
                            (unsigned long long)code);
        if (e->kind == POWER)
            ((float *)target)[i] = code == (uint64_t)e->nan ? NAN : (float)ldexp(1, (int)code - e->bias);
        else if (e->kind == FLOAT)
            ((float *)target)[i] = (float)decode_float(e, code);
        else if (e->dtype == SGM_INT64)
            ((int64_t *)target)[i] = sgm__onnx_wrap(number, (int64_t)code);
        else
            ((int32_t *)target)[i] = (int32_t)sgm__onnx_wrap(number, (int64_t)code);
    }
    return SGM_OK;
}
