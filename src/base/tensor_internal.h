/* The inside of a tensor, and its elements. Internal. */
#ifndef SGM_BASE_TENSOR_INTERNAL_H
#define SGM_BASE_TENSOR_INTERNAL_H

#include "base/base.h"
#include <sigma/tensor.h>
#include <stdatomic.h>

typedef struct sgm__storage {
    atomic_int references;
    void *memory;
    void (*release)(void *user); /* of a wrapped one; NULL: the storage owns `memory` */
    void *user;
} sgm__storage;

struct sgm_tensor {
    atomic_int references;
    sgm_dtype dtype;
    sgm_shape shape;
    int64_t strides[SGM_MAX_RANK];
    sgm__storage *storage;
    char *data; /* first element of the view */
};

float sgm__bfloat16_to_float(uint16_t bits);
uint16_t sgm__bfloat16_from_float(float value); /* round to nearest, ties to even */
double sgm__element_load(sgm_dtype dtype, const void *element);
void sgm__element_store(sgm_dtype dtype, void *element, double value);
/* Copies one element, converting it: integers exactly. */
void sgm__element_convert(sgm_dtype to, void *target, sgm_dtype from, const void *source);
void sgm__contiguous_strides(const sgm_shape *shape, int64_t *strides);

#endif
