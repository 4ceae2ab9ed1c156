/* code_matmul: a product with codes of 8 bits, whose other operand and result keep all their digits.
 *
 * (m, k) x (k, n) gives (m, n): y[i, j] = sum over l of x[i, l] (codes[l, j] - 128). Codes are those of
 * sgm_quantize, as uint8. Scales of the columns are factors of the result, so they are a product of their own
 * (sgm_dequantized_matmul), and the gradient by x is the same operation with transposed codes: the float
 * matrix that codes stand for is made in neither direction, but for the part that a handler is at. Handlers
 * without a kernel compose it of a cast and a product. */
#include "ops/quantized.h"
#include "ops/rules.h"

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char text[2][SGM__TYPE_TEXT];
    const sgm_type *x = &inputs[0], *codes = &inputs[1];
    if (!sgm_dtype_is_float(x->dtype) || codes->dtype != SGM_UINT8)
        return sgm_fail(SGM_ERROR_TYPE, "wants floats and codes of uint8, got %s and %s",
                        sgm__type_text(x, text[0]), sgm__type_text(codes, text[1]));
    if (x->shape.rank != 2 || codes->shape.rank != 2 || x->shape.dims[1] != codes->shape.dims[0])
        return sgm_fail(SGM_ERROR_SHAPE, "wants (m, k) x (k, n), got %s x %s", sgm__type_text(x, text[0]),
                        sgm__type_text(codes, text[1]));
    *result = *x;
    result->shape.dims[1] = codes->shape.dims[1];
    return SGM_OK;
}

static sgm_value compose(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                         const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_value codes = sgm_cast(graph, inputs[1], sgm_value_type(graph, inputs[0]).dtype);
    return sgm_matmul(graph, inputs[0], sgm_subtract(graph, codes, sgm_number(graph, SGM__QUANTIZED_ZERO)));
}

static sgm_value record(sgm_graph *graph, sgm_value x, sgm_value codes)
{
    return sgm_record(graph, &sgm__op_code_matmul, (sgm_value[]){x, codes}, 2, NULL);
}

/* dx = G (codes - 128)^T. Codes are whole numbers, and have no gradient. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (call->wanted[0])
        gradients[0] = record(graph, call->gradient, sgm_transpose(graph, call->inputs[1]));
}

const sgm_op sgm__op_code_matmul = {SGM__OP("code_matmul", 2, "matrix product with codes of 8 bits"),
                                    .flags = SGM_OP_STRIDED, .compose = compose, .infer = infer,
                                    .gradient = gradient};

sgm_value sgm_dequantized_matmul(sgm_graph *graph, sgm_value x, sgm_value weights, sgm_value scales)
{
    if (!sgm__can_record(graph, "dequantized_matmul", x) ||
        !sgm__can_record(graph, "dequantized_matmul", weights))
        return (sgm_value){-1};
    sgm_shape shape = sgm_value_type(graph, x).shape, codes = sgm_value_type(graph, weights).shape;
    if (shape.rank > 2)
        x = sgm_flatten(graph, x, shape.rank - 2);
    sgm_value y = sgm_multiply(graph, record(graph, x, weights), scales);
    if (shape.rank <= 2 || codes.rank != 2)
        return y;
    shape.dims[shape.rank - 1] = codes.dims[1];
    return sgm_reshape(graph, y, &shape);
}
