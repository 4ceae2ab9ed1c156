/* Operators that go element by element. */
#include "onnx/onnx.h"

#include <math.h>

static sgm_value number(const sgm__onnx_node *n, double value)
{
    return sgm_number(n->graph, value);
}

/* --- as they are --- */

/* Up to opset 6 the second operand is broadcast only if it says so, from an axis on. */
static sgm_value aligned(sgm__onnx_node *n, sgm_value b)
{
    int64_t axis = sgm__onnx_integer(n, "axis", -1);
    sgm_type type = sgm__onnx_type(n, b);
    int32_t rank = sgm__onnx_type(n, n->inputs[0]).shape.rank;
    if (n->opset >= 7 || sgm__onnx_integer(n, "broadcast", 0) == 0 || axis < 0 ||
        axis + type.shape.rank >= rank)
        return b;
    for (int32_t i = (int32_t)axis + type.shape.rank; i < rank; i++)
        type.shape.dims[type.shape.rank++] = 1;
    return sgm_reshape(n->graph, b, &type.shape);
}

sgm_value sgm__onnx_same(sgm__onnx_node *n)
{
    sgm_value inputs[3] = {n->inputs[0], sgm__onnx_in(n, 1), sgm__onnx_in(n, 2)};
    if (n->row->needed == 2)
        inputs[1] = aligned(n, inputs[1]);
    return sgm_record(n->graph, n->row->op, inputs, n->row->needed, &(sgm_attributes){0});
}

static sgm_value join(sgm__onnx_node *n, sgm_value (*function)(sgm_graph *, sgm_value, sgm_value))
{
    sgm_value all = n->inputs[0];
    for (int32_t i = 1; i < n->input_count; i++)
        all = function(n->graph, all, n->inputs[i]);
    return n->input_count == 1 ? sgm_copy(n->graph, all) : all;
}

sgm_value sgm__onnx_variadic_max(sgm__onnx_node *n)
{
    return join(n, sgm_maximum);
}

sgm_value sgm__onnx_variadic_min(sgm__onnx_node *n)
{
    return join(n, sgm_minimum);
}

sgm_value sgm__onnx_variadic_sum(sgm__onnx_node *n)
{
    return join(n, sgm_add);
}

sgm_value sgm__onnx_variadic_mean(sgm__onnx_node *n)
{
    return sgm_multiply(n->graph, join(n, sgm_add), number(n, 1.0 / n->input_count));
}

/* --- functions of one number --- */

sgm_value sgm__onnx_acosh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], root = sgm_square_root(g, sgm_subtract(g, sgm_square(g, x), number(n, 1)));
    return sgm_log(g, sgm_add(g, x, root));
}

/* sign(x) log1p(a + a^2 / (1 + sqrt(1 + a^2))) of a = |x|, exact near 0. */
sgm_value sgm__onnx_asinh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value a = sgm_absolute(g, n->inputs[0]), square = sgm_square(g, a);
    sgm_value root = sgm_square_root(g, sgm_add(g, square, number(n, 1)));
    sgm_value small = sgm_divide(g, square, sgm_add(g, root, number(n, 1)));
    return sgm_multiply(g, sgm_sign(g, n->inputs[0]), sgm_log1p(g, sgm_add(g, a, small)));
}

sgm_value sgm__onnx_atanh(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0];
    sgm_value difference = sgm_subtract(g, sgm_log1p(g, x), sgm_log1p(g, sgm_negate(g, x)));
    return sgm_multiply(g, difference, number(n, 0.5));
}

static sgm_value exponentials(sgm__onnx_node *n, sgm_value (*function)(sgm_graph *, sgm_value, sgm_value))
{
    sgm_graph *g = n->graph;
    sgm_value up = sgm_exp(g, n->inputs[0]), down = sgm_exp(g, sgm_negate(g, n->inputs[0]));
    return sgm_multiply(g, function(g, up, down), number(n, 0.5));
}

sgm_value sgm__onnx_cosh(sgm__onnx_node *n)
{
    return exponentials(n, sgm_add);
}

sgm_value sgm__onnx_sinh(sgm__onnx_node *n)
{
    return exponentials(n, sgm_subtract);
}

sgm_value sgm__onnx_ceil(sgm__onnx_node *n)
{
    return sgm_negate(n->graph, sgm_floor(n->graph, sgm_negate(n->graph, n->inputs[0])));
}

sgm_value sgm__onnx_round_even(sgm_graph *g, sgm_value x)
{
    sgm_value half = sgm_number(g, 0.5), up = sgm_floor(g, sgm_add(g, x, half));
    sgm_value halved = sgm_multiply(g, up, half);
    sgm_value is_odd = sgm_not_equal(g, halved, sgm_floor(g, halved));
    sgm_value is_between = sgm_equal(g, sgm_subtract(g, up, x), half);
    sgm_value down = sgm_subtract(g, up, sgm_number(g, 1));
    return sgm_select(g, sgm_logical_and(g, is_odd, is_between), down, up);
}

sgm_value sgm__onnx_round(sgm__onnx_node *n)
{
    return sgm__onnx_round_even(n->graph, n->inputs[0]);
}

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

/* scale * (x where it is above 0, else slope (exp(x / width) - 1)) */
static sgm_value exponential_unit(sgm__onnx_node *n, double slope, double width, double scale)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], zero = number(n, 0), low = sgm_minimum(g, x, zero);
    sgm_value bent = width == 1 ? low : sgm_divide(g, low, number(n, width));
    sgm_value below = sgm_multiply(g, sgm_subtract(g, sgm_exp(g, bent), number(n, 1)), number(n, slope));
    sgm_value y = sgm_select(g, sgm_greater(g, x, zero), x, below);
    return scale == 1 ? y : sgm_multiply(g, y, number(n, scale));
}

sgm_value sgm__onnx_elu(sgm__onnx_node *n)
{
    return exponential_unit(n, sgm__onnx_number(n, "alpha", 1), 1, 1);
}

sgm_value sgm__onnx_celu(sgm__onnx_node *n)
{
    double alpha = sgm__onnx_number(n, "alpha", 1);
    return exponential_unit(n, alpha, alpha, 1);
}

sgm_value sgm__onnx_selu(sgm__onnx_node *n)
{
    double alpha = sgm__onnx_number(n, "alpha", 1.67326319217681884765625);
    return exponential_unit(n, alpha, 1, sgm__onnx_number(n, "gamma", 1.05070102214813232421875));
}

/* x where it is above 0, else x * slope */
static sgm_value leaky(sgm_graph *g, sgm_value x, sgm_value slope)
{
    return sgm_select(g, sgm_less(g, x, sgm_number(g, 0)), sgm_multiply(g, x, slope), x);
}

sgm_value sgm__onnx_leaky_relu(sgm__onnx_node *n)
{
    return leaky(n->graph, n->inputs[0], number(n, sgm__onnx_number(n, "alpha", 0.01)));
}

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

sgm_value sgm__onnx_clip(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value y = n->inputs[0], minimum = sgm__onnx_in(n, 1), maximum = sgm__onnx_in(n, 2);
    if (n->opset < 11) {
        minimum = number(n, sgm__onnx_number(n, "min", -INFINITY));
        maximum = number(n, sgm__onnx_number(n, "max", INFINITY));
    }
    if (sgm_value_is(minimum))
        y = sgm_maximum(g, y, minimum);
    if (sgm_value_is(maximum))
        y = sgm_minimum(g, y, maximum);
    return y.index == n->inputs[0].index ? sgm_copy(g, y) : y;
}

sgm_value sgm__onnx_dropout(sgm__onnx_node *n)
{
    bool trains = sgm_value_is(sgm__onnx_in(n, 2)) && sgm__onnx_known_number(n, 2, 0) != 0;
    if (trains && sgm__onnx_known_number(n, 1, 0.5) != 0)
        return sgm__onnx_unsupported(n, "dropout that acts (training_mode is true) is not supported");
    sgm_type type = sgm__onnx_type(n, n->inputs[0]);
    type.dtype = SGM_BOOL;
    if (n->output_count > 1) {
        sgm_value one =
            sgm__onnx_constant(n->graph, sgm_tensor_from(SGM_BOOL, &(sgm_shape){0}, &(bool){true}));
        n->outputs[1] = sgm_broadcast(n->graph, one, &type.shape);
    }
    return sgm_copy(n->graph, n->inputs[0]);
}

/* --- arithmetic that is no float's --- */

static bool is_float(const sgm__onnx_node *n, sgm_value value)
{
    return sgm_dtype_is_float(sgm__onnx_type(n, value).dtype);
}

static sgm_value wide(sgm__onnx_node *n, sgm_value value)
{
    return sgm_cast(n->graph, value, SGM_FLOAT64);
}

sgm_value sgm__onnx_power(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0], exponent = aligned(n, n->inputs[1]);
    if (is_float(n, x))
        return sgm_power(n->graph, x, sgm__onnx_cast_like(n->graph, exponent, x));
    return sgm__onnx_cast_like(n->graph, sgm_power(n->graph, wide(n, x), wide(n, exponent)), x);
}

/* Integers are divided towards 0, as a cast truncates. */
sgm_value sgm__onnx_divide(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0], by = aligned(n, n->inputs[1]);
    if (is_float(n, x))
        return sgm_divide(n->graph, x, by);
    return sgm__onnx_cast_like(n->graph, sgm_divide(n->graph, wide(n, x), wide(n, by)), x);
}

sgm_value sgm__onnx_xor(sgm__onnx_node *n)
{
    return sgm_not_equal(n->graph, n->inputs[0], aligned(n, n->inputs[1]));
}

/* --- types --- */

sgm_value sgm__onnx_cast(sgm__onnx_node *n)
{
    sgm_dtype dtype;
    if (sgm__onnx_dtype(sgm__onnx_integer(n, "to", 0), &dtype) != SGM_OK)
        return sgm__onnx_unsupported(n, "%s", sgm_last_error());
    if (dtype == SGM_BOOL)
        return sgm_not_equal(n->graph, n->inputs[0], number(n, 0));
    return sgm_cast(n->graph, n->inputs[0], dtype);
}

sgm_value sgm__onnx_cast_like_other(sgm__onnx_node *n)
{
    return sgm_cast(n->graph, n->inputs[0], sgm__onnx_type(n, n->inputs[1]).dtype);
}
