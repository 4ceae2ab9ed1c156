/* Local hooks: hooks that run once for each worker of an operator, each time on that worker's values.
 *
 * A program makes one hook and marks it as local. The operator (src/parallel/operator_strategy.c) takes
 * local hooks off the trainer's holder with sgm__hooks_take_local and attaches a copy of each to every
 * worker's replica, which has a holder of its own. This file marks, copies and takes off; it starts no
 * worker. Without an operator a local hook stays with the trainer and runs as any other hook. */
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"

#include <stdio.h>

bool sgm__hook_is_local(const sgm_hook *hook)
{
    return hook->local;
}

/* A type that saves, measures or changes the whole training names a reason in only_global. */
sgm_status sgm__hook_check_local(const sgm_hook *hook)
{
    const char *why = hook->type->only_global;
    return why == NULL
               ? SGM_OK
               : sgm_fail(SGM_ERROR_UNSUPPORTED, "hook '%s' cannot be local: %s", hook->type->name, why);
}

/* Only the holder of a worker has a mirror, so the mirror tells a worker's call from a trainer's. */
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

/* Takes over the caller's reference, and lets the hook go on failure. Required hooks become local too: a
 * worker's hook cannot read results that a hook of the trainer leaves. */
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

/* Gives the copy a self of its own. A type without copy() has one self for all workers: the copy retains
 * its origin, which frees that self, and takes the origin's lock as its `turn`, so that calls of all
 * workers come one after the other. */
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

/* Copies what changes when the hook runs, under its `turn`: a thread of background hooks, or another trainer,
 * may be running it. The trainer's lock is given up while this waits, as the hook may be waiting for that. */
static sgm_status copy_memory(sgm_hook *copy, sgm_hook *hook)
{
    sgm__lock_giving_way(hook->turn);
    sgm_status status = SGM_OK;
    if (hook->criteria != NULL) {
        copy->criteria = sgm_criteria_copy(hook->criteria);
        status = copy->criteria != NULL ? SGM_OK : sgm__last_failure();
    }
    if (status == SGM_OK)
        status = copy_self(copy, hook);
    pthread_mutex_unlock(hook->turn);
    return status;
}

/* A copy with the same options, criteria with what they remember, and text, but without required hooks,
 * which the caller adds. `type` is set last: free_parts calls the type's free() only for a hook that has a
 * type, so a copy without a self of its own is not asked to free one. */
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
    if (status == SGM_OK && hook->text != NULL)
        status = sgm__hook_set_text(copy, hook->text);
    if (status == SGM_OK)
        status = copy_memory(copy, hook);
    if (status == SGM_OK) {
        copy->type = hook->type; /* from here on freeing the copy frees its self */
        return copy;
    }
    sgm_hook_free(copy);
    return NULL;
}

/* A local hook that no other attached hook requires, so that taking it off is allowed; NULL: there is
 * none. */
static sgm__hook_entry *find_local(const sgm__hooks *hooks)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->hook->local && !sgm__hook_entry_is_required(hooks, hooks->entries[i]))
            return hooks->entries[i];
    return NULL;
}

/* Called until it returns NULL; required local hooks go with their dependents, and the operator copies
 * them from there. */
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
