/* Stopping and saving at a time step: stop, save.
 *
 * They only ask: the training's thread stops or saves after all hooks of the event
 * (src/runs/trainer_commands.c), so hooks that run later in the same event still see the trainer as it is.
 * Whether the moment has come is for the engine. Stopping when a value stalls is early_stopper.c; several
 * checkpoints that replace each other are checkpoints.c.
 *
 * The self of each of these hooks is one text: the reason to stop, or the name to save under. */
#include "hooks/hook_text.h"
#include "trainer/view.h"

#define STOP_PRIORITY 10000 /* behind everything else */
#define SAVE_PRIORITY 9000  /* before a stop at the same event */

static bool equal_texts(const void *a, const void *b)
{
    return strcmp(a, b) == 0;
}

static sgm_status stop(void *reason, sgm_hook_call *call)
{
    return sgm_hook_request_stop(call, reason);
}

/* invoke(). Values in the name, "epoch-{epoch}", are filled in at the event, not when the request is
 * carried out. */
static sgm_status save(void *name, sgm_hook_call *call)
{
    char *filled = sgm_registry_resolve_text(call->registry, name);
    if (!filled)
        return sgm__fail_within("the name '%s'", (const char *)name);
    sgm_status status = sgm_hook_request_save(call, filled);
    sgm_string_free(filled);
    return status;
}

/* Whether what is between two braces can be an identifier, and is one, if it has to exist already. A value
 * that cannot be read just now is no error. */
static sgm_status check_in_braces(const char *identifier, sgm_hook_call *call)
{
    sgm_matches matches = {0};
    sgm_status status = sgm_registry_resolve(call->registry, identifier, &matches);
    size_t count = matches.count;
    if (status == SGM_OK)
        sgm_matches_free(&matches);
    if (status != SGM_OK || count > 0 || !sgm__hooks_is_known_early(sgm_hook_trainer(call), identifier))
        return status == SGM_ERROR_STATE ? SGM_OK : status;
    sgm_content content = {0};
    status = sgm_registry_resolve_one(call->registry, identifier, &content); /* says what is near */
    sgm_content_clear(&content);
    return status;
}

/* "{{" is a brace itself. */
sgm_status sgm__hook_check_braces(const char *text, sgm_hook_call *call)
{
    sgm_status status = SGM_OK;
    for (const char *at = text; status == SGM_OK && (at = strchr(at, '{')); at++) {
        if (at[1] == '{') { /* a brace itself */
            at++;
            continue;
        }
        size_t length = strcspn(at + 1, "}{");
        if (at[1 + length] != '}')
            return sgm_fail(SGM_ERROR_ARGUMENT, "the text '%s' has a '{' without its '}'", text);
        char *identifier = sgm__strndup(at + 1, length);
        status = identifier ? check_in_braces(identifier, call) : SGM_ERROR_MEMORY;
        sgm__free(identifier);
        at += length;
    }
    return status == SGM_OK ? SGM_OK : sgm__fail_within("the text '%s'", text);
}

static sgm_status check_name(void *name, sgm_hook_call *call)
{
    return sgm__hook_check_braces(name, call);
}

/* A save measures nothing but is global: it writes the trainer with what all workers have. */
static const sgm_hook_type stop_type = {.api = SGM_HOOK_API,
                                        .name = "stop",
                                        .doc = "stops the run",
                                        .invoke = stop,
                                        .equal = equal_texts,
                                        .free = sgm__free},
                           save_type = {.api = SGM_HOOK_API,
                                        .name = "save",
                                        .doc = "saves the training under a name",
                                        .invoke = save,
                                        .equal = equal_texts,
                                        .free = sgm__free,
                                        .only_global = "it saves the trainer, with all workers",
                                        .check = check_name};

/* Takes over `text` (NULL: memory was short) and the criteria, on every way out. */
static sgm_hook *create(const sgm_hook_type *type, char *text, sgm_time_step when, sgm_criteria *only_if,
                        int32_t priority)
{
    if (!text) {
        sgm_criteria_free(only_if);
        return NULL;
    }
    return sgm_hook_create(type, text, .when = when, .only_if = only_if, .priority = priority);
}

/* Without a reason the time step is the reason: "after 10 epochs". */
sgm_hook *sgm_stop_hook_with(sgm_time_step when, const sgm_stop_options *given)
{
    sgm_stop_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_stop_hook") != SGM_OK)
        return NULL;
    char text[64];
    const char *reason =
        options.reason && options.reason[0] ? options.reason : sgm_time_step_text(&when, text, sizeof text);
    return create(&stop_type, sgm__strdup(reason), when, options.only_if, STOP_PRIORITY);
}

/* The name is checked before values are filled in; the saving itself checks the name that came out. */
sgm_hook *sgm_save_hook_with(sgm_time_step when, const char *name, const sgm_save_options *given)
{
    sgm_save_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_save_hook") != SGM_OK)
        return NULL;
    if (!name || !name[0] || name[0] == '.' || strchr(name, '/')) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "'%s' is no name to save under: it must not be empty, begin with '.' or "
                 "have a '/'",
                 name ? name : "");
        sgm_criteria_free(options.only_if);
        return NULL;
    }
    return create(&save_type, sgm__strdup(name), when, options.only_if, SAVE_PRIORITY);
}

/* --- as text --- */

static sgm_hook *parse_stop(const sgm__call *call, sgm_time_step when)
{
    return sgm_stop_hook(when, .reason = sgm__call_text(call, "reason"));
}

const sgm__hook_row sgm__stop_row = {
    .name = "stop",
    .example = "stop() if training.loss < 0.01",
    .doc = "stops the run, with a checkpoint",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"reason", SGM_KIND_TEXT, .doc = "what the end of the run says"}},
    .create = parse_stop,
};

static sgm_hook *parse_save(const sgm__call *call, sgm_time_step when)
{
    return sgm_save_hook(when, sgm__call_text(call, "name"));
}

/* Not local: workers have no checkpoint of their own. */
const sgm__hook_row sgm__save_row = {
    .name = "save",
    .example = "every 10 epochs save(\"epoch-{epoch}\")",
    .doc = "writes NAME.safetensors into the folder of the run",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"name", SGM_KIND_TEXT, .required = true,
                   .doc = "in quotes it may have values in it, \"epoch-{epoch}\""}},
    .create = parse_save,
    .global = true,
};
