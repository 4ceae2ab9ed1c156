/* broadcast: dimensions of 1, and new leading dimensions, repeated until the shape is the given one. Any
 * type.
 *
 * The same rule as NumPy's. It is a view: handlers give the repeated axes a stride of 0 and copy nothing.
 * Recording an elementwise operation inserts it by itself (src/graph/record.c). The gradient is the sum over
 * the repeated axes (sgm__unbroadcast in reduce.c). */
#include "ops/rules.h"

/* integers: the result's dimensions. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char from[128], to[128];
    const sgm_shape *x = &inputs[0].shape;
    result->dtype = inputs[0].dtype;
    SGM_TRY(sgm__read_shape(attributes, 0, &result->shape));
    int32_t missing = result->shape.rank - x->rank;
    bool fits = missing >= 0;
    for (int32_t i = 0; i < x->rank && fits; i++)
        fits = x->dims[i] == 1 || x->dims[i] == result->shape.dims[i + missing];
    if (!fits)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "%s cannot become %s: only dimensions of 1 and missing leading ones are repeated",
                        sgm_shape_text(x, from, sizeof from), sgm_shape_text(&result->shape, to, sizeof to));
    return SGM_OK;
}

/* Only where no view can be: copies through a stride of 0. */
static sgm_status forward(const sgm_kernel_call *call)
{
    const sgm_array *x = &call->inputs[0];
    sgm_array view = *x;
    view.shape = call->output.shape;
    int32_t missing = view.shape.rank - x->shape.rank;
    for (int32_t i = 0; i < view.shape.rank; i++) {
        bool repeated = i < missing || x->shape.dims[i - missing] == 1;
        view.strides[i] = repeated ? 0 : x->strides[i - missing];
    }
    sgm__array_move(&view, &call->output);
    return SGM_OK;
}

/* Each element was used several times, so its gradient is the sum over the axes that were repeated. */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_type type = sgm_value_type(graph, call->inputs[0]);
    if (call->wanted[0])
        gradients[0] = sgm__unbroadcast(graph, call->gradient, &type);
}

const sgm_op sgm__op_broadcast = {
    SGM__OP("broadcast", 1, "repeated along dimensions of 1 and new leading ones"),
    .flags = SGM_OP_VIEW | SGM_OP_STRIDED, .infer = infer, .gradient = gradient, .forward = forward};

/* A shape that is there already records nothing. */
sgm_value sgm_broadcast(sgm_graph *graph, sgm_value x, const sgm_shape *shape)
{
    if (!sgm__can_record(graph, "broadcast", x) || !sgm__rank_fits(graph, "broadcast", shape))
        return (sgm_value){-1};
    sgm_shape old = sgm_value_type(graph, x).shape;
    if (sgm_shape_equal(&old, shape))
        return x;
    sgm_attributes attributes = {0};
    sgm__add_shape(&attributes, shape);
    return sgm__record_one(graph, &sgm__op_broadcast, x, &attributes);
}
