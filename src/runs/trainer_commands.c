/* Puts commands in the trainer's queue, waits for their outcome, and carries them out: what each kind does.
 *
 * A thread that asks waits until the training's thread has carried out its command, or does it itself while
 * the trainer is idle. A thread for which others may wait (it runs hooks or observers, or holds a trainer's
 * lock) leaves its command in the queue and goes on, so no circle of waiting threads arises. Commands of
 * hooks wait in the holder's own queue (src/hooks/hooks_requests.c) until all hooks of the event have run:
 * all of them see the same trainer. With several processes the strategy decides when a hook's command is
 * done: at once where the hooks of all processes ask for the same, in the next meeting, or never.
 *
 * The queue, and the members of a command behind `waited`, are guarded by the control's lock; carrying out
 * needs the trainer's. Commands of the program and the control socket come through sgm__trainer_command;
 * src/loop/trainer_run.c takes them from the queue between two iterations. */
#include "runs/trainer_commands.h"

#include "base/clock.h"
#include "journal/change_record.h"
#include "journal/temporary.h"
#include "runs/run_folder.h"
#include "show/show.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <jansson.h>

/* --- what each kind does --- */

/* Sets a value in the asker's name, so that the record of changes says who did it. A worker's hook sets
 * the value of its replica; the record is the owner's. */
static sgm_status set(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    (void)outcome;
    sgm_trainer *asker = command->asker != NULL ? command->asker : trainer;
    journal->changed_by = command->who;
    sgm_status status =
        command->period.count > 0
            ? sgm__temporary_set(trainer, command->text, command->content, command->period)
            : sgm_registry_resolve_set(sgm__registry_of(asker), command->text, command->content, NULL, NULL);
    journal->changed_by = "program";
    return status;
}

/* Stops the run and notes by what, which checkpoints keep: a resumed run that is no longer than this one
 * ends at once. */
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

/* The reason for the pause is the hook and the text that it was made from. */
static sgm_status pause_run(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    bool has_text = command->text[0] != '\0';
    char *who = sgm__format(has_text ? "%s (%s)" : "%s", command->who, command->text);
    sgm_status status = who != NULL ? sgm__trainer_pause_by(trainer, who) : SGM_ERROR_MEMORY;
    sgm__free(who);
    return status;
}

/* Only hooks save by a command: they name checkpoints, which need a folder. */
static sgm_status save(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    const char *folder = sgm__journal_of(trainer)->folder;
    if (folder == NULL)
        return sgm_fail(SGM_ERROR_STATE, "the run has no folder to save '%s' in", command->text);
    return sgm__run_folder_save_as(trainer, folder, command->text);
}

/* In the asker's name, as `set`. What is frozen is the trainer's, also if a worker's hook asks. */
static sgm_status change_frozen(sgm_trainer *trainer, const sgm__command *command,
                                sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *before = journal->changed_by;
    (void)outcome;
    journal->changed_by = command->who;
    sgm_status status = sgm__trainer_set_frozen(trainer, command->text, command->kind == SGM__COMMAND_FREEZE);
    journal->changed_by = before;
    return status;
}

static sgm_status act(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    return command->act(command->user, trainer);
}

/* Presses a button for the program. Other processes hear of it in the next meeting. */
static sgm_status press(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    (void)outcome;
    if (sgm__trainer_follows(trainer))
        return sgm_fail(SGM_ERROR_STATE, "rank 0 presses for all: press \"%.100s\" there", command->text);
    SGM_TRY(sgm__trainer_press(trainer, command->text, command->who));
    if (strategy == NULL)
        return SGM_OK;
    json_t *request = json_pack("{s:s, s:s}", "command", "press", "name", command->text);
    if (request != NULL)
        strategy->note(trainer, command->who, request);
    json_decref(request);
    return SGM_OK;
}

/* Enters the change of a hook that has happened already into the record. */
static sgm_status note(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    (void)outcome;
    return sgm__change_note_hook(trainer, command->who, command->text, command->before, command->after,
                                 command->undoes);
}

/* What a kind of command does, and what several processes must agree on when a hook asks for it. */
typedef struct kind_row {
    sgm_status (*act)(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome);
    /* when a hook asks for it: */
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
    [SGM__COMMAND_FREEZE] = {change_frozen},
    [SGM__COMMAND_UNFREEZE] = {change_frozen},
    [SGM__COMMAND_PRESS] = {press},
    [SGM__COMMAND_NOTE] = {note},
};

sgm_status sgm__trainer_do(sgm_trainer *trainer, const sgm__command *command, sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *before = journal->reason;
    journal->reason = command->reason;
    sgm_status status = kinds[command->kind].act(trainer, command, outcome);
    journal->reason = before;
    return status;
}

/* --- the queue: the training's thread --- */

/* Queues a command and wakes a training that waits for one (in a pause, for example). With the control's
 * lock. */
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

/* `taken` ends the right of the waiting thread to withdraw its command. */
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

/* A failure is only logged if nobody waits for the command: a hook's mistake must not end hours of
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

/* Carries out a hook's command on the training's thread, with what several processes need first. */
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
    sgm__command_outcome outcome = {0}; /* no kind that is done here moves the training */
    return sgm__trainer_do(trainer, command, &outcome);
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
        sgm__command_free(
            command); /* the process that leads has the same hook, and all others follow its command */
        return;
    }
    pthread_mutex_lock(&control->lock);
    append(control, command);
    pthread_mutex_unlock(&control->lock);
}

/* The next command of a worker's hook, else of a hook of the trainer itself. */
static sgm__command *next_of_hooks(sgm_trainer *trainer)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm__command *command = strategy != NULL ? strategy->next_command(trainer) : NULL;
    return command != NULL ? command : sgm__hooks_take_command(sgm__hooks_of(trainer));
}

/* SGM__COMMAND_LATER: the strategy has taken the command over until the next meeting. */
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

/* Waits for a change of the queue or the trainer, for 20 ms at most: the end of the patience wakes nobody.
 * With the control's lock. */
static void wait_a_little(sgm__control *control)
{
    struct timespec until = sgm__time_in(0.02);
    pthread_cond_timedwait(&control->changed, &control->lock, &until);
}

/* How the wait for a command stands. DONE is also what it is while the command is still in the queue; only
 * `done` of the command says that it is over. */
typedef enum handling {
    LEFT_TO_RUN, /* the command belongs to the run's thread */
    DONE,
    NOBODY_RUNS,
    GIVEN_UP /* the patience is over; the thread's error says why */
} handling;

/* Looks whether it is worth waiting on: DONE means yes. A run that has ended, or the end of the patience,
 * withdraws the command, unless the training's thread has taken it. A note tells of what has happened
 * already, so it stays in the queue. With the control's lock. */
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

/* Queues the command if the trainer runs, and waits for its end if its caller does. */
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

/* Carries out a command while the trainer is idle, with its lock, so that no run begins meanwhile. False:
 * a run has begun before the lock was had, and the command must be queued. A busy thread only tries the
 * lock, as it must not wait. After a reset or a restore hooks get the event that a run would give them. */
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
        const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
        if (*status == SGM_OK && outcome.moved && strategy != NULL)
            *status = strategy->event(trainer, SGM_RESET);
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
        return SGM_OK; /* the command may have been freed */
    if (so_far == GIVEN_UP)
        status = sgm_last_status();
    else if (so_far == DONE && command->status != SGM_OK)
        status = sgm_fail(command->status, "%s", command->message != NULL ? command->message : "");
    sgm__command_free(command);
    return status;
}
