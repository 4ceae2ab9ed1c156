/* Elements of any type as double: for kernels that are plain loops. */
#include <sigma/op.h>
#include <string.h>

static float load_bfloat16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even. */
static uint16_t to_bfloat16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return (uint16_t)(bits >> 16 | 0x40); /* stays a NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The integer nearest to zero's side, within the limits; 0 for NaN. */
static int64_t truncate(double value, int64_t least, int64_t most)
{
    if (value != value)
        return 0;
    if (value <= (double)least)
        return least;
    return value >= (double)most ? most : (int64_t)value;
}

double sgm_array_load(const sgm_array *array, int64_t offset)
{
    switch (array->dtype) {
    case SGM_FLOAT32:
        return (double)((const float *)array->data)[offset];
    case SGM_FLOAT64:
        return ((const double *)array->data)[offset];
    case SGM_INT32:
        return ((const int32_t *)array->data)[offset];
    case SGM_INT64:
        return (double)((const int64_t *)array->data)[offset];
    case SGM_UINT8:
        return ((const uint8_t *)array->data)[offset];
    case SGM_BOOL:
        return ((const uint8_t *)array->data)[offset] != 0;
    case SGM_BFLOAT16:
        return (double)load_bfloat16(((const uint16_t *)array->data)[offset]);
    case SGM_DTYPE_COUNT:
        break;
    }
    return 0;
}

void sgm_array_store(const sgm_array *array, int64_t offset, double value)
{
    switch (array->dtype) {
    case SGM_FLOAT32:
        ((float *)array->data)[offset] = (float)value;
        break;
    case SGM_FLOAT64:
        ((double *)array->data)[offset] = value;
        break;
    case SGM_INT32:
        ((int32_t *)array->data)[offset] = (int32_t)truncate(value, INT32_MIN, INT32_MAX);
        break;
    case SGM_INT64:
        ((int64_t *)array->data)[offset] = truncate(value, INT64_MIN, INT64_MAX);
        break;
    case SGM_UINT8:
        ((uint8_t *)array->data)[offset] = (uint8_t)truncate(value, 0, UINT8_MAX);
        break;
    case SGM_BOOL:
        ((uint8_t *)array->data)[offset] = value != 0;
        break;
    case SGM_BFLOAT16:
        ((uint16_t *)array->data)[offset] = to_bfloat16((float)value);
        break;
    case SGM_DTYPE_COUNT:
        break;
    }
}

int64_t sgm_array_offset(const sgm_array *array, int64_t number)
{
    int64_t offset = 0;
    for (int32_t i = array->shape.rank; i-- > 0;) {
        offset += number % array->shape.dims[i] * array->strides[i];
        number /= array->shape.dims[i];
    }
    return offset;
}
