/* Implements element types and shapes: sizes, names, checks, strides, NumPy's broadcasting rule, and shapes
 * as text.
 *
 * A shape that has passed sgm__shape_check has 0 to 8 dimensions, none negative, and few enough elements that
 * every product of its dimensions, and the number of its bytes, fits into 63 bits; code behind the check
 * multiplies without looking. Everything here is pure: no memory, no state. */
#include "tensor/tensor_internal.h"

#include <stdio.h>

#define SHAPE_TEXT 128 /* bytes: enough for any valid shape; longer texts are cut off */

/* --- element types --- */

typedef struct dtype_facts {
    size_t size;
    const char *name;
} dtype_facts;

static const dtype_facts dtypes[] = {
#define DTYPE_FACTS(name, size, text) [SGM_##name] = {(size), (text)},
    SGM_DTYPE_LIST(DTYPE_FACTS)
#undef DTYPE_FACTS
};

/* Types come from programs and files as numbers, so any int is possible. */
static bool is_valid(sgm_dtype dtype)
{
    return (int)dtype >= 0 && dtype < SGM_DTYPE_COUNT;
}

sgm_status sgm__dtype_check(sgm_dtype dtype)
{
    if (is_valid(dtype))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "expected an element type such as SGM_FLOAT32, got the number %d",
                    (int)dtype);
}

size_t sgm_dtype_size(sgm_dtype dtype)
{
    return is_valid(dtype) ? dtypes[dtype].size : 0;
}

const char *sgm_dtype_name(sgm_dtype dtype)
{
    return is_valid(dtype) ? dtypes[dtype].name : "unknown";
}

bool sgm_dtype_is_float(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32 || dtype == SGM_FLOAT64 || dtype == SGM_BFLOAT16;
}

/* The first loop also collects the names for the suggestion. */
sgm_status sgm_dtype_parse(const char *name, sgm_dtype *dtype)
{
    const char *names[SGM_DTYPE_COUNT];
    for (int i = 0; i < SGM_DTYPE_COUNT; i++) {
        names[i] = dtypes[i].name;
        if (name && strcmp(name, names[i]) == 0) {
            *dtype = (sgm_dtype)i;
            return SGM_OK;
        }
    }
    const char *nearest = sgm__nearest(name, names, SGM_DTYPE_COUNT);
    return sgm_fail(SGM_ERROR_TYPE, "expected an element type, got '%.40s': did you mean '%s'?",
                    name ? name : "", nearest ? nearest : "float32");
}

/* --- shapes --- */

/* Keeps a wrong rank (dims are then cut off at 8), so that the function that is given the shape can report
 * it: this one returns a value and cannot fail. Missing dims with a positive rank become rank -1. */
sgm_shape sgm_shape_create(int32_t rank, const int64_t *dims)
{
    sgm_shape shape = {.rank = rank};
    if (rank > 0 && !dims)
        shape.rank = -1;
    for (int32_t i = 0; i < shape.rank && i < SGM_MAX_RANK; i++)
        shape.dims[i] = dims[i];
    return shape;
}

sgm_shape sgm_scalar_shape(void)
{
    return (sgm_shape){0};
}

/* Dimensions beyond the rank are not compared. */
bool sgm_shape_equal(const sgm_shape *a, const sgm_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank && i < SGM_MAX_RANK; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* The product of all dimensions except those of 0 must fit, even where the result is 0: strides are products
 * of the others. Dividing the limit by 16 leaves room to multiply by the size of any element. */
int64_t sgm_shape_elements(const sgm_shape *shape)
{
    if (shape->rank < 0 || shape->rank > SGM_MAX_RANK)
        return -1;
    int64_t product = 1;
    bool empty = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0)
            return -1;
        if (shape->dims[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(product, shape->dims[i], &product))
            return -1;
    }
    if (product > INT64_MAX / 16)
        return -1;
    return empty ? 0 : product;
}

/* The failures of sgm_shape_elements, with messages that say which. */
sgm_status sgm__shape_check(const sgm_shape *shape)
{
    char text[SHAPE_TEXT];
    if (!shape)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a shape, got NULL");
    if (shape->rank < 0 || shape->rank > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_SHAPE, "expected a shape with 0 to %d dimensions, got %d", SGM_MAX_RANK,
                        (int)shape->rank);
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return sgm_fail(SGM_ERROR_SHAPE,
                            "expected dimensions of 0 or more, got %lld as dimension %d of %s",
                            (long long)shape->dims[i], (int)i, sgm_shape_text(shape, text, sizeof text));
    if (sgm_shape_elements(shape) < 0)
        return sgm_fail(SGM_ERROR_SHAPE, "the shape %s has more elements than any memory can hold",
                        sgm_shape_text(shape, text, sizeof text));
    return SGM_OK;
}

/* Row-major: the last dimension has stride 1. A dimension of 0 counts as 1, so that strides stay positive. */
void sgm__contiguous_strides(const sgm_shape *shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i] > 0 ? shape->dims[i] : 1;
    }
}

/* Compares the shapes from their ends; missing dimensions count as 1, and a dimension of 1 takes the size of
 * the other. `result` may be one of the arguments. */
sgm_status sgm_shape_broadcast(const sgm_shape *a, const sgm_shape *b, sgm_shape *result)
{
    SGM_TRY(sgm__shape_check(a));
    SGM_TRY(sgm__shape_check(b));
    sgm_shape both = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int32_t i = 0; i < both.rank; i++) {
        int32_t in_a = i - (both.rank - a->rank), in_b = i - (both.rank - b->rank);
        int64_t x = in_a < 0 ? 1 : a->dims[in_a];
        int64_t y = in_b < 0 ? 1 : b->dims[in_b];
        if (x != y && x != 1 && y != 1) {
            char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
            return sgm_fail(SGM_ERROR_SHAPE,
                            "the shapes %s and %s cannot be broadcast: %lld meets %lld, expected equal or 1",
                            sgm_shape_text(a, a_text, sizeof a_text),
                            sgm_shape_text(b, b_text, sizeof b_text), (long long)x, (long long)y);
        }
        both.dims[i] = x == 1 ? y : x;
    }
    SGM_TRY(sgm__shape_check(&both));
    *result = both;
    return SGM_OK;
}

/* Python's notation of tuples, with the comma in "(3,)". */
char *sgm_shape_text(const sgm_shape *shape, char *buffer, size_t size)
{
    if (size == 0)
        return buffer;
    char text[SGM_MAX_RANK * 24 + 16];
    size_t length = 0;
    text[length++] = '(';
    for (int32_t i = 0; i < shape->rank && i < SGM_MAX_RANK; i++) {
        int written =
            snprintf(text + length, sizeof text - length, i ? ", %lld" : "%lld", (long long)shape->dims[i]);
        length += written > 0 ? (size_t)written : 0;
    }
    const char *end = shape->rank > SGM_MAX_RANK ? ", ...)" : shape->rank == 1 ? ",)" : ")";
    length += (size_t)snprintf(text + length, sizeof text - length, "%s", end);
    if (length >= size)
        length = size - 1;
    memcpy(buffer, text, length);
    buffer[length] = '\0';
    return buffer;
}
