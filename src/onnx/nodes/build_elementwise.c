/* Build functions of operators that compute each element of the result from one element of each input.
 *
 * Called by import.c through the table in operators.c; what they use is declared in onnx.h. Operators that
 * are an operation of the library go through sgm__onnx_same; the others are composed here. Broadcasting is
 * sgm_record's: a sgm_number of rank 0 takes the type of the other operands.
 */
#include "onnx/nodes/onnx.h"

#include <math.h>

static sgm_value number(const sgm__onnx_node *n, double value)
{
    return sgm_number(n->graph, value);
}

/* --- as they are --- */

/* The second operand of a binary operator, shaped so that broadcasting from the right is right. Up to
 * opset 6 the operand is broadcast only if `broadcast` says so, and lies along the axes of the first from
 * `axis` on; dimensions of 1 are appended behind it then. */
static sgm_value aligned(sgm__onnx_node *n, sgm_value b)
{
    if (n->opset >= 7)
        return b;
    int64_t axis = sgm__onnx_integer(n, "axis", -1);
    sgm_type type = sgm__onnx_type(n, b);
    int32_t rank = sgm__onnx_type(n, n->inputs[0]).shape.rank;
    if (sgm__onnx_integer(n, "broadcast", 0) == 0 || axis < 0 || axis + type.shape.rank >= rank)
        return b;
    for (int32_t i = (int32_t)axis + type.shape.rank; i < rank; i++)
        type.shape.dims[type.shape.rank++] = 1;
    return sgm_reshape(n->graph, b, &type.shape);
}

/* Records row->op with the inputs that the row needs (at most three). */
sgm_value sgm__onnx_same(sgm__onnx_node *n)
{
    sgm_value inputs[3] = {n->inputs[0], sgm__onnx_in(n, 1), sgm__onnx_in(n, 2)};
    if (n->row->needed == 2)
        inputs[1] = aligned(n, inputs[1]);
    return sgm_record(n->graph, n->row->op, inputs, n->row->needed, &(sgm_attributes){0});
}

/* Max, Min, Sum and Mean take any number of inputs: folded from the left. One input alone is copied, as a
 * node's output must not be its input. */
static sgm_value join(sgm__onnx_node *n, sgm_value (*function)(sgm_graph *, sgm_value, sgm_value))
{
    sgm_value all = n->inputs[0];
    for (int32_t i = 1; i < n->input_count; i++)
        all = function(n->graph, all, n->inputs[i]);
    return n->input_count == 1 ? sgm_copy(n->graph, all) : all;
}

SGM__ONNX_BUILD(variadic_max, n, join(n, sgm_maximum))
SGM__ONNX_BUILD(variadic_min, n, join(n, sgm_minimum))
SGM__ONNX_BUILD(variadic_sum, n, join(n, sgm_add))
SGM__ONNX_BUILD(variadic_mean, n, sgm_multiply(n->graph, join(n, sgm_add), number(n, 1.0 / n->input_count)))

/* --- functions of one number --- */

/* Up to here acosh and asinh go by a form for small numbers, beyond it by one for large ones. */
#define LARGE 2

/* For x of at least LARGE, log(x + sqrt(x^2 + c)) as log(x) + log1p(sqrt(1 + c / x^2)), in which nothing
 * overflows; else `small`. Smaller x count as LARGE there, since select computes both sides. */
static sgm_value logarithm_of_sum(sgm__onnx_node *n, sgm_value x, double c, sgm_value small)
{
    sgm_graph *g = n->graph;
    sgm_value large = sgm_maximum(g, x, number(n, LARGE)), inverse = sgm_square(g, sgm_reciprocal(g, large));
    sgm_value root = sgm_square_root(g, sgm_add(g, sgm_multiply(g, inverse, number(n, c)), number(n, 1)));
    sgm_value sum = sgm_add(g, sgm_log(g, large), sgm_log1p(g, root));
    return sgm_select(g, sgm_greater(g, x, number(n, LARGE)), sum, small);
}

/* log(x + sqrt(x^2 - 1)); near 1 as log1p(t + sqrt(t) sqrt(t + 2)) with t = x - 1, in which nothing
 * cancels. Below 1 the root of t makes it NaN. */
sgm_value sgm__onnx_acosh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_value t = sgm_subtract(g, sgm_minimum(g, x, number(n, LARGE)), number(n, 1));
    sgm_value root = sgm_multiply(g, sgm_square_root(g, t), sgm_square_root(g, sgm_add(g, t, number(n, 2))));
    return logarithm_of_sum(n, x, -1, sgm_log1p(g, sgm_add(g, t, root)));
}

/* sign(x) log(a + sqrt(a^2 + 1)) with a = |x|; near 0 as log1p(a + a^2 / (1 + sqrt(1 + a^2))), in which
 * nothing cancels. */
sgm_value sgm__onnx_asinh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = sgm_absolute(g, n->inputs[0]), a = sgm_minimum(g, x, number(n, LARGE));
    sgm_value square = sgm_square(g, a), root = sgm_square_root(g, sgm_add(g, square, number(n, 1)));
    sgm_value rest = sgm_divide(g, square, sgm_add(g, root, number(n, 1)));
    sgm_value y = logarithm_of_sum(n, x, 1, sgm_log1p(g, sgm_add(g, a, rest)));
    return sgm_multiply(g, sgm_sign(g, n->inputs[0]), y);
}

/* (log1p(x) - log1p(-x)) / 2: accurate near 0, where log((1 + x) / (1 - x)) would round 1 + x. */
sgm_value sgm__onnx_atanh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_value difference = sgm_subtract(g, sgm_log1p(g, x), sgm_log1p(g, sgm_negate(g, x)));
    return sgm_multiply(g, difference, number(n, 0.5));
}

/* (exp(x) + exp(-x)) / 2. exp(x) as the square of exp(x / 2), of which a half is taken first: it overflows
 * only where the result does. */
sgm_value sgm__onnx_cosh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value half = sgm_multiply(g, n->inputs[0], number(n, 0.5));
    sgm_value up = sgm_exp(g, half), down = sgm_exp(g, sgm_negate(g, half));
    up = sgm_multiply(g, sgm_multiply(g, up, number(n, 0.5)), up);
    return sgm_add(g, up, sgm_multiply(g, sgm_multiply(g, down, number(n, 0.5)), down));
}

/* tanh(x) cosh(x): exp(x) - exp(-x) would cancel near 0. */
SGM__ONNX_BUILD(sinh, n, sgm_multiply(n->graph, sgm_tanh(n->graph, n->inputs[0]), sgm__onnx_cosh(n)))

/* -floor(-x) */
SGM__ONNX_BUILD(ceil, n, sgm_negate(n->graph, sgm_floor(n->graph, sgm_negate(n->graph, n->inputs[0]))))

/* floor(x + 1/2) rounds halves up. Where that result is odd and x lies exactly half-way, the even
 * neighbour is one below. */
sgm_value sgm__onnx_round_even(sgm_graph *g, sgm_value x)
{
    sgm_value half = sgm_number(g, 0.5), up = sgm_floor(g, sgm_add(g, x, half));
    sgm_value halved = sgm_multiply(g, up, half);
    sgm_value is_odd = sgm_not_equal(g, halved, sgm_floor(g, halved));
    sgm_value is_between = sgm_equal(g, sgm_subtract(g, up, x), half);
    sgm_value down = sgm_subtract(g, up, sgm_number(g, 1));
    return sgm_select(g, sgm_logical_and(g, is_odd, is_between), down, up);
}

SGM__ONNX_BUILD(round, n, sgm__onnx_round_even(n->graph, n->inputs[0]))

/* Infinite means neither finite nor NaN. With detect_positive or detect_negative off, the sign decides;
 * with both off the result is false everywhere, obtained as is_nan(0), which has the type of a condition. */
sgm_value sgm__onnx_is_inf(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], zero = number(n, 0);
    bool up = sgm__onnx_integer(n, "detect_positive", 1) != 0;
    bool down = sgm__onnx_integer(n, "detect_negative", 1) != 0;
    sgm_value is_number = sgm_logical_or(g, sgm_is_finite(g, x), sgm_is_nan(g, x));
    sgm_value infinite = sgm_logical_not(g, is_number);
    if (up && down)
        return infinite;
    sgm_value side = up ? sgm_greater(g, x, zero) : sgm_less(g, x, zero);
    if (!up && !down)
        side = sgm_is_nan(g, zero);
    return sgm_logical_and(g, infinite, side);
}

/* --- activations --- */

/* scale * x where x > 0, else scale * slope * (exp(x / width) - 1): Elu, Celu (width = slope) and Selu.
 * The exponential is taken of min(x, 0), since select computes both sides and exp of a large x would be
 * infinite. */
static sgm_value exponential_unit(sgm__onnx_node *n, double slope, double width, double scale)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], zero = number(n, 0), low = sgm_minimum(g, x, zero);
    sgm_value bent = width == 1 ? low : sgm_divide(g, low, number(n, width));
    sgm_value below = sgm_multiply(g, sgm_subtract(g, sgm_exp(g, bent), number(n, 1)), number(n, slope));
    sgm_value y = sgm_select(g, sgm_greater(g, x, zero), x, below);
    return scale == 1 ? y : sgm_multiply(g, y, number(n, scale));
}

SGM__ONNX_BUILD(elu, n, exponential_unit(n, sgm__onnx_number(n, "alpha", 1), 1, 1))

sgm_value sgm__onnx_celu(sgm__onnx_node *n)
{
    double alpha = sgm__onnx_number(n, "alpha", 1);
    return exponential_unit(n, alpha, alpha, 1);
}

/* The defaults are ONNX's: the constants of Klambauer et al. (2017), rounded to float. */
sgm_value sgm__onnx_selu(sgm__onnx_node *n)
{
    double alpha = sgm__onnx_number(n, "alpha", 1.67326319217681884765625);
    return exponential_unit(n, alpha, 1, sgm__onnx_number(n, "gamma", 1.05070102214813232421875));
}

/* x where x >= 0, else x * slope; NaN stays NaN. */
static sgm_value leaky(sgm_graph *g, sgm_value x, sgm_value slope)
{
    return sgm_select(g, sgm_less(g, x, sgm_number(g, 0)), sgm_multiply(g, x, slope), x);
}

SGM__ONNX_BUILD(leaky_relu, n, leaky(n->graph, n->inputs[0], number(n, sgm__onnx_number(n, "alpha", 0.01))))

/* Since opset 7 the slope broadcasts from the right. Before, a list is one slope for each channel, which
 * is axis 1: dimensions of 1 are appended for the axes behind it. */
sgm_value sgm__onnx_prelu(sgm__onnx_node *n)
{
    sgm_value slope = n->inputs[1];
    sgm_type x = sgm__onnx_type(n, n->inputs[0]), type = sgm__onnx_type(n, slope);
    if (n->opset < 7 && type.shape.rank == 1) { /* a slope for each channel */
        for (int32_t i = 2; i < x.shape.rank; i++)
            type.shape.dims[type.shape.rank++] = 1;
        slope = sgm_reshape(n->graph, slope, &type.shape);
    }
    return leaky(n->graph, n->inputs[0], slope);
}

/* max(0, min(1, alpha x + beta)) */
sgm_value sgm__onnx_hard_sigmoid(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value steep = sgm_multiply(g, n->inputs[0], number(n, sgm__onnx_number(n, "alpha", 0.2)));
    return sgm_clip(g, sgm_add(g, steep, number(n, sgm__onnx_number(n, "beta", 0.5))), 0, 1);
}

sgm_value sgm__onnx_thresholded_relu(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], is_above = sgm_greater(g, x, number(n, sgm__onnx_number(n, "alpha", 1)));
    return sgm_select(g, is_above, x, number(n, 0));
}

/* x + bias below -lambd, x - bias above lambd, 0 between. */
sgm_value sgm__onnx_shrink(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    double limit = sgm__onnx_number(n, "lambd", 0.5);
    sgm_value x = n->inputs[0], bias = number(n, sgm__onnx_number(n, "bias", 0));
    sgm_value high = sgm_select(g, sgm_greater(g, x, number(n, limit)), sgm_subtract(g, x, bias),
                                sgm_filled_like(g, x, 0));
    return sgm_select(g, sgm_less(g, x, number(n, -limit)), sgm_add(g, x, bias), high);
}

sgm_value sgm__onnx_gelu(sgm__onnx_node *n)
{
    if (sgm__onnx_text_is(n, "approximate", "none", "tanh"))
        return sgm_gelu_tanh(n->graph, n->inputs[0]);
    return sgm_gelu(n->graph, n->inputs[0]);
}

/* x sigmoid(alpha x) */
static sgm_value swish(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    double alpha = sgm__onnx_number(n, "alpha", 1);
    sgm_value x = n->inputs[0], steep = alpha == 1 ? x : sgm_multiply(g, x, number(n, alpha));
    return sgm_multiply(g, x, sgm_sigmoid(g, steep));
}

SGM__ONNX_BUILD(swish, n, swish(n))
SGM__ONNX_BUILD(swish_gate, n, sgm_multiply(n->graph, swish(n), n->inputs[1]))

/* Bounds are attributes up to opset 10, inputs that may be left out since. The maximum goes last: ONNX
 * takes it where the minimum is above the maximum. */
sgm_value sgm__onnx_clip(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value y = n->inputs[0], minimum = sgm__onnx_in(n, 1), maximum = sgm__onnx_in(n, 2);
    if (n->opset < 11) {
        minimum = number(n, sgm__onnx_number(n, "min", -INFINITY));
        maximum = number(n, sgm__onnx_number(n, "max", INFINITY));
    }
    if (sgm_value_exists(minimum))
        y = sgm_maximum(g, y, minimum);
    if (sgm_value_exists(maximum))
        y = sgm_minimum(g, y, maximum);
    return y.index == n->inputs[0].index ? sgm_copy(g, y) : y;
}

/* Models are run for predictions, where Dropout changes nothing; a dropout that acts is refused rather
 * than left out. The ratio is read only if training_mode may be true. The mask, if wanted, is true
 * everywhere. */
sgm_value sgm__onnx_dropout(sgm__onnx_node *n)
{
    bool trains = sgm_value_exists(sgm__onnx_in(n, 2)) && sgm__onnx_known_number(n, 2, 0) != 0;
    if (trains && sgm__onnx_known_number(n, 1, 0.5) != 0)
        return sgm__onnx_unsupported(n, "dropout that acts (training_mode is true) is not supported");
    sgm_type type = sgm__onnx_type(n, n->inputs[0]);
    type.dtype = SGM_BOOL;
    if (n->output_count > 1) {
        sgm_value one =
            sgm__onnx_constant(n->graph, sgm_tensor_create_from(SGM_BOOL, &(sgm_shape){0}, &(bool){true}));
        n->outputs[1] = sgm_broadcast(n->graph, one, &type.shape);
    }
    return sgm_copy(n->graph, n->inputs[0]);
}

/* --- arithmetic that is no float's --- */

static bool is_float(const sgm__onnx_node *n, sgm_value value)
{
    return sgm_dtype_is_float(sgm__onnx_type(n, value).dtype);
}

/* The result has the type of the base, whatever that of the exponent. Integers are raised as int64; to a
 * power that is no integer as float64. */
sgm_value sgm__onnx_power(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], exponent = aligned(n, n->inputs[1]);
    if (is_float(n, x))
        return sgm_power(g, x, sgm__onnx_cast_like(g, exponent, x));
    bool whole = sgm__onnx_type(n, x).dtype == SGM_INT64 && !is_float(n, exponent);
    sgm_dtype dtype = whole ? SGM_INT64 : SGM_FLOAT64;
    const sgm_value operands[] = {sgm_cast(g, x, dtype), sgm_cast(g, exponent, dtype)};
    const sgm_op *op = whole ? &sgm__op_onnx_power : &sgm__op_power;
    return sgm__onnx_cast_like(g, sgm_record(g, op, operands, 2, NULL), x);
}

/* Integers are divided towards 0. */
sgm_value sgm__onnx_divide(sgm__onnx_node *n)
{
    const sgm_value operands[] = {n->inputs[0], aligned(n, n->inputs[1])};
    const sgm_op *op = is_float(n, operands[0]) ? &sgm__op_divide : &sgm__op_onnx_divide;
    return sgm_record(n->graph, op, operands, 2, NULL);
}

/* For conditions, xor is inequality. */
SGM__ONNX_BUILD(xor, n, sgm_not_equal(n->graph, n->inputs[0], aligned(n, n->inputs[1])))

/* --- types --- */

static sgm__onnx_cast_options cast_options(const sgm__onnx_node *n)
{
    sgm__onnx_cast_options how = {.saturates = sgm__onnx_integer(n, "saturate", 1) != 0};
    if (sgm__onnx_text_is(n, "round_mode", "up", "down"))
        how.direction = SGM__ONNX_DOWN;
    else if (sgm__onnx_text_is(n, "round_mode", "up", "nearest"))
        how.direction = SGM__ONNX_NEAREST;
    else if (!sgm__onnx_text_is(n, "round_mode", "up", "up"))
        sgm__onnx_unsupported(n, "'round_mode' is none of up, down and nearest");
    return how;
}

SGM__ONNX_BUILD(cast, n, sgm__onnx_cast_to(n, n->inputs[0], sgm__onnx_integer(n, "to", 0), cast_options(n)))
SGM__ONNX_BUILD(cast_like_other, n,
                sgm__onnx_cast_to(n, n->inputs[0], sgm__onnx_element(n, n->inputs[1]), cast_options(n)))
