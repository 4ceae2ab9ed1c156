/* Arithmetic of sizes that the planner and the handlers share. Internal. */
#ifndef SGM_HANDLERS_SIZES_H
#define SGM_HANDLERS_SIZES_H

#include <sigma/graph.h>

/* Where values and areas of memory begin: at multiples of a cache line, and of the widest vectors. */
#define SGM__ALIGNMENT 64

/* Rounded up to a multiple of SGM__ALIGNMENT. */
static inline size_t sgm__align(size_t bytes)
{
    return (bytes + SGM__ALIGNMENT - 1) / SGM__ALIGNMENT * SGM__ALIGNMENT;
}

static inline int64_t sgm__minimum(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* a / b, rounded up. */
static inline int64_t sgm__divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Bytes of a contiguous value. */
static inline size_t sgm__type_bytes(const sgm_type *type)
{
    return (size_t)sgm_shape_elements(&type->shape) * sgm_dtype_size(type->dtype);
}

#endif
