/* Views of tensors: slices, other orders of axes, repeated dimensions, other shapes. They have elements in
 * common with the tensor that they are made of (tensor.c); nothing is copied but where a shape needs it. */
#include "tensor/tensor_internal.h"

/* --- views --- */

/* The number of entries from `start` on, before `stop`, in steps of `step`: ceil(|stop - start| / |step|).
 * Unsigned arithmetic, because the negation of the smallest step does not fit into int64. Unlike Python's
 * slices, limits outside of the dimension are errors. */
static sgm_status count_slice(const sgm_shape *shape, int32_t axis, int64_t start, int64_t stop, int64_t step,
                              int64_t *count)
{
    char text[SGM__SHAPE_TEXT];
    if (axis < 0 || axis >= shape->rank)
        return sgm_fail(SGM_ERROR_ARGUMENT, "cannot slice axis %d of the shape %s: expected 0 to %d",
                        (int)axis, sgm_shape_text(shape, text, sizeof text), (int)shape->rank - 1);
    int64_t dim = shape->dims[axis];
    if (step == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "cannot slice with step 0: expected a positive or negative step");
    bool fits =
        step > 0 ? start >= 0 && start <= stop && stop <= dim : stop >= -1 && stop <= start && start < dim;
    if (!fits)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "cannot slice %lld to %lld, step %lld, from axis %d of the shape %s: "
                        "expected %s",
                        (long long)start, (long long)stop, (long long)step, (int)axis,
                        sgm_shape_text(shape, text, sizeof text),
                        step > 0 ? "0 <= start <= stop <= size" : "-1 <= stop <= start < size");
    uint64_t distance = (uint64_t)(stop - start), pace = (uint64_t)step;
    if (step < 0) {
        distance = 0 - distance;
        pace = 0 - pace;
    }
    *count = (int64_t)(distance / pace + (distance % pace != 0));
    return SGM_OK;
}

/* With at most one entry the step is never taken and may be huge: it stays out of the product. */
sgm_tensor *sgm_tensor_slice(sgm_tensor *tensor, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    int64_t count;
    if (sgm__tensor_check(tensor) != SGM_OK ||
        count_slice(sgm_tensor_shape(tensor), axis, start, stop, step, &count) != SGM_OK)
        return NULL;
    sgm_shape shape = *sgm_tensor_shape(tensor);
    const int64_t *given = sgm_tensor_strides(tensor);
    int64_t strides[SGM_MAX_RANK] = {0};
    memcpy(strides, given, (size_t)shape.rank * sizeof *strides);
    shape.dims[axis] = count;
    if (count > 1)
        strides[axis] *= step;
    char *data = sgm_tensor_data(tensor);
    if (count > 0)
        data += (ptrdiff_t)(start * given[axis]) * (ptrdiff_t)sgm_dtype_size(sgm_tensor_dtype(tensor));
    return sgm__tensor_view(tensor, &shape, strides, data);
}

/* Axis i of the view is axis axes[i] of the tensor: only dims and strides are reordered. */
sgm_tensor *sgm_tensor_permute(sgm_tensor *tensor, const int32_t *axes)
{
    if (sgm__tensor_check(tensor) != SGM_OK)
        return NULL;
    const sgm_shape *from = sgm_tensor_shape(tensor);
    sgm_shape shape = {.rank = from->rank};
    int64_t strides[SGM_MAX_RANK] = {0};
    bool used[SGM_MAX_RANK] = {false};
    if (!axes && shape.rank > 0) {
        sgm_fail(SGM_ERROR_ARGUMENT, "cannot permute: expected %d axes, got NULL", (int)shape.rank);
        return NULL;
    }
    for (int32_t i = 0; i < shape.rank; i++) {
        int32_t axis = axes[i];
        if (axis < 0 || axis >= shape.rank || used[axis]) {
            sgm_fail(SGM_ERROR_ARGUMENT,
                     "cannot permute: expected each axis from 0 to %d once, got %d as number %d",
                     (int)shape.rank - 1, (int)axis, (int)i);
            return NULL;
        }
        used[axis] = true;
        shape.dims[i] = from->dims[axis];
        strides[i] = sgm_tensor_strides(tensor)[axis];
    }
    return sgm__tensor_view(tensor, &shape, strides, sgm_tensor_data(tensor));
}

/* A dimension of 1 is repeated by a stride of 0; new dimensions in front have stride 0, too. All repetitions
 * are the same memory, so the view must not be written to (check_writable in tensor.c). */
sgm_tensor *sgm_tensor_broadcast(sgm_tensor *tensor, const sgm_shape *shape)
{
    char narrow[SGM__SHAPE_TEXT], wide[SGM__SHAPE_TEXT];
    if (sgm__tensor_check(tensor) != SGM_OK || sgm__shape_check(shape) != SGM_OK)
        return NULL;
    const sgm_shape *from = sgm_tensor_shape(tensor);
    int64_t strides[SGM_MAX_RANK] = {0};
    int32_t added = shape->rank - from->rank;
    bool fits = added >= 0;
    for (int32_t i = 0; fits && i < from->rank; i++) {
        int64_t dim = from->dims[i];
        fits = dim == shape->dims[added + i] || dim == 1;
        strides[added + i] = dim == shape->dims[added + i] ? sgm_tensor_strides(tensor)[i] : 0;
    }
    if (!fits) {
        sgm_fail(
            SGM_ERROR_SHAPE,
            "the shape %s cannot be broadcast to %s: compared from the ends, expected equal dimensions or 1",
            sgm_shape_text(from, narrow, sizeof narrow), sgm_shape_text(shape, wide, sizeof wide));
        return NULL;
    }
    return sgm__tensor_view(tensor, shape, strides, sgm_tensor_data(tensor));
}

/* --- reshaping --- */

/* Replaces a dimension of -1 by what remains for it, and checks that the number of elements stays the same.
 * With 0 elements in the other dimensions a -1 has no single answer and is an error. */
static sgm_status resolve_shape(const sgm_shape *from, const sgm_shape *wanted, sgm_shape *shape)
{
    char from_text[SGM__SHAPE_TEXT], text[SGM__SHAPE_TEXT];
    if (!wanted)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a shape, got NULL");
    int64_t elements = sgm_shape_elements(from);
    int32_t open = -1;
    *shape = sgm_shape_create(wanted->rank, wanted->dims);
    for (int32_t i = 0; i < shape->rank && i < SGM_MAX_RANK; i++) {
        if (shape->dims[i] != -1)
            continue;
        if (open >= 0)
            return sgm_fail(SGM_ERROR_SHAPE, "cannot reshape to %s: expected at most one dimension of -1",
                            sgm_shape_text(wanted, text, sizeof text));
        open = i;
        shape->dims[i] = 1;
    }
    SGM_TRY(sgm__shape_check(shape));
    int64_t known = sgm_shape_elements(shape);
    if (open >= 0 && known > 0 && elements % known == 0)
        shape->dims[open] = elements / known;
    if (sgm_shape_elements(shape) != elements || (open >= 0 && known == 0))
        return sgm_fail(SGM_ERROR_SHAPE, "cannot reshape %s to %s: expected a shape of %lld elements",
                        sgm_shape_text(from, from_text, sizeof from_text),
                        sgm_shape_text(wanted, text, sizeof text), (long long)elements);
    return SGM_OK;
}

/* Finds strides under which the same elements have another shape, which must have as many elements (more than
 * 0); false if only a copy can have it. Both shapes are split into the shortest runs of dimensions that hold
 * equally many elements (old dimensions of 1 left out): old (6, 4) and new (2, 3, 4) into 6 = 2 * 3 and 4 =
 * 4. A run of old dimensions that is evenly spaced is a single dimension with the stride of its last one, and
 * can be cut anew. The same rule as NumPy's. */
static bool restride(const sgm_tensor *tensor, const sgm_shape *shape, int64_t strides[SGM_MAX_RANK])
{
    const sgm_shape *from = sgm_tensor_shape(tensor);
    sgm_shape old = {0};
    int64_t old_strides[SGM_MAX_RANK] = {0};
    for (int32_t i = 0; i < from->rank; i++) {
        if (from->dims[i] != 1) {
            old.dims[old.rank] = from->dims[i];
            old_strides[old.rank++] = sgm_tensor_strides(tensor)[i];
        }
    }
    memset(strides, 0, SGM_MAX_RANK * sizeof *strides);
    int32_t i = 0, j = 0;
    while (i < old.rank) {
        int32_t first_old = i, first_new = j;
        int64_t old_count = old.dims[i++], new_count = shape->dims[j++];
        while (old_count != new_count) {
            if (old_count < new_count)
                old_count *= old.dims[i++];
            else
                new_count *= shape->dims[j++];
        }
        for (int32_t k = first_old; k + 1 < i; k++)
            if (old_strides[k] != old_strides[k + 1] * old.dims[k + 1])
                return false;
        int64_t stride = old_strides[i - 1];
        for (int32_t k = j - 1; k >= first_new; k--) {
            strides[k] = stride;
            stride *= shape->dims[k];
        }
    }
    return true; /* new dimensions that remain are 1: any stride does */
}

/* Tries without a copy first. A copy is contiguous, and any shape of as many elements is a view of that; the
 * view keeps the copy's buffer alive. */
sgm_tensor *sgm_tensor_reshape(sgm_tensor *tensor, const sgm_shape *shape)
{
    sgm_shape resolved;
    int64_t strides[SGM_MAX_RANK];
    if (sgm__tensor_check(tensor) != SGM_OK ||
        resolve_shape(sgm_tensor_shape(tensor), shape, &resolved) != SGM_OK)
        return NULL;
    if (sgm_tensor_is_contiguous(tensor))
        return sgm__tensor_view(tensor, &resolved, NULL, sgm_tensor_data(tensor));
    if (restride(tensor, &resolved, strides))
        return sgm__tensor_view(tensor, &resolved, strides, sgm_tensor_data(tensor));
    sgm_tensor *copy = sgm_tensor_copy(tensor);
    if (!copy)
        return NULL;
    sgm_tensor *view = sgm__tensor_view(copy, &resolved, NULL, sgm_tensor_data(copy));
    sgm_tensor_free(copy);
    return view;
}
