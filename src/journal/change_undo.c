/* Taking changes back: of values, tensors with their moving averages, and hooks.
 *
 * Taking back sets the old value again, which is a change itself that names the one it undoes. It is
 * refused if the entry has another value by then: a later change of the same entry, or a restored
 * checkpoint, would be lost without a word. The changes of one command are taken back together or not at
 * all. */
#include "journal/change_record_internal.h"
#include "registry/registry_internal.h"
#include "trainer/trainer.h"

/* The error for a number of no change, or of one that is no longer kept. */
static sgm_status no_number(const sgm_trainer *trainer, int64_t number)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    return sgm_fail(SGM_ERROR_NOT_FOUND, "trainer '%s' has no change %lld%s; the newest is %lld",
                    sgm_trainer_name(trainer), (long long)number,
                    number > 0 && number <= journal->changes->made ? " any more" : "",
                    (long long)journal->changes->made);
}

/* Whether the record allows to take the change back; the error says why not. */
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
    if (!sgm__change_can_be_undone(change))
        return sgm_fail(SGM_ERROR_STATE, "change %lld (%s) is nothing that can be taken back", number,
                        change->identifier);
    const sgm__noted_change *later = sgm__change_obstacle(sgm__journal_of(trainer)->changes, change);
    if (later != NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        "%s was changed again after change %lld, by %s (change %lld): take that back first, "
                        "or set it",
                        change->identifier, number, later->who, (long long)later->number);
    return SGM_OK;
}

/* Whether the entry still has the value that the change gave it. A restored checkpoint sets values without
 * an entry in the record, so looking at later changes is not enough. */
static sgm_status check_value(const sgm_trainer *trainer, const sgm__noted_change *change)
{
    sgm_content now = {0};
    if (change->new.kind == SGM_KIND_NOTHING)
        return SGM_OK;
    SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(trainer), change->identifier, &now));
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

/* Sets the old value again, which is a change of its own that names the one it undoes. All that is needed
 * of `change` is copied first: setting the value appends to the list, where `change` may move. The moving
 * average that the parameter had is put back last. */
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
    else if (old.kind == SGM_KIND_TEXT && (old.as.text = sgm__strdup(old.as.text)) == NULL) {
        sgm__free(identifier);
        return SGM_ERROR_MEMORY;
    }
    sgm_tensor *average =
        change->old_average.kind == SGM_KIND_TENSOR ? sgm_tensor_retain(change->old_average.as.tensor) : NULL;
    const char *before = journal->changed_by;
    journal->changed_by = who;
    journal->setting_average = average;
    record->undoing = number;
    sgm_status status = sgm_registry_resolve_set(sgm__registry_of(trainer), identifier, old, NULL, NULL);
    record->undoing = 0;
    journal->setting_average = NULL;
    journal->changed_by = before;
    if (status == SGM_OK && average != NULL) /* setting a parameter begins its average anew */
        status = sgm__trainer_put_average(trainer, identifier, average);
    sgm_tensor_free(average);
    sgm_content_clear(&old);
    sgm__free(identifier);
    return status;
}

/* The change that "undo" without a number means. Only changes of persons keep what is needed to undo them. */
static const sgm__noted_change *newest_of_person(const sgm__change_record *record)
{
    for (size_t i = record->count; i-- > 0;) {
        const sgm__noted_change *change = &record->items[i];
        if (!change->undone && change->undoes == 0 && sgm__change_can_be_undone(change))
            return change;
    }
    return NULL;
}

bool sgm__changes_can_undo(sgm_trainer *trainer)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    pthread_mutex_lock(&record->lock);
    const sgm__noted_change *change = newest_of_person(record);
    bool can = change != NULL && sgm__change_obstacle(record, change) == NULL;
    pthread_mutex_unlock(&record->lock);
    return can;
}

/* The next change of a command that is being taken back; NULL: all are. */
static const sgm__noted_change *next_of_group(const sgm__change_record *record, int64_t group)
{
    const sgm__noted_change *change = newest_of_person(record);
    return change != NULL && change->group == group ? change : NULL;
}

/* Whether a change of that command is still to be taken back. */
static bool is_of_group(const sgm__noted_change *change, int64_t group)
{
    return change->group == group && !change->undone && change->undoes == 0 &&
           sgm__change_can_be_undone(change);
}

/* Looks at all changes of a command before the first is taken back, so that all of them go or none. */
static sgm_status check_group(const sgm_trainer *trainer, int64_t group)
{
    const sgm__change_record *record = sgm__journal_of(trainer)->changes;
    for (size_t i = record->count; i-- > 0;) {
        const sgm__noted_change *change = &record->items[i];
        if (!is_of_group(change, group))
            continue;
        SGM_TRY(check_undoable(trainer, change));
        SGM_TRY(check_value(trainer, change));
    }
    return SGM_OK;
}

/* Copies a text, or NULL; false: out of memory. */
static bool copy_text(const char *text, char **copy)
{
    *copy = text != NULL ? sgm__strdup(text) : NULL;
    return text == NULL || *copy != NULL;
}

/* Copies into *hook what taking back a hook's change means. The caller attaches or detaches without the
 * trainer's lock. */
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

/* The change of that number, or for number 0 the newest of a person. */
static sgm_status find_to_undo(const sgm_trainer *trainer, int64_t number, const sgm__noted_change **change)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    *change = number > 0 ? sgm__change_find(record, number) : newest_of_person(record);
    if (*change != NULL)
        return SGM_OK;
    return number > 0
               ? no_number(trainer, number)
               : sgm_fail(SGM_ERROR_STATE, "there is no change of a person to take back in trainer '%s'",
                          sgm_trainer_name(trainer));
}

sgm_status sgm__changes_would_undo(sgm_trainer *trainer, int64_t number, json_t *list, int64_t *first,
                                   sgm__hook_undo *hook)
{
    *hook = (sgm__hook_undo){0};
    const sgm__change_record *record = sgm__journal_of(trainer)->changes;
    const sgm__noted_change *change;
    SGM_TRY(find_to_undo(trainer, number, &change));
    *first = change->number;
    SGM_TRY(check_undoable(trainer, change));
    SGM_TRY(check_value(trainer, change));
    int64_t group = number > 0 || change->old.kind == SGM_KIND_NOTHING ? 0 : change->group;
    if (change->old.kind == SGM_KIND_NOTHING)
        SGM_TRY(look_up_hook(trainer, change, hook));
    if (group > 0)
        SGM_TRY(check_group(trainer, group));
    json_array_append_new(list, sgm__change_json(trainer, change));
    for (size_t i = record->count; i-- > 0 && group > 0;) {
        const sgm__noted_change *at = &record->items[i];
        if (at != change && is_of_group(at, group))
            json_array_append_new(list, sgm__change_json(trainer, at));
    }
    return SGM_OK;
}

/* With a number only that change is taken back; without one, all changes of the newest command. */
sgm_status sgm__changes_undo(sgm_trainer *trainer, int64_t number, const char *who, int64_t *first,
                             sgm__hook_undo *hook)
{
    *hook = (sgm__hook_undo){0};
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    const sgm__noted_change *change;
    SGM_TRY(find_to_undo(trainer, number, &change));
    int64_t group = number > 0 ? 0 : change->group;
    *first = change->number;
    if (change->old.kind == SGM_KIND_NOTHING && sgm__change_can_be_undone(change))
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
