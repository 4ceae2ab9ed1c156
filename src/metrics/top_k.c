/* The share of predictions whose target is among the k largest outputs (top-k accuracy); with k = 1 the
 * accuracy.
 *
 * The number for each k is left as top_K. Rows are not sorted: it is enough to count the outputs that are
 * larger than the target's, which takes columns steps for each row and k. */
#include "metrics/metrics.h"

#include <stdio.h>

/* Whether fewer than k outputs are larger than that of `class`; of equal outputs the first counts as
 * larger, so that exactly k classes are among the k largest. The comparisons are written as negations so
 * that NaN, of the class or of others, counts as larger: a NaN output is among no largest ones. */
static bool is_among(const sgm__predictions *a, int64_t row, int64_t class, int64_t k)
{
    int64_t first = row * a->columns, larger = 0;
    double own = sgm__output_at(a, first + class);
    for (int64_t i = 0; i < a->columns && larger < k; i++) {
        double other = sgm__output_at(a, first + i);
        larger += i < class ? !(other < own) : i > class && !(other <= own);
    }
    return larger < k;
}

static double top_k(const sgm__predictions *a, int64_t k)
{
    int64_t right = 0;
    for (int64_t row = 0; row < a->rows; row++)
        right += is_among(a, row, sgm__target_of(a, row), k);
    return sgm__share(right, a->rows);
}

/* k above the number of columns would always be right, and is an error. */
static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    static const int32_t default_value[SGM_MAX_TOPS] = {1};
    const int32_t *tops = options->tops[0] != 0 ? options->tops : default_value;
    if (predictions->columns < 2)
        return sgm_fail(SGM_ERROR_SHAPE, "top_k wants outputs of at least 2 classes, but there is one "
                                         "output: binary_accuracy is for that");
    for (int i = 0; i < SGM_MAX_TOPS && tops[i] != 0; i++) {
        char name[32];
        if (tops[i] > predictions->columns)
            return sgm_fail(SGM_ERROR_ARGUMENT, "top_k: %d largest of only %lld outputs are always right",
                            (int)tops[i], (long long)predictions->columns);
        snprintf(name, sizeof name, "top_%d", (int)tops[i]);
        SGM_TRY(sgm__leave_number(results, name, top_k(predictions, tops[i])));
    }
    return SGM_OK;
}

const sgm__metric_record sgm__metric_top_k = {
    .formula = "predictions whose target is among the k largest outputs / predictions",
    .compute = compute,
    .results = {SGM__NUMBER("top_1", "share of predictions that are right", SGM_MAXIMUM,
                            SGM__RECORDED), /* the line has an accuracy */
                SGM__NUMBER("top_3", "share of predictions with the target among the 3 largest outputs",
                            SGM_MAXIMUM, SGM__HEADLINE),
                SGM__NUMBER("top_5", "share of predictions with the target among the 5 largest outputs",
                            SGM_MAXIMUM, SGM__HEADLINE)},
};
