/* A monitor that writes the events of trainings as JSON, one object a line, for other programs.
 *
 * It is an observer of each trainer (`observe`) and a listener to its journal of changes (`tell_change`);
 * both build a JSON object and hand it to write_line. The keys are documented in
 * docs/manual/21-other-monitors.md. A regular file is written at once, by the thread that reports. A pipe or
 * a terminal is written by the thread of line_queue.c, so that a slow reader does not hold up a training.
 *
 * Threads: events of several trainers come on their threads, at the same time. `lock` makes lines whole
 * and guards `failed`, `queue` and the counts of lost lines. It is taken within trainers' locks and
 * nothing is waited for under it but a regular file's write. */
#include "base/clock.h"
#include "journal/change_record.h"
#include "loop/trainer_run.h"
#include "monitors/followers.h"
#include "monitors/line_queue.h"
#include "monitors/monitor.h"
#include "monitors/pace.h"
#include "text/json_text.h"
#include "train/measure.h"
#include "trainer/view.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* The monitor. `host` is a copy of what the environment has said in join. */
typedef struct json_lines {
    sgm_monitor base;
    sgm__pace pace;
    char *path; /* NULL: stdout */
    FILE *file; /* stdout, or opened and closed by the monitor */
    sgm__monitor_host host;
    sgm__followers writers;
    pthread_mutex_t lock;          /* guards `file` and the members below */
    bool failed;                   /* a write has failed: nothing more is written */
    sgm__line_queue *queue;        /* NULL: a regular file */
    uint64_t dropped, all_dropped; /* lines that found no room: not yet reported, and in all */
} json_lines;

/* The record of one trainer; the observer's and the listener's argument. `told` is used on the trainer's
 * thread alone. */
typedef struct writer {
    sgm__follower follower;
    json_lines *monitor;
    double told; /* sgm__now() at the last iteration that was reported because of every_seconds */
} writer;

/* --- values --- */

/* JSON has neither NaN nor infinities: both become null. */
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* NULL becomes null, and a text that is not valid UTF-8 becomes "?", since JSON cannot hold it. */
static json_t *text_json(const char *text)
{
    json_t *made = text != NULL ? json_string(text) : json_null();
    return made != NULL ? made : json_string("?"); /* the text is no UTF-8 */
}

static json_t *metrics_json(const sgm_metrics *metrics)
{
    json_t *made = json_object();
    json_object_set_new(made, "loss", number_json(metrics->loss));
    json_object_set_new(made, "accuracy", number_json(metrics->accuracy));
    json_object_set_new(made, "examples", json_integer(metrics->examples));
    return made;
}

/* {"NAME": {"loss": ..., "accuracy": ..., "examples": ...}}, an entry for each validation set. */
static json_t *validation_json(const sgm_training_progress *progress)
{
    json_t *made = json_object();
    for (size_t i = 0; i < progress->validation_count; i++)
        json_object_set_new(made, progress->validation[i].name,
                            metrics_json(&progress->validation[i].metrics));
    return made;
}

/* {"validation": {"f1": 0.9}}: an object for each dataset, created when its first score comes. */
static json_t *scores_json(const sgm_training_progress *progress)
{
    json_t *made = json_object();
    for (size_t i = 0; i < progress->score_count; i++) {
        const sgm_score *score = &progress->scores[i];
        json_t *data = json_object_get(made, score->data);
        if (data == NULL && json_object_set_new(made, score->data, json_object()) == 0)
            data = json_object_get(made, score->data);
        json_object_set_new(data, score->name, number_json(score->value));
    }
    return made;
}

/* The keys that every event has. `trainer` may be NULL, for events of the monitor itself. */
static json_t *event_json(const char *event, const char *trainer, double when)
{
    json_t *made = json_object();
    json_object_set_new(made, "event", json_string(event));
    json_object_set_new(made, "trainer", text_json(trainer));
    json_object_set_new(made, "time", number_json(when));
    return made;
}

/* --- writing --- */

static const char *target_of(const json_lines *self)
{
    return self->path != NULL ? self->path : "stdout";
}

/* With the lock. `error` is an errno; it is reported in the log once, and the training goes on. */
static void give_up(json_lines *self, int error)
{
    self->failed = true;
    sgm__log(SGM_LOG_WARNING, "monitor", "%s: %s; no more lines of JSON are written", target_of(self),
             sgm__errno_text(error));
}

/* Serialises `event` with a newline and drops the reference to it. The caller frees the text; its `failed`
 * is set when there is no memory. */
static sgm__text line_of(json_t *event)
{
    sgm__text line = {0};
    sgm__json_append(&line, event);
    sgm__text_append_bytes(&line, "\n", 1);
    json_decref(event);
    return line;
}

/* Writes or queues one line, with the lock. Returns false when the queue has no room or there is no
 * memory, so that the line counts as lost. A write error returns true: give_up has reported it already. */
static bool put(json_lines *self, const sgm__text *line)
{
    if (line->failed)
        return false;
    if (self->queue != NULL)
        return sgm__line_queue_push(self->queue, line->data, line->length);
    if (fwrite(line->data, 1, line->length, self->file) != line->length || fflush(self->file) != 0)
        give_up(self, errno);
    return true;
}

/* With the lock. Puts an event "dropped" with the number of lost lines, so that the reader sees the gap at
 * the place where it is. If this line finds no room either, the count stays and is reported before a later
 * line. */
static void tell_dropped(json_lines *self)
{
    json_t *event = event_json("dropped", NULL, sgm__wall_time());
    json_object_set_new(event, "count", json_integer((json_int_t)self->dropped));
    sgm__text line = line_of(event);
    if (put(self, &line))
        self->dropped = 0;
    sgm__text_free(&line);
}

/* Takes `event` and writes it, whole or not at all. A line is lost if an earlier loss could not be
 * reported first, so that lines never appear after a gap that is not marked. Called on any thread. */
static void write_line(json_lines *self, json_t *event)
{
    sgm__text line = line_of(event);
    pthread_mutex_lock(&self->lock);
    int error = self->queue != NULL && !self->failed ? sgm__line_queue_error(self->queue) : 0;
    if (error != 0)
        give_up(self, error);
    if (!self->failed && self->dropped > 0)
        tell_dropped(self);
    if (!self->failed && (self->dropped > 0 || !put(self, &line))) {
        self->dropped++;
        self->all_dropped++;
    }
    pthread_mutex_unlock(&self->lock);
    sgm__text_free(&line);
}

/* --- events --- */

static const char *const kind_names[] = {
    [SGM_PROGRESS_START] = "start", [SGM_PROGRESS_ITERATION] = "iteration", [SGM_PROGRESS_EPOCH] = "epoch",
    [SGM_PROGRESS_STOP] = "stop",   [SGM_PROGRESS_PAUSE] = "pause",         [SGM_PROGRESS_RESUME] = "resume",
    [SGM_PROGRESS_MOVE] = "move"};

/* Position in the training. Unknown totals (a stream of unknown length, a run without an end by epochs)
 * are null. */
static void add_place(json_t *event, const sgm_training_progress *progress)
{
    json_object_set_new(event, "iteration", json_integer(progress->iteration));
    json_object_set_new(event, "epoch", json_integer(progress->epoch));
    json_object_set_new(event, "epochs", progress->epochs > 0 ? json_integer(progress->epochs) : json_null());
    json_object_set_new(event, "batch", json_integer(progress->batch));
    json_object_set_new(event, "batches",
                        progress->batches > 0 ? json_integer(progress->batches) : json_null());
    json_object_set_new(event, "seconds", number_json(progress->seconds));
}

/* What the environment is, in the event "start" only. */
static void add_surroundings(json_t *event, const json_lines *self)
{
    json_object_set_new(event, "environment", text_json(self->host.name));
    json_object_set_new(event, "version", json_string(sgm_version()));
    json_object_set_new(event, "handler", text_json(self->host.handler));
    json_object_set_new(event, "precision", json_string(sgm_dtype_name(self->host.precision)));
    json_object_set_new(event, "seed", json_integer((json_int_t)self->host.seed));
}

static void add_measured(json_t *event, const sgm_training_progress *progress)
{
    json_object_set_new(event, "learning_rate", number_json(progress->learning_rate));
    json_object_set_new(event, "loss", number_json(progress->training.loss));
    json_object_set_new(event, "accuracy", number_json(progress->training.accuracy));
    json_object_set_new(event, "examples", json_integer(progress->training.examples));
    json_object_set_new(event, "rate", number_json(progress->rate));
}

/* Builds the event of one progress call: place in all events, numbers in all but "start", and the keys of
 * single kinds. */
static void tell(const writer *own, const sgm_training_progress *progress)
{
    json_t *event = event_json(kind_names[progress->kind], progress->trainer, sgm__wall_time());
    add_place(event, progress);
    if (progress->kind == SGM_PROGRESS_START)
        add_surroundings(event, own->monitor);
    else
        add_measured(event, progress);
    if (progress->kind == SGM_PROGRESS_EPOCH) {
        json_object_set_new(event, "validation", validation_json(progress));
        json_object_set_new(event, "scores", scores_json(progress));
    }
    if (progress->kind == SGM_PROGRESS_PAUSE)
        json_object_set_new(event, "paused_by", text_json(progress->reason));
    if (progress->kind == SGM_PROGRESS_STOP) {
        json_object_set_new(event, "interrupted", json_boolean(progress->interrupted));
        json_object_set_new(event, "reason", text_json(progress->reason));
    }
    write_line(own->monitor, event);
}

/* The observer, on the trainer's thread. Iterations are reported as the pace says; all other events
 * always. Then the run is told which iteration this observer wants next. */
static bool observe(void *user, const sgm_training_progress *progress)
{
    writer *own = user;
    const sgm__pace *pace = &own->monitor->pace;
    if (progress->kind != SGM_PROGRESS_ITERATION || sgm__pace_is_due(pace, progress->iteration, &own->told))
        tell(own, progress);
    sgm__observer_next(sgm__pace_next(pace, progress->iteration));
    return true;
}

/* The listener to changes of registry values. It is called with the trainer's lock, by the thread that
 * makes the change. It takes the monitor's lock within the trainer's; no thread takes them in the other
 * order. `change` has more keys than are published; those that are missing in it stay out of the event. */
static void tell_change(void *user, const json_t *change)
{
    static const char *const keys[] = {"iteration", "epoch", "seconds", "identifier",
                                       "before",    "after", "who",     "undoes"};
    const writer *own = user;
    json_t *event = event_json("change", json_string_value(json_object_get(change, "trainer")),
                               json_number_value(json_object_get(change, "time")));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(event, keys[i], json_object_get(change, keys[i]));
    write_line(own->monitor, event);
}

/* --- the monitor --- */

static sgm_status join(sgm_monitor *monitor, const sgm__monitor_host *host)
{
    ((json_lines *)monitor)->host = *host;
    return SGM_OK;
}

/* The listener is removed before its argument is freed. The observer needs no removal: no run of the
 * trainer is active, and none follows. */
static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    writer *own = sgm__followers_leave(&((json_lines *)monitor)->writers, trainer);
    if (own != NULL)
        sgm__changes_unlisten(trainer, tell_change, own);
    sgm__free(own);
}

/* Enters the record, then the listener, then the observer. The observer comes last because an observer
 * cannot be removed: its argument must stay valid once the observer has been added. */
static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    json_lines *self = (json_lines *)monitor;
    writer *own = sgm__calloc(1, sizeof *own);
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    *own = (writer){.follower = {trainer}, .monitor = self};
    SGM_TRY(sgm__followers_enter(&self->writers, &own->follower));
    sgm_status status = sgm__changes_listen(trainer, tell_change, own);
    if (status == SGM_OK)
        status = sgm__trainer_add_observer(trainer, observe, own);
    if (status != SGM_OK)
        detach(monitor, trainer);
    return status;
}

/* Waits for the queue to write what is left and reports losses in the log. `left` and `all_dropped` do not
 * overlap: the first counts lines that were queued, the second lines that were refused. */
static void end_queue(json_lines *self)
{
    if (self->queue == NULL)
        return;
    int error;
    size_t left = sgm__line_queue_end(self->queue, &error);
    if (error != 0 && !self->failed)
        give_up(self, error);
    if (!self->failed && left + self->all_dropped > 0)
        sgm__log(SGM_LOG_WARNING, "monitor", "%s: %llu lines of JSON were lost, as nobody read them in time",
                 target_of(self), (unsigned long long)(left + self->all_dropped));
}

/* The monitor's `free`; also used for one that could not be made completely. The queue ends before its
 * descriptor is closed. */
static void release(sgm_monitor *monitor)
{
    json_lines *self = (json_lines *)monitor;
    writer *own;
    while ((own = sgm__followers_end(&self->writers)) != NULL)
        sgm__free(own);
    end_queue(self);
    if (self->file != NULL && self->file != stdout && fclose(self->file) != 0 && !self->failed)
        give_up(self, errno);
    sgm__free(self->path);
    pthread_mutex_destroy(&self->lock);
    sgm__free(self);
}

/* Opens for appending, with O_CLOEXEC ("e"), so that a resumed run adds to the file of the earlier one. */
static sgm_status open_path(json_lines *self, const char *path)
{
    self->path = sgm__strdup(path);
    if (self->path == NULL)
        return SGM_ERROR_MEMORY;
    self->file = fopen(path, "ae");
    return self->file != NULL ? SGM_OK
                              : sgm_fail(SGM_ERROR_FILE, "cannot write lines of JSON to %s: %s", path,
                                         sgm__errno_text(errno));
}

/* A regular file is always ready for bytes. Everything else (pipe, terminal, socket) may be full until
 * somebody reads, and gets a queue. */
static sgm_status open_file(json_lines *self, const char *path)
{
    struct stat info;
    if (path == NULL)
        self->file = stdout;
    else
        SGM_TRY(open_path(self, path));
    if (fstat(fileno(self->file), &info) != 0 || S_ISREG(info.st_mode))
        return SGM_OK;
    self->queue = sgm__line_queue_start(fileno(self->file));
    return self->queue != NULL ? SGM_OK : sgm__last_failure();
}

sgm_monitor *sgm_json_lines_monitor_with(const sgm_json_lines_monitor_options *given)
{
    sgm_json_lines_monitor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_json_lines_monitor") != SGM_OK)
        return NULL;
    const sgm__pace pace = {.iterations = options.every_iterations, .seconds = options.every_seconds};
    if (sgm__pace_check(&pace, "sgm_json_lines_monitor") != SGM_OK)
        return NULL;
    json_lines *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    pthread_mutex_init(&self->lock, NULL);
    sgm__followers_init(&self->writers);
    self->pace = pace;
    self->base = (sgm_monitor){.join = join, .attach = attach, .detach = detach, .free = release};
    if (open_file(self, options.path) == SGM_OK)
        return &self->base;
    release(&self->base);
    return NULL;
}
