/* Implements tensors in host memory: reference-counted buffers, and views of them with a shape, strides and a
 * first element.
 *
 * Implements sigma/tensor.h. Two counts keep memory alive: each sgm_tensor counts its own references, and
 * each buffer counts the tensors that look into it; so a view outlives the tensor that it was taken from.
 * Both counts are atomic, so that tensors may be shared between threads; elements are not guarded at all.
 * Strides are counted in elements and may be 0 (broadcast) or negative (slices backwards). A new tensor is
 * contiguous, row-major, aligned to 64 bytes. Views are made in tensor_views.c, element types and conversions
 * are in tensor_element.c, text in tensor_text.c. Tensors of devices are not these: see src/handlers. */
#include "tensor/tensor_internal.h"

#include <math.h>
#include <stdatomic.h>

#define HEADER_SIZE 64 /* of a buffer, so that the elements behind it are aligned like the block itself */
/* Bytes behind the elements that may be read, as of a handler's buffers (handlers/host.c). */
#define PADDING 64

/* Memory shared by tensors. Stands before the elements in the same allocation; for wrapped memory it is an
 * allocation of its own, and `release` gives the memory back to the program. */
typedef struct buffer {
    atomic_size_t references;
    void (*release)(void *user);
    void *user;
} buffer;

_Static_assert(sizeof(buffer) <= HEADER_SIZE, "the elements start HEADER_SIZE bytes after the header");

struct sgm_tensor {
    atomic_size_t references;
    sgm_dtype dtype;
    sgm_shape shape;
    int64_t strides[SGM_MAX_RANK]; /* in elements, one for each dimension */
    char *data;                    /* the first element of the view */
    buffer *buffer;
};

/* --- making and freeing --- */

/* Drops one tensor's reference. The decrement has acquire and release order, so that all writes to the
 * elements by other threads happen before the memory is given back. */
static void buffer_drop(buffer *shared)
{
    if (atomic_fetch_sub_explicit(&shared->references, 1, memory_order_acq_rel) != 1)
        return;
    if (shared->release)
        shared->release(shared->user);
    sgm__free_aligned(shared);
}

/* Makes a tensor on `shared`, and takes over the caller's reference to `shared`, also on failure. `strides`
 * NULL: contiguous. */
static sgm_tensor *tensor_make(sgm_dtype dtype, const sgm_shape *shape, const int64_t *strides, void *data,
                               buffer *shared)
{
    sgm_tensor *tensor = sgm__calloc(1, sizeof *tensor);
    if (!tensor) {
        buffer_drop(shared);
        return NULL;
    }
    atomic_init(&tensor->references, 1);
    tensor->dtype = dtype;
    tensor->shape = sgm_shape_create(shape->rank, shape->dims);
    if (strides)
        memcpy(tensor->strides, strides, sizeof tensor->strides);
    else
        sgm__contiguous_strides(&tensor->shape, tensor->strides);
    tensor->data = data;
    tensor->buffer = shared;
    return tensor;
}

/* The reference that it adds to the buffer is given back by tensor_make if that fails. */
sgm_tensor *sgm__tensor_view(const sgm_tensor *tensor, const sgm_shape *shape, const int64_t *strides,
                             void *data)
{
    atomic_fetch_add_explicit(&tensor->buffer->references, 1, memory_order_relaxed);
    return tensor_make(tensor->dtype, shape, strides, data, tensor->buffer);
}

/* Room for `bytes` of elements behind the header, and for the padding; 0 for wrapped memory. */
static buffer *buffer_make(size_t bytes)
{
    size_t size;
    if (sgm__add_overflows(bytes, HEADER_SIZE + PADDING, &size)) {
        sgm__fail_memory(bytes);
        return NULL;
    }
    buffer *made = sgm__alloc_aligned(size);
    if (!made)
        return NULL;
    atomic_init(&made->references, 1);
    made->release = NULL;
    made->user = NULL;
    return made;
}

/* Checks type and shape, too; every constructor begins here. */
static sgm_status count_bytes(sgm_dtype dtype, const sgm_shape *shape, size_t *bytes)
{
    char text[SGM__SHAPE_TEXT];
    SGM_TRY(sgm__dtype_check(dtype));
    SGM_TRY(sgm__shape_check(shape));
    uint64_t size = (uint64_t)sgm_shape_elements(shape) * sgm_dtype_size(dtype);
    *bytes = (size_t)size;
    if (size > PTRDIFF_MAX)
        return sgm_fail(SGM_ERROR_MEMORY, "a tensor of shape %s and type %s is larger than any memory",
                        sgm_shape_text(shape, text, sizeof text), sgm_dtype_name(dtype));
    return SGM_OK;
}

/* A contiguous tensor whose elements are not set. */
static sgm_tensor *tensor_allocate(sgm_dtype dtype, const sgm_shape *shape, size_t *bytes)
{
    if (count_bytes(dtype, shape, bytes) != SGM_OK)
        return NULL;
    buffer *owned = buffer_make(*bytes);
    return owned ? tensor_make(dtype, shape, NULL, (char *)owned + HEADER_SIZE, owned) : NULL;
}

sgm_tensor *sgm__tensor_create_unset(sgm_dtype dtype, const sgm_shape *shape)
{
    size_t bytes;
    return tensor_allocate(dtype, shape, &bytes);
}

sgm_tensor *sgm_tensor_create(sgm_dtype dtype, const sgm_shape *shape)
{
    size_t bytes;
    sgm_tensor *tensor = tensor_allocate(dtype, shape, &bytes);
    if (tensor)
        memset(tensor->data, 0, bytes);
    return tensor;
}

/* `values` may be NULL only if there are no elements. */
sgm_tensor *sgm_tensor_create_from(sgm_dtype dtype, const sgm_shape *shape, const void *values)
{
    size_t bytes;
    sgm_tensor *tensor = tensor_allocate(dtype, shape, &bytes);
    if (!tensor)
        return NULL;
    if (bytes > 0 && !values) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected %zu bytes of values, got NULL", bytes);
        sgm_tensor_free(tensor);
        return NULL;
    }
    if (bytes > 0)
        memcpy(tensor->data, values, bytes);
    return tensor;
}

/* Wrapped memory must be aligned to the size of an element, since kernels read it directly. */
static sgm_status check_wrapped(sgm_dtype dtype, const sgm_shape *shape, const void *values)
{
    size_t bytes;
    SGM_TRY(count_bytes(dtype, shape, &bytes));
    if (bytes > 0 && !values)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected %zu bytes of values to wrap, got NULL", bytes);
    if ((uintptr_t)values % sgm_dtype_size(dtype) != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "expected values of type %s aligned to %zu bytes, got address %p: copy them with "
                        "sgm_tensor_create_from",
                        sgm_dtype_name(dtype), sgm_dtype_size(dtype), values);
    return SGM_OK;
}

/* Whatever fails, `release` runs exactly once: here, or in buffer_drop by way of tensor_make. */
sgm_tensor *sgm_tensor_wrap(sgm_dtype dtype, const sgm_shape *shape, void *values,
                            void (*release)(void *user), void *user)
{
    buffer *wrapped = check_wrapped(dtype, shape, values) == SGM_OK ? buffer_make(0) : NULL;
    if (!wrapped) {
        if (release)
            release(user);
        return NULL;
    }
    wrapped->release = release;
    wrapped->user = user;
    return tensor_make(dtype, shape, NULL, values, wrapped);
}

/* Relaxed order suffices for an increment: the caller has a reference already. */
sgm_tensor *sgm_tensor_retain(sgm_tensor *tensor)
{
    if (tensor)
        atomic_fetch_add_explicit(&tensor->references, 1, memory_order_relaxed);
    return tensor;
}

/* The tensor's reference to its buffer goes with its last own reference. */
void sgm_tensor_free(sgm_tensor *tensor)
{
    if (!tensor || atomic_fetch_sub_explicit(&tensor->references, 1, memory_order_acq_rel) != 1)
        return;
    buffer_drop(tensor->buffer);
    sgm__free(tensor);
}

/* --- facts --- */

/* So constructors can be nested without checks in between. */
sgm_status sgm__tensor_check(const sgm_tensor *tensor)
{
    if (tensor)
        return SGM_OK;
    if (sgm_last_status() != SGM_OK)
        return sgm__last_failure();
    return sgm_fail(SGM_ERROR_ARGUMENT, "expected a tensor, got NULL");
}

sgm_dtype sgm_tensor_dtype(const sgm_tensor *tensor)
{
    return tensor != NULL ? tensor->dtype : SGM_FLOAT32;
}

const sgm_shape *sgm_tensor_shape(const sgm_tensor *tensor)
{
    return &tensor->shape;
}

const int64_t *sgm_tensor_strides(const sgm_tensor *tensor)
{
    return tensor->strides;
}

void *sgm_tensor_data(sgm_tensor *tensor)
{
    return tensor != NULL ? tensor->data : NULL;
}

const void *sgm_tensor_const_data(const sgm_tensor *tensor)
{
    return tensor != NULL ? tensor->data : NULL;
}

/* Strides of dimensions of size 1 do not matter, as no step along them is ever taken. */
bool sgm_tensor_is_contiguous(const sgm_tensor *tensor)
{
    if (tensor == NULL || sgm_shape_elements(&tensor->shape) == 0)
        return true;
    int64_t expected[SGM_MAX_RANK];
    sgm__contiguous_strides(&tensor->shape, expected);
    for (int32_t i = 0; i < tensor->shape.rank; i++)
        if (tensor->shape.dims[i] != 1 && tensor->strides[i] != expected[i])
            return false;
    return true;
}

/* --- copies --- */

/* The result is contiguous and has a buffer of its own, also if nothing is converted. */
sgm_tensor *sgm_tensor_cast(const sgm_tensor *tensor, sgm_dtype dtype)
{
    size_t bytes;
    if (sgm__tensor_check(tensor) != SGM_OK)
        return NULL;
    sgm_tensor *copy = tensor_allocate(dtype, &tensor->shape, &bytes);
    if (copy)
        sgm__copy_strided(&copy->shape, dtype, copy->data, copy->strides, tensor->dtype, tensor->data,
                          tensor->strides);
    return copy;
}

/* Works on a contiguous copy: an index then gives example and element by one division. float32 has no finite
 * value near 1e39 or beyond, so a dataset's float64 would silently become infinite. */
sgm_status sgm__tensor_fits_float32(const sgm_tensor *tensor, int64_t first)
{
    if (tensor->dtype != SGM_FLOAT64 || tensor->shape.rank == 0)
        return SGM_OK;
    sgm_tensor *packed = sgm_tensor_copy(tensor);
    if (packed == NULL)
        return sgm_last_status();
    const double *numbers = sgm_tensor_const_data(packed);
    int64_t count = sgm_shape_elements(&tensor->shape), i = 0;
    while (i < count && !(isfinite(numbers[i]) && isinf((float)numbers[i])))
        i++;
    sgm_status status = SGM_OK;
    int64_t each = i < count ? count / tensor->shape.dims[0] : 1;
    if (i < count)
        status = sgm_fail(SGM_ERROR_NUMERIC,
                          "example %lld, element %lld (both from 0): %.15g is too large for float32",
                          (long long)(first + i / each), (long long)(i % each), numbers[i]);
    sgm_tensor_free(packed);
    return status;
}

/* NULL goes to sgm_tensor_cast, too, for its message. */
sgm_tensor *sgm_tensor_copy(const sgm_tensor *tensor)
{
    return tensor ? sgm_tensor_cast(tensor, tensor->dtype) : sgm_tensor_cast(NULL, SGM_FLOAT32);
}

/* The address of the first byte of a view and the one after its last: negative strides reach before the first
 * element. The view has at least one element. */
static void find_extent(const sgm_tensor *tensor, uintptr_t *first, uintptr_t *end)
{
    ptrdiff_t size = (ptrdiff_t)sgm_dtype_size(tensor->dtype), before = 0, after = 0;
    for (int32_t i = 0; i < tensor->shape.rank; i++) {
        ptrdiff_t reach = (ptrdiff_t)(tensor->strides[i] * (tensor->shape.dims[i] - 1)) * size;
        if (reach < 0)
            before += reach;
        else
            after += reach;
    }
    *first = (uintptr_t)tensor->data + (uintptr_t)before;
    *end = (uintptr_t)tensor->data + (uintptr_t)(after + size);
}

/* Compares only the extents: interleaved views (odd and even columns) count as overlapping, which costs a
 * copy but is never wrong. */
static bool may_overlap(const sgm_tensor *a, const sgm_tensor *b)
{
    uintptr_t a_first, a_end, b_first, b_end;
    find_extent(a, &a_first, &a_end);
    find_extent(b, &b_first, &b_end);
    return a_first < b_end && b_first < a_end;
}

/* A stride of 0 along more than one entry: several elements are one place in memory, so the result of a write
 * would depend on its order. */
static sgm_status check_writable(const sgm_tensor *target)
{
    char text[SGM__SHAPE_TEXT];
    for (int32_t i = 0; i < target->shape.rank; i++)
        if (target->shape.dims[i] > 1 && target->strides[i] == 0)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "cannot write to a broadcast view of shape %s: its elements share memory, copy it first",
                sgm_shape_text(&target->shape, text, sizeof text));
    return SGM_OK;
}

/* If the two may overlap, the source is copied first, as reading after writing would see new values (a tensor
 * assigned to its own reverse). */
sgm_status sgm_tensor_assign(sgm_tensor *target, const sgm_tensor *source)
{
    char target_text[SGM__SHAPE_TEXT], source_text[SGM__SHAPE_TEXT];
    SGM_TRY(sgm__tensor_check(target));
    SGM_TRY(sgm__tensor_check(source));
    if (!sgm_shape_equal(&target->shape, &source->shape))
        return sgm_fail(SGM_ERROR_SHAPE, "cannot assign the shape %s to %s: expected equal shapes",
                        sgm_shape_text(&source->shape, source_text, sizeof source_text),
                        sgm_shape_text(&target->shape, target_text, sizeof target_text));
    if (sgm_shape_elements(&target->shape) == 0)
        return SGM_OK;
    SGM_TRY(check_writable(target));
    sgm_tensor *apart = NULL;
    if (may_overlap(target, source)) {
        apart = sgm_tensor_copy(source);
        if (!apart)
            return sgm__last_failure();
        source = apart;
    }
    sgm__copy_strided(&target->shape, target->dtype, target->data, target->strides, source->dtype,
                      source->data, source->strides);
    sgm_tensor_free(apart);
    return SGM_OK;
}

/* --- elements --- */

/* NULL, with the thread's error set, if an index is outside. */
static char *find_element(const sgm_tensor *tensor, const int64_t *indices)
{
    char text[SGM__SHAPE_TEXT];
    if (sgm__tensor_check(tensor) != SGM_OK)
        return NULL;
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor->shape.rank; i++) {
        if (!indices || indices[i] < 0 || indices[i] >= tensor->shape.dims[i]) {
            sgm_fail(SGM_ERROR_ARGUMENT, "the index %lld of axis %d is outside of the shape %s",
                     indices ? (long long)indices[i] : -1LL, (int)i,
                     sgm_shape_text(&tensor->shape, text, sizeof text));
            return NULL;
        }
        offset += indices[i] * tensor->strides[i];
    }
    return tensor->data + (ptrdiff_t)offset * (ptrdiff_t)sgm_dtype_size(tensor->dtype);
}

/* NaN on failure, as the function has no status to return. */
double sgm_tensor_get(const sgm_tensor *tensor, const int64_t *indices)
{
    const char *element = find_element(tensor, indices);
    return element ? sgm__element_load(tensor->dtype, element) : (double)NAN;
}

/* Reports a wrong index in the thread's error only, as it returns nothing. */
void sgm_tensor_set(sgm_tensor *tensor, const int64_t *indices, double value)
{
    char *element = find_element(tensor, indices);
    if (element)
        sgm__element_store(tensor->dtype, element, value);
}

/* `count` must be exactly the number of elements: a caller that is mistaken about the shape learns it here.
 */
static sgm_status check_doubles(const sgm_tensor *tensor, const double *values, size_t count)
{
    char text[SGM__SHAPE_TEXT];
    SGM_TRY(sgm__tensor_check(tensor));
    int64_t elements = sgm_shape_elements(&tensor->shape);
    if ((uint64_t)count != (uint64_t)elements)
        return sgm_fail(SGM_ERROR_SHAPE, "expected room for the %lld elements of the shape %s, got %zu",
                        (long long)elements, sgm_shape_text(&tensor->shape, text, sizeof text), count);
    if (count > 0 && !values)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected %zu doubles, got NULL", count);
    return SGM_OK;
}

/* Elements in row-major order of the view's shape, whatever its strides. */
sgm_status sgm_tensor_read(const sgm_tensor *tensor, double *out, size_t count)
{
    int64_t strides[SGM_MAX_RANK];
    SGM_TRY(check_doubles(tensor, out, count));
    sgm__contiguous_strides(&tensor->shape, strides);
    sgm__copy_strided(&tensor->shape, SGM_FLOAT64, out, strides, tensor->dtype, tensor->data,
                      tensor->strides);
    return SGM_OK;
}

sgm_status sgm_tensor_write(sgm_tensor *tensor, const double *values, size_t count)
{
    int64_t strides[SGM_MAX_RANK];
    SGM_TRY(check_doubles(tensor, values, count));
    SGM_TRY(check_writable(tensor));
    sgm__contiguous_strides(&tensor->shape, strides);
    sgm__copy_strided(&tensor->shape, tensor->dtype, tensor->data, tensor->strides, SGM_FLOAT64, values,
                      strides);
    return SGM_OK;
}
