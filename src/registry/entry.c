/* Makes entries of registries from rows, binds them to values that live elsewhere, checks, reads and removes
 * them.
 *
 * An entry holds its content itself, or it is bound: then a function of the program (or of a folder above)
 * gives the content and another one sets it. Nearly everything that monitors see of a trainer is bound
 * (src/show). Bindings are called without the tree's lock, with the entry retained, so `release` may run
 * later than the entry's removal: when the last reader is done. Setting is in change.c. */
#include "registry/registry_internal.h"

#include <math.h>

/* The characters of names and tags: identifiers give '.', '*', '<', '>', ',' and spaces a meaning of their
 * own. */
sgm_status sgm__check_name(const char *what, const char *name)
{
    if (name == NULL || name[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a %s, got %s", what, name == NULL ? "NULL" : "nothing");
    size_t length = strnlen(name, SGM__MAXIMUM_NAME + 1);
    if (length > SGM__MAXIMUM_NAME)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s '%.20s...' is longer than %d bytes", what, name,
                        SGM__MAXIMUM_NAME);
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!(sgm__is_alphanumeric(c) || c == '_' || c == '-'))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "%s '%s', column %zu: expected letters, digits, '_' and '-' only", what, name,
                            i + 1);
    }
    return SGM_OK;
}

sgm__entry *sgm__entry_create(const char *name, const sgm_option *option, sgm_kind kind)
{
    sgm__entry *entry = sgm__calloc(1, sizeof *entry);
    char *copy = entry != NULL ? sgm__strdup(name) : NULL;
    if (copy == NULL) {
        sgm__free(entry);
        return NULL;
    }
    atomic_init(&entry->references, 1);
    entry->name = copy;
    entry->option = option;
    entry->kind = kind;
    return entry;
}

sgm__entry *sgm__entry_retain(sgm__entry *entry)
{
    atomic_fetch_add(&entry->references, 1);
    return entry;
}

/* Without the lock: clearing the content may free a registry, and the binding's release is a function of the
 * program. */
void sgm__entry_release(sgm__entry *entry)
{
    if (entry == NULL || atomic_fetch_sub(&entry->references, 1) != 1)
        return;
    sgm_content_clear(&entry->content);
    if (entry->binding.release != NULL)
        entry->binding.release(entry->binding.user);
    sgm__free(entry->name);
    sgm__free(entry);
}

/* Depends on the content, not on the kind: an entry of kind registry may be empty. With the lock. */
sgm__core *sgm__entry_child(const sgm__entry *entry)
{
    return entry->content.kind == SGM_KIND_REGISTRY ? entry->content.as.registry->core : NULL;
}

/* A binding may return a status without having called sgm_fail; the thread's newest error would then be about
 * something else. */
sgm_status sgm__fail_binding(const char *identifier, sgm_status status)
{
    if (sgm_last_status() == status)
        return sgm__fail_within("%s", identifier);
    return sgm_fail(status, "%s: %s", identifier, sgm_status_text(status));
}

/* Checks what the binding gave as strictly as values that are set, since the program may have written it.
 * Only a tensor may be missing: an entry of that kind then has no content yet. */
sgm_status sgm__entry_read(sgm__entry *entry, const char *identifier, sgm_content *content)
{
    sgm_content got = {0}, value = {0};
    *content = value;
    sgm_status status = entry->binding.get(entry->binding.user, &got);
    if (status != SGM_OK) {
        sgm__fail_binding(identifier, status);
    } else if (got.kind != SGM_KIND_NOTHING || entry->kind != SGM_KIND_TENSOR) { /* a tensor may be missing */
        status = sgm__content_check(&got);
        if (status != SGM_OK)
            sgm__fail_binding(identifier, status);
        else
            status = sgm__kind_convert(entry->kind, identifier, &got, &value);
    }
    if (status == SGM_OK)
        *content = value; /* safe without a copy: only integers are ever converted */
    else
        sgm_content_clear(&got);
    return status;
}

/* An entry that is bound without a `set` is read-only for its owner, too. */
sgm_status sgm__entry_check(const sgm__core *core, const sgm__entry *entry, bool own,
                            const sgm_content *content, sgm_content *value)
{
    char path[SGM__MAXIMUM_TEXT];
    sgm__core_path(core, entry->name, path);
    bool is_fixed = entry->binding.get != NULL && entry->binding.set == NULL;
    if (is_fixed || (entry->option != NULL && entry->option->read_only && !own))
        return sgm_fail(SGM_ERROR_STATE, "%s is read-only", path);
    SGM_TRY(sgm__kind_convert(entry->kind, path, content, value));
    return sgm__option_check(entry->option, path, value);
}

/* --- rows --- */

/* Written as !(minimum <= maximum), so that NaN bounds fail, too. */
static sgm_status check_row(const sgm_option *option)
{
    if (option == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected an option, got NULL");
    SGM_TRY(sgm__check_name("name of an option", option->name));
    if (option->kind <= SGM_KIND_NOTHING || option->kind > SGM_KIND_REGISTRY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s': expected a kind of content, got %s", option->name,
                        sgm_kind_name(option->kind));
    if (!(option->minimum <= option->maximum))
        return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s': its minimum is more than its maximum",
                        option->name);
    return SGM_OK;
}

/* The row's default as a content, borrowed. Integers are given as double, so they must be whole and at most
 * 2^53, beyond which double skips integers. A text without a default takes the first choice. Tensors and
 * registries have none. */
static sgm_status default_of(const sgm_option *option, sgm_content *content)
{
    *content = (sgm_content){0};
    switch (option->kind) {
    case SGM_KIND_BOOLEAN:
        *content = sgm_boolean_content(option->default_value != 0);
        break;
    case SGM_KIND_INTEGER:
        if (!(fabs(option->default_value) <= 9007199254740992.0) ||
            floor(option->default_value) != option->default_value)
            return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s': expected an integer as default, got %g",
                            option->name, option->default_value);
        *content = sgm_integer_content((int64_t)option->default_value);
        break;
    case SGM_KIND_NUMBER:
        *content = sgm_number_content(option->default_value);
        break;
    case SGM_KIND_TEXT:
        *content = sgm_text_content(option->default_text != NULL ? option->default_text
                                    : option->choices != NULL    ? option->choices[0]
                                                                 : "");
        if (content->as.text == NULL)
            return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s' has an empty list of choices", option->name);
        break;
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY: /* to be set later */
        return SGM_OK;
    }
    return sgm__option_check(option, option->name, content);
}

/* Adds an entry whose name must be new. Takes over the caller's reference, also on failure: a bound entry's
 * release runs then. */
static sgm_status add_entry(sgm__core *core, sgm__entry *entry)
{
    char path[SGM__MAXIMUM_TEXT];
    sgm__tree *tree = sgm__tree_lock(core);
    sgm_status status = sgm__core_reserve(core, 1);
    if (status == SGM_OK && sgm__core_find(core, entry->name) != NULL)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "there is an entry '%s' already; remove it first, or set it",
                          sgm__core_path(core, entry->name, path));
    if (status == SGM_OK) {
        sgm__core_add(core, entry);
        sgm__tree_changed(tree);
    }
    sgm__tree_unlock(tree);
    sgm__entry_release(entry);
    return status;
}

/* Tensors and registries begin without a content. */
sgm_status sgm_registry_define(sgm_registry *registry, const sgm_option *option)
{
    sgm__core *core;
    sgm_content default_value;
    SGM_TRY(sgm__writable(registry, &core));
    SGM_TRY(check_row(option));
    SGM_TRY(default_of(option, &default_value));
    sgm__entry *entry = sgm__entry_create(option->name, option, option->kind);
    if (entry == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__content_copy(&default_value, false, &entry->content);
    if (status != SGM_OK) {
        sgm__entry_release(entry);
        return status;
    }
    return add_entry(core, entry);
}

/* Everything of sgm_registry_bind that can fail before the entry owns the binding. */
static sgm_status make_bound(sgm_registry *registry, const sgm_option *option, const sgm_binding *binding,
                             sgm__core **core, sgm__entry **entry)
{
    SGM_TRY(sgm__writable(registry, core));
    SGM_TRY(check_row(option));
    if (binding == NULL || binding->get == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s': expected a binding with a get, got none",
                        option->name);
    if (option->kind == SGM_KIND_REGISTRY)
        return sgm_fail(SGM_ERROR_ARGUMENT, "option '%s': a registry is put, not bound", option->name);
    *entry = sgm__entry_create(option->name, option, option->kind);
    return *entry != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* The binding's release runs exactly once, whatever fails: here as long as no entry owns the binding,
 * afterwards by way of the entry. */
sgm_status sgm_registry_bind(sgm_registry *registry, const sgm_option *option, const sgm_binding *binding)
{
    sgm__core *core = NULL;
    sgm__entry *entry = NULL;
    sgm_status status = make_bound(registry, option, binding, &core, &entry);
    if (status != SGM_OK) {
        if (binding != NULL && binding->release != NULL)
            binding->release(binding->user);
        return status;
    }
    entry->binding = *binding;
    return add_entry(core, entry);
}

/* --- removing --- */

/* Removes the entry from its registry, whose reference the caller gets: to release it only after the unlock.
 * A child becomes a root of its own, and goes on sharing the tree's lock. */
static void take_out(sgm__core *core, sgm__entry *entry)
{
    sgm__core *child = sgm__entry_child(entry);
    if (child != NULL) {
        child->parent = NULL;
        child->place = NULL;
    }
    entry->gone = true;
    size_t place = 0;
    while (core->entries[place] != entry)
        place++;
    core->entry_count--;
    sgm__name_index_remove(&core->index, entry->name);
    memmove(core->entries + place, core->entries + place + 1,
            (core->entry_count - place) * sizeof *core->entries);
}

/* The registry's reference to the entry is released after the unlock, since that may call the program. */
sgm_status sgm_registry_remove(sgm_registry *registry, const char *name)
{
    sgm__core *core;
    SGM_TRY(sgm__writable(registry, &core));
    SGM_TRY(sgm__check_name("name", name));
    sgm_status status = SGM_OK;
    sgm__tree *tree = sgm__tree_lock(core);
    sgm__entry *entry = sgm__core_find(core, name);
    if (entry == NULL) {
        status = sgm__no_entry(core, name);
    } else {
        take_out(core, entry);
        sgm__tree_changed(tree);
    }
    sgm__tree_unlock(tree);
    sgm__entry_release(entry);
    return status;
}
