/* Precision, recall and F1 of classes, and their means (van Rijsbergen, Information Retrieval, 1979).
 *
 * All are computed from the confusion matrix (confusion.c), so this costs rows + classes^2. With TP counts
 * on the diagonal, a class has the precision TP / predictions of it, the recall TP / examples of it, and
 * F1 = 2 TP / (predictions + examples), which is their harmonic mean without its 0 / 0. Three means over
 * classes: macro (each class counts the same), weighted (by its examples), micro (all counts together). */
#include "metrics/metrics.h"

#include <math.h>
#include <stdio.h>

/* What one class has reached. */
typedef struct class_score {
    double precision, recall, f1; /* NaN: neither examples nor predictions */
    int64_t examples;
} class_score;

/* 0 where sgm__share has NaN: a class with examples and without predictions has a precision of 0, not
 * none. */
static double share_or_zero(int64_t part, int64_t all)
{
    return all > 0 ? (double)part / (double)all : 0;
}

/* Sums a row (examples of the class) and a column (predictions of it) of the matrix. Only a class with
 * neither is NaN, and does not count in the means. */
static class_score score_of(const int64_t *counts, int64_t classes, int64_t class)
{
    int64_t examples = 0, predictions = 0, right = counts[class * classes + class];
    for (int64_t i = 0; i < classes; i++) {
        examples += counts[class * classes + i];
        predictions += counts[i * classes + class];
    }
    if (examples + predictions == 0)
        return (class_score){NAN, NAN, NAN, 0};
    return (class_score){share_or_zero(right, predictions), share_or_zero(right, examples),
                         share_or_zero(2 * right, examples + predictions), examples};
}

/* One of precision, recall and F1, by its place in class_score, so that all three go through one function. */
typedef struct class_measure {
    const char *name;
    size_t offset; /* in class_score */
} class_measure;

/* A double at a byte offset; memcpy, as a cast would be no valid access. */
static double measure_of(const class_score *score, const class_measure *measure)
{
    double value;
    memcpy(&value, (const char *)score + measure->offset, sizeof value);
    return value;
}

/* Leaves one measure as four results: plain, _macro, _weighted and _per_class (classes). The plain one is
 * that of class 1 for a network with one output, where class 1 is what is looked for, and macro else.
 * Weights of classes that are NaN would be 0 anyway: they have no examples. */
static sgm_status leave_measure(const class_measure *measure, const class_score *scores, int64_t classes,
                                bool binary, const sgm__results *results)
{
    char name[64];
    double sum = 0, weighted = 0, examples = 0, counted = 0;
    double *each = sgm__calloc((size_t)classes, sizeof *each);
    if (each == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < classes; i++) {
        each[i] = measure_of(&scores[i], measure);
        if (isnan(each[i]))
            continue;
        sum += each[i];
        counted++;
        weighted += each[i] * (double)scores[i].examples;
        examples += (double)scores[i].examples;
    }
    double macro = counted > 0 ? sum / counted : NAN;
    sgm_status status = sgm__leave_number(results, measure->name, binary ? each[1] : macro);
    snprintf(name, sizeof name, "%s_macro", measure->name);
    if (status == SGM_OK)
        status = sgm__leave_number(results, name, macro);
    snprintf(name, sizeof name, "%s_weighted", measure->name);
    if (status == SGM_OK)
        status = sgm__leave_number(results, name, examples > 0 ? weighted / examples : NAN);
    snprintf(name, sizeof name, "%s_per_class", measure->name);
    if (status == SGM_OK)
        status = sgm__leave_numbers(results, name, each, classes);
    sgm__free(each);
    return status;
}

/* All results. Micro F1 is the accuracy: over all classes, predictions and examples are the same in
 * number. */
static sgm_status leave_measures(const int64_t *counts, int64_t classes, bool binary,
                                 const sgm__results *results)
{
    static const class_measure measures[] = {{"precision", offsetof(class_score, precision)},
                                             {"recall", offsetof(class_score, recall)},
                                             {"f1", offsetof(class_score, f1)}};
    int64_t examples = 0, right = 0;
    class_score *scores = sgm__calloc((size_t)classes, sizeof *scores);
    if (scores == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < classes; i++) {
        scores[i] = score_of(counts, classes, i);
        examples += scores[i].examples;
        right += counts[i * classes + i];
    }
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < 3 && status == SGM_OK; i++)
        status = leave_measure(&measures[i], scores, classes, binary, results);
    sgm__free(scores);
    SGM_TRY(status);
    return sgm__leave_number(results, "f1_micro", examples > 0 ? (double)right / (double)examples : NAN);
}

static sgm_status compute(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results)
{
    sgm_tensor *counts = sgm__confusion(predictions, options);
    if (counts == NULL)
        return sgm__last_failure();
    sgm_status status = leave_measures(sgm_tensor_const_data(counts), sgm__predictions_classes(predictions),
                                       predictions->columns == 1, results);
    sgm_tensor_free(counts);
    return status;
}

const sgm__metric_record sgm__metric_f1 = {
    .formula = "precision = TP / predicted, recall = TP / there, f1 = 2 TP / (predicted + there); their "
               "means over classes",
    .compute = compute,
    .results = {SGM__NUMBER("precision", "share of the predictions of a class that are right", SGM_MAXIMUM,
                            SGM__RECORDED),
                SGM__NUMBER("recall", "share of the examples of a class that are found", SGM_MAXIMUM,
                            SGM__RECORDED),
                SGM__NUMBER("f1", "harmonic mean of precision and recall", SGM_MAXIMUM, SGM__HEADLINE),
                SGM__NUMBER("precision_macro", "mean precision of classes", SGM_MAXIMUM, SGM__QUIET),
                SGM__NUMBER("recall_macro", "mean recall of classes", SGM_MAXIMUM, SGM__QUIET),
                SGM__NUMBER("f1_macro", "mean F1 of classes", SGM_MAXIMUM, SGM__QUIET),
                SGM__NUMBER("precision_weighted", "mean precision, each class by its examples", SGM_MAXIMUM,
                            SGM__QUIET),
                SGM__NUMBER("recall_weighted", "mean recall, each class by its examples", SGM_MAXIMUM,
                            SGM__QUIET),
                SGM__NUMBER("f1_weighted", "mean F1, each class by its examples", SGM_MAXIMUM, SGM__QUIET),
                SGM__NUMBER("f1_micro", "F1 of all counts together: the accuracy", SGM_MAXIMUM, SGM__QUIET),
                SGM__TENSOR("precision_per_class", "precision of each class"),
                SGM__TENSOR("recall_per_class", "recall of each class"),
                SGM__TENSOR("f1_per_class", "F1 of each class")},
};
