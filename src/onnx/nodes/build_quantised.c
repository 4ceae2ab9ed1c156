/* Build functions of operators on quantised numbers.
 *
 * A quantised tensor stands for real numbers: value = (x - zero point) * scale, with one scale and zero
 * point for the whole tensor, one for each entry of an axis, or one for each block of entries of an axis. Its
 * codes are integers or small floats (wire/element.c). Products of such tensors subtract the zero
 * points first and compute in float64. Called by import.c through operators.c. */
#include "onnx/nodes/onnx.h"

/* The type that integer products are computed in. A product of two centred bytes is below 2^16, so sums of
 * up to 2^37 of them are exact in its 53 bits. */
#define EXACT SGM_FLOAT64

/* Where scales and zero points lie: along an axis, one for each entry (block 0) or for each `block` entries.
 */
typedef struct place {
    int64_t axis, block;
} place;
#define AXIS(number) ((place){(number), 0})

/* Scales of blocks repeated for each entry of their block: the last block may be cut off. */
static sgm_value spread(sgm__onnx_node *n, sgm_value numbers, sgm_value like, place at)
{
    sgm_shape have = sgm__onnx_type(n, numbers).shape, want = sgm__onnx_type(n, like).shape;
    int32_t axis = sgm__onnx_axis(n, at.axis, want.rank);
    if (axis < 0 || at.block < 1 || have.rank != want.rank ||
        have.dims[axis] != (want.dims[axis] + at.block - 1) / at.block)
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "scales of blocks of %lld do not go with the data",
                              (long long)at.block);
    sgm_value entry = sgm_iota(n->graph, SGM_INT64, SGM__ONNX_SHAPE(want.dims[axis]), 0);
    sgm_value block = sgm__onnx_constant_integers(n->graph, &at.block, 1);
    const sgm_value operands[] = {entry, block};
    return sgm_gather(n->graph, numbers, sgm_record(n->graph, &sgm__op_onnx_divide, operands, 2, NULL), axis);
}

/* Shapes a scale or zero point so that it broadcasts against `like`. It may be one number (becomes rank
 * 0), a list with one number for each entry of the axis (negative: counted from the end), or of as many
 * dimensions as `like`, each 1 or as long as there, or a number of blocks. */
static sgm_value along(sgm__onnx_node *n, sgm_value numbers, sgm_value like, place at)
{
    if (at.block != 0)
        return spread(n, numbers, like, at);
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
    int32_t axis = sgm__onnx_axis(n, at.axis, shape.rank);
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = i == axis ? -1 : 1;
    return sgm_reshape(n->graph, numbers, &shape);
}

/* x minus its zero point (no value: 0) as `dtype`. The subtraction is done in that type: in uint8 it would
 * wrap. */
static sgm_value centred(sgm__onnx_node *n, sgm_value x, sgm_value zero, place at, sgm_dtype dtype)
{
    sgm_value wide = sgm_cast(n->graph, x, dtype);
    if (!sgm_value_exists(zero))
        return wide;
    return sgm_subtract(n->graph, wide, along(n, sgm_cast(n->graph, zero, dtype), x, at));
}

/* Quantises numbers that are divided by their scale, to codes of a type: of integers rounded to even, the
 * zero point added, kept within the type's limits; floats are cast. */
static sgm_value to_codes(sgm__onnx_node *n, sgm_value x, sgm_value zero, place at, int32_t element)
{
    sgm_graph *g = n->graph;
    double minimum, maximum;
    bool whole = sgm__onnx_is_integer(element), saturates = sgm__onnx_integer(n, "saturate", 1) != 0;
    sgm_value y = whole ? sgm__onnx_round_even(g, x) : x;
    if (sgm_value_exists(zero))
        y = sgm_add(g, y, along(n, sgm__onnx_cast_like(g, zero, y), x, at));
    sgm__onnx_limits(element, &minimum, &maximum);
    return sgm__onnx_cast_to(n, whole ? sgm_clip(g, y, minimum, maximum) : y, element,
                             (sgm__onnx_cast_options){.saturates = saturates});
}

/* The type of codes: that of the zero point; uint8 without one. */
static int32_t code_type(const sgm__onnx_node *n, sgm_value zero)
{
    return sgm_value_exists(zero) ? sgm__onnx_element(n, zero) : sgm__onnx_type_number(SGM_UINT8);
}

/* Of QuantizeLinear and DequantizeLinear. */
static place read_place(const sgm__onnx_node *n)
{
    return (place){sgm__onnx_integer(n, "axis", 1), sgm__onnx_integer(n, "block_size", 0)};
}

/* x / scale, rounded and moved to the zero point. */
sgm_value sgm__onnx_quantise(sgm__onnx_node *n)
{
    place at = read_place(n);
    sgm_value zero = sgm__onnx_in(n, 2), scale = sgm__onnx_cast_like(n->graph, n->inputs[1], n->inputs[0]);
    int64_t type = sgm__onnx_integer(n, "output_dtype", 0);
    sgm_dtype dtype;
    type = type != 0 && !sgm_value_exists(zero) ? type : code_type(n, zero);
    if (sgm__onnx_dtype(type, &dtype) != SGM_OK)
        return sgm__onnx_fail(n->graph);
    sgm_value x = sgm_divide(n->graph, n->inputs[0], along(n, scale, n->inputs[0], at));
    return to_codes(n, x, zero, at, (int32_t)type);
}

/* (x - zero point) * scale, in the type of the scale if no other is given. */
sgm_value sgm__onnx_dequantise(sgm__onnx_node *n)
{
    sgm_dtype dtype = sgm__onnx_type(n, n->inputs[1]).dtype;
    place at = read_place(n);
    int64_t type = sgm__onnx_integer(n, "output_dtype", 0);
    sgm_value x = centred(n, n->inputs[0], sgm__onnx_in(n, 2), at, dtype);
    sgm_value y = sgm_multiply(n->graph, x, along(n, n->inputs[1], n->inputs[0], at));
    int64_t own = sgm__onnx_element(n, n->inputs[1]);
    return type != 0 && type != own ? sgm__onnx_cast_to(n, y, type, (sgm__onnx_cast_options){0})
                                    : sgm__onnx_mark(n->import, y, own);
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
#define ROW AXIS(-2)
#define COLUMN AXIS(-1)
/* Axes of a convolution: one scale for each filter, which is an entry of the weights' first axis and of
 * the result's second. */
#define FILTER AXIS(0)
#define CHANNEL AXIS(1)

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
 * to_codes. `scales` has the scales in that order; one that is a list lies along the axis of the result in
 * `places`. */
static sgm_value rescaled(sgm__onnx_node *n, sgm_value y, const sgm_value scales[3], const place places[3],
                          sgm_value zero)
{
    sgm_graph *g = n->graph;
    sgm_value wide[3];
    for (int i = 0; i < 3; i++)
        wide[i] = along(n, sgm_cast(g, scales[i], EXACT), y, places[i]);
    sgm_value scale = sgm_divide(g, sgm_multiply(g, wide[0], wide[1]), wide[2]);
    return to_codes(n, sgm_multiply(g, y, scale), zero, places[2], code_type(n, zero));
}

/* Inputs: a, its scale and zero point, b, its scale and zero point, then the scale and zero point of the
 * result. */
sgm_value sgm__onnx_qlinear_matmul(sgm__onnx_node *n)
{
    sgm_value *in = n->inputs;
    sgm_value a = centred(n, in[0], in[2], ROW, EXACT), b = centred(n, in[3], in[5], COLUMN, EXACT);
    return rescaled(n, sgm_matmul(n->graph, a, b), (const sgm_value[]){in[1], in[4], in[6]},
                    (const place[]){ROW, COLUMN, ROW}, in[7]);
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
                    (const place[]){CHANNEL, CHANNEL, CHANNEL}, in[7]);
}
