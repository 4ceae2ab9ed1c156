/* gather and scatter_add: entries of an axis by their numbers, and back; and gather_along, composed of
 * gather.
 *
 * gather(x, i) replaces the axis by the dimensions of i, for x of any type; an embedding is gather on axis
 * 0. scatter_add is its gradient: zeros to which entries are added, since several numbers may name the same
 * entry; it takes numbers only, and each is the other's gradient. An index out of range stops the run, with
 * an error that names it: a clamped one would hide a mistake in the data. */
#include "ops/rules.h"

/* Replaces axis `axis` of `x` by the dimensions of `indices`. */
static sgm_status replace_axis(const sgm_shape *x, const sgm_shape *indices, int64_t axis, sgm_shape *result)
{
    char a[128], b[128];
    if (x->rank - 1 + indices->rank > SGM_MAX_RANK)
        return sgm_fail(SGM_ERROR_SHAPE, "%s by indices %s would have more than %d dimensions",
                        sgm_shape_text(x, a, sizeof a), sgm_shape_text(indices, b, sizeof b), SGM_MAX_RANK);
    *result = (sgm_shape){0};
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            result->dims[result->rank++] = x->dims[i];
        else
            for (int32_t k = 0; k < indices->rank; k++)
                result->dims[result->rank++] = indices->dims[k];
    return SGM_OK;
}

/* integers: axis. x of any type, indices int64 or int32 of any shape: the result is x's shape with the axis
 * replaced by theirs. */
static sgm_status infer_gather(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                               sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    SGM_TRY(sgm__want_index(&inputs[1]));
    result->dtype = inputs[0].dtype;
    return replace_axis(&inputs[0].shape, &inputs[1].shape, attributes->integers[0], &result->shape);
}

/* integers: axis, size. The inverse of replace_axis: the dimensions of the indices become one axis of
 * `size`. */
static sgm_status infer_scatter(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                sgm_type *result)
{
    (void)count;
    char a[128], b[128];
    const sgm_shape *updates = &inputs[0].shape, *indices = &inputs[1].shape;
    int64_t axis = attributes->integers[0], size = attributes->integers[1];
    SGM_TRY(sgm__want_number(&inputs[0]));
    SGM_TRY(sgm__want_integers(attributes, 2));
    SGM_TRY(sgm__want_index(&inputs[1]));
    int32_t rank = updates->rank - indices->rank + 1;
    bool fits = rank >= 1 && rank <= SGM_MAX_RANK && axis >= 0 && axis < rank && size >= 0;
    for (int32_t i = 0; i < indices->rank && fits; i++)
        fits = updates->dims[axis + i] == indices->dims[i];
    if (!fits)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "updates %s do not have the dimensions of indices %s from axis %lld on (size %lld)",
                        sgm_shape_text(updates, a, sizeof a), sgm_shape_text(indices, b, sizeof b),
                        (long long)axis, (long long)size);
    *result = (sgm_type){.dtype = inputs[0].dtype, .shape = {.rank = rank}};
    for (int32_t i = 0; i < rank; i++)
        result->shape.dims[i] = i < axis    ? updates->dims[i]
                                : i == axis ? size
                                            : updates->dims[i + indices->rank - 1];
    return SGM_OK;
}

/* Brackets round the name keep the macro of the same name (ops.h) from being expanded here. */
sgm_status(sgm__fail_entry)(int64_t index, int64_t axis, int64_t entries)
{
    return sgm_fail(SGM_ERROR_ARGUMENT, "index %lld is out of range: axis %lld has %lld entries, from 0 on",
                    (long long)index, (long long)axis, (long long)entries);
}

static sgm_status check_index(int64_t index, int64_t size, int32_t axis)
{
    return index >= 0 && index < size ? SGM_OK : sgm__fail_entry(index, axis, size);
}

/* The part of `array` that belongs to one index: a view without the indices' axes. */
static sgm_array pick_position(const sgm_array *array, int32_t axis, const sgm__cursor *position)
{
    sgm_array picked = *array;
    for (int32_t i = 0; i < position->shape.rank; i++)
        picked = sgm__array_pick(&picked, axis, position->index[i]);
    return picked;
}

/* One move of a whole entry for each index. */
static sgm_status forward_gather(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0], *indices = &call->inputs[1];
    int32_t axis = (int32_t)call->attributes->integers[0];
    sgm__cursor position = sgm__cursor_make(&indices->shape, indices->strides);
    int64_t count = sgm_shape_elements(&indices->shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&position)) {
        int64_t index = sgm__array_index(indices, position.offset);
        SGM_TRY(check_index(index, x->shape.dims[axis], axis));
        sgm_array from = sgm__array_pick(x, axis, index);
        sgm_array to = pick_position(&call->output, axis, &position);
        sgm__array_move(&from, &to);
    }
    return SGM_OK;
}

/* `count` elements along the last axis of the source, added to those along one of the target. */
typedef struct run {
    const sgm_array *source, *target;
    int64_t read, read_step, write, write_step, count;
} run;

/* `break` ends the switch in add_run. */
#define ADD_RUN(type)                                                                                        \
    for (int64_t i = 0; i < r->count; i++) {                                                                 \
        const type *from = (const type *)r->source->data + r->read + i * r->read_step;                       \
        type *to = (type *)r->target->data + r->write + i * r->write_step;                                   \
        *to = (type)(*to + *from);                                                                           \
    }                                                                                                        \
    break

/* The usual types without a conversion for each element; other types through double. */
static void add_run(const run *r)
{
    switch ((int)r->source->dtype) {
    case SGM_FLOAT32:
        ADD_RUN(float);
    case SGM_FLOAT64:
        ADD_RUN(double);
    case SGM_INT64: /* wraps around like machine arithmetic */
        ADD_RUN(uint64_t);
    default:
        for (int64_t i = 0; i < r->count; i++) {
            int64_t write = r->write + i * r->write_step;
            double sum = sgm_array_load(r->target, write);
            sum += sgm_array_load(r->source, r->read + i * r->read_step);
            sgm_array_store(r->target, write, sum);
        }
    }
}

/* target += source, for equal shapes, run after run along the last axis. */
static void add_to(const sgm_array *source, const sgm_array *target)
{
    sgm_shape outer = source->shape;
    run r = {.source = source, .target = target, .count = 1};
    if (outer.rank > 0) {
        outer.rank--;
        r.count = source->shape.dims[outer.rank];
        r.read_step = source->strides[outer.rank];
        r.write_step = target->strides[outer.rank];
    }
    sgm__cursor read = sgm__cursor_make(&outer, source->strides);
    sgm__cursor write = sgm__cursor_make(&outer, target->strides);
    int64_t runs = sgm_shape_elements(&outer);
    for (int64_t i = 0; i < runs; i++) {
        r.read = read.offset;
        r.write = write.offset;
        add_run(&r);
        sgm__cursor_next(&read);
        sgm__cursor_next(&write);
    }
}

/* In the order of the indices, so that sums are the same in each run. */
static sgm_status forward_scatter(const sgm_kernel_call *call)
{
    const sgm_array *updates = &call->inputs[0], *indices = &call->inputs[1], *y = &call->output;
    int32_t axis = (int32_t)call->attributes->integers[0];
    memset(y->data, 0, (size_t)sgm_shape_elements(&y->shape) * sgm_dtype_size(y->dtype));
    sgm__cursor position = sgm__cursor_make(&indices->shape, indices->strides);
    int64_t count = sgm_shape_elements(&indices->shape);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&position)) {
        int64_t index = sgm__array_index(indices, position.offset);
        SGM_TRY(check_index(index, y->shape.dims[axis], axis));
        sgm_array from = pick_position(updates, axis, &position);
        sgm_array to = sgm__array_pick(y, axis, index);
        add_to(&from, &to);
    }
    return SGM_OK;
}

/* scatter_add with the same indices; indices have no gradient. */
static void gradient_gather(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t size = sgm_value_type(graph, call->inputs[0]).shape.dims[axis];
    if (call->wanted[0])
        gradients[0] = sgm_scatter_add(graph, call->gradient, call->inputs[1], axis, size);
}

static void gradient_scatter(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    int32_t axis = (int32_t)call->attributes->integers[0];
    if (call->wanted[0])
        gradients[0] = sgm_gather(graph, call->gradient, call->inputs[1], axis);
}

const sgm_op sgm__op_gather = {SGM__OP("gather", 2, "entries of an axis by their numbers"),
                               .flags = SGM_OP_STRIDED, .infer = infer_gather, .gradient = gradient_gather,
                               .forward = forward_gather};
const sgm_op sgm__op_scatter_add = {
    SGM__OP("scatter_add", 2, "zeros with entries added to an axis by their numbers"),
    .flags = SGM_OP_STRIDED, .infer = infer_scatter, .gradient = gradient_scatter,
    .forward = forward_scatter};

sgm_value sgm_gather(sgm_graph *graph, sgm_value x, sgm_value indices, int32_t axis)
{
    if (!sgm__resolve_axis(graph, "gather", x, &axis))
        return (sgm_value){-1};
    return sgm_record(graph, &sgm__op_gather, (sgm_value[]){x, indices}, 2, &SGM__INTEGERS(axis));
}

/* A negative axis counts from the end of the result. */
sgm_value sgm_scatter_add(sgm_graph *graph, sgm_value updates, sgm_value indices, int32_t axis, int64_t size)
{
    if (!sgm__can_record(graph, "scatter_add", updates) || !sgm__can_record(graph, "scatter_add", indices))
        return (sgm_value){-1};
    if (axis < 0) /* of the result */
        axis += sgm_value_type(graph, updates).shape.rank - sgm_value_type(graph, indices).shape.rank + 1;
    return sgm_record(graph, &sgm__op_scatter_add, (sgm_value[]){updates, indices}, 2,
                      &SGM__INTEGERS(axis, size));
}

/* --- gather_along --- */

/* The position of each entry among all elements of `x` in row-major order: the sum over axes of number *
 * stride, where the number along `axis` is the index, along the others the entry's own. An index out of
 * range becomes -1, which gather refuses; otherwise it would name an element of another line. */
static sgm_value flat_positions(sgm_graph *graph, const sgm_shape *x, sgm_value indices, int32_t axis)
{
    sgm_shape shape = sgm_value_type(graph, indices).shape;
    sgm_value flat = {-1};
    int64_t stride = 1;
    for (int32_t i = x->rank; i-- > 0; stride *= x->dims[i]) {
        sgm_value number = i == axis ? indices : sgm_iota(graph, SGM_INT64, &shape, i);
        sgm_value part = sgm_multiply(graph, number, sgm_number(graph, (double)stride));
        flat = sgm_value_exists(flat) ? sgm_add(graph, flat, part) : part;
    }
    sgm_value known = sgm_logical_and(graph, sgm_greater_equal(graph, indices, sgm_number(graph, 0)),
                                      sgm_less(graph, indices, sgm_number(graph, (double)x->dims[axis])));
    return sgm_select(graph, known, flat, sgm_filled_like(graph, flat, -1));
}

/* result[i, j, ...] = x[i, indices[i, j, ...], ...] for axis 1: indices have x's shape but for the axis, and
 * each picks along its own line. It is a gather from x as one line, so its gradient needs no operation of
 * its own. */
sgm_value sgm_gather_along(sgm_graph *graph, sgm_value x, sgm_value indices, int32_t axis)
{
    if (!sgm__resolve_axis(graph, "gather_along", x, &axis) ||
        !sgm__can_record(graph, "gather_along", indices))
        return (sgm_value){-1};
    char a[SGM__TYPE_TEXT], b[SGM__TYPE_TEXT];
    sgm_type type = sgm_value_type(graph, x), index_type = sgm_value_type(graph, indices);
    sgm_shape alike = index_type.shape;
    alike.dims[axis] = type.shape.dims[axis];
    if (sgm__want_index(&index_type) != SGM_OK || alike.rank != type.shape.rank ||
        !sgm_shape_equal(&alike, &type.shape))
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "gather_along: wants int64 or int32 indices that are shaped like the input but for axis %d, got "
            "%s for %s",
            axis, sgm__type_text(&index_type, a), sgm__type_text(&type, b));
    sgm_value positions = flat_positions(graph, &type.shape, sgm_cast(graph, indices, SGM_INT64), axis);
    sgm_shape line = sgm_shape_of(sgm_shape_elements(&type.shape));
    return sgm_gather(graph, sgm_reshape(graph, x, &line), positions, 0);
}
