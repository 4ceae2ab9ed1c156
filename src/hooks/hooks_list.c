/* What is attached, by names; and back to the beginning. */
#include "hooks/hooks_internal.h"

#include <stdio.h>

/* --- names --- */

#define LONGEST_NAME 128

static const char *name_of(const sgm__hook_entry *entry, char *buffer)
{
    snprintf(buffer, LONGEST_NAME, "%s#%d", entry->hook->type->name, entry->ordinal);
    return buffer;
}

/* All names, or those of one type. */
static char *names_of(const sgm__hooks *hooks, const char *type)
{
    sgm__text text = {0};
    char buffer[LONGEST_NAME];
    for (size_t i = 0; i < hooks->count; i++)
        if (!type || strcmp(hooks->entries[i]->hook->type->name, type) == 0)
            sgm__text_append(&text, "%s%s", text.length > 0 ? ", " : "", name_of(hooks->entries[i], buffer));
    return sgm__text_take(&text);
}

static sgm_status fail_name(const sgm__hooks *hooks, const char *name, const char *type, const char *problem)
{
    char *names = hooks->count > 0 ? names_of(hooks, type) : NULL;
    sgm_status status = sgm_fail(type ? SGM_ERROR_ARGUMENT : SGM_ERROR_NOT_FOUND, "%s '%.100s': there are %s",
                                 problem, name, names ? names : "none");
    sgm__free(names);
    return status;
}

static sgm_status find_named(const sgm__hooks *hooks, const char *name, sgm__hook_entry **found)
{
    char buffer[LONGEST_NAME];
    bool several = false;
    *found = NULL;
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->entries[i];
        if (strcmp(name_of(entry, buffer), name) == 0) {
            *found = entry;
            return SGM_OK;
        }
        if (strcmp(entry->hook->type->name, name) != 0)
            continue;
        several = *found != NULL;
        *found = entry;
        if (several)
            return fail_name(hooks, name, name, "several hooks are named");
    }
    return *found ? SGM_OK : fail_name(hooks, name, NULL, "no hook is named");
}

/* What detaching an entry may take off. */
static void list_all(const sgm__hook_entry *entry, sgm__detached *detached)
{
    if (detached->count == SGM__MAXIMUM_DETACHED)
        return;
    detached->hooks[detached->count++] = entry->hook;
    for (size_t i = 0; i < entry->required_count; i++)
        list_all(entry->required[i], detached);
}

/* Only those that are attached no more stay in the list. */
static void keep_gone(const sgm__hooks *hooks, sgm__detached *detached)
{
    size_t kept = 0;
    for (size_t i = 0; i < detached->count; i++)
        if (!sgm__hook_is_attached(hooks, detached->hooks[i])) {
            atomic_store(&detached->hooks[i]->taken_off, true);
            detached->hooks[kept++] = detached->hooks[i];
        }
    detached->count = kept;
}

sgm_status sgm__hooks_detach_named(sgm__hooks *hooks, const char *name, char **full, char **text,
                                   sgm__detached *detached)
{
    sgm__detached gone = {.count = 0};
    char buffer[LONGEST_NAME];
    sgm__hook_entry *garbage = NULL, *entry = NULL;
    *full = *text = NULL;
    if (!name)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the name of a hook to detach is NULL");
    pthread_mutex_lock(&hooks->lock);
    sgm_status status = find_named(hooks, name, &entry);
    if (status == SGM_OK) {
        *full = sgm__strdup(name_of(entry, buffer));
        *text = entry->hook->text ? sgm__strdup(entry->hook->text) : NULL;
        list_all(entry, &gone);
        status = *full && (*text || !entry->hook->text) ? sgm__hook_entry_detach(hooks, entry, &garbage)
                                                        : SGM_ERROR_MEMORY;
        keep_gone(hooks, &gone);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    if (detached)
        *detached = gone;
    return status;
}

/* --- lists --- */

void sgm_attached_hooks_free(sgm_attached_hook *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm__free(list[i].name);
        sgm__free(list[i].when);
        sgm__free(list[i].condition);
        sgm__free(list[i].text);
    }
    sgm__free(list);
}

/* With the holder's lock: what a hook was made with does not change. */
static sgm_status describe(const sgm__hook_entry *entry, sgm_attached_hook *to)
{
    char buffer[LONGEST_NAME];
    const sgm_hook *hook = entry->hook;
    long long runs = atomic_load(&entry->runs);
    to->name = sgm__strdup(name_of(entry, buffer));
    to->when = sgm__strdup(sgm_time_step_text(&hook->when, buffer, sizeof buffer));
    to->condition = hook->criteria ? sgm_criteria_text(hook->criteria, &hook->when) : sgm__strdup("");
    to->text = sgm__strdup(hook->text ? hook->text : "");
    to->background = entry->background;
    to->due = entry->count.used;
    to->runs = runs;
    to->seconds = runs > 0 ? (double)atomic_load(&entry->nanoseconds) / 1e9 / (double)runs : 0;
    return to->name && to->when && to->condition && to->text ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__hooks_list(sgm__hooks *hooks, sgm_attached_hook **list, size_t *count)
{
    pthread_mutex_lock(&hooks->lock);
    size_t made = hooks->count;
    sgm_status status = SGM_OK;
    *list = sgm__calloc(made + 1, sizeof **list);
    if (!*list)
        status = SGM_ERROR_MEMORY;
    for (size_t i = 0; i < made && status == SGM_OK; i++)
        status = describe(hooks->order[i], &(*list)[i]);
    pthread_mutex_unlock(&hooks->lock);
    *count = made;
    if (status == SGM_OK)
        return SGM_OK;
    if (*list)
        sgm_attached_hooks_free(*list, made);
    *list = NULL;
    *count = 0;
    return status;
}

sgm_status sgm__hooks_stored(sgm__hooks *hooks, char ***texts, size_t *count)
{
    sgm_status status = SGM_OK;
    *count = 0;
    pthread_mutex_lock(&hooks->lock);
    *texts = sgm__calloc(hooks->count + 1, sizeof **texts);
    if (!*texts)
        status = SGM_ERROR_MEMORY;
    for (size_t i = 0; i < hooks->count && status == SGM_OK; i++) {
        if (!hooks->entries[i]->stored || !hooks->entries[i]->hook->text)
            continue;
        char *copy = sgm__strdup(hooks->entries[i]->hook->text);
        if (copy)
            (*texts)[(*count)++] = copy;
        else
            status = SGM_ERROR_MEMORY;
    }
    pthread_mutex_unlock(&hooks->lock);
    return status;
}

/* --- back to the beginning --- */

/* The hook that has lived, retained, and its place; NULL: there is none (left). */
static sgm_hook *take_gone(sgm__hooks *hooks, int64_t *number)
{
    sgm_hook *hook = NULL;
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->gone_count && !hook; i++) {
        sgm__gone *gone = &hooks->gone[i];
        if (!gone->entry)
            continue;
        hook = sgm_hook_retain(gone->entry->hook);
        *number = gone->number;
        sgm__hook_entry_drop(gone->entry, &garbage);
        hooks->gone_count--;
        memmove(gone, gone + 1, (hooks->gone_count - i) * sizeof *gone);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    return hook;
}

/* At its old place among the others. */
static void put_back(sgm__hooks *hooks, const sgm_hook *hook, int64_t number)
{
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->entries[i];
        if (entry->hook != hook)
            continue;
        entry->number = number;
        entry->early = true;
        for (; i > 0 && hooks->entries[i - 1]->number > number; i--)
            hooks->entries[i] = hooks->entries[i - 1];
        hooks->entries[i] = entry;
        break;
    }
    sgm__hooks_arrange(hooks);
    pthread_mutex_unlock(&hooks->lock);
}

/* The hook behind `after` in order of attachment, retained; its count begins anew. Those of starts, pauses
 * and resets are no matter of a reset. */
static sgm_hook *begin_anew(sgm__hooks *hooks, int64_t *after)
{
    sgm__hook_entry *next = NULL;
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->entries[i]->number > *after && (!next || hooks->entries[i]->number < next->number))
            next = hooks->entries[i];
    sgm_hook *hook = next ? sgm_hook_retain(next->hook) : NULL;
    if (next) {
        *after = next->number;
        if (hook->when.scale <= SGM_EPOCH)
            next->count = (sgm_time_count){0};
    }
    pthread_mutex_unlock(&hooks->lock);
    return hook;
}

sgm_status sgm__hooks_restart(sgm__hooks *hooks)
{
    sgm_status status = SGM_OK;
    int64_t number = -1;
    sgm_hook *hook;
    sgm__hooks_wait(hooks);
    while (status == SGM_OK && (hook = take_gone(hooks, &number))) {
        status = sgm__hooks_attach(hooks, hook, NULL);
        put_back(hooks, hook, number);
        sgm_hook_free(hook);
    }
    number = -1;
    while (status == SGM_OK && (hook = begin_anew(hooks, &number))) {
        status = sgm__hook_restart(hook);
        sgm_hook_free(hook);
    }
    return status;
}
