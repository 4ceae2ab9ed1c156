/* Build functions of operators on the bits of integers, which only ONNX has: BitShift, BitwiseAnd and its
 * like, BitCast.
 *
 * They are operations of their own, known here only; handlers run them by their `scalar` and `whole`
 * functions. An integer that a wider type holds (narrow.c) has its sign in all bits above its own, so that
 * the bits may be combined in the wider type. */
#include "onnx/nodes/onnx.h"

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

static int64_t whole_and(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] & inputs[1];
}

static int64_t whole_or(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] | inputs[1];
}

static int64_t whole_xor(const int64_t *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return inputs[0] ^ inputs[1];
}

/* Integers: 1: to the left, else to the right; ONNX's number of the type. What is moved beyond an end is
 * lost; a sign fills the places to the right. A negative count moves by all bits, as NumPy does. */
static int64_t whole_shift(const int64_t *inputs, const sgm_attributes *attributes)
{
    int32_t element = (int32_t)attributes->integers[1], bits = sgm__onnx_bits(element);
    int64_t x = inputs[0], count = inputs[1];
    bool beyond = count < 0 || count >= bits;
    if (attributes->integers[0] != 0)
        return beyond ? 0 : sgm__onnx_wrap(element, (int64_t)((uint64_t)x << count));
    if (sgm__onnx_is_unsigned(element))
        return beyond ? 0 : (int64_t)((uint64_t)x >> count);
    return x >> (beyond ? bits - 1 : count);
}

/* Numbers of the smaller types are exact as double. */
#define OPERATION(what, text)                                                                                \
    static double scalar_##what(const double *inputs, const sgm_attributes *attributes)                      \
    {                                                                                                        \
        return (double)whole_##what((const int64_t[]){(int64_t)inputs[0], (int64_t)inputs[1]}, attributes);  \
    }                                                                                                        \
    static const sgm_op op_##what = {.api = SGM_OP_API,                                                      \
                                     .flags = SGM_OP_ELEMENTWISE,                                            \
                                     .name = "onnx_bit_" #what,                                              \
                                     .doc = text,                                                            \
                                     .min_inputs = 2,                                                        \
                                     .max_inputs = 2,                                                        \
                                     .infer = infer,                                                         \
                                     .scalar = scalar_##what,                                                \
                                     .whole = whole_##what};
OPERATION(and, "bits that both integers have")
OPERATION(or, "bits that one of the integers has")
OPERATION(xor, "bits in which integers differ")
OPERATION(shift, "bits moved to higher or lower places")

SGM__ONNX_BUILD(bitwise_and, n, sgm_record(n->graph, &op_and, n->inputs, 2, NULL))
SGM__ONNX_BUILD(bitwise_or, n, sgm_record(n->graph, &op_or, n->inputs, 2, NULL))
SGM__ONNX_BUILD(bitwise_xor, n, sgm_record(n->graph, &op_xor, n->inputs, 2, NULL))

/* Bits that differ from those of -1, which are all set. */
sgm_value sgm__onnx_bitwise_not(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0];
    bool is_byte = sgm__onnx_type(n, x).dtype == SGM_UINT8;
    return sgm_record(n->graph, &op_xor,
                      (const sgm_value[]){x, sgm_filled_like(n->graph, x, is_byte ? UINT8_MAX : -1)}, 2,
                      NULL);
}

sgm_value sgm__onnx_bit_shift(sgm__onnx_node *n)
{
    bool left = sgm__onnx_text_is(n, "direction", "", "LEFT");
    if (!left && !sgm__onnx_text_is(n, "direction", "", "RIGHT"))
        return sgm__onnx_unsupported(n, "'direction' is neither LEFT nor RIGHT");
    const sgm_attributes attributes = {.integer_count = 2,
                                       .integers = {left, sgm__onnx_element(n, n->inputs[0])}};
    return sgm_record(n->graph, &op_shift, n->inputs, 2, &attributes);
}

/* --- the same bits in another type --- */

static sgm_status infer_cast(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                             sgm_type *result)
{
    (void)count;
    *result = (sgm_type){(sgm_dtype)attributes->integers[0], inputs[0].shape};
    return SGM_OK;
}

static sgm_status forward_cast(const sgm_kernel_call *call)
{
    const sgm_array *output = &call->output;
    size_t count = (size_t)sgm_shape_elements(&output->shape);
    if (count > 0)
        memcpy(output->data, call->inputs[0].data, count * sgm_dtype_size(output->dtype));
    return SGM_OK;
}

/* Integer: the type of the result, of as many bytes. */
static const sgm_op op_cast = {.api = SGM_OP_API,
                               .name = "onnx_bit_cast",
                               .doc = "the same bits in another type",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .infer = infer_cast,
                               .forward = forward_cast};

/* Between types of equally many bits. Integers of them differ in what the highest bit counts for: a cast. */
sgm_value sgm__onnx_bit_cast(sgm__onnx_node *n)
{
    sgm_value x = n->inputs[0];
    int32_t from = sgm__onnx_element(n, x);
    int64_t to = sgm__onnx_integer(n, "to", 0);
    sgm_dtype dtype;
    if (sgm__onnx_dtype(to, &dtype) != SGM_OK)
        return sgm__onnx_fail(n->graph);
    if (sgm__onnx_bits(from) != sgm__onnx_bits((int32_t)to))
        return sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "types of %d and %d bits", sgm__onnx_bits(from),
                              sgm__onnx_bits((int32_t)to));
    if (sgm__onnx_is_integer(from) && sgm__onnx_is_integer((int32_t)to))
        return sgm__onnx_cast_to(n, x, to, (sgm__onnx_cast_options){0});
    if (sgm__onnx_is_narrow(from) || sgm__onnx_is_narrow(to) || dtype == SGM_BOOL)
        return sgm__onnx_unsupported(n, "the bits of types that tensors hold in a wider one");
    const sgm_attributes attributes = {.integer_count = 1, .integers = {dtype}};
    return sgm_record(n->graph, &op_cast, &x, 1, &attributes);
}
