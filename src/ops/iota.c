/* iota: 0, 1, 2, ... along an axis, equal along the others; and one-hot rows by comparison with it.
 *
 * An operation without inputs: its result depends on the attributes alone. */
#include "ops/rules.h"

/* integers: dtype, axis, dims. Any type but bool. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)inputs, (void)count;
    SGM_TRY(sgm__read_shape(attributes, 2, &result->shape));
    SGM_TRY(sgm__read_dtype(attributes->integers[0], &result->dtype));
    SGM_TRY(sgm__want_number(result));
    return sgm__want_axis(result, attributes->integers[1]);
}

/* The index of each element along the axis. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *y = &call->output;
    int64_t axis = call->attributes->integers[1], count = sgm_shape_elements(&y->shape);
    sgm__cursor cursor = sgm__cursor_make(&y->shape, y->strides);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&cursor))
        sgm_array_store(y, cursor.offset, (double)cursor.index[axis]);
    return SGM_OK;
}

const sgm_op sgm__op_iota = {SGM__OP("iota", 0, "0, 1, 2, ... along an axis, equal along the others"),
                             .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward};

sgm_value sgm_iota(sgm_graph *graph, sgm_dtype dtype, const sgm_shape *shape, int32_t axis)
{
    if (!sgm__rank_fits(graph, "iota", shape))
        return (sgm_value){-1};
    sgm_attributes attributes = SGM__INTEGERS((int64_t)dtype, axis < 0 ? axis + shape->rank : axis);
    sgm__add_shape(&attributes, shape);
    return sgm_record(graph, &sgm__op_iota, NULL, 0, &attributes);
}

/* 1 where the index equals the class, by ordinary operations; an index that is no class gives a row of
 * zeros. With a check that stops the run it is one_hot.c. */
sgm_value sgm_one_hot_values(sgm_graph *graph, sgm_value indices, int64_t classes, sgm_dtype dtype)
{
    if (!sgm__can_record(graph, "one_hot", indices))
        return (sgm_value){-1};
    sgm_type type = sgm_value_type(graph, indices);
    char text[SGM__TYPE_TEXT];
    if (sgm__want_index(&type) != SGM_OK || type.shape.rank == SGM_MAX_RANK || classes < 0)
        return sgm_graph_fail(
            graph, SGM_ERROR_TYPE,
            "one_hot: wants int64 or int32 indices of rank below %d and classes, got %s and "
            "%lld classes",
            SGM_MAX_RANK, sgm__type_text(&type, text), (long long)classes);
    sgm_shape column = type.shape, line = sgm_shape_of(classes);
    column.dims[column.rank++] = 1;
    sgm_value numbers = sgm_iota(graph, type.dtype, &line, 0);
    sgm_value hot = sgm_equal(graph, sgm_reshape(graph, indices, &column), numbers);
    return sgm_cast(graph, hot, dtype);
}
