/* Build functions of the two costs of classification, NegativeLogLikelihoodLoss and
 * SoftmaxCrossEntropyLoss.
 *
 * Data is (batch, classes, places...), targets are class numbers (batch, places...). The library's
 * operations want classes on the last axis, so data is permuted first. Both costs are -weight[target] *
 * log p[target], reduced over all elements; they differ only in where the logarithms come from. Called by
 * import.c through operators.c. */
#include "onnx/nodes/onnx.h"
#include "ops/rules.h"

/* One-hot targets (batch, places..., classes) in the type of the data. Where the target is ignore_index
 * the class becomes -1, which is no class, and the row is zeros: such an element adds nothing to the cost
 * or to the weights. */
static sgm_value targets_of(sgm__onnx_node *n, sgm_value targets, int64_t classes, sgm_dtype dtype)
{
    sgm_graph *g = n->graph;
    if (sgm__onnx_attribute(n, "ignore_index") != NULL) {
        double ignored = (double)sgm__onnx_integer(n, "ignore_index", 0);
        sgm_value ignore = sgm_equal(g, targets, sgm_number(g, ignored));
        targets = sgm_select(g, ignore, sgm_filled_like(g, targets, -1), targets);
    }
    return sgm_one_hot_values(g, targets, classes, dtype);
}

/* (batch, classes, places...) to (batch, places..., classes). */
static sgm_value classes_last(sgm_graph *g, sgm_value x)
{
    int32_t axes[SGM_MAX_RANK] = {0}, rank = sgm_value_type(g, x).shape.rank;
    for (int32_t i = 1; i < rank - 1; i++)
        axes[i] = i + 1;
    axes[rank - 1] = 1;
    return sgm_permute(g, x, axes);
}

/* The cost from logarithms of probabilities, with classes last. `weights` is (classes) or no value. With w
 * = sum over classes of hits, each element's cost is -sum(hits * logarithms), in which classes without a hit
 * have no part, also with the probability 0. The mean divides by the sum of w over all elements, not by their
 * number, as ONNX and PyTorch define it. */
static sgm_value cost_of(sgm__onnx_node *n, sgm_value logarithms, sgm_value targets, sgm_value weights)
{
    sgm_graph *g = n->graph;
    sgm_type type = sgm__onnx_type(n, logarithms);
    const int32_t last = -1;
    if (!sgm_value_exists(logarithms))
        return logarithms;
    sgm_value hits = targets_of(n, targets, type.shape.dims[type.shape.rank - 1], type.dtype);
    if (sgm_value_exists(weights))
        hits = sgm_multiply(g, hits, weights);
    sgm_value parts = sgm_multiply(g, hits, sgm__masked(g, hits, logarithms));
    sgm_value each = sgm_negate(g, sgm_reduce_sum(g, parts, &last, 1, false));
    if (sgm__onnx_text_is(n, "reduction", "mean", "none"))
        return each;
    if (sgm__onnx_text_is(n, "reduction", "mean", "sum"))
        return sgm_sum(g, each);
    return sgm_divide(g, sgm_sum(g, each), sgm_sum(g, hits));
}

static bool has_classes(sgm__onnx_node *n)
{
    if (sgm__onnx_type(n, n->inputs[0]).shape.rank >= 2)
        return true;
    sgm_graph_fail(n->graph, SGM_ERROR_SHAPE, "data of batch and classes is needed");
    return false;
}

sgm_value sgm__onnx_negative_log_likelihood(sgm__onnx_node *n)
{
    if (!has_classes(n))
        return (sgm_value){-1};
    return cost_of(n, classes_last(n->graph, n->inputs[0]), n->inputs[1], sgm__onnx_in(n, 2));
}

/* The second output is the logarithms with classes back on axis 1. */
sgm_value sgm__onnx_softmax_cross_entropy(sgm__onnx_node *n)
{
    sgm_graph *g = n->graph;
    if (!has_classes(n))
        return (sgm_value){-1};
    sgm_value logarithms = sgm_log_softmax(g, classes_last(g, n->inputs[0]));
    int32_t axes[SGM_MAX_RANK] = {0}, rank = sgm__onnx_type(n, logarithms).shape.rank;
    for (int32_t i = 2; i < rank; i++)
        axes[i] = i - 1;
    axes[1] = rank - 1;
    n->outputs[1] = sgm_permute(g, logarithms, axes);
    return cost_of(n, logarithms, n->inputs[1], sgm__onnx_in(n, 2));
}
