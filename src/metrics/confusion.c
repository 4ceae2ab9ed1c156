/* How often which class was predicted as which, (classes, classes), and the worst of the wrong
 * predictions.
 *
 * f1.c computes precision and recall from the same counts (sgm__confusion); confusion_text.c writes the
 * matrix as lines. Targets and predictions are classes: sgm__target_of and sgm__class_of of predictions.c. */
#include "metrics/metrics.h"

#define MAXIMUM_CLASSES 4096 /* a matrix of 128 MiB */
#define MAXIMUM_MISTAKES 10  /* for a person to look at */

/* counts[target * classes + prediction]: rows are targets, columns predictions. */
static void count_all(const sgm__predictions *a, double threshold, int64_t *counts)
{
    int64_t classes = sgm__predictions_classes(a);
    for (int64_t row = 0; row < a->rows; row++)
        counts[sgm__target_of(a, row) * classes + sgm__class_of(a, row, threshold)]++;
}

/* int64 (classes, classes); NULL with an error. sgm_tensor_create gives zeros. */
sgm_tensor *sgm__confusion(const sgm__predictions *predictions, const sgm_metric_options *options)
{
    int64_t classes = sgm__predictions_classes(predictions);
    if (classes < 2 || classes > MAXIMUM_CLASSES) {
        sgm_fail(SGM_ERROR_UNSUPPORTED, "there are %lld classes, expected at most %d", (long long)classes,
                 MAXIMUM_CLASSES);
        return NULL;
    }
    sgm_shape shape = sgm_shape_of(classes, classes);
    sgm_tensor *counts = sgm_tensor_create(SGM_INT64, &shape);
    if (counts != NULL)
        count_all(predictions, sgm__threshold_of(options), sgm_tensor_data(counts));
    return counts;
}

/* A wrong prediction: its row (its place in the pass), both classes, and how large its output was. */
typedef struct mistake {
    int64_t row, target, prediction;
    double output; /* of the prediction */
} mistake;

/* Finds the wrong predictions with the largest outputs, the most confident ones, in one pass: a sorted
 * list into which each new one is inserted. Returns how many; the worst come first, of equal ones the
 * earlier. With one output, the prediction 0 has the confidence 1 - output. */
static size_t worst_mistakes(const sgm__predictions *a, double threshold, mistake mistakes[MAXIMUM_MISTAKES])
{
    size_t count = 0;
    for (int64_t row = 0; row < a->rows; row++) {
        mistake made = {
            .row = row, .target = sgm__target_of(a, row), .prediction = sgm__class_of(a, row, threshold)};
        if (made.target == made.prediction)
            continue;
        double output = sgm__output_at(a, row * a->columns + (a->columns > 1 ? made.prediction : 0));
        made.output = a->columns == 1 && made.prediction == 0 ? 1 - output : output;
        size_t at = count;
        while (at > 0 && !(mistakes[at - 1].output >= made.output))
            at--;
        if (at == MAXIMUM_MISTAKES)
            continue;
        count += count < MAXIMUM_MISTAKES;
        memmove(&mistakes[at + 1], &mistakes[at], (count - 1 - at) * sizeof *mistakes);
        mistakes[at] = made;
    }
    return count;
}

/* Leaves both results; worst_mistakes as float64 (count, 4): row, target, prediction, output. */
static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    mistake mistakes[MAXIMUM_MISTAKES];
    double numbers[MAXIMUM_MISTAKES * 4];
    SGM_TRY(sgm__leave_tensor(results, "confusion", sgm__confusion(predictions, options)));
    size_t count = worst_mistakes(predictions, sgm__threshold_of(options), mistakes);
    for (size_t i = 0; i < count; i++) {
        const double row[4] = {(double)mistakes[i].row, (double)mistakes[i].target,
                               (double)mistakes[i].prediction, mistakes[i].output};
        memcpy(&numbers[4 * i], row, sizeof row);
    }
    sgm_shape shape = sgm_shape_of((int64_t)count, 4);
    return sgm__leave_tensor(results, "worst_mistakes", sgm_tensor_create_from(SGM_FLOAT64, &shape, numbers));
}

const sgm__metric_record sgm__metric_confusion = {
    .formula = "counts[target, prediction]",
    .compute = compute,
    .results = {SGM__TENSOR("confusion", "how often which class (row) was predicted as which (column)"),
                SGM__TENSOR("worst_mistakes",
                            "place in the pass, target, prediction, output of the prediction")},
};
