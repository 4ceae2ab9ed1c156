/* flip: one axis backwards, y[i] = x[n - 1 - i]. Any type.
 *
 * A view: handlers give the axis a negative stride and begin at its end. It is its own inverse, so the
 * gradient is flipped, too. */
#include "ops/rules.h"

/* integers: axis. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    SGM_TRY(sgm__want_integers(attributes, 1));
    SGM_TRY(sgm__want_axis(&inputs[0], attributes->integers[0]));
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0];
    int32_t axis = (int32_t)call->attributes->integers[0];
    int64_t size = x->shape.dims[axis];
    sgm_array part = sgm__array_part(x, axis, size - 1, size, -1);
    sgm__array_move(&part, &call->output);
    return SGM_OK;
}

static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_flip(graph, call->gradient, (int32_t)call->attributes->integers[0]);
}

const sgm_op sgm__op_flip = {SGM__OP("flip", 1, "one axis backwards"), .flags = SGM_OP_VIEW | SGM_OP_STRIDED,
                             .infer = infer, .gradient = gradient, .forward = forward};

sgm_value sgm_flip(sgm_graph *graph, sgm_value x, int32_t axis)
{
    if (!sgm__resolve_axis(graph, "flip", x, &axis))
        return (sgm_value){-1};
    return sgm__record_one(graph, &sgm__op_flip, x, &SGM__INTEGERS(axis));
}
