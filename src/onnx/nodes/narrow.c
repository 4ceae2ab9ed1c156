/* Values of types that tensors hold in a wider one (wire/element.c): which they are, and what changes them.
 *
 * A value's type in the graph is the wider one; import->elements says which narrow type it stands for.
 * Results of a node are of the type of its first input, as most of ONNX's operators have it; the others are
 * in a table here, or mark their results themselves (Cast, QuantizeLinear). Integers that a node computes
 * wrap around as they do in their own type. Floats are not rounded between nodes, as runtimes do that compute
 * float16 in float32: only a cast does. */
#include "onnx/nodes/onnx.h"

/* --- which values --- */

static int32_t marked(const sgm__onnx_import *import, sgm_value value)
{
    bool known = sgm_value_exists(value) && (size_t)value.index < import->element_count;
    return known ? import->elements[value.index] : 0;
}

int32_t sgm__onnx_element(const sgm__onnx_node *n, sgm_value value)
{
    int32_t element = marked(n->import, value);
    return element != 0 ? element : sgm__onnx_type_number(sgm__onnx_type(n, value).dtype);
}

sgm_value sgm__onnx_mark(sgm__onnx_import *import, sgm_value value, int64_t element)
{
    if (!sgm_value_exists(value) || !sgm__onnx_is_narrow(element))
        return value;
    if (sgm__reserve(&import->elements, &import->element_capacity, (size_t)value.index + 1,
                     sizeof *import->elements) != SGM_OK)
        return sgm__onnx_fail(import->graph);
    while (import->element_count <= (size_t)value.index)
        import->elements[import->element_count++] = 0;
    import->elements[value.index] = (int32_t)element;
    return value;
}

/* --- casts --- */

static bool saturates(const sgm_attributes *attributes)
{
    return attributes->integers[1] != 0;
}

static double scalar(const double *inputs, const sgm_attributes *attributes)
{
    return sgm__onnx_narrow((int32_t)attributes->integers[0], inputs[0], saturates(attributes),
                            (sgm__onnx_direction)attributes->integers[2]);
}

/* An integer becomes a float by a cast before, so only integers arrive. */
static int64_t whole(const int64_t *inputs, const sgm_attributes *attributes)
{
    return sgm__onnx_wrap((int32_t)attributes->integers[0], inputs[0]);
}

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    *result = inputs[0];
    return SGM_OK;
}

/* As a cast's: what rounding does to the numbers is left out. */
static void gradient(sgm_graph *g, const sgm_gradient_call *call, sgm_value *gradients)
{
    (void)g;
    if (call->wanted[0])
        gradients[0] = call->gradient;
}

/* Integers: ONNX's number of the type, whether it saturates, the direction of rounding. */
static const sgm_op narrow_op = {.api = SGM_OP_API,
                                 .flags = SGM_OP_ELEMENTWISE,
                                 .name = "onnx_narrow",
                                 .doc = "the nearest numbers of a narrower type",
                                 .min_inputs = 1,
                                 .max_inputs = 1,
                                 .infer = infer,
                                 .gradient = gradient,
                                 .scalar = scalar,
                                 .whole = whole};

static sgm_value narrow(sgm_graph *g, sgm_value x, int64_t element, sgm__onnx_cast_options how)
{
    const sgm_attributes attributes = {.integer_count = 3,
                                       .integers = {element, how.saturates, how.direction}};
    return sgm_record(g, &narrow_op, &x, 1, &attributes);
}

/* Whether a cast between these types is one of integers that may wrap around: a cast of the library would cut
 * them off at the limits. */
static bool wraps(const sgm__onnx_node *n, sgm_value x, int64_t element)
{
    int32_t from = sgm__onnx_element(n, x);
    double low, high, to_low, to_high;
    if (!sgm__onnx_is_integer(from) || !sgm__onnx_is_integer((int32_t)element))
        return false;
    sgm__onnx_limits(from, &low, &high);
    sgm__onnx_limits((int32_t)element, &to_low, &to_high);
    return low < to_low || high > to_high;
}

/* Integers wrap in the larger one of both types, which has all numbers of both; floats are cut off; those of
 * 16 bits have not the digits of all others. */
sgm_value sgm__onnx_cast_to(sgm__onnx_node *n, sgm_value x, int64_t element, sgm__onnx_cast_options how)
{
    sgm_graph *g = n->graph;
    sgm_dtype dtype, from = sgm__onnx_type(n, x).dtype;
    if (sgm__onnx_dtype(element, &dtype) != SGM_OK)
        return sgm__onnx_fail(g);
    if (dtype == SGM_BOOL)
        return sgm_not_equal(g, x, sgm_number(g, 0));
    bool wrapping = wraps(n, x, element),
         rounding = sgm__onnx_is_narrow(element) && !sgm__onnx_is_integer((int32_t)element);
    bool cutting = sgm__onnx_is_narrow(element) && sgm_dtype_is_float(from) && !rounding;
    bool wide = from == SGM_FLOAT64 && rounding; /* rounded once */
    bool grows = sgm_dtype_size(from) < sgm_dtype_size(dtype);
    if (wide || (wrapping && !grows))
        x = narrow(g, x, element, how);
    x = from == dtype ? sgm_copy(g, x) : sgm_cast(g, x, dtype);
    if ((rounding && !wide) || cutting || (wrapping && grows))
        x = narrow(g, x, element, how);
    return sgm__onnx_mark(n->import, x, element);
}

sgm_value sgm__onnx_output_copy(const sgm__onnx_import *import, sgm_value value)
{
    int32_t element = marked(import, value);
    bool rounds = element != 0 && !sgm__onnx_is_integer(element);
    return rounds ? narrow(import->graph, value, element, (sgm__onnx_cast_options){0})
                  : sgm_copy(import->graph, value);
}

/* --- what nodes make --- */

/* Operators whose results have not the type of their first input: that of another one, or a type that does
 * not depend on the inputs (-1). `outputs`: how many have it, the others have one of their own; 0: all. */
static const struct {
    const char *type;
    int32_t input, outputs;
} exceptions[] = {
    {"ArgMax", -1, 0},
    {"ArgMin", -1, 0},
    {"BitCast", -1, 0},
    {"ConvInteger", -1, 0},
    {"DequantizeLinear", -1, 0},
    {"MatMulInteger", -1, 0},
    {"MaxPool", 0, 1},
    {"NonZero", -1, 0},
    {"OneHot", 2, 0},
    {"Shape", -1, 0},
    {"Size", -1, 0},
    {"TopK", 0, 1},
    {"Unique", 0, 1},
    {"Where", 1, 0},
};

/* Operators whose integers may leave their type. */
static const char *const computing[] = {"Abs",
                                        "Add",
                                        "BitShift",
                                        "BitwiseNot",
                                        "CumProd",
                                        "CumSum",
                                        "Div",
                                        "Einsum",
                                        "Gemm",
                                        "MatMul",
                                        "Mul",
                                        "Neg",
                                        "Pow",
                                        "ReduceL1",
                                        "ReduceProd",
                                        "ReduceSum",
                                        "ReduceSumSquare",
                                        "ScatterElements",
                                        "ScatterND",
                                        "Sub",
                                        "Sum"};

static bool is_computing(const char *type)
{
    for (size_t i = 0; i < sizeof computing / sizeof computing[0]; i++)
        if (strcmp(computing[i], type) == 0)
            return true;
    return false;
}

/* The narrow type of output `index`, if its type in the graph is the one that holds it; else 0. */
static int32_t expected(const sgm__onnx_node *n, int32_t index)
{
    int32_t input = 0, outputs = 0;
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++)
        if (strcmp(exceptions[i].type, n->row->name) == 0) {
            input = exceptions[i].input;
            outputs = exceptions[i].outputs;
        }
    sgm_value from = {-1};
    if (input >= 0 && (outputs == 0 || index < outputs))
        from = sgm__onnx_in(n, input);
    int32_t element = sgm_value_exists(from) ? sgm__onnx_element(n, from) : 0;
    bool holds = sgm__onnx_is_narrow(element) &&
                 sgm__onnx_type(n, from).dtype == sgm__onnx_type(n, n->outputs[index]).dtype;
    return holds ? element : 0;
}

void sgm__onnx_mark_outputs(sgm__onnx_node *n)
{
    bool computes = is_computing(n->row->name);
    for (int32_t i = 0; i < n->output_count; i++) {
        if (!sgm_value_exists(n->outputs[i]) || sgm__onnx_is_narrow(sgm__onnx_element(n, n->outputs[i])))
            continue;
        int32_t element = expected(n, i);
        if (computes && element != 0 && sgm__onnx_is_integer(element))
            n->outputs[i] = narrow(n->graph, n->outputs[i], element, (sgm__onnx_cast_options){0});
        sgm__onnx_mark(n->import, n->outputs[i], element);
    }
}
