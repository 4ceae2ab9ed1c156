/* Repeats a run: see replay.h. */
#include "runs/replay.h"
#include "hooks/hooks.h"
#include "journal/planned.h"
#include "journal/run_lines.h"
#include "persistence/bundle.h"
#include "runs/origin.h"
#include "runs/remade.h"
#include "runs/run_folder.h"
#include "runs/run_identity.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"

#include <stdio.h>
#include <unistd.h>

/* How often, and after how many microseconds, the journal of a run that trains is looked at again. */
#define TRIES 20
#define BETWEEN_TRIES 10000

/* --- what a replay leaves out --- */

bool sgm__replay_can_leave_out(const sgm__journal_entry *entry)
{
    return entry->asked && sgm__entry_is_change(entry->kind);
}

static sgm_status fail_number(const sgm__history *history, int64_t number)
{
    sgm__text numbers = {0};
    for (size_t i = 0; i < history->held.count; i++)
        if (sgm__replay_can_leave_out(&history->held.items[i]))
            sgm__text_append(&numbers, "%s%lld", numbers.length > 0 ? ", " : "",
                             (long long)history->held.items[i].line);
    sgm_status status =
        sgm_fail(SGM_ERROR_NOT_FOUND, "%lld is no intervention that can be left out; there %s%.400s",
                 (long long)number, numbers.length > 0 ? "are: " : "is none",
                 numbers.data != NULL ? numbers.data : "");
    sgm__text_free(&numbers);
    return status;
}

/* Whether a number stands earlier in the list, too. */
static bool is_repeated(const sgm_replay *options, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (options->without[i] == options->without[index])
            return true;
    return false;
}

static sgm_status leave_out(sgm__history *history, const sgm_replay *options)
{
    for (size_t k = 0; k < options->without_count; k++) {
        size_t i = 0;
        if (is_repeated(options, k))
            continue;
        while (i < history->held.count && history->held.items[i].line != options->without[k])
            i++;
        if (i == history->held.count || !sgm__replay_can_leave_out(&history->held.items[i]))
            return fail_number(history, options->without[k]);
        sgm__entries_remove(&history->held, i);
    }
    return SGM_OK;
}

/* --- why it could not be the same --- */

/* Hooks that read the time, or run beside the training, act at other moments in another run. */
static void find_clocks(sgm_trainer *trainer, const sgm__history *history, sgm__text *reasons)
{
    sgm__hooks_describe_clocks(sgm__hooks_of(trainer), reasons);
    for (size_t i = 0; i < history->held.count; i++) {
        const sgm__journal_entry *entry = &history->held.items[i];
        if (entry->kind != SGM__ENTRY_ATTACH)
            continue;
        sgm_hook *hook = sgm_hook_parse(entry->text);
        if (hook == NULL)
            sgm__text_append(reasons, "\n  line %lld: '%s' cannot be attached: %s", (long long)entry->line,
                             entry->text, sgm_last_error());
        else
            sgm__hook_describe_clock(hook, reasons);
        sgm_hook_free(hook);
    }
}

static char *checkpoint_path(const char *folder, const char *name)
{
    return sgm__format("%s/%s.safetensors", folder, name);
}

/* Whether a folder has a checkpoint of the name with the checksum; *there: whether it has one of the name. */
static bool has_checkpoint(const char *folder, const sgm__journal_entry *entry, bool *there)
{
    char has[SGM__CHECKSUM_DIGITS + 1] = "", *path = checkpoint_path(folder, entry->text);
    *there = path != NULL && sgm__checksum_of_file(path, has);
    sgm__free(path);
    return *there && strcmp(has, entry->checksum) == 0;
}

static bool has_file(const char *folder, const char *name)
{
    char *path = sgm__format("%s/%s", folder, name);
    bool has = path != NULL && sgm__file_exists(path);
    sgm__free(path);
    return has;
}

/* Whether a checkpoint outside of the run's folder is still the one that was restored. */
static bool is_unchanged(const sgm__journal_entry *entry)
{
    char has[SGM__CHECKSUM_DIGITS + 1] = "";
    return sgm__checksum_of_file(entry->text, has) && strcmp(has, entry->checksum) == 0;
}

/* What an entry needs and the folder lacks, as the end of a sentence; NULL: nothing. */
static const char *lack_of(const char *folder, const sgm__journal_entry *entry)
{
    bool there;
    switch (entry->kind) {
    case SGM__ENTRY_UNKNOWN:
        return "to what is not in the journal";
    case SGM__ENTRY_TENSOR:
        return has_file(folder, entry->text) &&
                       (entry->average[0] == '\0' || has_file(folder, entry->average))
                   ? NULL
                   : "to a tensor whose file is gone";
    case SGM__ENTRY_UPLOAD:
        return has_checkpoint(folder, entry, &there) ? NULL : "and the file is gone, or another one by now";
    case SGM__ENTRY_RESTORE:
        return strchr(entry->text, '/') == NULL || is_unchanged(entry)
                   ? NULL
                   : "and the file is gone, or another one by now";
    case SGM__ENTRY_VALUE:
    case SGM__ENTRY_ATTACH:
    case SGM__ENTRY_DETACH:
    case SGM__ENTRY_PRESS:
    case SGM__ENTRY_RESET:
    case SGM__ENTRY_SAVE:
    case SGM__ENTRY_BRANCH:
    case SGM__ENTRY_PAUSE:
    case SGM__ENTRY_RESUME:
    case SGM__ENTRY_BEGIN:
    case SGM__ENTRY_END:
    case SGM__ENTRY_CHECKPOINT:
    case SGM__ENTRY_KIND_COUNT:
        break;
    }
    return NULL;
}

static void find_missing(const char *folder, const sgm__history *history, sgm__text *reasons)
{
    for (size_t i = 0; i < history->held.count; i++) {
        const sgm__journal_entry *entry = &history->held.items[i];
        const char *lack = lack_of(folder, entry);
        char *what = lack != NULL ? sgm__remade_told(entry) : NULL;
        if (what != NULL)
            sgm__text_append(reasons, "\n  line %lld: %s by %s, %s", (long long)entry->line, what, entry->who,
                             lack);
        sgm__free(what);
    }
}

/* What each process of the run was made of, compared with this trainer. */
static sgm_status compare_beginnings(sgm_trainer *trainer, const sgm__history *history, sgm__text *reasons)
{
    json_t *now = sgm__run_identity(trainer), *line;
    size_t index;
    if (now == NULL)
        return sgm__last_failure();
    json_array_foreach(history->beginnings, index, line)
    {
        char moment[64] = "when it began";
        if (index > 0)
            snprintf(moment, sizeof moment, "when it was resumed at iteration %lld",
                     (long long)json_integer_value(json_object_get(line, "iteration")));
        sgm__run_identity_compare(line, now, moment, index > 0, reasons);
    }
    json_decref(now);
    return SGM_OK;
}

static sgm_status report(const sgm_trainer *trainer, const sgm_replay *options, const sgm__text *reasons)
{
    if (reasons->length == 0)
        return SGM_OK;
    if (!options->inexact)
        return sgm_fail(SGM_ERROR_STATE, "the replay of '%s' cannot give the same bits:%s", options->run,
                        reasons->data);
    sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the replay of '%s' will not give the same bits:%s",
             options->run, reasons->data);
    return SGM_OK;
}

static sgm_status look_for_reasons(sgm_trainer *trainer, const sgm_replay *options,
                                   const sgm__history *history, bool *exact)
{
    sgm__text reasons = {0};
    sgm_status status = compare_beginnings(trainer, history, &reasons);
    if (status == SGM_OK) {
        find_clocks(trainer, history, &reasons);
        find_missing(options->run, history, &reasons);
        status = report(trainer, options, &reasons);
    }
    *exact = reasons.length == 0;
    sgm__text_free(&reasons);
    return status;
}

/* --- beginning --- */

/* Cuts what came behind the newest line of a checkpoint with this checksum ("": of any). False: there is
 * none. */
static bool cut_behind(sgm__journal_entries *held, const char *checksum)
{
    size_t count = held->count;
    while (count > 0 && !(held->items[count - 1].kind == SGM__ENTRY_CHECKPOINT &&
                          (checksum[0] == '\0' || strcmp(held->items[count - 1].checksum, checksum) == 0)))
        count--;
    while (count > 0 && held->count > count)
        sgm__entries_remove(held, held->count - 1);
    return count > 0;
}

/* Reads what holds of the journal, up to the checkpoint that the folder has. A run that trains now may have
 * replaced that file, and gone back to another position, between our two looks. */
static sgm_status read_history(const sgm_trainer *trainer, const sgm_replay *options, sgm__history *history)
{
    char has[SGM__CHECKSUM_DIGITS + 1] = "", *path = checkpoint_path(options->run, "checkpoint");
    const char *warn_as = options->inexact ? sgm_trainer_name(trainer) : NULL;
    sgm_status status = path != NULL ? sgm__run_folder_check(options->run) : SGM_ERROR_MEMORY;
    bool there = status == SGM_OK && sgm__checksum_of_file(path, has), found = false;
    for (int tries = 0; status == SGM_OK && !found && tries < TRIES; tries++) {
        if (tries > 0)
            usleep(BETWEEN_TRIES);
        sgm__history_free(history);
        status = sgm__history_read(options->run, warn_as, history);
        found =
            status == SGM_OK && (history->held.count == 0 || cut_behind(&history->held, there ? has : ""));
    }
    sgm__free(path);
    if (status == SGM_OK && !found)
        return there
                   ? sgm_fail(SGM_ERROR_FORMAT,
                              "'%s/" SGM__JOURNAL_FILE "' has no line for the folder's '" SGM__CHECKPOINT_FILE
                              "': its last lines are gone, or that file was replaced",
                              options->run)
                   : sgm_fail(SGM_ERROR_STATE, "'%s' has no checkpoint, to which it could be repeated",
                              options->run);
    return status;
}

/* Whether hooks make it again by themselves, if it was theirs. */
static bool is_made_by_hooks(const sgm__journal_entry *entry)
{
    return !entry->asked && (sgm__entry_is_move(entry->kind) || entry->kind == SGM__ENTRY_BRANCH);
}

/* Plans what is done again: all but the first beginning, and what hooks do. */
static sgm_status plan(sgm_trainer *trainer, const sgm__history *history)
{
    for (size_t i = 1; i < history->held.count; i++) {
        const sgm__journal_entry *entry = &history->held.items[i];
        if (entry->kind != SGM__ENTRY_UNKNOWN && !is_made_by_hooks(entry))
            SGM_TRY(sgm__plan_add(trainer, entry));
    }
    return SGM_OK;
}

/* What the replay ends at: the newest checkpoint, or so many iterations of its branch. */
static sgm_status set_end(const sgm_replay *options, const sgm__history *history, sgm__replay *replay)
{
    const sgm__journal_entry *last = &history->held.items[history->held.count - 1];
    replay->branch = last->branch;
    replay->epoch = last->epoch;
    replay->iteration = last->iteration;
    replay->until = options->until;
    if (options->until >= 0 && options->until <= last->iteration)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "until: the run '%s' has %lld iterations up to its newest checkpoint, got %lld",
                    options->run, (long long)last->iteration, (long long)options->until);
}

/* The replay of a branch is one as well, so it begins no branches either. */
static void take_branched(const sgm_trainer *trainer, const sgm__history *history)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    json_t *branched = json_object_get(json_array_get(history->beginnings, 0), "branched");
    json_decref(journal->branched);
    journal->branched = json_incref(branched);
}

static sgm_status begin(sgm_trainer *trainer, const sgm_replay *options, sgm__history *history)
{
    sgm__replay *replay = sgm__journal_of(trainer)->replay;
    SGM_TRY(read_history(trainer, options, history));
    if (history->held.count == 0)
        return sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' has no " SGM__JOURNAL_FILE ", so no run to repeat",
                        options->run);
    const sgm__journal_entry *first = &history->held.items[0];
    if (first->kind != SGM__ENTRY_BEGIN)
        return sgm_fail(SGM_ERROR_FORMAT,
                        "the journal of '%s' does not begin with the beginning of a run, but with '%s'",
                        options->run, sgm__entry_event(first->kind));
    SGM_TRY(sgm__origin_load(trainer, options->run, first));
    take_branched(trainer, history);
    sgm__progress_of(trainer)->epochs = first->epochs;
    sgm__progress_of(trainer)->iterations = first->iterations;
    SGM_TRY(set_end(options, history, replay));
    SGM_TRY(leave_out(history, options));
    SGM_TRY(look_for_reasons(trainer, options, history, &replay->exact));
    replay->exact = replay->exact && options->without_count == 0;
    replay->inexact = options->inexact;
    replay->check = options->check;
    return plan(trainer, history);
}

static sgm_status check_options(const sgm_trainer *trainer, const sgm_replay *options)
{
    const sgm__strategy *strategy = sgm__sharing_of(trainer)->strategy;
    if (strategy != NULL && strategy->meet != NULL) /* first: only one of the processes has a folder */
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "replay: a run of several processes (operator mpi) is not replayed by such, as the "
                        "first alone knows its journal; take one process (operator gradients) with as many "
                        "workers as all had together, and inexact: parameters are the same then, but "
                        "checkpoints have the state of each worker");
    if (options->run == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "replay: .run must be the folder of a run");
    if (sgm__journal_of(trainer)->folder == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "replay: .folder must be a new folder");
    if (sgm__position_of(trainer)->iteration > 0)
        return sgm_fail(SGM_ERROR_STATE, "replay: the trainer has trained already; take a new one");
    return SGM_OK;
}

sgm_status sgm__replay_begin(sgm_trainer *trainer, const sgm_replay *given)
{
    sgm_replay options;
    sgm__history history = {0};
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_replay_of"));
    SGM_TRY(check_options(trainer, &options));
    journal->replay = sgm__calloc(1, sizeof *journal->replay);
    if (journal->replay == NULL || (journal->replay->folder = sgm__strdup(options.run)) == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = begin(trainer, &options, &history);
    sgm__history_free(&history);
    return status;
}

void sgm__replay_end(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->replay == NULL)
        return;
    sgm__free(journal->replay->folder);
    sgm__free(journal->replay);
    journal->replay = NULL;
    sgm__plan_forget(trainer);
}

const char *sgm__replay_folder(const sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    return journal->replay != NULL ? journal->replay->folder : journal->folder;
}

/* --- entry after entry --- */

/* Checkpoints that this run has not made where the other one did are passed over: something was left out. The
 * end of a process counts only if it has saved behind it, as what its hooks did is lost otherwise. The end of
 * the last one is this run's own. */
bool sgm__replay_take(sgm_trainer *trainer, sgm__journal_entry *entry)
{
    sgm__replay *replay = sgm__journal_of(trainer)->replay;
    while (!replay->over && sgm__plan_take(trainer, entry)) {
        const sgm__journal_entry *next = sgm__plan_at(trainer, 0);
        bool ends = entry->kind == SGM__ENTRY_END;
        bool saves = next != NULL && next->kind == SGM__ENTRY_CHECKPOINT;
        replay->over = next == NULL || (ends && saves && sgm__plan_at(trainer, 1) == NULL);
        if (!replay->over && entry->kind != SGM__ENTRY_CHECKPOINT && (!ends || saves))
            return true;
        sgm__entry_clear(entry);
    }
    return false;
}

bool sgm__replay_take_change(sgm_trainer *trainer, sgm__journal_entry *entry)
{
    const sgm__journal_entry *due = sgm__plan_due(trainer);
    return due != NULL && sgm__entry_is_change(due->kind) && sgm__plan_take(trainer, entry);
}

/* The first checkpoint that differs ends the replay, or, if that was asked for, all comparing. */
static sgm_status tell_difference(sgm_trainer *trainer, long long line)
{
    sgm__replay *replay = sgm__journal_of(trainer)->replay;
    const sgm__training_position *position = sgm__position_of(trainer);
    char *what =
        sgm__format("the checkpoint after epoch %lld, iteration %lld is not that of '%s' (line %lld of "
                    "its journal): since the one before it something was different that the journal "
                    "does not have, such as the configuration of a resume, or data far behind their "
                    "beginning",
                    (long long)position->epoch, (long long)position->iteration, replay->folder, line);
    sgm_status status = what != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    replay->exact = false;
    if (what != NULL && replay->inexact)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s", what);
    else if (what != NULL)
        status = sgm_fail(SGM_ERROR_STATE, "%s", what);
    sgm__free(what);
    return status;
}

sgm_status sgm__replay_compare(sgm_trainer *trainer, const char *checksum)
{
    sgm__replay *replay = sgm__journal_of(trainer)->replay;
    const sgm__training_position *position = sgm__position_of(trainer);
    const sgm__journal_entry *due = sgm__plan_due(trainer);
    if (due == NULL || due->kind != SGM__ENTRY_CHECKPOINT || due->iteration != position->iteration ||
        due->epoch != position->epoch)
        return SGM_OK;
    bool same = strcmp(due->checksum, checksum) == 0;
    long long line = (long long)due->line;
    sgm__plan_remove_first(trainer);
    replay->over = sgm__plan_at(trainer, 0) == NULL;
    return same || !replay->exact ? SGM_OK : tell_difference(trainer, line);
}

/* Whether the training has come to where the run's newest checkpoint was made. */
static bool is_there(const sgm_trainer *trainer, const sgm__replay *replay)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    return sgm__journal_of(trainer)->branch == replay->branch &&
           (position->iteration > replay->iteration ||
            (position->iteration == replay->iteration && position->epoch >= replay->epoch));
}

/* An exact replay ends when all is done. Where something was left out, not all may become due. */
bool sgm__replay_is_over(sgm_trainer *trainer)
{
    const sgm__replay *replay = sgm__journal_of(trainer)->replay;
    if (replay == NULL)
        return false;
    bool until = replay->until > 0 && sgm__journal_of(trainer)->branch == replay->branch &&
                 sgm__position_of(trainer)->iteration >= replay->until;
    return replay->over || until || (!replay->exact && is_there(trainer, replay));
}

sgm_status sgm__replay_check_end(sgm_trainer *trainer)
{
    const sgm__replay *replay = sgm__journal_of(trainer)->replay;
    const sgm__training_position *position = sgm__position_of(trainer);
    if (replay == NULL || !replay->exact || sgm__replay_is_over(trainer))
        return SGM_OK;
    char reason[256] = "";
    bool stopped = sgm__control_stops(sgm__control_of(trainer), reason, sizeof reason);
    return sgm_fail(SGM_ERROR_STATE,
                    "the replay of '%s' ended after epoch %lld, iteration %lld%s%s, before all was done that "
                    "led to its newest checkpoint, after epoch %lld, iteration %lld",
                    replay->folder, (long long)position->epoch, (long long)position->iteration,
                    stopped ? ", stopped by " : "", reason, (long long)replay->epoch,
                    (long long)replay->iteration);
}

/* Copies a checkpoint of that name from the folder of the run that is replayed. */
static sgm_status take_checkpoint(const sgm_trainer *trainer, const char *name)
{
    char *from = checkpoint_path(sgm__journal_of(trainer)->replay->folder, name);
    char *to = checkpoint_path(sgm__journal_of(trainer)->folder, name);
    sgm_bundle *bundle = from != NULL && to != NULL ? sgm_bundle_load(from) : NULL;
    sgm_status status = bundle != NULL ? sgm_bundle_save(bundle, to) : sgm__last_failure();
    sgm_bundle_free(bundle);
    sgm__free(to);
    sgm__free(from);
    return status;
}

/* What was uploaded comes from the run's folder. So does what is restored, if this run does not have it: a
 * process had saved it whose work was lost when it was killed. */
sgm_status sgm__replay_provide(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    bool there, known;
    if (entry->kind == SGM__ENTRY_UPLOAD)
        return take_checkpoint(trainer, entry->text);
    if (entry->kind != SGM__ENTRY_RESTORE || strchr(entry->text, '/') != NULL ||
        has_checkpoint(journal->folder, entry, &there) || (there && !journal->replay->exact))
        return SGM_OK;
    return has_checkpoint(journal->replay->folder, entry, &known) ? take_checkpoint(trainer, entry->text)
                                                                  : SGM_OK;
}
