/* The record of changes after a resume: made anew from the journal, whose lines have both values of each
 * change, say which take another one back, and which were made by one command. */
#include "journal/change_record_internal.h"
#include "journal/changes.h"
#include "registry/registry_internal.h"
#include "text/json_text.h"
#include "trainer/trainer.h"

/* The value of an entry as the kind that the entry has; it stays empty where the journal does not have it: of
 * tensors, and of entries that are not there any more. */
static void read_content(const sgm_trainer *trainer, const char *identifier, const json_t *value,
                         sgm_content *content)
{
    sgm_content now = {0};
    char *text = json_is_string(value) ? sgm__strdup(json_string_value(value)) : sgm__json_text(value);
    bool plain = sgm_registry_resolve_one(sgm__registry_of(trainer), identifier, &now) == SGM_OK &&
                 now.kind >= SGM_KIND_BOOLEAN && now.kind <= SGM_KIND_TEXT;
    if (!plain || text == NULL || sgm_content_parse(text, now.kind, content) != SGM_OK) {
        *content = (sgm_content){0};
        sgm_clear_error();
    }
    sgm_content_clear(&now);
    sgm__free(text);
}

/* Only what persons did can be taken back. */
static sgm_status keep(const sgm_trainer *trainer, const sgm__journal_entry *entry, sgm__noted_change *change)
{
    if (!sgm__is_person(entry->who))
        return SGM_OK;
    if (entry->kind == SGM__ENTRY_VALUE) {
        read_content(trainer, entry->identifier, change->before, &change->old);
        read_content(trainer, entry->identifier, change->after, &change->new);
    } else if (entry->kind == SGM__ENTRY_ATTACH) {
        change->attached = sgm__strdup(entry->text);
        return change->attached != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    } else if (entry->kind == SGM__ENTRY_DETACH) {
        change->detached = sgm__strdup(entry->text);
        return change->detached != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    }
    return SGM_OK;
}

static json_t *read_json(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value != NULL ? value : json_null();
}

static sgm_status recall(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    const sgm__change_record *record = sgm__journal_of(trainer)->changes;
    sgm__noted_change change = {.when = entry->when,
                                .epoch = entry->epoch,
                                .iteration = entry->iteration,
                                .branch = entry->branch,
                                .undoes = entry->undoes ? sgm__change_holding(record, entry->identifier) : 0,
                                .identifier = sgm__strdup(entry->identifier),
                                .who = sgm__strdup(entry->who),
                                .reason = entry->reason[0] != '\0' ? sgm__strdup(entry->reason) : NULL,
                                .before = read_json(entry->old),
                                .after = entry->kind == SGM__ENTRY_PRESS ? json_string("pressed")
                                                                         : read_json(entry->new),
                                .written = true};
    sgm_status status = keep(trainer, entry, &change);
    sgm_status appended = sgm__change_append(trainer, &change);
    return status != SGM_OK ? status : appended;
}

sgm_status sgm__changes_recall(sgm_trainer *trainer, const sgm__journal_entries *held)
{
    sgm__change_record *record = sgm__journal_of(trainer)->changes;
    sgm_status status = SGM_OK;
    if (record->made > 0)
        return SGM_OK;
    for (size_t i = 0; i < held->count && status == SGM_OK; i++) {
        const sgm__journal_entry *entry = &held->items[i];
        bool is_joined = i + 1 < held->count && held->items[i + 1].joins;
        if (!sgm__entry_is_change(entry->kind))
            continue;
        if (!entry->joins)
            record->group = is_joined ? -1 : 0; /* the first of a command gives its number to the group */
        status = recall(trainer, entry);
    }
    record->group = 0;
    return status;
}
