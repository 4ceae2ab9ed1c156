/* What a hook may do with its call: read values, leave results, and ask the training for something.
 *
 * These are the public functions for invoke() (include/sigma/hooks.h). A request becomes a command
 * (commands.h) in the holder's queue; the trainer takes it out after the event
 * (src/runs/trainer_commands.c), so that no hook changes a training in the middle of an iteration, and
 * background hooks may ask as well. The queue has a lock of its own, which is held for no more than
 * appending or taking. */
#include "hooks/hooks_internal.h"

/* --- values --- */

/* A call that the program made itself has no control; `what` names the text that must not be empty. */
static sgm_status check_call(const sgm_hook_call *call, const char *text, const char *what)
{
    if (!call || !call->control || !call->registry)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a hook's call is needed: use the one that invoke() was given");
    if (!text || !text[0])
        return sgm_fail(SGM_ERROR_ARGUMENT, "hook '%s': %s is empty",
                        ((const sgm__hook_control *)call->control)->hook->type->name, what);
    return SGM_OK;
}

/* In the background the registry is a copy that has only what the hook reads, so the error says where to
 * name it. */
sgm_status sgm_hook_get(sgm_hook_call *call, const char *identifier, sgm_content *content)
{
    SGM_TRY(check_call(call, identifier, "an identifier to get"));
    sgm_status status = sgm_registry_resolve_one(call->registry, identifier, content);
    if (status == SGM_ERROR_NOT_FOUND && call->background)
        return sgm_fail(status,
                        "'%s' is not among what the background hook reads, or had no value: name it "
                        "in .reads",
                        identifier);
    return status;
}

/* Integers and tensors with one element count as numbers. */
sgm_status sgm_hook_number(sgm_hook_call *call, const char *identifier, double *value)
{
    sgm_content content;
    SGM_TRY(sgm_hook_get(call, identifier, &content));
    sgm_status status = SGM_OK;
    if (content.kind == SGM_KIND_NUMBER)
        *value = content.as.number;
    else if (content.kind == SGM_KIND_INTEGER)
        *value = (double)content.as.integer;
    else if (content.kind == SGM_KIND_TENSOR && sgm_shape_elements(sgm_tensor_shape(content.as.tensor)) == 1)
        status = sgm_tensor_read(content.as.tensor, value, 1);
    else
        status = sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a number", identifier,
                          sgm_kind_name(content.kind));
    sgm_content_clear(&content);
    return status;
}

/* Puts a result of a background hook into its batch's copy, so that hooks of the same batch that run later
 * find it; sgm_hook_share puts it into the trainer's registry as well, for everyone else. */
static sgm_status share_in_copy(sgm_registry *copy, const char *name, sgm_content content)
{
    sgm_content found;
    sgm_registry *shared;
    if (sgm_registry_has(copy, "shared")) {
        SGM_TRY(sgm_registry_get(copy, "shared", &found));
        shared = found.as.registry;
    } else {
        shared = sgm_registry_create();
        if (!shared || sgm_registry_put(copy, "shared", shared) != SGM_OK) {
            sgm_registry_free(shared);
            return sgm_last_status();
        }
    }
    sgm_status status = sgm_registry_set(shared, name, content);
    sgm_registry_free(shared);
    return status;
}

const sgm_hook *sgm__hook_of_call(const sgm_hook_call *call)
{
    const sgm__hook_control *control = call->control;
    return control != NULL ? control->hook : NULL;
}

sgm_trainer *sgm_hook_trainer(const sgm_hook_call *call)
{
    if (call == NULL || call->control == NULL || call->background)
        return NULL;
    return ((const sgm__hook_control *)call->control)->hooks->owner;
}

/* Sets the result where each reader looks: in the batch's copy, in the worker's results that the trainer
 * shows, and in "shared" of the registry. */
sgm_status sgm_hook_share(sgm_hook_call *call, const char *name, sgm_content content)
{
    SGM_TRY(check_call(call, name, "the name of a shared result"));
    const sgm__hook_control *control = call->control;
    if (call->background)
        SGM_TRY(share_in_copy(call->registry, name, content));
    if (control->hooks->mirror)
        SGM_TRY(sgm_registry_set(control->hooks->mirror, name, content));
    return sgm_registry_set(control->hooks->shared, name, content);
}

/* --- requests --- */

/* A copy that the command owns; tensors and registries are shared, with a reference. */
static sgm_status copy_content(const sgm_content *content, sgm_content *copy)
{
    *copy = *content;
    if (content->kind == SGM_KIND_TEXT) {
        copy->as.text = sgm__strdup(content->as.text ? content->as.text : "");
        if (!copy->as.text) {
            *copy = (sgm_content){0};
            return SGM_ERROR_MEMORY;
        }
    } else if (content->kind == SGM_KIND_TENSOR) {
        copy->as.tensor = sgm_tensor_retain(content->as.tensor);
    } else if (content->kind == SGM_KIND_REGISTRY) {
        copy->as.registry = sgm_registry_retain(content->as.registry);
    }
    return SGM_OK;
}

/* Queues a command, and takes it over. `asker` is the trainer of the hook, which may be a worker's
 * replica. */
static sgm_status ask(const sgm_hook_call *call, sgm__command *command)
{
    sgm__hooks *hooks = ((const sgm__hook_control *)call->control)->hooks;
    command->background = call->background;
    command->asker = hooks->owner;
    pthread_mutex_lock(&hooks->command_lock);
    sgm__commands_append(&hooks->commands, command);
    pthread_mutex_unlock(&hooks->command_lock);
    return SGM_OK;
}

/* The text that the hook was made from is the reason: it tells rules, which all have one name, from each
 * other, also after the rule is gone. */
static sgm__command *create(const sgm_hook_call *call, sgm__command_kind kind, const char *text)
{
    const sgm_hook *hook = sgm__hook_of_call(call);
    return sgm__command_create(
        kind, (sgm__command_fields){.who = hook->type->name, .text = text, .reason = hook->text});
}

static sgm_status request(const sgm_hook_call *call, sgm__command_kind kind, const char *text)
{
    sgm__command *command = create(call, kind, text);
    return command ? ask(call, command) : SGM_ERROR_MEMORY;
}

/* `release` is called exactly once: here if there is no memory, else by sgm__command_free. */
sgm_status sgm__hook_request_act(sgm_hook_call *call, sgm__action_function act, void *user,
                                 void (*release)(void *user))
{
    sgm__command *command = create(call, SGM__COMMAND_ACT, NULL);
    if (!command) {
        release(user);
        return SGM_ERROR_MEMORY;
    }
    command->act = act;
    command->user = user;
    command->release = release;
    return ask(call, command);
}

sgm_status sgm_hook_request_stop(sgm_hook_call *call, const char *reason)
{
    SGM_TRY(check_call(call, reason, "the reason to stop"));
    return request(call, SGM__COMMAND_STOP, reason);
}

/* The text that the hook was made from becomes the reason that monitors show. */
sgm_status sgm_hook_request_pause(sgm_hook_call *call)
{
    SGM_TRY(check_call(call, "pause", "a request"));
    const char *text = sgm__hook_of_call(call)->text;
    return request(call, SGM__COMMAND_PAUSE, text);
}

sgm_status sgm_hook_request_reset(sgm_hook_call *call)
{
    SGM_TRY(check_call(call, "reset", "a request"));
    return request(call, SGM__COMMAND_RESET, NULL);
}

sgm_status sgm_hook_request_save(sgm_hook_call *call, const char *name)
{
    SGM_TRY(check_call(call, name, "the name of what to save"));
    return request(call, SGM__COMMAND_SAVE, name);
}

sgm_status sgm_hook_request_set(sgm_hook_call *call, const char *identifier, sgm_content content)
{
    return sgm__hook_request_set_for(call, identifier, content, (sgm__command_period){0});
}

sgm_status sgm__hook_request_set_for(sgm_hook_call *call, const char *identifier, sgm_content content,
                                     sgm__command_period period)
{
    SGM_TRY(check_call(call, identifier, "the identifier to set"));
    sgm__command *command = create(call, SGM__COMMAND_SET, identifier);
    if (command)
        command->period = period;
    if (command && copy_content(&content, &command->content) == SGM_OK)
        return ask(call, command);
    sgm__command_free(command);
    return SGM_ERROR_MEMORY;
}

sgm_status sgm__hook_request_freeze(sgm_hook_call *call, const char *pattern, bool freeze)
{
    SGM_TRY(check_call(call, pattern, "the pattern to freeze"));
    return request(call, freeze ? SGM__COMMAND_FREEZE : SGM__COMMAND_UNFREEZE, pattern);
}

/* Looks at the flag before it takes the lock, as the trainer asks after each event and the queue is mostly
 * empty. */
sgm__command *sgm__hooks_take_command(sgm__hooks *hooks)
{
    if (!atomic_load(&hooks->commands.has_any))
        return NULL;
    pthread_mutex_lock(&hooks->command_lock);
    sgm__command *first = sgm__commands_take(&hooks->commands);
    pthread_mutex_unlock(&hooks->command_lock);
    return first;
}
