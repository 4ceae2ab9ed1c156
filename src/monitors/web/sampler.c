/* Sampling: reads the recorded values on the training's thread, as rarely as needed to cost the training next
 * to nothing.
 *
 * sgm__web_observe is an observer of each trainer. Between two iterations it reads the recorded values out
 * of the registry and leaves them in a buffer (recording.c), which the monitor's thread empties (drain.c).
 * It measures how long that takes and how long an iteration takes, and skips so many iterations (the
 * stride) that sampling stays below SHARE of the time; sgm__observer_next keeps skipped iterations from
 * calling it at all. At iterations it waits for nobody: if the buffer is being taken, this iteration is
 * not sampled but the next one is. */
#include "loop/trainer_run.h"
#include "monitors/web/web_internal.h"
#include "registry/pattern.h"

#include <math.h>
#include <stdio.h>

/* Share of the training's time that samples of iterations may take, and as much again for epochs. */
#define SHARE 0.002
/* Seconds; of iterations that are shorter, samples get only half of the share, because what a sample
 * displaces from the caches costs as much again. */
#define SHORT_STEP 2e-5
/* Seconds that the run needs to call its observers, which the measurement here does not see. */
#define REPORT_SECONDS 1e-7
/* Seconds between two samples at most, if iterations are short enough, so that curves move evenly; samples
 * may take LARGEST_SHARE of the time for that. */
#define LONGEST_GAP 0.05
#define LARGEST_SHARE 0.004

/* --- the status --- */

/* Epochs with the finished share of the current one; streams without a known length have no share. */
static double epoch_of(const sgm_training_progress *progress)
{
    double part = progress->batches > 0 ? (double)progress->batch / (double)progress->batches : 0;
    return (double)progress->epoch + fmin(part, 1);
}

/* By the mean speed since the run began or was moved; -1: unknown. The progress has a time left of its own
 * only at iterations, hence this one for all events. */
static double seconds_left(const sgm__web_recording *recording, const sgm_training_progress *progress)
{
    double done = epoch_of(progress) - recording->start, left = (double)progress->epochs - epoch_of(progress);
    double seconds = progress->seconds - recording->start_seconds;
    return progress->epochs > 0 && done > 0 && left >= 0 ? seconds * left / done : -1;
}

static sgm__web_moment moment_of(const sgm__web_recording *recording, const sgm_training_progress *progress)
{
    return (sgm__web_moment){.iteration = progress->iteration,
                             .epoch = epoch_of(progress),
                             .seconds = recording->base + progress->seconds};
}

/* With the sampling lock. Copies the progress without its pointers. A progress right after the end of an
 * epoch (an end, a pause) has no metrics yet; it shows those of the epoch. */
static void take_status(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_status *status = &recording->status;
    status->progress = *progress;
    if (progress->kind == SGM_PROGRESS_START || progress->kind == SGM_PROGRESS_MOVE)
        recording->epoch.training.examples = 0;
    if (progress->training.examples == 0 && recording->epoch.training.examples > 0)
        status->progress.training = recording->epoch.training;
    status->progress.trainer = recording->watched->name;
    status->progress.validation = NULL;
    status->progress.scores = NULL;
    status->progress.validation_count = status->progress.score_count = 0;
    status->progress.reason = NULL;
    status->progress.seconds_left = seconds_left(recording, progress);
    if (progress->kind == SGM_PROGRESS_START)
        status->reason[0] = '\0';
    if (progress->kind == SGM_PROGRESS_STOP && progress->reason != NULL)
        snprintf(status->reason, sizeof status->reason, "%s", progress->reason);
    status->moment = moment_of(recording, progress);
    status->stride = recording->stride;
    status->version++;
}

/* With the sampling lock: what changes only between runs. */
static void take_facts(sgm__web_recording *recording)
{
    sgm_trainer *trainer = recording->watched->trainer;
    sgm_registry *root = sgm_trainer_registry(trainer);
    sgm__web_status *status = &recording->status;
    sgm_content content = {0};
    if (sgm_registry_resolve_one(root, "network.notation", &content) == SGM_OK &&
        content.kind == SGM_KIND_TEXT) {
        sgm__free(status->network);
        status->network = sgm__strdup(content.as.text);
    }
    sgm_content_clear(&content);
    if (sgm_registry_resolve_one(root, "network.parameter_count", &content) == SGM_OK &&
        content.kind == SGM_KIND_INTEGER)
        status->parameters = content.as.integer;
    sgm_content_clear(&content);
    status->has_folder = sgm__trainer_look(trainer).folder != NULL;
    status->version++;
}

/* With the sampling lock. `base` is what the axis of seconds has before this run, from earlier runs in
 * this process or in one that is resumed. After a move back it may be negative, because the training's
 * time goes back while the run's does not. */
static void begin_part(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm_content content = {0};
    sgm_registry *root = sgm_trainer_registry(recording->watched->trainer);
    if (sgm_registry_resolve_one(root, "running_time", &content) == SGM_OK && content.kind == SGM_KIND_NUMBER)
        recording->base = content.as.number - progress->seconds;
    sgm_content_clear(&content);
    recording->start = epoch_of(progress);
    recording->start_seconds = progress->seconds;
}

/* --- epochs: what was measured since the one before --- */

/* The item "DATA.NAME" of a validation set; NULL: there is no room. */
static sgm__web_item *told_item(sgm__web_recording *recording, const char *data, const char *name)
{
    char *part = sgm__identifier_part(data);
    char *identifier = part != NULL ? sgm__format("%s.%s", part, name) : NULL;
    sgm__web_item *item = identifier != NULL ? sgm__web_add_item(recording, identifier, true) : NULL;
    sgm__free(identifier);
    sgm__free(part);
    return item;
}

/* Adds a value that came with the progress. A person may have asked for the same identifier in the
 * registry; it is then read there, and not recorded twice. */
static void add_told(sgm__web_recording *recording, sgm__web_item *item, double value)
{
    if (item == NULL || (item->active && !item->told))
        return;
    item->active = item->told = true;
    sgm__web_add_value(&recording->samples, item, value);
}

/* For metrics.c, which wants the newest validation whether or not it was sampled. Names are copied, since
 * the trainer's may go. */
static void keep_newest(sgm__web_recording *recording, const sgm__web_epoch *kept)
{
    recording->newest_count = 0;
    for (size_t i = 0; i < kept->count; i++) {
        sgm__web_validation *newest = &recording->newest[i];
        if (newest->name == NULL || strcmp(newest->name, kept->names[i]) != 0) {
            sgm__free(newest->name);
            newest->name = sgm__strdup(kept->names[i]);
        }
        newest->loss = kept->losses[i];
        newest->accuracy = kept->accuracies[i];
        if (newest->name == NULL)
            return;
        recording->newest_count++;
    }
}

/* Remembers what an epoch has measured. That is cheap and happens for each epoch, also where only some of
 * them are sampled. */
static void keep_epoch(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_epoch *kept = &recording->epoch;
    kept->moment = moment_of(recording, progress);
    kept->training = progress->training;
    kept->count =
        progress->validation_count < SGM__WEB_VALIDATIONS ? progress->validation_count : SGM__WEB_VALIDATIONS;
    for (size_t i = 0; i < kept->count; i++) {
        kept->losses[i] = progress->validation[i].metrics.loss;
        kept->accuracies[i] = progress->validation[i].metrics.accuracy;
        kept->names[i] = progress->validation[i].name;
    }
    keep_newest(recording, kept);
}

/* Makes a sample of the validation that keep_epoch has kept, at the moment of its epoch. It is done at the
 * next sample rather than at the epoch itself, which may not be sampled. */
static void take_validation(sgm__web_recording *recording)
{
    sgm__web_epoch *kept = &recording->epoch;
    if (kept->count == 0 || !sgm__web_begin_sample(&recording->samples, kept->moment))
        return;
    for (size_t i = 0; i < kept->count; i++) {
        if (kept->loss_items[i] == NULL)
            kept->loss_items[i] = told_item(recording, kept->names[i], "loss");
        if (kept->accuracy_items[i] == NULL)
            kept->accuracy_items[i] = told_item(recording, kept->names[i], "accuracy");
        add_told(recording, kept->loss_items[i], kept->losses[i]);
        add_told(recording, kept->accuracy_items[i], kept->accuracies[i]);
    }
    kept->count = 0;
}

/* Results of metrics (hooks), which exist only in the progress. */
static void take_scores(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    if (progress->score_count == 0 || !sgm__web_begin_sample(&recording->samples, recording->status.moment))
        return;
    for (size_t i = 0; i < progress->score_count; i++)
        add_told(recording, told_item(recording, progress->scores[i].data, progress->scores[i].name),
                 progress->scores[i].value);
}

/* --- the observer --- */

/* Calls `progress` of all parts. Direct calls: this is on the training's path. */
static void tell_parts(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    sgm__web_trainer *watched = recording->watched;
#define TELL_PART(part)                                                                                      \
    if (sgm__web_##part.progress != NULL)                                                                    \
        sgm__web_##part.progress(watched, watched->states[SGM__WEB_##part], progress);
    SGM__WEB_PARTS(TELL_PART)
#undef TELL_PART
}

/* A running mean with weight 1/8 for the new measurement, which is cut at four times the mean: a sample
 * that another program has interrupted shall not make sampling rare. */
static void follow(double *mean, double measured)
{
    *mean = *mean > 0 ? *mean + (fmin(measured, 4 * *mean) - *mean) / 8 : measured;
}

/* Iterations from one sample to the next: cost / (share * step), so that samples take their share of the
 * time, but at most those of LONGEST_GAP seconds, as far as LARGEST_SHARE allows, and at least one. `cost`
 * and `step` are in seconds. */
static int64_t stride_of(double cost, double step)
{
    if (!(step > 0))
        return 1;
    double stride = ceil(cost / ((step < SHORT_STEP ? SHARE / 2 : SHARE) * step));
    return (int64_t)fmax(fmin(stride, fmax(LONGEST_GAP, cost / LARGEST_SHARE) / step), 1);
}

/* One sample. The step is measured from the end of the sample before to the beginning of this one, so that
 * samples themselves do not count. */
static void observe_iteration(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    double start = sgm__now();
    if (pthread_mutex_trylock(&recording->sampling) != 0)
        return;
    take_validation(recording);
    take_status(recording, progress);
    sgm__web_take_values(recording, false);
    pthread_mutex_unlock(&recording->sampling);
    tell_parts(recording, progress);
    double end = sgm__now();
    if (recording->sampled > 0 && progress->iteration > recording->iteration)
        follow(&recording->step,
               (start - recording->sampled) / (double)(progress->iteration - recording->iteration));
    follow(&recording->cost, end - start + REPORT_SECONDS);
    recording->sampled = end;
    recording->iteration = progress->iteration;
    recording->stride = stride_of(recording->cost, recording->step);
    recording->next_iteration = progress->iteration + recording->stride;
    sgm__observer_next(recording->next_iteration);
}

/* A trainer may run without its environment (sgm_trainer_run), so the server is started here too. */
static void note_run(sgm__web *web, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_STOP)
        atomic_store(&web->interrupted, progress->interrupted);
    if (progress->kind != SGM_PROGRESS_START)
        return;
    atomic_store(&web->ran, true);
    atomic_store(&web->interrupted, false);
    if (sgm__web_start(web) != SGM_OK)
        sgm__log(SGM_LOG_ERROR, "monitor", "%s", sgm_last_error());
}

/* Starts, stops, pauses, moves. They are rare, so this may wait for the lock, and looks up registries that
 * were missing. */
static void observe_event(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    note_run(recording->watched->web, progress);
    sgm__web_take_pending(recording);
    bool begins = progress->kind == SGM_PROGRESS_START || progress->kind == SGM_PROGRESS_MOVE;
    pthread_mutex_lock(&recording->sampling);
    if (begins)
        begin_part(recording, progress);
    if (progress->kind == SGM_PROGRESS_START)
        memset(&recording->epoch, 0, sizeof recording->epoch);
    else
        take_validation(recording);
    if (begins) {
        take_facts(recording);
        sgm__web_add_costs(recording);
    }
    sgm__web_find_parents(recording);
    take_status(recording, progress);
    sgm__web_take_values(recording, begins);
    pthread_mutex_unlock(&recording->sampling);
    tell_parts(recording, progress);
    recording->sampled = 0;
    recording->next_epoch = recording->next_iteration = 0;
    sgm_clear_error();
}

/* The end of an epoch. It is always remembered (keep_epoch), but sampled only as often as epochs may cost,
 * or if hooks have measured something. */
static void observe_epoch(sgm__web_recording *recording, const sgm_training_progress *progress)
{
    bool is_due = progress->iteration >= recording->next_epoch || progress->score_count > 0;
    double start = is_due ? sgm__now() : 0;
    if (is_due)
        sgm__web_take_pending(recording);
    pthread_mutex_lock(&recording->sampling);
    keep_epoch(recording, progress);
    recording->settled = true;
    if (is_due) {
        sgm__web_find_parents(recording);
        take_validation(recording);
        take_status(recording, progress);
        sgm__web_take_values(recording, false);
        take_scores(recording, progress);
    }
    pthread_mutex_unlock(&recording->sampling);
    if (is_due) {
        tell_parts(recording, progress);
        sgm_clear_error();
        follow(&recording->epoch_cost, sgm__now() - start);
        recording->next_epoch = progress->iteration + stride_of(recording->epoch_cost, recording->step);
    }
    sgm__observer_next(recording->next_iteration);
}

/* Never stops the run. */
bool sgm__web_observe(void *user, const sgm_training_progress *progress)
{
    sgm__web_recording *recording = user;
    if (progress->kind == SGM_PROGRESS_ITERATION)
        observe_iteration(recording, progress);
    else if (progress->kind == SGM_PROGRESS_EPOCH)
        observe_epoch(recording, progress);
    else
        observe_event(recording, progress);
    return true;
}

/* --- of one that does not run --- */

void sgm__web_refresh(sgm__web_recording *recording)
{
    pthread_mutex_lock(&recording->sampling);
    take_facts(recording);
    pthread_mutex_unlock(&recording->sampling);
    sgm_clear_error();
}
