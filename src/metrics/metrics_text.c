/* Metrics as text, computed without hooks: "confusion f1 top_k(1, 3) binary_accuracy(0.3, 0.7)".
 *
 * For sgm_metrics_compute (two tensors of a program) and sgm_trainer_evaluate_metrics (a pass of
 * src/train/trainer_pass.c). Names are separated by spaces or commas; numbers in parentheses are what the
 * metric takes (SGM__TAKES_...): the k of top_k, the bounds of binary_accuracy. Texts of hooks have more
 * arguments, hooks_ready/metric_rows.c. */
#include "metrics/metrics.h"

/* What a metric takes in parentheses. */
static const sgm_option top_rows[] = {SGM__TOPS_ROW}, bound_rows[] = {SGM__BOUND_ROWS};

sgm_status sgm__metric_read_options(const sgm__call *call, sgm_metric_options *options)
{
    size_t count;
    const double *tops = sgm__call_numbers(call, "tops", &count);
    if (count > SGM_MAX_TOPS)
        return sgm__call_fail(call, "tops", "at most %d numbers", SGM_MAX_TOPS);
    for (size_t i = 0; i < count; i++)
        options->tops[i] = (int32_t)tops[i];
    if (sgm__call_has(call, "threshold"))
        options->threshold = sgm__call_number(call, "threshold");
    if (sgm__call_has(call, "lower"))
        options->lower = sgm__call_number(call, "lower");
    if (sgm__call_has(call, "upper"))
        options->upper = sgm__call_number(call, "upper");
    return SGM_OK;
}

/* One number for binary_accuracy is both bounds: a threshold. */
static sgm_status read_options(sgm__phrase *phrase, sgm__call *call, sgm_metric_options *options)
{
    SGM_TRY(sgm__call_read(phrase, call));
    SGM_TRY(sgm__metric_read_options(call, options));
    if (sgm__call_has(call, "lower") && !sgm__call_has(call, "upper"))
        options->upper = options->lower;
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
    size_t at = phrase->at;
    if (phrase->kind != SGM__PHRASE_WORD)
        return expected_metric(phrase);
    *metric = sgm__metric_find(phrase->text + phrase->at, phrase->length);
    if (*metric == SIZE_MAX)
        return sgm__phrase_within(phrase, at);
    sgm__phrase_next(phrase);
    const sgm__metric *found = sgm__metric_at(*metric);
    sgm__call call = {.name = found->name, .at = at};
    if (found->takes == SGM__TAKES_TOPS)
        call.rows = top_rows, call.row_count = sizeof top_rows / sizeof *top_rows;
    else if (found->takes == SGM__TAKES_BOUNDS)
        call.rows = bound_rows, call.row_count = sizeof bound_rows / sizeof *bound_rows;
    sgm_status status = read_options(phrase, &call, options);
    sgm__call_free(&call);
    SGM_TRY(status);
    if (sgm__metric_check(*metric, options) != SGM_OK)
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
            SGM_TRY(sgm__metric_compute(sgm__metric_at(metric), predictions, &options, results));
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
