/* The record of changes of one trainer, in memory: noting a change, limiting what is kept, telling listeners,
 * and writing lines of journal.jsonl. change_undo.c takes changes back.
 *
 * Every value that is set while a trainer runs passes through here, whether a person, a hook, a rule or the
 * program sets it: src/show/trainer_states.c notes values and states, src/runs/ notes hooks and moves to
 * another position. Entries are numbered from 1. What a person has set keeps its old value, so that it can be
 * taken back; a thousand changes and 64 MiB of tensors are kept. changes.c makes the lines, history.c reads
 * them again; settings.c has the list of values that checkpoints keep.
 *
 * The list is changed with both the trainer's lock and the record's own; either is enough to read it. So
 * functions that the training's thread calls read it without the record's lock, and monitors read it
 * without the trainer's. */
#include "base/clock.h"
#include "journal/change_record_internal.h"
#include "journal/changes.h"
#include "journal/planned.h"
#include "journal/run_lines.h"
#include "registry/registry_internal.h"
#include "trainer/trainer.h"

#include <stdio.h>

#define DROPPED_AT_ONCE (SGM__MAXIMUM_CHANGES / 10) /* so that the list is not moved for each change */

/* --- the list --- */

/* Bytes of a tensor's elements; 0 for other kinds. */
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
    sgm__free(change->reason);
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

/* Gives up old tensors, from the oldest change on, until the rest is within the limit; the changes
 * themselves stay in the list. */
static void limit_bytes(sgm__change_record *record)
{
    for (size_t i = 0; i < record->count && record->bytes > SGM__MAXIMUM_CHANGE_BYTES; i++)
        if (record->items[i].old.kind == SGM_KIND_TENSOR)
            let_go_of_old(record, &record->items[i]);
}

/* The newest are asked for most. */
sgm__noted_change *sgm__change_find(sgm__change_record *record, int64_t number)
{
    for (size_t i = record->count; i-- > 0;)
        if (record->items[i].number == number)
            return &record->items[i];
    return NULL;
}

int64_t sgm__change_holding(const sgm__change_record *record, const char *identifier)
{
    for (size_t i = record->count; i-- > 0;) {
        const sgm__noted_change *change = &record->items[i];
        if (!change->undone && change->undoes == 0 && strcmp(change->identifier, identifier) == 0)
            return change->number;
    }
    return 0;
}

/* --- noting --- */

/* Keeps old and new value of a person's change, by which it can be taken back. The new value of a tensor
 * is not kept: training goes on changing it, so comparing with it would always fail. */
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

/* Fills in who changed what, why, when, and where in the training. The texts are the change's also after a
 * failure. */
static sgm_status fill_in(const sgm_trainer *trainer, const char *who, const char *identifier,
                          sgm__noted_change *change)
{
    const sgm__trainer_progress *progress = sgm__progress_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    double running = progress->running_since > 0 ? sgm__now() - progress->running_since : 0;
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    *change = (sgm__noted_change){.when = sgm__wall_time(),
                                  .seconds = progress->running_time + running,
                                  .epoch = position->epoch,
                                  .iteration = position->iteration,
                                  .branch = journal->branch,
                                  .undoes = journal->changes->undoing,
                                  .group = journal->changes->group > 0 ? journal->changes->group : 0,
                                  .again = journal->making != NULL && journal->replay == NULL,
                                  .identifier = sgm__strdup(identifier),
                                  .who = sgm__strdup(who),
                                  .reason = sgm__strdup(journal->reason)};
    return change->identifier != NULL && change->who != NULL &&
                   (change->reason != NULL || journal->reason == NULL)
               ? SGM_OK
               : SGM_ERROR_MEMORY;
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

/* json_string gives NULL for what is not UTF-8. */
static json_t *text_json(const char *text)
{
    json_t *made = json_string(text);
    return made != NULL ? made : json_null();
}

bool sgm__change_can_be_undone(const sgm__noted_change *change)
{
    return change->old.kind != SGM_KIND_NOTHING || change->attached != NULL || change->detached != NULL;
}

/* Changes that were taken back, and those that took one back, do not count. */
const sgm__noted_change *sgm__change_obstacle(const sgm__change_record *record,
                                              const sgm__noted_change *change)
{
    for (const sgm__noted_change *at = record->items + record->count; --at > change;)
        if (!at->undone && at->undoes == 0 && strcmp(at->identifier, change->identifier) == 0)
            return at;
    return NULL;
}

static bool is_undoable(const sgm__change_record *record, const sgm__noted_change *change)
{
    return sgm__change_can_be_undone(change) && !change->undone &&
           sgm__change_obstacle(record, change) == NULL;
}

json_t *sgm__change_json(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    json_t *shown = json_object();
    json_object_set_new(shown, "trainer", text_json(sgm_trainer_name(trainer)));
    json_object_set_new(shown, "number", json_integer(change->number));
    json_object_set_new(shown, "time", json_real(change->when));
    json_object_set_new(shown, "iteration", json_integer(change->iteration));
    json_object_set_new(shown, "epoch", json_integer(change->epoch));
    json_object_set_new(shown, "seconds", json_real(change->seconds));
    json_object_set_new(shown, "identifier", text_json(change->identifier));
    json_object_set_new(shown, "before", json_deep_copy(change->before));
    json_object_set_new(shown, "after", json_deep_copy(change->after));
    json_object_set_new(shown, "who", text_json(change->who));
    json_object_set_new(shown, "reason", change->reason != NULL ? text_json(change->reason) : json_null());
    json_object_set_new(shown, "person", json_boolean(sgm__is_person(change->who)));
    json_object_set_new(shown, "undoes", change->undoes > 0 ? json_integer(change->undoes) : json_null());
    json_object_set_new(shown, "undone", json_boolean(change->undone));
    json_object_set_new(shown, "undoable",
                        json_boolean(is_undoable(sgm__journal_of(trainer)->changes, change)));
    return shown;
}

/* Calls the listeners with a change that is in the list; with the record's lock. The JSON is made only if
 * there is a listener. */
static void tell(sgm_trainer *trainer, const sgm__noted_change *change)
{
    const sgm__change_listener *listeners = sgm__journal_of(trainer)->changes->listeners;
    json_t *shown = NULL;
    for (size_t i = 0; i < SGM__MAXIMUM_LISTENERS; i++) {
        if (listeners[i].function == NULL)
            continue;
        if (shown == NULL)
            shown = sgm__change_json(trainer, change);
        listeners[i].function(listeners[i].user, shown);
    }
    json_decref(shown);
}

sgm_status sgm__change_append(sgm_trainer *trainer, sgm__noted_change *change)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    record->bytes += bytes_of(change);
    make_room(record);
    sgm_status status =
        change->identifier != NULL && change->who != NULL
            ? sgm__reserve(&record->items, &record->capacity, record->count + 1, sizeof *record->items)
            : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        change->number = ++record->made;
        if (record->group < 0)
            record->group = change->number;
        change->group = record->group;
        mark_undone(record, change->undoes);
        record->items[record->count++] = *change;
        limit_bytes(record);
        tell(trainer, &record->items[record->count - 1]);
    } else {
        free_change(record, change);
    }
    pthread_mutex_unlock(&record->lock);
    return status;
}

static bool is_press(const sgm__noted_change *change)
{
    return sgm__begins_with(change->identifier, SGM__PRESS_CHANGE);
}

/* Appends the line to journal.jsonl, if the run has a folder. */
static sgm_status write_down(const sgm_trainer *trainer, sgm__noted_change *change)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->folder == NULL)
        return SGM_OK;
    SGM_TRY(is_press(change) ? sgm__run_folder_press(journal->folder, change)
                             : sgm__run_folder_change(journal->folder, change));
    change->written = true;
    return SGM_OK;
}

/* What the program sets before its first run is no change: it sets the trainer up. */
static bool is_setting_up(sgm_trainer *trainer, const char *who)
{
    return !sgm__is_person(who) && sgm__journal_of(trainer)->folder == NULL &&
           sgm_trainer_get_state(trainer) == SGM_TRAINER_IDLE;
}

/* Whether setting a value at this moment is a change that is noted. If a person or the program sets the
 * value, a resume's plan to set it again at a later iteration is dropped, unless this is the plan's doing. */
static bool begin_note(sgm_trainer *trainer, const char *who, const char *identifier)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->restoring || is_setting_up(trainer, who))
        return false;
    if (journal->folder != NULL && journal->making == NULL && sgm__is_request(who))
        sgm__plan_supersede(trainer, identifier);
    return true;
}

/* What a resume or a replay makes again may have taken back a change, which it does again. */
static void find_undone(const sgm_trainer *trainer, sgm__noted_change *change)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->making != NULL && journal->making->undoes && change->identifier != NULL)
        change->undoes = sgm__change_holding(journal->changes, change->identifier);
    const sgm__noted_change *undone = sgm__change_find(journal->changes, change->undoes);
    change->takes_back = undone != NULL && undone->undoes == 0;
}

/* Writes the line and appends the entry; `status` says whether the entry could be made. */
static sgm_status end_note(sgm_trainer *trainer, sgm__noted_change *change, sgm_status status)
{
    find_undone(trainer, change);
    sgm_status written = status == SGM_OK ? write_down(trainer, change) : status;
    status = sgm__change_append(trainer, change);
    return written != SGM_OK ? written : status;
}

/* Writes a tensor that a person has set to a file of the run's folder, whose name goes into the line. */
static void keep_file(const sgm_trainer *trainer, sgm__noted_change *change, const char *key,
                      const sgm_tensor *tensor)
{
    char *file = NULL;
    if (sgm__run_folder_tensor(sgm__journal_of(trainer)->folder, change->iteration, tensor, &file) == SGM_OK)
        json_object_set_new(change->after, key, json_string(file));
    else
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "what %s was set to is not kept: %s",
                 change->identifier, sgm_last_error());
    sgm__free(file);
}

/* Keeps the tensor that a person has set, and the moving average that goes with it, for a resume and for a
 * replay. What a resume sets again has its files already. A tensor that is too large, or that cannot be
 * written, is lost when a resume begins before it. */
static void keep_tensor(const sgm_trainer *trainer, sgm__noted_change *change, const sgm_content *after)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->folder == NULL || !sgm__is_person(change->who) || after->kind != SGM_KIND_TENSOR ||
        tensor_bytes(after) > SGM__MAXIMUM_CHANGE_BYTES)
        return;
    if (change->again) {
        json_object_set_new(change->after, "file", json_string(journal->making->text));
        if (journal->making->average[0] != '\0')
            json_object_set_new(change->after, "average", json_string(journal->making->average));
        return;
    }
    keep_file(trainer, change, "file", after->as.tensor);
    if (journal->setting_average != NULL)
        keep_file(trainer, change, "average", journal->setting_average);
}

/* Notes a change of a value. `average`: the moving average before, as a content; empty: none. */
static sgm_status note(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                       const sgm_content *after, const sgm_content *average)
{
    sgm__noted_change change = {0};
    trainer = sgm__sharing_of(trainer)->owner;
    const char *who = sgm__journal_of(trainer)->changed_by;
    if (!begin_note(trainer, who, identifier))
        return SGM_OK;
    sgm_status status = fill_in(trainer, who, identifier, &change);
    change.before = sgm__content_change_json(before);
    change.after = sgm__content_change_json(after);
    if (status == SGM_OK)
        status = keep_contents(&change, before, after);
    if (status == SGM_OK && change.old.kind == SGM_KIND_TENSOR)
        status = sgm__content_copy(average, false, &change.old_average);
    if (status == SGM_OK)
        keep_tensor(trainer, &change, after);
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

sgm_status sgm__change_note_hook(sgm_trainer *trainer, const char *who, const char *identifier,
                                 const char *before, const char *after, int64_t undoes)
{
    sgm__noted_change change = {0};
    trainer = sgm__sharing_of(trainer)->owner;
    if (!begin_note(trainer, who, identifier))
        return SGM_OK;
    sgm_status status = fill_in(trainer, who, identifier, &change);
    change.before = json_string(before != NULL ? before : SGM__NO_HOOK);
    change.after = json_string(after != NULL ? after : SGM__NO_HOOK);
    if (undoes > 0)
        change.undoes = undoes;
    if (status == SGM_OK)
        status = keep_hook(&change, before, after);
    return end_note(trainer, &change, status);
}

/* What a resumed run still has to press stays planned: a button may be pressed several times. */
sgm_status sgm__change_note_press(sgm_trainer *trainer, const char *who, const char *button)
{
    sgm__noted_change change = {0};
    trainer = sgm__sharing_of(trainer)->owner;
    if (sgm__journal_of(trainer)->restoring || is_setting_up(trainer, who))
        return SGM_OK;
    char *identifier = sgm__format(SGM__PRESS_CHANGE "%s", button);
    sgm_status status = identifier != NULL ? fill_in(trainer, who, identifier, &change) : SGM_ERROR_MEMORY;
    sgm__free(identifier);
    change.before = json_null();
    change.after = json_string("pressed");
    return end_note(trainer, &change, status);
}

/* A move has a line of its own (sgm__run_folder_move), so it counts as written. */
void sgm__change_note_position(sgm_trainer *trainer, const char *who, const char *before, const char *after)
{
    sgm__noted_change change = {0};
    sgm_status status = fill_in(trainer, who, SGM__POSITION_CHANGE, &change);
    change.before = json_string(before);
    change.after = json_string(after);
    change.written = true;
    if (status == SGM_OK)
        sgm__change_append(trainer, &change);
    else
        free_change(sgm__journal_of(trainer)->changes, &change);
}

/* Whether the entry still has the value that the change gave it; of a button, whether nothing was trained,
 * and so no criterion was checked, since it was pressed. */
static bool holds(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    sgm_content now = {0};
    if (is_press(change))
        return change->iteration == position->iteration && change->epoch == position->epoch;
    bool same =
        change->new.kind !=
        SGM_KIND_NOTHING &&sgm_registry_resolve_one(sgm__registry_of(trainer), change->identifier, &now) ==
        SGM_OK &&sgm_content_equal(&now, &change->new);
    sgm_content_clear(&now);
    return same;
}

/* When a run gets a folder: writes lines for what persons set before, as far as it still holds. The
 * training's thread calls this with the trainer's lock, so the list is read without the record's. */
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
    sgm__journal_of(trainer)->changes->group = -1; /* the first change will give it its number */
}

void sgm__changes_end(sgm_trainer *trainer)
{
    sgm__journal_of(trainer)->changes->group = 0;
}

/* --- showing --- */

json_t *sgm__changes_json(sgm_trainer *trainer, int64_t after)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    json_t *list = json_array();
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < record->count; i++)
        if (record->items[i].number > after)
            json_array_append_new(list, sgm__change_json(trainer, &record->items[i]));
    pthread_mutex_unlock(&record->lock);
    return list;
}

/* --- listeners --- */

sgm_status sgm__changes_listen(sgm_trainer *trainer, sgm__change_function function, void *user)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    size_t i = 0;
    pthread_mutex_lock(&record->lock);
    while (i < SGM__MAXIMUM_LISTENERS && record->listeners[i].function != NULL)
        i++;
    if (i < SGM__MAXIMUM_LISTENERS)
        record->listeners[i] = (sgm__change_listener){function, user};
    pthread_mutex_unlock(&record->lock);
    return i < SGM__MAXIMUM_LISTENERS
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE,
                          "trainer '%s' has %d listeners to its changes, which is the maximum",
                          sgm_trainer_name(trainer), SGM__MAXIMUM_LISTENERS);
}

void sgm__changes_unlisten(sgm_trainer *trainer, sgm__change_function function, const void *user)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < SGM__MAXIMUM_LISTENERS; i++)
        if (record->listeners[i].function == function && record->listeners[i].user == user)
            record->listeners[i] = (sgm__change_listener){0};
    pthread_mutex_unlock(&record->lock);
}
