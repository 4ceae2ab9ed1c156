/* Implements registries: creating and freeing, tags, getting, lists of names, paths.
 *
 * A registry is a core (registry_internal.h) that the program knows by one of two handles, writable and
 * read-only. References are counted over both handles; entries hold one reference to a child. When the last
 * reference goes, children that live on become roots of their own. Functions here take the tree's lock for as
 * long as a copy takes; values of bound entries are read after it is released. */
#include "registry/registry_internal.h"

#include <stdio.h>

/* --- life --- */

/* A new registry is a tree of its own, until it is put somewhere. */
sgm_registry *sgm_registry_create(void)
{
    sgm__core *core = sgm__calloc(1, sizeof *core);
    sgm__tree *tree = core != NULL ? sgm__tree_create() : NULL;
    if (tree == NULL) {
        sgm__free(core);
        return NULL;
    }
    core->own.core = core->view.core = core;
    core->view.read_only = true;
    atomic_init(&core->references, 1);
    atomic_init(&core->tree, tree);
    return &core->own;
}

void sgm__core_retain(sgm__core *core)
{
    atomic_fetch_add(&core->references, 1);
}

/* Cuts the links of the children to this core, which is about to be freed. It needs the lock although no
 * reference to the core is left: another thread may come up from a child (sgm__core_path, observers). */
static void let_children_go(sgm__core *core)
{
    sgm__tree *tree = sgm__tree_lock(core);
    for (size_t i = 0; i < core->entry_count; i++) {
        sgm__core *child = sgm__entry_child(core->entries[i]);
        core->entries[i]->gone = true;
        if (child != NULL) {
            child->parent = NULL;
            child->place = NULL;
        }
    }
    sgm__tree_changed(tree);
    sgm__tree_unlock(tree);
}

/* Without the lock. Observers end before the entries are released: after the registry is freed none of their
 * functions runs. */
void sgm__core_release(sgm__core *core)
{
    if (core == NULL || atomic_fetch_sub(&core->references, 1) != 1)
        return;
    let_children_go(core);
    for (size_t i = 0; i < core->observer_count; i++) {
        sgm__observer_end(core->observers[i]);
        sgm__observer_release(core->observers[i]);
    }
    for (size_t i = 0; i < core->entry_count; i++)
        sgm__entry_release(core->entries[i]);
    for (size_t i = 0; i < core->tag_count; i++)
        sgm__free(core->tags[i]);
    sgm__free(core->observers);
    sgm__name_index_free(&core->index);
    sgm__free(core->entries);
    sgm__free(core->tags);
    sgm__tree_release(atomic_load(&core->tree));
    sgm__free(core);
}

/* Any thread. A view and its registry share one count. */
sgm_registry *sgm_registry_retain(sgm_registry *registry)
{
    if (registry != NULL)
        sgm__core_retain(registry->core);
    return registry;
}

void sgm_registry_free(sgm_registry *registry)
{
    if (registry != NULL)
        sgm__core_release(registry->core);
}

/* The other handle of the same core, with a reference of its own; sgm_registry_free drops it. */
sgm_registry *sgm_registry_create_read_only(sgm_registry *registry)
{
    if (registry == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry to view, got NULL");
        return NULL;
    }
    sgm__core_retain(registry->core);
    return &registry->core->view;
}

/* --- inside --- */

static sgm_status check_registry(const sgm_registry *registry)
{
    return registry != NULL ? SGM_OK : sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry, got NULL");
}

sgm_status sgm__writable(sgm_registry *registry, sgm__core **core)
{
    SGM_TRY(check_registry(registry));
    if (registry->read_only)
        return sgm_fail(SGM_ERROR_STATE, "this is a read-only view of a registry: nothing can be set in it");
    *core = registry->core;
    return SGM_OK;
}

/* NULL: there is none. With the lock. */
sgm__entry *sgm__core_find(const sgm__core *core, const char *name)
{
    uintptr_t entry;
    return sgm__name_index_find(&core->index, name, &entry) ? (sgm__entry *)entry : NULL;
}

/* Registries have few tags, so they are searched. With the lock. */
bool sgm__core_has_tag(const sgm__core *core, const char *tag)
{
    for (size_t i = 0; i < core->tag_count; i++)
        if (strcmp(core->tags[i], tag) == 0)
            return true;
    return false;
}

/* The list keeps the order of definition, the index finds names; both need room. */
sgm_status sgm__core_reserve(sgm__core *core, size_t more)
{
    SGM_TRY(
        sgm__reserve(&core->entries, &core->entry_capacity, core->entry_count + more, sizeof *core->entries));
    return sgm__name_index_reserve(&core->index, more);
}

/* Cannot fail, so that a change of several registries is made as a whole or not at all. */
void sgm__core_add(sgm__core *core, sgm__entry *entry)
{
    core->entries[core->entry_count++] = sgm__entry_retain(entry);
    sgm__name_index_add(&core->index, entry->name, (uintptr_t)entry);
}

/* Writes a name and a dot before buffer[*start], as the way leads from the leaf to the root. If it does not
 * fit, "..." takes its place and the result is false; three bytes are always left for that. */
static bool put_before(char *buffer, size_t *start, const char *name)
{
    size_t length = strlen(name) + (buffer[*start] != '\0');
    if (length + 3 > *start) {
        *start -= 3;
        memcpy(buffer + *start, "...", 3);
        return false;
    }
    if (buffer[*start] != '\0')
        buffer[*start - 1] = '.';
    *start -= length;
    memcpy(buffer + *start, name, strlen(name));
    return true;
}

/* Built from the end of the buffer towards its beginning, then moved to the front. */
char *sgm__core_path(const sgm__core *core, const char *name, char buffer[SGM__MAXIMUM_TEXT])
{
    size_t start = SGM__MAXIMUM_TEXT - 1;
    buffer[start] = '\0';
    bool fits = name == NULL || put_before(buffer, &start, name);
    for (; core->parent != NULL && fits; core = core->parent)
        fits = put_before(buffer, &start, core->place->name);
    memmove(buffer, buffer + start, SGM__MAXIMUM_TEXT - start);
    return buffer;
}

/* Without memory for the names the status is SGM_ERROR_MEMORY. */
sgm_status sgm__no_entry(const sgm__core *core, const char *name)
{
    char path[SGM__MAXIMUM_TEXT];
    const char **names = sgm__calloc(core->entry_count, sizeof *names);
    if (names == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < core->entry_count; i++)
        names[i] = core->entries[i]->name;
    const char *nearest = sgm__nearest(name, names, core->entry_count);
    sgm_status status = sgm_fail(SGM_ERROR_NOT_FOUND, "there is no entry '%s'%s%s%s",
                                 sgm__core_path(core, name, path), nearest != NULL ? "; did you mean '" : "",
                                 nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    sgm__free((void *)names);
    return status;
}

/* --- tags --- */

/* The copy is made before the lock is taken, and freed after it is released if the tag was known. */
sgm_status sgm_registry_add_tag(sgm_registry *registry, const char *tag)
{
    sgm__core *core = NULL;
    SGM_TRY(sgm__writable(registry, &core));
    SGM_TRY(sgm__check_name("tag", tag));
    char *copy = sgm__strdup(tag);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = SGM_OK;
    sgm__tree *tree = sgm__tree_lock(core);
    if (!sgm__core_has_tag(core, tag)) {
        status = sgm__reserve(&core->tags, &core->tag_capacity, core->tag_count + 1, sizeof *core->tags);
        if (status == SGM_OK) {
            core->tags[core->tag_count++] = copy;
            copy = NULL;
            sgm__tree_changed(tree);
        }
    }
    sgm__tree_unlock(tree);
    sgm__free(copy);
    return status;
}

/* Without a registry or a tag: false, with no error. */
bool sgm_registry_has_tag(sgm_registry *registry, const char *tag)
{
    if (registry == NULL || tag == NULL)
        return false;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    bool has = sgm__core_has_tag(registry->core, tag);
    sgm__tree_unlock(tree);
    return has;
}

/* --- getting --- */

/* A bound entry is retained, and read after the lock is released. */
sgm_status sgm_registry_get(sgm_registry *registry, const char *name, sgm_content *content)
{
    if (content == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a content to get into, got NULL");
    *content = (sgm_content){0};
    SGM_TRY(check_registry(registry));
    SGM_TRY(sgm__check_name("name", name));
    sgm__entry *bound = NULL;
    sgm_status status = SGM_OK;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    sgm__entry *entry = sgm__core_find(registry->core, name);
    if (entry == NULL)
        status = sgm__no_entry(registry->core, name);
    else if (entry->binding.get != NULL)
        bound = sgm__entry_retain(entry);
    else
        status = sgm__content_copy(&entry->content, registry->read_only, content);
    sgm__tree_unlock(tree);
    if (bound != NULL) {
        status = sgm__entry_read(bound, name, content);
        sgm__entry_release(bound);
    }
    return status;
}

/* Gets a content in this kind. Numbers and integers own nothing, so *value stays valid when the content is
 * cleared. */
static sgm_status get_kind(sgm_registry *registry, const char *name, sgm_kind kind, sgm_content *value)
{
    char path[SGM__MAXIMUM_TEXT];
    sgm_content content;
    SGM_TRY(sgm_registry_get(registry, name, &content));
    sgm__tree *tree = sgm__tree_lock(registry->core);
    sgm__core_path(registry->core, name, path);
    sgm__tree_unlock(tree);
    sgm_status status = sgm__kind_convert(kind, path, &content, value);
    sgm_content_clear(&content);
    return status;
}

/* An integer is converted; texts and booleans are not. */
sgm_status sgm_registry_get_number(sgm_registry *registry, const char *name, double *value)
{
    sgm_content content;
    if (value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a number to get into, got NULL");
    SGM_TRY(get_kind(registry, name, SGM_KIND_NUMBER, &content));
    *value = content.as.number;
    return SGM_OK;
}

sgm_status sgm_registry_get_integer(sgm_registry *registry, const char *name, int64_t *value)
{
    sgm_content content;
    if (value == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected an integer to get into, got NULL");
    SGM_TRY(get_kind(registry, name, SGM_KIND_INTEGER, &content));
    *value = content.as.integer;
    return SGM_OK;
}

/* Also true for an entry that has no value at the moment. */
bool sgm_registry_has(sgm_registry *registry, const char *name)
{
    if (registry == NULL || name == NULL)
        return false;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    bool has = sgm__core_find(registry->core, name) != NULL;
    sgm__tree_unlock(tree);
    return has;
}

/* The row outlives the entry (a static table), so the pointer is valid without the lock. */
const sgm_option *sgm_registry_option(sgm_registry *registry, const char *name)
{
    if (registry == NULL || name == NULL)
        return NULL;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    const sgm__entry *entry = sgm__core_find(registry->core, name);
    const sgm_option *option = entry != NULL ? entry->option : NULL;
    sgm__tree_unlock(tree);
    return option;
}

/* The number may be outdated when the caller sees it, unless the caller alone changes the registry. */
size_t sgm_registry_count(sgm_registry *registry)
{
    if (registry == NULL)
        return 0;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    size_t count = registry->core->entry_count;
    sgm__tree_unlock(tree);
    return count;
}

typedef const char *(*text_function)(const sgm__core *core, size_t index);

static const char *entry_name(const sgm__core *core, size_t index)
{
    return index < core->entry_count ? core->entries[index]->name : NULL;
}

static const char *tag_name(const sgm__core *core, size_t index)
{
    return index < core->tag_count ? core->tags[index] : NULL;
}

/* Copies all texts that text() gives for 0, 1, ... until it returns NULL, with the lock. */
static sgm_status copy_texts(sgm_registry *registry, text_function text, char ***texts, size_t *count)
{
    if (texts == NULL || count == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected where to put names and their count, got NULL");
    *texts = NULL;
    *count = 0;
    SGM_TRY(check_registry(registry));
    sgm__tree *tree = sgm__tree_lock(registry->core);
    size_t done = 0, all = 0;
    while (text(registry->core, all) != NULL)
        all++;
    char **made = sgm__calloc(all, sizeof *made);
    for (; made != NULL && done < all; done++) {
        made[done] = sgm__strdup(text(registry->core, done));
        if (made[done] == NULL)
            break;
    }
    sgm__tree_unlock(tree);
    if (made == NULL || done < all) {
        sgm_names_free(made, done);
        return SGM_ERROR_MEMORY;
    }
    *texts = made;
    *count = all;
    return SGM_OK;
}

/* The copies belong to the caller, so the registry may change while they are used. */
sgm_status sgm_registry_names(sgm_registry *registry, char ***names, size_t *count)
{
    return copy_texts(registry, entry_name, names, count);
}

sgm_status sgm_registry_tags(sgm_registry *registry, char ***tags, size_t *count)
{
    return copy_texts(registry, tag_name, tags, count);
}

void sgm_names_free(char **names, size_t count)
{
    for (size_t i = 0; names != NULL && i < count; i++)
        sgm__free(names[i]);
    sgm__free(names);
}

/* Of any length, unlike sgm__core_path, which is for messages. */
char *sgm_registry_path(sgm_registry *registry)
{
    if (check_registry(registry) != SGM_OK)
        return NULL;
    const char *names[SGM__MAXIMUM_LEVELS];
    size_t count = 0;
    sgm__text text = {0};
    sgm__tree *tree = sgm__tree_lock(registry->core);
    for (const sgm__core *core = registry->core; core->parent != NULL; core = core->parent)
        names[count++] = core->place->name;
    while (count > 0) {
        count--;
        sgm__text_append(&text, "%s%s", names[count], count > 0 ? "." : "");
    }
    sgm__tree_unlock(tree);
    return sgm__text_take(&text);
}

/* Other threads may add entries meanwhile; those stay. */
void sgm__registry_clear(sgm_registry *registry)
{
    char **names = NULL;
    size_t count = 0;
    if (sgm_registry_names(registry, &names, &count) == SGM_OK)
        for (size_t i = 0; i < count; i++)
            sgm_registry_remove(registry, names[i]);
    sgm_names_free(names, count);
}

/* The child itself stays in its place, empty. */
void sgm__registry_clear_child(sgm_registry *registry, const char *name)
{
    sgm_content content = {0};
    if (!sgm_registry_has(registry, name) || sgm_registry_get(registry, name, &content) != SGM_OK)
        return;
    if (content.kind == SGM_KIND_REGISTRY)
        sgm__registry_clear(content.as.registry);
    sgm_content_clear(&content);
}
