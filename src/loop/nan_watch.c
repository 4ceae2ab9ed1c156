/* The hook nan_watch: finds the step, the instruction and the layer that a value comes from which is NaN or
 * infinite.
 *
 * The method: every `every` iterations the hook takes a snapshot of the training (train/snapshot.h) whose
 * states are all finite. When a loss or a state is not finite, the trainer is set back to the newest snapshot
 * and repeats the steps behind it, with the learning rates that they had (sgm__trainer_progress.rates),
 * testing states after each one; then it repeats the bad step in a session of the handler debug:, which tests
 * the result of each instruction and names the first bad one. The minibatch, and the states before that step,
 * are saved in the run folder, and the run fails with a message that says all of this, or pauses in front of
 * the step.
 *
 * src/loop/trainer_run.c calls sgm__nan_watch_begin and sgm__nan_watch_look; the hook itself is due between
 * iterations. All functions run on the run's thread with the trainer's lock. As long as all values are
 * finite, the cost is a copy of the states every `every` iterations. */
#include "loop/nan_watch.h"
#include "hooks/hook_text.h"
#include "train/snapshot.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

#define DEFAULT_EVERY 100 /* iterations from one snapshot to the next */
#define MAXIMUM_EVERY 250
_Static_assert(MAXIMUM_EVERY < SGM__KEPT_RATES, "steps are done again with the learning rates they had");

/* The hook's own data. */
typedef struct nan_watch {
    int64_t every;
    bool pause;
    sgm__snapshot *snapshot; /* the newest one whose states are all finite; NULL: none yet */
} nan_watch;

/* What was found out about a bad step. It owns `place` and `files`. */
typedef struct finding {
    char what[160];    /* "the loss is infinite", "state '2-dense.weights' is not finite" */
    int64_t iteration; /* from 1 */
    int64_t epoch;     /* from 1 */
    double rate;
    char *place; /* the debug handler's message; NULL: it found no bad instruction */
    char *files; /* "; kept: ..."; NULL: none */
} finding;

/* --- repeating steps --- */

/* The next minibatch, also across the end of an epoch. Of what a run does at an epoch's end (end_epoch in
 * trainer_run.c) this is what steps depend on: the position, and what layers remember. */
static sgm_status next_minibatch(sgm_trainer *trainer, const sgm_block **block)
{
    SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    if (*block != NULL)
        return SGM_OK;
    trainer->position.epoch++;
    trainer->position.batch = 0;
    trainer->position.sums = (sgm__metric_sums){0};
    SGM_TRY(sgm__trainer_forget_memories(trainer));
    SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    return *block != NULL ? SGM_OK : sgm_fail(SGM_ERROR_STATE, "the training data gives no minibatch");
}

/* The learning rate that the next step had when it was done the first time. */
static double rate_of(const sgm_trainer *trainer)
{
    return trainer->progress.rates[trainer->position.iteration % SGM__KEPT_RATES];
}

/* Repeats one step. *bad: its loss or a state behind it is not finite, and `what` says which.
 * SGM_ERROR_NUMERIC is a handler's own finding (debug:). */
static sgm_status try_step(sgm_trainer *trainer, bool *bad, char *what, size_t size)
{
    const sgm_block *block;
    SGM_TRY(next_minibatch(trainer, &block));
    sgm_status status = sgm__trainer_step(trainer, block, rate_of(trainer));
    *bad = true;
    if (status == SGM_ERROR_NUMERIC) { /* handlers that look themselves */
        snprintf(what, size, "a value is not finite");
        return SGM_OK;
    }
    SGM_TRY(status);
    if (!isfinite(trainer->progress.newest_loss)) {
        snprintf(what, size, "the loss is %s",
                 isnan(trainer->progress.newest_loss) ? "not a number" : "infinite");
        return SGM_OK;
    }
    sgm__snapshot *after = sgm__snapshot_take(trainer);
    if (after == NULL)
        return sgm_last_status();
    const char *state = sgm__snapshot_bad_state(after);
    if (state != NULL)
        snprintf(what, size, "'%.120s' is not finite", state);
    *bad = state != NULL;
    sgm__snapshot_free(after);
    return SGM_OK;
}

/* Repeats the steps behind the snapshot, up to iteration `last`. If one of them is bad, *found is true and
 * the trainer is set back to before it; for that each step is preceded by a snapshot. */
static sgm_status go_before_bad_step(sgm_trainer *trainer, const sgm__snapshot *from, int64_t last,
                                     finding *result, bool *found)
{
    SGM_TRY(sgm__snapshot_restore(trainer, from));
    for (*found = false; !*found && trainer->position.iteration < last;) {
        sgm__snapshot *before = sgm__snapshot_take(trainer);
        if (before == NULL)
            return sgm_last_status();
        sgm_status status = try_step(trainer, found, result->what, sizeof result->what);
        if (status == SGM_OK && *found)
            status = sgm__snapshot_restore(trainer, before);
        sgm__snapshot_free(before);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* --- the bad step, instruction by instruction --- */

/* Copies all states from one session to another, whose handler may be another one. */
static sgm_status copy_states(sgm_session *from, sgm_session *to)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(from, i)) != NULL; i++) {
        sgm_tensor *value = sgm_session_get(from, name);
        sgm_status status = value != NULL ? sgm_session_set(to, name, value) : sgm_last_status();
        sgm_tensor_free(value);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Runs the step in `session` in place of the trainer's own, which is put back afterwards; programs belong to
 * a session, so they are forgotten twice. The status is the step's: for SGM_ERROR_NUMERIC the message names
 * instruction and layer. */
static sgm_status run_slowly(sgm_trainer *trainer, sgm_session *session, const sgm_block *block)
{
    sgm_session *own = trainer->learner.session;
    sgm__training_position position = trainer->position;
    SGM_TRY(copy_states(own, session));
    trainer->learner.session = session;
    sgm__trainer_forget_programs(trainer);
    sgm_status status = sgm__trainer_step(trainer, block, rate_of(trainer));
    trainer->learner.session = own;
    sgm__trainer_forget_programs(trainer);
    trainer->position = position;
    return status;
}

/* Makes a session of the handler debug: around the trainer's handler, and runs the step there. *place becomes
 * the debug handler's message, and stays NULL if all results are finite. */
static sgm_status find_place(sgm_trainer *trainer, const sgm_block *block, char **place)
{
    const char *name = sgm_handler_name(trainer->settings.handler);
    char *watching = strncmp(name, "debug:", 6) == 0 ? sgm__strdup(name) : sgm__format("debug:%s", name);
    sgm_handler *handler = watching != NULL ? sgm_handler_create_with(watching, NULL) : NULL;
    sgm_session *session = handler != NULL ? sgm_session_create(handler) : NULL;
    sgm__free(watching);
    if (session == NULL) {
        sgm_handler_free(handler);
        return sgm_last_status();
    }
    sgm_status status = run_slowly(trainer, session, block);
    if (status == SGM_ERROR_NUMERIC) {
        *place = sgm__strdup(sgm_last_error());
        status = *place != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    }
    sgm_session_free(session);
    sgm_handler_free(handler);
    return status;
}

/* --- files in the run folder --- */

static sgm_status save_block(const sgm_block *block, const char *path)
{
    sgm_bundle *bundle = sgm_bundle_create();
    sgm_status status = bundle != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < block->field_count && status == SGM_OK; i++)
        status = sgm_bundle_add(bundle, block->fields[i].name, block->fields[i].values);
    if (status == SGM_OK)
        status = sgm_bundle_save(bundle, path);
    sgm_bundle_free(bundle);
    return status;
}

/* A place for a file of this finding, NULL: no memory. */
static char *path_of(const sgm_trainer *trainer, const finding *result, const char *suffix)
{
    return sgm__format("%s/nan-%lld%s.safetensors", trainer->journal.folder, (long long)result->iteration,
                       suffix);
}

/* Saves the bad step's minibatch, nan-ITERATION-batch.safetensors; nothing without a run folder. */
static sgm_status keep_block(const sgm_trainer *trainer, const sgm_block *block, const finding *result)
{
    if (trainer->journal.folder == NULL)
        return SGM_OK;
    char *path = path_of(trainer, result, "-batch");
    sgm_status status = path != NULL ? save_block(block, path) : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

/* Saves the training as it is before the bad step, and notes both files for the message. */
static sgm_status keep_training(sgm_trainer *trainer, finding *result)
{
    if (trainer->journal.folder == NULL)
        return SGM_OK;
    char *path = path_of(trainer, result, ""), *batch = path_of(trainer, result, "-batch");
    sgm_status status = path != NULL && batch != NULL ? sgm_trainer_save(trainer, path) : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        result->files = sgm__format("; %s is the training before this step, %s its minibatch", path, batch);
        status = result->files != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    }
    sgm__free(path);
    sgm__free(batch);
    return status;
}

/* A failure while the step is examined is only logged: the finding itself matters more. */
static void warn(const sgm_trainer *trainer, sgm_status status)
{
    if (status != SGM_OK)
        sgm__log(SGM_LOG_WARNING, trainer->name, "looking at the bad step: %s", sgm_last_error());
}

/* Finds the place of the bad value and saves the files. The trainer stands before the bad step when this is
 * called, and again when it returns. */
static sgm_status examine(sgm_trainer *trainer, finding *result)
{
    const sgm_block *block;
    sgm__snapshot *before = sgm__snapshot_take(trainer);
    if (before == NULL)
        return sgm_last_status();
    sgm_status status = next_minibatch(trainer, &block);
    if (status == SGM_OK) {
        result->iteration = trainer->position.iteration + 1;
        result->epoch = trainer->position.epoch + 1;
        result->rate = rate_of(trainer);
        warn(trainer, find_place(trainer, block, &result->place));
        sgm_status kept = keep_block(trainer, block, result);
        status = sgm__snapshot_restore(trainer, before);
        warn(trainer, kept == SGM_OK && status == SGM_OK ? keep_training(trainer, result) : kept);
    }
    sgm__snapshot_free(before);
    return status;
}

static char *describe(const finding *result)
{
    return sgm__format("%s at iteration %lld, in epoch %lld: %s%s. Lower the learning rate (%g), clip "
                       "gradients (optimiser.clip_norm), or look for such values in the data%s",
                       result->what, (long long)result->iteration, (long long)result->epoch,
                       result->place != NULL ? "first there is " : "",
                       result->place != NULL ? result->place
                                             : "done again one instruction at a time, the step was finite",
                       result->rate, result->files != NULL ? result->files : "");
}

/* --- together --- */

/* Whether the steps behind the snapshot can be repeated: their learning rates must still be kept. */
static bool can_go_back(const nan_watch *self, const sgm_trainer *trainer, int64_t last)
{
    int64_t steps = self->snapshot != NULL ? last - self->snapshot->position.iteration : 0;
    return trainer->data.training != NULL && steps > 0 && steps < SGM__KEPT_RATES;
}

/* Makes the message: `message`, what is known already, if the steps cannot be repeated, else the finding. The
 * caller frees it; NULL: no memory. */
static char *find_out(const nan_watch *self, sgm_trainer *trainer, int64_t last, const char *message)
{
    finding result = {0};
    bool found = false;
    if (trainer->sharing.strategy != NULL)
        return sgm__format("%s (the NaN watch does no steps of several workers again: run with one)",
                           message);
    if (!can_go_back(self, trainer, last))
        return sgm__format("%s (the NaN watch has nothing to go back to)", message);
    sgm_status status = go_before_bad_step(trainer, self->snapshot, last, &result, &found);
    if (status == SGM_OK && found)
        status = examine(trainer, &result);
    char *text;
    if (status != SGM_OK)
        text = sgm__format("%s (the NaN watch could not do the steps again: %s)", message, sgm_last_error());
    else if (!found)
        text = sgm__format("%s (the steps after iteration %lld, done again, were finite: what was changed "
                           "meanwhile?)",
                           message, (long long)self->snapshot->position.iteration);
    else
        text = describe(&result);
    sgm__free(result.place);
    sgm__free(result.files);
    return text;
}

/* One of the steps up to iteration `last` was bad. Finds out which, and fails, or logs the message and asks
 * for a pause, after which a user may change values and resume. Workers' steps are not repeated. */
static sgm_status act(const nan_watch *self, sgm_trainer *trainer, int64_t last, const char *message)
{
    char *text = find_out(self, trainer, last, message);
    if (text == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    if (self->pause) {
        sgm__log(SGM_LOG_ERROR, trainer->name, "%s. Paused before it: change values, then resume", text);
        status = sgm_trainer_pause(trainer);
    } else {
        status = sgm_fail(SGM_ERROR_NUMERIC, "%s", text);
    }
    sgm__free(text);
    return status;
}

/* --- the hook --- */

/* Takes the next snapshot, if all states are finite. A bad state is acted on even while the loss is still
 * finite: the next loss will not be. */
static sgm_status remember(void *state, sgm_hook_call *call)
{
    nan_watch *self = state;
    sgm_trainer *trainer = sgm_hook_trainer(call);
    if (trainer == NULL)
        return sgm_fail(SGM_ERROR_STATE, "a NaN watch needs a trainer, in the foreground");
    sgm__snapshot *taken = sgm__snapshot_take(trainer);
    if (taken == NULL)
        return sgm_last_status();
    const char *bad = sgm__snapshot_bad_state(taken);
    if (bad == NULL) {
        sgm__snapshot_free(self->snapshot);
        self->snapshot = taken;
        return SGM_OK;
    }
    char message[256];
    snprintf(message, sizeof message, "'%.120s' is not finite after iteration %lld", bad,
             (long long)trainer->position.iteration);
    sgm__snapshot_free(taken);
    return act(self, trainer, trainer->position.iteration, message);
}

static bool is_equal(const void *a, const void *b)
{
    return ((const nan_watch *)a)->every == ((const nan_watch *)b)->every &&
           ((const nan_watch *)a)->pause == ((const nan_watch *)b)->pause;
}

static void free_watch(void *state)
{
    nan_watch *self = state;
    sgm__snapshot_free(self->snapshot);
    sgm__free(self);
}

static const sgm_hook_type watch_type = {.api = SGM_HOOK_API,
                                         .name = "nan_watch",
                                         .doc = "finds where a value that is no number comes from",
                                         .invoke = remember,
                                         .equal = is_equal,
                                         .free = free_watch,
                                         .only_global = "it watches the trainer, with all workers"};

sgm_hook *sgm_nan_watch_with(const sgm_nan_watch_options *given)
{
    sgm_nan_watch_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_nan_watch") != SGM_OK)
        return NULL;
    if (options.every == 0)
        options.every = DEFAULT_EVERY;
    if (options.every < 1 || options.every > MAXIMUM_EVERY) {
        sgm_fail(SGM_ERROR_ARGUMENT, "NaN watch: .every is %lld, expected 1 to %d iterations",
                 (long long)options.every, MAXIMUM_EVERY);
        return NULL;
    }
    nan_watch *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->every = options.every;
    self->pause = options.pause;
    return sgm_hook_create(&watch_type, self, .when = sgm_every(options.every, SGM_ITERATION),
                           .priority = -2000, .failure = SGM_HOOK_STOP);
}

/* --- as text --- */

static sgm_hook *parse_watch(const sgm__call *call, sgm_time_step when)
{
    if (when.scale != SGM_ITERATION || when.live > 0 || when.interval > MAXIMUM_EVERY) {
        sgm__call_fail(call, NULL, "the step is every 1 to %d iterations", MAXIMUM_EVERY);
        return NULL;
    }
    return sgm_nan_watch(.every = when.interval, .pause = sgm__call_flag(call, "pause"));
}

const sgm__hook_row sgm__nan_watch_row = {
    .name = "nan_watch",
    .example = "every 50 iterations nan_watch",
    .doc = "finds the instruction and the layer that a loss or a parameter that is no number comes from; "
           "keeps what it goes back to as often as it is due",
    .when = {SGM_ITERATION, DEFAULT_EVERY, 0},
    .arguments = {{"pause", SGM_KIND_BOOLEAN, .doc = "pause before the bad step instead of failing"}},
    .create = parse_watch,
    .global = true,
};

/* --- what a run tells --- */

/* The states at the start of a run are not tested: a bad one shows in the first step. */
sgm_status sgm__nan_watch_begin(sgm_trainer *trainer)
{
    nan_watch *self = sgm__hooks_find(trainer->hooks, &watch_type);
    if (self == NULL)
        return SGM_OK;
    sgm__snapshot_free(self->snapshot);
    self->snapshot = sgm__snapshot_take(trainer);
    return self->snapshot != NULL ? SGM_OK : sgm_last_status();
}

/* A loss that is not finite has been counted, so the bad step is the trainer's iteration; if a handler has
 * stopped the step, the step was not counted, and the bad one is the next. */
sgm_status sgm__nan_watch_look(sgm_trainer *trainer, sgm_status status)
{
    nan_watch *self = sgm__hooks_find(trainer->hooks, &watch_type);
    if (self == NULL)
        return status;
    char message[512];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    bool counted = !isfinite(trainer->progress.newest_loss);
    return act(self, trainer, trainer->position.iteration + !counted, message);
}
