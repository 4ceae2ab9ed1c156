/* Attached hooks by name: lists for people, detaching by name; and putting all hooks back to their beginning.
 *
 * A name is that of the hook's type with a number, "save#2"; the number may be left out where only one
 * hook has the type. The control socket, monitors and the page use these names, as they have no addresses.
 * src/runs/trainer_attach.c detaches by them, sgm_trainer_hooks lists them. */
#include "hooks/hooks_internal.h"

#include <stdio.h>

/* --- names --- */

#define LONGEST_NAME 128 /* bytes of a buffer for a name or a time step; longer ones are cut */

static const char *name_of(const sgm__hook_entry *entry, char *buffer)
{
    snprintf(buffer, LONGEST_NAME, "%s#%d", entry->hook->type->name, entry->ordinal);
    return buffer;
}

/* The names of all hooks, or of those of one type, for an error; free with sgm__free. */
static char *names_of(const sgm__hooks *hooks, const char *type)
{
    sgm__text text = {0};
    char buffer[LONGEST_NAME];
    for (size_t i = 0; i < hooks->count; i++)
        if (!type || strcmp(hooks->entries[i]->hook->type->name, type) == 0)
            sgm__text_append(&text, "%s%s", text.length > 0 ? ", " : "", name_of(hooks->entries[i], buffer));
    return sgm__text_take(&text);
}

/* `type` NULL: nothing has the name; else several hooks of this type do. The error lists what can be
 * named. */
static sgm_status fail_name(const sgm__hooks *hooks, const char *name, const char *type, const char *problem)
{
    char *names = hooks->count > 0 ? names_of(hooks, type) : NULL;
    sgm_status status = sgm_fail(type ? SGM_ERROR_ARGUMENT : SGM_ERROR_NOT_FOUND, "%s '%.100s': there are %s",
                                 problem, name, names ? names : "none");
    sgm__free(names);
    return status;
}

/* A full name wins over a type's name; of the latter there must be one hook only. */
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

/* Collects the addresses of a hook and of all that it requires: detaching the hook may take them off too.
 * No reference is taken: keep_gone uses them before the entries are freed, and callers of
 * sgm__hooks_detach_named only compare addresses. */
static void list_all(const sgm__hook_entry *entry, sgm__detached *detached)
{
    if (detached->count == SGM__MAXIMUM_DETACHED)
        return;
    detached->hooks[detached->count++] = entry->hook;
    for (size_t i = 0; i < entry->required_count; i++)
        list_all(entry->required[i], detached);
}

/* Keeps those that are attached no more, and marks them: a hook that is running just now has its results
 * dropped (sgm__hook_is_taken_off). With the lock. */
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

/* Name and text are copied before the hook goes, as the record of changes needs them to undo the
 * detaching. */
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

/* --- buttons --- */

static bool has_button(const sgm_hook *hook, const char *name)
{
    const char *button;
    for (size_t i = 0; (button = sgm_criteria_external_at(hook->criteria, i)); i++)
        if (strcmp(button, name) == 0)
            return true;
    return false;
}

/* The criteria's structure does not change, and what is changed is atomic, so the hooks' own locks are not
 * needed: a background hook may be checking just now. */
void sgm__hooks_press(sgm__hooks *hooks, const char *name, size_t *count)
{
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++) {
        sgm_hook *hook = hooks->entries[i]->hook;
        *count += has_button(hook, name) && sgm_criteria_hold(hook->criteria, name) == SGM_OK;
    }
    pthread_mutex_unlock(&hooks->lock);
}

/* --- lists --- */

static void free_buttons(char **buttons)
{
    for (size_t i = 0; buttons && buttons[i]; i++)
        sgm__free(buttons[i]);
    sgm__free(buttons);
}

void sgm_attached_hooks_free(sgm_attached_hook *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free_buttons(list[i].buttons);
        sgm__free(list[i].name);
        sgm__free(list[i].when);
        sgm__free(list[i].condition);
        sgm__free(list[i].text);
    }
    sgm__free(list);
}

/* The names of the external criteria, each once; NULL: out of memory. */
static char **buttons_of(const sgm_hook *hook)
{
    const char *button;
    size_t most = 0, count = 0;
    while (sgm_criteria_external_at(hook->criteria, most))
        most++;
    char **buttons = sgm__calloc(most + 1, sizeof *buttons);
    for (size_t i = 0; buttons && (button = sgm_criteria_external_at(hook->criteria, i)); i++) {
        size_t known = 0;
        while (known < count && strcmp(buttons[known], button) != 0)
            known++;
        if (known < count)
            continue;
        if (!(buttons[count++] = sgm__strdup(button))) {
            free_buttons(buttons);
            return NULL;
        }
    }
    return buttons;
}

/* With the holder's lock, without that of the hook: options and criteria's structure do not change.
 * `seconds` is the mean of a run. */
static sgm_status describe(const sgm__hook_entry *entry, sgm_attached_hook *to)
{
    char buffer[LONGEST_NAME];
    const sgm_hook *hook = entry->hook;
    long long runs = atomic_load(&entry->runs);
    to->name = sgm__strdup(name_of(entry, buffer));
    to->when = sgm__strdup(sgm_time_step_text(&hook->when, buffer, sizeof buffer));
    to->condition = hook->criteria ? sgm_criteria_text(hook->criteria, &hook->when) : sgm__strdup("");
    to->text = sgm__strdup(hook->text ? hook->text : "");
    to->buttons = buttons_of(hook);
    to->background = entry->background;
    to->due = entry->count.used;
    to->runs = runs;
    to->seconds = runs > 0 ? (double)atomic_load(&entry->nanoseconds) / 1e9 / (double)runs : 0;
    return to->name && to->when && to->condition && to->text && to->buttons ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Each entry is described in full or the whole list is freed. */
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

/* The stored hook with a text whose number is the next one behind `after`; NULL: there is none. */
static const sgm__hook_entry *next_stored(const sgm__hooks *hooks, int64_t after)
{
    const sgm__hook_entry *next = NULL;
    for (size_t i = 0; i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->stored && entry->hook->text && entry->number > after &&
            (!next || entry->number < next->number))
            next = entry;
    }
    return next;
}

/* In the order of attachment in the whole run: in a process that has resumed, the program's hooks come first
 * among the entries. */
sgm_status sgm__hooks_stored(sgm__hooks *hooks, char ***texts, size_t *count)
{
    const sgm__hook_entry *entry;
    *count = 0;
    pthread_mutex_lock(&hooks->lock);
    *texts = sgm__calloc(hooks->count + 1, sizeof **texts);
    sgm_status status = *texts ? SGM_OK : SGM_ERROR_MEMORY;
    for (int64_t after = -1; status == SGM_OK && (entry = next_stored(hooks, after)); after = entry->number) {
        char *copy = sgm__strdup(entry->hook->text);
        if (copy)
            (*texts)[(*count)++] = copy;
        else
            status = SGM_ERROR_MEMORY;
    }
    pthread_mutex_unlock(&hooks->lock);
    return status;
}

/* --- back to the beginning --- */

/* The next early hook whose life is over, retained, and its number; its record is removed. NULL: there is
 * none. */
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

/* Gives a hook that was just attached its old number, and moves it to its old place among `entries`. */
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

/* The hook with the next number behind *after, retained; its count begins anew. Counts of starts, pauses
 * and resets go on, as a reset begins epochs and iterations anew, but not the run. */
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

/* Called by the training's thread. First the hooks whose life is over come back to their places, then each
 * hook gets its first state, without the holder's lock, as that calls the type's functions. */
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
