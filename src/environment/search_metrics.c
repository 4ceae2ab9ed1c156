/* Reads the objective of a trial from its metrics.jsonl, where the trainer has left it: for trials of a
 * search that was killed before it could note them. */
#include "environment/search.h"
#include "journal/run_lines.h"

#include <jansson.h>
#include <math.h>

/* Limit in bytes for the files that are read here. */
#define LARGEST_METRICS ((size_t)1 << 30)

/* The whole file; NULL: it is not there, or cannot be read, which is the same for a search. */
static char *read_metrics(const sgm__trial *trial, size_t *length)
{
    char *path = sgm__format("%s/" SGM__METRICS_FILE, trial->folder), *text = NULL;
    if (path != NULL && sgm__file_exists(path) &&
        sgm__file_read(path, LARGEST_METRICS, &text, length) != SGM_OK)
        text = NULL;
    sgm__free(path);
    return text;
}

/* The objective in a line; *epoch is that of the line. metrics.jsonl has the means of training without the
 * prefix "training.". */
static bool objective_in(const sgm_search *search, const char *line, size_t length, int64_t *epoch,
                         double *value)
{
    const char *key = search->options.objective;
    json_t *metrics = json_loadb(line, length, 0, NULL);
    const json_t *number = json_object_get(metrics, strncmp(key, "training.", 9) == 0 ? key + 9 : key);
    bool found = json_is_number(number);
    if (found)
        *value = sgm__search_round(json_number_value(number));
    *epoch = json_integer_value(json_object_get(metrics, "epoch"));
    json_decref(metrics);
    return found;
}

/* The last complete line of a text; *line is its length with the newline, 0 if there is none. */
static const char *last_line(const char *text, size_t length, size_t *line)
{
    while (length > 0 && text[length - 1] != '\n')
        length--;
    size_t start = length > 0 ? length - 1 : 0;
    while (start > 0 && text[start - 1] != '\n')
        start--;
    *line = length - start;
    return text + start;
}

bool sgm__search_last_metric(const sgm_search *search, const sgm__trial *trial, double *value)
{
    size_t length, line;
    int64_t epoch;
    char *text = read_metrics(trial, &length);
    if (text == NULL)
        return false;
    const char *last = last_line(text, length, &line);
    bool found = objective_in(search, last, line, &epoch, value);
    sgm__free(text);
    return found;
}

sgm_status sgm__search_read_curve(const sgm_search *search, sgm__trial *trial, int64_t epochs)
{
    size_t length, known = trial->curve_length, at = 0;
    char *text = (int64_t)known < epochs ? read_metrics(trial, &length) : NULL;
    sgm_status status = SGM_OK;
    if ((int64_t)known > epochs)
        trial->curve_length = (size_t)epochs;
    while (text != NULL && status == SGM_OK && at < length) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end != NULL ? (size_t)(end - (text + at)) + 1 : length - at;
        int64_t epoch;
        double value;
        if (objective_in(search, text + at, line, &epoch, &value) && epoch > (int64_t)known &&
            epoch <= epochs)
            status = sgm__search_curve_set(trial, epoch, value);
        at += line;
    }
    sgm__free(text);
    return status;
}
