/* Types of elements, and shapes. */
#include "base/tensor_internal.h"

#include <stdio.h>

static const struct {
    size_t size;
    const char *name;
} dtypes[] = {
#define DTYPE_ROW(name, size, text) [SGM_##name] = {size, text},
    SGM_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

size_t sgm_dtype_size(sgm_dtype dtype)
{
    return (unsigned)dtype < SGM_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *sgm_dtype_name(sgm_dtype dtype)
{
    return (unsigned)dtype < SGM_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

bool sgm_dtype_is_float(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64 || dtype == SGM_BFLOAT16;
}

sgm_status sgm_dtype_parse(const char *name, sgm_dtype *dtype)
{
    const char *names[SGM_DTYPE_COUNT];
    for (int i = 0; i < SGM_DTYPE_COUNT; i++) {
        names[i] = dtypes[i].name;
        if (strcmp(name, names[i]) == 0) {
            *dtype = (sgm_dtype)i;
            return SGM_OK;
        }
    }
    const char *near = sgm__nearest(name, names, SGM_DTYPE_COUNT);
    return sgm_fail(SGM_ERROR_TYPE, "unknown element type '%s'; did you mean '%s'?", name,
                    near != NULL ? near : "float32");
}

sgm_shape sgm_shape_make(int32_t rank, const int64_t *dims)
{
    sgm_shape shape = {.rank = rank};
    for (int32_t i = 0; i < rank && i < SGM_MAX_RANK; i++)
        shape.dims[i] = dims[i];
    return shape;
}

sgm_shape sgm_shape_scalar(void)
{
    return (sgm_shape){0};
}

bool sgm_shape_equal(const sgm_shape *a, const sgm_shape *b)
{
    for (int32_t i = 0; i < a->rank && i < SGM_MAX_RANK && a->rank == b->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return a->rank == b->rank;
}

int64_t sgm_shape_elements(const sgm_shape *shape)
{
    if (shape->rank < 0 || shape->rank > SGM_MAX_RANK)
        return -1;
    int64_t elements = 1, without_zeros = 1;
    for (int32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        if (dim < 0 || (dim > 0 && __builtin_mul_overflow(without_zeros, dim, &without_zeros)))
            return -1;
        elements = dim == 0 ? 0 : elements;
    }
    bool addressable = without_zeros <= INT64_MAX / 16; /* so that bytes do not overflow either */
    return !addressable ? -1 : elements == 0 ? 0 : without_zeros;
}

sgm_status sgm_shape_broadcast(const sgm_shape *a, const sgm_shape *b, sgm_shape *result)
{
    sgm_shape wider = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 1; i <= wider.rank; i++) {
        int64_t x = i <= a->rank ? a->dims[a->rank - i] : 1, y = i <= b->rank ? b->dims[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1) {
            char text_a[128], text_b[128];
            return sgm_fail(SGM_ERROR_SHAPE,
                            "shapes %s and %s do not broadcast: dimension %d from the end is %lld and %lld",
                            sgm_shape_text(a, text_a, sizeof text_a),
                            sgm_shape_text(b, text_b, sizeof text_b), i, (long long)x, (long long)y);
        }
        wider.dims[wider.rank - i] = x == 1 ? y : x;
    }
    *result = wider;
    return SGM_OK;
}

char *sgm_shape_text(const sgm_shape *shape, char *buffer, size_t size)
{
    size_t length = (size_t)snprintf(buffer, size, "(");
    for (int32_t i = 0; i < shape->rank && i < SGM_MAX_RANK && length < size; i++)
        length += (size_t)snprintf(buffer + length, size - length, "%s%lld", i > 0 ? ", " : "",
                                   (long long)shape->dims[i]);
    if (length < size)
        snprintf(buffer + length, size - length, shape->rank == 1 ? ",)" : ")");
    return buffer;
}

void sgm__contiguous_strides(const sgm_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int32_t i = shape->rank; i-- > 0;) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}
