/* What a resumed run makes again: reading its own journal, and carrying out what is due.
 *
 * Changes that were made before the checkpoint come back with it. Those that a person or the program made
 * after it are planned (src/journal/planned.h) and made again at the same epochs and iterations, so that a
 * run that was killed goes on as it would have. The training's thread calls this between two iterations
 * (src/loop/run_between.c). A replay makes what another run's journal has, by the same functions (replay.c).
 */
#include "runs/remade.h"
#include "journal/changes.h"
#include "journal/planned.h"
#include "journal/run_lines.h"
#include "runs/replay.h"
#include "runs/trainer_commands.h"
#include "show/tensor_file.h"
#include "trainer/trainer.h"

/* --- reading --- */

char *sgm__remade_told(const sgm__journal_entry *entry)
{
    switch (entry->kind) {
    case SGM__ENTRY_VALUE:
        return sgm__format("%s was set to %s", entry->identifier, entry->text);
    case SGM__ENTRY_TENSOR:
        return sgm__format("%s was set", entry->identifier);
    case SGM__ENTRY_ATTACH:
        return sgm__format("%s was attached: %s", entry->identifier, entry->text);
    case SGM__ENTRY_DETACH:
        return sgm__format("%s was detached", entry->identifier);
    case SGM__ENTRY_PRESS:
        return sgm__format("%s was pressed", entry->identifier);
    case SGM__ENTRY_UNKNOWN:
        return sgm__format("%s was changed", entry->identifier);
    case SGM__ENTRY_SAVE:
        return sgm__format("%s was saved", entry->text);
    case SGM__ENTRY_UPLOAD:
        return sgm__format("%s was uploaded", entry->text);
    case SGM__ENTRY_RESTORE:
        return sgm__format("%s was restored", entry->text);
    case SGM__ENTRY_BRANCH:
        return sgm__format("branch %s was begun", entry->text);
    case SGM__ENTRY_RESET:
        return sgm__strdup("the training was reset");
    case SGM__ENTRY_PAUSE:
    case SGM__ENTRY_RESUME:
    case SGM__ENTRY_BEGIN:
    case SGM__ENTRY_END:
    case SGM__ENTRY_CHECKPOINT:
    case SGM__ENTRY_KIND_COUNT:
        break;
    }
    return sgm__strdup(sgm__entry_event(entry->kind));
}

/* Plans what can be made again, and tells of it if the training has not got there yet. */
static sgm_status plan(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    bool newer = entry->iteration > sgm__position_of(trainer)->iteration;
    char *what = sgm__remade_told(entry);
    sgm_status status = what != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && entry->kind == SGM__ENTRY_UNKNOWN)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "%s by %s at iteration %lld, after the checkpoint: that is lost, make it again", what,
                 entry->who, (long long)entry->iteration);
    else if (status == SGM_OK)
        status = sgm__plan_add(trainer, entry);
    if (status == SGM_OK && newer && entry->kind != SGM__ENTRY_UNKNOWN)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "%s by %s after the checkpoint: that is made again at iteration %lld", what, entry->who,
                 (long long)entry->iteration);
    sgm__free(what);
    return status;
}

sgm_status sgm__remade_read(sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    sgm__history history;
    sgm__plan_forget(trainer);
    sgm_status status = sgm__history_read(journal->folder, sgm_trainer_name(trainer), &history);
    if (status == SGM_OK)
        status = sgm__history_go_back(&history, journal->branch, position->epoch, position->iteration);
    if (status == SGM_OK)
        status = sgm__changes_recall(trainer, &history.held);
    for (size_t i = 0; i < history.lost.count && status == SGM_OK; i++)
        status = plan(trainer, &history.lost.items[i]);
    sgm__history_free(&history);
    return status;
}

/* --- making what is due --- */

/* The tensor in a file of the folder that the entry is from. */
static sgm_status load_tensor(const sgm_trainer *trainer, const char *file, const sgm_tensor *like,
                              sgm_tensor **made)
{
    char *path = sgm__run_folder_tensor_path(sgm__replay_folder(trainer), file);
    sgm_status status = path != NULL
                            ? sgm__tensor_load(path, like, made)
                            : sgm_fail(SGM_ERROR_FORMAT, "'%s' is no file of " SGM__TENSORS_FOLDER, file);
    sgm__free(path);
    return status;
}

/* Sets a tensor and, behind it, its moving average, as setting a parameter begins the average anew. */
static sgm_status set_with_average(sgm_trainer *trainer, const char *identifier, sgm_tensor *value,
                                   sgm_tensor *average)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    journal->setting_average = average;
    sgm_status status = sgm_registry_resolve_set(sgm__registry_of(trainer), identifier,
                                                 sgm_tensor_content(value), NULL, NULL);
    journal->setting_average = NULL;
    if (status == SGM_OK && average != NULL)
        status = sgm__trainer_put_average(trainer, identifier, average);
    return status;
}

static sgm_status set_tensor(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    sgm_content now = {0};
    sgm_tensor *made = NULL, *average = NULL;
    SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(trainer), entry->identifier, &now));
    sgm_status status = now.kind == SGM_KIND_TENSOR
                            ? load_tensor(trainer, entry->text, now.as.tensor, &made)
                            : sgm_fail(SGM_ERROR_TYPE, "%s is no tensor", entry->identifier);
    if (status == SGM_OK && entry->average[0] != '\0')
        status = load_tensor(trainer, entry->average, now.as.tensor, &average);
    if (status == SGM_OK)
        status = set_with_average(trainer, entry->identifier, made, average);
    sgm_tensor_free(average);
    sgm_tensor_free(made);
    sgm_content_clear(&now);
    return status;
}

/* A hook that the checkpoint brought, or that the program has attached again by itself, is there already. */
static sgm_status attach(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    sgm_hook *hook = sgm_hook_parse(entry->text);
    sgm_status status =
        hook != NULL ? sgm__trainer_attach_again(trainer, hook, entry->who) : sgm__last_failure();
    sgm_hook_free(hook);
    return status;
}

static sgm_status make(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    if (entry->kind == SGM__ENTRY_VALUE)
        return sgm__settings_set(trainer, entry->identifier, entry->text);
    if (entry->kind == SGM__ENTRY_TENSOR)
        return set_tensor(trainer, entry);
    if (entry->kind == SGM__ENTRY_PRESS)
        return sgm__trainer_press(trainer, entry->text, entry->who);
    return entry->kind == SGM__ENTRY_ATTACH ? attach(trainer, entry)
                                            : sgm__trainer_detach_again(trainer, entry->text, entry->who);
}

sgm_status sgm__remade_change(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    journal->making = entry;
    journal->changed_by = entry->who;
    journal->reason = entry->reason[0] != '\0' ? entry->reason : NULL;
    sgm_status status = make(trainer, entry);
    journal->reason = NULL;
    journal->changed_by = "program";
    journal->making = NULL;
    return status;
}

/* A change that cannot be made again is told, and the run goes on. */
void sgm__remade_make(sgm_trainer *trainer)
{
    sgm__journal_entry due;
    while (sgm__plan_take(trainer, &due)) {
        if (sgm__remade_change(trainer, &due) != SGM_OK) {
            char *message = sgm__strdup(sgm_last_error()), *what = sgm__remade_told(&due);
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s by %s, which cannot be made again: %s",
                     what != NULL ? what : due.identifier, due.who, message != NULL ? message : "");
            sgm__free(message);
            sgm__free(what);
        }
        sgm__entry_clear(&due);
    }
}
