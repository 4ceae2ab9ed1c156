/* Hooks that come and go while a trainer runs, and what checkpoints keep of them. */
#include "training/trainer_hooks.h"
#include "training/change_record.h"
#include "training/trainer.h"

#include "training/hooks_ready/hook_text.h"
#include <stdio.h>

/* Recorded between two iterations; what is done is done, even if that fails. */
static void record(sgm_trainer *trainer, const char *name, const char *before, const char *after,
                   sgm__hook_change change)
{
    char *what = sgm__format(SGM__HOOK_CHANGE "%s", name);
    const sgm__order_texts texts = {
        .who = change.who, .what = what, .before = before, .after = after, .undoes = change.undoes};
    if (what == NULL || sgm__trainer_order(trainer, SGM__ORDER_NOTE, texts) != SGM_OK)
        sgm__log(SGM_LOG_WARNING, trainer->name, "the change of hook %s could not be recorded: %s", name,
                 sgm_last_error());
    sgm__free(what);
}

sgm_status sgm__trainer_attach_as(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                  char **name)
{
    return trainer->strategy != NULL && sgm__hook_is_local(hook)
               ? trainer->strategy->attach(trainer, hook, how, attached, name)
               : sgm__hooks_attach_as(trainer->hooks, hook, how, attached, name);
}

sgm_status sgm__trainer_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__hook_change change, char **name)
{
    bool attached = false;
    char *made = NULL;
    bool runs = sgm_trainer_state_of(trainer) != SGM_TRAINER_IDLE;
    sgm__attachment how = runs ? SGM__ATTACHED_STORED : SGM__ATTACHED_AS_SETUP;
    sgm_status status = sgm__trainer_attach_as(trainer, hook, how, &attached, &made);
    if (status == SGM_OK && made == NULL)
        status = SGM_ERROR_MEMORY;
    else if (status == SGM_OK && !attached)
        status = sgm_fail(SGM_ERROR_STATE, "an equal hook is attached already, as '%s'", made);
    else if (status == SGM_OK && runs) {
        const char *text = sgm__hook_source(hook);
        record(trainer, made, NULL, text != NULL ? text : sgm_hook_name(hook), change);
    }
    if (name != NULL && status == SGM_OK) {
        *name = made;
        return SGM_OK;
    }
    sgm__free(made);
    return status;
}

sgm_status sgm__trainer_detach(sgm_trainer *trainer, const char *name, sgm__hook_change change)
{
    char *full, *text;
    sgm__detached detached;
    sgm_status status = sgm__hooks_detach_named(trainer->hooks, name, &full, &text, &detached);
    if (status == SGM_OK)
        sgm__trainer_drop_left(trainer, &detached);
    if (status == SGM_ERROR_NOT_FOUND && trainer->strategy != NULL) {
        char *message = sgm__strdup(sgm_last_error()); /* which knows the trainer's names */
        sgm__free(full);
        sgm__free(text);
        status = trainer->strategy->detach(trainer, name, &full, &text);
        if (status == SGM_ERROR_NOT_FOUND && message != NULL)
            sgm_fail(status, "%s", message);
        sgm__free(message);
    }
    if (status == SGM_OK)
        record(trainer, full, text != NULL ? text : full, NULL, change);
    sgm__free(full);
    sgm__free(text);
    return status;
}

sgm_status sgm_trainer_attach(sgm_trainer *trainer, sgm_hook *hook, char **name)
{
    sgm_status status = SGM_OK;
    if (name != NULL)
        *name = NULL;
    if (trainer == NULL)
        status = sgm__fail_null("the trainer is NULL");
    else if (hook == NULL)
        status = sgm__last_failure();
    else
        status = sgm__trainer_attach(trainer, hook, (sgm__hook_change){.who = "program"}, name);
    sgm_hook_free(hook);
    return status;
}

sgm_status sgm_trainer_detach(sgm_trainer *trainer, const char *name)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    return sgm__trainer_detach(trainer, name, (sgm__hook_change){.who = "program"});
}

/* Behind those of the trainer; the list stays the caller's. */
static sgm_status add_local(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    sgm_attached_hook *local;
    size_t more;
    SGM_TRY(trainer->strategy->list_hooks(trainer, &local, &more));
    sgm_attached_hook *all = sgm__realloc(*list, (*count + more + 1) * sizeof *all);
    if (all == NULL) {
        sgm_attached_hooks_free(local, more);
        return SGM_ERROR_MEMORY;
    }
    memcpy(all + *count, local, more * sizeof *all);
    sgm__free(local);
    *list = all;
    *count += more;
    return SGM_OK;
}

sgm_status sgm_trainer_hooks(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    *list = NULL;
    *count = 0;
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    sgm_status status = sgm__hooks_list(trainer->hooks, list, count);
    if (status != SGM_OK || trainer->strategy == NULL)
        return status;
    status = add_local(trainer, list, count);
    if (status == SGM_OK)
        return SGM_OK;
    sgm_attached_hooks_free(*list, *count);
    *list = NULL;
    *count = 0;
    return status;
}

sgm_status sgm__trainer_check_hooks(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_prepare(trainer));
    SGM_TRY(sgm__trainer_publish_states(trainer));
    return sgm__hooks_check(trainer->hooks, trainer->position.epoch, trainer->position.iteration);
}

/* --- in checkpoints --- */

sgm_status sgm__trainer_save_hooks(const sgm_trainer *trainer, json_t *state)
{
    char **texts = NULL;
    size_t count = 0;
    sgm_status status = sgm__hooks_stored(trainer->hooks, &texts, &count);
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_string(texts[i]));
        sgm__free(texts[i]);
    }
    sgm__free(texts);
    json_object_set_new(state, "attached", list);
    return status;
}

/* One that cannot be made any more is no reason to lose a training. */
void sgm__trainer_load_hooks(sgm_trainer *trainer, const json_t *state, sgm__loaded_hooks *loaded)
{
    const json_t *list = json_object_get(state, "attached");
    size_t count = json_array_size(list);
    *loaded = (sgm__loaded_hooks){.items = count > 0 ? sgm__calloc(count, sizeof(sgm_hook *)) : NULL};
    for (size_t i = 0; i < count && loaded->items != NULL; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        sgm_hook *hook = sgm_hook_parse(text != NULL ? text : "");
        bool attached = false;
        if (hook == NULL ||
            sgm__hooks_attach_as(trainer->hooks, hook, SGM__ATTACHED_STORED, &attached, NULL) != SGM_OK)
            sgm__log(SGM_LOG_WARNING, trainer->name, "the checkpoint's hook '%.200s' is left out: %s",
                     text != NULL ? text : "", sgm_last_error());
        if (attached)
            loaded->items[loaded->count++] = hook;
        else
            sgm_hook_free(hook);
    }
}

void sgm__loaded_hooks_end(sgm_trainer *trainer, sgm__loaded_hooks *loaded, bool stay)
{
    char message[1024];
    sgm_status status = sgm_last_status();
    snprintf(message, sizeof message, "%s", sgm_last_error());
    for (size_t i = 0; i < loaded->count; i++) {
        if (!stay)
            sgm__hooks_detach(trainer->hooks, loaded->items[i]);
        sgm_hook_free(loaded->items[i]);
    }
    sgm__free(loaded->items);
    if (!stay)
        sgm_fail(status, "%s", message);
}
