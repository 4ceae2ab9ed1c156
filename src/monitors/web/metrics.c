/* The part `metrics`: GET /metrics, numbers for Prometheus in its text format 0.0.4.
 *
 * A request copies the state of all trainers first (add_row), each with its lock for a moment, then writes
 * family after family, since the format wants all lines of a metric together. The numbers are those that
 * the sampler has seen last (sampler.c), so a request never waits for a training. Trainers that have gone
 * have no lines. */
#include "monitors/web/web_internal.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* A copy of one trainer's state. */
typedef struct row {
    const char *name;
    sgm_trainer_state state;
    sgm__web_status status; /* without its network, which is NULL */
    sgm__web_validation validations[SGM__WEB_VALIDATIONS];
    size_t validation_count;
} row;

/* All trainers; `failed`: there was no memory for one. */
typedef struct table {
    row *rows;
    size_t count, capacity;
    bool failed;
} table;

/* With the sampling lock. Without memory for a name the rest is left out. */
static void copy_validations(row *to, const sgm__web_recording *recording)
{
    for (size_t i = 0; i < recording->newest_count; i++) {
        to->validations[i] = recording->newest[i];
        to->validations[i].name = sgm__strdup(recording->newest[i].name);
        if (to->validations[i].name == NULL)
            return;
        to->validation_count++;
    }
}

static void free_rows(table *all)
{
    for (size_t i = 0; i < all->count; i++)
        for (size_t k = 0; k < all->rows[i].validation_count; k++)
            sgm__free(all->rows[i].validations[k].name);
    sgm__free(all->rows);
}

/* For sgm__web_each. */
static bool add_row(void *user, sgm__web_trainer *watched)
{
    table *all = user;
    sgm__web_recording *recording = sgm__web_recording_of(watched);
    sgm__web_standing standing = sgm__web_standing_of(watched);
    if (standing.gone)
        return true;
    all->failed = sgm__reserve(&all->rows, &all->capacity, all->count + 1, sizeof *all->rows) != SGM_OK;
    if (all->failed)
        return false;
    row *now = &all->rows[all->count++];
    *now = (row){.name = watched->name, .state = standing.state};
    pthread_mutex_lock(&recording->sampling);
    now->status = recording->status;
    copy_validations(now, recording);
    pthread_mutex_unlock(&recording->sampling);
    now->status.network = NULL;
    return true;
}

/* The two lines of comment that begin a metric. */
static void append_head(sgm__text *text, const char *name, const char *type, const char *help)
{
    sgm__text_append(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Prometheus, unlike JSON, has NaN and infinities. */
static void append_value(sgm__text *text, double value)
{
    sgm__text_append(text, " ");
    if (isfinite(value))
        sgm__web_append_number(text, value);
    else
        sgm__text_append(text, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    sgm__text_append(text, "\n");
}

/* A label's value, with newline, quote and backslash escaped. */
static void append_label(sgm__text *text, const char *value)
{
    for (; *value != '\0'; value++)
        if (*value == '\n')
            sgm__text_append(text, "\\n");
        else if (*value == '"' || *value == '\\')
            sgm__text_append(text, "\\%c", *value);
        else
            sgm__text_append_bytes(text, value, 1);
}

/* --- of trainers --- */

/* The metrics of trainers. */
typedef enum family {
    STATE,
    ITERATIONS,
    EPOCHS,
    SECONDS,
    LOSS,
    ACCURACY,
    LEARNING_RATE,
    RATE,
    PARAMETERS
} family;

static const struct {
    const char *name, *type, *help;
} families[] = {
    [STATE] = {"sigma_trainer_state", "gauge", "0 idle, 1 running, 2 paused"},
    [ITERATIONS] = {"sigma_iterations_total", "counter", "Iterations trained"},
    [EPOCHS] = {"sigma_epochs_total", "counter", "Epochs ended"},
    [SECONDS] = {"sigma_training_seconds_total", "counter", "Seconds of training without pauses"},
    [LOSS] = {"sigma_loss", "gauge", "Mean loss over the epoch so far"},
    [ACCURACY] = {"sigma_accuracy", "gauge",
                  "Share of correct predictions in the epoch so far, where that means something"},
    [LEARNING_RATE] = {"sigma_learning_rate", "gauge", "Learning rate"},
    [RATE] = {"sigma_examples_per_second", "gauge", "Examples trained per second; 0 while it does not run"},
    [PARAMETERS] = {"sigma_parameters", "gauge", "Numbers that are trained"},
};

/* The rate of a trainer that does not run is the last one it had, hence 0 here. */
static double value_of(const row *r, family which)
{
    const sgm_training_progress *progress = &r->status.progress;
    const double values[] = {[STATE] = r->state,
                             [ITERATIONS] = (double)progress->iteration,
                             [EPOCHS] = (double)progress->epoch,
                             [SECONDS] = r->status.moment.seconds,
                             [LOSS] = progress->training.loss,
                             [ACCURACY] = progress->training.accuracy,
                             [LEARNING_RATE] = progress->learning_rate,
                             [RATE] = r->state == SGM_TRAINER_RUNNING ? progress->rate : 0,
                             [PARAMETERS] = (double)r->status.parameters};
    return values[which];
}

/* A value that is NaN has no line, but for the loss: a loss that is no number is worth an alarm. */
static void append_family(sgm__text *text, family which, const table *all)
{
    append_head(text, families[which].name, families[which].type, families[which].help);
    for (size_t i = 0; i < all->count; i++) {
        double value = value_of(&all->rows[i], which);
        if (isnan(value) && which != LOSS)
            continue;
        sgm__text_append(text, "%s{trainer=\"", families[which].name);
        append_label(text, all->rows[i].name);
        sgm__text_append(text, "\"}");
        append_value(text, value);
    }
}

static void append_validation(sgm__text *text, const char *name, const row *of, const char *data,
                              double value)
{
    sgm__text_append(text, "%s{trainer=\"", name);
    append_label(text, of->name);
    sgm__text_append(text, "\",data=\"");
    append_label(text, data);
    sgm__text_append(text, "\"}");
    append_value(text, value);
}

/* Of the newest epoch that had a validation; first all losses, then all accuracies that mean something. */
static void append_validations(sgm__text *text, const table *all)
{
    static const char *const of[][2] = {
        {"sigma_validation_loss", "Mean loss over validation data, after the newest epoch"},
        {"sigma_validation_accuracy",
         "Share of correct predictions for validation data, after the newest epoch"}};
    for (int accuracy = 0; accuracy < 2; accuracy++) {
        append_head(text, of[accuracy][0], "gauge", of[accuracy][1]);
        for (size_t i = 0; i < all->count; i++)
            for (size_t k = 0; k < all->rows[i].validation_count; k++) {
                const sgm__web_validation *v = &all->rows[i].validations[k];
                if (!accuracy || !isnan(v->accuracy))
                    append_validation(text, of[accuracy][0], &all->rows[i], v->name,
                                      accuracy ? v->accuracy : v->loss);
            }
    }
}

/* --- of the process --- */

/* A metric without labels. */
static void append_single(sgm__text *text, const char *name, const char *type, const char *help, double value)
{
    append_head(text, name, type, help);
    sgm__text_append(text, "%s", name);
    append_value(text, value);
}

/* In bytes; NaN: the system does not say. */
static double resident_memory(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    long long pages = -1;
    if (file == NULL)
        return NAN;
    int read = fscanf(file, "%*s %lld", &pages);
    fclose(file);
    return read == 1 ? (double)pages * (double)sysconf(_SC_PAGESIZE) : NAN;
}

/* User and system time of the process; NaN: not known. */
static double processor_seconds(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0)
        return NAN;
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           1e-6 * ((double)used.ru_utime.tv_usec + (double)used.ru_stime.tv_usec);
}

static void append_process(sgm__text *text, const sgm__web *web)
{
    const sgm__http *http = atomic_load(&web->http);
    append_single(text, "sigma_listeners", "gauge", "Pages and programs that are sent events",
                  (double)sgm__web_listeners(web));
    append_single(text, "sigma_dropped_events_total", "counter",
                  "Events that pages lost because they read too slowly",
                  http != NULL ? (double)sgm__http_dropped(http) : 0);
    append_single(text, "process_resident_memory_bytes", "gauge", "Memory of the process", resident_memory());
    append_single(text, "process_cpu_seconds_total", "counter", "Time of processors that the process took",
                  processor_seconds());
}

/* Fails only for want of memory. */
static sgm_status get_metrics(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__web *web = user;
    table all = {0};
    sgm__text text = {0};
    (void)request;
    sgm__web_each(web, add_row, &all);
    for (family which = STATE; which <= PARAMETERS; which++)
        append_family(&text, which, &all);
    append_validations(&text, &all);
    append_process(&text, web);
    free_rows(&all);
    text.failed = text.failed || all.failed;
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    return sgm__web_answer(answer, &text);
}

static const sgm__http_route routes[] = {
    {"GET", "/metrics", .act = get_metrics, .quick = true},
};

const sgm__web_part sgm__web_metrics = {.routes = routes, .route_count = sizeof routes / sizeof *routes};
