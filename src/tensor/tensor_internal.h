/* Declares elements, shapes and strided copies, on which the public tensors (sigma/tensor.h) and files of
 * tensors stand. Internal. */
#ifndef SGM_TENSOR_TENSOR_INTERNAL_H
#define SGM_TENSOR_TENSOR_INTERNAL_H

#include "base/base.h"
#include <sigma/tensor.h>

/* --- shapes (shape.c) --- */
sgm_status sgm__dtype_check(sgm_dtype dtype);
/* Rank 0 to 8, no negative dimension, few enough elements to count their bytes; NULL is refused with a
 * message. */
sgm_status sgm__shape_check(const sgm_shape *shape);
/* The strides, counted in elements, of a contiguous (row-major) tensor: one for each dimension. `shape` has
 * passed the check. */
void sgm__contiguous_strides(const sgm_shape *shape, int64_t *strides);

/* --- elements (tensor_element.c); pointers need no alignment --- */
float sgm__bfloat16_to_float(uint16_t bits);
uint16_t sgm__bfloat16_from_float(float value);   /* to nearest, ties to even */
uint16_t sgm__bfloat16_from_double(double value); /* the same, rounded once */
/* IEEE 754 half precision, which files have and tensors do not; the conversion is exact, a NaN keeps its
 * payload. */
float sgm__float16_to_float(uint16_t bits);
double sgm__element_load(sgm_dtype dtype, const void *element);
void sgm__element_store(sgm_dtype dtype, void *element, double value);
/* Copies one element, converting it as sgm__copy_strided does. */
void sgm__element_convert(sgm_dtype target_dtype, void *target, sgm_dtype source_dtype, const void *source);

/* Copies all elements of `shape`, which has passed the check, converting the type: between integers exactly
 * (saturating), to floats to nearest, from floats truncating and saturating, NaN to 0; bool is "not 0".
 * Strides are counted in elements. The two must not overlap, unless they are the same places and types. */
void sgm__copy_strided(const sgm_shape *shape, sgm_dtype target_dtype, void *target,
                       const int64_t *target_strides, sgm_dtype source_dtype, const void *source,
                       const int64_t *source_strides);

/* --- tensors (tensor.c) --- */
#define SGM__SHAPE_TEXT 128 /* bytes for a shape in a message */
/* Passes on the failure that led to a NULL tensor, or reports the NULL itself. */
sgm_status sgm__tensor_check(const sgm_tensor *tensor);
/* A new tensor on the same buffer, whose first element is `data`; `strides` NULL: contiguous. */
sgm_tensor *sgm__tensor_view(const sgm_tensor *tensor, const sgm_shape *shape, const int64_t *strides,
                             void *data);
/* sgm_tensor_create without the zeros: for a caller that writes all elements. */
sgm_tensor *sgm__tensor_create_unset(sgm_dtype dtype, const sgm_shape *shape);

/* Checks examples, shape (count, ...), before they become float32: fails with SGM_ERROR_NUMERIC at the first
 * finite float64 that would become infinite. `first` is the number of the first example, for the message. */
sgm_status sgm__tensor_fits_float32(const sgm_tensor *tensor, int64_t first);

#endif
