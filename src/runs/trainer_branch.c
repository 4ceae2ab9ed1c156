/* Reset (back to the beginning) and restore (to a checkpoint): both end a branch of the run's history and
 * begin another one.
 *
 * With a folder, the state that is left is saved first, as before-branch-N; then everything changes; then
 * a line of the journal tells of it, and checkpoint.safetensors becomes one of the new branch. A
 * failure before the change leaves all as it was. Both are commands: the training's thread calls them
 * between two iterations (trainer_commands.c), with the trainer's lock. A branch that trains beside its
 * origin is another trainer (src/environment/env_branch.c). */
#include "journal/changes.h"
#include "journal/planned.h"
#include "journal/temporary.h"
#include "registry/pattern.h"
#include "registry/registry_internal.h"
#include "runs/parts/state.h"
#include "runs/run_folder.h"
#include "runs/trainer_commands.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* --- the branch that is left --- */

/* "epoch 3, iteration 120", for the record of changes; sgm__free. */
static char *position_text(const sgm_trainer *trainer)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    return sgm__format("epoch %lld, iteration %lld", (long long)position->epoch,
                       (long long)position->iteration);
}

/* Enters the move into the record of changes, which monitors show. */
static void note_position(sgm_trainer *trainer, const sgm__command *command, const char *left, const char *to)
{
    char *now = position_text(trainer), *after = now != NULL ? sgm__format("%s: %s", to, now) : NULL;
    if (left != NULL && after != NULL)
        sgm__change_note_position(trainer, command->who, left, after);
    sgm__free(after);
    sgm__free(now);
}

/* Saves the state that is left as before-branch-N, if the run has a folder, and remembers where the branch
 * ends. */
static sgm_status leave(sgm_trainer *trainer, const sgm__command *command, sgm__branch *branch)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    sgm__training_position *position = sgm__position_of(trainer);
    *branch = (sgm__branch){.who = command->who,
                            .of = journal->branch,
                            .left_epoch = position->epoch,
                            .left_iteration = position->iteration};
    if (journal->folder == NULL)
        return SGM_OK;
    SGM_TRY(sgm__run_folder_next_branch(trainer, &branch->number));
    snprintf(branch->left, sizeof branch->left, "before-branch-%lld", (long long)branch->number);
    return sgm__run_folder_save_as(trainer, journal->folder, branch->left);
}

/* Removes the saved state again, as the change did not happen. */
static void forget(const sgm_trainer *trainer, const sgm__branch *branch)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char *path =
        journal->folder != NULL ? sgm__format("%s/%s.safetensors", journal->folder, branch->left) : NULL;
    if (path != NULL)
        unlink(path);
    sgm__free(path);
}

/* Appends a line for the move to the journal and saves the newest checkpoint as one of the new branch. The
 * trainer is at its new position already, so a failure here is reported but undoes nothing. */
static sgm_status begin(sgm_trainer *trainer, const sgm__branch *branch, const char *from, const char *path)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->folder == NULL)
        return SGM_OK;
    journal->branch = branch->number;
    sgm_status status = sgm__run_folder_move(trainer, branch, from, path);
    if (status == SGM_OK)
        status = sgm__run_folder_save(trainer, journal->folder);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("it is done, but the folder does not tell of it");
}

/* --- what was measured --- */

/* Clears results that were measured on the training that is left: passes, scores, metrics and results of
 * hooks. */
static void forget_measured(sgm_trainer *trainer)
{
    sgm__trainer_parameters_changed(trainer);
    sgm__trainer_forget_scores(trainer);
    sgm__progress_of(trainer)->newest_loss = NAN;
    sgm__state_forget_validations(trainer);
    sgm__registry_clear_child(sgm__registry_of(trainer), "shared");
}

/* What a resumed run was to do again belongs to the branch that is left; a replay knows of branches. */
static void forget_plan(sgm_trainer *trainer)
{
    if (sgm__journal_of(trainer)->replay == NULL)
        sgm__plan_forget(trainer);
}

/* The running time goes on from `seconds`, also in the middle of a run. */
static void go_on_from(sgm_trainer *trainer, double seconds)
{
    sgm__trainer_progress *progress = sgm__progress_of(trainer);
    progress->running_time = seconds;
    if (progress->running_since > 0)
        progress->running_since = sgm__now();
}

/* --- reset --- */

/* Everything of a training becomes what it was before its first iteration: position, states, place in the
 * data, results, workers, hooks. Settings that were changed meanwhile stay, but for those that
 * rules have set for some time. A failure may leave half of it
 * done. */
static sgm_status begin_anew(sgm_trainer *trainer)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    sgm_iterator_state first = {0};
    sgm__temporary_end_all(trainer);
    *sgm__position_of(trainer) = (sgm__training_position){.best_loss = INFINITY};
    sgm__kept_of(trainer)->from = 0;
    SGM_TRY(sgm__trainer_refill(trainer));
    if (data->training != NULL)
        SGM_TRY(sgm_iterator_set_state(data->training, &first));
    sgm__progress_of(trainer)->last_epoch = (sgm__metric_sums){0};
    go_on_from(trainer, 0);
    forget_plan(trainer);
    forget_measured(trainer);
    if (strategy != NULL)
        SGM_TRY(strategy->reset(trainer));
    return sgm__hooks_restart(sgm__hooks_of(trainer));
}

/* A reset. A failure in the middle leaves states of both trainings: `broken` tells the caller that the
 * trainer cannot go on. */
sgm_status sgm__trainer_go_back(sgm_trainer *trainer, const sgm__command *command,
                                sgm__command_outcome *outcome)
{
    sgm__branch branch;
    sgm__held_hooks held;
    SGM_TRY(leave(trainer, command, &branch));
    SGM_TRY(sgm__trainer_enter_with_hooks(trainer, &held)); /* may give the lock away: before any change */
    char *left = position_text(trainer);
    sgm_status status = begin_anew(trainer);
    sgm__trainer_leave_with_hooks(trainer, &held);
    outcome->broken = status != SGM_OK;
    outcome->moved = !outcome->broken;
    if (outcome->moved)
        note_position(trainer, command, left, "reset");
    sgm__free(left);
    return outcome->broken ? sgm__fail_within("the reset stopped half-way")
                           : begin(trainer, &branch, NULL, NULL);
}

/* --- restore --- */

/* The path of a checkpoint: a name without a slash is one of the run's folder. */
static char *path_of(const sgm_trainer *trainer, const char *name)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    static const char ending[] = ".safetensors";
    size_t length = strlen(name), end = sizeof ending - 1;
    if (journal->folder == NULL || strchr(name, '/') != NULL)
        return sgm__strdup(name);
    bool has_ending = length > end && strcmp(name + length - end, ending) == 0;
    return sgm__format("%s/%s%s", journal->folder, name, has_ending ? "" : ending);
}

/* A checkpoint as a person calls it: a file of the run's folder by its name alone; sgm__free. */
static char *told_name(const sgm_trainer *trainer, const char *path)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    size_t length = journal->folder != NULL ? strlen(journal->folder) : 0;
    bool inside = length > 0 && strncmp(path, journal->folder, length) == 0 && path[length] == '/' &&
                  strchr(path + length + 1, '/') == NULL;
    const char *name = inside ? path + length + 1 : path, *dot = strrchr(name, '.');
    return inside && dot != NULL ? sgm__strndup(name, (size_t)(dot - name)) : sgm__strdup(name);
}

/* Enters the restore into the record of changes and into the journal. The record has the file's name
 * without its folder. */
static sgm_status tell_restored(sgm_trainer *trainer, const sgm__command *command, const sgm__branch *branch,
                                const char *path, const char *left)
{
    char *from = told_name(trainer, command->text);
    if (from == NULL)
        return SGM_ERROR_MEMORY;
    const char *slash = strrchr(from, '/');
    note_position(trainer, command, left, slash != NULL ? slash + 1 : from);
    sgm_status status = begin(trainer, branch, from, path);
    sgm__free(from);
    return status;
}

/* Saves first, then loads: a load that fails has changed nothing, and the saved state is removed again. */
static sgm_status restore_from(sgm_trainer *trainer, const sgm__command *command, const char *path,
                               sgm__command_outcome *outcome)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    sgm__branch branch;
    if (!sgm__file_exists(path))
        return sgm_fail(SGM_ERROR_NOT_FOUND, "there is no checkpoint '%s'", path);
    SGM_TRY(leave(trainer, command, &branch));
    char *left = position_text(trainer);
    sgm_status status = sgm_trainer_load(trainer, path);
    if (status != SGM_OK) {
        forget(trainer, &branch);
        sgm__free(left);
        return status;
    }
    outcome->moved = true;
    sgm__trainer_parameters_changed(trainer);
    sgm__trainer_forget_scores(trainer);
    forget_plan(trainer);
    if (journal->folder != NULL)
        go_on_from(trainer, sgm__run_folder_seconds(trainer, journal->folder));
    status = tell_restored(trainer, command, &branch, path, left);
    sgm__free(left);
    return status;
}

/* A restore. */
sgm_status sgm__trainer_go_to(sgm_trainer *trainer, const sgm__command *command,
                              sgm__command_outcome *outcome)
{
    char *path = path_of(trainer, command->text);
    sgm_status status = path != NULL ? restore_from(trainer, command, path, outcome) : SGM_ERROR_MEMORY;
    sgm__free(path);
    return status;
}

/* --- the program --- */

static sgm_status check_trainer(const sgm_trainer *trainer)
{
    return trainer != NULL ? SGM_OK : sgm__fail_null("the trainer is NULL");
}

sgm_status sgm_trainer_reset(sgm_trainer *trainer)
{
    SGM_TRY(check_trainer(trainer));
    return sgm__trainer_command(trainer, SGM__COMMAND_RESET, (sgm__command_fields){.who = "program"});
}

sgm_status sgm_trainer_restore(sgm_trainer *trainer, const char *checkpoint)
{
    SGM_TRY(check_trainer(trainer));
    if (checkpoint == NULL || *checkpoint == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "restoring needs the name of a checkpoint");
    return sgm__trainer_command(trainer, SGM__COMMAND_RESTORE,
                                (sgm__command_fields){.who = "program", .text = checkpoint});
}
