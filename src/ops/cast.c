/* cast: the same numbers in another type.
 *
 * Floats become integers as in C (towards 0), but within the type's limits. It is elementwise, so handlers
 * fuse it with what is around it. */
#include "ops/rules.h"

/* Storing the result converts it. */
static double scalar(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes; /* storing the result converts it */
    return inputs[0];
}

/* integers: number of the type. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_integers(attributes, 1));
    result->shape = inputs[0].shape;
    return sgm__read_dtype(attributes->integers[0], &result->dtype);
}

/* The gradient goes back in the type of the input; of an integer nothing wants one. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_cast(graph, call->gradient, sgm_value_type(graph, call->inputs[0]).dtype);
}

const sgm_op sgm__op_cast = {SGM__OP("cast", 1, "the same numbers in another type"),
                             .flags = SGM_OP_ELEMENTWISE, .infer = infer, .gradient = gradient,
                             .scalar = scalar};

/* A cast to the type that is there already records nothing. */
sgm_value sgm_cast(sgm_graph *graph, sgm_value x, sgm_dtype dtype)
{
    if (sgm_value_exists(x) && sgm_value_type(graph, x).dtype == dtype)
        return x;
    return sgm__record_one(graph, &sgm__op_cast, x, &SGM__INTEGERS((int64_t)dtype));
}
