/* Tensors: reference-counted storage, and views on it. */
#include "base/tensor_internal.h"

static void drop_storage(sgm__storage *storage)
{
    if (atomic_fetch_sub(&storage->references, 1) > 1)
        return;
    if (storage->release != NULL)
        storage->release(storage->user);
    else
        sgm__free_aligned(storage->memory);
    sgm__free(storage);
}

static sgm_status check_type(sgm_dtype dtype, const sgm_shape *shape, size_t *bytes)
{
    char text[128];
    if (sgm_dtype_size(dtype) == 0)
        return sgm_fail(SGM_ERROR_TYPE, "%d is no element type", (int)dtype);
    int64_t elements = sgm_shape_elements(shape);
    if (elements < 0)
        return sgm_fail(
            SGM_ERROR_SHAPE,
            "shape %s is impossible: rank 0 to %d, no negative dimension, fewer than 2^59 elements",
            sgm_shape_text(shape, text, sizeof text), SGM_MAX_RANK);
    *bytes = (size_t)elements * sgm_dtype_size(dtype);
    return SGM_OK;
}

/* A tensor on `storage`, which it takes over, also when it fails. */
static sgm_tensor *make(sgm_dtype dtype, const sgm_shape *shape, const int64_t *strides,
                        sgm__storage *storage, char *data)
{
    sgm_tensor *tensor = sgm__calloc(1, sizeof(sgm_tensor));
    if (tensor == NULL) {
        drop_storage(storage);
        return NULL;
    }
    atomic_init(&tensor->references, 1);
    tensor->dtype = dtype;
    tensor->shape = *shape;
    if (strides != NULL)
        memcpy(tensor->strides, strides, sizeof tensor->strides);
    else
        sgm__contiguous_strides(shape, tensor->strides);
    tensor->storage = storage;
    tensor->data = data;
    return tensor;
}

static sgm__storage *make_storage(void *memory, void (*release)(void *user), void *user)
{
    sgm__storage *storage = sgm__calloc(1, sizeof(sgm__storage));
    if (storage == NULL)
        return NULL;
    atomic_init(&storage->references, 1);
    storage->memory = memory;
    storage->release = release;
    storage->user = user;
    return storage;
}

static sgm_tensor *create(sgm_dtype dtype, const sgm_shape *shape, const void *values)
{
    size_t bytes = 0;
    if (check_type(dtype, shape, &bytes) != SGM_OK)
        return NULL;
    void *memory = sgm__alloc_aligned(bytes);
    sgm__storage *storage = memory != NULL ? make_storage(memory, NULL, NULL) : NULL;
    if (storage == NULL) {
        sgm__free_aligned(memory);
        return NULL;
    }
    if (values == NULL)
        memset(memory, 0, bytes);
    else if (bytes > 0)
        memcpy(memory, values, bytes);
    return make(dtype, shape, NULL, storage, memory);
}

sgm_tensor *sgm_tensor_create(sgm_dtype dtype, const sgm_shape *shape)
{
    return create(dtype, shape, NULL);
}

sgm_tensor *sgm_tensor_from(sgm_dtype dtype, const sgm_shape *shape, const void *values)
{
    if (values == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "a tensor from values wants values");
        return NULL;
    }
    return create(dtype, shape, values);
}

sgm_tensor *sgm_tensor_wrap(sgm_dtype dtype, const sgm_shape *shape, void *values,
                            void (*release)(void *user), void *user)
{
    size_t bytes = 0;
    sgm__storage *storage = NULL;
    if (check_type(dtype, shape, &bytes) == SGM_OK)
        storage = make_storage(values, release, user);
    if (storage == NULL) {
        if (release != NULL)
            release(user);
        return NULL;
    }
    return make(dtype, shape, NULL, storage, values);
}

sgm_tensor *sgm_tensor_retain(sgm_tensor *tensor)
{
    if (tensor != NULL)
        atomic_fetch_add(&tensor->references, 1);
    return tensor;
}

void sgm_tensor_free(sgm_tensor *tensor)
{
    if (tensor == NULL || atomic_fetch_sub(&tensor->references, 1) > 1)
        return;
    drop_storage(tensor->storage);
    sgm__free(tensor);
}

sgm_dtype sgm_tensor_dtype(const sgm_tensor *tensor)
{
    return tensor->dtype;
}

const sgm_shape *sgm_tensor_shape(const sgm_tensor *tensor)
{
    return &tensor->shape;
}

const int64_t *sgm_tensor_strides(const sgm_tensor *tensor)
{
    return tensor->strides;
}

bool sgm_tensor_is_contiguous(const sgm_tensor *tensor)
{
    int64_t stride = 1;
    for (int32_t i = tensor->shape.rank; i-- > 0;) {
        if (tensor->shape.dims[i] != 1 && tensor->strides[i] != stride)
            return false;
        stride *= tensor->shape.dims[i];
    }
    return true;
}

void *sgm_tensor_data(sgm_tensor *tensor)
{
    return tensor->data;
}

const void *sgm_tensor_const_data(const sgm_tensor *tensor)
{
    return tensor->data;
}

/* --- views --- */

static sgm_tensor *view(sgm_tensor *tensor, const sgm_shape *shape, const int64_t *strides, int64_t offset)
{
    atomic_fetch_add(&tensor->storage->references, 1);
    return make(tensor->dtype, shape, strides, tensor->storage,
                tensor->data + offset * (int64_t)sgm_dtype_size(tensor->dtype));
}

sgm_tensor *sgm_tensor_slice(sgm_tensor *tensor, int32_t axis, int64_t start, int64_t stop, int64_t step)
{
    if (tensor == NULL)
        return NULL;
    char text[128];
    sgm_shape shape = tensor->shape;
    int64_t size = axis >= 0 && axis < shape.rank ? shape.dims[axis] : -1;
    bool forward = step > 0 && start >= 0 && start <= stop && stop <= size;
    bool backward = step < 0 && step != INT64_MIN && start < size && start >= stop && stop >= -1;
    if (size < 0 || !(forward || backward)) {
        sgm_fail(SGM_ERROR_ARGUMENT, "slice %lld:%lld:%lld of axis %d lies outside shape %s",
                 (long long)start, (long long)stop, (long long)step, axis,
                 sgm_shape_text(&shape, text, sizeof text));
        return NULL;
    }
    int64_t length = forward ? stop - start : start - stop, stride = forward ? step : -step;
    int64_t strides[SGM_MAX_RANK];
    memcpy(strides, tensor->strides, sizeof strides);
    shape.dims[axis] = length / stride + (length % stride != 0);
    strides[axis] = shape.dims[axis] > 1 ? strides[axis] * step : strides[axis];
    return view(tensor, &shape, strides, shape.dims[axis] > 0 ? start * tensor->strides[axis] : 0);
}

sgm_tensor *sgm_tensor_permute(sgm_tensor *tensor, const int32_t *axes)
{
    if (tensor == NULL)
        return NULL;
    sgm_shape shape = tensor->shape;
    int64_t strides[SGM_MAX_RANK] = {0};
    unsigned seen = 0;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (axes[i] < 0 || axes[i] >= shape.rank || (seen & 1u << axes[i]) != 0) {
            sgm_fail(SGM_ERROR_ARGUMENT, "axes of a permutation must be 0 to %d, each once; entry %d is %d",
                     shape.rank - 1, i, axes[i]);
            return NULL;
        }
        seen |= 1u << axes[i];
        shape.dims[i] = tensor->shape.dims[axes[i]];
        strides[i] = tensor->strides[axes[i]];
    }
    return view(tensor, &shape, strides, 0);
}

sgm_tensor *sgm_tensor_broadcast(sgm_tensor *tensor, const sgm_shape *shape)
{
    if (tensor == NULL)
        return NULL;
    sgm_shape wider;
    if (sgm_shape_elements(shape) < 0 || sgm_shape_broadcast(&tensor->shape, shape, &wider) != SGM_OK ||
        !sgm_shape_equal(&wider, shape)) {
        char from[128], to[128];
        sgm_fail(SGM_ERROR_SHAPE, "shape %s does not broadcast to %s",
                 sgm_shape_text(&tensor->shape, from, sizeof from), sgm_shape_text(shape, to, sizeof to));
        return NULL;
    }
    int64_t strides[SGM_MAX_RANK] = {0};
    int32_t missing = shape->rank - tensor->shape.rank;
    for (int32_t i = missing; i < shape->rank; i++)
        strides[i] = tensor->shape.dims[i - missing] == 1 ? 0 : tensor->strides[i - missing];
    return view(tensor, shape, strides, 0);
}

/* Fills in a -1; false if the element counts differ. */
static bool complete_shape(const sgm_tensor *tensor, sgm_shape *shape)
{
    int64_t elements = sgm_shape_elements(&tensor->shape), known = 1;
    int32_t open = -1;
    for (int32_t i = 0; i < shape->rank && i < SGM_MAX_RANK; i++) {
        if (shape->dims[i] == -1 && open < 0)
            open = i;
        else if (shape->dims[i] < 0 || __builtin_mul_overflow(known, shape->dims[i], &known))
            return false;
    }
    if (open >= 0 && known > 0)
        shape->dims[open] = elements / known;
    return sgm_shape_elements(shape) == elements;
}

sgm_tensor *sgm_tensor_reshape(sgm_tensor *tensor, const sgm_shape *shape)
{
    if (tensor == NULL)
        return NULL;
    sgm_shape full = *shape;
    if (!complete_shape(tensor, &full)) {
        char from[128], to[128];
        sgm_fail(SGM_ERROR_SHAPE, "shape %s cannot become %s: the numbers of elements differ",
                 sgm_shape_text(&tensor->shape, from, sizeof from), sgm_shape_text(shape, to, sizeof to));
        return NULL;
    }
    if (sgm_tensor_is_contiguous(tensor)) {
        int64_t strides[SGM_MAX_RANK] = {0};
        sgm__contiguous_strides(&full, strides);
        return view(tensor, &full, strides, 0);
    }
    sgm_tensor *copy = sgm_tensor_copy(tensor);
    if (copy != NULL) {
        copy->shape = full;
        sgm__contiguous_strides(&full, copy->strides);
    }
    return copy;
}

/* --- copies --- */

sgm_tensor *sgm_tensor_cast(const sgm_tensor *tensor, sgm_dtype dtype)
{
    if (tensor == NULL)
        return NULL;
    sgm_tensor *copy = sgm_tensor_create(dtype, &tensor->shape);
    if (copy != NULL)
        sgm_tensor_assign(copy, tensor);
    return copy;
}

sgm_tensor *sgm_tensor_copy(const sgm_tensor *tensor)
{
    return tensor != NULL ? sgm_tensor_cast(tensor, tensor->dtype) : NULL;
}

/* Offset in elements of the element with row-major number `number`. */
static int64_t offset_of(const sgm_tensor *tensor, int64_t number)
{
    int64_t offset = 0;
    for (int32_t i = tensor->shape.rank; i-- > 0; number /= tensor->shape.dims[i])
        offset += number % tensor->shape.dims[i] * tensor->strides[i];
    return offset;
}

static char *element_at(const sgm_tensor *tensor, int64_t number)
{
    return tensor->data + offset_of(tensor, number) * (int64_t)sgm_dtype_size(tensor->dtype);
}

sgm_status sgm_tensor_assign(sgm_tensor *target, const sgm_tensor *source)
{
    if (target == NULL || source == NULL || !sgm_shape_equal(&target->shape, &source->shape)) {
        char to[128], from[128];
        if (target == NULL || source == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "assigning wants two tensors");
        return sgm_fail(SGM_ERROR_SHAPE, "values of shape %s do not fit shape %s",
                        sgm_shape_text(&source->shape, from, sizeof from),
                        sgm_shape_text(&target->shape, to, sizeof to));
    }
    int64_t elements = sgm_shape_elements(&target->shape);
    size_t size = sgm_dtype_size(target->dtype), source_size = sgm_dtype_size(source->dtype);
    bool plain = sgm_tensor_is_contiguous(target) && sgm_tensor_is_contiguous(source);
    if (plain && target->dtype == source->dtype) {
        if (elements > 0)
            memmove(target->data, source->data, (size_t)elements * size);
        return SGM_OK;
    }
    for (int64_t i = 0; i < elements; i++) {
        char *to = plain ? target->data + (size_t)i * size : element_at(target, i);
        const char *from = plain ? source->data + (size_t)i * source_size : element_at(source, i);
        sgm__element_convert(target->dtype, to, source->dtype, from);
    }
    return SGM_OK;
}

static char *element_by_indices(const sgm_tensor *tensor, const int64_t *indices)
{
    int64_t offset = 0;
    for (int32_t i = 0; i < tensor->shape.rank; i++)
        offset += indices[i] * tensor->strides[i];
    return tensor->data + offset * (int64_t)sgm_dtype_size(tensor->dtype);
}

double sgm_tensor_get(const sgm_tensor *tensor, const int64_t *indices)
{
    return sgm__element_load(tensor->dtype, element_by_indices(tensor, indices));
}

void sgm_tensor_set(sgm_tensor *tensor, const int64_t *indices, double value)
{
    sgm__element_store(tensor->dtype, element_by_indices(tensor, indices), value);
}

static sgm_status check_count(const sgm_tensor *tensor, size_t count)
{
    int64_t elements = sgm_shape_elements(&tensor->shape);
    if ((size_t)elements == count)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "the tensor has %lld elements, %zu were given", (long long)elements,
                    count);
}

sgm_status sgm_tensor_read(const sgm_tensor *tensor, double *out, size_t count)
{
    SGM_TRY(check_count(tensor, count));
    for (size_t i = 0; i < count; i++)
        out[i] = sgm__element_load(tensor->dtype, element_at(tensor, (int64_t)i));
    return SGM_OK;
}

sgm_status sgm_tensor_write(sgm_tensor *tensor, const double *values, size_t count)
{
    SGM_TRY(check_count(tensor, count));
    for (size_t i = 0; i < count; i++)
        sgm__element_store(tensor->dtype, element_at(tensor, (int64_t)i), values[i]);
    return SGM_OK;
}

/* --- text --- */

static void append_element(sgm__text *text, const sgm_tensor *tensor, const char *element)
{
    if (tensor->dtype == SGM_BOOL)
        sgm__text_append(text, "%s", *element != 0 ? "true" : "false");
    else if (tensor->dtype == SGM_INT64)
        sgm__text_append(text, "%lld", (long long)*(const int64_t *)(const void *)element);
    else
        sgm__text_append(text, "%.6g", sgm__element_load(tensor->dtype, element));
}

/* Dimensions that are too long show their first and last three. */
static void append_dimension(sgm__text *text, const sgm_tensor *tensor, int32_t axis, const char *data,
                             bool shorten)
{
    if (axis == tensor->shape.rank) {
        append_element(text, tensor, data);
        return;
    }
    int64_t size = tensor->shape.dims[axis];
    sgm__text_append(text, "[");
    for (int64_t i = 0; i < size; i++) {
        if (i > 0)
            sgm__text_append(text, axis == tensor->shape.rank - 1 ? ", " : ",\n%*s", axis + 1, "");
        if (shorten && size > 7 && i == 3) {
            sgm__text_append(text, "...");
            i = size - 4;
            continue;
        }
        append_dimension(text, tensor, axis + 1,
                         data + i * tensor->strides[axis] * (int64_t)sgm_dtype_size(tensor->dtype), shorten);
    }
    sgm__text_append(text, "]");
}

char *sgm_tensor_text(const sgm_tensor *tensor, int64_t max_elements)
{
    if (tensor == NULL)
        return NULL;
    sgm__text text = {0};
    append_dimension(&text, tensor, 0, tensor->data, sgm_shape_elements(&tensor->shape) > max_elements);
    return sgm__text_take(&text);
}
