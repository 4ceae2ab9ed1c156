/* Intersection over union of classes (Jaccard, 1912), the usual measure of masks: of all rows that are of a
 * class or predicted as it, the share that are both. Rows of pictures are their pixels.
 *
 *   iou of a class = TP / (examples + predictions - TP),   mean_iou = the mean over the classes that occur */
#include "metrics/metrics.h"

/* NaN: neither examples nor predictions. */
static double iou_of(const int64_t *counts, int64_t classes, int64_t class)
{
    int64_t right = counts[class * classes + class], all = -right;
    for (int64_t i = 0; i < classes; i++)
        all += counts[class * classes + i] + counts[i * classes + class];
    return sgm__share(right, all);
}

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    sgm_tensor *confusion = sgm__confusion(predictions, options);
    int64_t classes = sgm__predictions_classes(predictions);
    double *each = confusion != NULL ? sgm__calloc((size_t)classes, sizeof *each) : NULL;
    if (each == NULL) {
        sgm_tensor_free(confusion);
        return sgm__last_failure();
    }
    const int64_t *counts = sgm_tensor_const_data(confusion);
    double sum = 0, counted = 0;
    for (int64_t i = 0; i < classes; i++) {
        each[i] = iou_of(counts, classes, i);
        sum += isnan(each[i]) ? 0 : each[i];
        counted += !isnan(each[i]);
    }
    sgm_status status = sgm__leave_number(results, "mean_iou", counted > 0 ? sum / counted : NAN);
    if (status == SGM_OK)
        status = sgm__leave_numbers(results, "iou_per_class", each, classes);
    sgm__free(each);
    sgm_tensor_free(confusion);
    return status;
}

const sgm__metric_record sgm__metric_mean_iou = {
    .formula = "TP / (examples + predictions - TP) of each class, and the mean over classes that occur",
    .compute = compute,
    .results = {SGM__NUMBER("mean_iou", "mean intersection over union of classes", SGM_MAXIMUM,
                            SGM__HEADLINE),
                SGM__TENSOR("iou_per_class", "intersection over union of each class")},
};
