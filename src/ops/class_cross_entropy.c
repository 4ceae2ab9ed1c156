/* class_cross_entropy: softmax_cross_entropy where each row has one right class, given by its number.
 *
 * A row of shares for each class (one_hot) would be as large as the logits, and only one of its numbers is
 * not 0. Handlers without a kernel get softmax_cross_entropy of that row. */
#include "ops/rules.h"

/* The last axis goes away. An index for each row. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char text[SGM__TYPE_TEXT], indices[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(&inputs[0]));
    SGM_TRY(sgm__want_index(&inputs[1]));
    int32_t rank = inputs[0].shape.rank;
    if (rank == 0 || inputs[0].shape.dims[rank - 1] == 0)
        return sgm_fail(SGM_ERROR_SHAPE, "wants classes in the last axis (..., classes), got %s",
                        sgm__type_text(&inputs[0], text));
    *result = inputs[0];
    result->shape = sgm_shape_create(rank - 1, inputs[0].shape.dims);
    if (!sgm_shape_equal(&result->shape, &inputs[1].shape))
        return sgm_fail(SGM_ERROR_SHAPE, "wants the number of a class for each row of %s, got %s",
                        sgm__type_text(&inputs[0], text), sgm__type_text(&inputs[1], indices));
    return SGM_OK;
}

static sgm_value shares_of(sgm_graph *graph, const sgm_value *inputs)
{
    sgm_type type = sgm_value_type(graph, inputs[0]);
    return sgm_one_hot_classes(graph, inputs[1], type.shape.dims[type.shape.rank - 1], type.dtype);
}

static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_softmax_cross_entropy_values(graph, inputs[0], shares_of(graph, inputs));
}

/* --- the gradient at x, an operation of its own as softmax_cross_entropy's is --- */

static sgm_status infer_gradient(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                 sgm_type *result)
{
    SGM_TRY(infer(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(result, &inputs[2]));
    *result = inputs[0];
    return SGM_OK;
}

static sgm_value compose_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                  const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_value operands[] = {inputs[0], shares_of(graph, inputs), inputs[2]};
    return sgm_record(graph, &sgm__op_softmax_cross_entropy_gradient, operands, 3, NULL);
}

/* Kernels read a row before they write it, so that the gradient may lie where the logits were. */
const sgm_op sgm__op_class_cross_entropy_gradient = {
    SGM__OP("class_cross_entropy_gradient", 3,
            "(softmax(x) - one_hot(classes)) * factor, a factor for each row"),
    .flags = SGM_OP_IN_PLACE, .compose = compose_gradient, .infer = infer_gradient};

/* Numbers of classes have no gradient. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_record(graph, &sgm__op_class_cross_entropy_gradient,
                                  (sgm_value[]){call->inputs[0], call->inputs[1], call->gradient}, 3, NULL);
}

const sgm_op sgm__op_class_cross_entropy = {
    SGM__OP("class_cross_entropy", 2, "-log_softmax(x) at the class of an index, over the last axis"),
    .compose = compose, .infer = infer, .gradient = gradient};

sgm_value sgm_class_cross_entropy(sgm_graph *graph, sgm_value x, sgm_value classes)
{
    return sgm_record(graph, &sgm__op_class_cross_entropy, (sgm_value[]){x, classes}, 2, NULL);
}
