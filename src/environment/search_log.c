/* FOLDER/search.jsonl: the record of a search, by which an interrupted or killed search goes on.
 *
 * The first line says what is searched; each further line says how one piece of a trial's training has
 * ended. Lines are only ever appended, each with a single write followed by fdatasync. A crash can
 * therefore leave at most an incomplete last line, which is cut off when the file is opened again.
 * search_run.c opens the log, search_trial.c appends to it with the search's lock. */
#include "environment/search.h"
#include "runs/parts/files_version.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOG_FILE "search.jsonl"
/* Limit in bytes for the files that are read here. */
#define LARGEST_LOG ((size_t)1 << 30)
/* One line, keys in the order in which they were set, numbers with the digits of sgm__search_round. */
#define DUMP (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9))

double sgm__search_round(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", value);
    double back;
    return sgm__parse_double(text, &back) ? back : value;
}

/* --- writing --- */

/* In one write. Of a line that does not fit (a full disk) no part stays, since further lines may follow. */
static bool append(int file, const sgm__text *line)
{
    off_t end = lseek(file, 0, SEEK_END);
    ssize_t written = write(file, line->data, line->length);
    if (written == (ssize_t)line->length)
        return true;
    int error = written < 0 ? errno : ENOSPC;
    if (written > 0 && ftruncate(file, end) != 0)
        error = errno;
    errno = error;
    return false;
}

/* Appends `line` and a newline. EINVAL and EROFS of fdatasync mean that this kind of file cannot be
 * synchronised, and are no failure. */
static sgm_status write_line(int file, json_t *line)
{
    char *text = json_dumps(line, DUMP);
    if (text == NULL)
        return sgm__fail_memory(256);
    sgm__text whole = {0};
    sgm__text_append(&whole, "%s\n", text);
    free(text);
    sgm_status status = whole.failed ? SGM_ERROR_MEMORY : SGM_OK;
    if (status == SGM_OK &&
        (!append(file, &whole) || (fdatasync(file) != 0 && errno != EINVAL && errno != EROFS)))
        status = sgm_fail(SGM_ERROR_FILE, "cannot write to " LOG_FILE ": %s", sgm__errno_text(errno));
    sgm__text_free(&whole);
    return status;
}

/* A number as text, since descriptions are compared for equality, and 15 digits survive reading and
 * writing. */
static json_t *describe_number(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.15g", value);
    return json_string(text);
}

/* {"name": ..., "choices": [...]}, or the range. */
static json_t *describe_values(const sgm_search_values *values)
{
    json_t *object = json_object();
    json_t *list = json_array();
    json_object_set_new(object, "name", json_string(values->name));
    for (size_t i = 0; values->choices != NULL && values->choices[i] != NULL; i++)
        json_array_append_new(list, json_string(values->choices[i]));
    if (values->choices != NULL) {
        json_object_set(object, "choices", list);
    } else {
        json_object_set_new(object, "from", describe_number(values->from));
        json_object_set_new(object, "to", describe_number(values->to));
        json_object_set_new(object, "logarithmic", json_boolean(values->logarithmic));
        json_object_set_new(object, "whole", json_boolean(values->whole));
    }
    json_decref(list);
    return object;
}

/* Everything that decides which trials there are and what they compute. Values that decide only how the
 * search runs (at_once, checkpoint_every) may differ in a resume. */
static json_t *describe_search(const sgm_search *search)
{
    static const char *const methods[] = {"grid", "random", "halving", "tpe"};
    const sgm_search_options *o = &search->options;
    json_t *line = json_object(), *values = json_array();
    json_object_set_new(line, "version", json_integer(SGM__FILES_VERSION));
    json_object_set_new(line, "method", json_string(methods[o->method]));
    json_object_set_new(line, "objective", json_string(o->objective));
    json_object_set_new(line, "goal", json_string(search->minimum ? "minimum" : "maximum"));
    json_object_set_new(line, "trials", json_integer((json_int_t)search->trial_count));
    json_object_set_new(line, "seed", json_integer((json_int_t)o->seed));
    json_object_set_new(line, "epochs", json_integer(o->epochs));
    json_object_set_new(line, "iterations", json_integer(o->iterations));
    if (o->method == SGM_SEARCH_HALVING) {
        json_object_set_new(line, "factor", describe_number(o->factor));
        json_object_set_new(line, "minimum_epochs", json_integer(o->minimum_epochs));
    }
    if (o->method == SGM_SEARCH_TPE)
        json_object_set_new(line, "startup_trials", json_integer(o->startup_trials));
    if (o->pruning != SGM_PRUNING_NONE) {
        json_object_set_new(line, "prune_after_trials", json_integer(o->prune_after_trials));
        json_object_set_new(line, "prune_after_epochs", json_integer(o->prune_after_epochs));
    }
    for (size_t i = 0; i < search->value_count; i++)
        json_array_append_new(values, describe_values(&o->values[i]));
    json_object_set_new(line, "values", values);
    return line;
}

static json_t *describe_trial_values(const sgm_search *search, const sgm__trial *trial)
{
    json_t *values = json_object();
    for (size_t i = 0; i < search->value_count; i++)
        json_object_set_new(values, trial->values[i].name, json_string(trial->values[i].text));
    return values;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *describe_curve(const sgm__trial *trial)
{
    json_t *list = json_array();
    for (size_t i = 0; i < trial->curve_length; i++)
        json_array_append_new(list, number_or_null(trial->curve[i]));
    return list;
}

/* The line about a piece. The values are included for people and for take_values. */
static json_t *describe_trial(const sgm_search *search, const sgm__trial *trial, const char *state,
                              double seconds)
{
    json_t *line = json_object();
    json_object_set_new(line, "trial", json_integer(trial->shown.number));
    json_object_set_new(line, "rung", json_integer((json_int_t)search->rung));
    json_object_set_new(line, "state", json_string(state));
    json_object_set_new(line, "epochs", json_integer(trial->shown.epochs));
    json_object_set_new(line, "objective", number_or_null(trial->shown.objective));
    json_object_set_new(line, "seconds", json_real(seconds));
    if (trial->stopped)
        json_object_set_new(line, "stopped", json_true());
    if (trial->error != NULL)
        json_object_set_new(line, "error", json_string(trial->error));
    if (trial->curve_length > 0)
        json_object_set_new(line, "curve", describe_curve(trial));
    json_object_set_new(line, "values", describe_trial_values(search, trial));
    return line;
}

sgm_status sgm__search_log_begin(sgm_search *search, const sgm__trial *trial)
{
    json_t *line = json_object();
    json_object_set_new(line, "trial", json_integer(trial->shown.number));
    json_object_set_new(line, "rung", json_integer((json_int_t)search->rung));
    json_object_set_new(line, "state", json_string("begun"));
    json_object_set_new(line, "values", describe_trial_values(search, trial));
    sgm_status status = write_line(search->log, line);
    json_decref(line);
    return status;
}

sgm_status sgm__search_log_append(sgm_search *search, const sgm__trial *trial, const char *state,
                                  double seconds)
{
    json_t *line = describe_trial(search, trial, state, seconds);
    sgm_status status = write_line(search->log, line);
    json_decref(line);
    return status;
}

/* --- reading --- */

/* Whether the search in the file is this one; the error names the first key that differs. */
static sgm_status compare_searches(const sgm_search *search, const json_t *there)
{
    SGM_TRY(sgm__files_version_check(there));
    json_t *wanted = describe_search(search);
    sgm_status status = SGM_OK;
    const char *key;
    json_t *value;
    json_object_foreach(wanted, key, value)
    {
        json_t *old = json_object_get(there, key);
        if (status != SGM_OK || json_equal(old, value))
            continue;
        char *was = json_dumps(old, DUMP | JSON_ENCODE_ANY), *is = json_dumps(value, DUMP | JSON_ENCODE_ANY);
        status = sgm_fail(SGM_ERROR_STATE,
                          "'%s' has another search: its %s was %.200s, is %.200s; choose another "
                          "folder",
                          search->options.folder, key, was != NULL ? was : "nothing", is != NULL ? is : "");
        free(was);
        free(is);
    }
    json_decref(wanted);
    return status;
}

/* Whether a text is one of the choices of a value, or a number of its range. */
static bool is_value(const sgm_search_values *values, const char *text)
{
    double number;
    if (values->choices != NULL)
        return values->choices[sgm__search_find_choice(values, text)] != NULL;
    return sgm__parse_double(text, &number) && number >= values->from && number <= values->to;
}

/* Fails unless the trial in the file has the values of the trial of that number here. One of TPE that has
 * none yet takes them. */
static sgm_status take_values(const sgm_search *search, sgm__trial *trial, const json_t *values)
{
    for (size_t i = 0; i < search->value_count; i++) {
        const char *text = json_string_value(json_object_get(values, trial->values[i].name));
        if (text == NULL || (!trial->open ? strcmp(text, trial->values[i].text) != 0
                                          : !is_value(&search->options.values[i], text)))
            return sgm_fail(SGM_ERROR_FORMAT, "%s has other values", trial->name);
    }
    for (size_t i = 0; i < search->value_count && trial->open; i++) {
        const char *text = json_string_value(json_object_get(values, trial->values[i].name));
        SGM_TRY(sgm__search_set_value(search, trial, i, sgm__strdup(text)));
    }
    trial->open = false;
    return sgm__search_show_values(search, trial);
}

static sgm_status take_curve(sgm__trial *trial, const json_t *curve)
{
    size_t index;
    const json_t *value;
    json_array_foreach(curve, index, value) SGM_TRY(sgm__search_curve_set(
        trial, (int64_t)index + 1, json_is_number(value) ? json_number_value(value) : NAN));
    return SGM_OK;
}

/* Takes one line into its trial. Lines of one trial come in order of time, so later ones overwrite earlier
 * ones, but seconds add up. A state "interrupted" leaves the trial waiting. */
static sgm_status take_trial(sgm_search *search, const json_t *line)
{
    json_int_t number = json_integer_value(json_object_get(line, "trial"));
    json_int_t rung = json_integer_value(json_object_get(line, "rung"));
    const char *state = json_string_value(json_object_get(line, "state"));
    const char *error = json_string_value(json_object_get(line, "error"));
    const json_t *objective = json_object_get(line, "objective");
    if (number < 1 || number > (json_int_t)search->trial_count || rung < 0 ||
        rung >= (json_int_t)search->rung_count || state == NULL)
        return sgm_fail(SGM_ERROR_FORMAT, "it tells of no trial that there is");
    sgm__trial *trial = &search->trials[number - 1];
    SGM_TRY(take_values(search, trial, json_object_get(line, "values")));
    if (strcmp(state, "begun") == 0)
        return SGM_OK;
    SGM_TRY(take_curve(trial, json_object_get(line, "curve")));
    trial->shown.seconds += json_number_value(json_object_get(line, "seconds"));
    trial->shown.epochs = json_integer_value(json_object_get(line, "epochs"));
    if (strcmp(state, "done") == 0) {
        trial->shown.rung = rung + 1;
        trial->stopped = json_is_true(json_object_get(line, "stopped"));
        trial->shown.objective = json_is_number(objective) ? json_number_value(objective) : NAN;
        trial->objectives[rung] = trial->shown.objective;
        trial->shown.state = SGM_TRIAL_DONE;
    } else if (strcmp(state, "pruned") == 0) {
        trial->shown.objective = json_is_number(objective) ? json_number_value(objective) : NAN;
        trial->shown.state = SGM_TRIAL_DROPPED;
    } else if (strcmp(state, "failed") == 0) {
        sgm__free(trial->error);
        trial->error = sgm__strdup(error != NULL ? error : "unknown");
        trial->shown.error = trial->error;
        trial->shown.state = SGM_TRIAL_FAILED;
    }
    return SGM_OK;
}

/* The first line is the description, the others are about trials. `length` includes the newline. Errors of
 * format name file and line. */
static sgm_status take_line(sgm_search *search, const char *text, size_t length, size_t number)
{
    json_t *line = json_loadb(text, length, 0, NULL);
    sgm_status status;
    if (!json_is_object(line))
        status = sgm_fail(SGM_ERROR_FORMAT, "this is no JSON object");
    else if (number == 1)
        status = compare_searches(search, line);
    else
        status = take_trial(search, line);
    json_decref(line);
    if (status == SGM_ERROR_FORMAT)
        sgm__fail_within("%s/" LOG_FILE ":%zu", search->options.folder, number);
    return status;
}

/* Reads all complete lines; *whole is the offset behind the last of them. */
static sgm_status take_lines(sgm_search *search, const char *path, size_t *whole)
{
    char *text;
    size_t length, number = 0;
    sgm_status status = SGM_OK;
    *whole = 0;
    SGM_TRY(sgm__file_read(path, LARGEST_LOG, &text, &length));
    while (status == SGM_OK && *whole < length) {
        const char *end = memchr(text + *whole, '\n', length - *whole);
        if (end == NULL)
            break;
        size_t line = (size_t)(end - (text + *whole)) + 1;
        status = take_line(search, text + *whole, line, ++number);
        *whole += line;
    }
    sgm__free(text);
    return status;
}

/* Cuts an incomplete last line off. A new file gets the description as its first line. */
static sgm_status open_log(sgm_search *search, const char *path)
{
    size_t whole = 0;
    if (sgm__file_exists(path)) {
        if (!search->options.resume)
            return sgm_fail(SGM_ERROR_STATE,
                            "'%s' holds a search already; resume it or choose another folder",
                            search->options.folder);
        SGM_TRY(take_lines(search, path, &whole));
    }
    search->log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (search->log < 0 || ftruncate(search->log, (off_t)whole) != 0)
        return sgm_fail(SGM_ERROR_FILE, "cannot write '%s': %s", path, sgm__errno_text(errno));
    if (whole > 0)
        return SGM_OK;
    json_t *line = describe_search(search);
    sgm_status status = write_line(search->log, line);
    json_decref(line);
    return status;
}

sgm_status sgm__search_log_open(sgm_search *search)
{
    char *path = sgm__format("%s/" LOG_FILE, search->options.folder);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = open_log(search, path);
    sgm__free(path);
    return status;
}
