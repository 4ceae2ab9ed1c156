/* changes.jsonl: who changed what while a trainer ran, and what a resumed run makes of it. */

#include "journal/changes.h"
#include "base/base.h"
#include "journal/change_record.h"
#include "journal/run_lines.h"
#include "trainer/trainer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LARGEST_CHANGES ((size_t)1 << 30)

/* --- changes that are newer than the checkpoint of a resume --- */

struct sgm__remade {
    char *identifier, *text, *who;
    int64_t iteration;
};

static void remove_at(sgm_trainer *trainer, size_t index)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    struct sgm__remade *old = &journal->remade[index];
    sgm__free(old->identifier);
    sgm__free(old->text);
    sgm__free(old->who);
    journal->remade_count--;
    memmove(old, old + 1, (journal->remade_count - index) * sizeof *old);
}

void sgm__changes_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->remade_count > 0)
        remove_at(trainer, journal->remade_count - 1);
    sgm__free(journal->remade);
    journal->remade = NULL;
    journal->remade_capacity = 0;
}

void sgm__changes_supersede(sgm_trainer *trainer, const char *identifier, int64_t iteration)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = journal->remade_count; i-- > 0;)
        if (journal->remade[i].iteration >= iteration &&
            strcmp(journal->remade[i].identifier, identifier) == 0)
            remove_at(trainer, i);
}

static sgm_status add(sgm_trainer *trainer, const json_t *line, const json_t *value)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const char *what = json_string_value(json_object_get(line, "what"));
    char *text = json_is_string(value) ? NULL : sgm__change_value_text(value);
    struct sgm__remade made = {.identifier = sgm__strdup(what),
                               .text = sgm__strdup(text != NULL ? text : json_string_value(value)),
                               .who = sgm__strdup(json_string_value(json_object_get(line, "who"))),
                               .iteration = json_integer_value(json_object_get(line, "iteration"))};
    free(text);
    sgm_status status = sgm__reserve(&journal->remade, &journal->remade_capacity, journal->remade_count + 1,
                                     sizeof *journal->remade);
    if (status == SGM_OK && made.identifier != NULL && made.text != NULL && made.who != NULL) {
        journal->remade[journal->remade_count++] = made;
        return SGM_OK;
    }
    sgm__free(made.identifier);
    sgm__free(made.text);
    sgm__free(made.who);
    return status != SGM_OK ? status : SGM_ERROR_MEMORY;
}

/* Whether a value of this name can be set from a text. */
static bool is_value(const sgm_trainer *trainer, const char *identifier)
{
    sgm_content content = {0};
    bool plain = sgm_resolve_one(sgm__registry_of(trainer), identifier, &content) == SGM_OK &&
                 content.kind >= SGM_KIND_BOOLEAN && content.kind <= SGM_KIND_TEXT;
    sgm_content_clear(&content);
    return plain;
}

/* What a person or the program set is made again; what hooks set, they set again. *stays: in the file. */
static sgm_status read_line(sgm_trainer *trainer, const json_t *line, bool *stays)
{
    sgm__training_position *position = sgm__position_of(trainer);
    const char *what = json_string_value(json_object_get(line, "what")),
               *who = json_string_value(json_object_get(line, "who"));
    const json_t *value = json_object_get(line, "new"), *iteration = json_object_get(line, "iteration");
    if (what == NULL || who == NULL || value == NULL || !json_is_integer(iteration) ||
        json_integer_value(json_object_get(line, "branch")) != sgm__journal_of(trainer)->branch ||
        json_integer_value(iteration) < position->iteration)
        return SGM_OK;
    bool newer = json_integer_value(iteration) > position->iteration;
    bool requested = sgm__is_request(who);
    if (requested && !json_is_object(value) && is_value(trainer, what)) {
        sgm__changes_supersede(trainer, what, json_integer_value(iteration));
        return add(trainer, line, value);
    }
    *stays = !newer;
    if (requested && newer)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "%s was changed by %s at iteration %lld, after the checkpoint: that is lost, make it again",
                 what, who, (long long)json_integer_value(iteration));
    return SGM_OK;
}

static sgm_status read_lines(sgm_trainer *trainer, char *text, size_t length, size_t *kept)
{
    sgm_status status = SGM_OK;
    for (size_t start = 0; start < length && status == SGM_OK;) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t size = end != NULL ? (size_t)(end - (text + start)) + 1 : length - start;
        json_t *line = json_loadb(text + start, size, 0, NULL);
        bool stays = true;
        status = read_line(trainer, line, &stays);
        json_decref(line);
        if (stays) {
            memmove(text + *kept, text + start, size);
            *kept += size;
        }
        start += size;
    }
    return status;
}

sgm_status sgm__changes_read(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char *text, *path = sgm__format("%s/" SGM__CHANGES_FILE, journal->folder);
    size_t length, kept = 0;
    sgm__changes_forget(trainer);
    if (path == NULL)
        return SGM_ERROR_MEMORY;
    if (!sgm__file_exists(path)) {
        sgm__free(path);
        return SGM_OK;
    }
    sgm_status status = sgm__file_read(path, LARGEST_CHANGES, &text, &length);
    if (status == SGM_OK) {
        status = read_lines(trainer, text, length, &kept);
        if (status == SGM_OK && kept < length)
            status = sgm__file_write_atomic(path, text, kept);
        sgm__free(text);
    }
    sgm__free(path);
    for (size_t i = 0; i < journal->remade_count; i++)
        if (journal->remade[i].iteration > sgm__position_of(trainer)->iteration)
            sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                     "%s was set to %s by %s after the checkpoint: that is made again at iteration %lld",
                     journal->remade[i].identifier, journal->remade[i].text, journal->remade[i].who,
                     (long long)journal->remade[i].iteration);
    return status;
}

/* The file has the line already. */
void sgm__changes_remake(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->remade_count > 0 &&
           journal->remade[0].iteration <= sgm__position_of(trainer)->iteration) {
        const struct sgm__remade *next = &journal->remade[0];
        bool restoring = journal->restoring;
        journal->restoring = true;
        if (sgm__settings_set(trainer, next->identifier, next->text) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s cannot be set to %s again: %s",
                     next->identifier, next->text, sgm_last_error());
        journal->restoring = restoring;
        remove_at(trainer, 0);
    }
}

/* --- the time --- */

/* Checkpoints have no time, for equal trainings have equal ones: the epochs' lines do. */
double sgm__run_folder_seconds(const sgm_trainer *trainer, const char *folder)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    char *text = NULL, *path = sgm__format("%s/" SGM__METRICS_FILE, folder);
    size_t length = 0;
    double own = -1, other = 0;
    if (path == NULL || !sgm__file_exists(path) ||
        sgm__file_read(path, LARGEST_CHANGES, &text, &length) != SGM_OK)
        length = 0;
    for (size_t start = 0; start < length && position->epoch > 0;) {
        const char *end = memchr(text + start, '\n', length - start);
        size_t size = end != NULL ? (size_t)(end - (text + start)) + 1 : length - start;
        json_t *line = json_loadb(text + start, size, 0, NULL);
        double seconds = json_number_value(json_object_get(line, "seconds"));
        if (json_is_object(line) && json_integer_value(json_object_get(line, "epoch")) <= position->epoch &&
            seconds > 0) {
            if (json_integer_value(json_object_get(line, "branch")) == sgm__journal_of(trainer)->branch)
                own = seconds;
            else
                other = seconds;
        }
        json_decref(line);
        start += size;
    }
    sgm__free(text);
    sgm__free(path);
    return own >= 0 ? own : other;
}
