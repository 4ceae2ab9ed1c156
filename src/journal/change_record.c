/* The record of changes of one trainer, in memory: noting a change, limiting what is kept, telling
 * listeners, writing lines of changes.jsonl.
 *
 * Every value that is set while a trainer runs passes through here, by whomever: a person, a hook, a rule,
 * the program. Entries are numbered from 1. What a person has set keeps its old value, so that it can be
 * taken back (change_undo.c); a thousand changes and 64 MiB of tensors are kept. The list changes with the
 * trainer's lock and the record's own; either is enough to read it. */
#include "journal/change_record_internal.h"
#include "journal/changes.h"
#include "journal/run_lines.h"
#include "registry/registry_internal.h"
#include "trainer/trainer.h"

#include <time.h>

#define DROPPED_AT_ONCE (SGM__MAXIMUM_CHANGES / 10)

/* --- the list --- */

static size_t tensor_bytes(const sgm_content *content)
{
    if (content->kind != SGM_KIND_TENSOR)
        return 0;
    size_t elements = (size_t)sgm_shape_elements(sgm_tensor_shape(content->as.tensor));
    return elements * sgm_dtype_size(sgm_tensor_dtype(content->as.tensor));
}

static size_t bytes_of(const sgm__noted_change *change)
{
    return tensor_bytes(&change->old) + tensor_bytes(&change->old_average);
}

/* Gives up the old value of a change: it can no longer be taken back. */
static void let_go_of_old(sgm__change_record *record, sgm__noted_change *change)
{
    record->bytes -= bytes_of(change);
    sgm_content_clear(&change->old);
    sgm_content_clear(&change->old_average);
    change->old = change->old_average = (sgm_content){0};
}

static void free_change(sgm__change_record *record, sgm__noted_change *change)
{
    let_go_of_old(record, change);
    sgm_content_clear(&change->new);
    sgm__free(change->identifier);
    sgm__free(change->who);
    sgm__free(change->attached);
    sgm__free(change->detached);
    json_decref(change->before);
    json_decref(change->after);
}

sgm__change_record *sgm__change_record_create(void)
{
    sgm__change_record *record = sgm__calloc(1, sizeof *record);
    if (record != NULL)
        pthread_mutex_init(&record->lock, NULL);
    return record;
}

void sgm__change_record_free(sgm__change_record *record)
{
    if (record == NULL)
        return;
    for (size_t i = 0; i < record->count; i++)
        free_change(record, &record->items[i]);
    sgm__free(record->items);
    pthread_mutex_destroy(&record->lock);
    sgm__free(record);
}

/* Drops a tenth of the entries when the list is full: the oldest that no person has made, or, without such,
 * the oldest. A rule may set something in each iteration, and must not push out what a person did. */
static void make_room(sgm__change_record *record)
{
    size_t kept = 0, dropped = 0;
    if (record->count < SGM__MAXIMUM_CHANGES)
        return;
    for (int pass = 0; pass < 2 && dropped == 0; pass++) {
        kept = 0;
        for (size_t i = 0; i < record->count; i++) {
            if (dropped < DROPPED_AT_ONCE && (pass == 1 || !sgm__is_person(record->items[i].who))) {
                free_change(record, &record->items[i]);
                dropped++;
            } else {
                record->items[kept++] = record->items[i];
            }
        }
        record->count = kept;
    }
}

/* Old tensors go first, from the oldest change on. */
static void limit_bytes(sgm__change_record *record)
{
    for (size_t i = 0; i < record->count && record->bytes > SGM__MAXIMUM_CHANGE_BYTES; i++)
        if (record->items[i].old.kind == SGM_KIND_TENSOR)
            let_go_of_old(record, &record->items[i]);
}

sgm__noted_change *sgm__change_find(sgm__change_record *record, int64_t number)
{
    for (size_t i = record->count; i-- > 0;)
        if (record->items[i].number == number)
            return &record->items[i];
    return NULL;
}

/* --- noting --- */

static double wall_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Keeps old and new value of a person's change. The new value of a tensor is not kept: it trains on, so
 * comparing would always fail. */
static sgm_status keep_contents(sgm__noted_change *change, const sgm_content *before,
                                const sgm_content *after)
{
    bool plain = after->kind >= SGM_KIND_BOOLEAN && after->kind <= SGM_KIND_TEXT;
    if (!sgm__is_person(change->who))
        return SGM_OK;
    if (plain || before->kind == SGM_KIND_TENSOR)
        SGM_TRY(sgm__content_copy(before, false, &change->old));
    return plain ? sgm__content_copy(after, false, &change->new) : SGM_OK;
}

static sgm_status fill_in(const sgm_trainer *trainer, const char *who, const char *identifier,
                          sgm__noted_change *change)
{
    const sgm__trainer_progress *progress = sgm__progress_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    double running = progress->running_since > 0 ? sgm__now() - progress->running_since : 0;
    *change = (sgm__noted_change){.when = wall_clock(),
                                  .seconds = progress->running_time + running,
                                  .epoch = position->epoch,
                                  .iteration = position->iteration,
                                  .branch = sgm__journal_of(trainer)->branch,
                                  .identifier = sgm__strdup(identifier),
                                  .who = sgm__strdup(who)};
    return change->identifier != NULL && change->who != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Marks a change as taken back. If that change had itself taken back an earlier one, the earlier one holds
 * again. */
static void mark_undone(sgm__change_record *record, int64_t number)
{
    sgm__noted_change *undone = sgm__change_find(record, number);
    if (undone == NULL)
        return;
    undone->undone = true;
    sgm__noted_change *again = undone->undoes > 0 ? sgm__change_find(record, undone->undoes) : NULL;
    if (again != NULL)
        again->undone = false;
}

/* Takes the change over, also on failure. Changes of one command belong to a group, whose number is its
 * first change's. */
static sgm_status append(sgm_trainer *trainer, sgm__noted_change *change)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    record->bytes += bytes_of(change);
    make_room(record);
    sgm_status status =
        sgm__reserve(&record->items, &record->capacity, record->count + 1, sizeof *record->items);
    if (status == SGM_OK) {
        change->number = ++record->made;
        if (change->undoes == 0)
            change->undoes = record->undoing;
        if (record->group < 0)
            record->group = change->number;
        change->group = record->group;
        mark_undone(record, change->undoes);
        record->items[record->count++] = *change;
        limit_bytes(record);
        sgm__change_tell(trainer, &record->items[record->count - 1]);
    } else {
        free_change(record, change);
    }
    pthread_mutex_unlock(&record->lock);
    return status;
}

static sgm_status write_down(const sgm_trainer *trainer, sgm__noted_change *change)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->folder == NULL)
        return SGM_OK;
    SGM_TRY(sgm__run_folder_change(journal->folder, change));
    change->written = true;
    return SGM_OK;
}

/* What the program sets before its first run is no change but the setting itself. */
static bool is_setting_up(sgm_trainer *trainer, const char *who)
{
    return !sgm__is_person(who) && sgm__journal_of(trainer)->folder == NULL &&
           sgm_trainer_state_of(trainer) == SGM_TRAINER_IDLE;
}

/* Whether what is set now is a change. A value that a person or the program sets is no longer repeated by a
 * resume that had planned to. */
static bool begin_note(sgm_trainer *trainer, const char *identifier)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *who = journal->changed_by;
    if (journal->restoring || is_setting_up(trainer, who))
        return false;
    if (journal->folder != NULL && sgm__is_request(who))
        sgm__changes_supersede(trainer, identifier, 0);
    return true;
}

/* Writes the line and appends the entry; `status` says whether the entry could be made. */
static sgm_status end_note(sgm_trainer *trainer, sgm__noted_change *change, sgm_status status)
{
    sgm_status written = status == SGM_OK ? write_down(trainer, change) : status;
    status = append(trainer, change);
    return written != SGM_OK ? written : status;
}

static sgm_status note(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                       const sgm_content *after, const sgm_content *average)
{
    sgm__noted_change change = {0};
    trainer = sgm__sharing_of(trainer)->owner;
    if (!begin_note(trainer, identifier))
        return SGM_OK;
    sgm_status status = fill_in(trainer, sgm__journal_of(trainer)->changed_by, identifier, &change);
    change.before = sgm__content_change_json(before);
    change.after = sgm__content_change_json(after);
    if (status == SGM_OK)
        status = keep_contents(&change, before, after);
    if (status == SGM_OK && change.old.kind == SGM_KIND_TENSOR)
        status = sgm__content_copy(average, false, &change.old_average);
    return end_note(trainer, &change, status);
}

sgm_status sgm__change_note(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                            const sgm_content *after)
{
    return note(trainer, identifier, before, after, &(sgm_content){0});
}

sgm_status sgm__change_note_state(sgm_trainer *trainer, const char *identifier, sgm_tensor *before,
                                  sgm_tensor *after, sgm_tensor *average)
{
    const sgm_content old = sgm_tensor_content(before), new = sgm_tensor_content(after);
    const sgm_content old_average = average != NULL ? sgm_tensor_content(average) : (sgm_content){0};
    return note(trainer, identifier, &old, &new, &old_average);
}

/* Keeps the text of a hook that came or went. A hook without a text is recorded by its name, and cannot be
 * made again. */
static sgm_status keep_hook(sgm__noted_change *change, const char *before, const char *after)
{
    bool is_name = before != NULL && strcmp(before, change->identifier + strlen(SGM__HOOK_CHANGE)) == 0;
    if (!sgm__is_person(change->who) || is_name)
        return SGM_OK;
    change->attached = after != NULL ? sgm__strdup(after) : NULL;
    change->detached = before != NULL ? sgm__strdup(before) : NULL;
    return change->attached != NULL || change->detached != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__change_note_hook(sgm_trainer *trainer, const char *identifier, const char *before,
                                 const char *after, int64_t undoes)
{
    sgm__noted_change change = {0};
    trainer = sgm__sharing_of(trainer)->owner;
    if (!begin_note(trainer, identifier))
        return SGM_OK;
    sgm_status status = fill_in(trainer, sgm__journal_of(trainer)->changed_by, identifier, &change);
    change.before = json_string(before != NULL ? before : "none");
    change.after = json_string(after != NULL ? after : "none");
    change.undoes = undoes;
    if (status == SGM_OK)
        status = keep_hook(&change, before, after);
    return end_note(trainer, &change, status);
}

void sgm__change_note_position(sgm_trainer *trainer, const char *who, const char *before, const char *after)
{
    sgm__noted_change change = {0};
    sgm_status status = fill_in(trainer, who, SGM__POSITION_CHANGE, &change);
    change.before = json_string(before);
    change.after = json_string(after);
    change.written = true;
    if (status == SGM_OK)
        append(trainer, &change);
    else
        free_change(sgm__journal_of(trainer)->changes, &change);
}

/* Whether the entry still has the value that the change gave it. */
static bool holds(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    sgm_content now = {0};
    bool same = change->new.kind !=
                SGM_KIND_NOTHING &&sgm_resolve_one(sgm__registry_of(trainer), change->identifier, &now) ==
                SGM_OK &&sgm_content_equal(&now, &change->new);
    sgm_content_clear(&now);
    return same;
}

/* When a run gets a folder: writes the lines of what persons set before and what still holds. Only this
 * thread changes the list now, so entries are read without the record's lock. */
void sgm__changes_write(sgm_trainer *trainer)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    for (size_t i = 0; i < record->count; i++) {
        sgm__noted_change *change = &record->items[i];
        if (change->written || !sgm__is_person(change->who) || !holds(trainer, change))
            continue;
        if (write_down(trainer, change) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the change of %s could not be recorded: %s",
                     change->identifier, sgm_last_error());
    }
}

void sgm__changes_begin(sgm_trainer *trainer)
{
    sgm__journal_of(trainer)->changes->group = -1; /* the first change gives its number */
}

void sgm__changes_end(sgm_trainer *trainer)
{
    sgm__journal_of(trainer)->changes->group = 0;
}
