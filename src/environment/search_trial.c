/* One piece of a trial's training: a trainer that is made, runs from where the trial stands to the end of the
 * rung, and goes. */
#include "environment/search.h"
#include "journal/run_lines.h"
#include "trainer/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define RUNG_REACHED "the end of the rung"
#define NOT_FINITE "the objective"

typedef struct piece {
    sgm_search *search;
    sgm__trial *trial;
    sgm_trainer *trainer;
    int64_t end;      /* epochs; 0: none */
    int64_t finished; /* epochs in this piece */
    bool lost;        /* the objective, with the process that computed it */
    bool trained;     /* at least an iteration in this piece */
    bool looked;      /* for the objective, after the first epoch */
    double objective; /* when the newest epoch ended; NaN: there was none */
} piece;

/* --- the objective --- */

static sgm_status read_objective(const piece *p, double *value)
{
    const char *identifier = p->search->options.objective;
    sgm_content content;
    SGM_TRY(sgm_resolve_one(sgm_trainer_registry(p->trainer), identifier, &content));
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

/* A mistake that every trial would make. */
static void fail_without_objective(const piece *p)
{
    sgm_status status = sgm__fail_within("the objective, looked for after %lld epoch%s of %s",
                                         (long long)p->finished, p->finished == 1 ? "" : "s", p->trial->name);
    pthread_mutex_lock(&p->search->lock);
    sgm__search_fail(p->search, status);
    pthread_mutex_unlock(&p->search->lock);
}

static void check_objective(piece *p)
{
    double value;
    p->looked = true;
    if (read_objective(p, &value) != SGM_OK)
        fail_without_objective(p);
}

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
    sgm__search_tell(search, SGM_SEARCH_EPOCH, p->trial);
    pthread_mutex_unlock(&search->lock);
}

/* Stops at the end of the rung, though the run is of a whole training: so schedules do not know of rungs. */
static bool watch(void *user, const sgm_training_progress *progress)
{
    piece *p = user;
    p->trained |= progress->kind == SGM_PROGRESS_ITERATION;
    if (progress->kind == SGM_PROGRESS_ITERATION && p->finished > 0 && !p->looked)
        check_objective(p);
    if (progress->kind == SGM_PROGRESS_START) {
        pthread_mutex_lock(&p->search->lock);
        p->trial->shown.epochs = progress->epoch;
        pthread_mutex_unlock(&p->search->lock);
    }
    if (progress->kind == SGM_PROGRESS_EPOCH)
        note_epoch(p, progress);
    if ((progress->kind == SGM_PROGRESS_START || progress->kind == SGM_PROGRESS_EPOCH) && p->end > 0 &&
        progress->epoch >= p->end && progress->epoch < progress->epochs)
        sgm_trainer_stop(p->trainer, RUNG_REACHED);
    return !atomic_load(&p->search->stopping);
}

/* --- beginning --- */

/* Sets in the registry what set_up has not asked for. */
static sgm_status set_values(const piece *p)
{
    for (size_t i = 0; i < p->search->value_count; i++) {
        const sgm_trial_value *value = &p->trial->values[i];
        if (p->trial->taken[i])
            continue;
        sgm_content content, there;
        sgm_registry *registry = sgm_trainer_registry(p->trainer);
        SGM_TRY(sgm_resolve_one(registry, value->name, &there));
        sgm_kind kind = there.kind;
        sgm_content_clear(&there);
        SGM_TRY(sgm_content_parse(value->text, kind, &content));
        sgm_status status = sgm_resolve_set(registry, value->name, content, NULL, NULL);
        sgm_content_clear(&content);
        if (status != SGM_OK)
            return sgm__fail_within("value '%s'", value->name);
    }
    return SGM_OK;
}

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
        p->trainer->settings.seed = (uint64_t)seed;
    }
    return SGM_OK;
}

static sgm_status make(piece *p)
{
    sgm_search *search = p->search;
    sgm_status status = sgm__env_add_trainer(search->env, p->trial->name, false, &p->trainer);
    if (status != SGM_OK) { /* a name that is taken, no memory: nothing of the trial's */
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

/* Under a lock of its own: trainers' locks are taken within, and within those, while they run, the search's.
 */
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

static void end(const piece *p)
{
    pthread_mutex_lock(&p->search->making);
    if (p->trainer != NULL)
        sgm__env_drop_trainer(p->search->env, p->trainer);
    pthread_mutex_unlock(&p->search->making);
}

/* --- end --- */

/* What ended the run before its time was a rule, a command or a hook of the trial's own. */
static bool was_stopped(const piece *p, char *reason, size_t size)
{
    return sgm__control_stops(&p->trainer->control, reason, size) && strcmp(reason, RUNG_REACHED) != 0;
}

/* After the last epoch of the piece: hooks have had their say too, but means over an epoch begin anew. */
static sgm_status final_objective(piece *p)
{
    double value = NAN;
    sgm_status status = read_objective(p, &value);
    if (p->finished == 0 && sgm__search_last_metric(p->search, p->trial, &value))
        status = SGM_OK; /* the checkpoint was there, only its line was not */
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
                    p->search->options.objective, (long long)p->trainer->position.epoch);
}

/* The trainer's name is in front of its messages; here everybody knows it. */
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
    } else {
        trial->shown.state = SGM_TRIAL_DONE;
        trial->shown.objective = trial->objectives[search->rung] = p->objective;
        trial->shown.rung = (int64_t)search->rung + 1;
    }
    if (status != SGM_ERROR_INTERRUPTED && p->end > trial->shown.epochs) /* nothing comes of these */
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

/* A crash may leave the checkpoint of the rung's end, but its objective nowhere. */
static bool has_lost_objective(const piece *p)
{
    double value;
    return !p->trained && read_objective(p, &value) != SGM_OK &&
           !sgm__search_last_metric(p->search, p->trial, &value);
}

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

static sgm_status run(piece *p, const sgm_search_options *o)
{
    char reason[256] = "";
    SGM_TRY(sgm_trainer_run(p->trainer, .epochs = o->epochs, .iterations = o->iterations,
                            .folder = p->trial->folder, .checkpoint_every = o->checkpoint_every,
                            .resume = true, .catch_interrupt = o->catch_interrupt));
    p->lost = has_lost_objective(p);
    p->trial->stopped = was_stopped(p, reason, sizeof reason);
    return p->lost ? remove_checkpoint(p->trial) : final_objective(p);
}

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

void sgm__search_train(sgm_search *search, sgm__trial *trial)
{
    bool again = true;
    for (int i = 0; i < 2 && again; i++) { /* what is trained from its beginning loses nothing */
        piece p = {
            .search = search, .trial = trial, .end = search->rungs[search->rung].epochs, .objective = NAN};
        again = attempt(&p) == SGM_OK && p.lost;
    }
}
