/* Values that rules have set for a time, and that go back by themselves.
 *
 * Each value has one place in the list, whoever sets it: so times that overlap cannot leave a value behind
 * that nobody wanted. The end of the time is a position of the training, not a count: a checkpoint goes on
 * from there exactly, and a replay does the same at the same place. Values are kept as texts, as in
 * settings.c, which writes each number so that it reads back to the bit. */
#include "journal/temporary.h"
#include "journal/changes.h"
#include "registry/registry_internal.h"
#include "trainer/trainer.h"

typedef struct sgm__temporary {
    char *identifier;
    char *before; /* what it goes back to */
    char *set;    /* what was set */
    char *reason; /* the rule's text; NULL: it has none */
    sgm_time_scale scale;
    int64_t last; /* the epoch, or the iteration, at whose end it goes back */
} sgm__temporary;

/* Rules make changes under this name, and so it is with what goes back. */
static const char rule_name[] = "rule";

static void free_one(sgm__temporary *one)
{
    sgm__free(one->identifier);
    sgm__free(one->before);
    sgm__free(one->set);
    sgm__free(one->reason);
}

/* The order of the list is that in which values were set, as they go back in this order. */
static void remove_at(sgm_trainer *trainer, size_t index)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    free_one(&journal->temporary[index]);
    journal->temporary_count--;
    memmove(&journal->temporary[index], &journal->temporary[index + 1],
            (journal->temporary_count - index) * sizeof *journal->temporary);
}

static sgm__temporary *find(const sgm_trainer *trainer, const char *identifier)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = 0; i < journal->temporary_count; i++)
        if (strcmp(journal->temporary[i].identifier, identifier) == 0)
            return &journal->temporary[i];
    return NULL;
}

void sgm__temporary_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = 0; i < journal->temporary_count; i++)
        free_one(&journal->temporary[i]);
    sgm__free(journal->temporary);
    journal->temporary = NULL;
    journal->temporary_count = journal->temporary_capacity = 0;
}

/* Takes the texts over, also on failure. */
static sgm_status add(sgm_trainer *trainer, sgm__temporary made)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    sgm_status status =
        made.identifier != NULL && made.before != NULL && made.set != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__reserve(&journal->temporary, &journal->temporary_capacity, journal->temporary_count + 1,
                              sizeof made);
    if (status == SGM_OK)
        journal->temporary[journal->temporary_count++] = made;
    else
        free_one(&made);
    return status;
}

/* The present value as a text; sgm__free. NULL: the entry is not there, or memory is short. */
static char *text_now(const sgm_trainer *trainer, const char *identifier)
{
    sgm_content content = {0};
    if (sgm_registry_resolve_one(sgm__registry_of(trainer), identifier, &content) != SGM_OK)
        return NULL;
    char *text = sgm__content_text(&content);
    sgm_content_clear(&content);
    return text;
}

/* --- setting --- */

/* The text that the value goes back to; sgm__free. Of a value that is in force it is the old one. */
static char *text_before(const sgm_trainer *trainer, const char *identifier)
{
    const sgm__temporary *known = find(trainer, identifier);
    return known != NULL && sgm__settings_is_now(trainer, identifier, known->set)
               ? sgm__strdup(known->before)
               : text_now(trainer, identifier);
}

sgm_status sgm__temporary_set(sgm_trainer *trainer, const char *identifier, sgm_content content,
                              sgm__command_period period)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    int64_t now = period.scale == SGM_EPOCH ? position->epoch : position->iteration;
    char *before = text_before(trainer, identifier);
    sgm_status status =
        before != NULL ? sgm_registry_resolve_set(sgm__registry_of(trainer), identifier, content, NULL, NULL)
                       : sgm__last_failure();
    if (status != SGM_OK) {
        sgm__free(before);
        return status;
    }
    sgm__temporary *known = find(trainer, identifier);
    if (known != NULL)
        remove_at(trainer, (size_t)(known - sgm__journal_of(trainer)->temporary));
    return add(trainer, (sgm__temporary){.identifier = sgm__strdup(identifier),
                                         .before = before,
                                         .set = text_now(trainer, identifier),
                                         .reason = sgm__strdup(sgm__journal_of(trainer)->reason),
                                         .scale = period.scale,
                                         .last = now + period.count});
}

sgm_status sgm__temporary_base(sgm_trainer *trainer, const char *identifier, sgm_content *content)
{
    const sgm__temporary *known = trainer != NULL ? find(trainer, identifier) : NULL;
    sgm_content base = {0};
    if (known == NULL || !sgm__settings_is_now(trainer, identifier, known->set))
        return SGM_OK;
    SGM_TRY(sgm_content_parse(known->before, content->kind, &base));
    sgm_content_clear(content);
    *content = base;
    return SGM_OK;
}

/* --- going back --- */

static void go_back(sgm_trainer *trainer, const sgm__temporary *one)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *changed_by = journal->changed_by, *reason = journal->reason;
    if (!sgm__settings_is_now(trainer, one->identifier, one->set)) {
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "%s does not go back to %s: it was changed since a rule has set it to %s", one->identifier,
                 one->before, one->set);
        return;
    }
    journal->changed_by = rule_name;
    journal->reason = one->reason;
    if (sgm__settings_set(trainer, one->identifier, one->before) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s cannot go back to %s: %s", one->identifier,
                 one->before, sgm_last_error());
    journal->changed_by = changed_by;
    journal->reason = reason;
}

void sgm__temporary_end(sgm_trainer *trainer, sgm_time_scale scale)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    int64_t now = scale == SGM_EPOCH ? position->epoch : position->iteration;
    for (size_t i = 0; i < journal->temporary_count;) {
        if (journal->temporary[i].scale != scale || journal->temporary[i].last > now) {
            i++;
            continue;
        }
        go_back(trainer, &journal->temporary[i]);
        remove_at(trainer, i);
    }
}

void sgm__temporary_end_all(sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->temporary_count > 0) {
        go_back(trainer, &journal->temporary[0]);
        remove_at(trainer, 0);
    }
}

/* --- checkpoints --- */

json_t *sgm__temporary_describe(const sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->temporary_count == 0)
        return NULL;
    json_t *list = json_array();
    for (size_t i = 0; i < journal->temporary_count; i++) {
        const sgm__temporary *one = &journal->temporary[i];
        json_array_append_new(list,
                              json_pack("[s, s, s, s, I, s?]", one->identifier, one->before, one->set,
                                        sgm_time_scale_name(one->scale), (json_int_t)one->last, one->reason));
    }
    return list;
}

/* Reads a row; the texts stay the JSON's, and the last of them, the reason, may be NULL. */
static bool read_row(json_t *row, const char *texts[4], sgm_time_scale *scale, int64_t *last)
{
    const char *scale_text;
    json_int_t position;
    if (json_unpack(row, "[s, s, s, s, I]", &texts[0], &texts[1], &texts[2], &scale_text, &position) != 0 ||
        sgm_time_scale_parse(scale_text, scale) != SGM_OK)
        return false;
    texts[3] = json_string_value(json_array_get(row, 5));
    *last = (int64_t)position;
    return *scale <= SGM_EPOCH && *last >= 0;
}

bool sgm__temporary_is_readable(const json_t *list)
{
    const char *texts[4];
    sgm_time_scale scale;
    int64_t last;
    bool good = list == NULL || json_is_array(list);
    for (size_t i = 0; good && i < json_array_size(list); i++)
        good = read_row(json_array_get(list, i), texts, &scale, &last);
    return good;
}

sgm_status sgm__temporary_restore(sgm_trainer *trainer, const json_t *list)
{
    sgm__temporary_forget(trainer);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *texts[4];
        sgm__temporary read = {0};
        if (!read_row(json_array_get(list, i), texts, &read.scale, &read.last))
            continue; /* not of a list that was found readable */
        read.identifier = sgm__strdup(texts[0]);
        read.before = sgm__strdup(texts[1]);
        read.set = sgm__strdup(texts[2]);
        read.reason = sgm__strdup(texts[3]);
        SGM_TRY(add(trainer, read));
    }
    return SGM_OK;
}
