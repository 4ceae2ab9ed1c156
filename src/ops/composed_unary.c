/* Elementwise operations of one input that are built from others: most activations.
 *
 * A composition needs no gradient and no kernel: it is expanded where it is recorded, and handlers fuse
 * its parts into one loop. So a new activation is one function here and a line in sigma/graph.h. Only
 * where the parts' gradient would be wrong or less exact does an operation stay one instruction, with a
 * gradient of its own (softplus). Formulas that could overflow are bounded first. */
#include "ops/rules.h"

#include <math.h>

static sgm_value compose_square(sgm_graph *graph, sgm_value x)
{
    return sgm_multiply(graph, x, x);
}

static sgm_value compose_reciprocal(sgm_graph *graph, sgm_value x)
{
    return sgm_divide(graph, sgm_number(graph, 1), x);
}

/* max(0, x). 0 comes first, so that the gradient at 0 is 0: of equal operands the first one gets it. */
static sgm_value compose_relu(sgm_graph *graph, sgm_value x)
{
    return sgm_maximum(graph, sgm_number(graph, 0), x);
}

static sgm_value is_positive(sgm_graph *graph, sgm_value x)
{
    return sgm_greater(graph, x, sgm_number(graph, 0));
}

/* x above 0, else 0.01 x (Maas et al., 2013). */
static sgm_value compose_leaky_relu(sgm_graph *graph, sgm_value x)
{
    sgm_value leak = sgm_multiply(graph, x, sgm_number(graph, 0.01));
    return sgm_select(graph, is_positive(graph, x), x, leak);
}

/* x above 0, else exp(x) - 1 (Clevert et al., 2015). The exponential is not taken of what is above 0: it
 * could overflow, and its gradient with it. */
static sgm_value compose_elu(sgm_graph *graph, sgm_value x)
{
    sgm_value below = sgm_minimum(graph, x, sgm_number(graph, 0));
    sgm_value branch = sgm_subtract(graph, sgm_exp(graph, below), sgm_number(graph, 1));
    return sgm_select(graph, is_positive(graph, x), x, branch);
}

/* log(1 + exp(x)) as max(0, x) + log1p(exp(-|x|)): no exponential overflows, and small results keep their
 * digits. */
static sgm_value compose_softplus(sgm_graph *graph, sgm_value x)
{
    sgm_value small = sgm_exp(graph, sgm_negate(graph, sgm_absolute(graph, x)));
    return sgm_add(graph, sgm_relu(graph, x), sgm_log1p(graph, small));
}

/* x sigmoid(x). */
static sgm_value compose_silu(sgm_graph *graph, sgm_value x)
{
    return sgm_multiply(graph, x, sgm_sigmoid(graph, x));
}

/* x limited to two bounds. These are the first operands, so at the bounds themselves the gradient is 0 (that
 * of sgm_clip is 1 there). */
static sgm_value bounded(sgm_graph *graph, sgm_value x, double minimum, double maximum)
{
    return sgm_minimum(graph, sgm_number(graph, maximum), sgm_maximum(graph, sgm_number(graph, minimum), x));
}

/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016). Beyond the bounds the
 * hyperbolic tangent is 1, and the cube under it would overflow. */
static sgm_value compose_gelu_tanh(sgm_graph *graph, sgm_value x)
{
    sgm_value near = bounded(graph, x, -20, 20), square = sgm_multiply(graph, near, near);
    sgm_value branch =
        sgm_add(graph, sgm_multiply(graph, square, sgm_number(graph, 0.044715)), sgm_number(graph, 1));
    sgm_value inner =
        sgm_multiply(graph, sgm_multiply(graph, near, sgm_number(graph, M_2_SQRTPI * M_SQRT1_2)), branch);
    sgm_value half = sgm_multiply(graph, x, sgm_number(graph, 0.5));
    return sgm_multiply(graph, half, sgm_add(graph, sgm_tanh(graph, inner), sgm_number(graph, 1)));
}

/* x tanh(softplus(x)) (Misra, 2019). */
static sgm_value compose_mish(sgm_graph *graph, sgm_value x)
{
    return sgm_multiply(graph, x, sgm_tanh(graph, sgm_softplus(graph, x)));
}

/* elu with a scale and an alpha at which normalised activations stay normalised (Klambauer et al., 2017);
 * the digits are those that the authors published. */
static sgm_value compose_selu(sgm_graph *graph, sgm_value x)
{
    const double scale = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    sgm_value below = sgm_minimum(graph, x, sgm_number(graph, 0));
    sgm_value branch = sgm_subtract(graph, sgm_exp(graph, below), sgm_number(graph, 1));
    return sgm_select(graph, is_positive(graph, x), sgm_multiply(graph, x, sgm_number(graph, scale)),
                      sgm_multiply(graph, branch, sgm_number(graph, scale * alpha)));
}

static sgm_value compose_relu6(sgm_graph *graph, sgm_value x)
{
    return bounded(graph, x, 0, 6);
}

static sgm_value compose_hard_tanh(sgm_graph *graph, sgm_value x)
{
    return bounded(graph, x, -1, 1);
}

/* x / 6 + 1 / 2, between 0 and 1. */
static sgm_value compose_hard_sigmoid(sgm_graph *graph, sgm_value x)
{
    sgm_value sixth = sgm_divide(graph, x, sgm_number(graph, 6));
    return bounded(graph, sgm_add(graph, sixth, sgm_number(graph, 0.5)), 0, 1);
}

static sgm_value compose_hard_silu(sgm_graph *graph, sgm_value x)
{
    return sgm_multiply(graph, x, sgm_hard_sigmoid(graph, x));
}

/* x / (1 + |x|). */
static sgm_value compose_softsign(sgm_graph *graph, sgm_value x)
{
    sgm_value size = sgm_add(graph, sgm_absolute(graph, x), sgm_number(graph, 1));
    return sgm_divide(graph, x, size);
}

static sgm_value compose_identity(sgm_graph *graph, sgm_value x)
{
    (void)graph;
    return x;
}

/* --- what stays one instruction, because its gradient is more exact than its parts' --- */

static sgm_status infer_float(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                              sgm_type *result)
{
    (void)count, (void)attributes;
    SGM_TRY(sgm__want_float(&inputs[0]));
    *result = inputs[0];
    return SGM_OK;
}

/* The sigmoid. The parts' gradient is wrong at 0, where |x| has none. */
static void gradient_softplus(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = sgm_multiply(graph, call->gradient, sgm_sigmoid(graph, call->inputs[0]));
}

/* --- tables and functions --- */

/* The table of an operation, with its composition in the signature that sgm_op wants, and the function that
 * records it. Without a rule, `infer`, it is expanded when it is recorded; with one it stays an instruction.
 */
#define DEFINE_TABLE(op_name, op_doc, rule, gradient_of)                                                     \
    static sgm_value expand_##op_name(sgm_graph *graph, const sgm_value *inputs, int32_t count,              \
                                      const sgm_attributes *attributes)                                      \
    {                                                                                                        \
        (void)count, (void)attributes;                                                                       \
        return compose_##op_name(graph, inputs[0]);                                                          \
    }                                                                                                        \
    const sgm_op sgm__op_##op_name = {SGM__OP(#op_name, 1, op_doc),                                          \
                                      .flags = SGM_OP_ELEMENTWISE | SGM_OP_ACTIVATION,                       \
                                      .compose = expand_##op_name, .infer = rule, .gradient = gradient_of};  \
    sgm_value sgm_##op_name(sgm_graph *graph, sgm_value x)                                                   \
    {                                                                                                        \
        return sgm__record_one(graph, &sgm__op_##op_name, x, NULL);                                          \
    }
#define DEFINE_OP(op_name, op_doc) DEFINE_TABLE(op_name, op_doc, NULL, NULL)
SGM_COMPOSED_UNARY_LIST(DEFINE_OP)
DEFINE_TABLE(softplus, "log(1 + exp(x)), without overflow", infer_float, gradient_softplus)
