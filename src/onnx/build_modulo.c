/* Mod: an operation of its own, since no product of a rounded quotient is exact where x is large, or b
 * infinite. */
#include "onnx/onnx.h"

#include <math.h>

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static bool takes_sign_of_divisor(const sgm_attributes *attributes)
{
    return attributes->integers[0] != 0;
}

/* As fmod of C, or as the operator % of Python. */
static double scalar(const double *inputs, const sgm_attributes *attributes)
{
    double by = inputs[1], rest = fmod(inputs[0], by);
    if (!takes_sign_of_divisor(attributes))
        return rest;
    if (rest == 0)
        return copysign(rest, by);
    return (rest < 0) != (by < 0) ? rest + by : rest;
}

/* By 0 there is no rest; by -1 it is 0 also where the quotient does not fit. */
static int64_t whole(const int64_t *inputs, const sgm_attributes *attributes)
{
    int64_t by = inputs[1], rest = by == 0 || by == -1 ? 0 : inputs[0] % by;
    bool moves = takes_sign_of_divisor(attributes) && rest != 0 && (rest < 0) != (by < 0);
    return moves ? rest + by : rest;
}

/* x - quotient * b with a quotient that is constant almost everywhere. */
static void gradient(sgm_graph *g, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value x = call->inputs[0], by = call->inputs[1];
    if (call->wanted[0])
        gradients[0] = call->gradient;
    if (call->wanted[1])
        gradients[1] = sgm_multiply(g, call->gradient, sgm_divide(g, sgm_subtract(g, call->output, x), by));
}

static const sgm_op modulo = {.api = SGM_OP_API,
                              .flags = SGM_OP_ELEMENTWISE,
                              .name = "onnx_mod",
                              .doc = "what is left of a divided by b",
                              .min_inputs = 2,
                              .max_inputs = 2,
                              .infer = infer,
                              .gradient = gradient,
                              .scalar = scalar,
                              .whole = whole};

sgm_value sgm__onnx_mod(sgm__onnx_node *n)
{
    const sgm_attributes attributes = {.integer_count = 1,
                                       .integers = {sgm__onnx_integer(n, "fmod", 0) == 0}};
    return sgm_record(n->graph, &modulo, n->inputs, 2, &attributes);
}
