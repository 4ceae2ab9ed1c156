/* Sets entries, one or many at once, and puts children into registries.
 *
 * Four steps: a change is made (sgm__change_make: entry found, content checked and copied), prepared
 * (prepare: everything else that can fail), assigned (assign: nothing can fail any more) and told to the
 * observers (tell). Made, prepared and assigned is with the tree's lock, for all changes of a call before the
 * next step, so that other threads see all of them or none. Bound entries are set in between and without the
 * lock, since their functions belong to the program; if a later step fails, they are set back. Callers:
 * sgm_registry_set and sgm_registry_put here, sgm_registry_resolve_set in resolver.c. */
#include "registry/registry_internal.h"

#include <stdio.h>

static bool is_bound(const sgm__change *change)
{
    return change->entry->binding.get != NULL;
}

/* A new entry has no row, and the kind of its content. The value is copied in the entry's kind, so that
 * nothing of the caller's is needed later. */
sgm_status sgm__change_make(sgm__change *change, sgm__core *core, const char *name, bool own,
                            const sgm_content *content)
{
    sgm_content value = *content;
    sgm__entry *entry = sgm__core_find(core, name);
    sgm__core_retain(core);
    change->core = core;
    change->add = entry == NULL;
    change->entry = entry != NULL ? sgm__entry_retain(entry) : sgm__entry_create(name, NULL, content->kind);
    if (change->entry == NULL)
        return SGM_ERROR_MEMORY;
    if (entry != NULL)
        SGM_TRY(sgm__entry_check(core, entry, own, content, &value));
    return sgm__content_copy(&value, false, &change->value);
}

/* Without the lock: releasing contents and entries may call functions of the program. */
void sgm__change_clear(sgm__change *change)
{
    sgm_content_clear(&change->value);
    sgm_content_clear(&change->before);
    sgm_content_clear(&change->after);
    sgm__calls_clear(&change->calls);
    sgm__entry_release(change->entry);
    sgm__core_release(change->core);
    *change = (sgm__change){0};
}

/* Called after bindings were set, and therefore after the lock was perhaps released for a while: an entry
 * that has gone meanwhile, or a registry that was moved to another tree, is skipped and keeps its new state.
 * The copy `after` for the observers is made only if there are observers, as assign() gives the value itself
 * away. */
static sgm_status prepare(sgm__change *change, const sgm__tree *tree)
{
    sgm__core *core = change->core;
    sgm__entry *entry = change->entry;
    bool is_registry = entry->kind == SGM_KIND_REGISTRY;
    change->skipped = atomic_load(&core->tree) != tree || entry->gone ||
                      (change->add && sgm__core_find(core, entry->name) != NULL);
    if (change->skipped)
        return SGM_OK;
    if (is_bound(change))
        change->has_changed = !sgm__content_same(&change->before, &change->after);
    else
        change->has_changed = change->add || !sgm__content_same(&entry->content, &change->value);
    if (!change->has_changed)
        return SGM_OK;
    if (change->add)
        SGM_TRY(sgm__core_reserve(core, 1));
    SGM_TRY(sgm__calls_collect(&change->calls, core, entry->name,
                               is_registry ? change->value.as.registry->core : NULL, is_registry));
    if (change->calls.count > 0 && !is_bound(change))
        SGM_TRY(sgm__content_copy(&change->value, false, &change->after));
    return SGM_OK;
}

/* Exchanges the contents; the old one is in `before`, which sgm__change_clear frees without the lock. Keeps
 * the links between parent and child, and the tree's generation, up to date. */
static void assign(sgm__change *change, sgm__tree *tree)
{
    sgm__entry *entry = change->entry;
    if (change->skipped || !change->has_changed || is_bound(change))
        return;
    sgm__core *old = sgm__entry_child(entry);
    change->before = entry->content;
    entry->content = change->value;
    change->value = (sgm_content){0};
    sgm__core *child = sgm__entry_child(entry);
    if (old != NULL) {
        old->parent = NULL;
        old->place = NULL;
    }
    if (child != NULL) {
        child->parent = change->core;
        child->place = entry;
    }
    if (change->add)
        sgm__core_add(change->core, entry);
    if (change->add || child != NULL)
        sgm__tree_changed(tree);
}

/* Without the lock, and after everything was set: an observer sees all changes of the call. */
static void tell(const sgm__change *change)
{
    if (change->has_changed && !change->skipped)
        sgm__calls_run(&change->calls, &change->before, &change->after);
}

/* --- bindings --- */

/* Gives the first `count` bound entries the values that they had before. The newest error is saved around
 * that, as it says why. */
static void set_back(sgm__change *changes, size_t count, sgm_status status)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    for (size_t i = 0; i < count; i++) {
        sgm__change *change = &changes[i];
        if (is_bound(change) && change->before.kind != SGM_KIND_NOTHING)
            change->entry->binding.set(change->entry->binding.user, &change->before);
    }
    sgm_fail(status, "%s", message);
}

/* Puts the whole identifier in front of the failure; finding it out needs the lock. */
static void fail_set(const sgm__change *change, sgm_status status)
{
    char path[SGM__MAXIMUM_TEXT];
    sgm__tree *tree = sgm__tree_lock(change->core);
    sgm__core_path(change->core, change->entry->name, path);
    sgm__tree_unlock(tree);
    sgm__fail_binding(path, status);
}

/* Reads all old values before it sets the first one, for set_back and for the observers; an entry that cannot
 * be read is therefore not set. Reads each again after its set, because a binding may round or limit the
 * value. Without the lock. */
static sgm_status set_bindings(sgm__change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_bound(&changes[i]))
            SGM_TRY(sgm__entry_read(changes[i].entry, changes[i].entry->name, &changes[i].before));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++) {
        sgm__change *change = &changes[i];
        if (!is_bound(change))
            continue;
        status = change->entry->binding.set(change->entry->binding.user, &change->value);
        if (status == SGM_OK)
            status = sgm__entry_read(change->entry, change->entry->name, &change->after);
        else
            fail_set(change, status);
        if (status != SGM_OK)
            set_back(changes, i + 1, status);
    }
    return status;
}

/* If bindings were set and preparing fails afterwards (out of memory), they are set back as well. */
sgm_status sgm__changes_commit(sgm__core *root, sgm__tree *tree, sgm__change *changes, size_t count)
{
    bool any_bound = false;
    for (size_t i = 0; i < count; i++)
        any_bound = any_bound || is_bound(&changes[i]);
    if (any_bound) {
        sgm__tree_unlock(tree);
        SGM_TRY(set_bindings(changes, count));
        tree = sgm__tree_lock(root);
    }
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = prepare(&changes[i], tree);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        assign(&changes[i], tree);
    sgm__tree_unlock(tree);
    if (status != SGM_OK) {
        set_back(changes, count, status);
        return status;
    }
    for (size_t i = 0; i < count; i++)
        tell(&changes[i]);
    return SGM_OK;
}

/* --- putting --- */

/* The number of levels of registries below this one. With the lock. */
static size_t levels_below(const sgm__core *core)
{
    size_t maximum = 0;
    for (size_t i = 0; i < core->entry_count; i++) {
        const sgm__core *child = sgm__entry_child(core->entries[i]);
        size_t levels = child != NULL ? 1 + levels_below(child) : 0;
        maximum = levels > maximum ? levels : maximum;
    }
    return maximum;
}

/* Putting a child where it lies already changes nothing, and is no error. */
static bool is_there(const sgm__core *core, const char *name, const sgm__core *child)
{
    return child->parent == core && strcmp(child->place->name, name) == 0;
}

/* A tree has no circles, so a registry must not be put below itself; each has at most one parent; and the
 * depth is bounded. With both trees' locks. */
static sgm_status check_place(const sgm__core *core, const char *name, const sgm__core *child)
{
    char path[SGM__MAXIMUM_TEXT], wanted[SGM__MAXIMUM_TEXT];
    sgm__core_path(core, name, wanted);
    if (child->parent != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%s: expected a registry without a parent, got '%s'; remove it there first", wanted,
                        sgm__core_path(child, NULL, path));
    size_t levels = 1;
    for (;; core = core->parent, levels++) {
        if (core == child)
            return sgm_fail(SGM_ERROR_ARGUMENT, "%s: a registry cannot be put into itself", wanted);
        if (core->parent == NULL)
            break;
    }
    if (levels + levels_below(child) >= SGM__MAXIMUM_LEVELS)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: registries can be nested %d levels deep", wanted,
                        SGM__MAXIMUM_LEVELS);
    return SGM_OK;
}

/* Moves the child to the parent's tree after the last step that can fail, and before the entry shows it. */
static sgm_status put_locked(sgm__change *change, sgm__core *core, const char *name, bool own,
                             sgm_registry *child, sgm__tree *tree)
{
    sgm_content content = sgm_registry_content(child);
    SGM_TRY(check_place(core, name, child->core));
    SGM_TRY(sgm__change_make(change, core, name, own, &content));
    SGM_TRY(prepare(change, tree));
    sgm__tree_move(tree, child->core);
    assign(change, tree);
    return SGM_OK;
}

/* Two locks are needed, as the child's tree is merged into the parent's. */
static sgm_status put(sgm__core *core, const char *name, bool own, sgm_registry *child)
{
    if (child == NULL || child->read_only)
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': expected a registry to put, got %s", name,
                        child == NULL ? "NULL" : "a read-only view of one");
    sgm__tree *tree, *other;
    sgm__change change = {0};
    sgm_status status = SGM_OK;
    sgm__tree_lock_two(core, child->core, &tree, &other);
    if (!is_there(core, name, child->core))
        status = put_locked(&change, core, name, own, child, tree);
    sgm__tree_unlock_two(tree, other);
    if (status == SGM_OK)
        tell(&change);
    sgm__change_clear(&change);
    return status;
}

sgm_status sgm_registry_put(sgm_registry *registry, const char *name, sgm_registry *child)
{
    sgm__core *core;
    SGM_TRY(sgm__writable(registry, &core));
    SGM_TRY(sgm__check_name("name", name));
    return put(core, name, true, child);
}

/* --- setting --- */

/* A registry as content is a put; everything else is a single change. */
static sgm_status set(sgm_registry *registry, const char *name, bool own, sgm_content content)
{
    sgm__core *core;
    sgm__change change = {0};
    SGM_TRY(sgm__writable(registry, &core));
    SGM_TRY(sgm__check_name("name", name));
    if (sgm__content_check(&content) != SGM_OK)
        return sgm__fail_within("%s", name);
    if (content.kind == SGM_KIND_REGISTRY)
        return put(core, name, own, content.as.registry);
    sgm__tree *tree = sgm__tree_lock(core);
    sgm_status status = sgm__change_make(&change, core, name, own, &content);
    if (status == SGM_OK)
        status = sgm__changes_commit(core, tree, &change, 1);
    else
        sgm__tree_unlock(tree);
    sgm__change_clear(&change);
    return status;
}

sgm_status sgm_registry_set(sgm_registry *registry, const char *name, sgm_content content)
{
    return set(registry, name, false, content);
}

sgm_status sgm_registry_set_own(sgm_registry *registry, const char *name, sgm_content content)
{
    return set(registry, name, true, content);
}
