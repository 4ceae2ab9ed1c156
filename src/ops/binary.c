/* Elementwise operations of two inputs: arithmetic, comparisons, logic.
 *
 * Recording has made the shapes equal by broadcasts, and types equal, before any function here is called
 * (src/graph/record.c). The formulas are the reference for all handlers, which have faster code of their
 * own; of int64 there is a second formula, exact and wrapping around like machine arithmetic, since a
 * double holds integers only up to 2^53. */
#include "ops/rules.h"

#include <math.h>

/* Columns: name; the types that it takes; its gradient, which what gives bool has not; the formula of int64,
 * which floats and bool have not; the formula of a and b. maximum and minimum of a number and NaN are NaN (a
 * != a is true for NaN only; b is taken where it is NaN, since all comparisons with NaN are false). equal and
 * its like compare NaN as IEEE 754 does. */
#define FORMULAS(X)                                                                                          \
    X(add, number, gradient_add, whole_add, a + b)                                                           \
    X(subtract, number, gradient_subtract, whole_subtract, a - b)                                            \
    X(multiply, number, gradient_multiply, whole_multiply, a *b)                                             \
    X(divide, float, gradient_divide, NULL, a / b)                                                           \
    X(power, float, gradient_power, NULL, pow(a, b))                                                         \
    X(maximum, number, gradient_maximum, whole_maximum, a >= b || a != a ? a : b)                            \
    X(minimum, number, gradient_minimum, whole_minimum, a <= b || a != a ? a : b)                            \
    X(equal, any_to_bool, NULL, whole_equal, a == b)                                                         \
    X(not_equal, any_to_bool, NULL, whole_not_equal, a != b)                                                 \
    X(less, any_to_bool, NULL, whole_less, a < b)                                                            \
    X(less_equal, any_to_bool, NULL, whole_less_equal, a <= b)                                               \
    X(greater, any_to_bool, NULL, whole_greater, a > b)                                                      \
    X(greater_equal, any_to_bool, NULL, whole_greater_equal, a >= b)                                         \
    X(logical_and, bool, NULL, NULL, a != 0 && b != 0)                                                       \
    X(logical_or, bool, NULL, NULL, a != 0 || b != 0)

/* The formulas of int64. Sums, differences and products are computed from unsigned numbers, whose overflow
 * is defined. Operations of floats and of bool have none. */
#define WHOLE_FORMULAS(X)                                                                                    \
    X(add, (int64_t)((uint64_t)a + (uint64_t)b))                                                             \
    X(subtract, (int64_t)((uint64_t)a - (uint64_t)b))                                                        \
    X(multiply, (int64_t)((uint64_t)a * (uint64_t)b))                                                        \
    X(maximum, a >= b ? a : b)                                                                               \
    X(minimum, a <= b ? a : b)                                                                               \
    X(equal, a == b)                                                                                         \
    X(not_equal, a != b)                                                                                     \
    X(less, a < b)                                                                                           \
    X(less_equal, a <= b)                                                                                    \
    X(greater, a > b)                                                                                        \
    X(greater_equal, a >= b)

/* The rules: two equal types and shapes; the result has them, too, but for comparisons, which give bool. */
static sgm_status infer_any(const sgm_type *inputs, sgm_type *result)
{
    SGM_TRY(sgm__want_equal(&inputs[0], &inputs[1]));
    *result = inputs[0];
    return SGM_OK;
}

static sgm_status infer_number(const sgm_type *inputs, sgm_type *result)
{
    SGM_TRY(sgm__want_number(&inputs[0]));
    return infer_any(inputs, result);
}

static sgm_status infer_float(const sgm_type *inputs, sgm_type *result)
{
    SGM_TRY(sgm__want_float(&inputs[0]));
    return infer_any(inputs, result);
}

static sgm_status infer_bool(const sgm_type *inputs, sgm_type *result)
{
    SGM_TRY(sgm__want_bool(&inputs[0]));
    return infer_any(inputs, result);
}

static sgm_status infer_any_to_bool(const sgm_type *inputs, sgm_type *result)
{
    SGM_TRY(infer_any(inputs, result));
    result->dtype = SGM_BOOL;
    return SGM_OK;
}

/* --- gradients --- */

/* Both inputs get the gradient as it is; where they were broadcast, the broadcast's gradient sums it. */
static void gradient_add(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    (void)graph;
    gradients[0] = call->gradient;
    gradients[1] = call->gradient;
}

static void gradient_subtract(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    gradients[0] = call->gradient;
    if (call->wanted[1])
        gradients[1] = sgm_negate(graph, call->gradient);
}

/* g b and g a. */
static void gradient_multiply(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    for (int i = 0; i < 2; i++)
        if (call->wanted[i])
            gradients[i] = sgm_multiply(graph, call->gradient, call->inputs[1 - i]);
}

/* g / b and -(g / b) (a / b): both the first gradient and the result are used again. */
static void gradient_divide(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value share = sgm_divide(graph, call->gradient, call->inputs[1]);
    gradients[0] = share;
    if (call->wanted[1])
        gradients[1] = sgm_negate(graph, sgm_multiply(graph, share, call->output));
}

/* d/da a^b = b a^(b - 1), and 0 where b is 0, also at a = 0, where a^-1 would be infinite. For a constant
 * exponent of 2, the usual one, it is 2 a without a power. */
static sgm_value power_gradient(sgm_graph *graph, sgm_value a, sgm_value b)
{
    double exponent;
    if (sgm__is_number(graph, b, &exponent)) {
        sgm_value rest = exponent == 2 ? a : sgm_power(graph, a, sgm_number(graph, exponent - 1));
        return sgm_multiply(graph, rest, sgm_number(graph, exponent));
    }
    sgm_value one = sgm_number(graph, 1), zero = sgm_number(graph, 0);
    sgm_value rest = sgm_select(graph, sgm_equal(graph, b, zero), sgm_filled_like(graph, b, 1),
                                sgm_subtract(graph, b, one));
    return sgm_multiply(graph, b, sgm_power(graph, a, rest));
}

/* The gradient by a is power_gradient, by b it is a^b log(a). A constant exponent of 0 gives no gradient. */
static void gradient_power(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value a = call->inputs[0], b = call->inputs[1];
    double exponent;
    bool is_constant = sgm__is_number(graph, b, &exponent) && exponent == 0;
    if (call->wanted[0] && !is_constant)
        gradients[0] = sgm_multiply(graph, call->gradient, power_gradient(graph, a, b));
    if (call->wanted[1]) {
        /* the logarithm of 1 where a is not positive: 0 to the b does not change with b */
        sgm_value positive = sgm_greater(graph, a, sgm_number(graph, 0));
        sgm_value logarithm = sgm_log(graph, sgm_select(graph, positive, a, sgm_filled_like(graph, a, 1)));
        gradients[1] = sgm_multiply(graph, call->gradient, sgm_multiply(graph, call->output, logarithm));
    }
}

/* The whole gradient goes to a where `first` is true, elsewhere to b; where both are equal, it is a's. */
static void share_gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value first,
                           sgm_value *gradients)
{
    sgm_value zero = sgm_filled_like(graph, call->gradient, 0);
    if (call->wanted[0])
        gradients[0] = sgm_select(graph, first, call->gradient, zero);
    if (call->wanted[1])
        gradients[1] = sgm_select(graph, first, zero, call->gradient);
}

static void gradient_maximum(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    /* A number (relu has 0) is the larger where it is the result: so b need not be kept. */
    double number;
    bool known = sgm__is_number(graph, call->inputs[0], &number) && !call->wanted[0];
    sgm_value other = known ? call->output : call->inputs[1];
    share_gradient(graph, call, sgm_greater_equal(graph, call->inputs[0], other), gradients);
}

static void gradient_minimum(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    share_gradient(graph, call, sgm_less_equal(graph, call->inputs[0], call->inputs[1]), gradients);
}

/* Comparisons and logic give bool, which has no gradient, so these are never called. */
#define gradient_equal NULL
#define gradient_not_equal NULL
#define gradient_less NULL
#define gradient_less_equal NULL
#define gradient_greater NULL
#define gradient_greater_equal NULL
#define gradient_logical_and NULL
#define gradient_logical_or NULL

/* --- tables and functions --- */

/* For each row of the table: formula and rule as functions of the signatures that sgm_op wants. */
#define DEFINE_PARTS(name, types, gradient_of, of_int64, formula)                                            \
    static double scalar_##name(const double *inputs, const sgm_attributes *attributes)                      \
    {                                                                                                        \
        (void)attributes;                                                                                    \
        double a = inputs[0], b = inputs[1];                                                                 \
        return formula;                                                                                      \
    }                                                                                                        \
    static sgm_status infer_of_##name(const sgm_type *inputs, int32_t count,                                 \
                                      const sgm_attributes *attributes, sgm_type *result)                    \
    {                                                                                                        \
        (void)count, (void)attributes;                                                                       \
        return infer_##types(inputs, result);                                                                \
    }
FORMULAS(DEFINE_PARTS)

#define DEFINE_WHOLE(name, formula)                                                                          \
    static int64_t whole_##name(const int64_t *inputs, const sgm_attributes *attributes)                     \
    {                                                                                                        \
        (void)attributes;                                                                                    \
        int64_t a = inputs[0], b = inputs[1];                                                                \
        return formula;                                                                                      \
    }
WHOLE_FORMULAS(DEFINE_WHOLE)

#define DEFINE_DOC(name, text) static const char doc_##name[] = text;
SGM_BINARY_LIST(DEFINE_DOC)

#define DEFINE_OP(op_name, types, gradient_of, of_int64, formula)                                            \
    const sgm_op sgm__op_##op_name = {SGM__OP(#op_name, 2, doc_##op_name), .flags = SGM_OP_ELEMENTWISE,      \
                                      .infer = infer_of_##op_name,         .gradient = gradient_of,          \
                                      .scalar = scalar_##op_name,          .whole = of_int64};               \
    sgm_value sgm_##op_name(sgm_graph *graph, sgm_value a, sgm_value b)                                      \
    {                                                                                                        \
        return sgm_record(graph, &sgm__op_##op_name, (sgm_value[]){a, b}, 2, NULL);                          \
    }
FORMULAS(DEFINE_OP)
