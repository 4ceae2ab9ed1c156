/* Hooks that run once for each worker. */
#include "hooks/hooks_internal.h"

#include <stdio.h>

bool sgm__hook_is_local(const sgm_hook *hook)
{
    return hook->local;
}

sgm_status sgm__hook_check_local(const sgm_hook *hook)
{
    const char *why = hook->type->only_global;
    return why == NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED, "hook '%s' cannot be local: %s", hook->type->name, why);
}

const char *sgm__hook_worker_text(const sgm_hook_call *call, char *buffer, size_t size)
{
    const sgm__hook_control *control = call->control;
    buffer[0] = '\0';
    if (control != NULL && control->hooks->mirror != NULL)
        snprintf(buffer, size, "worker %d: ", (int)control->hooks->worker);
    return buffer;
}

void *sgm__hook_required_self(const sgm_hook_call *call)
{
    const sgm_hook *hook = ((const sgm__hook_control *)call->control)->hook;
    return hook->required_count > 0 ? hook->required[0]->self : NULL;
}

sgm_hook *sgm_hook_make_local(sgm_hook *hook)
{
    if (hook == NULL)
        return NULL;
    if (!hook->local && atomic_load(&hook->was_attached)) {
        sgm_fail(SGM_ERROR_STATE, "hook '%s' is attached already: make it local before that",
                 hook->type->name);
        sgm_hook_free(hook);
        return NULL;
    }
    if (sgm__hook_check_local(hook) != SGM_OK) {
        sgm_hook_free(hook);
        return NULL;
    }
    hook->local = true;
    for (size_t i = 0; i < hook->required_count; i++) {
        sgm_hook *required = sgm_hook_make_local(sgm_hook_retain(hook->required[i]));
        if (required == NULL) {
            sgm_hook_free(hook);
            return NULL;
        }
        sgm_hook_free(required);
    }
    return hook;
}

/* Without copy() the copies share one self, and their calls take turns. */
static sgm_status copy_self(sgm_hook *copy, sgm_hook *hook)
{
    if (hook->type->copy != NULL) {
        copy->self = hook->type->copy(hook->self);
        return copy->self != NULL ? SGM_OK : sgm__last_failure();
    }
    copy->origin = sgm_hook_retain(hook);
    copy->turn = hook->turn;
    copy->self = hook->self;
    return SGM_OK;
}

static sgm_status copy_reads(sgm_hook *copy, const sgm_hook *hook)
{
    copy->reads = sgm__calloc(hook->read_count, sizeof *copy->reads);
    if (copy->reads == NULL)
        return SGM_ERROR_MEMORY;
    for (; copy->read_count < hook->read_count; copy->read_count++)
        if ((copy->reads[copy->read_count] = sgm__strdup(hook->reads[copy->read_count])) == NULL)
            return SGM_ERROR_MEMORY;
    return SGM_OK;
}

sgm_hook *sgm__hook_copy(sgm_hook *hook)
{
    sgm_hook *copy = sgm__hook_allocate();
    if (copy == NULL)
        return NULL;
    copy->when = hook->when;
    copy->priority = hook->priority;
    copy->background = hook->background;
    copy->local = hook->local;
    copy->time_limit = hook->time_limit;
    copy->failure = hook->failure;
    sgm_status status = copy_reads(copy, hook);
    if (status == SGM_OK && hook->criteria != NULL) {
        copy->criteria = sgm_criteria_copy(hook->criteria);
        status = copy->criteria != NULL ? SGM_OK : sgm__last_failure();
    }
    if (status == SGM_OK && hook->text != NULL)
        status = sgm__hook_set_text(copy, hook->text);
    if (status == SGM_OK)
        status = copy_self(copy, hook);
    if (status == SGM_OK) {
        copy->type = hook->type; /* from here on its self is freed with it */
        return copy;
    }
    sgm_hook_free(copy);
    return NULL;
}

/* One that no other attached hook requires. */
static sgm__hook_entry *find_local(const sgm__hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->hook->local && !sgm__hook_entry_is_required(hooks, hooks->entries[i]))
            return hooks->entries[i];
    return NULL;
}

sgm_hook *sgm__hooks_take_local(sgm__hooks *hooks)
{
    sgm_hook *hook = NULL;
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    sgm__hook_entry *entry = find_local(hooks);
    if (entry != NULL) {
        hook = sgm_hook_retain(entry->hook);
        entry->cancelled = true;
        sgm__hook_entry_take_off(hooks, entry, false, &garbage);
        sgm__hooks_arrange(hooks);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    return hook;
}
