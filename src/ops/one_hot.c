/* one_hot: 1 at the class that an index names, 0 at the others; classes are a new last axis.
 *
 * An index that is no class stops the run: a composition would have to give it some number, and the
 * mistake in the data would stay. iota.c has such a composition (sgm_one_hot_values) for indices that may
 * be out of range. */
#include "ops/rules.h"

/* integers: dtype, classes */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_integers(attributes, 2));
    SGM_TRY(sgm__want_index(&inputs[0]));
    if (inputs[0].shape.rank == SGM_MAX_RANK || attributes->integers[1] < 1)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "wants indices of rank below %d and at least 1 class, got %s and %lld", SGM_MAX_RANK,
                        sgm__type_text(&inputs[0], text), (long long)attributes->integers[1]);
    result->shape = inputs[0].shape;
    result->shape.dims[result->shape.rank++] = attributes->integers[1];
    return sgm__read_dtype(attributes->integers[0], &result->dtype);
}

/* Fields of floats with numbers of classes are checked where they are fed: SGM__NO_WHOLE_NUMBER stands for
 * one that is not whole. */
sgm_status(sgm__fail_class)(int64_t index, int64_t classes)
{
    if (index == (int64_t)SGM__NO_WHOLE_NUMBER)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the number of a class is no whole number; there are %lld classes, numbered from 0",
                        (long long)classes);
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "class %lld is out of range: there are %lld classes, numbered from 0%s", (long long)index,
                    (long long)classes,
                    index < 0 ? "; softmax_cross_entropy(ignore_negative) leaves negative ones out" : "");
}

static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *indices = &call->inputs[0], *y = &call->output;
    int64_t classes = call->attributes->integers[1], count = sgm_shape_elements(&indices->shape);
    memset(y->data, 0, (size_t)(count * classes) * sgm_dtype_size(y->dtype));
    sgm__cursor cursor = sgm__cursor_make(&indices->shape, indices->strides);
    for (int64_t i = 0; i < count; i++, sgm__cursor_next(&cursor)) {
        int64_t index = sgm__array_index(indices, cursor.offset);
        if (index < 0 || index >= classes)
            return sgm__fail_class(index, classes);
        sgm_array_store(y, i * classes + index, 1);
    }
    return SGM_OK;
}

const sgm_op sgm__op_one_hot = {SGM__OP("one_hot", 1, "1 at the class of an index, 0 at the others"),
                                .flags = SGM_OP_STRIDED, .infer = infer, .forward = forward};

sgm_value sgm_one_hot_classes(sgm_graph *graph, sgm_value indices, int64_t classes, sgm_dtype dtype)
{
    return sgm__record_one(graph, &sgm__op_one_hot, indices, &SGM__INTEGERS((int64_t)dtype, classes));
}
