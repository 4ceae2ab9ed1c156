/* Events as lines of JSON. */
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
#include <time.h>

typedef struct json_lines {
    sgm_monitor base;
    sgm__pace pace;
    char *path; /* NULL: stdout */
    FILE *file;
    sgm__monitor_host host;
    sgm__followers writers;
    pthread_mutex_t lock;          /* guards the file and: */
    bool failed;                   /* nothing more is written */
    sgm__line_queue *queue;        /* NULL: a regular file, which nobody has to read */
    uint64_t dropped, all_dropped; /* lines: since it was told last, and in all */
} json_lines;

/* What tells of one trainer. */
typedef struct writer {
    sgm__follower follower;
    json_lines *monitor;
    double told; /* when the newest iteration was, by every_seconds */
} writer;

/* --- values --- */

/* JSON has neither NaN nor infinities. */
static json_t *number_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text_json(const char *text)
{
    json_t *made = text != NULL ? json_string(text) : json_null();
    return made != NULL ? made : json_string("?"); /* no UTF-8 */
}

static json_t *metrics_json(const sgm_metrics *metrics)
{
    json_t *made = json_object();
    json_object_set_new(made, "loss", number_json(metrics->loss));
    json_object_set_new(made, "accuracy", number_json(metrics->accuracy));
    json_object_set_new(made, "examples", json_integer(metrics->examples));
    return made;
}

static json_t *validation_json(const sgm_training_progress *progress)
{
    json_t *made = json_object();
    for (size_t i = 0; i < progress->validation_count; i++)
        json_object_set_new(made, progress->validation[i].name,
                            metrics_json(&progress->validation[i].metrics));
    return made;
}

/* {"validation": {"f1": 0.9}} */
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

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long microseconds = now.tv_nsec / 1000;
    return (double)now.tv_sec + 1e-6 * (double)microseconds;
}

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

static void give_up(json_lines *self, int error)
{
    self->failed = true;
    sgm__log(SGM_LOG_WARNING, "monitor", "%s: %s; no more lines of JSON are written", target_of(self),
             sgm__errno_text(error));
}

/* Takes `event`. */
static sgm__text line_of(json_t *event)
{
    sgm__text line = {0};
    sgm__json_append(&line, event);
    sgm__text_append_bytes(&line, "\n", 1);
    json_decref(event);
    return line;
}

/* With the lock. False: there is no room. */
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

/* With the lock. What comes after lines that were lost is told of them first. */
static void tell_dropped(json_lines *self)
{
    json_t *event = event_json("dropped", NULL, wall_time());
    json_object_set_new(event, "count", json_integer((json_int_t)self->dropped));
    sgm__text line = line_of(event);
    if (put(self, &line))
        self->dropped = 0;
    sgm__text_free(&line);
}

/* Takes `event`. A line goes out whole, and at once, or, to one who does not read, when there is room. */
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

static const char *kind_name(sgm_progress_kind kind)
{
    switch (kind) {
    case SGM_PROGRESS_START:
        return "start";
    case SGM_PROGRESS_ITERATION:
        return "iteration";
    case SGM_PROGRESS_EPOCH:
        return "epoch";
    case SGM_PROGRESS_STOP:
        return "stop";
    case SGM_PROGRESS_PAUSE:
        return "pause";
    case SGM_PROGRESS_RESUME:
        return "resume";
    case SGM_PROGRESS_MOVE:
        break;
    }
    return "move";
}

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

static void tell(const writer *own, const sgm_training_progress *progress)
{
    json_t *event = event_json(kind_name(progress->kind), progress->trainer, wall_time());
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

static bool observe(void *user, const sgm_training_progress *progress)
{
    writer *own = user;
    const sgm__pace *pace = &own->monitor->pace;
    if (progress->kind != SGM_PROGRESS_ITERATION || sgm__pace_is_due(pace, progress->iteration, &own->told))
        tell(own, progress);
    sgm__observer_next(sgm__pace_next(pace, progress->iteration));
    return true;
}

/* With the trainer's lock, which nobody who holds this monitor's waits for; nobody is waited for to read. */
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

static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    writer *own = sgm__followers_leave(&((json_lines *)monitor)->writers, trainer);
    if (own != NULL)
        sgm__changes_unlisten(trainer, tell_change, own);
    sgm__free(own);
}

/* The observer comes last: what it is told with must stay. */
static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    json_lines *self = (json_lines *)monitor;
    writer *own = sgm__calloc(1, sizeof *own);
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    *own = (writer){.follower = {trainer}, .monitor = self};
    sgm_status status = sgm__followers_enter(&self->writers, &own->follower);
    if (status != SGM_OK) {
        sgm__free(own);
        return status;
    }
    status = sgm__changes_listen(trainer, tell_change, own);
    if (status == SGM_OK)
        status = sgm__trainer_add_observer(trainer, observe, own);
    if (status != SGM_OK)
        detach(monitor, trainer);
    return status;
}

/* What is still to be written, and what was lost. */
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

/* What is no regular file may be full until somebody reads. */
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

sgm_monitor *sgm_json_lines_monitor_create(const sgm_json_lines_monitor_options *given)
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
