/* select: one of two values, element by element; clip is composed of a maximum and a minimum.
 *
 * Both values are computed in any case; select only chooses. An infinity on the side that is not chosen does
 * no harm in the result, but 0 times it is NaN in a gradient, so operands that might be infinite are bounded
 * before (see composed_unary.c). */
#include "ops/rules.h"

/* The values pass unchanged, also NaN and infinity on the side that is not chosen. */
static double scalar(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] != 0 ? inputs[1] : inputs[2];
}

/* A condition of bool and two values of one type, all of one shape: recording has broadcast them. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char condition[SGM__TYPE_TEXT], values[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_bool(&inputs[0]));
    SGM_TRY(sgm__want_equal(&inputs[1], &inputs[2]));
    if (!sgm_shape_equal(&inputs[0].shape, &inputs[1].shape))
        return sgm_fail(SGM_ERROR_SHAPE, "wants a condition of the values' shape, got %s for %s",
                        sgm__type_text(&inputs[0], condition), sgm__type_text(&inputs[1], values));
    *result = inputs[1];
    return SGM_OK;
}

/* Each value gets the gradient where it was chosen, and 0 elsewhere. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value condition = call->inputs[0], zero = sgm_filled_like(graph, call->gradient, 0);
    if (call->wanted[1])
        gradients[1] = sgm_select(graph, condition, call->gradient, zero);
    if (call->wanted[2])
        gradients[2] = sgm_select(graph, condition, zero, call->gradient);
}

const sgm_op sgm__op_select = {SGM__OP("select", 3, "a where the condition is true, else b"),
                               .flags = SGM_OP_ELEMENTWISE, .infer = infer, .gradient = gradient,
                               .scalar = scalar};

sgm_value sgm_select(sgm_graph *graph, sgm_value condition, sgm_value a, sgm_value b)
{
    return sgm_record(graph, &sgm__op_select, (sgm_value[]){condition, a, b}, 3, NULL);
}

sgm_value sgm_clip(sgm_graph *graph, sgm_value x, double minimum, double maximum)
{
    if (sgm__can_record(graph, "clip", x) && !(minimum <= maximum))
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT, "clip: the minimum %g is not below the maximum %g",
                              minimum, maximum);
    return sgm_minimum(graph, sgm_maximum(graph, x, sgm_number(graph, minimum)), sgm_number(graph, maximum));
}
