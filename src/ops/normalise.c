/* layer_norm and rms_norm: each row of the last axis at one scale.
 *
 * layer_norm: (x - mean) / sqrt(variance + epsilon) (Ba et al., 2016); rms_norm: x / sqrt(mean(x^2) +
 * epsilon) (Zhang and Sennrich, 2019). Gains and biases are separate products and sums, which layers
 * record behind (src/network/layers/norms.c). Both operations and their gradients stay instructions for
 * handlers that have a kernel, and are composed for the others. */
#include "ops/rules.h"

#include <math.h>

static const int32_t last[] = {-1};

/* numbers: epsilon, at least 0. Any float type; an empty row has no mean. A NaN makes its whole row NaN. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count;
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(&inputs[0]));
    int32_t rank = inputs[0].shape.rank;
    if (rank == 0 || inputs[0].shape.dims[rank - 1] == 0)
        return sgm_fail(SGM_ERROR_SHAPE, "wants features in the last axis (..., features), got %s",
                        sgm__type_text(&inputs[0], text));
    if (attributes->number_count != 1 || !(attributes->numbers[0] >= 0) || !isfinite(attributes->numbers[0]))
        return sgm_fail(SGM_ERROR_ARGUMENT, "wants one number, the epsilon, of 0 or more, such as 1e-5");
    *result = inputs[0];
    return SGM_OK;
}

static sgm_value mean(sgm_graph *graph, sgm_value x)
{
    return sgm_reduce_mean(graph, x, last, 1, true);
}

/* x minus its mean. */
static sgm_value centre(sgm_graph *graph, sgm_value x)
{
    return sgm_subtract(graph, x, mean(graph, x));
}

/* 1 / sqrt(mean(x^2) + epsilon), one number for each row. */
static sgm_value scale_of(sgm_graph *graph, sgm_value x, const sgm_attributes *attributes)
{
    sgm_value square = mean(graph, sgm_multiply(graph, x, x));
    sgm_value raised = sgm_add(graph, square, sgm_number(graph, attributes->numbers[0]));
    return sgm_reciprocal(graph, sgm_square_root(graph, raised));
}

static sgm_value compose_rms_norm(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                  const sgm_attributes *attributes)
{
    (void)count;
    return sgm_multiply(graph, inputs[0], scale_of(graph, inputs[0], attributes));
}

static sgm_value compose_layer_norm(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                    const sgm_attributes *attributes)
{
    (void)count;
    sgm_value centred = centre(graph, inputs[0]);
    return sgm_multiply(graph, centred, scale_of(graph, centred, attributes));
}

/* --- gradients: inputs are x, the result y and its gradient g --- */

/* Inputs are x, the result y and its gradient, all of one type. */
static sgm_status infer_gradient(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                 sgm_type *result)
{
    SGM_TRY(infer(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(&inputs[0], &inputs[1]));
    return sgm__want_equal(&inputs[0], &inputs[2]);
}

/* With y = x s: dx = s (g - y mean(g y)); layer_norm's is the same of centred x and g. The scale is recorded
 * once more, and found to be known (src/graph/passes.c), so nothing is computed twice. */
static sgm_value gradient(sgm_graph *graph, const sgm_value *inputs, sgm_value x, sgm_value gradient,
                          const sgm_attributes *attributes)
{
    sgm_value share = mean(graph, sgm_multiply(graph, inputs[2], inputs[1]));
    sgm_value rest = sgm_subtract(graph, gradient, sgm_multiply(graph, inputs[1], share));
    return sgm_multiply(graph, rest, scale_of(graph, x, attributes));
}

static sgm_value compose_rms_norm_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                           const sgm_attributes *attributes)
{
    (void)count;
    return gradient(graph, inputs, inputs[0], inputs[2], attributes);
}

static sgm_value compose_layer_norm_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                             const sgm_attributes *attributes)
{
    (void)count;
    return gradient(graph, inputs, centre(graph, inputs[0]), centre(graph, inputs[2]), attributes);
}

/* The gradient as an operation of its own, and the function that records it. */
#define DEFINE_GRADIENT(of)                                                                                  \
    const sgm_op sgm__op_##of##_gradient = {                                                                 \
        SGM__OP(#of "_gradient", 3, "what " #of "'s input gets of its result's gradient"),                   \
        .compose = compose_##of##_gradient, .infer = infer_gradient};                                        \
    static void gradient_##of(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)         \
    {                                                                                                        \
        if (call->wanted[0])                                                                                 \
            gradients[0] = sgm_record(graph, &sgm__op_##of##_gradient,                                       \
                                      (sgm_value[]){call->inputs[0], call->output, call->gradient}, 3,       \
                                      call->attributes);                                                     \
    }
DEFINE_GRADIENT(layer_norm)
DEFINE_GRADIENT(rms_norm)

#define DEFINE_OP(op_name, op_doc)                                                                           \
    const sgm_op sgm__op_##op_name = {SGM__OP(#op_name, 1, op_doc), .compose = compose_##op_name,            \
                                      .infer = infer, .gradient = gradient_##op_name};                       \
    sgm_value sgm_##op_name(sgm_graph *graph, sgm_value x, double epsilon)                                   \
    {                                                                                                        \
        const sgm_attributes attributes = {.number_count = 1, .numbers = {epsilon}};                         \
        return sgm__record_one(graph, &sgm__op_##op_name, x, &attributes);                                   \
    }
DEFINE_OP(layer_norm, "(x - mean) / sqrt(variance + epsilon) over the last axis (Ba et al., 2016)")
DEFINE_OP(rms_norm, "x / sqrt(mean of squares + epsilon) over the last axis (Zhang and Sennrich, 2019)")
