/* softmax, log_softmax and their cross entropy, over the last axis.
 *
 * They stay instructions for handlers that have one kernel for a whole row, and are composed for the
 * others. The largest element of a row is subtracted before the exponential function, which cannot
 * overflow then. The cross entropy is one operation from logits, -sum(targets * log_softmax(x)), as a
 * logarithm behind a softmax would lose small probabilities. */
#include "ops/rules.h"

static const int32_t last[] = {-1};

/* --- softmax and log_softmax --- */

static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    char text[SGM__TYPE_TEXT];
    SGM_TRY(sgm__want_float(&inputs[0]));
    int32_t rank = inputs[0].shape.rank;
    if (rank == 0 || inputs[0].shape.dims[rank - 1] == 0)
        return sgm_fail(SGM_ERROR_SHAPE, "wants classes in the last axis (..., classes), got %s",
                        sgm__type_text(&inputs[0], text));
    *result = inputs[0];
    return SGM_OK;
}

/* The row's maximum; its gradient is stopped, as it cancels in the result. */
static sgm_value largest_of(sgm_graph *graph, sgm_value x)
{
    return sgm_stop_gradient(graph, sgm_reduce_max(graph, x, last, 1, true));
}

/* x minus its largest: the exponential function cannot overflow. Softmax does not change, nor does its
 * gradient. */
static sgm_value lower(sgm_graph *graph, sgm_value x)
{
    return sgm_subtract(graph, x, largest_of(graph, x));
}

static sgm_value compose_softmax(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                 const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_value weights = sgm_exp(graph, lower(graph, inputs[0]));
    return sgm_divide(graph, weights, sgm_reduce_sum(graph, weights, last, 1, true));
}

static sgm_value compose_log_softmax(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                     const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_value lowered = lower(graph, inputs[0]);
    sgm_value sum = sgm_reduce_sum(graph, sgm_exp(graph, lowered), last, 1, true);
    return sgm_subtract(graph, lowered, sgm_log(graph, sum));
}

/* y (g - sum(g y)) along the row. Recorded from the result, so the logits need not be kept. */
static void gradient_softmax(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (!call->wanted[0])
        return;
    sgm_value weighted = sgm_multiply(graph, call->gradient, call->output);
    sgm_value mean = sgm_reduce_sum(graph, weighted, last, 1, true);
    gradients[0] = sgm_multiply(graph, sgm_subtract(graph, call->gradient, mean), call->output);
}

/* g - exp(y) sum(g) along the row. */
static void gradient_log_softmax(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    if (!call->wanted[0])
        return;
    sgm_value sum = sgm_reduce_sum(graph, call->gradient, last, 1, true);
    sgm_value share = sgm_multiply(graph, sgm_exp(graph, call->output), sum);
    gradients[0] = sgm_subtract(graph, call->gradient, share);
}

const sgm_op sgm__op_softmax = {SGM__OP("softmax", 1, "exp(x) / sum(exp(x)) over the last axis"),
                                .flags = SGM_OP_ACTIVATION, .compose = compose_softmax, .infer = infer,
                                .gradient = gradient_softmax};
const sgm_op sgm__op_log_softmax = {SGM__OP("log_softmax", 1, "log(softmax(x)), exact where that is tiny"),
                                    .flags = SGM_OP_ACTIVATION, .compose = compose_log_softmax,
                                    .infer = infer, .gradient = gradient_log_softmax};

sgm_value sgm_softmax(sgm_graph *graph, sgm_value x)
{
    return sgm__record_one(graph, &sgm__op_softmax, x, NULL);
}

sgm_value sgm_log_softmax(sgm_graph *graph, sgm_value x)
{
    return sgm__record_one(graph, &sgm__op_log_softmax, x, NULL);
}

/* --- cross entropy --- */

static sgm_status infer_cross_entropy(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                      sgm_type *result)
{
    SGM_TRY(infer(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(&inputs[0], &inputs[1]));
    result->shape = sgm_shape_create(inputs[0].shape.rank - 1, inputs[0].shape.dims);
    return SGM_OK;
}

static sgm_value half(sgm_graph *graph, sgm_value x)
{
    return sgm_multiply(graph, x, sgm_number(graph, 0.5));
}

/* log_softmax(x) / 2: a difference of two numbers may be twice the largest one and overflow. Halving loses
 * no digits. */
static sgm_value half_log_softmax(sgm_graph *graph, sgm_value x)
{
    sgm_value largest = largest_of(graph, x);
    sgm_value weights = sgm_exp(graph, sgm_subtract(graph, x, largest));
    sgm_value logarithm = sgm_log(graph, sgm_reduce_sum(graph, weights, last, 1, true));
    sgm_value lowered = sgm_subtract(graph, half(graph, x), half(graph, largest));
    return sgm_subtract(graph, lowered, half(graph, logarithm));
}

/* A class without a share costs nothing, also where its logit is -infinity (masked). One cost for each
 * row. */
static sgm_value compose_cross_entropy(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                       const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_value halves = sgm__masked(graph, inputs[1], half_log_softmax(graph, inputs[0]));
    sgm_value likelihood = sgm_reduce_sum(graph, sgm_multiply(graph, inputs[1], halves), last, 1, false);
    return sgm_multiply(graph, likelihood, sgm_number(graph, -2));
}

/* The gradient of the cross entropy at x, an operation of its own because handlers do it in one pass over a
 * row that is two instructions away from the forward pass's. */
static sgm_status infer_gradient(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                                 sgm_type *result)
{
    SGM_TRY(infer_cross_entropy(inputs, count, attributes, result));
    SGM_TRY(sgm__want_equal(result, &inputs[2]));
    *result = inputs[0];
    return SGM_OK;
}

/* (softmax(x) sum(targets) - targets) * factor, where the factor of each row is the gradient of its cost. */
static sgm_value compose_gradient(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                                  const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    sgm_shape kept = sgm_value_type(graph, inputs[0]).shape;
    kept.dims[kept.rank - 1] = 1;
    sgm_value total = sgm_reduce_sum(graph, inputs[1], last, 1, true);
    sgm_value expected = sgm_multiply(graph, sgm_softmax(graph, inputs[0]), total);
    return sgm_multiply(graph, sgm_subtract(graph, expected, inputs[1]),
                        sgm_reshape(graph, inputs[2], &kept));
}

const sgm_op sgm__op_softmax_cross_entropy_gradient = {
    SGM__OP("softmax_cross_entropy_gradient", 3,
            "(softmax(x) * sum(targets) - targets) * factor, a factor for each row"),
    .compose = compose_gradient, .infer = infer_gradient};

/* The gradient by the targets, which label smoothing or distillation may compute, is -log_softmax(x) times
 * the factor. */
static void gradient_cross_entropy(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value x = call->inputs[0], targets = call->inputs[1];
    if (call->wanted[0])
        gradients[0] = sgm_record(graph, &sgm__op_softmax_cross_entropy_gradient,
                                  (sgm_value[]){x, targets, call->gradient}, 3, NULL);
    if (call->wanted[1]) {
        sgm_shape kept = sgm_value_type(graph, x).shape;
        kept.dims[kept.rank - 1] = 1;
        sgm_value factor = sgm_reshape(graph, call->gradient, &kept);
        gradients[1] = sgm_negate(graph, sgm_multiply(graph, sgm_log_softmax(graph, x), factor));
    }
}

const sgm_op sgm__op_softmax_cross_entropy = {
    SGM__OP("softmax_cross_entropy", 2, "-sum(targets * log_softmax(x)) over the last axis"),
    .compose = compose_cross_entropy, .infer = infer_cross_entropy, .gradient = gradient_cross_entropy};

sgm_value sgm_softmax_cross_entropy_values(sgm_graph *graph, sgm_value x, sgm_value targets)
{
    return sgm_record(graph, &sgm__op_softmax_cross_entropy, (sgm_value[]){x, targets}, 2, NULL);
}
