/* quantized_matmul: a product with weights of 8 bits, which rounds its other operand to 8 bits itself.
 *
 * (..., k) x (k, n) gives (..., n). Weights are codes: 128 stands for 0, 1 to 255 for -127 to 127, times one
 * scale for each column (Jacob et al., 2018, without zero points). Each row of x is rounded by itself, to
 * codes of its own scale m / 127, where m is its largest magnitude:
 *
 *     q[i] = floor(x[i] * (127 / m) + 1 / 2),   y[j] = (sum of q[i] * (weights[i, j] - 128)) * (m / 127 *
 * scales[j])
 *
 * So a result depends on no other row. m counts as at least SGM__QUANTIZED_TINY: a row of zeros gives zeros.
 * A row with NaN or infinity gives NaN. Handlers with a kernel of their own sum integers, exactly; here the
 * same is composed of products of floats, which hold sums of up to 2^24 exactly. Weights are constants, so
 * they have no gradient, and neither has rounding. */
#include "ops/quantized.h"
#include "ops/rules.h"

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char text[3][SGM__TYPE_TEXT];
    const sgm_type *x = &inputs[0], *weights = &inputs[1], *scales = &inputs[2];
    if ((x->dtype != SGM_FLOAT32 && x->dtype != SGM_FLOAT64) || weights->dtype != SGM_UINT8 ||
        scales->dtype != x->dtype)
        return sgm_fail(SGM_ERROR_TYPE,
                        "wants float32 or float64, weights of uint8 and scales of the first type, got %s, %s "
                        "and %s",
                        sgm__type_text(x, text[0]), sgm__type_text(weights, text[1]),
                        sgm__type_text(scales, text[2]));
    int32_t rank = x->shape.rank;
    bool fits = rank >= 2 && weights->shape.rank == 2 && scales->shape.rank == 1 &&
                x->shape.dims[rank - 1] == weights->shape.dims[0] && weights->shape.dims[0] > 0 &&
                weights->shape.dims[1] == scales->shape.dims[0];
    if (!fits)
        return sgm_fail(
            SGM_ERROR_SHAPE, "wants (..., k) x (k, n) with k above 0 and (n,) scales, got %s, %s and %s",
            sgm__type_text(x, text[0]), sgm__type_text(weights, text[1]), sgm__type_text(scales, text[2]));
    if (weights->shape.dims[0] > SGM__QUANTIZED_MAXIMUM_DEPTH)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "sums at most %lld products, got %s x %s",
                        (long long)SGM__QUANTIZED_MAXIMUM_DEPTH, sgm__type_text(x, text[0]),
                        sgm__type_text(weights, text[1]));
    *result = *x;
    result->shape.dims[rank - 1] = weights->shape.dims[1];
    return SGM_OK;
}

/* The largest magnitude along an axis, at least SGM__QUANTIZED_TINY, so that it broadcasts against x. */
static sgm_value largest_of(sgm_graph *graph, sgm_value x, int32_t axis)
{
    sgm_value largest = sgm_reduce_max(graph, sgm_absolute(graph, x), &axis, 1, axis != 0);
    return sgm_maximum(graph, largest, sgm_number(graph, SGM__QUANTIZED_TINY));
}

/* x in units of largest / 127, rounded to whole numbers. */
static sgm_value round_to(sgm_graph *graph, sgm_value x, sgm_value largest)
{
    sgm_value factor = sgm_divide(graph, sgm_number(graph, SGM__QUANTIZED_LARGEST), largest);
    return sgm_floor(graph, sgm_add(graph, sgm_multiply(graph, x, factor), sgm_number(graph, 0.5)));
}

static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_dtype dtype = sgm_value_type(graph, inputs[0]).dtype;
    sgm_value largest = largest_of(graph, inputs[0], -1);
    sgm_value weights =
        sgm_subtract(graph, sgm_cast(graph, inputs[1], dtype), sgm_number(graph, SGM__QUANTIZED_ZERO));
    sgm_value sums = sgm_matmul(graph, round_to(graph, inputs[0], largest), weights);
    sgm_value scale = sgm_divide(graph, largest, sgm_number(graph, SGM__QUANTIZED_LARGEST));
    return sgm_multiply(graph, sums, sgm_multiply(graph, scale, inputs[2]));
}

const sgm_op sgm__op_quantized_matmul = {
    SGM__OP("quantized_matmul", 3,
            "matrix product with weights of 8 bits, rounding the other side to 8 bits"),
    .compose = compose, .infer = infer};

sgm_value sgm_quantized_matmul(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value scales)
{
    return sgm_record(graph, &sgm__op_quantized_matmul, (sgm_value[]){x, weights, scales}, 3, NULL);
}

void sgm_quantize(sgm_graph *graph, sgm_value weights, sgm_value *codes, sgm_value *scales)
{
    sgm_value largest = largest_of(graph, weights, 0);
    sgm_value rounded = round_to(graph, weights, largest);
    *codes = sgm_cast(graph, sgm_add(graph, rounded, sgm_number(graph, SGM__QUANTIZED_ZERO)), SGM_UINT8);
    *scales = sgm_divide(graph, largest, sgm_number(graph, SGM__QUANTIZED_LARGEST));
}
