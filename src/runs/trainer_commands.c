/* Puts commands in the trainer's queue, waits for their outcome, and carries them out.
 *
 * Who asks from another thread waits until the training's thread has done it, or does it alone where the
 * trainer is idle. A thread that others may wait for (it runs hooks or observers, or holds a trainer's lock)
 * leaves its command and goes on, so there is no circle of threads that wait for each other. What hooks ask
 * for waits in a queue of their own until all hooks of the event have run: they all see the same trainer.
 * With several processes the strategy says when a hook's command is done: at once where all processes' hooks
 * ask for the same, in the next meeting, or never. */
#include "runs/trainer_commands.h"

#include "base/clock.h"
#include "journal/change_record.h"
#include "runs/run_folder.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

/* --- what each kind does --- */

/* Sets a value in the hook's name, so that the record of changes says who did it. The value may be a
 * replica's own; the record is its owner's. */
static sgm_status set(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    (void)outcome;
    sgm_trainer *asker = command->asker != NULL ? command->asker : trainer;
    journal->changed_by = command->who;
    sgm_status status =
        sgm_registry_resolve_set(sgm__registry_of(asker), command->text, command->content, NULL, NULL);
    journal->changed_by = "program";
    return status;
}

/* Stops the run in a way that checkpoints keep: a resumed run with the same length does not begin again. */
sgm_status sgm__trainer_end_for_good(sgm_trainer *trainer, const char *by)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    sgm__free(progress->ended_by);
    progress->ended_by = sgm__strdup(by);
    return progress->ended_by != NULL ? sgm_trainer_stop(trainer, by) : SGM_ERROR_MEMORY;
}

static sgm_status stop(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    char *reason = sgm__format("%s: %s", command->who, command->text);
    sgm_status status = reason != NULL ? sgm__trainer_end_for_good(trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

static sgm_status pause_run(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    bool has_text = command->text[0] != '\0';
    char *who = sgm__format(has_text ? "%s (%s)" : "%s", command->who, command->text);
    sgm_status status = who != NULL ? sgm__trainer_pause_by(trainer, who) : SGM_ERROR_MEMORY;
    sgm__free(who);
    return status;
}

static sgm_status save(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    const char *folder = sgm__journal_of(trainer)->folder;
    if (folder == NULL)
        return sgm_fail(SGM_ERROR_STATE, "the run has no folder to save '%s' in", command->text);
    return sgm__run_folder_save_as(trainer, folder, command->text);
}

static sgm_status act(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    return command->act(command->user, trainer);
}

static sgm_status note(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    (void)outcome;
    const char *who = journal->changed_by;
    journal->changed_by = command->who;
    sgm_status status =
        sgm__change_note_hook(trainer, command->text, command->before, command->after, command->undoes);
    journal->changed_by = who;
    return status;
}

typedef struct kind_row {
    sgm_status (*act)(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome);
    /* Where a hook asks: */
    bool meets; /* all processes meet before their next iteration */
    bool saves; /* processes first bring their parts of the optimiser's states to the one that saves */
    bool leads; /* only the process that leads does it; the others follow it */
    bool later; /* before the next iteration, as it moves the training to another position */
} kind_row;

static const kind_row kinds[] = {
    [SGM__COMMAND_STOP] = {stop},
    [SGM__COMMAND_SAVE] = {save, .saves = true, .leads = true},
    [SGM__COMMAND_SET] = {set},
    [SGM__COMMAND_PAUSE] = {pause_run, .meets = true},
    [SGM__COMMAND_RESET] = {sgm__trainer_go_back, .meets = true, .leads = true, .later = true},
    [SGM__COMMAND_ACT] = {act, .saves = true, .leads = true},
    [SGM__COMMAND_RESTORE] = {sgm__trainer_go_to},
    [SGM__COMMAND_NOTE] = {note},
};

sgm_status sgm__trainer_do(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    return kinds[command->kind].act(trainer, command, outcome);
}

/* --- the queue: the training's thread --- */

/* With the control's lock. */
static void append(sgm__control *control, sgm__command *command)
{
    sgm__commands_append(&control->commands, command);
    pthread_cond_broadcast(&control->changed);
}

size_t sgm__trainer_commands_count(sgm_trainer *trainer)
{
    sgm__control *control = sgm__control_of(trainer);
    size_t count = 0;
    if (!atomic_load_explicit(&control->commands.has_any, memory_order_relaxed))
        return 0;
    pthread_mutex_lock(&control->lock);
    for (const sgm__command *command = control->commands.first; command != NULL; command = command->next)
        count++;
    pthread_mutex_unlock(&control->lock);
    return count;
}

sgm__command *sgm__trainer_take_command(sgm_trainer *trainer)
{
    sgm__control *control = sgm__control_of(trainer);
    if (!atomic_load_explicit(&control->commands.has_any, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&control->lock);
    sgm__command *command = sgm__commands_take(&control->commands);
    if (command != NULL)
        command->taken = true;
    pthread_mutex_unlock(&control->lock);
    return command;
}

/* A command that fails is logged where nobody waits for it: a hook's mistake must not end hours of
 * training. */
void sgm__trainer_command_done(sgm_trainer *trainer, sgm__command *command, sgm_status status)
{
    sgm__control *control = sgm__control_of(trainer);
    if (!command->waited) {
        if (status != SGM_OK)
            sgm__log(SGM_LOG_ERROR, sgm_trainer_name(trainer), "%s: %s", command->who, sgm_last_error());
        sgm__command_free(command);
        return;
    }
    char *message = status != SGM_OK ? sgm__strdup(sgm_last_error()) : NULL;
    pthread_mutex_lock(&control->lock);
    command->status = status;
    command->message = message;
    command->done = true;
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
}

/* --- hooks --- */

static sgm_status do_for_hook(sgm_trainer *trainer, const sgm__command *command)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    const kind_row *kind = &kinds[command->kind];
    if (kind->meets && strategy != NULL)
        strategy->must_meet(trainer);
    if (kind->saves && strategy != NULL)
        SGM_TRY(strategy->prepare_save(trainer, false));
    if (kind->leads && sgm__trainer_follows(trainer))
        return SGM_OK;
    sgm__command_outcome outcome = {0}; /* kinds that move the training are done later */
    return kind->act(trainer, command, &outcome);
}

void sgm__trainer_do_for_hook(sgm_trainer *trainer, sgm__command *command)
{
    sgm__control *control = sgm__control_of(trainer);
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    const kind_row *kind = &kinds[command->kind];
    if (!kind->later) {
        sgm__trainer_command_done(trainer, command, do_for_hook(trainer, command));
        return;
    }
    if (strategy != NULL)
        strategy->must_meet(trainer);
    if (sgm__trainer_follows(trainer)) {
        sgm__command_free(command); /* the first process has the same hook, and all follow it */
        return;
    }
    pthread_mutex_lock(&control->lock);
    append(control, command);
    pthread_mutex_unlock(&control->lock);
}

/* The oldest of replicas' hooks, else of the trainer's own. */
static sgm__command *next_of_hooks(sgm_trainer *trainer)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__command *command = strategy != NULL ? strategy->next_command(trainer) : NULL;
    return command != NULL ? command : sgm__hooks_take_command(sgm__hooks_of(trainer));
}

sgm_status sgm__trainer_do_hooks_commands(sgm_trainer *trainer)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__command *command;
    while ((command = next_of_hooks(trainer)) != NULL) {
        sgm__command_time time = SGM__COMMAND_NOW;
        sgm_status status = strategy != NULL ? strategy->decide(trainer, command, &time) : SGM_OK;
        if (status == SGM_OK && time == SGM__COMMAND_NOW)
            sgm__trainer_do_for_hook(trainer, command);
        else if (time != SGM__COMMAND_LATER)
            sgm__command_free(command);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* --- other threads --- */

/* With the control's lock. */
static void wait_a_little(sgm__control *control)
{
    struct timespec until = sgm__time_in(0.02);
    pthread_cond_timedwait(&control->changed, &control->lock, &until);
}

typedef enum handling {
    LEFT_TO_RUN, /* the command belongs to the run's thread */
    DONE,
    NOBODY_RUNS,
    GIVEN_UP /* the thread's error says why */
} handling;

/* With the control's lock; DONE: not yet. A note tells of what has happened already, so it stays. */
static handling look_after(sgm_trainer *trainer, sgm__command *command)
{
    sgm__control *control = sgm__control_of(trainer);
    if (command->taken)
        return DONE;
    if (control->state == SGM_TRAINER_IDLE) {
        sgm__commands_remove(&control->commands, command);
        return NOBODY_RUNS;
    }
    if (sgm__patience_check(trainer) == SGM_OK)
        return DONE;
    if (command->kind == SGM__COMMAND_NOTE) {
        command->waited = false;
        return LEFT_TO_RUN;
    }
    sgm__commands_remove(&control->commands, command);
    return GIVEN_UP;
}

static handling leave_to_run(sgm_trainer *trainer, sgm__command *command)
{
    sgm__control *control = sgm__control_of(trainer);
    pthread_mutex_lock(&control->lock);
    bool runs = control->state != SGM_TRAINER_IDLE;
    handling so_far = !runs ? NOBODY_RUNS : command->waited ? DONE : LEFT_TO_RUN;
    if (runs)
        append(control, command);
    while (so_far == DONE && !command->done && (so_far = look_after(trainer, command)) == DONE)
        wait_a_little(control);
    pthread_mutex_unlock(&control->lock);
    return so_far;
}

/* True if the trainer was idle, and no run begins before the command is done. */
static bool do_idle(sgm_trainer *trainer, const sgm__command *command, sgm_status *status)
{
    sgm__training_position *position = sgm__position_of(trainer);
    if (command->kind != SGM__COMMAND_NOTE && (*status = sgm__trainer_check_thread(trainer)) != SGM_OK)
        return true;
    bool busy = sgm__is_busy();
    if (busy && !sgm__turn_lock_try(&sgm__control_of(trainer)->turn)) {
        *status = sgm_fail(SGM_ERROR_STATE, "trainer '%s' is being changed by another thread",
                           sgm_trainer_name(trainer));
        return true;
    }
    if (!busy && (*status = sgm__trainer_enter(trainer)) != SGM_OK)
        return true;
    bool idle = sgm_trainer_get_state(trainer) == SGM_TRAINER_IDLE;
    if (idle) {
        sgm__command_outcome outcome = {0};
        *status = sgm__trainer_do(trainer, command, &outcome);
        if (*status == SGM_OK && outcome.moved)
            *status =
                sgm__hooks_event(sgm__hooks_of(trainer), SGM_RESET, position->epoch, position->iteration);
        if (outcome.broken)
            sgm__trainer_keep(trainer, *status);
    }
    sgm__trainer_unlock(trainer);
    return idle;
}

sgm_status sgm__trainer_command(sgm_trainer *trainer, sgm__command_kind kind, sgm__command_fields fields)
{
    sgm_status status = SGM_OK;
    sgm__command *command = sgm__command_create(kind, fields);
    if (command == NULL)
        return SGM_ERROR_MEMORY;
    command->waited = !sgm__is_busy();
    handling so_far;
    while ((so_far = leave_to_run(trainer, command)) == NOBODY_RUNS && !do_idle(trainer, command, &status))
        continue;
    if (so_far == LEFT_TO_RUN)
        return SGM_OK; /* it may be gone already */
    if (so_far == GIVEN_UP)
        status = sgm_last_status();
    else if (so_far == DONE && command->status != SGM_OK)
        status = sgm_fail(command->status, "%s", command->message != NULL ? command->message : "");
    sgm__command_free(command);
    return status;
}
