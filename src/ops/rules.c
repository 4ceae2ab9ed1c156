/* Functions that the rules and loops of operations share: attributes, checks of types, views of arrays,
 * comparison.
 *
 * Checks are called by `infer` functions; their messages need no place, as the recorder puts layer and
 * operation in front. Views are small structs on the stack: a part of an array is another pointer, shape
 * and strides, and loops go over all kinds of layouts by a cursor. Nothing here allocates, as kernels must
 * not. */
#include "ops/rules.h"

#include "tensor/tensor_internal.h"

#include <stdio.h>

/* --- attributes --- */

/* The shape's rank fits (sgm__rank_fits), and the attributes have room for it. */
void sgm__add_shape(sgm_attributes *attributes, const sgm_shape *shape)
{
    for (int32_t i = 0; i < shape->rank; i++)
        attributes->integers[attributes->integer_count++] = shape->dims[i];
}

bool sgm__rank_fits(sgm_graph *graph, const char *name, const sgm_shape *shape)
{
    if (shape->rank >= 0 && shape->rank <= SGM_MAX_RANK)
        return true;
    sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: a shape has 0 to %d dimensions, not %d", name, SGM_MAX_RANK,
                   shape->rank);
    return false;
}

sgm_status sgm__want_integers(const sgm_attributes *attributes, int32_t count)
{
    if (attributes->integer_count == count)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "wants %d integers as attributes, %d came; see src/ops/ops.h", count,
                    attributes->integer_count);
}

/* Also refuses shapes whose number of elements overflows, so that later products of dimensions need no
 * check. */
sgm_status sgm__read_shape(const sgm_attributes *attributes, int32_t first, sgm_shape *shape)
{
    int32_t rank = attributes->integer_count - first;
    if (rank < 0 || rank > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "wants %d integers and up to %d dimensions as attributes, %d came", first,
                        SGM_MAX_RANK, attributes->integer_count);
    *shape = (sgm_shape){.rank = rank};
    for (int32_t i = 0; i < rank; i++)
        shape->dims[i] = attributes->integers[first + i];
    if (sgm_shape_elements(shape) >= 0)
        return SGM_OK;
    char text[128];
    return sgm_fail(SGM_ERROR_SHAPE, "shape %s has a negative dimension or too many elements",
                    sgm_shape_text(shape, text, sizeof text));
}

/* Programs record operations with attributes of their own, so the number is checked. */
sgm_status sgm__read_dtype(int64_t number, sgm_dtype *dtype)
{
    if (number < 0 || number >= SGM_DTYPE_COUNT)
        return sgm_fail(SGM_ERROR_TYPE, "there is no type number %lld", (long long)number);
    *dtype = (sgm_dtype)number;
    return SGM_OK;
}

/* --- checks --- */

char *sgm__type_text(const sgm_type *type, char buffer[SGM__TYPE_TEXT])
{
    char shape[128];
    snprintf(buffer, SGM__TYPE_TEXT, "%s %s", sgm_dtype_name(type->dtype),
             sgm_shape_text(&type->shape, shape, sizeof shape));
    return buffer;
}

sgm_status sgm__want_float(const sgm_type *type)
{
    if (sgm_dtype_is_float(type->dtype))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "wants a float type, got %s: cast it first", sgm_dtype_name(type->dtype));
}

sgm_status sgm__want_number(const sgm_type *type)
{
    if (type->dtype != SGM_BOOL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "wants numbers, got bool: cast it first");
}

sgm_status sgm__want_bool(const sgm_type *type)
{
    if (type->dtype == SGM_BOOL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "wants bool, got %s: compare it with something first",
                    sgm_dtype_name(type->dtype));
}

/* Indices are signed, so that a negative one is an error and not a large number. */
sgm_status sgm__want_index(const sgm_type *type)
{
    if (type->dtype == SGM_INT64 || type->dtype == SGM_INT32)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "wants indices of type int64 or int32, got %s: cast them first",
                    sgm_dtype_name(type->dtype));
}

sgm_status sgm__want_place(const sgm_type *type)
{
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_index(type));
    if (type->shape.rank == 0)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "wants one index, of rank 0, as the place, got %s: reshape it",
                    sgm__type_text(type, text));
}

sgm_status sgm__want_axis(const sgm_type *type, int64_t axis)
{
    char text[128];
    if (axis >= 0 && axis < type->shape.rank)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_SHAPE, "shape %s has no axis %lld: its %d axes are counted from 0",
                    sgm_shape_text(&type->shape, text, sizeof text), (long long)axis, type->shape.rank);
}

/* Types are compared first: a difference there is told even if the shapes differ, too. */
sgm_status sgm__want_equal(const sgm_type *a, const sgm_type *b)
{
    char first[SGM__TYPE_TEXT], second[SGM__TYPE_TEXT];
    if (a->dtype != b->dtype)
        return sgm_fail(SGM_ERROR_TYPE, "wants equal types, got %s and %s: cast one of them",
                        sgm__type_text(a, first), sgm__type_text(b, second));
    if (!sgm_shape_equal(&a->shape, &b->shape))
        return sgm_fail(SGM_ERROR_SHAPE, "wants equal shapes, got %s and %s", sgm__type_text(a, first),
                        sgm__type_text(b, second));
    return SGM_OK;
}

/* --- recording --- */

sgm_value sgm__record_one(sgm_graph *graph, const sgm_op *op, sgm_value x, const sgm_attributes *attributes)
{
    return sgm_record(graph, op, &x, 1, attributes);
}

/* Operations record on behind a failure: the graph keeps the first, and later calls do nothing. */
bool sgm__can_record(sgm_graph *graph, const char *name, sgm_value value)
{
    if (graph == NULL || graph->status != SGM_OK)
        return false;
    if (value.index >= 0 && (size_t)value.index < graph->count)
        return true;
    sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "%s: an input is not a value of this graph", name);
    return false;
}

/* The error shows the axis as it was given. */
bool sgm__resolve_axis(sgm_graph *graph, const char *name, sgm_value x, int32_t *axis)
{
    if (!sgm__can_record(graph, name, x))
        return false;
    sgm_type type = sgm_value_type(graph, x);
    int32_t resolved = *axis < 0 ? *axis + type.shape.rank : *axis;
    if (resolved < 0 || resolved >= type.shape.rank) {
        char text[128];
        sgm_graph_fail(graph, SGM_ERROR_SHAPE, "%s: shape %s has no axis %d", name,
                       sgm_shape_text(&type.shape, text, sizeof text), *axis);
        return false;
    }
    *axis = resolved;
    return true;
}

/* A selection, not a product: 0 times infinity is NaN. */
sgm_value sgm__masked(sgm_graph *graph, sgm_value weights, sgm_value x)
{
    sgm_value zero = sgm_filled_like(graph, x, 0);
    return sgm_select(graph, sgm_equal(graph, weights, zero), zero, x);
}

/* Looks through broadcasts that recording has inserted. */
bool sgm__is_number(const sgm_graph *graph, sgm_value value, double *number)
{
    const sgm_value *inputs;
    while (sgm_value_op(graph, value) == &sgm__op_broadcast && sgm_value_inputs(graph, value, &inputs) == 1)
        value = inputs[0];
    if (sgm_value_op(graph, value) != &sgm__op_number)
        return false;
    *number = sgm_value_attributes(graph, value)->numbers[0];
    return true;
}

/* --- loops --- */

/* Strides may be 0 (broadcast) or negative (flip). */
sgm__cursor sgm__cursor_make(const sgm_shape *shape, const int64_t *strides)
{
    sgm__cursor cursor = {.shape = *shape};
    memcpy(cursor.strides, strides, sizeof cursor.strides);
    return cursor;
}

sgm__cursor sgm__cursor_leading(const sgm_array *array)
{
    sgm_shape shape = array->shape;
    shape.rank -= 2;
    return sgm__cursor_make(&shape, array->strides);
}

void *sgm__array_at(const sgm_array *array, int64_t offset)
{
    return (char *)array->data + offset * (int64_t)sgm_dtype_size(array->dtype);
}

/* An empty part keeps the pointer, which might else lie outside of the array. */
sgm_array sgm__array_part(const sgm_array *array, int32_t axis, int64_t start, int64_t count, int64_t step)
{
    sgm_array part = *array;
    if (count > 0)
        part.data = sgm__array_at(array, start * array->strides[axis]);
    part.shape.dims[axis] = count;
    part.strides[axis] *= step;
    return part;
}

/* The last places of shape and strides are cleared, so that equal views are equal structs. */
sgm_array sgm__array_pick(const sgm_array *array, int32_t axis, int64_t index)
{
    sgm_array picked = *array;
    picked.data = sgm__array_at(array, index * array->strides[axis]);
    picked.shape.rank--;
    for (int32_t i = axis; i < picked.shape.rank; i++) {
        picked.shape.dims[i] = array->shape.dims[i + 1];
        picked.strides[i] = array->strides[i + 1];
    }
    picked.shape.dims[picked.shape.rank] = 0;
    picked.strides[picked.shape.rank] = 0;
    return picked;
}

int64_t sgm__array_index(const sgm_array *array, int64_t offset)
{
    return array->dtype == SGM_INT32 ? ((const int32_t *)array->data)[offset]
                                     : ((const int64_t *)array->data)[offset];
}

/* NaN equals NaN, so sorting by this is a total order. */
int sgm__array_compare(const sgm_array *array, int64_t a, int64_t b)
{
    if (array->dtype == SGM_INT64) {
        const int64_t *values = array->data;
        return (values[a] > values[b]) - (values[a] < values[b]);
    }
    double x = sgm_array_load(array, a), y = sgm_array_load(array, b);
    if (x != x || y != y)
        return (x != x) - (y != y);
    return (x > y) - (x < y);
}

/* For the smallest, too, NaN must be before all numbers, which the comparison has as the largest. */
bool sgm__array_beats(const sgm_array *array, int64_t a, int64_t b, bool largest)
{
    int order = sgm__array_compare(array, a, b);
    if (largest || order == 0)
        return order > 0;
    double x = sgm_array_load(array, a), y = sgm_array_load(array, b);
    return x != x || (y == y && order < 0);
}

void sgm__array_move(const sgm_array *source, const sgm_array *target)
{
    sgm__copy_strided(&source->shape, target->dtype, target->data, target->strides, source->dtype,
                      source->data, source->strides);
}

/* The source's shape laid over the target's memory. */
void sgm__array_pack(const sgm_array *source, const sgm_array *target)
{
    sgm_array alike = *source;
    alike.data = target->data;
    sgm__contiguous_strides(&alike.shape, alike.strides);
    sgm__array_move(source, &alike);
}
