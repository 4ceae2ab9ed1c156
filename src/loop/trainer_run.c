/* Runs a trainer: from opening the run folder to the last checkpoint, iteration by iteration.
 *
 * The order of events of an iteration is fixed: commands that are queued, the next minibatch, the step,
 * hooks of the iteration, observers, a pause. At the end of an epoch: validation, hooks of the epoch,
 * observers, the line of metrics.jsonl, a checkpoint. The run's thread holds the trainer's lock all the
 * time, but lets others in between two iterations (sgm__trainer_let_others) and while it is paused.
 *
 * What a step does is src/train; what a checkpoint is made of is src/runs. With an operator, the strategy
 * stands in for the step and for the next minibatch; with several processes (ranks) it also decides what is
 * done between iterations, so that all do the same: meets() asks for that. */
#include "loop/trainer_run.h"
#include "control/approval.h"
#include "control/control_socket.h"
#include "data/dataset.h"
#include "journal/changes.h"
#include "loop/nan_watch.h"
#include "optim/updates.h"
#include "runs/checkpoints.h"
#include "runs/origin.h"
#include "runs/remade.h"
#include "runs/replay.h"
#include "runs/rules/rule_command.h"
#include "runs/rules/rule_webhook.h"
#include "runs/run_folder.h"
#include "runs/trainer_commands.h"
#include "show/show.h"
#include "show/trainer_publish.h"
#include "train/train.h"
#include "trainer/signals.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

/* --- one run --- */

/* Says what the run's thread is doing, for threads that cannot take the lock: a command that gives up
 * waiting names it. `doing` must be a string that stays. */
void sgm__trainer_note_whereabouts(sgm_trainer *trainer, const char *doing)
{
    sgm__whereabouts *place = &trainer->control.whereabouts;
    atomic_store_explicit(&place->doing, doing, memory_order_relaxed);
    atomic_store_explicit(&place->epoch, trainer->position.epoch, memory_order_relaxed);
    atomic_store_explicit(&place->iteration, trainer->position.iteration, memory_order_relaxed);
}

/* Estimates the rest of the run from the seconds per example so far. -1: unknown, as without a number of
 * epochs, before the first minibatch, or when the epoch's length is not known. */
static double seconds_left(const sgm__training_run *run, double seconds)
{
    const sgm__training_position *position = &run->trainer->position;
    if (run->trainer->progress.epochs == 0 || run->trainer->progress.batches == 0 || run->examples == 0)
        return -1;
    double per_example = seconds / (double)run->examples;
    double batches =
        (double)((run->trainer->progress.epochs - position->epoch) * run->trainer->progress.batches -
                 position->batch);
    int64_t in_epoch = position->sums.examples, given = position->batch;
    double examples = given > 0 ? (double)in_epoch / (double)given : 0;
    return given > 0 ? batches * examples * per_example : -1;
}

double sgm__run_seconds(const sgm__training_run *run)
{
    const sgm_trainer *trainer = run->trainer;
    double now = trainer->progress.running_since > 0 ? sgm__now() - trainer->progress.running_since : 0;
    return trainer->progress.running_time + now - run->ran_before;
}

static _Thread_local int64_t *next_wanted; /* of the observer that is being called */

/* Called by an observer within its own call: next_wanted points to the place where that observer's next
 * iteration is noted, so that the function needs no argument that says which observer calls. */
void sgm__observer_next(int64_t iteration)
{
    if (next_wanted != NULL)
        *next_wanted = iteration;
}

/* Calls each observer that wants to be called, and computes the iteration before which none does (next_told),
 * so that an iteration which no observer wants costs one comparison. An observer may run another trainer, or
 * add observers to this one: the entry is copied before the call, and next_wanted is saved around it. */
static void call_observers(sgm__training_run *run, const sgm_training_progress *progress)
{
    sgm_trainer *trainer = run->trainer;
    int64_t *before = next_wanted, minimum = INT64_MAX;
    for (size_t i = 0; i < trainer->observers.count; i++) {
        sgm__observer observer = trainer->observers.items[i];
        if (progress->kind != SGM_PROGRESS_ITERATION || progress->iteration >= observer.next) {
            observer.next = 0;
            next_wanted = &observer.next;
            if (!observer.function(observer.user, progress))
                run->stopped = true;
            trainer->observers.items[i].next = observer.next;
        }
        minimum = observer.next < minimum ? observer.next : minimum;
    }
    next_wanted = before;
    trainer->observers.next_told = minimum;
}

/* Iterations are the only frequent kind: one before observers.next_told, which
 * no observer wants, costs a comparison. */
void sgm__run_report(sgm__training_run *run, sgm_progress_kind kind)
{
    sgm_trainer *trainer = run->trainer;
    if (trainer->observers.count == 0 ||
        (kind == SGM_PROGRESS_ITERATION && trainer->position.iteration < trainer->observers.next_told))
        return;
    double seconds = sgm__run_seconds(run);
    sgm_training_progress progress = {.kind = kind,
                                      .trainer = trainer->name,
                                      .epoch = trainer->position.epoch,
                                      .epochs = trainer->progress.epochs,
                                      .batch = trainer->position.batch,
                                      .batches = run->trainer->progress.batches,
                                      .iteration = trainer->position.iteration,
                                      .training = sgm__metrics_of(&trainer->position.sums),
                                      .learning_rate =
                                          sgm__trainer_learning_rate(trainer, run->trainer->progress.batches),
                                      .seconds = seconds,
                                      .rate = seconds > 0 ? (double)run->examples / seconds : 0,
                                      .seconds_left = seconds_left(run, seconds),
                                      .interrupted = run->stopped};
    char reason[256], *paused_by = kind == SGM_PROGRESS_PAUSE ? sgm__trainer_paused_by(trainer) : NULL;
    if (kind == SGM_PROGRESS_STOP && sgm__control_stops(&trainer->control, reason, sizeof reason))
        progress.reason = reason;
    else
        progress.reason = paused_by;
    if (kind == SGM_PROGRESS_EPOCH) {
        progress.validation = trainer->data.metrics;
        progress.validation_count = trainer->data.validation_count;
        progress.scores = trainer->results.scores;
        progress.score_count = trainer->results.score_count;
    }
    call_observers(run, &progress);
    sgm__free(paused_by);
}

/* One step on a minibatch, and its checks: a failure names the data set and the example it came from, a
 * loss that is not finite is looked into by the hook nan_watch (which may undo the step and pause), and
 * workers compare their states. */
static sgm_status train_on(sgm__training_run *run, const sgm_block *block)
{
    sgm_trainer *trainer = run->trainer;
    double rate = sgm__trainer_learning_rate(trainer, trainer->progress.batches);
    int64_t examples = trainer->position.sums.examples;
    sgm__trainer_note_whereabouts(trainer, "computing a step");
    sgm_status status = sgm__trainer_step(trainer, block, rate);
    if (status != SGM_OK)
        status = sgm__iterator_fail(trainer->data.training, status);
    if (status == SGM_OK) {
        run->examples += trainer->position.sums.examples - examples;
        status = sgm__trainer_check_loss(trainer);
    }
    if (status == SGM_OK && trainer->sharing.strategy != NULL)
        status = trainer->sharing.strategy->check(trainer);
    return status == SGM_ERROR_NUMERIC ? sgm__nan_watch_look(trainer, status) : status;
}

/* --- epochs --- */

/* How many epochs lie between two checkpoints; 0: the run makes none. */
static int64_t epochs_between_checkpoints(const sgm_run_options *options)
{
    int64_t every = options->checkpoint_every != 0 ? options->checkpoint_every : 1;
    return options->folder != NULL && every > 0 ? every : 0;
}

/* Ends an epoch: validation on each data set, metrics in the registry, schedules, hooks, observers, the
 * line of metrics.jsonl and a checkpoint. Hooks come before observers, who are told what hooks measured;
 * the checkpoint comes last, so that it has the state after the hooks. position.sums begins anew, and the
 * registry shows the old sums until the next epoch has a minibatch. */
static sgm_status end_epoch(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    const sgm_run_options *options = run->options;
    sgm__trainer_note_whereabouts(trainer, "ending an epoch, with validation and a checkpoint,");
    if (trainer->sharing.strategy != NULL)
        SGM_TRY(trainer->sharing.strategy->end_epoch(trainer));
    for (size_t i = 0; i < trainer->data.validation_count; i++)
        SGM_TRY(sgm__trainer_validate(trainer, i));
    double training_loss = sgm__metrics_of(&trainer->position.sums).loss;
    SGM_TRY(sgm__trainer_publish_metrics(trainer));
    sgm__trainer_watch_plateau(
        trainer, trainer->data.validation_count > 0 ? trainer->data.metrics[0].metrics.loss : training_loss);
    SGM_TRY(sgm_iterator_batches(trainer->data.training, &trainer->progress.batches)); /* of the next one */
    trainer->position.epoch++;
    trainer->position.batch = 0;
    SGM_TRY(sgm__trainer_forget_memories(trainer));
    if (trainer->sharing.strategy != NULL)
        SGM_TRY(trainer->sharing.strategy->prepare_save(trainer, true));
    sgm_status status = sgm__trainer_keep(trainer, sgm__run_hooks(run, SGM_EPOCH));
    sgm__run_report(run, SGM_PROGRESS_EPOCH);
    SGM_TRY(status);
    if (options->folder != NULL)
        SGM_TRY(sgm__run_folder_epoch(trainer, options->folder, sgm__run_seconds(run) + run->ran_before));
    sgm__trainer_forget_scores(trainer);
    trainer->progress.last_epoch = trainer->position.sums;
    trainer->position.sums = (sgm__metric_sums){0};
    SGM_TRY(sgm__run_replay_changes(run));
    int64_t every = epochs_between_checkpoints(options);
    run->saved = every > 0 && trainer->position.epoch % every == 0;
    return run->saved ? sgm__run_folder_save(trainer, options->folder) : SGM_OK;
}

/* Whether the run ends before the next iteration. In a meeting all processes have agreed on stopping;
 * alone, a signal, an observer, a hook or a command stops the run. */
static bool is_done(const sgm__training_run *run)
{
    const sgm__training_position *position = &run->trainer->position;
    const sgm__trainer_progress *progress = &run->trainer->progress;
    bool stopped = sgm__run_meets(run) ? run->agreed || run->trainer->progress.ended_by != NULL
                                       : run->stopped || sgm__control_stops(&run->trainer->control, NULL, 0);
    return stopped || sgm__replay_is_over(run->trainer) ||
           (progress->epochs > 0 && position->epoch >= progress->epochs) ||
           (progress->iterations > 0 && position->iteration >= progress->iterations);
}

void sgm__run_look_for_signals(sgm__training_run *run)
{
    if (run->options->catch_interrupt && sgm__signals_came())
        run->stopped = true;
}

/* The next minibatch, from the strategy or from the trainer's own iterator; *block NULL: the epoch is over.
 */
static sgm_status next_block(sgm_trainer *trainer, const sgm_block **block)
{
    return trainer->sharing.strategy != NULL ? trainer->sharing.strategy->next(trainer, block)
                                             : sgm__trainer_next_minibatch(trainer, block);
}

/* Tells the run's task how many iterations are done; a monitor that cancels the task stops the run. */
static void tell_task(sgm__training_run *run)
{
    const sgm__training_position *position = &run->trainer->position;
    const sgm__trainer_progress *progress = &run->trainer->progress;
    int64_t total = progress->iterations, of_epoch = progress->batches;
    if (total == 0 && of_epoch > 0 && progress->epochs <= INT64_MAX / of_epoch)
        total = progress->epochs * of_epoch;
    if (!sgm_task_set_progress(run->task, (uint64_t)position->iteration, (uint64_t)total))
        run->stopped = true;
}

/* The loop of a run. A minibatch of NULL ends the epoch; an epoch without any minibatch is an error, as it
 * would repeat for ever. */
static sgm_status iterate(sgm__training_run *run)
{
    for (;;) {
        const sgm_block *block = NULL;
        sgm__run_look_for_signals(run);
        SGM_TRY(sgm__run_do_between(run));
        if (is_done(run))
            break;
        sgm__trainer_let_go_of_kept(run->trainer);
        sgm__trainer_note_whereabouts(run->trainer, "waiting for data");
        SGM_TRY(next_block(run->trainer, &block));
        if (block == NULL) {
            if (run->trainer->position.batch == 0)
                return sgm_fail(SGM_ERROR_STATE,
                                "the training data gives no minibatch: it has no examples, or fewer than one "
                                "minibatch and the rest is dropped");
            SGM_TRY(end_epoch(run));
        } else {
            int64_t before = run->trainer->position.iteration;
            SGM_TRY(train_on(run, block));
            run->saved = false;
            if (run->trainer->position.iteration > before) { /* else nan_watch has undone the step */
                SGM_TRY(sgm__run_hooks(run, SGM_ITERATION));
                sgm__run_report(run, SGM_PROGRESS_ITERATION);
                tell_task(run);
            }
            if (!sgm__run_meets(run))
                SGM_TRY(sgm__run_pause_if_wanted(run));
        }
        if (!sgm__run_meets(run))
            sgm__trainer_let_others(run->trainer);
    }
    return SGM_OK;
}

/* After a resume: takes over the running time of the run folder, and reads which changes of values the run
 * has to repeat. */
static sgm_status go_on_in_folder(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    double seconds = sgm__run_folder_seconds(trainer, trainer->journal.folder);
    if (seconds > trainer->progress.running_time) {
        run->ran_before += seconds - trainer->progress.running_time;
        trainer->progress.running_time = seconds;
    }
    return sgm__remade_read(trainer);
}

/* What a resume has to do again is read before the line for this beginning is there, and the values that a
 * branch was given are in that line. A training that goes on here from elsewhere has a checkpoint at once: a
 * resume would begin anew without it. */
static sgm_status begin_journal(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    bool goes_on = sgm__origin_is_elsewhere(trainer);
    if (run->options->resume)
        SGM_TRY(go_on_in_folder(run));
    SGM_TRY(sgm__run_folder_begin(trainer, run->options->resume));
    if (run->options->resume || trainer->journal.branched == NULL)
        sgm__changes_write(trainer);
    return goes_on && !run->options->resume ? sgm__run_folder_save(trainer, run->options->folder) : SGM_OK;
}

/* A run that a hook has ended for good stays ended when it is resumed with the same length. The checkpoint
 * knows of the end, even if the process died before the other files of the run folder did. */
static sgm_status end_as_before(const sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    const sgm__ending *ended = &trainer->progress.resumed_end;
    if (!run->options->resume || ended->by == NULL || ended->epochs != trainer->progress.epochs ||
        ended->iterations != trainer->progress.iterations)
        return SGM_OK;
    sgm__log(SGM_LOG_WARNING, trainer->name,
             "the run was ended by %s, after epoch %lld, iteration %lld; it goes on when it is resumed with "
             "another number of epochs or iterations (sigma train RUN --resume epochs=N)",
             ended->by, (long long)trainer->position.epoch, (long long)trainer->position.iteration);
    return sgm__trainer_end_for_good(trainer, ended->by);
}

/* L-BFGS learns curvature from the difference of two gradients. Of two different minibatches most of that
 * difference is the examples', not the step's: the user is told so once. */
static void warn_of_minibatches(const sgm_trainer *trainer)
{
    int64_t together = trainer->learner.optimiser->options.accumulate;
    if (trainer->learner.optimiser->type->prepare != sgm__prepare_lbfgs ||
        trainer->progress.batches <= together)
        return;
    sgm__log(
        SGM_LOG_WARNING, trainer->name,
        "lbfgs compares the gradients of updates, but these are of other examples each time: an epoch has "
        "%lld updates; let a minibatch have all examples (data.batch, or iterator.minibatch_size of a run; "
        "sgm_full_batch in C), or take another optimiser",
        (long long)(trainer->progress.batches / together));
}

/* A replay that is refused leaves no folder behind, so it is planned before there is one. */
static sgm_status plan_replay(const sgm__training_run *run)
{
    if (run->options->resume)
        return sgm_fail(SGM_ERROR_ARGUMENT, "replay: a replay begins at the beginning; leave .resume out");
    SGM_TRY(sgm__trainer_place_data(run->trainer));
    SGM_TRY(sgm__trainer_check_hooks(run->trainer));
    return sgm__replay_begin(run->trainer, run->options->replay);
}

/* Whether the run is a replay that is only to be checked, and has been. */
static bool is_check(const sgm__training_run *run)
{
    return run->trainer->journal.replay != NULL && run->trainer->journal.replay->check;
}

static sgm_status check_optimiser(const sgm_trainer *trainer)
{
    const sgm_optimiser *optimiser = trainer->learner.optimiser;
    if (optimiser == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no optimiser yet: call sgm_trainer_set_optimiser, or load a "
                                         "checkpoint of a training that had one");
    if (optimiser->type->search != NULL && trainer->sharing.strategy != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "the optimiser %s has no gradients that workers or processes could share: take the "
                        "operator away, or another optimiser",
                        optimiser->type->name);
    return SGM_OK;
}

/* Everything before the first iteration: checks, the run folder with its lock and its checkpoint, the
 * control socket, the data's position, workers and ranks. Observers are told of the start only after all of
 * that succeeded, and from then on are told of the end, too. */
static sgm_status start(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    if (trainer->data.training == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no data yet: call sgm_trainer_set_data");
    if (!run->options->resume || run->options->folder == NULL) /* the folder's checkpoint may have one */
        SGM_TRY(check_optimiser(trainer));
    trainer->progress.epochs = run->options->epochs;
    trainer->progress.iterations = run->options->iterations;
    if (run->options->replay != NULL)
        SGM_TRY(plan_replay(run));
    if (is_check(run))
        return SGM_OK;
    if (run->options->folder != NULL) {
        SGM_TRY(sgm__run_folder_open(trainer, run->options->folder, run->options->resume, &run->lock));
        SGM_TRY(check_optimiser(trainer));
        SGM_TRY(sgm__checkpoints_begin(trainer, run->options->folder));
        run->log = sgm__run_folder_log(trainer, run->options->folder);
        SGM_TRY(end_as_before(run));
        run->server = sgm__control_server_start(trainer, run->options->folder);
    }
    if (trainer->learner.averages_in)
        return sgm_fail(SGM_ERROR_STATE,
                        "the averages are in place of the parameters: put them back before training, with "
                        "sgm_trainer_swap_averages");
    SGM_TRY(sgm__trainer_place_data(trainer));
    SGM_TRY(sgm__trainer_check_hooks(trainer));
    if (run->options->folder != NULL)
        SGM_TRY(begin_journal(run));
    char who[96] = "";
    if (trainer->sharing.strategy != NULL) {
        SGM_TRY(trainer->sharing.strategy->start(trainer, epochs_between_checkpoints(run->options)));
        trainer->sharing.strategy->describe(trainer, who, sizeof who);
    }
    sgm__hooks_ask(trainer->hooks, trainer->registry);
    sgm__approval_check(trainer);
    sgm__log(SGM_LOG_INFO, trainer->name,
             "training begins after epoch %lld, iteration %lld: seed %llu, %s, %s%s",
             (long long)trainer->position.epoch, (long long)trainer->position.iteration,
             (unsigned long long)trainer->settings.seed, sgm_handler_name(trainer->settings.handler),
             sgm_dtype_name(trainer->settings.precision), who);
    if (trainer->settings.precision == SGM_BFLOAT16)
        sgm__log(SGM_LOG_INFO, trainer->name, "products of bfloat16: %s",
                 sgm_handler_bfloat16(trainer->settings.handler));
    warn_of_minibatches(trainer);
    run->begun = true;
    sgm__run_report(run, SGM_PROGRESS_START);
    SGM_TRY(sgm__nan_watch_begin(trainer));
    return sgm__run_hooks(run, SGM_START);
}

/* All iterations, and then everything behind the last one: hooks of the stop, background hooks, states that
 * only workers have, the last checkpoint. Ranks leave together, after rank 0 has saved. */
static sgm_status run_all(sgm__training_run *run)
{
    const sgm__strategy *strategy = run->trainer->sharing.strategy;
    if (!sgm__run_meets(run) && run->options->paused && sgm__control_is_held(&run->trainer->control))
        SGM_TRY(sgm__run_pause_if_wanted(run));
    SGM_TRY(iterate(run));
    SGM_TRY(sgm__run_folder_event(run->trainer, SGM__ENTRY_END, json_pack("{s:s}", "who", "")));
    SGM_TRY(sgm__run_hooks(run, SGM_STOP));
    sgm__hooks_wait_giving_way(run->trainer->hooks);
    if (strategy != NULL)
        SGM_TRY(strategy->finish(run->trainer));
    if (run->options->folder != NULL && !run->saved)
        SGM_TRY(sgm__run_folder_save(run->trainer, run->options->folder));
    if (!run->stopped)
        SGM_TRY(sgm__replay_check_end(run->trainer));
    return strategy != NULL ? strategy->leave(run->trainer) : SGM_OK;
}

/* The last line of the run's log: how long the run took, where it ended, and why. */
static void log_end(const sgm__training_run *run, sgm_status status)
{
    sgm_trainer *trainer = run->trainer;
    char time[64], reason[256] = "";
    sgm_duration_text(sgm__run_seconds(run), time, sizeof time);
    if (status != SGM_OK) {
        sgm__log(SGM_LOG_INFO, trainer->name, "training failed after %s: %s", time, trainer->message);
        return;
    }
    sgm__control_stops(&trainer->control, reason, sizeof reason);
    sgm__log(SGM_LOG_INFO, trainer->name, "training ended after epoch %lld, iteration %lld, in %s%s%s%s",
             (long long)trainer->position.epoch, (long long)trainer->position.iteration, time,
             reason[0] != '\0' ? ", stopped by " : "", reason, run->stopped ? ", interrupted" : "");
}

/* A run whose failures become the trainer's first failure. Observers are told of the end of everything that
 * began, also of a failure. */
static sgm_status run_to_the_end(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    sgm_status status = sgm__trainer_keep(trainer, start(run));
    if ((status != SGM_OK && !run->begun) || is_check(run))
        return status;
    if (status == SGM_OK)
        status = sgm__trainer_keep(trainer, run_all(run));
    bool stopped = run->stopped;
    log_end(run, status);
    sgm__run_report(run, SGM_PROGRESS_STOP);
    if (status != SGM_OK)
        return sgm_trainer_status(
            trainer); /* the failure's message again, which observers may have replaced */
    return stopped ? sgm_fail(SGM_ERROR_INTERRUPTED, "training was stopped after iteration %lld",
                              (long long)trainer->position.iteration)
                   : SGM_OK;
}

static sgm_status read_options(const sgm_run_options *given, sgm_run_options *options)
{
    SGM_TRY(sgm__options_read(options, sizeof *options, given, "sgm_trainer_run"));
    SGM_TRY(sgm__run_options_check(options));
    if (options->epochs == 0 && options->iterations == 0)
        options->epochs = 1;
    return SGM_OK;
}

/* Takes the lock, the signals and the task around a run, and gives them back in the opposite order. Commands
 * that came after the loop's last look are carried out before the trainer counts as idle, since the threads
 * that queued them wait for an answer. */
static sgm_status run_with(sgm_trainer *trainer, const sgm_run_options *options)
{
    sgm__training_run current = {.trainer = trainer, .options = options, .lock = -1};
    sgm__signals_catch(options->catch_interrupt);
    sgm__trainer_lock(trainer);
    trainer->journal.folder = options->folder;
    sgm__free(trainer->progress.ended_by);
    trainer->progress.ended_by = NULL;
    trainer->progress.running_since = sgm__now();
    current.ran_before = trainer->progress.running_time;
    sgm__trainer_note_whereabouts(trainer, "beginning");
    current.task = sgm_task_begin(SGM_TASK_TRAIN, trainer->name, "iterations");
    sgm_task_allow_cancel(current.task);
    sgm_status status = run_to_the_end(&current);
    sgm__rule_commands_end(trainer);
    sgm__rule_webhooks_end(trainer);
    if (trainer->sharing.strategy != NULL)
        trainer->sharing.strategy->end(trainer, status != SGM_OK && status != SGM_ERROR_INTERRUPTED);
    sgm_task_end(current.task, status);
    sgm__control_server_stop(current.server);
    bool ended = false;
    while (status == SGM_OK && !ended) {
        status = sgm__trainer_keep(trainer, sgm__run_do_commands(&current));
        ended = status == SGM_OK && sgm__control_try_end(&trainer->control);
    }
    if (!ended)
        sgm__control_end(&trainer->control);
    sgm__run_stop_clock(trainer);
    sgm__replay_end(trainer);
    trainer->journal.folder = NULL;
    sgm__trainer_unlock(trainer);
    sgm__signals_release(options->catch_interrupt);
    sgm_log_remove_sink(current.log);
    sgm__run_folder_close(current.lock);
    return status;
}

/* A rank that another one leads gets no folder: rank 0 writes metrics and checkpoints for all. */
sgm_status sgm__trainer_run_reserved(sgm_trainer *trainer, const sgm_run_options *given)
{
    sgm_run_options options;
    sgm_status status = sgm__trainer_keep(trainer, read_options(given, &options));
    if (status == SGM_OK && sgm__trainer_follows(trainer)) {
        options.folder = NULL;
        options.resume = false;
    }
    if (status == SGM_OK)
        return run_with(trainer, &options);
    sgm__control_end(&trainer->control);
    return status;
}

/* The trainer is reserved first, so that commands reach it from here on; `paused` has to be known for that
 * before the options are checked. */
sgm_status sgm_trainer_run_with(sgm_trainer *trainer, const sgm_run_options *options)
{
    sgm_run_options first;
    SGM_TRY(sgm_trainer_status(trainer));
    bool readable = sgm__options_read(&first, sizeof first, options, "sgm_trainer_run") == SGM_OK;
    SGM_TRY(sgm__trainer_reserve(trainer, readable && first.paused));
    return sgm__trainer_run_reserved(trainer, options);
}
