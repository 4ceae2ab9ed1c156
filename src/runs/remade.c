/* What a resumed run makes again: reading changes.jsonl, and carrying out what is due.
 *
 * Changes that were made before the checkpoint come back with it. Those that a person or the program made
 * after it are planned (src/journal/planned.h) and made again at the same epochs and iterations, so that a
 * run that was killed goes on as it would have. The training's thread calls this between two iterations
 * (src/loop/trainer_run.c). */
#include "runs/remade.h"
#include "journal/changes.h"
#include "journal/planned.h"
#include "journal/run_lines.h"
#include "runs/trainer_commands.h"
#include "show/tensor_file.h"
#include "text/json_text.h"
#include "trainer/trainer.h"

#define LARGEST_CHANGES ((size_t)1 << 30) /* bytes of a file that is read in full */

/* --- reading a line --- */

static const char *text_of(const json_t *line, const char *key)
{
    return json_string_value(json_object_get(line, key));
}

static int64_t number_of(const json_t *line, const char *key)
{
    return json_integer_value(json_object_get(line, key));
}

/* Whether the entry is a boolean, a number or a text, which can be set from a text. */
static bool is_value(const sgm_trainer *trainer, const char *identifier)
{
    sgm_content content = {0};
    bool plain = sgm_registry_resolve_one(sgm__registry_of(trainer), identifier, &content) == SGM_OK &&
                 content.kind >= SGM_KIND_BOOLEAN && content.kind <= SGM_KIND_TEXT;
    sgm_content_clear(&content);
    return plain;
}

/* A value as the text that sets it: a text is kept as it is, anything else is its JSON, which reads back as
 * the same value. sgm__free; NULL: out of memory. */
static char *value_text(const json_t *value)
{
    return json_is_string(value) ? sgm__strdup(json_string_value(value)) : sgm__json_text(value);
}

/* The text of a hook that came or went; NULL: its line has its name alone, as a program made it. */
static const char *hook_text(const json_t *line, const char *key)
{
    const char *text = text_of(line, key), *name = text_of(line, "what") + strlen(SGM__HOOK_CHANGE);
    return text == NULL || strcmp(text, SGM__NO_HOOK) == 0 || strcmp(text, name) == 0 ? NULL : text;
}

/* What a line plans; false: it cannot be made again. `text` is for sgm__free. */
static bool plan_of(const sgm_trainer *trainer, const json_t *line, sgm__planned *planned, char **text)
{
    const json_t *value = json_object_get(line, "new");
    const char *what = text_of(line, "what");
    *text = NULL;
    if (strncmp(what, SGM__HOOK_CHANGE, strlen(SGM__HOOK_CHANGE)) == 0) {
        const char *attached = hook_text(line, "new"), *detached = hook_text(line, "old");
        planned->kind = attached != NULL ? SGM__PLANNED_ATTACH : SGM__PLANNED_DETACH;
        *text = attached != NULL ? sgm__strdup(attached) : detached != NULL ? sgm__strdup(detached) : NULL;
    } else if (json_is_object(value)) {
        planned->kind = SGM__PLANNED_TENSOR;
        *text = sgm__run_folder_tensor_path(sgm__journal_of(trainer)->folder, text_of(value, "file"));
    } else if (is_value(trainer, what)) {
        planned->kind = SGM__PLANNED_VALUE;
        *text = value_text(value);
    }
    planned->text = *text;
    return *text != NULL;
}

/* A value or tensor that is set anew replaces what is planned for it at the same position. */
static sgm_status plan(sgm_trainer *trainer, const sgm__planned *planned)
{
    if (planned->kind == SGM__PLANNED_VALUE || planned->kind == SGM__PLANNED_TENSOR)
        sgm__plan_supersede(trainer, planned->identifier, planned->epoch, planned->iteration);
    return sgm__plan_add(trainer, planned);
}

/* Whether a line is of this branch and not older than the checkpoint. A line without a position is no line of
 * a change. */
static bool is_newer_or_equal(const sgm_trainer *trainer, const json_t *line)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    int64_t iteration = number_of(line, "iteration");
    return text_of(line, "what") != NULL && text_of(line, "who") != NULL &&
           json_object_get(line, "new") != NULL && json_is_integer(json_object_get(line, "iteration")) &&
           number_of(line, "branch") == sgm__journal_of(trainer)->branch &&
           (iteration > position->iteration ||
            (iteration == position->iteration && number_of(line, "epoch") >= position->epoch));
}

/* Decides what becomes of a line. Lines that are older, or of other branches, stay. A request (by a person or
 * the program) is planned, and stays, too: making it again writes no line. Lines of hooks that are newer than
 * the checkpoint go, as the hooks will write them again; so do requests that cannot be made again, with a
 * warning. *stays: whether the line stays in the file. */
static sgm_status read_line(sgm_trainer *trainer, const json_t *line, bool *stays)
{
    char *text;
    if (!is_newer_or_equal(trainer, line))
        return SGM_OK;
    const char *what = text_of(line, "what"), *who = text_of(line, "who");
    bool newer = number_of(line, "iteration") > sgm__position_of(trainer)->iteration;
    sgm__planned planned = {.identifier = (char *)(uintptr_t)what,
                            .who = (char *)(uintptr_t)who,
                            .epoch = number_of(line, "epoch"),
                            .iteration = number_of(line, "iteration")};
    if (sgm__is_request(who) && plan_of(trainer, line, &planned, &text)) {
        sgm_status status = plan(trainer, &planned);
        sgm__free(text);
        return status;
    }
    *stays = !newer;
    if (sgm__is_request(who) && newer)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer),
                 "%s was changed by %s at iteration %lld, after the checkpoint: that is lost, make it again",
                 what, who, (long long)planned.iteration);
    return SGM_OK;
}

/* --- reading the file --- */

/* Reads all lines, and moves those that stay to the beginning of `text`; *kept becomes their length. */
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

/* The file is written anew only if a line has gone. */
static sgm_status read_file(sgm_trainer *trainer, const char *path)
{
    char *text;
    size_t length, kept = 0;
    if (!sgm__file_exists(path))
        return SGM_OK;
    SGM_TRY(sgm__file_read(path, LARGEST_CHANGES, &text, &length));
    sgm_status status = read_lines(trainer, text, length, &kept);
    if (status == SGM_OK && kept < length)
        status = sgm__file_write_atomic(path, text, kept);
    sgm__free(text);
    return status;
}

/* "optimiser.learning_rate was set to 0.1", "hook early_stopper#1 was detached"; sgm__free. */
static char *told(const sgm__planned *planned)
{
    switch (planned->kind) {
    case SGM__PLANNED_VALUE:
        return sgm__format("%s was set to %s", planned->identifier, planned->text);
    case SGM__PLANNED_TENSOR:
        return sgm__format("%s was set", planned->identifier);
    case SGM__PLANNED_ATTACH:
        return sgm__format("%s was attached", planned->identifier);
    case SGM__PLANNED_DETACH:
        return sgm__format("%s was detached", planned->identifier);
    }
    return NULL;
}

sgm_status sgm__remade_read(sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    char *path = sgm__format("%s/" SGM__CHANGES_FILE, journal->folder);
    sgm__plan_forget(trainer);
    sgm_status status = path != NULL ? read_file(trainer, path) : SGM_ERROR_MEMORY;
    sgm__free(path);
    for (size_t i = 0; i < journal->planned_count; i++) {
        const sgm__planned *planned = &journal->planned[i];
        if (planned->iteration <= sgm__position_of(trainer)->iteration)
            continue;
        char *what = told(planned);
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "%s by %s after the checkpoint: that is made again at iteration %lld",
                 what != NULL ? what : planned->identifier, planned->who, (long long)planned->iteration);
        sgm__free(what);
    }
    return status;
}

/* --- making what is due --- */

static sgm_status set_tensor(sgm_trainer *trainer, const sgm__planned *planned)
{
    sgm_content now = {0};
    sgm_tensor *made = NULL;
    SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(trainer), planned->identifier, &now));
    sgm_status status = now.kind == SGM_KIND_TENSOR
                            ? sgm__tensor_load(planned->text, now.as.tensor, &made)
                            : sgm_fail(SGM_ERROR_TYPE, "%s is no tensor", planned->identifier);
    if (status == SGM_OK)
        status = sgm_registry_resolve_set(sgm__registry_of(trainer), planned->identifier,
                                          sgm_tensor_content(made), NULL, NULL);
    sgm_tensor_free(made);
    sgm_content_clear(&now);
    return status;
}

/* A hook that the checkpoint brought, or that the program has attached again by itself, is there already. */
static sgm_status attach(sgm_trainer *trainer, const sgm__planned *planned)
{
    sgm_hook *hook = sgm_hook_parse(planned->text);
    sgm_status status = hook != NULL ? sgm__trainer_attach_again(trainer, hook) : sgm__last_failure();
    sgm_hook_free(hook);
    return status;
}

static sgm_status make(sgm_trainer *trainer, const sgm__planned *planned)
{
    switch (planned->kind) {
    case SGM__PLANNED_VALUE:
        return sgm__settings_set(trainer, planned->identifier, planned->text);
    case SGM__PLANNED_TENSOR:
        return set_tensor(trainer, planned);
    case SGM__PLANNED_ATTACH:
        return attach(trainer, planned);
    case SGM__PLANNED_DETACH:
        return sgm__trainer_detach_again(trainer, planned->text);
    }
    return SGM_OK;
}

/* `restoring` keeps the record and the file from noting the change: the file has its line already. */
void sgm__remade_make(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const sgm__planned *due;
    while ((due = sgm__plan_due(trainer)) != NULL) {
        bool restoring = journal->restoring;
        journal->restoring = true;
        if (make(trainer, due) != SGM_OK) {
            char *message = sgm__strdup(sgm_last_error()), *what = told(due);
            sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "%s by %s, which cannot be made again: %s",
                     what != NULL ? what : due->identifier, due->who, message != NULL ? message : "");
            sgm__free(message);
            sgm__free(what);
        }
        journal->restoring = restoring;
        sgm__plan_remove_first(trainer);
    }
}
