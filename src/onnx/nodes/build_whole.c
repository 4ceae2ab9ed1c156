/* Operations that only ONNX has: what is left of a division (Mod), and quotients and powers of integers.
 *
 * They are operations of their own, not composed from others, because those lose digits: a double holds
 * integers up to 2^53 only, x - b * quotient is inexact where the quotient has more than 53 bits, and NaN
 * where b is infinite, while C's fmod is exact. The operations are known here only: they are not registered
 * under a name, and run on every handler by their `scalar` and `whole` functions. */
#include "onnx/nodes/onnx.h"

#include <math.h>

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

/* --- what is left --- */

/* The one integer attribute says whether the result takes the sign of the divisor, as Python's % does, or
 * of the dividend, as C's fmod does (attribute `fmod` of the node). */
static bool takes_sign_of_divisor(const sgm_attributes *attributes)
{
    return attributes->integers[0] != 0;
}

/* fmod(x, b); with the sign of the divisor b is added where the signs differ. A result of 0 gets the sign
 * of b, as numpy.mod gives it. */
static double scalar_modulo(const double *inputs, const sgm_attributes *attributes)
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
static int64_t whole_modulo(const int64_t *inputs, const sgm_attributes *attributes)
{
    int64_t by = inputs[1], rest = by == 0 || by == -1 ? 0 : inputs[0] % by;
    bool moves = takes_sign_of_divisor(attributes) && rest != 0 && (rest < 0) != (by < 0);
    return moves ? rest + by : rest;
}

/* The result is x - q b with a quotient q that is constant almost everywhere: its derivatives are 1 by x
 * and -q = (result - x) / b by b. */
static void gradient_modulo(sgm_graph *g, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value x = call->inputs[0], by = call->inputs[1];
    if (call->wanted[0])
        gradients[0] = call->gradient;
    if (call->wanted[1])
        gradients[1] = sgm_multiply(g, call->gradient, sgm_divide(g, sgm_subtract(g, call->output, x), by));
}

/* --- quotients --- */

static double scalar_divide(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return trunc(inputs[0] / inputs[1]);
}

/* What int64 does not hold, INT64_MIN / -1 and quotients by 0, becomes the nearest number that it holds; 0 /
 * 0 is 0. So a cast stores it for the other types. */
static int64_t whole_divide(const int64_t *inputs, const sgm_attributes *attributes)
{
    int64_t x = inputs[0], by = inputs[1];
    (void)attributes;
    if (by == 0)
        return x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
    return x == INT64_MIN && by == -1 ? INT64_MAX : x / by;
}

/* --- powers --- */

static double scalar_power(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return pow(inputs[0], inputs[1]);
}

/* 1 / x^-exponent, truncated: 0 unless x is 1 or -1; of 0 the largest number. */
static int64_t inverse_power(int64_t x, int64_t exponent)
{
    if (x == 0)
        return INT64_MAX;
    return x == 1 || (x == -1 && exponent % 2 == 0) ? 1 : x == -1 ? -1 : 0;
}

/* By squaring; wraps around like multiplication. */
static int64_t whole_power(const int64_t *inputs, const sgm_attributes *attributes)
{
    uint64_t square = (uint64_t)inputs[0], all = 1;
    (void)attributes;
    if (inputs[1] < 0)
        return inverse_power(inputs[0], inputs[1]);
    for (int64_t exponent = inputs[1]; exponent > 0; exponent /= 2, square *= square)
        all *= exponent % 2 != 0 ? square : 1;
    return (int64_t)all;
}

/* --- the operations --- */

#define gradient_divide NULL
#define gradient_power NULL
#define OPERATION(what, text)                                                                                \
    const sgm_op sgm__op_onnx_##what = {.api = SGM_OP_API,                                                   \
                                        .flags = SGM_OP_ELEMENTWISE,                                         \
                                        .name = "onnx_" #what,                                               \
                                        .doc = text,                                                         \
                                        .min_inputs = 2,                                                     \
                                        .max_inputs = 2,                                                     \
                                        .infer = infer,                                                      \
                                        .gradient = gradient_##what,                                         \
                                        .scalar = scalar_##what,                                             \
                                        .whole = whole_##what};
OPERATION(modulo, "what is left of a divided by b")
OPERATION(divide, "a divided by b, integers, towards 0")
OPERATION(power, "a to the power of b, integers")

sgm_value sgm__onnx_mod(sgm__onnx_node *n)
{
    const sgm_attributes attributes = {.integer_count = 1,
                                       .integers = {sgm__onnx_integer(n, "fmod", 0) == 0}};
    return sgm_record(n->graph, &sgm__op_onnx_modulo, n->inputs, 2, &attributes);
}
