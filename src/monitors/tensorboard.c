/* A monitor that writes event files for TensorBoard: FOLDER/TRAINER/events.out.tfevents.*.
 *
 * It is an observer of each trainer (`observe`), which builds a Summary of scalars, at the end of epochs
 * also of histograms of parameters, and appends it to the trainer's file; event_file.c encodes. All work
 * of a trainer is done on that trainer's thread and touches only its own `writer`, so no lock is needed
 * beyond that of the list of writers. A file that cannot be written is reported in the log once and given
 * up; the training goes on. */
#include "base/clock.h"
#include "loop/trainer_run.h"
#include "monitors/event_file.h"
#include "monitors/followers.h"
#include "monitors/monitor.h"
#include "monitors/pace.h"
#include "train/measure.h"
#include "trainer/view.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Seconds between two reported iterations if no pace is given. */
#define DEFAULT_SECONDS 1.0
/* Largest number of values in a parameter that gets a histogram: each is copied as doubles. */
#define MAXIMUM_WEIGHTS ((int64_t)1 << 20)
/* Share of the training's time that histograms may take. */
#define HISTOGRAM_SHARE 0.02

typedef struct tensorboard {
    sgm_monitor base;
    sgm__pace pace;
    char *folder;
    bool histograms;
    sgm__followers writers;
} tensorboard;

/* The record of one trainer, used on its thread. */
typedef struct writer {
    sgm__follower follower;
    const tensorboard *monitor;
    sgm_trainer *trainer;
    FILE *file;          /* NULL: nothing was reported yet, or opening failed */
    bool failed;         /* the file is given up */
    double told;         /* sgm__now() at the last iteration reported by every_seconds */
    double next_weights; /* sgm__now() before which no histograms are made */
} writer;

/* --- the file --- */

/* Reports `why` in the log, once for each trainer. */
static void give_up(writer *own, const char *why)
{
    own->failed = true;
    sgm__log(SGM_LOG_WARNING, "monitor", "trainer '%s': no more events for TensorBoard in %s: %s",
             sgm_trainer_name(own->trainer), own->monitor->folder, why);
}

/* TensorBoard looks for "tfevents" in a file's name and reads files in the order of their names, hence the
 * time with leading zeros. Host, process and a counter make the name unique. The caller frees it. */
static char *file_name(const char *folder)
{
    static atomic_int made;
    char host[65] = "localhost";
    if (gethostname(host, sizeof host - 1) != 0 || strchr(host, '/') != NULL)
        snprintf(host, sizeof host, "localhost");
    return sgm__format("%s/events.out.tfevents.%010lld.%s.%ld.%d", folder, (long long)time(NULL), host,
                       (long)getpid(), atomic_fetch_add(&made, 1));
}

/* Writes and frees `events`. fflush at once: TensorBoard reads the file while the training runs. */
static void write_events(writer *own, sgm__text *events)
{
    if (events->failed)
        give_up(own, "out of memory");
    else if (!own->failed &&
             (fwrite(events->data, 1, events->length, own->file) != events->length || fflush(own->file) != 0))
        give_up(own, sgm__errno_text(errno));
    sgm__text_free(events);
}

/* Opened at the first event rather than in `attach`, so that a trainer that never runs leaves no folder.
 * "x": never overwrite a file; "e": O_CLOEXEC. */
static void open_file(writer *own)
{
    char *folder = sgm__format("%s/%s", own->monitor->folder, sgm_trainer_name(own->trainer));
    char *path = folder != NULL && sgm__make_folders(folder) == SGM_OK ? file_name(folder) : NULL;
    if (path == NULL) {
        give_up(own, sgm_last_error());
    } else if ((own->file = fopen(path, "wbxe")) == NULL) {
        give_up(own, sgm__errno_text(errno));
    } else {
        sgm__text events = {0};
        sgm__event_version(&events, sgm__wall_time());
        write_events(own, &events);
    }
    sgm__free(folder);
    sgm__free(path);
}

/* --- what is told --- */

/* Tag "WHAT/OF", or "WHAT" without `of`. A NaN means that there is no such number. */
static void add_scalar(sgm__text *summary, const char *what, const char *of, double value)
{
    char tag[300];
    if (!isnan(value)) {
        snprintf(tag, sizeof tag, "%s%s%s", what, of != NULL ? "/" : "", of != NULL ? of : "");
        sgm__summary_scalar(summary, tag, value);
    }
}

/* The loss of the newest minibatch comes from the registry, since the progress has means over the epoch.
 * The identifier does not exist before the first step. */
static void add_iteration(sgm__text *summary, const writer *own, const sgm_training_progress *progress)
{
    sgm_content cost = {0};
    if (sgm_registry_resolve_one(sgm_trainer_registry(own->trainer), "optimiser.loss", &cost) == SGM_OK &&
        cost.kind == SGM_KIND_NUMBER)
        add_scalar(summary, "loss", "minibatch", cost.as.number);
    else
        sgm_clear_error();
    sgm_content_clear(&cost);
    add_scalar(summary, "learning_rate", NULL, progress->learning_rate);
    if (progress->rate > 0)
        add_scalar(summary, "examples_per_second", NULL, progress->rate);
}

/* Means over the epoch, validation and scores. All are plotted over iterations; the number of the epoch is
 * a scalar of its own. */
static void add_epoch(sgm__text *summary, const sgm_training_progress *progress)
{
    add_scalar(summary, "loss", "training", progress->training.loss);
    add_scalar(summary, "accuracy", "training", progress->training.accuracy);
    for (size_t i = 0; i < progress->validation_count; i++) {
        const sgm_named_metrics *data = &progress->validation[i];
        add_scalar(summary, "loss", data->name, data->metrics.loss);
        add_scalar(summary, "accuracy", data->name, data->metrics.accuracy);
    }
    for (size_t i = 0; i < progress->score_count; i++)
        add_scalar(summary, progress->scores[i].name, progress->scores[i].data, progress->scores[i].value);
    add_scalar(summary, "epoch", NULL, (double)progress->epoch);
}

/* One parameter. Its tag is the identifier without the prefix: "network.layers.1-dense.weights" becomes
 * "1-dense/weights", so that TensorBoard groups by layer. What is no tensor of floats, is empty or is too
 * large is left out. */
static void add_histogram(sgm__text *summary, const sgm_match *match)
{
    static const char prefix[] = "network.layers.";
    if (match->content.kind != SGM_KIND_TENSOR || strncmp(match->identifier, prefix, sizeof prefix - 1) != 0)
        return;
    const sgm_tensor *tensor = match->content.as.tensor;
    int64_t count = sgm_shape_elements(sgm_tensor_shape(tensor));
    if (count < 1 || count > MAXIMUM_WEIGHTS || !sgm_dtype_is_float(sgm_tensor_dtype(tensor)))
        return;
    double *values = sgm__calloc((size_t)count, sizeof *values);
    char *tag = sgm__strdup(match->identifier + sizeof prefix - 1);
    char *dot = tag != NULL ? strrchr(tag, '.') : NULL;
    if (dot != NULL)
        *dot = '/';
    if (values != NULL && tag != NULL && sgm_tensor_read(tensor, values, (size_t)count) == SGM_OK)
        sgm__summary_histogram(summary, tag, values, (size_t)count);
    sgm__free(tag);
    sgm__free(values);
}

/* Measures how long it took and waits so long until the next time that histograms keep to their share. */
static void add_histograms(sgm__text *summary, writer *own)
{
    double begun = sgm__now();
    sgm_matches matches = {0};
    if (!own->monitor->histograms || begun < own->next_weights)
        return;
    if (sgm_registry_resolve(sgm_trainer_registry(own->trainer), "network.layers.*.*", &matches) == SGM_OK)
        for (size_t i = 0; i < matches.count; i++)
            add_histogram(summary, &matches.items[i]);
    sgm_matches_free(&matches);
    sgm_clear_error();
    double now = sgm__now();
    own->next_weights = now + (now - begun) / HISTOGRAM_SHARE;
}

static void tell(writer *own, const sgm_training_progress *progress)
{
    sgm__text summary = {0}, events = {0};
    add_iteration(&summary, own, progress);
    if (progress->kind == SGM_PROGRESS_EPOCH) {
        add_epoch(&summary, progress);
        add_histograms(&summary, own);
    }
    sgm__event_summary(&events, sgm__wall_time(), progress->iteration, &summary);
    sgm__text_free(&summary);
    write_events(own, &events);
}

/* Steps after `iteration` will come again: after a reset or restore, and at the start of a run that
 * resumes a checkpoint older than the newest event. Without this event TensorBoard would draw both lines. */
static void restart(writer *own, int64_t iteration)
{
    sgm__text events = {0};
    sgm__event_restart(&events, sgm__wall_time(), iteration + 1);
    write_events(own, &events);
}

/* The observer, on the trainer's thread. After a failure it asks for no further iterations. */
static bool observe(void *user, const sgm_training_progress *progress)
{
    writer *own = user;
    const sgm__pace *pace = &own->monitor->pace;
    if (own->file == NULL && !own->failed)
        open_file(own);
    if (own->failed) {
        sgm__observer_next(INT64_MAX);
        return true;
    }
    if (progress->kind == SGM_PROGRESS_EPOCH ||
        (progress->kind == SGM_PROGRESS_ITERATION && sgm__pace_is_due(pace, progress->iteration, &own->told)))
        tell(own, progress);
    else if (progress->kind == SGM_PROGRESS_MOVE || progress->kind == SGM_PROGRESS_START)
        restart(own, progress->iteration);
    sgm__observer_next(sgm__pace_next(pace, progress->iteration));
    return true;
}

/* --- the monitor --- */

static void free_writer(writer *own)
{
    if (own != NULL && own->file != NULL && fclose(own->file) != 0 && !own->failed)
        sgm__log(SGM_LOG_WARNING, "monitor", "events for TensorBoard in %s may not be whole: %s",
                 own->monitor->folder, sgm__errno_text(errno));
    sgm__free(own);
}

static void detach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    free_writer(sgm__followers_leave(&((tensorboard *)monitor)->writers, trainer));
}

/* The observer comes last, since it cannot be removed and its argument must stay valid. */
static sgm_status attach(sgm_monitor *monitor, sgm_trainer *trainer)
{
    tensorboard *self = (tensorboard *)monitor;
    writer *own = sgm__calloc(1, sizeof *own);
    if (own == NULL)
        return SGM_ERROR_MEMORY;
    *own = (writer){.follower = {trainer}, .monitor = self, .trainer = trainer};
    SGM_TRY(sgm__followers_enter(&self->writers, &own->follower));
    sgm_status status = sgm__trainer_add_observer(trainer, observe, own);
    if (status != SGM_OK)
        detach(monitor, trainer);
    return status;
}

static void release(sgm_monitor *monitor)
{
    tensorboard *self = (tensorboard *)monitor;
    writer *own;
    while ((own = sgm__followers_end(&self->writers)) != NULL)
        free_writer(own);
    sgm__free(self->folder);
    sgm__free(self);
}

/* Makes the folder, so that a path that cannot be written fails at creation, not within a run. */
static sgm_status take_folder(tensorboard *self, const char *folder)
{
    if (folder == NULL || folder[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_tensorboard_monitor: expected a folder for its files, such "
                                            "as .folder = \"runs/digits\"");
    self->folder = sgm__strdup(folder);
    return self->folder != NULL ? sgm__make_folders(folder) : SGM_ERROR_MEMORY;
}

sgm_monitor *sgm_tensorboard_monitor_with(const sgm_tensorboard_monitor_options *given)
{
    sgm_tensorboard_monitor_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_tensorboard_monitor") != SGM_OK)
        return NULL;
    sgm__pace pace = {.iterations = options.every_iterations, .seconds = options.every_seconds};
    if (sgm__pace_check(&pace, "sgm_tensorboard_monitor") != SGM_OK)
        return NULL;
    if (pace.iterations == 0 && !(pace.seconds > 0))
        pace.seconds = DEFAULT_SECONDS;
    tensorboard *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    sgm__followers_init(&self->writers);
    self->pace = pace;
    self->histograms = !options.no_histograms;
    self->base = (sgm_monitor){.attach = attach, .detach = detach, .free = release};
    if (take_folder(self, options.folder) == SGM_OK)
        return &self->base;
    release(&self->base);
    return NULL;
}
