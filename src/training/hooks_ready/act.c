/* Stopping and saving. */
#include "base/base.h"
#include <sigma/hooks.h>

#define STOP_PRIORITY 10000
#define SAVE_PRIORITY 9000 /* before a stop at the same event */

static bool equal_texts(const void *a, const void *b)
{
    return strcmp(a, b) == 0;
}

static sgm_status stop(void *reason, sgm_hook_call *call)
{
    return sgm_hook_request_stop(call, reason);
}

static sgm_status save(void *name, sgm_hook_call *call)
{
    char *filled = sgm_resolve_text(call->registry, name);
    if (!filled)
        return sgm__fail_within("the name '%s'", (const char *)name);
    sgm_status status = sgm_hook_request_save(call, filled);
    sgm_string_free(filled);
    return status;
}

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
                                        .free = sgm__free};

/* Takes over `text`, NULL: it failed, and the criteria. */
static sgm_hook *create(const sgm_hook_type *type, char *text, sgm_time_step when, sgm_criteria *only_if,
                        int32_t priority)
{
    if (!text) {
        sgm_criteria_free(only_if);
        return NULL;
    }
    return sgm_hook_create(type, text, .when = when, .only_if = only_if, .priority = priority);
}

sgm_hook *sgm_stop_hook_create(sgm_time_step when, const sgm_stop_options *given)
{
    sgm_stop_options options = {.struct_size = sizeof options};
    if (given)
        memcpy(&options, given, given->struct_size < sizeof options ? given->struct_size : sizeof options);
    char text[64];
    const char *reason =
        options.reason && options.reason[0] ? options.reason : sgm_time_step_text(&when, text, sizeof text);
    return create(&stop_type, sgm__strdup(reason), when, options.only_if, STOP_PRIORITY);
}

sgm_hook *sgm_early_stopper(const char *identifier, int64_t patience, sgm_extremum extremum,
                            sgm_time_step when)
{
    sgm_criteria *stalls = sgm_criteria_stalls(identifier, extremum, patience);
    if (!stalls)
        return NULL;
    char *reason = sgm__format("%s has had no new %s for %lld checks", identifier,
                               extremum == SGM_MAXIMUM ? "maximum" : "minimum", (long long)patience);
    return create(&stop_type, reason, when, stalls, STOP_PRIORITY);
}

sgm_hook *sgm_save_hook_create(sgm_time_step when, const char *name, const sgm_save_options *given)
{
    sgm_save_options options = {.struct_size = sizeof options};
    if (given)
        memcpy(&options, given, given->struct_size < sizeof options ? given->struct_size : sizeof options);
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
