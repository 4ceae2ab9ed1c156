/* Shows the record of changes, tells listeners of new ones, and takes changes back.
 *
 * Taking back sets the old value again, which is a change itself that names the one it undoes. It is
 * refused where the value is another one by now: a later change of the same entry, or a restored
 * checkpoint, would be lost without a word. The changes of one command are taken back together or not at
 * all. */
#include "journal/change_record_internal.h"
#include "trainer/trainer.h"

#include <stdio.h>

/* --- showing --- */

/* The newest later change of the same entry that still holds; changes that were taken back, or that took
 * one back, do not count. */
static const sgm__noted_change *obstacle_of(const sgm__change_record *record, const sgm__noted_change *change)
{
    for (const sgm__noted_change *at = record->items + record->count; --at > change;)
        if (!at->undone && at->undoes == 0 && strcmp(at->identifier, change->identifier) == 0)
            return at;
    return NULL;
}

static bool can_be_undone(const sgm__noted_change *change)
{
    return change->old.kind != SGM_KIND_NOTHING || change->attached != NULL || change->detached != NULL;
}

static bool is_undoable(const sgm__change_record *record, const sgm__noted_change *change)
{
    return can_be_undone(change) && !change->undone && obstacle_of(record, change) == NULL;
}

static json_t *text_json(const char *text)
{
    json_t *made = json_string(text);
    return made != NULL ? made : json_null();
}

/* With the record's lock. */
static json_t *change_json(const sgm_trainer *trainer, const sgm__noted_change *change)
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
    json_object_set_new(shown, "person", json_boolean(sgm__is_person(change->who)));
    json_object_set_new(shown, "undoes", change->undoes > 0 ? json_integer(change->undoes) : json_null());
    json_object_set_new(shown, "undone", json_boolean(change->undone));
    json_object_set_new(shown, "undoable",
                        json_boolean(is_undoable(sgm__journal_of(trainer)->changes, change)));
    return shown;
}

json_t *sgm__changes_json(sgm_trainer *trainer, int64_t after)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    json_t *list = json_array();
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < record->count; i++)
        if (record->items[i].number > after)
            json_array_append_new(list, change_json(trainer, &record->items[i]));
    pthread_mutex_unlock(&record->lock);
    return list;
}

/* --- listeners --- */

void sgm__change_tell(sgm_trainer *trainer, const sgm__noted_change *change)
{
    const sgm__change_listener *listeners = sgm__journal_of(trainer)->changes->listeners;
    json_t *shown = NULL;
    for (size_t i = 0; i < SGM__MAXIMUM_CHANGE_LISTENERS; i++) {
        if (listeners[i].function == NULL)
            continue;
        if (shown == NULL)
            shown = change_json(trainer, change);
        listeners[i].function(listeners[i].user, shown);
    }
    json_decref(shown);
}

sgm_status sgm__changes_listen(sgm_trainer *trainer, sgm__change_function function, void *user)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    size_t i = 0;
    pthread_mutex_lock(&record->lock);
    while (i < SGM__MAXIMUM_CHANGE_LISTENERS && record->listeners[i].function != NULL)
        i++;
    if (i < SGM__MAXIMUM_CHANGE_LISTENERS)
        record->listeners[i] = (sgm__change_listener){function, user};
    pthread_mutex_unlock(&record->lock);
    return i < SGM__MAXIMUM_CHANGE_LISTENERS
               ? SGM_OK
               : sgm_fail(SGM_ERROR_STATE,
                          "trainer '%s' has %d listeners to its changes, which is the maximum",
                          sgm_trainer_name(trainer), SGM__MAXIMUM_CHANGE_LISTENERS);
}

void sgm__changes_unlisten(sgm_trainer *trainer, sgm__change_function function, const void *user)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    for (size_t i = 0; i < SGM__MAXIMUM_CHANGE_LISTENERS; i++)
        if (record->listeners[i].function == function && record->listeners[i].user == user)
            record->listeners[i] = (sgm__change_listener){0};
    pthread_mutex_unlock(&record->lock);
}

/* --- taking back --- */

static sgm_status no_number(const sgm_trainer *trainer, int64_t number)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "trainer '%s' has no change %lld%s; the newest is %lld",
                    sgm_trainer_name(trainer), (long long)number,
                    number > 0 && number <= journal->changes->made ? " any more" : "",
                    (long long)journal->changes->made);
}

static sgm_status check_undoable(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    long long number = (long long)change->number;
    if (change->undone)
        return sgm_fail(SGM_ERROR_STATE, "change %lld of %s was taken back already", number,
                        change->identifier);
    if (!sgm__is_person(change->who))
        return sgm_fail(SGM_ERROR_STATE,
                        "change %lld of %s was made by %s: only what a person set is taken "
                        "back; set it instead",
                        number, change->identifier, change->who);
    if (!can_be_undone(change))
        return sgm_fail(SGM_ERROR_STATE, "change %lld (%s) is nothing that can be taken back", number,
                        change->identifier);
    const sgm__noted_change *later = obstacle_of(sgm__journal_of(trainer)->changes, change);
    if (later != NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        "%s was changed again after change %lld, by %s (change %lld): take that back first, "
                        "or set it",
                        change->identifier, number, later->who, (long long)later->number);
    return SGM_OK;
}

/* The value must be what the change made it: restored checkpoints set values too, and leave no entry. */
static sgm_status check_value(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    sgm_content now = {0};
    if (change->new.kind == SGM_KIND_NOTHING)
        return SGM_OK;
    SGM_TRY(sgm_resolve_one(sgm__registry_of(trainer), change->identifier, &now));
    sgm_status status = SGM_OK;
    if (!sgm_content_equal(&now, &change->new)) {
        char *is = sgm_content_describe(&now), *was = sgm_content_describe(&change->new);
        status = sgm_fail(SGM_ERROR_STATE, "%s is %.100s by now, not %.100s as change %lld made it: set it",
                          change->identifier, is != NULL ? is : "another value", was != NULL ? was : "",
                          (long long)change->number);
        sgm_string_free(is);
        sgm_string_free(was);
    }
    sgm_content_clear(&now);
    return status;
}

/* Everything is copied first: setting the value appends to the record, where `change` may move. The moving
 * average that the parameter had is put back after it, as setting the parameter began it anew. */
static sgm_status take_back(sgm_trainer *trainer, const sgm__noted_change *change, const char *who)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    sgm__change_record *record = journal->changes;
    int64_t number = change->number;
    SGM_TRY(check_undoable(trainer, change));
    SGM_TRY(check_value(trainer, change));
    char *identifier = sgm__strdup(change->identifier);
    sgm_content old = change->old;
    if (identifier == NULL)
        return SGM_ERROR_MEMORY;
    if (old.kind == SGM_KIND_TENSOR)
        sgm_tensor_retain(old.as.tensor);
    else if (old.kind == SGM_KIND_TEXT)
        old.as.text = sgm__strdup(old.as.text);
    sgm_tensor *average =
        change->old_average.kind == SGM_KIND_TENSOR ? sgm_tensor_retain(change->old_average.as.tensor) : NULL;
    const char *before = journal->changed_by;
    journal->changed_by = who;
    record->undoing = number;
    sgm_status status = sgm_resolve_set(sgm__registry_of(trainer), identifier, old, NULL, NULL);
    record->undoing = 0;
    journal->changed_by = before;
    if (status == SGM_OK && average != NULL) /* setting the parameter began it anew */
        status = sgm__trainer_put_average(trainer, identifier, average);
    sgm_tensor_free(average);
    sgm_content_clear(&old);
    sgm__free(identifier);
    return status;
}

/* The newest change that "undo" without a number means. */
static const sgm__noted_change *newest_of_person(const sgm__change_record *record)
{
    for (size_t i = record->count; i-- > 0;) {
        const sgm__noted_change *change = &record->items[i];
        if (!change->undone && change->undoes == 0 && can_be_undone(change))
            return change;
    }
    return NULL;
}

bool sgm__changes_can_undo(sgm_trainer *trainer)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    const sgm__noted_change *change = newest_of_person(record);
    bool can = change != NULL && obstacle_of(record, change) == NULL;
    pthread_mutex_unlock(&record->lock);
    return can;
}

static const sgm__noted_change *next_of_group(const sgm__change_record *record, int64_t group)
{
    const sgm__noted_change *change = newest_of_person(record);
    return change != NULL && change->group == group ? change : NULL;
}

/* Looks at all changes of a command before the first one is taken back. */
static sgm_status check_group(const sgm_trainer *trainer, int64_t group)
{
    const sgm__change_record *record = sgm__journal_of(trainer)->changes;
    for (size_t i = record->count; i-- > 0;) {
        const sgm__noted_change *change = &record->items[i];
        if (change->group != group || change->undone || change->undoes > 0 || !can_be_undone(change))
            continue;
        SGM_TRY(check_undoable(trainer, change));
        SGM_TRY(check_value(trainer, change));
    }
    return SGM_OK;
}

static bool copy_text(const char *text, char **copy)
{
    *copy = text != NULL ? sgm__strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* Attaching and detaching hooks cannot be done with the trainer's lock, so a hook's change is only looked
 * up here. */
static sgm_status look_up_hook(const sgm_trainer *trainer, const sgm__noted_change *change,
                               sgm__hook_undo *hook)
{
    const char *name = change->identifier + strlen(SGM__HOOK_CHANGE);
    SGM_TRY(check_undoable(trainer, change));
    if (copy_text(change->detached, &hook->attach) && copy_text(change->attached, &hook->detach) &&
        copy_text(name, &hook->name))
        return SGM_OK;
    sgm__hook_undo_clear(hook);
    return SGM_ERROR_MEMORY;
}

void sgm__hook_undo_clear(sgm__hook_undo *hook)
{
    sgm__free(hook->attach);
    sgm__free(hook->detach);
    sgm__free(hook->name);
    *hook = (sgm__hook_undo){0};
}

sgm_status sgm__changes_undo(sgm_trainer *trainer, int64_t number, const char *who, int64_t *first,
                             sgm__hook_undo *hook)
{
    *hook = (sgm__hook_undo){0};
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    const sgm__noted_change *change =
        number > 0 ? sgm__change_find(record, number) : newest_of_person(record);
    if (change == NULL && number > 0)
        return no_number(trainer, number);
    if (change == NULL)
        return sgm_fail(SGM_ERROR_STATE, "there is no change of a person to take back in trainer '%s'",
                        sgm_trainer_name(trainer));
    int64_t group = number > 0 ? 0 : change->group;
    *first = change->number;
    if (change->old.kind == SGM_KIND_NOTHING && can_be_undone(change))
        return look_up_hook(trainer, change, hook);
    if (group > 0)
        SGM_TRY(check_group(trainer, group));
    sgm__changes_begin(trainer);
    sgm_status status = take_back(trainer, change, who);
    while (status == SGM_OK && group > 0 && (change = next_of_group(record, group)) != NULL)
        status = take_back(trainer, change, who);
    sgm__changes_end(trainer);
    return status;
}
