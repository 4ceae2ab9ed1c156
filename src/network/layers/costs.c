/* The usual costs: softmax_cross_entropy, squared_difference, mean_squared, root_mean_squared,
 * binary_cross_entropy, negative_log_likelihood.
 *
 * Each says how far a prediction is from the targets, a field of the data of the prediction's shape (or of
 * numbers of classes, see costs.h). A cost gives one number for each example, which the recorder averages
 * over the batch; only squared_difference is a sum over the whole batch (SGM_LAYER_SUM), and
 * root_mean_squared a root of the mean over it. Costs of logits are computed from logarithms, so no
 * probability is ever rounded to 0 or 1. More costs of classes are cost_classes.c, of numbers cost_numbers.c;
 * sequences of labels cost_ctc.c, examples that are
 * compared with each other cost_triplet.c and cost_info_nce.c. */
#include "network/layers/costs.h"
#include "network/rerecord.h"

/* The least probability whose logarithm is taken; below it a probability has no gradient. */
#define MINIMUM_PROBABILITY 1e-7

/* The argument "class_weights" as a constant (classes), to multiply the targets with; nothing, and the
 * graph's failure, if there are not as many as classes. */
static sgm_value class_weights(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    size_t count;
    const double *weights = sgm_layer_numbers(call, "class_weights", &count);
    int64_t classes = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    if ((int64_t)count != classes)
        return sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                              "softmax_cross_entropy: there are %zu class_weights for %lld classes", count,
                              (long long)classes);
    sgm_shape line = sgm_shape_of(classes);
    sgm_tensor *tensor = sgm_tensor_create(sgm_layer_dtype(call), &line);
    sgm_value value = {-1};
    if (tensor != NULL && sgm_tensor_write(tensor, weights, count) == SGM_OK)
        value = sgm_constant(graph, tensor);
    else
        sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for %zu class_weights", count);
    sgm_tensor_free(tensor);
    return value;
}

/* The shares that softmax_cross_entropy compares with: t (1 - s) + s / classes for a label smoothing of s
 * (Szegedy et al., 2015), then times the weight of each class. */
static sgm_value wanted_shares(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    sgm_value shares = sgm__cost_shares(call, graph, prediction);
    sgm_shape shape = sgm_value_type(graph, prediction).shape;
    double smoothing = sgm_layer_number(call, "label_smoothing");
    size_t count;
    if (!sgm_value_exists(shares))
        return shares;
    if (smoothing > 0) {
        double all = smoothing / (double)shape.dims[shape.rank - 1];
        shares = sgm_add(graph, sgm_multiply(graph, shares, sgm_live_number(graph, 1 - smoothing)),
                         sgm_live_number(graph, all));
    }
    if (sgm_layer_numbers(call, "class_weights", &count) != NULL)
        shares = sgm_multiply(graph, shares, class_weights(call, graph, prediction));
    return shares;
}

/* -sum over classes of t (1 - p)^gamma log(p), p = softmax(logits): examples that are right already cost
 * less (Lin et al., 2017). Gradients go through both p. */
static sgm_value focused(sgm_graph *graph, sgm_value logits, sgm_value targets, double gamma)
{
    sgm_value logarithm = sgm_log_softmax(graph, logits);
    sgm_value others = sgm_subtract(graph, sgm_number(graph, 1), sgm_exp(graph, logarithm));
    others = sgm_clip(graph, others, MINIMUM_PROBABILITY, 1); /* where the power has a gradient */
    sgm_value factor = sgm_power(graph, others, sgm_number(graph, gamma));
    logarithm = sgm__masked(graph, targets, logarithm);
    sgm_value likelihood = sgm_multiply(graph, sgm_multiply(graph, targets, factor), logarithm);
    return sgm_negate(graph, sgm__cost_sum_of_last(graph, likelihood, false));
}

/* Whether nothing changes the shares of the targets, or how much classes cost. */
static bool is_plain(const sgm_layer_call *call)
{
    size_t count;
    return sgm_layer_number(call, "label_smoothing") == 0 && sgm_layer_number(call, "gamma") == 0 &&
           sgm_layer_numbers(call, "class_weights", &count) == NULL && !sgm_layer_flag(call, "shares");
}

/* The right class of each row, where all its shares are 0 but that of this class, which is 1; else nothing.
 */
static sgm_value right_classes(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    return is_plain(call) ? sgm__cost_classes(call, graph, prediction) : (sgm_value){-1};
}

/* -sum over classes of t log_softmax(x), averaged over the steps of a sequence. */
static sgm_value softmax_cross_entropy(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                       int32_t count)
{
    (void)count;
    if (sgm_layer_flag(call, "ignore_negative"))
        return is_plain(call) ? sgm__cost_of_known_classes(call, graph, inputs[0])
                              : sgm_graph_fail(graph, SGM_ERROR_ARGUMENT,
                                               "softmax_cross_entropy: ignore_negative is for numbers of "
                                               "classes, without shares, label_smoothing, gamma and "
                                               "class_weights");
    sgm_value classes = right_classes(call, graph, inputs[0]);
    if (sgm_value_exists(classes))
        return sgm__cost_mean_of_steps(call, graph, sgm_class_cross_entropy(graph, inputs[0], classes));
    sgm_value targets = wanted_shares(call, graph, inputs[0]);
    double gamma = sgm_layer_number(call, "gamma");
    sgm_value cost = gamma > 0 ? focused(graph, inputs[0], targets, gamma)
                               : sgm_softmax_cross_entropy_values(graph, inputs[0], targets);
    return sgm__cost_mean_of_steps(call, graph, cost);
}

static sgm_value predict_softmax(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_softmax(graph, prediction);
}

/* sum (x - t)^2 over all elements of the minibatch: one number. */
static sgm_value squared_difference(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                    int32_t count)
{
    (void)count;
    sgm_value difference = sgm_subtract(graph, inputs[0], sgm__cost_targets(call, graph, inputs[0]));
    difference = sgm__cost_counted(call, graph, sgm_square(graph, difference));
    return sgm_sum(graph, sgm__cost_weighted(call, graph, difference));
}

/* mean (x - t)^2. */
static sgm_value mean_squared(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value difference = sgm_subtract(graph, inputs[0], sgm__cost_targets(call, graph, inputs[0]));
    return sgm__cost_mean(call, graph, sgm_square(graph, difference));
}

/* The mean over the whole minibatch, of which this worker's examples may be a part: the sum over the workers
 * of share * own mean, where the share is that of the examples, or of the steps that count. */
static sgm_value mean_of_all_parts(sgm_layer_call *call, sgm_graph *graph, sgm_value mean)
{
    if (!sgm_layer_is_part(call))
        return mean;
    sgm_dtype dtype = sgm_value_type(graph, mean).dtype;
    sgm_value share = sgm_value_exists(call->count)
                          ? sgm__part_share_of(graph, call->count, dtype)
                          : sgm__mixed_cast(graph, sgm_layer_share(call, graph), dtype);
    return sgm_layer_all_reduce(call, graph, sgm_multiply(graph, mean, share));
}

/* sqrt(mean (x - t)^2), one number for the whole minibatch. A mean of 0 has a gradient of 0, where that of
 * the root alone would be 0 / 0; a NaN stays one. */
static sgm_value root_mean_squared(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                   int32_t count)
{
    sgm_value mean = mean_squared(call, graph, inputs, count);
    if (sgm_value_type(graph, mean).shape.rank > 0)
        mean = sgm_mean(graph, mean);
    mean = mean_of_all_parts(call, graph, mean);
    sgm_value met = sgm_equal(graph, mean, sgm_number(graph, 0));
    sgm_value root = sgm_square_root(graph, sgm_select(graph, met, sgm_filled_like(graph, mean, 1), mean));
    return sgm_select(graph, met, sgm_filled_like(graph, root, 0), root);
}

/* -t log(sigmoid(x)) = t softplus(-x). The mask keeps 0 * infinity from becoming NaN where the share t is 0.
 */
static sgm_value binary_part(sgm_graph *graph, sgm_value share, sgm_value x)
{
    sgm_value cost = sgm_softplus(graph, sgm_negate(graph, x));
    return sgm_multiply(graph, share, sgm__masked(graph, share, cost));
}

/* -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)), summed over the outputs of an example. As 1 - sigmoid(x)
 * = sigmoid(-x), both halves are softplus, which never overflows. */
static sgm_value binary_cross_entropy(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                      int32_t count)
{
    (void)count;
    sgm_value targets = sgm__cost_targets(call, graph, inputs[0]);
    sgm_value others = sgm_subtract(graph, sgm_number(graph, 1), targets);
    sgm_value yes = binary_part(graph, targets, inputs[0]);
    sgm_value no = binary_part(graph, others, sgm_negate(graph, inputs[0]));
    return sgm__cost_sum_of_examples(call, graph, sgm_add(graph, yes, no));
}

static sgm_value predict_sigmoid(sgm_layer_call *call, sgm_graph *graph, sgm_value prediction)
{
    (void)call;
    return sgm_sigmoid(graph, prediction);
}

/* -sum over classes of t log(x) where x are probabilities, clipped to [1e-7, 1]. */
static sgm_value negative_log_likelihood(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs,
                                         int32_t count)
{
    (void)count;
    sgm_value logarithm = sgm_log(graph, sgm_clip(graph, inputs[0], MINIMUM_PROBABILITY, 1));
    sgm_value likelihood = sgm_multiply(graph, sgm__cost_shares(call, graph, inputs[0]), logarithm);
    likelihood = sgm__cost_sum_of_last(graph, likelihood, false);
    return sgm_negate(graph, sgm__cost_mean_of_steps(call, graph, likelihood));
}

static const sgm_option arguments[] = {SGM__COST_ARGUMENTS};
static const sgm_option class_arguments[] = {SGM__COST_ARGUMENTS, SGM__COST_CLASSES};
static const sgm_option softmax_arguments[] = {
    SGM__COST_ARGUMENTS,
    SGM__COST_CLASSES,
    {.name = "label_smoothing",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 0.9999,
     .doc = "the share of the targets that all classes get alike",
     .live = true},
    {.name = "class_weights",
     .kind = SGM_KIND_NUMBER,
     .list = true,
     .minimum = 0,
     .maximum = 1e12,
     .doc = "a factor for the cost of each class; 1 unless given"},
    {.name = "gamma",
     .kind = SGM_KIND_NUMBER,
     .minimum = 0,
     .maximum = 100,
     .doc = "the cost of a class of probability p times (1 - p) to this power",
     .live = true},
    {.name = "ignore_negative",
     .kind = SGM_KIND_BOOLEAN,
     .doc = "targets are numbers of classes, and those below 0 do not count"},
};

SGM__COST(softmax_cross_entropy,
          "-log of the probability of the right class, for logits; the output is their softmax",
          softmax_arguments, SGM_LAYER_CLASSIFIES, predict_softmax,
          .formula = "-sum over classes of t log softmax(x)", .example = "softmax_cross_entropy");
SGM__COST(squared_difference, "the sum of all squared differences in the batch", arguments, SGM_LAYER_SUM,
          NULL, .formula = "sum of (x - t)^2", .example = "squared_difference");
SGM__COST(mean_squared, "the mean of all squared differences", arguments, 0, NULL,
          .formula = "mean of (x - t)^2", .example = "mean_squared");
SGM__COST(root_mean_squared, "the root of the mean of all squared differences in the batch", arguments, 0,
          NULL, .formula = "sqrt(mean of (x - t)^2)", .example = "root_mean_squared");
SGM__COST(binary_cross_entropy, "for each output on its own, on logits; the output is their sigmoid",
          arguments, SGM_LAYER_CLASSIFIES, predict_sigmoid,
          .formula = "-sum over outputs of t log sigmoid(x) + (1 - t) log(1 - sigmoid(x))",
          .example = "binary_cross_entropy");
SGM__COST(negative_log_likelihood,
          "-log of the probability of the right class, for probabilities not below 1e-7", class_arguments,
          SGM_LAYER_CLASSIFIES, NULL, .formula = "-sum over classes of t log x",
          .example = "negative_log_likelihood");
