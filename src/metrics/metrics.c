/* The table of metrics, and what follows from it: names, results, and which way a result is better.
 *
 * What a metric computes is in a file of its own (metrics.h says what such a file has); which options it
 * takes is in SGM__METRICS. Hooks of metrics are hooks_ready/metric.c, texts of hooks
 * hooks_ready/metric_rows.c, texts without hooks metrics_text.c. Searches, early stopping and best
 * checkpoints ask sgm__is_better_below here when nobody tells them a direction. */
#include "metrics/metrics.h"
#include "text/names.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* Rows, then what programs have added, which only grows: whoever has read the count may read as many entries
 * without the lock. */
static sgm__metric metrics[SGM__METRIC_ROWS + SGM__ADDED_METRICS] = {
#define ROW(id, what, words) {#id, words, SGM__TAKES_##what, &sgm__metric_##id, NULL},
    SGM__METRICS(ROW)};
static const char *names[SGM__METRIC_ROWS + SGM__ADDED_METRICS] = {
#define NAME(id, what, words) #id,
    SGM__METRICS(NAME)};
static sgm__metric_record added_records[SGM__ADDED_METRICS];
static _Atomic size_t metric_count = SGM__METRIC_ROWS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const sgm__metric *sgm__metric_at(size_t index)
{
    return &metrics[index];
}

const char *const *sgm_metric_names(size_t *count)
{
    *count = metric_count;
    return names;
}

/* The caller holds the lock. */
static sgm_status append(const sgm_metric_type *type)
{
    size_t at = metric_count;
    if (at == SGM__METRIC_ROWS + SGM__ADDED_METRICS)
        return sgm_fail(SGM_ERROR_STATE, "%d metrics are registered, which is all there is room for",
                        SGM__ADDED_METRICS);
    for (size_t i = 0; i < at; i++)
        if (strcmp(names[i], type->name) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is a metric '%s' already", type->name);
    sgm__metric_record *record = &added_records[at - SGM__METRIC_ROWS];
    record->results[0] =
        (sgm__result){{.name = type->name, .kind = SGM_KIND_NUMBER, .read_only = true, .doc = type->doc},
                      type->better,
                      SGM__HEADLINE};
    metrics[at] = (sgm__metric){type->name, type->doc, SGM__TAKES_NOTHING, record, type};
    names[at] = type->name;
    metric_count = at + 1;
    return SGM_OK;
}

sgm_status sgm__metric_add(const sgm_metric_type *type)
{
    pthread_mutex_lock(&lock);
    sgm_status status = append(type);
    pthread_mutex_unlock(&lock);
    return status;
}

sgm_status sgm__metric_compute(const sgm__metric *metric, const sgm__predictions *predictions,
                               const sgm_metric_options *options, const sgm__results *results)
{
    double value = NAN;
    if (metric->added == NULL)
        return metric->record->compute(predictions, options, results);
    if (predictions->rows > 0 &&
        metric->added->compute(predictions->output_tensor, predictions->target_tensor, &value) != SGM_OK)
        return sgm__fail_within("%s", metric->name);
    return sgm__leave_number(results, metric->name, value);
}

/* `name` need not end in 0: it may be a token of a longer text. Without a near name the error lists all. */
size_t sgm__metric_find(const char *name, size_t length)
{
    char copy[64], hint[SGM__NAME_HINT];
    size_t count;
    for (size_t i = 0; i < metric_count; i++)
        if (strlen(metrics[i].name) == length && memcmp(metrics[i].name, name, length) == 0)
            return i;
    snprintf(copy, sizeof copy, "%.*s", (int)(length < sizeof copy ? length : sizeof copy - 1), name);
    const char *const *known_names = sgm_metric_names(&count);
    const char *real = sgm__name_real(SGM__NAME_METRIC, copy, known_names, count, NULL);
    if (real != NULL)
        return sgm__metric_find(real, strlen(real));
    sgm__name_hint(SGM__NAME_METRIC, copy, known_names, count, hint);
    if (hint[0] != '\0') {
        sgm_fail(SGM_ERROR_NOT_FOUND, "unknown metric '%s'%s", copy, hint);
        return SIZE_MAX;
    }
    sgm__text known = {0};
    for (size_t i = 0; i < metric_count; i++)
        sgm__text_append(&known, "%s%s", i > 0 ? ", " : "", metrics[i].name);
    sgm_fail(SGM_ERROR_NOT_FOUND, "unknown metric '%s'; there are %s", copy,
             known.data != NULL ? known.data : "others");
    sgm__text_free(&known);
    return SIZE_MAX;
}

/* Numbers from 1, with zeros behind the last only: a 0 ends the list, and one in between would hide the
 * rest. */
static bool are_tops(const int32_t tops[SGM_MAX_TOPS])
{
    for (int i = 0; i < SGM_MAX_TOPS; i++)
        if (tops[i] < 0 || (tops[i] > 0 && i > 0 && tops[i - 1] == 0))
            return false;
    return true;
}

/* Options that a metric does not take are refused rather than ignored, but for `threshold`: hooks fill in
 * its default for all metrics. */
sgm_status sgm__metric_check(size_t metric, const sgm_metric_options *options)
{
    const sgm__metric *self = &metrics[metric];
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

double sgm__threshold_of(const sgm_metric_options *options)
{
    return options->threshold != 0 ? options->threshold : 0.5;
}

/* --- results --- */

/* What a pass leaves for all metrics. */
static const sgm_option pass_rows[] = {
    {.name = "outputs",
     .kind = SGM_KIND_TENSOR,
     .read_only = true,
     .doc = "of the newest pass, examples first"},
    {.name = "targets",
     .kind = SGM_KIND_TENSOR,
     .read_only = true,
     .doc = "of the newest pass, examples first"},
};

/* Whether a value's name is the result's, or ends in it behind a name that the user gave, "second_f1". */
static bool is_of(const sgm__result *result, const char *name)
{
    size_t own = strlen(result->row.name), length = strlen(name);
    return length >= own && strcmp(name + length - own, result->row.name) == 0 &&
           (length == own || name[length - own - 1] == '_');
}

/* The result whose name fits; of several the longest, which says most. NULL: none does. */
static const sgm__result *find_result(const char *name)
{
    const sgm__result *found = NULL;
    for (size_t i = 0; i < metric_count; i++)
        for (const sgm__result *one = metrics[i].record->results; one->row.name != NULL; one++)
            if (is_of(one, name) && (found == NULL || strlen(one->row.name) > strlen(found->row.name)))
                found = one;
    return found;
}

/* What the registry shows of a result: kind, read-only, documentation. Only for names without a user's
 * part. */
const sgm_option *sgm__result_row(const char *name)
{
    for (size_t i = 0; i < sizeof pass_rows / sizeof *pass_rows; i++)
        if (strcmp(pass_rows[i].name, name) == 0)
            return &pass_rows[i];
    const sgm__result *result = find_result(name);
    return result != NULL && strcmp(result->row.name, name) == 0 ? &result->row : NULL;
}

/* The record of the metric whose result the last part of the identifier is, or ends in ("second_f1"),
 * decides; of other values a word in the last part does. */
bool sgm__is_better_below(const char *identifier)
{
    static const char *const words[] = {"loss", "cost", "error", "perplexity"};
    const char *dot = strrchr(identifier, '.'), *name = dot != NULL ? dot + 1 : identifier;
    const sgm__result *result = find_result(name);
    if (result != NULL)
        return result->better == SGM_MINIMUM;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

/* A name that no record has (top_7) is a headline, as the metrics that make such names are. */
sgm_status sgm__leave_number(const sgm__results *results, const char *name, double value)
{
    const sgm__result *result = find_result(name);
    sgm_content content = sgm_number_content(value);
    return results->leave(results->user, name, &content, result != NULL ? result->weight : SGM__HEADLINE);
}

/* Tensors are never written to metrics.jsonl or the terminal: their weight is SGM__QUIET. */
sgm_status sgm__leave_tensor(const sgm__results *results, const char *name, sgm_tensor *tensor)
{
    if (tensor == NULL)
        return sgm__last_failure();
    sgm_content content = sgm_tensor_content(tensor);
    sgm_status status = results->leave(results->user, name, &content, SGM__QUIET);
    sgm_tensor_free(tensor);
    return status;
}

sgm_status sgm__leave_numbers(const sgm__results *results, const char *name, const double *numbers,
                              int64_t count)
{
    sgm_shape shape = sgm_shape_of(count);
    return sgm__leave_tensor(results, name, sgm_tensor_create_from(SGM_FLOAT64, &shape, numbers));
}
