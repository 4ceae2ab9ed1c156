/* Perplexity: exp of the mean cross-entropy of a prediction, exp(mean of -sum target * log(output)); 1 is
 * perfect, the number of classes is guessing.
 *
 * Outputs must be probabilities of classes (softmax, sigmoid), natural logarithm. The loss of a run may
 * weight or smooth; this does not. */
#include "metrics/metrics.h"

#include <math.h>

/* -target * log(probability), where 0 log 0 is 0, its limit. */
static double surprise(double target, double probability)
{
    return target > 0 ? -target * log(probability) : 0;
}

/* Rows whose targets are all 0 are padding and do not count; with one output every row counts, as a target
 * of 0 is a class there, with the probability 1 - output. 1.001 leaves room for sums that rounding in half
 * precision puts above 1. NaN among the outputs makes the result NaN. */
static sgm_status perplexity_of(const sgm__predictions *a, double *perplexity)
{
    double sum = 0;
    int64_t counted = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        double targets = a->columns == 1;
        for (int64_t i = row * a->columns; i < (row + 1) * a->columns; i++) {
            double target = sgm__target_at(a, i), output = sgm__output_at(a, i);
            if (output < 0 || output > 1.001)
                return sgm_fail(SGM_ERROR_NUMERIC,
                                "perplexity wants probabilities from 0 to 1, but an output is %g: use "
                                "softmax_cross_entropy or binary_cross_entropy",
                                output);
            sum += surprise(target, output);
            if (a->columns == 1)
                sum += surprise(1 - target, 1 - output);
            targets += fabs(target);
        }
        counted += targets > 0;
    }
    *perplexity = counted > 0 ? exp(sum / (double)counted) : NAN;
    return SGM_OK;
}

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    (void)options;
    double perplexity;
    SGM_TRY(perplexity_of(predictions, &perplexity));
    return sgm__leave_number(results, "perplexity", perplexity);
}

const sgm__metric_record sgm__metric_perplexity = {
    .formula = "exp(mean of -sum t log o)",
    .compute = compute,
    .results = {SGM__NUMBER("perplexity", "exp of the mean cross-entropy of a prediction", SGM_MINIMUM,
                            SGM__HEADLINE)},
};
