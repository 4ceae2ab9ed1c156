/* Converts elements of all types into each other, one at a time and as strided copies of whole tensors.
 *
 * Every conversion goes by way of a wide type: int64 where the source is an integer or bool, double where it
 * is a float. So a type needs one load and one store for each wide type, instead of a loop for each pair of
 * types, and each value is rounded once. sgm__copy_strided walks through both tensors row by row; a row goes
 * through a buffer of CHUNK wide values, which stays in the first-level cache. Addresses need no alignment:
 * every access is a memcpy. Callers: tensor.c, the sessions, the planner and several handlers (src/handlers),
 * and loops of operations (src/ops/array.c). */
#include "tensor/tensor_internal.h"

#include <math.h>

#define CHUNK 256 /* wide values at a time: 2 kB of stack */

/* --- bfloat16: the upper half of a float32 --- */

float sgm__bfloat16_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* To nearest, ties to even: adding 0x7FFF, plus 1 if the lowest bit that stays is set, carries into the upper
 * half exactly when that half has to be rounded up; a carry out of the largest number gives infinity. */
uint16_t sgm__bfloat16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40u); /* stays a NaN, even when its payload was in the lower half */
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

/* Rounding to nearest twice, double to float to bfloat16, may be off by one. So the step to float rounds to
 * odd instead: truncate, and set the lowest bit if anything was lost. The extra bits of float (16 more than
 * bfloat16 has) then still tell every tie from its neighbours, and the second rounding is correct (Boldo and
 * Melquiond, 2008). */
uint16_t sgm__bfloat16_from_double(double value)
{
    float near = (float)value;
    if (!isnan(value) && (double)near != value) {
        uint32_t bits;
        memcpy(&bits, &near, sizeof bits);
        if (fabs((double)near) > fabs(value))
            bits--;
        bits |= 1u;
        memcpy(&near, &bits, sizeof bits);
    }
    return sgm__bfloat16_from_float(near);
}

/* float16 has a sign, 5 bits of exponent (bias 15) and 10 of fraction; 112 is the difference of the biases,
 * 127 - 15. Exponent 0 is zero or subnormal, fraction * 2^-24; exponent 31 is infinite or NaN. */
float sgm__float16_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = (half >> 10) & 31u, fraction = half & 1023u,
             bits;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    if (exponent == 31)
        bits = sign | 0x7f800000u | fraction << 13;
    else
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to nearest, ties to even; beyond 65504 by more than half a step it is infinite. A NaN keeps what of
 * its payload fits, so that one that came from float16 is the same again. */
static uint16_t float16_from_float(float value)
{
    uint32_t bits, size;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) {
        uint16_t payload = (uint16_t)(size >> 13 & 1023u);
        return (uint16_t)(sign | 0x7c00u | (payload != 0 ? payload : 512u));
    }
    if (size < 113u << 23) /* below 2^-14: subnormal, a whole number of 2^-24 */
        return (uint16_t)(sign | (uint16_t)rintf(fabsf(value) * 0x1p24f));
    size += 0xfffu + (size >> 13 & 1u);
    size = (size >> 13) - (112u << 10);
    return (uint16_t)(sign | (size < 0x7c00u ? size : 0x7c00u));
}

void sgm_halves_from_floats(void *halves, const float *floats, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half = float16_from_float(floats[i]);
        memcpy((char *)halves + i * sizeof half, &half, sizeof half);
    }
}

/* From the front: where the halves lie at the end of the floats, element i is written to 4i and read from
 * 2 (count + i), so that writing never passes what is still to be read. */
void sgm_floats_from_halves(float *floats, const void *halves, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, (const char *)halves + i * sizeof half, sizeof half);
        floats[i] = sgm__float16_to_float(half);
    }
}

/* A double holds integers of up to 53 bits, so a larger one would be rounded twice. The 11 lowest bits are
 * folded into one that says whether any of them was set: rounding to odd again. */
static uint16_t bfloat16_from_int64(int64_t value)
{
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    double wide = (double)magnitude;
    if (magnitude >> 53)
        wide = (double)(magnitude >> 11 | ((magnitude & 0x7FFu) != 0)) * 2048.0;
    return sgm__bfloat16_from_double(value < 0 ? -wide : wide);
}

/* --- saturating conversions --- */

/* Truncates as C does, but saturates where C's conversion is undefined; NaN becomes 0. The limits are powers
 * of two, which double has exactly; INT64_MAX it has not. */
static int64_t int64_from_double(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value <= -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

static int64_t clamp(int64_t value, int64_t minimum, int64_t maximum)
{
    return value < minimum ? minimum : value > maximum ? maximum : value;
}

static int32_t int32_from_int64(int64_t value)
{
    return (int32_t)clamp(value, INT32_MIN, INT32_MAX);
}

static uint8_t uint8_from_int64(int64_t value)
{
    return (uint8_t)clamp(value, 0, UINT8_MAX);
}

/* --- rows: `count` elements, `step` bytes apart, to and from a wide type: double for floats, int64 for the
 * others where they must stay exact --- */

/* bool counts as an integer here. */
static bool is_integer(sgm_dtype dtype)
{
    return !sgm_dtype_is_float(dtype);
}

/* The loop of one case: reads `count` elements and ends the case. `expression` converts the element x. */
#define LOAD(type, expression)                                                                               \
    for (size_t i = 0; i < count; i++, source += step) {                                                     \
        type x;                                                                                              \
        memcpy(&x, source, sizeof x);                                                                        \
        wide[i] = (expression);                                                                              \
    }                                                                                                        \
    break

/* The loop of one case: `expression` converts wide[i] to the type of the elements. */
#define STORE(type, expression)                                                                              \
    for (size_t i = 0; i < count; i++, target += step) {                                                     \
        type y = (expression);                                                                               \
        memcpy(target, &y, sizeof y);                                                                        \
    }                                                                                                        \
    break

/* Also loads integers, for sgm__element_load; conversions between tensors load those with load_integers. */
static void load_doubles(double *wide, size_t count, sgm_dtype dtype, const char *source, ptrdiff_t step)
{
    switch ((int)dtype) {
    case SGM_FLOAT32:
        LOAD(float, (double)x);
    case SGM_FLOAT64:
        LOAD(double, x);
    case SGM_BFLOAT16:
        LOAD(uint16_t, (double)sgm__bfloat16_to_float(x));
    case SGM_INT32:
        LOAD(int32_t, (double)x);
    case SGM_INT64:
        LOAD(int64_t, (double)x);
    case SGM_UINT8:
        LOAD(uint8_t, (double)x);
    default: /* SGM_BOOL: named so, the compiler sees that every case fills `wide` */
        LOAD(uint8_t, x != 0 ? 1.0 : 0.0);
    }
}

static void load_integers(int64_t *wide, size_t count, sgm_dtype dtype, const char *source, ptrdiff_t step)
{
    switch ((int)dtype) {
    case SGM_INT32:
        LOAD(int32_t, x);
    case SGM_INT64:
        LOAD(int64_t, x);
    case SGM_UINT8:
        LOAD(uint8_t, x);
    default:
        LOAD(uint8_t, x != 0);
    }
}

/* Floats to integers truncate and saturate; to bfloat16 they round once. */
static void store_doubles(const double *wide, size_t count, sgm_dtype dtype, char *target, ptrdiff_t step)
{
    switch ((int)dtype) {
    case SGM_FLOAT32:
        STORE(float, (float)wide[i]);
    case SGM_FLOAT64:
        STORE(double, wide[i]);
    case SGM_BFLOAT16:
        STORE(uint16_t, sgm__bfloat16_from_double(wide[i]));
    case SGM_INT32:
        STORE(int32_t, int32_from_int64(int64_from_double(wide[i])));
    case SGM_INT64:
        STORE(int64_t, int64_from_double(wide[i]));
    case SGM_UINT8:
        STORE(uint8_t, uint8_from_int64(int64_from_double(wide[i])));
    case SGM_BOOL:
        STORE(uint8_t, wide[i] != 0.0);
    }
}

/* Integers to narrower integers saturate; to floats they round to nearest. */
static void store_integers(const int64_t *wide, size_t count, sgm_dtype dtype, char *target, ptrdiff_t step)
{
    switch ((int)dtype) {
    case SGM_FLOAT32:
        STORE(float, (float)wide[i]);
    case SGM_FLOAT64:
        STORE(double, (double)wide[i]);
    case SGM_BFLOAT16:
        STORE(uint16_t, bfloat16_from_int64(wide[i]));
    case SGM_INT32:
        STORE(int32_t, int32_from_int64(wide[i]));
    case SGM_INT64:
        STORE(int64_t, wide[i]);
    case SGM_UINT8:
        STORE(uint8_t, uint8_from_int64(wide[i]));
    case SGM_BOOL:
        STORE(uint8_t, wide[i] != 0);
    }
}

#define COPY(size)                                                                                           \
    for (size_t i = 0; i < count; i++, target += target_step, source += source_step)                         \
        memcpy(target, source, (size));                                                                      \
    break

/* Copies elements of one type bit by bit, so that NaNs keep their payload. Nothing happens if source and
 * target are the same elements. */
static void copy_row(size_t size, size_t count, char *target, ptrdiff_t target_step, const char *source,
                     ptrdiff_t source_step)
{
    if (target == source && target_step == source_step)
        return;
    if (target_step == (ptrdiff_t)size && source_step == (ptrdiff_t)size) {
        memcpy(target, source, count * size);
        return;
    }
    switch (size) {
    case 1:
        COPY(1);
    case 2:
        COPY(2);
    case 4:
        COPY(4);
    case 8:
        COPY(8);
    }
}

/* Converts `count` elements; steps are in bytes, and may be 0 or negative. */
static void convert_row(size_t count, sgm_dtype target_dtype, char *target, ptrdiff_t target_step,
                        sgm_dtype source_dtype, const char *source, ptrdiff_t source_step)
{
    if (target_dtype == source_dtype) {
        copy_row(sgm_dtype_size(target_dtype), count, target, target_step, source, source_step);
        return;
    }
    union {
        double doubles[CHUNK];
        int64_t integers[CHUNK];
    } wide;
    while (count > 0) {
        size_t part = count < CHUNK ? count : CHUNK;
        if (is_integer(source_dtype)) {
            load_integers(wide.integers, part, source_dtype, source, source_step);
            store_integers(wide.integers, part, target_dtype, target, target_step);
        } else {
            load_doubles(wide.doubles, part, source_dtype, source, source_step);
            store_doubles(wide.doubles, part, target_dtype, target, target_step);
        }
        count -= part;
        source += (ptrdiff_t)part * source_step;
        target += (ptrdiff_t)part * target_step;
    }
}

/* --- single elements --- */

double sgm__element_load(sgm_dtype dtype, const void *element)
{
    double value = 0;
    load_doubles(&value, 1, dtype, element, 0);
    return value;
}

void sgm__element_store(sgm_dtype dtype, void *element, double value)
{
    store_doubles(&value, 1, dtype, element, 0);
}

void sgm__element_convert(sgm_dtype target_dtype, void *target, sgm_dtype source_dtype, const void *source)
{
    convert_row(1, target_dtype, target, 0, source_dtype, source, 0);
}

/* --- strided copies --- */

/* The loop nest of a copy, outermost first: for each dimension its size, and the strides of both sides in
 * elements. */
typedef struct walk {
    int32_t rank;
    int64_t dims[SGM_MAX_RANK], target[SGM_MAX_RANK], source[SGM_MAX_RANK];
} walk;

/* Leaves out dimensions of size 1, and joins neighbours that both sides step through evenly (outer stride =
 * inner stride * inner size): rows become as long as possible, and two contiguous tensors are a single row.
 */
static walk join_dimensions(const sgm_shape *shape, const int64_t *target_strides,
                            const int64_t *source_strides)
{
    walk joined = {0};
    for (int32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        if (dim == 1)
            continue;
        int32_t last = joined.rank - 1;
        if (last >= 0 && joined.target[last] == target_strides[i] * dim &&
            joined.source[last] == source_strides[i] * dim) {
            joined.dims[last] *= dim;
        } else {
            last = joined.rank++;
            joined.dims[last] = dim;
        }
        joined.target[last] = target_strides[i];
        joined.source[last] = source_strides[i];
    }
    return joined;
}

/* The last joined dimension is the row; the others are counted like an odometer: the innermost index
 * advances, and one that is full goes back to 0, taking its addresses back, and lets the next outer one
 * advance. The walk ends when the outermost is full. */
void sgm__copy_strided(const sgm_shape *shape, sgm_dtype target_dtype, void *target,
                       const int64_t *target_strides, sgm_dtype source_dtype, const void *source,
                       const int64_t *source_strides)
{
    if (sgm_shape_elements(shape) <= 0)
        return;
    walk joined = join_dimensions(shape, target_strides, source_strides);
    ptrdiff_t target_size = (ptrdiff_t)sgm_dtype_size(target_dtype);
    ptrdiff_t source_size = (ptrdiff_t)sgm_dtype_size(source_dtype);
    int32_t row = joined.rank - 1;
    int64_t length = row >= 0 ? joined.dims[row] : 1;
    ptrdiff_t target_step = row >= 0 ? (ptrdiff_t)joined.target[row] * target_size : target_size;
    ptrdiff_t source_step = row >= 0 ? (ptrdiff_t)joined.source[row] * source_size : source_size;
    int64_t indices[SGM_MAX_RANK] = {0};
    char *to = target;
    const char *from = source;
    for (;;) {
        convert_row((size_t)length, target_dtype, to, target_step, source_dtype, from, source_step);
        int32_t axis = row - 1;
        for (; axis >= 0; axis--) {
            to += (ptrdiff_t)joined.target[axis] * target_size;
            from += (ptrdiff_t)joined.source[axis] * source_size;
            if (++indices[axis] < joined.dims[axis])
                break;
            to -= (ptrdiff_t)(joined.target[axis] * joined.dims[axis]) * target_size;
            from -= (ptrdiff_t)(joined.source[axis] * joined.dims[axis]) * source_size;
            indices[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}
