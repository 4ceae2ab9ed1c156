/* Trains one trial from where it stands to the end of the current rung: a "piece" of its training.
 *
 * A worker thread of search_run.c calls sgm__search_train. It makes a trainer, has the program set it up,
 * runs it in the trial's folder with `resume`, reads the objective, records the outcome and drops the
 * trainer: between two pieces a trial exists only as its folder. So halving goes on from checkpoints in the
 * same way as a search that was killed.
 *
 * The run is always one of all epochs, and an observer (`watch`) stops it at the end of the rung. So
 * schedules, which depend on the total, do not see rungs. Locks: the observer runs with the trainer's lock
 * and takes the search's `lock` within it. */
#include "environment/search.h"
#include "journal/run_lines.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* The reason with which `watch` stops a run; distinguishes the end of a rung from other stops. */
#define RUNG_REACHED "the end of the rung"
/* The reason of a stop because the objective is NaN or infinite. */
#define NOT_FINITE "the objective"
/* The reason of a stop because other trials were better after as many epochs. */
#define PRUNED "pruning"
/* The reason of a stop at the start because earlier objectives are known nowhere. */
#define CURVE_LOST "the objectives so far"

/* One piece of training; lives on the worker's stack while the trainer exists. */
typedef struct piece {
    sgm_search *search;
    sgm__trial *trial;
    sgm_trainer *trainer;
    int64_t end;      /* epochs in all at which the piece ends; 0: no limit by epochs */
    int64_t finished; /* epochs finished in this piece */
    bool lost;        /* what the objective was up to the checkpoint is known nowhere */
    bool trained;     /* at least one iteration was trained in this piece */
    bool pruned;      /* the piece ends because other trials were better after as many epochs */
    bool looked;      /* it was checked that the registry has the objective */
    double objective; /* after the newest epoch of the piece; NaN: none */
} piece;

/* --- the objective --- */

/* Reads the objective's current number from the trainer's registry. *value is written in every case. */
static sgm_status read_objective(const piece *p, double *value)
{
    const char *identifier = p->search->options.objective;
    sgm_content content;
    SGM_TRY(sgm_registry_resolve_one(sgm_trainer_registry(p->trainer), identifier, &content));
    sgm_kind kind = content.kind;
    *value = kind == SGM_KIND_INTEGER ? (double)content.as.integer : content.as.number;
    if (kind == SGM_KIND_INTEGER || kind == SGM_KIND_NUMBER) {
        sgm_content_clear(&content);
        return SGM_OK;
    }
    sgm_content_clear(&content);
    *value = NAN;
    return sgm_fail(SGM_ERROR_TYPE, "'%s' is no number, but a %s", identifier, sgm_kind_name(kind));
}

/* No objective: a mistake that every trial would make, so it is the failure of the search. */
static void fail_without_objective(const piece *p)
{
    sgm_status status = sgm__fail_within("the objective, looked for after %lld epoch%s of %s",
                                         (long long)p->finished, p->finished == 1 ? "" : "s", p->trial->name);
    pthread_mutex_lock(&p->search->lock);
    sgm__search_fail(p->search, status);
    pthread_mutex_unlock(&p->search->lock);
}

/* Once, at the first iteration after an epoch of this piece: at the end of the epoch itself the objective
 * may not be in the registry yet. */
static void check_objective(piece *p)
{
    double value;
    p->looked = true;
    if (read_objective(p, &value) != SGM_OK)
        fail_without_objective(p);
}

/* Keeps a failure as that of the search; with the lock. */
static void keep_status(sgm_search *search, sgm_status status)
{
    if (status != SGM_OK)
        sgm__search_fail(search, status);
}

/* At the end of an epoch. A missing objective is no failure yet, see check_objective; one that is not
 * finite ends the trial early. */
static void note_epoch(piece *p, const sgm_training_progress *progress)
{
    sgm_search *search = p->search;
    double value = NAN;
    bool there = read_objective(p, &value) == SGM_OK;
    p->finished++;
    p->objective = there ? sgm__search_round(value) : NAN;
    if (there && !isfinite(value))
        sgm_trainer_stop(p->trainer, NOT_FINITE);
    pthread_mutex_lock(&search->lock);
    p->trial->shown.epochs = progress->epoch;
    p->trial->newest = p->objective;
    search->epochs_done++;
    if (search->options.pruning != SGM_PRUNING_NONE)
        keep_status(search, sgm__search_curve_set(p->trial, progress->epoch, p->objective));
    sgm__search_tell(search, SGM_SEARCH_EPOCH, p->trial);
    pthread_mutex_unlock(&search->lock);
}

/* A run that goes on has its curve up to here from the log, or from its metrics. If neither has it, as after
 * a crash with an objective that no file has, the trial begins anew: it might have been pruned. */
static void note_start(piece *p, const sgm_training_progress *progress)
{
    sgm_search *search = p->search;
    pthread_mutex_lock(&search->lock);
    p->trial->shown.epochs = progress->epoch;
    if (search->options.pruning != SGM_PRUNING_NONE)
        keep_status(search, sgm__search_read_curve(search, p->trial, progress->epoch));
    p->lost =
        search->options.pruning != SGM_PRUNING_NONE && (int64_t)p->trial->curve_length < progress->epoch;
    pthread_mutex_unlock(&search->lock);
    if (p->lost)
        sgm_trainer_stop(p->trainer, CURVE_LOST);
}

/* At the end of each epoch but the last, and at the start of a run that goes on: it may have been interrupted
 * just before it was stopped. */
static void prune(piece *p, const sgm_training_progress *progress)
{
    if (progress->epochs > 0 && progress->epoch >= progress->epochs)
        return;
    pthread_mutex_lock(&p->search->lock);
    p->pruned = sgm__search_prunes(p->search, p->trial, progress->epoch);
    pthread_mutex_unlock(&p->search->lock);
    if (p->pruned)
        sgm_trainer_stop(p->trainer, PRUNED);
}

/* The observer of the trial's trainer, on its thread. Returning false ends the run with a checkpoint. A
 * run that resumes exactly at the end of the rung is stopped at its start. */
static bool watch(void *user, const sgm_training_progress *progress)
{
    piece *p = user;
    p->trained |= progress->kind == SGM_PROGRESS_ITERATION;
    if (progress->kind == SGM_PROGRESS_ITERATION && p->finished > 0 && !p->looked)
        check_objective(p);
    bool at_border = progress->kind == SGM_PROGRESS_START || progress->kind == SGM_PROGRESS_EPOCH;
    if (progress->kind == SGM_PROGRESS_START)
        note_start(p, progress);
    if (progress->kind == SGM_PROGRESS_EPOCH)
        note_epoch(p, progress);
    if (at_border)
        prune(p, progress);
    if (at_border && p->end > 0 && progress->epoch >= p->end && progress->epoch < progress->epochs)
        sgm_trainer_stop(p->trainer, RUNG_REACHED);
    return !atomic_load(&p->search->stopping);
}

/* --- beginning --- */

/* Sets in the registry those values that set_up has not read, parsed as the kind that the entry has. */
static sgm_status set_values(const piece *p)
{
    for (size_t i = 0; i < p->search->value_count; i++) {
        const sgm_trial_value *value = &p->trial->values[i];
        if (p->trial->taken[i])
            continue;
        sgm_content content, there;
        sgm_registry *registry = sgm_trainer_registry(p->trainer);
        SGM_TRY(sgm_registry_resolve_one(registry, value->name, &there));
        sgm_kind kind = there.kind;
        sgm_content_clear(&there);
        SGM_TRY(sgm_content_parse(value->text, kind, &content));
        sgm_status status = sgm_registry_resolve_set(registry, value->name, content, NULL, NULL);
        sgm_content_clear(&content);
        if (status != SGM_OK)
            return sgm__fail_within("value '%s'", value->name);
    }
    return SGM_OK;
}

/* A value named "seed" is the seed of the trainer, before set_up uses it. Also resets `taken` for this
 * piece. */
static sgm_status set_seed(const piece *p)
{
    for (size_t i = 0; i < p->search->value_count; i++) {
        const sgm_trial_value *value = &p->trial->values[i];
        int64_t seed;
        p->trial->taken[i] = strcmp(value->name, "seed") == 0;
        if (!p->trial->taken[i])
            continue;
        if (!sgm__parse_int64(value->text, &seed) || seed < 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "value 'seed': expected a whole number from 0, got '%.60s'",
                            value->text);
        sgm__settings_of(p->trainer)->seed = (uint64_t)seed;
    }
    return SGM_OK;
}

/* Makes the trainer and sets it up; with `making` held. If the environment cannot add it (the name is
 * taken, no memory), that is the search's failure, not the trial's. */
static sgm_status make(piece *p)
{
    sgm_search *search = p->search;
    sgm_status status = sgm__env_add_trainer(search->env, p->trial->name, false, &p->trainer);
    if (status != SGM_OK) {
        pthread_mutex_lock(&search->lock);
        sgm__search_fail(search, status);
        pthread_mutex_unlock(&search->lock);
        return status;
    }
    SGM_TRY(set_seed(p));
    SGM_TRY(sgm__search_set_up(search, p->trial, p->trainer));
    SGM_TRY(sgm_trainer_status(p->trainer));
    SGM_TRY(set_values(p));
    return sgm_trainer_on_progress(p->trainer, watch, p);
}

/* `making` is a lock of its own, because setting up takes trainers' locks, and trials that run take the
 * search's `lock` within theirs; holding `lock` here would reverse that order. */
static sgm_status begin(piece *p)
{
    sgm_search *search = p->search;
    pthread_mutex_lock(&search->making);
    sgm_status status = make(p);
    pthread_mutex_unlock(&search->making);
    pthread_mutex_lock(&search->lock);
    p->trial->shown.state = SGM_TRIAL_RUNNING;
    if (status == SGM_OK)
        sgm__search_tell(search, SGM_SEARCH_TRIAL_BEGINS, p->trial);
    pthread_mutex_unlock(&search->lock);
    return status;
}

/* Frees the trainer. The piece is the argument of its observer, so this comes before the piece goes. */
static void end(const piece *p)
{
    pthread_mutex_lock(&p->search->making);
    if (p->trainer != NULL)
        sgm__env_drop_trainer(p->search->env, p->trainer);
    pthread_mutex_unlock(&p->search->making);
}

/* --- end --- */

/* Whether the run was ended early by a rule, a command or a hook of the trial, rather than by the rung's
 * end. `reason` receives at most `size` bytes. */
static bool was_stopped(const piece *p, char *reason, size_t size)
{
    return sgm__control_stops(sgm__control_of(p->trainer), reason, size) && strcmp(reason, RUNG_REACHED) != 0;
}

/* The objective at the end of the piece. The registry is read again after the run, because hooks at the
 * end have changed it; but means over an epoch have begun anew by then, in which case the number of the
 * last epoch counts. A piece without an epoch had its checkpoint at the rung's end already: the number is
 * in the metrics. */
static sgm_status final_objective(piece *p)
{
    double value = NAN;
    sgm_status status = read_objective(p, &value);
    if (p->finished == 0 && sgm__search_last_metric(p->search, p->trial, &value))
        status = SGM_OK;
    else if (p->finished > 0 && !isfinite(value) && isfinite(p->objective))
        value = p->objective;
    if (status != SGM_OK) {
        fail_without_objective(p);
        return status;
    }
    p->objective = sgm__search_round(value);
    if (isfinite(value))
        return SGM_OK;
    return sgm_fail(SGM_ERROR_NUMERIC, "%s is not a finite number after epoch %lld",
                    p->search->options.objective, (long long)sgm__position_of(p->trainer)->epoch);
}

/* Keeps the newest error as the trial's. The trainer's name in front is cut off, since tables show the
 * trial's name beside it. */
static void keep_error(sgm__trial *trial)
{
    const char *message = sgm_last_error(), *name = strstr(message, trial->name);
    if (name != NULL && name - message < 12 && strncmp(name + strlen(trial->name), "': ", 3) == 0)
        message = name + strlen(trial->name) + 3;
    sgm__free(trial->error);
    trial->error = sgm__strdup(message);
    trial->shown.error = trial->error != NULL ? trial->error : "out of memory";
    trial->shown.state = SGM_TRIAL_FAILED;
    trial->shown.objective = NAN;
}

/* With the search's lock: records how the piece has ended, in the trial, in the log and, at most once a
 * second, in the table. An interrupted trial waits for a resume and stops the search. When the search
 * itself has failed, the trial's outcome is unknown and nothing is recorded. */
static void keep(const piece *p, sgm_status status, double seconds)
{
    sgm_search *search = p->search;
    sgm__trial *trial = p->trial;
    const char *state = "done";
    trial->shown.seconds += seconds;
    if (status == SGM_ERROR_INTERRUPTED) {
        state = "interrupted";
        trial->shown.state = SGM_TRIAL_WAITING;
        search->interrupted = true;
        atomic_store(&search->stopping, true);
    } else if (search->status != SGM_OK) {
        trial->shown.state = SGM_TRIAL_WAITING;
        return;
    } else if (status != SGM_OK) {
        state = "failed";
        keep_error(trial);
    } else if (p->pruned) {
        state = "pruned";
        trial->shown.state = SGM_TRIAL_DROPPED;
        trial->shown.objective = p->objective;
    } else {
        trial->shown.state = SGM_TRIAL_DONE;
        trial->shown.objective = trial->objectives[search->rung] = p->objective;
        trial->shown.rung = (int64_t)search->rung + 1;
    }
    if (status != SGM_ERROR_INTERRUPTED && p->end > trial->shown.epochs)
        search->epochs_wanted -= p->end - trial->shown.epochs;
    status = sgm__search_log_append(search, trial, state, seconds);
    if (status == SGM_OK && sgm__now() - search->written > 1)
        status = sgm__search_write_table(search);
    if (status != SGM_OK)
        sgm__search_fail(search, status);
    search->ended += trial->shown.state != SGM_TRIAL_WAITING;
    sgm__search_tell(search, SGM_SEARCH_TRIAL_ENDS, trial);
}

/* --- all of it --- */

/* A crash between checkpoint and metrics leaves a trial at the end of the rung without an objective:
 * nothing was trained in this piece, and neither registry nor metrics have the number. */
static bool has_lost_objective(const piece *p)
{
    double value;
    return !p->trained && read_objective(p, &value) != SGM_OK &&
           !sgm__search_last_metric(p->search, p->trial, &value);
}

/* So that the next run of the folder begins anew. */
static sgm_status remove_checkpoint(const sgm__trial *trial)
{
    char *path = sgm__format("%s/" SGM__CHECKPOINT_FILE, trial->folder);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status =
        unlink(path) == 0 ? SGM_OK
                          : sgm_fail(SGM_ERROR_FILE, "cannot remove '%s': %s", path, sgm__errno_text(errno));
    sgm__free(path);
    return status;
}

/* Runs the trainer in the trial's folder and reads the objective. */
static sgm_status run(piece *p, const sgm_search_options *o)
{
    char reason[256] = "";
    SGM_TRY(sgm_trainer_run(p->trainer, .epochs = o->epochs, .iterations = o->iterations,
                            .folder = p->trial->folder, .checkpoint_every = o->checkpoint_every,
                            .resume = true, .catch_interrupt = o->catch_interrupt));
    p->lost |= has_lost_objective(p);
    p->trial->stopped = was_stopped(p, reason, sizeof reason);
    return p->lost ? remove_checkpoint(p->trial) : final_objective(p);
}

/* One piece from making the trainer to dropping it. With a lost objective nothing is recorded yet, as the
 * caller tries again. */
static sgm_status attempt(piece *p)
{
    sgm_search *search = p->search;
    double began = sgm__now();
    sgm_status status = begin(p);
    if (status == SGM_OK)
        status = run(p, &search->options);
    if (status != SGM_OK || !p->lost) {
        pthread_mutex_lock(&search->lock);
        keep(p, status, sgm__now() - began);
        pthread_mutex_unlock(&search->lock);
    }
    end(p);
    return status;
}

/* If the objective, or that of earlier epochs, is lost, the trial is trained a second time from its
 * beginning, which cannot lose it again. */
void sgm__search_train(sgm_search *search, sgm__trial *trial)
{
    bool again = true;
    for (int i = 0; i < 2 && again; i++) {
        piece p = {
            .search = search, .trial = trial, .end = search->rungs[search->rung].epochs, .objective = NAN};
        again = attempt(&p) == SGM_OK && p.lost;
    }
}
