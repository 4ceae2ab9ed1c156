/* Hooks of a trainer, and of its replicas where they are local; and what a checkpoint keeps of hooks that
 * were attached by text while the trainer ran.
 *
 * A checkpoint has the texts ("every 2 epochs save(...)"), not the hooks: loading parses and attaches them
 * again, before their states are set (src/runs/parts/state_hooks.c), and takes them off again if loading
 * fails after that. */
#include "train/trainer_hooks.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

#include <stdio.h>

/* Whoever attaches it: the program, a person from another process or a page, or a checkpoint. */
static sgm_status check_commands(const sgm_trainer *trainer, const sgm_hook *hook)
{
    const char *text = hook != NULL ? sgm__hook_source(hook) : NULL;
    if (hook == NULL || !sgm__hook_runs_commands(hook) ||
        trainer->sharing.owner->settings.command_seconds > 0)
        return SGM_OK;
    return sgm_fail(
        SGM_ERROR_STATE,
        "'%.200s' runs a command, which this training does not allow: say allow_commands: true in "
        "its file, or sgm_trainer_allow_commands in its program",
        text != NULL ? text : sgm_hook_name(hook));
}

bool sgm__trainer_allows_webhook(const sgm_trainer *trainer, const char *address)
{
    const sgm__trainer_webhooks *webhooks = &trainer->sharing.owner->webhooks;
    for (size_t i = 0; i < webhooks->count; i++)
        if (strcmp(webhooks->allowed[i], address) == 0)
            return true;
    return false;
}

static bool is_allowed(const void *trainer, const char *address)
{
    return sgm__trainer_allows_webhook(trainer, address);
}

static sgm_status check_webhooks(const sgm_trainer *trainer, const sgm_hook *hook)
{
    const char *refused = hook != NULL ? sgm__hook_refused_webhook(hook, is_allowed, trainer) : NULL;
    if (refused == NULL)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_STATE,
                    "a rule sends to '%.200s', which this training does not allow: name the address in "
                    "webhooks: [...] in its file, or by sgm_trainer_allow_webhook in its program",
                    refused);
}

/* A local hook goes to each replica, as a copy of its own; every other hook to the trainer. */
sgm_status sgm__trainer_attach_as(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                  char **name)
{
    SGM_TRY(check_commands(trainer, hook));
    SGM_TRY(check_webhooks(trainer, hook));
    return trainer->sharing.strategy != NULL && sgm__hook_is_local(hook)
               ? trainer->sharing.strategy->attach(trainer, hook, how, attached, name)
               : sgm__hooks_attach_as(trainer->hooks, hook, how, attached, name);
}

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

/* A hook that cannot be made any more (its plug-in is missing, its data have another name) is left out with
 * a warning: it is no reason to lose a training. */
void sgm__trainer_load_hooks(sgm_trainer *trainer, const json_t *state, sgm__loaded_hooks *loaded)
{
    const json_t *list = json_object_get(state, "attached");
    size_t count = json_array_size(list);
    *loaded = (sgm__loaded_hooks){.items = count > 0 ? sgm__calloc(count, sizeof(sgm_hook *)) : NULL};
    for (size_t i = 0; i < count && loaded->items != NULL; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        sgm_hook *hook = sgm_hook_parse(text != NULL ? text : "");
        bool attached = false;
        if ((hook == NULL || check_commands(trainer, hook) != SGM_OK ||
             sgm__hooks_attach_as(trainer->hooks, hook, SGM__ATTACHED_AGAIN, &attached, NULL) != SGM_OK) &&
            sgm__trainer_can_train(trainer))
            sgm__log(SGM_LOG_WARNING, trainer->name, "the checkpoint's hook '%.200s' is left out: %s",
                     text != NULL ? text : "", sgm_last_error());
        if (attached)
            loaded->items[loaded->count++] = hook;
        else
            sgm_hook_free(hook);
    }
}

/* Detaching reports errors of its own, so the failure that led here is kept and reported again. */
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
