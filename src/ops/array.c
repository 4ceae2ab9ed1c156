/* Elements of any type as double: for kernels that are plain loops. */
#include "tensor/tensor_internal.h"
#include <sigma/op.h>

double sgm_array_load(const sgm_array *array, int64_t offset)
{
    const char *data = array->data;
    return sgm__element_load(array->dtype, data + offset * (int64_t)sgm_dtype_size(array->dtype));
}

void sgm_array_store(const sgm_array *array, int64_t offset, double value)
{
    char *data = array->data;
    sgm__element_store(array->dtype, data + offset * (int64_t)sgm_dtype_size(array->dtype), value);
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
