/* What a run does between two of its iterations: commands, pauses, and what is to be done again there, after
 * a resume or in a replay.
 *
 * The training's thread calls this with the trainer's lock. With several processes the strategy decides what
 * is done (sgm__run_meets), and calls the functions that are not static here. */
#include "journal/planned.h"
#include "journal/run_lines.h"
#include "journal/temporary.h"
#include "loop/nan_watch.h"
#include "loop/trainer_run.h"
#include "runs/checkpoints.h"
#include "runs/remade.h"
#include "runs/replay.h"
#include "runs/run_folder.h"
#include "runs/trainer_commands.h"
#include "trainer/signals.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

bool sgm__run_meets(const sgm__training_run *run)
{
    const sgm__strategy *strategy = run->trainer->sharing.strategy;
    return strategy != NULL && strategy->meet != NULL;
}

/* Sets back the values whose time is over, then runs the replicas' hooks, then the trainer's. */
sgm_status sgm__run_hooks(sgm__training_run *run, sgm_time_scale scale)
{
    sgm_trainer *trainer = run->trainer;
    sgm__trainer_note_whereabouts(trainer, "running hooks");
    if (trainer->journal.temporary_count > 0)
        sgm__temporary_end(trainer, scale);
    if (trainer->sharing.strategy != NULL)
        SGM_TRY(trainer->sharing.strategy->event(trainer, scale));
    SGM_TRY(sgm__hooks_event(trainer->hooks, scale, trainer->position.epoch, trainer->position.iteration));
    return sgm__trainer_do_hooks_commands(trainer);
}

/* --- commands --- */

/* Carries out a command. A reset or a restore moves the training to another position: the strategy is told,
 * and the run's own time is corrected, as the training's time comes from the checkpoint, too. *done: how the
 * command itself ended. Returns a failure after which the run cannot go on. */
static sgm_status do_command(sgm__training_run *run, const sgm__command *command, sgm_status *done,
                             bool *moved)
{
    sgm_trainer *trainer = run->trainer;
    sgm__command_outcome outcome = {0};
    double ran = sgm__run_seconds(run);
    *done = sgm__trainer_do(trainer, command, &outcome);
    *moved = outcome.moved;
    run->saved = run->saved && !outcome.moved;
    if (outcome.moved && trainer->sharing.strategy != NULL)
        trainer->sharing.strategy->moved(trainer);
    run->ran_before += sgm__run_seconds(run) - ran; /* the training's time may be another now */
    if (outcome.broken)
        return *done;
    return outcome.moved ? sgm__nan_watch_begin(trainer) : SGM_OK; /* its snapshot was of the branch left */
}

/* After a reset or a restore: hooks of a reset, and observers. */
static sgm_status tell_moved(sgm__training_run *run, bool resets)
{
    if (resets)
        SGM_TRY(sgm__run_hooks(run, SGM_RESET));
    sgm__run_report(run, SGM_PROGRESS_MOVE);
    return SGM_OK;
}

/* Carries out the commands that are queued when the function is called; a command that is queued meanwhile
 * waits until after the next iteration, so that hooks which answer each command with another one cannot keep
 * the run from training. */
sgm_status sgm__run_do_commands(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    sgm_status status = SGM_OK;
    for (size_t left = sgm__trainer_commands_count(trainer); left > 0 && status == SGM_OK; left--) {
        sgm__command *command = sgm__trainer_take_command(trainer);
        if (command == NULL)
            break;
        sgm_status done;
        bool moved, resets = command->kind == SGM__COMMAND_RESET;
        status = do_command(run, command, &done, &moved);
        sgm__trainer_command_done(trainer, command, done);
        if (moved && status == SGM_OK)
            status = tell_moved(run, resets);
    }
    return status;
}

/* --- pauses --- */

void sgm__run_stop_clock(sgm_trainer *trainer)
{
    if (trainer->progress.running_since > 0)
        trainer->progress.running_time += sgm__now() - trainer->progress.running_since;
    trainer->progress.running_since = 0;
}

/* The journal has the hook that paused the run, `by`, else who asked for it, and why. */
static sgm_status tell_asked(sgm_trainer *trainer, sgm__entry_kind kind, const char *by)
{
    sgm__asker asker = {0};
    if (by == NULL)
        asker = sgm__control_asker(&trainer->control, kind == SGM__ENTRY_PAUSE);
    const char *who = by != NULL ? by : asker.who != NULL ? asker.who : "a person";
    sgm_status status =
        sgm__run_folder_event(trainer, kind, json_pack("{s:s, s:s*}", "who", who, "reason", asker.reason));
    sgm__asker_clear(&asker);
    return status;
}

sgm_status sgm__run_begin_pause(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    sgm__run_stop_clock(trainer);
    sgm_task_set_paused(run->task, true);
    char *by = sgm__trainer_paused_by(trainer);
    sgm__log(SGM_LOG_INFO, trainer->name, "paused%s%s after epoch %lld, iteration %lld",
             by != NULL ? " by " : "", by != NULL ? by : "", (long long)trainer->position.epoch,
             (long long)trainer->position.iteration);
    sgm_status told = tell_asked(trainer, SGM__ENTRY_PAUSE, by);
    sgm__free(by);
    SGM_TRY(told);
    SGM_TRY(sgm__run_hooks(run, SGM_PAUSE));
    sgm__run_report(run, SGM_PROGRESS_PAUSE);
    sgm__trainer_note_whereabouts(trainer, "paused");
    return SGM_OK;
}

sgm_status sgm__run_end_pause(sgm__training_run *run)
{
    run->trainer->progress.running_since = sgm__now();
    sgm_task_set_paused(run->task, false);
    SGM_TRY(tell_asked(run->trainer, SGM__ENTRY_RESUME, NULL));
    SGM_TRY(sgm__run_hooks(run, SGM_RESUME));
    sgm__run_report(run, SGM_PROGRESS_RESUME);
    return SGM_OK;
}

/* Waits without the lock until the pause ends (*goes_on true), a command comes, or `seconds` are over;
 * commands that came are carried out. */
sgm_status sgm__run_wait_paused(sgm__training_run *run, double seconds, bool *goes_on)
{
    sgm_trainer *trainer = run->trainer;
    sgm__trainer_unlock(trainer);
    *goes_on = sgm__control_wait(&trainer->control, run->options->catch_interrupt ? sgm__signals_came : NULL,
                                 seconds);
    sgm__trainer_lock(trainer);
    return *goes_on ? SGM_OK : sgm__run_do_commands(run);
}

sgm_status sgm__run_pause_if_wanted(sgm__training_run *run)
{
    if (!sgm__control_wants_pause(&run->trainer->control))
        return SGM_OK;
    SGM_TRY(sgm__run_begin_pause(run));
    for (bool goes_on = false; !goes_on;)
        SGM_TRY(sgm__run_wait_paused(run, 1e9, &goes_on));
    return sgm__run_end_pause(run);
}

/* --- a replay --- */

static sgm_status replay_move(sgm__training_run *run, const sgm__journal_entry *entry)
{
    bool resets = entry->kind == SGM__ENTRY_RESET, moved = false;
    sgm_status done = SGM_ERROR_MEMORY, status = SGM_ERROR_MEMORY;
    const sgm__trainer_journal *journal = &run->trainer->journal;
    SGM_TRY(sgm__replay_provide(run->trainer, entry));
    sgm__command *command = sgm__command_create(
        resets ? SGM__COMMAND_RESET : SGM__COMMAND_RESTORE,
        (sgm__command_fields){.who = entry->who, .text = entry->text, .reason = journal->reason});
    if (command != NULL)
        status = do_command(run, command, &done, &moved);
    sgm__command_free(command);
    if (status == SGM_OK && moved)
        status = tell_moved(run, resets);
    return status == SGM_OK ? done : status;
}

/* A checkpoint that a person had made or brought. */
static sgm_status replay_file(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    const char *folder = trainer->journal.folder;
    SGM_TRY(entry->kind == SGM__ENTRY_SAVE ? sgm__run_folder_save_as(trainer, folder, entry->text)
                                           : sgm__replay_provide(trainer, entry));
    char *path = sgm__format("%s/%s.safetensors", folder, entry->text);
    sgm_status status = path != NULL
                            ? sgm__checkpoint_tell(trainer, entry->kind, entry->who, entry->text, path)
                            : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

/* As a process does that goes on from the checkpoint: it may be to end elsewhere, whoever stopped the one
 * before does not stop it, its workers have the trainer's states, and it will save at its end. */
static sgm_status replay_beginning(sgm__training_run *run, const sgm__journal_entry *entry)
{
    sgm_trainer *trainer = run->trainer;
    const sgm__strategy *strategy = trainer->sharing.strategy;
    trainer->progress.epochs = entry->epochs;
    trainer->progress.iterations = entry->iterations;
    sgm__free(trainer->progress.ended_by);
    trainer->progress.ended_by = NULL;
    sgm__control_forget_stop(&trainer->control);
    run->saved = false;
    if (strategy != NULL)
        SGM_TRY(strategy->synchronise(trainer));
    SGM_TRY(sgm__run_folder_begin(trainer, true));
    return sgm__run_hooks(run, SGM_START);
}

/* What hooks see of the run's life. */
static sgm_status replay_life(sgm__training_run *run, const sgm__journal_entry *entry)
{
    sgm_trainer *trainer = run->trainer;
    if (entry->kind == SGM__ENTRY_BEGIN)
        return replay_beginning(run, entry);
    SGM_TRY(sgm__run_folder_event(trainer, entry->kind, json_pack("{s:s}", "who", entry->who)));
    if (entry->kind != SGM__ENTRY_END)
        return sgm__run_hooks(run, entry->kind == SGM__ENTRY_PAUSE ? SGM_PAUSE : SGM_RESUME);
    SGM_TRY(sgm__run_hooks(run, SGM_STOP));
    return sgm__run_folder_save(trainer, trainer->journal.folder);
}

static sgm_status replay_entry(sgm__training_run *run, const sgm__journal_entry *entry)
{
    if (sgm__entry_is_move(entry->kind))
        return replay_move(run, entry);
    if (entry->kind == SGM__ENTRY_SAVE || entry->kind == SGM__ENTRY_UPLOAD)
        return replay_file(run->trainer, entry);
    if (entry->kind == SGM__ENTRY_BRANCH)
        return SGM_OK; /* a replay begins no other training */
    if (sgm__entry_is_change(entry->kind))
        return sgm__remade_change(run->trainer, entry);
    return replay_life(run, entry);
}

/* An entry that fails ends the replay, as what follows would be another training. */
static sgm_status replay_taken(sgm__training_run *run, sgm__journal_entry *entry)
{
    sgm__trainer_journal *journal = &run->trainer->journal;
    journal->reason = entry->reason[0] != '\0' ? entry->reason : NULL;
    sgm_status status = replay_entry(run, entry);
    journal->reason = NULL;
    if (status != SGM_OK)
        status = sgm__fail_within("line %lld of the journal of '%s'", (long long)entry->line,
                                  journal->replay->folder);
    sgm__entry_clear(entry);
    return status;
}

sgm_status sgm__run_replay_changes(sgm__training_run *run)
{
    sgm__journal_entry entry;
    while (run->trainer->journal.replay != NULL && sgm__replay_take_change(run->trainer, &entry))
        SGM_TRY(replay_taken(run, &entry));
    return SGM_OK;
}

/* --- between two iterations --- */

sgm_status sgm__run_do_between(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    sgm__journal_entry entry;
    if (sgm__run_meets(run))
        return trainer->sharing.strategy->meet(run);
    SGM_TRY(sgm__run_do_commands(run));
    if (trainer->journal.replay == NULL)
        sgm__remade_make(trainer);
    else
        while (sgm__replay_take(trainer, &entry))
            SGM_TRY(replay_taken(run, &entry));
    return SGM_OK;
}
