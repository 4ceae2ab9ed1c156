/* Values that were changed while a trainer ran, and are not what the program set: identifier, first value,
 * newest value, as texts.
 *
 * A checkpoint keeps the list. A program that resumes sets up its trainer as the first one did, with the
 * first values; restoring then makes the changes again. If the program sets another value by now, its
 * value counts, and the log says so. src/show/trainer_states.c notes each change of a value here, state.c
 * of src/runs writes and restores the list, src/runs/trainer_copy.c copies it to a branch. Tensors are not
 * in the list: checkpoints have them. Everything here happens with the trainer's lock. */
#include "base/base.h"
#include "journal/changes.h"
#include "trainer/trainer.h"

/* One changed value; both texts are as a person would type them. */
typedef struct sgm__changed_setting {
    char *identifier;
    char *first; /* the value that the program had set */
    char *now;   /* the newest value */
} sgm__changed_setting;

static void free_setting(sgm__changed_setting *setting)
{
    sgm__free(setting->identifier);
    sgm__free(setting->first);
    sgm__free(setting->now);
}

/* The last entry takes the place of the removed one: the order of the list does not matter. */
static void remove_setting(sgm_trainer *trainer, size_t index)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    free_setting(&journal->changed[index]);
    journal->changed[index] = journal->changed[--journal->changed_count];
}

/* The place of an entry in the list; the count: it is not in there. */
static size_t find_setting(const sgm_trainer *trainer, const char *identifier)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    size_t i = 0;
    while (i < journal->changed_count && strcmp(journal->changed[i].identifier, identifier) != 0)
        i++;
    return i;
}

static sgm_status add_setting(sgm_trainer *trainer, const char *identifier, const char *first,
                              const char *now)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    SGM_TRY(sgm__reserve(&journal->changed, &journal->changed_capacity, journal->changed_count + 1,
                         sizeof(sgm__changed_setting)));
    sgm__changed_setting made = {sgm__strdup(identifier), sgm__strdup(first), sgm__strdup(now)};
    if (made.identifier == NULL || made.first == NULL || made.now == NULL) {
        free_setting(&made);
        return SGM_ERROR_MEMORY;
    }
    journal->changed[journal->changed_count++] = made;
    return SGM_OK;
}

/* A value that is set to its first value again leaves the list. */
sgm_status sgm__settings_note(sgm_trainer *trainer, const char *identifier, const char *before,
                              const char *after)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    size_t i = find_setting(trainer, identifier);
    if (i == journal->changed_count)
        return add_setting(trainer, identifier, before, after);
    if (strcmp(journal->changed[i].first, after) == 0) {
        remove_setting(trainer, i);
        return SGM_OK;
    }
    char *now = sgm__strdup(after);
    if (now == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(journal->changed[i].now);
    journal->changed[i].now = now;
    return SGM_OK;
}

void sgm__settings_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->changed_count > 0)
        remove_setting(trainer, journal->changed_count - 1);
    sgm__free(journal->changed);
    journal->changed = NULL;
    journal->changed_capacity = 0;
}

/* Sets the value in `to` as well: an argument of a layer, for example, is in no options that could be
 * copied. `restoring` keeps the record of changes of `to` from noting it. Setting also makes an entry in
 * the list, which is replaced by one with the first value of `from`. */
static sgm_status copy_setting(sgm_trainer *to, const sgm__changed_setting *setting)
{
    sgm__trainer_journal *journal = sgm__journal_of(to);
    bool restoring = journal->restoring;
    journal->restoring = true;
    sgm_status status = sgm__settings_set(to, setting->identifier, setting->now);
    journal->restoring = restoring;
    SGM_TRY(status);
    size_t i = find_setting(to, setting->identifier);
    if (i < journal->changed_count)
        remove_setting(to, i);
    return add_setting(to, setting->identifier, setting->first, setting->now);
}

/* A value that cannot be set is logged, and is no reason to fail. */
sgm_status sgm__settings_copy(const sgm_trainer *from, sgm_trainer *to)
{
    const sgm__trainer_journal *journal = sgm__journal_of(from);
    for (size_t i = 0; i < journal->changed_count; i++)
        if (copy_setting(to, &journal->changed[i]) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(to), "%s is not as in '%s': %s",
                     journal->changed[i].identifier, sgm_trainer_name(from), sgm_last_error());
    return SGM_OK;
}

/* --- setting by text --- */

/* Reads a text as the kind that the entry has; `current` gets the present value. The caller clears both. */
static sgm_status read_as_entry(const sgm_trainer *trainer, const char *identifier, const char *text,
                                sgm_content *current, sgm_content *read)
{
    SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(trainer), identifier, current));
    return sgm_content_parse(text, current->kind, read);
}

sgm_status sgm__settings_set(sgm_trainer *trainer, const char *identifier, const char *text)
{
    sgm_content current = {0}, wanted = {0};
    sgm_status status = read_as_entry(trainer, identifier, text, &current, &wanted);
    if (status == SGM_OK)
        status = sgm_registry_resolve_set(sgm__registry_of(trainer), identifier, wanted, NULL, NULL);
    sgm_content_clear(&current);
    sgm_content_clear(&wanted);
    return status;
}

bool sgm__settings_is_now(const sgm_trainer *trainer, const char *identifier, const char *text)
{
    sgm_content current = {0}, wanted = {0};
    bool equal = read_as_entry(trainer, identifier, text, &current, &wanted) == SGM_OK &&
                 sgm_content_equal(&current, &wanted);
    sgm_content_clear(&current);
    sgm_content_clear(&wanted);
    return equal;
}

/* --- checkpoints --- */

json_t *sgm__settings_describe(const sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    json_t *settings = json_object(); /* sgm__state_add writes the keys in order */
    for (size_t i = 0; i < journal->changed_count; i++) {
        const sgm__changed_setting *own = &journal->changed[i];
        json_object_set_new(settings, own->identifier, json_pack("[s, s]", own->first, own->now));
    }
    return settings;
}

/* Sets a value back to the one that the program had set. */
static void put_back(sgm_trainer *trainer, const char *identifier, const char *first)
{
    if (sgm__settings_set(trainer, identifier, first) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s cannot be set back to %s: %s", identifier,
                 first, sgm_last_error());
}

/* Sets back all values of this trainer's list that the checkpoint does not list. Texts are copied first,
 * as setting the value removes its entry (sgm__settings_note). */
static void revert_but(sgm_trainer *trainer, const json_t *kept)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = journal->changed_count; i-- > 0;) {
        char *identifier = sgm__strdup(journal->changed[i].identifier),
             *first = sgm__strdup(journal->changed[i].first);
        if (identifier != NULL && first != NULL && json_object_get(kept, identifier) == NULL) {
            put_back(trainer, identifier, first);
            size_t left = find_setting(trainer, identifier);
            if (left < journal->changed_count)
                remove_setting(trainer, left);
        }
        sgm__free(identifier);
        sgm__free(first);
    }
}

/* Makes a change of the checkpoint again. If this trainer has not changed the value, and it is not what
 * the program had set at first, the program sets it otherwise by now: that stays. */
static void restore_setting(sgm_trainer *trainer, const char *identifier, const char *first, const char *now)
{
    size_t own = find_setting(trainer, identifier);
    bool was_changed = own < sgm__journal_of(trainer)->changed_count;
    if (sgm__settings_is_now(trainer, identifier, now))
        return;
    if (!was_changed && !sgm__settings_is_now(trainer, identifier, first)) {
        if (sgm__trainer_can_train(trainer))
            sgm__log(
                SGM_LOG_WARNING, sgm_trainer_name(trainer),
                "%s was changed from %s to %s before the checkpoint, but is set otherwise now: that stays",
                identifier, first, now);
        return;
    }
    if (sgm__settings_set(trainer, identifier, now) != SGM_OK && sgm__trainer_can_train(trainer))
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "%s was changed to %.60s, which cannot be set again: %s", identifier, now, sgm_last_error());
}

/* `restoring` keeps the record of changes from noting what happens here. */
void sgm__settings_restore(sgm_trainer *trainer, const json_t *settings)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *identifier;
    json_t *setting, *all = (json_t *)(uintptr_t)settings; /* the macro changes nothing */
    bool restoring = journal->restoring;
    journal->restoring = true;
    revert_but(trainer, settings);
    json_object_foreach(all, identifier, setting)
    {
        const char *first = json_string_value(json_array_get(setting, 0)),
                   *now = json_string_value(json_array_get(setting, 1));
        if (first != NULL && now != NULL)
            restore_setting(trainer, identifier, first, now);
    }
    journal->restoring = restoring;
}
