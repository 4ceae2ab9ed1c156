/* Keeps observers, functions of the program that are called when an entry was set.
 *
 * An observer belongs to the registry that sgm_registry_observe was called with, and sees changes there and
 * below. A set collects the observers of the entry's registry and of all registries above it with the tree's
 * lock (sgm__calls_collect, called by change.c), and calls them afterwards without any lock (sgm__calls_run),
 * on the setter's thread. So an observer may itself use the registry. Two counts make that safe: references
 * keep the struct alive while a call is pending, `running` lets sgm_registry_unobserve wait until no call
 * uses the program's `user` any more. `calls` guards the second; it is never held while the function runs. */
#include "registry/registry_internal.h"

/* Sets out of observers are told to observers, too. Beyond this depth they are not: two observers that set
 * each other's entries would otherwise recurse until the stack ends. */
#define MAXIMUM_NESTED 32

/* Counted: one reference is the registry's list's, one each pending call's. */
struct sgm__observer {
    atomic_size_t references;
    int64_t id;
    sgm__identifier *identifier;
    sgm_observer_function function;
    void *user;
    bool read_only; /* observes through a read-only view, and is shown views only */
    /* Guarded by `calls`, below. */
    bool ended;
    size_t running;
};

/* One lock and one condition for all observers of the process: they are held for a few instructions, and only
 * sgm__observer_end waits. */
static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static _Atomic int64_t newest_id;
static _Thread_local int nested; /* observers that run on this thread */

void sgm__observer_release(sgm__observer *observer)
{
    if (observer == NULL || atomic_fetch_sub(&observer->references, 1) != 1)
        return;
    sgm__identifier_free(observer->identifier);
    sgm__free(observer);
}

/* A thread that is inside an observer must not wait for another observer, which may be waiting for this one;
 * it must not wait for itself either. */
void sgm__observer_end(sgm__observer *observer)
{
    pthread_mutex_lock(&calls);
    observer->ended = true;
    while (nested == 0 && observer->running > 0)
        pthread_cond_wait(&call_ended, &calls);
    pthread_mutex_unlock(&calls);
}

/* False: the observer has ended since the call was collected. */
static bool begin_call(sgm__observer *observer)
{
    pthread_mutex_lock(&calls);
    bool begins = !observer->ended;
    observer->running += begins;
    pthread_mutex_unlock(&calls);
    return begins;
}

static void end_call(sgm__observer *observer)
{
    pthread_mutex_lock(&calls);
    observer->running--;
    pthread_cond_broadcast(&call_ended);
    pthread_mutex_unlock(&calls);
}

/* Replaces a registry by its read-only view for an observer of a view, which could set through it otherwise.
 */
static sgm_content as_seen(const sgm__observer *observer, const sgm_content *content)
{
    sgm_content seen = *content;
    if (seen.kind == SGM_KIND_REGISTRY && observer->read_only)
        seen.as.registry = &content->as.registry->core->view;
    return seen;
}

void sgm__calls_run(const sgm__notifications *list, const sgm_content *before, const sgm_content *after)
{
    if (list->count > 0 && nested == MAXIMUM_NESTED) {
        sgm__log(SGM_LOG_WARNING, "registry", "%s: observers set each other without an end; stopped at %d",
                 list->items[0].identifier, MAXIMUM_NESTED);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        sgm__observer *observer = list->items[i].observer;
        if (!begin_call(observer))
            continue;
        sgm_content seen_before = as_seen(observer, before), seen_after = as_seen(observer, after);
        nested++;
        observer->function(observer->user, list->items[i].identifier, &seen_before, &seen_after);
        nested--;
        end_call(observer);
    }
}

void sgm__calls_clear(sgm__notifications *list)
{
    for (size_t i = 0; i < list->count; i++) {
        sgm__observer_release(list->items[i].observer);
        sgm__free(list->items[i].identifier);
    }
    sgm__free(list->items);
    *list = (sgm__notifications){0};
}

/* --- finding the observers of a change --- */

/* The way from an entry up to a registry above it: names[0] and children[0] are the entry's, the last ones
 * those of the level just below. children[i] is the registry that the entry names[i] holds. */
typedef struct way {
    const char *names[SGM__MAXIMUM_LEVELS + 1];
    const sgm__core *children[SGM__MAXIMUM_LEVELS + 1];
    size_t count;
    bool is_registry; /* the kind of the entry itself; all others on the way are registries */
} way;

/* An identifier begins at the top and a way at the bottom, so indices run in opposite directions. */
static bool is_observed(const sgm__observer *observer, const way *path)
{
    if (observer->identifier->count != path->count)
        return false;
    for (size_t level = 0; level < path->count; level++) {
        size_t i = path->count - 1 - level;
        if (!sgm__identifier_matches(observer->identifier, level, path->names[i], path->children[i],
                                     i > 0 || path->is_registry))
            return false;
    }
    return true;
}

static sgm_status add_call(sgm__notifications *list, sgm__observer *observer, const way *path)
{
    sgm__text text = {0};
    SGM_TRY(sgm__reserve(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    for (size_t i = path->count; i-- > 0;)
        sgm__text_append(&text, "%s%s", path->names[i], i > 0 ? "." : "");
    char *identifier = sgm__text_take(&text);
    if (identifier == NULL)
        return SGM_ERROR_MEMORY;
    atomic_fetch_add(&observer->references, 1);
    list->items[list->count++] = (sgm__notification){observer, identifier};
    return SGM_OK;
}

/* Goes up from the entry's registry to the root; at each level the way so far is the entry's identifier
 * relative to that registry. */
sgm_status sgm__calls_collect(sgm__notifications *list, const sgm__core *core, const char *name,
                              const sgm__core *child, bool is_registry)
{
    way path = {.is_registry = is_registry};
    path.names[0] = name;
    path.children[0] = child;
    path.count = 1;
    for (;;) {
        for (size_t i = 0; i < core->observer_count; i++)
            if (is_observed(core->observers[i], &path))
                SGM_TRY(add_call(list, core->observers[i], &path));
        if (core->parent == NULL)
            return SGM_OK;
        path.names[path.count] = core->place->name;
        path.children[path.count++] = core;
        core = core->parent;
    }
}

/* --- observing --- */

/* Whether the identifier leads, without wildcards, to a single bound entry that cannot be set. Its value
 * changes where it lives, without a set, so the observer would never be called. With the lock. */
static bool is_only_read(const sgm__core *core, const sgm__identifier *identifier)
{
    const sgm__entry *entry = NULL;
    for (size_t level = 0; level < identifier->count && core != NULL; level++) {
        entry = identifier->parts[level].tag_count == 0
                    ? sgm__core_find(core, identifier->parts[level].pattern)
                    : NULL;
        if (entry == NULL)
            return false;
        core = sgm__entry_child(entry);
        if (core == NULL && level + 1 < identifier->count)
            return false;
    }
    return entry != NULL && entry->binding.get != NULL && entry->binding.set == NULL;
}

/* *id is written before other threads can see the observer: its first call may come at once, and may use the
 * id. */
sgm_status sgm_registry_observe(sgm_registry *root, const char *identifier, sgm_observer_function function,
                                void *user, int64_t *id)
{
    if (root == NULL || function == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry to observe and a function, got NULL");
    sgm__identifier *parsed;
    SGM_TRY(sgm__identifier_parse(identifier, &parsed));
    sgm__observer *observer = sgm__calloc(1, sizeof *observer);
    if (observer == NULL) {
        sgm__identifier_free(parsed);
        return SGM_ERROR_MEMORY;
    }
    atomic_init(&observer->references, 1);
    observer->id = atomic_fetch_add(&newest_id, 1) + 1;
    observer->identifier = parsed;
    observer->function = function;
    observer->user = user;
    observer->read_only = root->read_only;
    if (id != NULL)
        *id = observer->id;
    sgm__core *core = root->core;
    sgm__tree *tree = sgm__tree_lock(core);
    bool only_read = is_only_read(core, parsed);
    sgm_status status = only_read ? SGM_ERROR_UNSUPPORTED
                                  : sgm__reserve(&core->observers, &core->observer_capacity,
                                                 core->observer_count + 1, sizeof *core->observers);
    if (status == SGM_OK)
        core->observers[core->observer_count++] = observer;
    sgm__tree_unlock(tree);
    if (only_read)
        sgm_fail(
            status,
            "%s is computed where it lives, and changes without being set: nobody would be told; read it in "
            "a hook instead",
            parsed->text);
    if (status != SGM_OK)
        sgm__observer_release(observer);
    return status;
}

/* Takes the observer out of the list with the lock, and waits for running calls without it. */
void sgm_registry_unobserve(sgm_registry *root, int64_t id)
{
    if (root == NULL)
        return;
    sgm__core *core = root->core;
    sgm__observer *found = NULL;
    sgm__tree *tree = sgm__tree_lock(core);
    for (size_t i = 0; i < core->observer_count && found == NULL; i++) {
        if (core->observers[i]->id != id)
            continue;
        found = core->observers[i];
        core->observer_count--;
        memmove(core->observers + i, core->observers + i + 1,
                (core->observer_count - i) * sizeof *core->observers);
    }
    sgm__tree_unlock(tree);
    if (found != NULL) {
        sgm__observer_end(found);
        sgm__observer_release(found);
    }
}
