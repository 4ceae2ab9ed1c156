/* What a program has set up of hooks, as a checkpoint has it: texts, from which the hooks can be made anew,
 * and the types of those that no text describes.
 *
 * Hooks whose life is over, and those that somebody took off, are in the list as well: the state of hooks
 * knows them, and takes them off again when it is set (hooks_state.c). Hooks that were attached by text while
 * the trainer ran are in a list of their own (sgm__hooks_stored). */
#include "hooks/hooks_internal.h"

#include <stdlib.h>

/* A hook's place in the order of attachment, with its text or the name of its type. The text is the holder's.
 */
typedef struct place {
    int64_t number;
    const char *text, *name;
} place;

static int compare_places(const void *a, const void *b)
{
    int64_t one = ((const place *)a)->number, other = ((const place *)b)->number;
    return (one > other) - (one < other);
}

/* Whether a hook that is attached now, and that a checkpoint brings by itself, has this text. */
static bool is_stored(const sgm__hooks *hooks, const char *text)
{
    for (size_t i = 0; i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->stored && entry->hook->text && strcmp(entry->hook->text, text) == 0)
            return true;
    }
    return false;
}

/* Hooks that only others require come with those. With the lock; the list has room for all. */
static size_t list_places(const sgm__hooks *hooks, place *list)
{
    size_t count = 0;
    for (size_t i = 0; i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->chosen && !entry->stored)
            list[count++] = (place){entry->number, entry->hook->text, entry->hook->type->name};
    }
    for (size_t i = 0; i < hooks->gone_count; i++) {
        const sgm__gone *gone = &hooks->gone[i];
        if (gone->entry && gone->entry->hook->text)
            list[count++] = (place){gone->number, gone->entry->hook->text, NULL};
    }
    for (size_t i = 0; i < hooks->taken_off_count; i++)
        list[count++] = (place){hooks->taken_off[i].number, hooks->taken_off[i].text, NULL};
    qsort(list, count, sizeof *list, compare_places);
    return count;
}

/* Appends a copy to a list, which grows by one. */
static sgm_status append(char ***list, size_t *count, const char *text)
{
    char **grown = sgm__realloc(*list, (*count + 1) * sizeof *grown);
    if (!grown)
        return SGM_ERROR_MEMORY;
    *list = grown;
    grown[*count] = sgm__strdup(text);
    if (!grown[*count])
        return SGM_ERROR_MEMORY;
    ++*count;
    return SGM_OK;
}

static bool is_listed(const sgm__hooks_setup *setup, const char *text)
{
    for (size_t i = 0; i < setup->text_count; i++)
        if (strcmp(setup->texts[i], text) == 0)
            return true;
    return false;
}

/* With the lock, which guards the texts of places. */
static sgm_status add_place(const sgm__hooks *hooks, const place *one, sgm__hooks_setup *setup)
{
    if (!one->text)
        return append(&setup->names, &setup->name_count, one->name);
    if (is_stored(hooks, one->text) || is_listed(setup, one->text))
        return SGM_OK;
    return append(&setup->texts, &setup->text_count, one->text);
}

sgm_status sgm__hooks_set_up(sgm__hooks *hooks, sgm__hooks_setup *setup)
{
    pthread_mutex_lock(&hooks->lock);
    place *list = sgm__calloc(hooks->count + hooks->gone_count + hooks->taken_off_count + 1, sizeof *list);
    sgm_status status = list ? SGM_OK : SGM_ERROR_MEMORY;
    size_t count = list ? list_places(hooks, list) : 0;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = add_place(hooks, &list[i], setup);
    pthread_mutex_unlock(&hooks->lock);
    sgm__free(list);
    return status;
}

void sgm__hooks_setup_clear(sgm__hooks_setup *setup)
{
    for (size_t i = 0; i < setup->text_count; i++)
        sgm__free(setup->texts[i]);
    for (size_t i = 0; i < setup->name_count; i++)
        sgm__free(setup->names[i]);
    sgm__free(setup->texts);
    sgm__free(setup->names);
    *setup = (sgm__hooks_setup){0};
}
