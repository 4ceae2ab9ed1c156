/* Metrics as text, computed without hooks: "confusion f1 top_k(1, 3) binary_accuracy(0.3, 0.7)".
 *
 * For sgm_metrics_compute (two tensors of a program) and sgm_trainer_evaluate_metrics (a pass of
 * src/train/trainer_pass.c). Names are separated by spaces or commas; numbers in parentheses are what the
 * metric takes (SGM__TAKES_...): the k of top_k, the bounds of binary_accuracy. Texts of hooks have other
 * arguments and another reader, hooks/hook_text.c. */
#include "metrics/metrics.h"
#include "text/phrase.h"

#include <math.h>

/* "(1, 3)"; no parentheses, no numbers. */
static sgm_status take_numbers(sgm__phrase *phrase, double numbers[SGM_MAX_TOPS], size_t *count)
{
    *count = 0;
    if (!sgm__phrase_take(phrase, "("))
        return SGM_OK;
    do {
        if (*count == SGM_MAX_TOPS)
            return sgm__phrase_fail(phrase, phrase->at, "at most %d numbers", SGM_MAX_TOPS);
        SGM_TRY(sgm__phrase_number(phrase, &numbers[*count]));
        ++*count;
    } while (sgm__phrase_take(phrase, ","));
    return sgm__phrase_take(phrase, ")") ? SGM_OK : sgm__phrase_expected(phrase, "')'", NULL, 0);
}

/* Puts the numbers into the options that the metric takes. One number for binary_accuracy is both bounds:
 * a threshold. */
static sgm_status set_numbers(const sgm__metric *metric, const double *numbers, size_t count,
                              sgm_metric_options *options)
{
    size_t maximum = metric->takes == SGM__TAKES_TOPS     ? SGM_MAX_TOPS
                     : metric->takes == SGM__TAKES_BOUNDS ? 2
                                                          : 0;
    if (count > maximum)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s takes at most %zu numbers, got %zu", metric->name, maximum,
                        count);
    for (size_t i = 0; i < count && metric->takes == SGM__TAKES_TOPS; i++) {
        if (!(numbers[i] >= 1 && numbers[i] <= INT32_MAX && numbers[i] == floor(numbers[i])))
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected a whole number from 1 to %d, got %g",
                            metric->name, INT32_MAX, numbers[i]);
        options->tops[i] = (int32_t)numbers[i];
    }
    if (count > 0 && metric->takes == SGM__TAKES_BOUNDS) {
        options->lower = numbers[0];
        options->upper = numbers[count - 1];
    }
    return SGM_OK;
}

static sgm_status expected_metric(const sgm__phrase *phrase)
{
    size_t count;
    const char *const *names = sgm_metric_names(&count);
    return sgm__phrase_expected(phrase, "the name of a metric", names, count);
}

/* One metric with its numbers; a comma behind it is optional. Errors get the column of the name. */
static sgm_status take_metric(sgm__phrase *phrase, size_t *metric, sgm_metric_options *options)
{
    size_t at = phrase->at, count;
    double numbers[SGM_MAX_TOPS];
    if (phrase->kind != SGM__PHRASE_WORD)
        return expected_metric(phrase);
    *metric = sgm__metric_find(phrase->text + phrase->at, phrase->length);
    if (*metric == SIZE_MAX)
        return sgm__phrase_within(phrase, at);
    sgm__phrase_next(phrase);
    SGM_TRY(take_numbers(phrase, numbers, &count));
    if (set_numbers(&sgm__metrics[*metric], numbers, count, options) != SGM_OK ||
        sgm__metric_check(*metric, options) != SGM_OK)
        return sgm__phrase_within(phrase, at);
    sgm__phrase_take(phrase, ",");
    return SGM_OK;
}

/* Computes while it reads, so a mistake at the end of the text is found after the metrics in front of it;
 * to find it first, call once with `predictions` NULL. */
sgm_status sgm__metrics_compute(const char *metrics, const sgm__predictions *predictions,
                                const sgm__results *results)
{
    sgm__phrase phrase;
    SGM_TRY(sgm__phrase_begin(&phrase, metrics));
    do {
        size_t metric = 0;
        sgm_metric_options options = {.struct_size = sizeof options};
        SGM_TRY(take_metric(&phrase, &metric, &options));
        if (predictions != NULL)
            SGM_TRY(sgm__metrics[metric].record->compute(predictions, &options, results));
    } while (phrase.kind != SGM__PHRASE_END);
    return SGM_OK;
}

/* The first time a result gets its row in the registry, which says what it is. */
sgm_status sgm__leave_in_registry(void *registry, const char *name, const sgm_content *content,
                                  sgm__weight weight)
{
    (void)weight;
    const sgm_option *row = sgm__result_row(name);
    if (!sgm_registry_has(registry, name) && row != NULL)
        SGM_TRY(sgm_registry_define(registry, row));
    return sgm_registry_set_own(registry, name, *content);
}

sgm_status sgm_metrics_compute(const char *metrics, sgm_tensor *outputs, sgm_tensor *targets,
                               sgm_registry *results)
{
    if (metrics == NULL || outputs == NULL || targets == NULL || results == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_metrics_compute: expected %s, got NULL",
                        metrics == NULL   ? "names of metrics"
                        : results == NULL ? "a registry for results"
                                          : "tensors of outputs and targets");
    sgm__predictions predictions;
    sgm_status status = sgm__predictions_open(&predictions, outputs, targets);
    const sgm__results into = {sgm__leave_in_registry, results};
    if (status == SGM_OK)
        status = sgm__metrics_compute(metrics, &predictions, &into);
    sgm__predictions_close(&predictions);
    return status;
}
