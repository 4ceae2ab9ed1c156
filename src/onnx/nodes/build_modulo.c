/* The build function of Mod, and the operation that it records.
 *
 * Mod is an operation of its own, not composed from others: x - b * quotient is inexact where the quotient
 * has more than 53 bits, and NaN where b is infinite, while C's fmod is exact. The operation is known here
 * only: it is not registered under a name, and runs on every handler by its `scalar` and `whole`
 * functions.
 *
 * Its one integer attribute says whether the result takes the sign of the divisor, as Python's % does, or
 * of the dividend, as C's fmod does (attribute `fmod` of the node). */
#include "onnx/nodes/onnx.h"

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

/* fmod(x, b); with the sign of the divisor b is added where the signs differ. A result of 0 gets the sign
 * of b, as numpy.mod gives it. */
static double scalar(const double *inputs, const sgm_attributes *attributes)
{
    double by = inputs[1], rest = fmod(inputs[0], by);
    if (!takes_sign_of_divisor(attributes))
        return rest;
    if (rest == 0)
        return copysign(rest, by);
    return (rest < 0) != (by < 0) ? rest + by : rest;
}

/* For int64, exactly. A divisor of 0 gives 0. A divisor of -1 gives 0 without dividing: INT64_MIN / -1
 * overflows. */
static int64_t whole(const int64_t *inputs, const sgm_attributes *attributes)
{
    int64_t by = inputs[1], rest = by == 0 || by == -1 ? 0 : inputs[0] % by;
    bool moves = takes_sign_of_divisor(attributes) && rest != 0 && (rest < 0) != (by < 0);
    return moves ? rest + by : rest;
}

/* The result is x - q b with a quotient q that is constant almost everywhere: its derivatives are 1 by x
 * and -q = (result - x) / b by b. */
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
