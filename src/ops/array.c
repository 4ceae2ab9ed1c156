/* Elements of any type as double: for the loops of operations and of programs.
 *
 * Operations' reference loops (`forward`) read and write through these, so that each is one loop for all
 * types; handlers have kernels of their own for speed. int64 beyond 2^53 must go by sgm__array_index
 * instead (rules.c). */
#include "tensor/tensor_internal.h"
#include <sigma/graph.h>

double sgm_array_load(const sgm_array *array, int64_t offset)
{
    const char *data = array->data;
    return sgm__element_load(array->dtype, data + offset * (int64_t)sgm_dtype_size(array->dtype));
}

/* Rounds to the array's type; a number beyond an integer type becomes its nearest limit. */
void sgm_array_store(const sgm_array *array, int64_t offset, double value)
{
    char *data = array->data;
    sgm__element_store(array->dtype, data + offset * (int64_t)sgm_dtype_size(array->dtype), value);
}

/* The place in memory of the element with this row-major number, by division from the last axis on. A
 * cursor (rules.h) does without the divisions where all elements are visited. */
int64_t sgm_array_offset(const sgm_array *array, int64_t number)
{
    int64_t offset = 0;
    for (int32_t i = array->shape.rank; i-- > 0;) {
        offset += number % array->shape.dims[i] * array->strides[i];
        number /= array->shape.dims[i];
    }
    return offset;
}
