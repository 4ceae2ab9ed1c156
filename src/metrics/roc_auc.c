/* The area under the curve of true over false positives, by ranks (Hanley and McNeil, 1982; Fawcett,
 * 2006).
 *
 * The area is the probability that a positive example has a larger output than a negative one, equal
 * outputs counting half. With R the sum of the positives' ranks among all P + N outputs, sorted from small
 * to large, it is (R - P (P + 1) / 2) / (P N): the Mann-Whitney statistic. So no curve is drawn, and no
 * threshold is needed. Each column is one class against the rest. */
#include "metrics/metrics.h"

#include <math.h>
#include <stdlib.h>

/* An output of one column, and whether its target is above 0.5. */
typedef struct ranked {
    double value;
    bool positive;
} ranked;

/* For qsort, from small to large; there is no NaN among the values. */
static int compare_ranked(const void *a, const void *b)
{
    double left = ((const ranked *)a)->value, right = ((const ranked *)b)->value;
    return (left > right) - (left < right);
}

/* Sum of the positives' ranks from 1; equal values share the mean of their ranks, (first + last) / 2. */
static double positive_ranks(const ranked *sorted, int64_t count)
{
    double sum = 0;
    for (int64_t first = 0, end; first < count; first = end) {
        int64_t positives = 0;
        for (end = first; end < count && sorted[end].value == sorted[first].value; end++)
            positives += sorted[end].positive;
        sum += (double)positives * ((double)(first + 1) + (double)end) / 2;
    }
    return sum;
}

/* The area of one column. NaN if one side has no examples, or if an output is NaN, which has no rank. The
 * counts are multiplied as doubles: P * N may be beyond int64. */
static sgm_status area_of(const sgm__predictions *a, int64_t column, double *area)
{
    int64_t positives = 0;
    bool ordered = true;
    ranked *values = sgm__calloc((size_t)a->rows, sizeof *values);
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t row = 0; row < a->rows; row++) {
        int64_t at = row * a->columns + column;
        values[row] = (ranked){sgm__output_at(a, at), sgm__target_at(a, at) > 0.5};
        positives += values[row].positive;
        ordered = ordered && !isnan(values[row].value);
    }
    int64_t negatives = a->rows - positives;
    *area = NAN;
    if (ordered && positives > 0 && negatives > 0) {
        qsort(values, (size_t)a->rows, sizeof *values, compare_ranked);
        double above = positive_ranks(values, a->rows) - (double)positives * (double)(positives + 1) / 2;
        *area = above / ((double)positives * (double)negatives);
    }
    sgm__free(values);
    return SGM_OK;
}

/* Each class, and their mean without those that are NaN. */
static sgm_status leave_areas(const sgm__predictions *predictions, double *areas, const sgm__results *results)
{
    double sum = 0, counted = 0;
    for (int64_t i = 0; i < predictions->columns; i++) {
        SGM_TRY(area_of(predictions, i, &areas[i]));
        sum += isnan(areas[i]) ? 0 : areas[i];
        counted += !isnan(areas[i]);
    }
    SGM_TRY(sgm__leave_number(results, "roc_auc", counted > 0 ? sum / counted : NAN));
    return sgm__leave_numbers(results, "roc_auc_per_class", areas, predictions->columns);
}

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    (void)options;
    double *areas = sgm__calloc((size_t)predictions->columns, sizeof *areas);
    if (areas == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = leave_areas(predictions, areas, results);
    sgm__free(areas);
    return status;
}

const sgm__metric_record sgm__metric_roc_auc = {
    .formula = "(R - P (P + 1) / 2) / (P N), R the sum of the positives' ranks",
    .compute = compute,
    .results = {SGM__NUMBER("roc_auc", "area under the curve of true over false positives", SGM_MAXIMUM,
                            SGM__HEADLINE),
                SGM__TENSOR("roc_auc_per_class", "the same of each class against the rest")},
};
