/* Elements of all types: loading, storing, converting. */
#include "base/tensor_internal.h"

#include <math.h>

float sgm__bfloat16_to_float(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

uint16_t sgm__bfloat16_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

double sgm__element_load(sgm_dtype dtype, const void *element)
{
    switch (dtype) {
    case SGM_FLOAT32:
        return *(const float *)element;
    case SGM_FLOAT64:
        return *(const double *)element;
    case SGM_INT32:
        return *(const int32_t *)element;
    case SGM_INT64:
        return (double)*(const int64_t *)element;
    case SGM_UINT8:
    case SGM_BOOL:
        return *(const uint8_t *)element;
    case SGM_BFLOAT16:
        return sgm__bfloat16_to_float(*(const uint16_t *)element);
    default:
        return 0;
    }
}

/* Truncates as C does, and saturates where C leaves it open. */
static int64_t to_integer(double value, int64_t least, int64_t most)
{
    if (value != value)
        return 0;
    if (value <= (double)least)
        return least;
    return value >= (double)most ? most : (int64_t)value;
}

static int64_t saturate(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

void sgm__element_store(sgm_dtype dtype, void *element, double value)
{
    switch (dtype) {
    case SGM_FLOAT32:
        *(float *)element = (float)value;
        break;
    case SGM_FLOAT64:
        *(double *)element = value;
        break;
    case SGM_INT32:
        *(int32_t *)element = (int32_t)to_integer(value, INT32_MIN, INT32_MAX);
        break;
    case SGM_INT64:
        *(int64_t *)element = to_integer(value, INT64_MIN, INT64_MAX);
        break;
    case SGM_UINT8:
        *(uint8_t *)element = (uint8_t)to_integer(value, 0, UINT8_MAX);
        break;
    case SGM_BOOL:
        *(uint8_t *)element = value != 0;
        break;
    case SGM_BFLOAT16:
        *(uint16_t *)element = sgm__bfloat16_from_float((float)value);
        break;
    default:
        break;
    }
}

static bool load_integer(sgm_dtype dtype, const void *element, int64_t *value)
{
    switch (dtype) {
    case SGM_INT32:
        *value = *(const int32_t *)element;
        return true;
    case SGM_INT64:
        *value = *(const int64_t *)element;
        return true;
    case SGM_UINT8:
    case SGM_BOOL:
        *value = *(const uint8_t *)element;
        return true;
    default:
        return false;
    }
}

void sgm__element_convert(sgm_dtype to, void *target, sgm_dtype from, const void *source)
{
    int64_t value;
    if (to == from) {
        memcpy(target, source, sgm_dtype_size(to));
    } else if (!load_integer(from, source, &value) || sgm_dtype_is_float(to)) {
        sgm__element_store(to, target, sgm__element_load(from, source));
    } else if (to == SGM_INT64) {
        *(int64_t *)target = value;
    } else if (to == SGM_INT32) {
        *(int32_t *)target = (int32_t)saturate(value, INT32_MIN, INT32_MAX);
    } else if (to == SGM_UINT8) {
        *(uint8_t *)target = (uint8_t)saturate(value, 0, UINT8_MAX);
    } else {
        *(uint8_t *)target = value != 0;
    }
}
