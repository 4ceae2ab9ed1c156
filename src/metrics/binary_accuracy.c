/* The share of correct predictions of a network with one output, by a threshold or by two bounds.
 *
 * The output is compared as it is, so the default threshold of 0.5 suits a probability (sigmoid). Several
 * classes are for top_k.c. As for all metrics, hooks_ready/metric.c or metrics_text.c calls compute(). */
#include "metrics/metrics.h"

/* A target above 0.5 wants an output above `upper`, any other one an output below `lower`; in between, a
 * prediction is wrong in both cases. Equal bounds are a threshold without an in between: an output of
 * exactly the threshold is class 0, as in sgm__class_of. NaN is neither, and so wrong. */
static double binary_accuracy(const sgm__predictions *a, double lower, double upper)
{
    int64_t right = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        double value = sgm__output_at(a, row);
        bool one = value > upper, zero = value < lower || (lower == upper && value == lower);
        right += sgm__target_of(a, row) == 1 ? one : zero;
    }
    return sgm__share(right, a->rows);
}

/* With bounds the number has another name, as it cannot be compared with that of a threshold. */
static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    bool bounds = options->lower != 0 || options->upper != 0;
    double lower = bounds ? options->lower : sgm__threshold_of(options),
           upper = bounds ? options->upper : sgm__threshold_of(options);
    if (predictions->columns != 1)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "binary_accuracy wants one output, but there are %lld: top_k is for these",
                        (long long)predictions->columns);
    return sgm__leave_number(results, bounds ? "binary_accuracy_bounds" : "binary_accuracy",
                             binary_accuracy(predictions, lower, upper));
}

const sgm__metric_record sgm__metric_binary_accuracy = {
    .formula = "correct predictions / predictions; above the threshold it is 1",
    .compute = compute,
    .results = {SGM__NUMBER("binary_accuracy", "share of correct predictions of the one output", SGM_MAXIMUM,
                            SGM__HEADLINE),
                SGM__NUMBER("binary_accuracy_bounds",
                            "share of correct predictions, those between bounds wrong", SGM_MAXIMUM,
                            SGM__HEADLINE)},
};
