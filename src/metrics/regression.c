/* Errors of numbers, and the share of the targets' variance that outputs explain.
 *
 * Over all n values: mean |t - o|, sqrt(mean (t - o)^2), max |t - o|. R squared is 1 - sum (t - o)^2 / sum
 * (t - mean t)^2 for each column, then the mean over columns. All sums are in double, in the order of the
 * rows. */
#include "metrics/metrics.h"

#include <math.h>

#define MAXIMUM_TARGETS 30 /* of which each is told by itself */

/* What is left of all rows and columns; NaN: there are no values, or for r_squared no column that varies. */
typedef struct errors {
    double mean_absolute, root_mean_squared, maximum, r_squared;
} errors;

/* R squared of one column, in two passes, since the mean comes first. False if the targets are all equal,
 * which is compared exactly: the variance of equal numbers need not come out as 0. */
static bool r_squared_of(const sgm__predictions *a, int64_t column, double *r_squared)
{
    double sum = 0, residual = 0, total = 0, first = sgm__target_at(a, column);
    bool constant = true;
    for (int64_t row = 0; row < a->rows; row++) {
        double target = sgm__target_at(a, row * a->columns + column);
        sum += target;
        constant = constant && target == first;
    }
    double mean = sum / (double)a->rows;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row * a->columns + column;
        double target = sgm__target_at(a, at), error = target - sgm__output_at(a, at);
        residual += error * error;
        total += (target - mean) * (target - mean);
    }
    *r_squared = 1 - residual / total;
    return !constant;
}

/* NaN in outputs or targets makes every result NaN that it enters; for the maximum the condition sees to
 * that, as comparisons with NaN do not hold. */
static errors errors_of(const sgm__predictions *a)
{
    int64_t count = a->rows * a->columns, columns = 0;
    double absolute = 0, squares = 0, largest = 0, r_squared = 0;
    if (count == 0)
        return (errors){NAN, NAN, NAN, NAN};
    for (int64_t i = 0; i < count; i++) {
        double error = fabs(sgm__target_at(a, i) - sgm__output_at(a, i));
        absolute += error;
        squares += error * error;
        if (!(error <= largest) && !isnan(largest)) /* NaN stays */
            largest = error;
    }
    for (int64_t column = 0; column < a->columns; column++) {
        double one;
        if (!r_squared_of(a, column, &one))
            continue;
        columns++;
        r_squared += one;
    }
    return (errors){absolute / (double)count, sqrt(squares / (double)count), largest,
                    columns > 0 ? r_squared / (double)columns : NAN};
}

/* The same of each column by itself. R squared is NaN where the targets do not vary. */
static void errors_of_column(const sgm__predictions *a, int64_t column, errors *found)
{
    double absolute = 0, squares = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row * a->columns + column;
        double error = sgm__target_at(a, at) - sgm__output_at(a, at);
        absolute += fabs(error);
        squares += error * error;
    }
    found->mean_absolute = absolute / (double)a->rows;
    found->root_mean_squared = sqrt(squares / (double)a->rows);
    if (!r_squared_of(a, column, &found->r_squared))
        found->r_squared = NAN;
}

/* Of several targets, unless there are so many that nobody looks at each: of an autoencoder, say. */
static sgm_status leave_each(const sgm__predictions *a, const sgm__results *results)
{
    double absolute[MAXIMUM_TARGETS], squared[MAXIMUM_TARGETS], r_squared[MAXIMUM_TARGETS];
    if (a->rows == 0 || a->columns < 2 || a->columns > MAXIMUM_TARGETS)
        return SGM_OK;
    for (int64_t i = 0; i < a->columns; i++) {
        errors found;
        errors_of_column(a, i, &found);
        absolute[i] = found.mean_absolute;
        squared[i] = found.root_mean_squared;
        r_squared[i] = found.r_squared;
    }
    SGM_TRY(sgm__leave_numbers(results, "mean_absolute_error_per_target", absolute, a->columns));
    SGM_TRY(sgm__leave_numbers(results, "root_mean_squared_error_per_target", squared, a->columns));
    return sgm__leave_numbers(results, "r_squared_per_target", r_squared, a->columns);
}

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    (void)options;
    errors found = errors_of(predictions);
    SGM_TRY(sgm__leave_number(results, "mean_absolute_error", found.mean_absolute));
    SGM_TRY(sgm__leave_number(results, "root_mean_squared_error", found.root_mean_squared));
    SGM_TRY(sgm__leave_number(results, "maximum_error", found.maximum));
    SGM_TRY(sgm__leave_number(results, "r_squared", found.r_squared));
    return leave_each(predictions, results);
}

const sgm__metric_record sgm__metric_regression = {
    .formula = "mean |t - o|, sqrt(mean (t - o)^2), max |t - o|, 1 - sum (t - o)^2 / sum (t - mean t)^2",
    .compute = compute,
    .results = {SGM__NUMBER("mean_absolute_error", "mean distance of outputs from targets", SGM_MINIMUM,
                            SGM__HEADLINE),
                SGM__NUMBER("root_mean_squared_error", "root of the mean squared distance", SGM_MINIMUM,
                            SGM__RECORDED),
                SGM__NUMBER("maximum_error", "largest distance of an output from its target", SGM_MINIMUM,
                            SGM__RECORDED),
                SGM__NUMBER("r_squared", "share of the targets' variance that outputs explain", SGM_MAXIMUM,
                            SGM__HEADLINE),
                SGM__TENSOR("mean_absolute_error_per_target", "of each of several targets"),
                SGM__TENSOR("root_mean_squared_error_per_target", "of each of several targets"),
                SGM__TENSOR("r_squared_per_target", "of each of several targets")},
};
