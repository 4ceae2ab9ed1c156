/* The table of metrics: what each leaves. */
#include "metrics/metrics.h"

#include <math.h>
#include <stdio.h>

#define MAXIMUM_CLASSES 4096

/* --- what results mean --- */

#define RESULT(text, sort, words)                                                                            \
    {                                                                                                        \
        .name = text, .kind = sort, .read_only = true, .doc = words                                          \
    }
static const sgm_option rows[] = {
    RESULT("outputs", SGM_KIND_TENSOR, "of the newest pass, examples first"),
    RESULT("targets", SGM_KIND_TENSOR, "of the newest pass, examples first"),
    RESULT("cost", SGM_KIND_NUMBER, "mean loss of the newest pass"),
    RESULT("top_1", SGM_KIND_NUMBER, "share of predictions that are right"),
    RESULT("top_3", SGM_KIND_NUMBER, "share of predictions with the target among the 3 largest outputs"),
    RESULT("top_5", SGM_KIND_NUMBER, "share of predictions with the target among the 5 largest outputs"),
    RESULT("binary_accuracy", SGM_KIND_NUMBER, "share of correct predictions of the one output"),
    RESULT("binary_accuracy_bounds", SGM_KIND_NUMBER,
           "share of correct predictions, those between bounds wrong"),
    RESULT("confusion", SGM_KIND_TENSOR, "how often which class (row) was predicted as which (column)"),
    RESULT("worst_mistakes", SGM_KIND_TENSOR,
           "place in the pass, target, prediction, output of the prediction"),
    RESULT("precision", SGM_KIND_NUMBER, "share of the predictions of a class that are right"),
    RESULT("recall", SGM_KIND_NUMBER, "share of the examples of a class that are found"),
    RESULT("f1", SGM_KIND_NUMBER, "harmonic mean of precision and recall"),
    RESULT("precision_macro", SGM_KIND_NUMBER, "mean precision of classes"),
    RESULT("recall_macro", SGM_KIND_NUMBER, "mean recall of classes"),
    RESULT("f1_macro", SGM_KIND_NUMBER, "mean F1 of classes"),
    RESULT("precision_weighted", SGM_KIND_NUMBER, "mean precision, each class by its examples"),
    RESULT("recall_weighted", SGM_KIND_NUMBER, "mean recall, each class by its examples"),
    RESULT("f1_weighted", SGM_KIND_NUMBER, "mean F1, each class by its examples"),
    RESULT("f1_micro", SGM_KIND_NUMBER, "F1 of all counts together: the accuracy"),
    RESULT("precision_per_class", SGM_KIND_TENSOR, "precision of each class"),
    RESULT("recall_per_class", SGM_KIND_TENSOR, "recall of each class"),
    RESULT("f1_per_class", SGM_KIND_TENSOR, "F1 of each class"),
    RESULT("roc_auc", SGM_KIND_NUMBER, "area under the curve of true over false positives"),
    RESULT("roc_auc_per_class", SGM_KIND_TENSOR, "the same of each class against the rest"),
    RESULT("mean_absolute_error", SGM_KIND_NUMBER, "mean distance of outputs from targets"),
    RESULT("root_mean_squared_error", SGM_KIND_NUMBER, "root of the mean squared distance"),
    RESULT("maximum_error", SGM_KIND_NUMBER, "largest distance of an output from its target"),
    RESULT("r_squared", SGM_KIND_NUMBER, "share of the targets' variance that outputs explain"),
    RESULT("perplexity", SGM_KIND_NUMBER, "exp of the mean cross-entropy of a prediction"),
};

const sgm_option *sgm__result_row(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static sgm_status leave_number(const sgm__results *results, const char *name, double value,
                               sgm__weight weight)
{
    sgm_content content = sgm_number_content(value);
    return results->leave(results->user, name, &content, weight);
}

/* Takes the tensor; NULL: it failed. */
static sgm_status leave_tensor(const sgm__results *results, const char *name, sgm_tensor *tensor)
{
    if (tensor == NULL)
        return sgm__last_failure();
    sgm_content content = sgm_tensor_content(tensor);
    sgm_status status = results->leave(results->user, name, &content, SGM__QUIET);
    sgm_tensor_free(tensor);
    return status;
}

static sgm_status leave_numbers(const sgm__results *results, const char *name, const double *numbers,
                                int64_t count)
{
    sgm_shape shape = sgm_shape_of(count);
    return leave_tensor(results, name, sgm_tensor_from(SGM_FLOAT64, &shape, numbers));
}

/* --- metrics --- */

static sgm_status leave_cost(const sgm__predictions *predictions, const sgm_metric_options *options,
                             const sgm__results *results)
{
    (void)options;
    if (isnan(predictions->cost))
        return sgm_fail(SGM_ERROR_STATE, "the cost is that of a trainer's pass over data: from outputs and "
                                         "targets alone it cannot be told");
    return leave_number(results, "cost", predictions->cost, SGM__HEADLINE);
}

static sgm_status leave_tops(const sgm__predictions *predictions, const sgm_metric_options *options,
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
        /* the line has an accuracy already */
        sgm__weight weight = tops[i] == 1 ? SGM__RECORDED : SGM__HEADLINE;
        SGM_TRY(leave_number(results, name, sgm__top_k(predictions, tops[i]), weight));
    }
    return SGM_OK;
}

static double threshold_of(const sgm_metric_options *options)
{
    return options->threshold != 0 ? options->threshold : 0.5;
}

static sgm_status leave_binary_accuracy(const sgm__predictions *predictions,
                                        const sgm_metric_options *options, const sgm__results *results)
{
    bool bounds = options->lower != 0 || options->upper != 0;
    double lower = bounds ? options->lower : threshold_of(options),
           upper = bounds ? options->upper : threshold_of(options);
    if (predictions->columns != 1)
        return sgm_fail(SGM_ERROR_SHAPE,
                        "binary_accuracy wants one output, but there are %lld: top_k is for these",
                        (long long)predictions->columns);
    return leave_number(results, bounds ? "binary_accuracy_bounds" : "binary_accuracy",
                        sgm__binary_accuracy(predictions, lower, upper), SGM__HEADLINE);
}

static sgm_tensor *count_confusion(const sgm__predictions *predictions, const sgm_metric_options *options)
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
        sgm__confusion(predictions, threshold_of(options), sgm_tensor_data(counts));
    return counts;
}

static sgm_status leave_confusion(const sgm__predictions *predictions, const sgm_metric_options *options,
                                  const sgm__results *results)
{
    sgm__mistake mistakes[SGM__MAXIMUM_MISTAKES];
    double numbers[SGM__MAXIMUM_MISTAKES * 4];
    SGM_TRY(leave_tensor(results, "confusion", count_confusion(predictions, options)));
    size_t count = sgm__worst_mistakes(predictions, threshold_of(options), mistakes);
    for (size_t i = 0; i < count; i++) {
        const double row[4] = {(double)mistakes[i].row, (double)mistakes[i].target,
                               (double)mistakes[i].prediction, mistakes[i].output};
        memcpy(&numbers[4 * i], row, sizeof row);
    }
    sgm_shape shape = sgm_shape_of((int64_t)count, 4);
    return leave_tensor(results, "worst_mistakes", sgm_tensor_from(SGM_FLOAT64, &shape, numbers));
}

/* One of precision, recall and F1 of all classes. */
typedef struct class_measure {
    const char *name;
    size_t offset; /* in sgm__class_score */
    sgm__weight weight;
} class_measure;

static double measure_of(const sgm__class_score *score, const class_measure *measure)
{
    double value;
    memcpy(&value, (const char *)score + measure->offset, sizeof value);
    return value;
}

static sgm_status leave_measure(const class_measure *measure, const sgm__class_score *scores, int64_t classes,
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
    sgm_status status = leave_number(results, measure->name, binary ? each[1] : macro, measure->weight);
    snprintf(name, sizeof name, "%s_macro", measure->name);
    if (status == SGM_OK)
        status = leave_number(results, name, macro, SGM__QUIET);
    snprintf(name, sizeof name, "%s_weighted", measure->name);
    if (status == SGM_OK)
        status = leave_number(results, name, examples > 0 ? weighted / examples : NAN, SGM__QUIET);
    snprintf(name, sizeof name, "%s_per_class", measure->name);
    if (status == SGM_OK)
        status = leave_numbers(results, name, each, classes);
    sgm__free(each);
    return status;
}

static sgm_status leave_measures(const int64_t *counts, int64_t classes, bool binary,
                                 const sgm__results *results)
{
    static const class_measure measures[] = {
        {"precision", offsetof(sgm__class_score, precision), SGM__RECORDED},
        {"recall", offsetof(sgm__class_score, recall), SGM__RECORDED},
        {"f1", offsetof(sgm__class_score, f1), SGM__HEADLINE}};
    int64_t examples = 0, right = 0;
    sgm__class_score *scores = sgm__calloc((size_t)classes, sizeof *scores);
    if (scores == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < classes; i++) {
        scores[i] = sgm__class_score_of(counts, classes, i);
        examples += scores[i].examples;
        right += counts[i * classes + i];
    }
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < 3 && status == SGM_OK; i++)
        status = leave_measure(&measures[i], scores, classes, binary, results);
    sgm__free(scores);
    SGM_TRY(status);
    return leave_number(results, "f1_micro", examples > 0 ? (double)right / (double)examples : NAN,
                        SGM__QUIET);
}

static sgm_status leave_f1(const sgm__predictions *predictions, const sgm_metric_options *options,
                           const sgm__results *results)
{
    sgm_tensor *counts = count_confusion(predictions, options);
    if (counts == NULL)
        return sgm__last_failure();
    sgm_status status = leave_measures(sgm_tensor_const_data(counts), sgm__predictions_classes(predictions),
                                       predictions->columns == 1, results);
    sgm_tensor_free(counts);
    return status;
}

static sgm_status leave_areas(const sgm__predictions *predictions, double *areas, const sgm__results *results)
{
    double sum = 0, counted = 0;
    for (int64_t i = 0; i < predictions->columns; i++) {
        SGM_TRY(sgm__roc_auc(predictions, i, &areas[i]));
        sum += isnan(areas[i]) ? 0 : areas[i];
        counted += !isnan(areas[i]);
    }
    SGM_TRY(leave_number(results, "roc_auc", counted > 0 ? sum / counted : NAN, SGM__HEADLINE));
    return leave_numbers(results, "roc_auc_per_class", areas, predictions->columns);
}

static sgm_status leave_roc_auc(const sgm__predictions *predictions, const sgm_metric_options *options,
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

static sgm_status leave_regression(const sgm__predictions *predictions, const sgm_metric_options *options,
                                   const sgm__results *results)
{
    (void)options;
    sgm__errors errors = sgm__regression(predictions);
    SGM_TRY(leave_number(results, "mean_absolute_error", errors.mean_absolute, SGM__HEADLINE));
    SGM_TRY(leave_number(results, "root_mean_squared_error", errors.root_mean_squared, SGM__RECORDED));
    SGM_TRY(leave_number(results, "maximum_error", errors.maximum, SGM__RECORDED));
    return leave_number(results, "r_squared", errors.r_squared, SGM__HEADLINE);
}

static sgm_status leave_perplexity(const sgm__predictions *predictions, const sgm_metric_options *options,
                                   const sgm__results *results)
{
    (void)options;
    double perplexity;
    SGM_TRY(sgm__perplexity(predictions, &perplexity));
    return leave_number(results, "perplexity", perplexity, SGM__HEADLINE);
}

/* --- the table --- */

const sgm__metric sgm__metrics[SGM__METRIC_COUNT] = {
    {"cost", "mean loss", SGM__TAKES_NOTHING, leave_cost},
    {"top_k", "share of predictions with the target among the k largest outputs", SGM__TAKES_TOPS,
     leave_tops},
    {"binary_accuracy", "share of correct predictions of one output", SGM__TAKES_BOUNDS,
     leave_binary_accuracy},
    {"confusion", "how often which class was predicted as which", SGM__TAKES_NOTHING, leave_confusion},
    {"f1", "precision, recall and F1", SGM__TAKES_NOTHING, leave_f1},
    {"roc_auc", "area under the curve of true over false positives", SGM__TAKES_NOTHING, leave_roc_auc},
    {"regression", "mean absolute, root mean squared and maximum error, R squared", SGM__TAKES_NOTHING,
     leave_regression},
    {"perplexity", "exp of the mean cross-entropy", SGM__TAKES_NOTHING, leave_perplexity},
};

const char *const *sgm_metric_names(size_t *count)
{
    static const char *const names[SGM__METRIC_COUNT] = {"cost", "top_k",   "binary_accuracy", "confusion",
                                                         "f1",   "roc_auc", "regression",      "perplexity"};
    *count = SGM__METRIC_COUNT;
    return names;
}

size_t sgm__metric_find(const char *name, size_t length)
{
    char copy[64];
    size_t count;
    for (size_t i = 0; i < SGM__METRIC_COUNT; i++)
        if (strlen(sgm__metrics[i].name) == length && memcmp(sgm__metrics[i].name, name, length) == 0)
            return i;
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    const char *near = sgm__nearest(copy, sgm_metric_names(&count), SGM__METRIC_COUNT);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown metric '%s'%s%s%s", copy, near != NULL ? "; did you mean '" : "",
             near != NULL ? near : "",
             near != NULL ? "'?"
                          : "; there are cost, top_k, binary_accuracy, confusion, f1, roc_auc, regression, "
                            "perplexity");
    return SIZE_MAX;
}

static bool are_tops(const int32_t tops[SGM_MAX_TOPS])
{
    for (int i = 0; i < SGM_MAX_TOPS; i++)
        if (tops[i] < 0 || (tops[i] > 0 && i > 0 && tops[i - 1] == 0))
            return false;
    return true;
}

sgm_status sgm__metric_check(size_t metric, const sgm_metric_options *options)
{
    const sgm__metric *self = &sgm__metrics[metric];
    if (self->takes != SGM__TAKES_TOPS && options->tops[0] != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no .tops", self->name);
    if (self->takes != SGM__TAKES_BOUNDS && (options->lower != 0 || options->upper != 0))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s has no .lower and .upper", self->name);
    if (!are_tops(options->tops))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the numbers of largest outputs must be 1 or more",
                        self->name);
    if (!(options->lower <= options->upper))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the lower bound, %g, must not be above the upper one, %g",
                        self->name, options->lower, options->upper);
    return SGM_OK;
}
