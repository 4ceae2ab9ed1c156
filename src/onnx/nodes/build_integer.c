/* Build functions of operators on quantised integers, and of BitShift. Of the types of 8 bits only uint8
 * is supported.
 *
 * A quantised tensor stands for real numbers: value = (x - zero point) * scale, with one scale and zero
 * point for the whole tensor or one for each entry of an axis. Products of such tensors subtract the zero
 * points first and compute in float64. Called by import.c through operators.c. */
#include "onnx/nodes/onnx.h"

/* The type that integer products are computed in. A product of two centred bytes is below 2^16, so sums of
 * up to 2^37 of them are exact in its 53 bits. */
#define EXACT SGM_FLOAT64

/* Shapes a scale or zero point so that it broadcasts against `like`. It may be one number (becomes rank
 * 0), a list with one number for each entry of `axis` (negative: counted from the end), or of as many
 * dimensions as `like`, each 1 or as long as there. */
static sgm_value along(sgm__onnx_node *n, sgm_value numbers, sgm_value like, int64_t axis)
{
    sgm_shape shape = {0}, have = sgm__onnx_type(n, numbers).shape;
    if (have.rank == 0 || sgm_shape_elements(&have) == 1)
        return sgm_reshape(n->graph, numbers, &shape);
    shape.rank = sgm__onnx_type(n, like).shape.rank;
    if (have.rank == shape.rank && have.rank > 1)
        return numbers;
    if (have.rank > 1)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE,
                              "a scale or zero point of %d dimensions does not go with data of %d", have.rank,
                              shape.rank);
    int32_t place = sgm__onnx_axis(n, axis, shape.rank);
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = i == place ? -1 : 1;
    return sgm_reshape(n->graph, numbers, &shape);
}

/* x minus its zero point (no value: 0) as `dtype`. The subtraction is done in that type: in uint8 it would
 * wrap. */
static sgm_value centred(sgm__onnx_node *n, sgm_value x, sgm_value zero, int64_t axis, sgm_dtype dtype)
{
    sgm_value wide = sgm_cast(n->graph, x, dtype);
    if (!sgm_value_exists(zero))
        return wide;
    return sgm_subtract(n->graph, wide, along(n, sgm_cast(n->graph, zero, dtype), x, axis));
}

/* Quantises numbers that are divided by their scale: rounded to even, the zero point added, kept within 0
 * to 255. */
static sgm_value to_bytes(sgm__onnx_node *n, sgm_value x, sgm_value zero, int64_t axis)
{
    sgm_graph *g = n->graph;
    sgm_value y = sgm__onnx_round_even(g, x);
    if (sgm_value_exists(zero)) {
        if (sgm__onnx_type(n, zero).dtype != SGM_UINT8)
            return sgm__onnx_unsupported(n, "only uint8 stands for numbers here");
        y = sgm_add(g, y, along(n, sgm__onnx_cast_like(g, zero, y), x, axis));
    }
    return sgm_cast(g, sgm_clip(g, y, 0, 255), SGM_UINT8);
}

/* The attribute `axis` of QuantizeLinear and DequantizeLinear. Scales for blocks of entries are refused. */
static int64_t read_axis(sgm__onnx_node *n)
{
    if (sgm__onnx_integer(n, "block_size", 0) != 0)
        sgm__onnx_unsupported(n, "scales of blocks (block_size) are not supported");
    return sgm__onnx_integer(n, "axis", 1);
}

/* x / scale, rounded and moved to the zero point, as uint8. */
sgm_value sgm__onnx_quantise(sgm__onnx_node *n)
{
    int64_t axis = read_axis(n), type = sgm__onnx_integer(n, "output_dtype", 0);
    if (type != 0 && type != sgm__onnx_type_number(SGM_UINT8))
        return sgm__onnx_unsupported(n, "only uint8 stands for numbers here (output_dtype)");
    sgm_value scale = along(n, n->inputs[1], n->inputs[0], axis);
    return to_bytes(n, sgm_divide(n->graph, n->inputs[0], scale), sgm__onnx_in(n, 2), axis);
}

/* (x - zero point) * scale, in the type of the scale. */
sgm_value sgm__onnx_dequantise(sgm__onnx_node *n)
{
    sgm_dtype dtype = sgm__onnx_type(n, n->inputs[1]).dtype;
    int64_t axis = read_axis(n), type = sgm__onnx_integer(n, "output_dtype", 0);
    if (type != 0 && type != sgm__onnx_type_number(dtype))
        return sgm__onnx_unsupported(n, "a result of another type than the scale's (output_dtype)");
    sgm_value x = centred(n, n->inputs[0], sgm__onnx_in(n, 2), axis, dtype);
    return sgm_multiply(n->graph, x, along(n, n->inputs[1], n->inputs[0], axis));
}

/* Finds the scale and zero point from the data: the range is widened to contain 0, so that 0 has an exact
 * code, and divided into 255 parts. Data of zeros alone has the scale 1, as in ONNX Runtime. Outputs:
 * codes, scale, zero point. */
sgm_value sgm__onnx_dynamic_quantise(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value x = n->inputs[0], zero = sgm_number(g, 0);
    sgm_value maximum = sgm_maximum(g, sgm_reduce_max(g, x, NULL, 0, false), zero);
    sgm_value minimum = sgm_minimum(g, sgm_reduce_min(g, x, NULL, 0, false), zero);
    sgm_value range = sgm_subtract(g, maximum, minimum);
    sgm_value scale = sgm_divide(g, range, sgm_number(g, 255));
    scale = sgm_select(g, sgm_equal(g, range, zero), sgm_filled_like(g, scale, 1), scale);
    sgm_value point =
        sgm_clip(g, sgm__onnx_round_even(g, sgm_negate(g, sgm_divide(g, minimum, scale))), 0, 255);
    n->outputs[1] = scale;
    n->outputs[2] = sgm_cast(g, point, SGM_UINT8);
    sgm_value y = sgm_add(g, sgm__onnx_round_even(g, sgm_divide(g, x, scale)), point);
    return sgm_cast(g, sgm_clip(g, y, 0, 255), SGM_UINT8);
}

/* Axes of a matrix product: one scale for each row of `a` and of the result, for each column of `b`. */
#define ROW (-2)
#define COLUMN (-1)
/* Axes of a convolution: one scale for each filter, which is an entry of the weights' first axis and of
 * the result's second. */
#define FILTER 0
#define CHANNEL 1

/* Zero points alone, no scales: the result is the exact int32 product. */
sgm_value sgm__onnx_matmul_integer(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    sgm_value a = centred(n, n->inputs[0], sgm__onnx_in(n, 2), ROW, EXACT);
    sgm_value b = centred(n, n->inputs[1], sgm__onnx_in(n, 3), COLUMN, EXACT);
    return sgm_cast(g, sgm_matmul(g, a, b), SGM_INT32);
}

sgm_value sgm__onnx_conv_integer(sgm__onnx_node *n)
{
    sgm_value x = centred(n, n->inputs[0], sgm__onnx_in(n, 2), CHANNEL, EXACT);
    sgm_value weights = centred(n, n->inputs[1], sgm__onnx_in(n, 3), FILTER, EXACT);
    return sgm_cast(n->graph, sgm__onnx_convolve(n, x, weights, (sgm_value){-1}), SGM_INT32);
}

/* Brings a product of centred integers y to the codes of the result: y * scale_a * scale_b / scale_y, then
 * to_bytes. `scales` has the scales in that order; one that is a list lies along the axis of the result in
 * `axes`. */
static sgm_value rescaled(sgm__onnx_node *n, sgm_value y, const sgm_value scales[3], const int64_t axes[3],
                          sgm_value zero)
{
    sgm_graph *g = n->graph;
    sgm_value wide[3];
    for (int i = 0; i < 3; i++)
        wide[i] = along(n, sgm_cast(g, scales[i], EXACT), y, axes[i]);
    sgm_value scale = sgm_divide(g, sgm_multiply(g, wide[0], wide[1]), wide[2]);
    return to_bytes(n, sgm_multiply(g, y, scale), zero, axes[2]);
}

/* Inputs: a, its scale and zero point, b, its scale and zero point, then the scale and zero point of the
 * result. */
sgm_value sgm__onnx_qlinear_matmul(sgm__onnx_node *n)
{
    sgm_value *in = n->inputs;
    sgm_value a = centred(n, in[0], in[2], ROW, EXACT), b = centred(n, in[3], in[5], COLUMN, EXACT);
    return rescaled(n, sgm_matmul(n->graph, a, b), (const sgm_value[]){in[1], in[4], in[6]},
                    (const int64_t[]){ROW, COLUMN, ROW}, in[7]);
}

/* Inputs as above, then biases, which are int32 in units of scale_x * scale_w and so can be added before
 * rescaling. One scale for each filter lies along the result's channels. */
sgm_value sgm__onnx_qlinear_conv(sgm__onnx_node *n)
{
    sgm_value *in = n->inputs, biases = sgm__onnx_in(n, 8);
    sgm_value x = centred(n, in[0], in[2], CHANNEL, EXACT), weights = centred(n, in[3], in[5], FILTER, EXACT);
    if (sgm_value_exists(biases))
        biases = sgm_cast(n->graph, biases, EXACT);
    return rescaled(n, sgm__onnx_convolve(n, x, weights, biases), (const sgm_value[]){in[1], in[4], in[6]},
                    (const int64_t[]){CHANNEL, CHANNEL, CHANNEL}, in[7]);
}

/* x * 2^count modulo 256 to the left, floor(x / 2^count) to the right. In float64 multiplication by a
 * power of 2 is exact, so the modulo is too. */
sgm_value sgm__onnx_bit_shift(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    if (sgm__onnx_type(n, n->inputs[0]).dtype != SGM_UINT8)
        return sgm__onnx_unsupported(n, "only uint8 is shifted here");
    sgm_value x = sgm_cast(g, n->inputs[0], EXACT), count = sgm_cast(g, n->inputs[1], EXACT);
    sgm_value factor = sgm_power(g, sgm_filled_like(g, count, 2), count), byte = sgm_number(g, 256);
    if (sgm__onnx_text_is(n, "direction", "LEFT", "RIGHT"))
        return sgm_cast(g, sgm_floor(g, sgm_divide(g, x, factor)), SGM_UINT8);
    sgm_value y = sgm_multiply(g, x, factor), whole = sgm_floor(g, sgm_divide(g, y, byte));
    return sgm_cast(g, sgm_subtract(g, y, sgm_multiply(g, whole, byte)), SGM_UINT8);
}
