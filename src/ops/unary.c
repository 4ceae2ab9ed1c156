/* Elementwise operations of one input: formula, types and gradient in one table.
 *
 * The formula in double is the reference that all handlers are tested against; they have faster code of
 * their own. NaN gives NaN in all of them but the tests (is_nan, is_finite) and sign, which gives 0. Numbers
 * outside of a domain (log(-1), asin(2)) give NaN, never an error. Operations that are built from others are
 * in composed_unary.c. A gradient is recorded from x or from the result y, whichever needs less memory:
 * where y serves, x need not be kept until the backward pass. */
#include "ops/rules.h"

#include <math.h>

/* Columns: name; the types that it takes (infer_TYPES below); flags beside elementwise; the formula of x;
 * the formula of int64, which doubles hold only up to 2^53. NULL there: the operation moves int64 unchanged
 * or does not take it. Last, what its gradient is computed from: x (inputs[0]) or y (output). */
#define FORMULAS(X)                                                                                          \
    X(negate, number, 0, -x, whole_negate, inputs[0])                                                        \
    X(absolute, number, SGM_OP_ACTIVATION, fabs(x), whole_absolute, inputs[0])                               \
    X(sign, number, 0, (x > 0) - (x < 0), whole_sign, inputs[0])                                             \
    X(square_root, float, 0, sqrt(x), NULL, output)                                                          \
    X(exp, float, SGM_OP_ACTIVATION, exp(x), NULL, output)                                                   \
    X(log, float, 0, log(x), NULL, inputs[0])                                                                \
    X(log1p, float, 0, log1p(x), NULL, inputs[0])                                                            \
    X(sin, float, SGM_OP_ACTIVATION, sin(x), NULL, inputs[0])                                                \
    X(cos, float, SGM_OP_ACTIVATION, cos(x), NULL, inputs[0])                                                \
    X(tan, float, 0, tan(x), NULL, output)                                                                   \
    X(asin, float, 0, asin(x), NULL, inputs[0])                                                              \
    X(acos, float, 0, acos(x), NULL, inputs[0])                                                              \
    X(atan, float, SGM_OP_ACTIVATION, atan(x), NULL, inputs[0])                                              \
    X(tanh, float, SGM_OP_ACTIVATION, tanh(x), NULL, output)                                                 \
    X(erf, float, SGM_OP_ACTIVATION, erf(x), NULL, inputs[0])                                                \
    X(sigmoid, float, SGM_OP_ACTIVATION, sigmoid(x), NULL, output)                                           \
    X(gelu, float, SGM_OP_ACTIVATION, gelu(x), NULL, inputs[0])                                              \
    X(gelu_gradient, float, 0, gelu_gradient(x), NULL, inputs[0])                                            \
    X(floor, number, 0, floor(x), whole_floor, inputs[0])                                                    \
    X(copy, any, 0, x, NULL, inputs[0])                                                                      \
    X(stop_gradient, any, 0, x, NULL, inputs[0])                                                             \
    X(logical_not, bool, 0, x == 0, NULL, inputs[0])                                                         \
    X(is_nan, any_to_bool, 0, x != x, NULL, inputs[0])                                                       \
    X(is_finite, any_to_bool, 0, isfinite(x) != 0, NULL, inputs[0])

/* 0 - x of unsigned numbers, whose overflow is defined: the least int64 stays as it is. */
static int64_t whole_negate(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return (int64_t)(0 - (uint64_t)inputs[0]);
}

static int64_t whole_absolute(const int64_t *inputs, const sgm_attributes *attributes)
{
    return inputs[0] < 0 ? whole_negate(inputs, attributes) : inputs[0];
}

static int64_t whole_sign(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return (inputs[0] > 0) - (inputs[0] < 0);
}

static int64_t whole_floor(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0];
}

/* 1 / (1 + e^-x). For very negative x the exponential is infinite and the result 0, as it should be. */
static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Beyond this distance the normal distribution's tail is 0 even in double. Also keeps infinite x from giving
 * -infinity * 0 = NaN. */
#define FAR 40

/* x Phi(x) with the normal distribution's Phi(x) = erfc(-x / sqrt(2)) / 2: erfc keeps the digits of the
 * small tail (Hendrycks and Gimpel, 2016). */
static double gelu(double x)
{
    return x < -FAR ? 0 : x * erfc(-x * M_SQRT1_2) / 2;
}

/* d/dx x Phi(x) = Phi(x) + x phi(x), phi the normal density; 0 and 1 far from 0. */
static double gelu_gradient(double x)
{
    if (fabs(x) > FAR)
        return x > 0;
    return erfc(-x * M_SQRT1_2) / 2 + x * exp(-x * x / 2) * M_2_SQRTPI * M_SQRT1_2 / 2;
}

/* The rules: the result has the input's shape and type, except for tests, which give bool. */
static sgm_status infer_any(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                            sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status infer_number(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                               sgm_type *result)
{
    SGM_TRY(sgm__want_number(&inputs[0]));
    return infer_any(inputs, count, attributes, result);
}

static sgm_status infer_float(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                              sgm_type *result)
{
    SGM_TRY(sgm__want_float(&inputs[0]));
    return infer_any(inputs, count, attributes, result);
}

static sgm_status infer_bool(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    SGM_TRY(sgm__want_bool(&inputs[0]));
    return infer_any(inputs, count, attributes, result);
}

static sgm_status infer_any_to_bool(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                    sgm_type *result)
{
    SGM_TRY(infer_any(inputs, count, attributes, result));
    result->dtype = SGM_BOOL;
    return SGM_OK;
}

/* --- gradients: the gradient g of output y, times the derivative, computed from x or from y; what is nothing
 * is zero --- */

/* A constant of rank 0; recording makes it fit. */
static sgm_value number(sgm_graph *graph, double value)
{
    return sgm_number(graph, value);
}

static sgm_value derivative_negate(sgm_graph *graph, sgm_value x, sgm_value g)
{
    (void)x;
    return sgm_negate(graph, g);
}

/* g sign(x): 0 at 0. */
static sgm_value derivative_absolute(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_sign(graph, x));
}

/* g / (2 y). */
static sgm_value derivative_square_root(sgm_graph *graph, sgm_value y, sgm_value g)
{
    return sgm_divide(graph, g, sgm_add(graph, y, y));
}

/* g y. */
static sgm_value derivative_exp(sgm_graph *graph, sgm_value y, sgm_value g)
{
    return sgm_multiply(graph, g, y);
}

/* g / x. */
static sgm_value derivative_log(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_divide(graph, g, x);
}

static sgm_value derivative_log1p(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_divide(graph, g, sgm_add(graph, x, number(graph, 1)));
}

static sgm_value derivative_sin(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_cos(graph, x));
}

static sgm_value derivative_cos(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_negate(graph, sgm_multiply(graph, g, sgm_sin(graph, x)));
}

/* g (1 + y^2). */
static sgm_value derivative_tan(sgm_graph *graph, sgm_value y, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_add(graph, sgm_square(graph, y), number(graph, 1)));
}

/* g / sqrt(1 - x^2), infinite at the ends of the domain. */
static sgm_value derivative_asin(sgm_graph *graph, sgm_value x, sgm_value g)
{
    sgm_value rest = sgm_subtract(graph, number(graph, 1), sgm_square(graph, x));
    return sgm_divide(graph, g, sgm_square_root(graph, rest));
}

static sgm_value derivative_acos(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_negate(graph, derivative_asin(graph, x, g));
}

/* g / (1 + x^2). */
static sgm_value derivative_atan(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_divide(graph, g, sgm_add(graph, sgm_square(graph, x), number(graph, 1)));
}

/* g (1 - y^2). */
static sgm_value derivative_tanh(sgm_graph *graph, sgm_value y, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_subtract(graph, number(graph, 1), sgm_square(graph, y)));
}

/* g y (1 - y). */
static sgm_value derivative_sigmoid(sgm_graph *graph, sgm_value y, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_multiply(graph, y, sgm_subtract(graph, number(graph, 1), y)));
}

/* g 2 / sqrt(pi) exp(-x^2). */
static sgm_value derivative_erf(sgm_graph *graph, sgm_value x, sgm_value g)
{
    sgm_value bell = sgm_exp(graph, sgm_negate(graph, sgm_square(graph, x)));
    return sgm_multiply(graph, g, sgm_multiply(graph, bell, number(graph, M_2_SQRTPI)));
}

/* gelu_gradient is an operation of its own, since a handler computes it in one pass over x, without the
 * values in between. */
static sgm_value derivative_gelu(sgm_graph *graph, sgm_value x, sgm_value g)
{
    return sgm_multiply(graph, g, sgm_gelu_gradient(graph, x));
}

/* d/dx (Phi(x) + x phi(x)) = (2 - x^2) phi(x). */
static sgm_value derivative_gelu_gradient(sgm_graph *graph, sgm_value x, sgm_value g)
{
    sgm_value square = sgm_square(graph, x);
    sgm_value bell = sgm_exp(graph, sgm_multiply(graph, square, number(graph, -0.5)));
    sgm_value factor = sgm_subtract(graph, number(graph, 2), square);
    bell = sgm_multiply(graph, bell, number(graph, M_2_SQRTPI * M_SQRT1_2 / 2));
    return sgm_multiply(graph, g, sgm_multiply(graph, bell, factor));
}

static sgm_value derivative_copy(sgm_graph *graph, sgm_value x, sgm_value g)
{
    (void)graph, (void)x;
    return g;
}

/* Steps, tests and stop_gradient: nothing stands for a gradient of 0, which costs no instruction. */
static sgm_value derivative_zero(sgm_graph *graph, sgm_value x, sgm_value g)
{
    (void)graph, (void)x, (void)g;
    return (sgm_value){-1};
}

#define derivative_sign derivative_zero
#define derivative_floor derivative_zero
#define derivative_stop_gradient derivative_zero
#define derivative_logical_not derivative_zero
#define derivative_is_nan derivative_zero
#define derivative_is_finite derivative_zero

/* --- tables and functions --- */

/* For each row of the table: the formula, the rule and the gradient as functions of the signatures that
 * sgm_op wants. */
#define DEFINE_PARTS(name, types, extra_flags, formula, of_int64, kept)                                      \
    static double scalar_##name(const double *inputs, const sgm_attributes *attributes)                      \
    {                                                                                                        \
        (void)attributes;                                                                                    \
        double x = inputs[0];                                                                                \
        return formula;                                                                                      \
    }                                                                                                        \
    static sgm_status infer_of_##name(const sgm_type *inputs, int32_t count,                                 \
                                      const sgm_attributes *attributes, sgm_type *result)                    \
    {                                                                                                        \
        return infer_##types(inputs, count, attributes, result);                                             \
    }                                                                                                        \
    static void gradient_##name(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)       \
    {                                                                                                        \
        if (call->wanted[0])                                                                                 \
            gradients[0] = derivative_##name(graph, call->kept, call->gradient);                             \
    }
FORMULAS(DEFINE_PARTS)

#define DEFINE_DOC(name, text) static const char doc_##name[] = text;
SGM_UNARY_LIST(DEFINE_DOC)

/* For each row: the operation's table and sgm_NAME, which records it. */
#define DEFINE_OP(op_name, types, extra_flags, formula, of_int64, kept)                                      \
    const sgm_op sgm__op_##op_name = {                                                                       \
        SGM__OP(#op_name, 1, doc_##op_name), .flags = SGM_OP_ELEMENTWISE | (extra_flags),                    \
        .infer = infer_of_##op_name,         .gradient = gradient_##op_name,                                 \
        .scalar = scalar_##op_name,          .whole = of_int64};                                             \
    sgm_value sgm_##op_name(sgm_graph *graph, sgm_value x)                                                   \
    {                                                                                                        \
        return sgm__record_one(graph, &sgm__op_##op_name, x, NULL);                                          \
    }
FORMULAS(DEFINE_OP)
