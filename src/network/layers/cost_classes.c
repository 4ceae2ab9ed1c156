/* More costs of classes: kl_divergence, focal, hinge, multi_class_hinge; the usual ones are costs.c.
 *
 * kl_divergence and focal take logits and predict probabilities. The hinges take scores without bounds:
 * right and wrong shall lie apart by a margin, and what lies beyond it has no gradient. */
#include "network/layers/costs.h"

/* sum(t log(t)) - sum(t log_softmax(y)) (Kullback and Leibler, 1951). The logarithm's argument is at least
 * 1e-30, so that t = 0 gives 0 * log(1e-30) = 0. The first sum has no parameters; it makes the cost 0 where
 * both distributions are equal. */
static sgm_value kl_divergence(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value shares = sgm__cost_targets(call, graph, inputs[0]);
    sgm_value logarithm = sgm_log(graph, sgm_maximum(graph, shares, sgm_number(graph, 1e-30)));
    sgm_value sure = sgm__cost_sum_of_last(graph, sgm_multiply(graph, shares, logarithm), false);
    sgm_value crossed = sgm_softmax_cross_entropy_values(graph, inputs[0], shares);
    return sgm__cost_mean_of_steps(call, graph, sgm_add(graph, sure, crossed));
}

static sgm_value predict_softmax(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_softmax(graph, prediction);
}

/* -t log(p) (1 - p)^gamma with p = sigmoid(x): t softplus(-x) exp(-gamma softplus(x)), which never
 * overflows. */
static sgm_value focal_of(sgm_graph *graph, sgm_value share, sgm_value x, double gamma)
{
    x = sgm__masked(graph, share, x);
    /* Below -100 the factor is 1 anyway and its gradient 0; unbounded, x = -infinity would multiply that 0
     * by the infinite `right`. */
    sgm_value bounded = sgm_maximum(graph, sgm_number(graph, -100), x);
    sgm_value right = sgm_softplus(graph, sgm_negate(graph, x)), wrong = sgm_softplus(graph, bounded);
    sgm_value factor = sgm_exp(graph, sgm_multiply(graph, wrong, sgm_live_number(graph, -gamma)));
    return sgm_multiply(graph, share, sgm_multiply(graph, right, factor));
}

/* alpha t focal(x) + (1 - alpha) (1 - t) focal(-x), summed over the outputs of an example (Lin et al.,
 * 2017). alpha = 0 means no factors. */
static sgm_value focal(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    double gamma = sgm_layer_number(call, "gamma"), alpha = sgm_layer_number(call, "alpha");
    sgm_value targets = sgm__cost_targets(call, graph, inputs[0]);
    sgm_value others = sgm_subtract(graph, sgm_number(graph, 1), targets);
    sgm_value yes = focal_of(graph, targets, inputs[0], gamma);
    sgm_value no = focal_of(graph, others, sgm_negate(graph, inputs[0]), gamma);
    if (alpha > 0) {
        yes = sgm_multiply(graph, yes, sgm_live_number(graph, alpha));
        no = sgm_multiply(graph, no, sgm_live_number(graph, 1 - alpha));
    }
    return sgm__cost_sum_of_examples(call, graph, sgm_add(graph, yes, no));
}

static sgm_value predict_sigmoid(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_sigmoid(graph, prediction);
}

/* max(margin - y, 0) where the target is above 0, max(margin + y, 0) elsewhere: targets may be 0 and 1 or -1
 * and 1. */
static sgm_value hinge(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value y = inputs[0], targets = sgm__cost_targets(call, graph, y);
    sgm_value yes = sgm_greater(graph, targets, sgm_number(graph, 0));
    sgm_value beyond = sgm_select(graph, yes, y, sgm_negate(graph, y));
    sgm_value cost = sgm__cost_margin(call, graph, beyond);
    return sgm__cost_mean_of_steps(call, graph, cost);
}

/* y / (2 margin) + 1/2: the margins become 0 and 1, and the border between the classes one half, as with
 * probabilities, so that accuracy is counted alike. */
static sgm_value predict_side(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    double margin = sgm_layer_number(call, "margin");
    sgm_value scaled = sgm_multiply(graph, prediction, sgm_live_number(graph, 0.5 / margin));
    return sgm_add(graph, scaled, sgm_number(graph, 0.5));
}

/* The mean over the classes of max(margin + y of the class - y of the right one, 0) (Weston and Watkins,
 * 1999). With shares t, `own` is sum(t y), and each class counts by 1 - t, so the right class itself costs
 * nothing. Masks keep infinite scores out of products by 0. */
static sgm_value multi_class_hinge(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                   int32_t count)
{
    (void)count;
    sgm_value y = inputs[0], shares = sgm__cost_shares(call, graph, y);
    sgm_shape shape = sgm_value_type(graph, y).shape;
    if (!sgm_value_exists(shares))
        return shares;
    sgm_value others = sgm_subtract(graph, sgm_number(graph, 1), shares);
    sgm_value own = sgm_multiply(graph, shares, sgm__masked(graph, shares, y));
    sgm_value ahead = sgm_subtract(graph, sgm__cost_sum_of_last(graph, own, true), y);
    sgm_value missing = sgm__cost_margin(call, graph, sgm__masked(graph, others, ahead));
    sgm_value sum = sgm__cost_sum_of_last(graph, sgm_multiply(graph, others, missing), false);
    sgm_value mean = sgm_multiply(graph, sum, sgm_number(graph, 1.0 / (double)shape.dims[shape.rank - 1]));
    return sgm__cost_mean_of_steps(call, graph, mean);
}

static const sgm_option arguments[] = {SGM__COST_ARGUMENTS};
static const sgm_option focal_arguments[] = {
    SGM__COST_ARGUMENTS,
    {.name = "gamma",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 100,
     .default_value = 2,
     .doc = "a prediction of probability p costs (1 - p) to this power as much",
     .live = true},
    {.name = "alpha",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 1,
     .default_value = 0.25,
     .doc = "the factor of what should be 1; what should be 0 has the rest to 1; 0: none of both",
     .live = true},
};
static const sgm_option hinge_arguments[] = {SGM__COST_ARGUMENTS, SGM__COST_MARGIN, SGM__COST_SQUARED};
static const sgm_option multi_class_arguments[] = {SGM__COST_ARGUMENTS, SGM__COST_CLASSES, SGM__COST_MARGIN,
                                                   SGM__COST_SQUARED};

SGM__COST(kl_divergence, "of the targets' shares from the softmax of logits, which is the output", arguments,
          SGM_LAYER_CLASSIFIES, predict_softmax, .formula = "sum over classes of t (log t - log softmax(x))",
          .example = "kl_divergence");
SGM__COST(focal,
          "binary_cross_entropy that forgets what is right already, on logits; the output is their sigmoid",
          focal_arguments, SGM_LAYER_CLASSIFIES, predict_sigmoid,
          .formula = "-t (1 - p)^gamma log p - (1 - t) p^gamma log(1 - p), p = sigmoid(x)",
          .example = "focal(gamma=2)");
SGM__COST(
    hinge,
    "what each output lacks to lie beyond the margin on its side: above 0 where the target is; the output "
    "is scaled, so that the margins are 0 and 1",
    hinge_arguments, SGM_LAYER_CLASSIFIES, predict_side,
    .formula = "max(0, margin - s x), s = 1 where the target is above 0, else -1", .example = "hinge");
SGM__COST(multi_class_hinge,
          "what the right class's number lacks to be larger than the others' by the margin",
          multi_class_arguments, SGM_LAYER_CLASSIFIES, NULL,
          .formula = "sum over other classes k of max(0, margin + x[k] - x[right])",
          .example = "multi_class_hinge");
