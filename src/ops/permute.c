/* permute: axes in another order; transpose swaps the last two.
 *
 * A view: handlers exchange strides and copy nothing, until a kernel wants contiguous memory. Any type.
 * Entry i of the attributes is the axis of the input that becomes axis i of the result. */
#include "ops/rules.h"

/* The order of axes as it was given, for the message. */
static char *order_text(const sgm_attributes *attributes, char *buffer, size_t size)
{
    sgm_shape order = {0};
    for (int32_t i = 0; i < attributes->integer_count && i < SGM_MAX_RANK; i++)
        order.dims[order.rank++] = attributes->integers[i];
    return sgm_shape_text(&order, buffer, size);
}

/* integers: axes. Each must come once: `seen` has a bit for each that did. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    const sgm_shape *shape = &inputs[0].shape;
    char text[128], order[128];
    uint64_t seen = 0;
    *result = inputs[0];
    for (int32_t i = 0; i < shape->rank && attributes->integer_count == shape->rank; i++) {
        int64_t axis = attributes->integers[i];
        if (axis < 0 || axis >= shape->rank)
            break;
        seen |= (uint64_t)1 << axis;
        result->shape.dims[i] = shape->dims[axis];
    }
    if (attributes->integer_count != shape->rank || seen != ((uint64_t)1 << shape->rank) - 1)
        return sgm_fail(SGM_ERROR_SHAPE, "shape %s wants each of its %d axes once, got %s",
                        sgm_shape_text(shape, text, sizeof text), shape->rank,
                        order_text(attributes, order, sizeof order));
    return SGM_OK;
}

/* Only where no view is possible: copies through the exchanged strides. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0];
    sgm_array view = *x;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        view.shape.dims[i] = x->shape.dims[call->attributes->integers[i]];
        view.strides[i] = x->strides[call->attributes->integers[i]];
    }
    sgm__array_move(&view, &call->output);
    return SGM_OK;
}

/* The gradient permuted by the inverse order. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    int32_t back[SGM_MAX_RANK] = {0};
    for (int32_t i = 0; i < call->attributes->integer_count; i++)
        back[call->attributes->integers[i]] = i;
    if (call->wanted[0])
        gradients[0] = sgm_permute(graph, call->gradient, back);
}

const sgm_op sgm__op_permute = {SGM__OP("permute", 1, "axes in another order"),
                                .flags = SGM_OP_VIEW | SGM_OP_STRIDED, .infer = infer, .gradient = gradient,
                                .forward = forward};

/* Negative axes count from the end. `axes` has as many entries as x has axes. */
sgm_value sgm_permute(sgm_graph *graph, sgm_value x, const int32_t *axes)
{
    if (!sgm__can_record(graph, "permute", x))
        return (sgm_value){-1};
    sgm_attributes attributes = {.integer_count = sgm_value_type(graph, x).shape.rank};
    for (int32_t i = 0; i < attributes.integer_count; i++)
        attributes.integers[i] = axes[i] < 0 ? axes[i] + attributes.integer_count : axes[i];
    return sgm__record_one(graph, &sgm__op_permute, x, &attributes);
}

/* Leading axes stay, so a batch of matrices is transposed matrix by matrix. */
sgm_value sgm_transpose(sgm_graph *graph, sgm_value x)
{
    if (!sgm__can_record(graph, "transpose", x))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, x).shape;
    char text[128];
    if (shape.rank < 2)
        return sgm_graph_fail(
            graph, SGM_ERROR_SHAPE,
            "transpose: swaps the last two axes, but shape %s has only %d; reshape it first",
            sgm_shape_text(&shape, text, sizeof text), shape.rank);
    int32_t axes[SGM_MAX_RANK];
    for (int32_t i = 0; i < shape.rank; i++)
        axes[i] = i;
    axes[shape.rank - 1] = shape.rank - 2;
    axes[shape.rank - 2] = shape.rank - 1;
    return sgm_permute(graph, x, axes);
}
