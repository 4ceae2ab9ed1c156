/* Makes snapshots of whole registries, and fills values into texts.
 *
 * sgm_registry_copy makes an independent tree that shows the original as it was at one moment. The structure
 * and the plain values are copied with the original's lock; bound entries, whose functions belong to the
 * program, and the elements of tensors, which may be many, are copied after the lock is released. So "one
 * moment" holds for structure and plain values; bound entries are read shortly later. No other thread knows
 * the copy until it is complete, so it is changed without its own lock. */
#include "registry/registry_internal.h"

/* --- copies --- */

/* A bound entry of the original, retained, and the entry of the copy that will get its value. */
typedef struct bound_entry {
    sgm__entry *from, *to;
    sgm__core *core; /* of the copy */
} bound_entry;

/* All bound entries found so far. */
typedef struct copying {
    bound_entry *bound;
    size_t count, capacity;
} copying;

static sgm_status copy_registry(copying *state, const sgm__core *from, sgm__core *to);

/* Hangs the new child in its place before it is filled, so that one release of the whole copy frees
 * everything when a later step fails. */
static sgm_status copy_child(copying *state, const sgm__core *child, sgm__core *to, sgm__entry *entry)
{
    sgm_registry *copy = sgm_registry_create();
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    entry->content = sgm_registry_content(copy);
    copy->core->parent = to;
    copy->core->place = entry;
    sgm__tree_move(atomic_load(&to->tree), copy->core);
    return copy_registry(state, child, copy->core);
}

/* The copied entry is never bound: it has the row and the kind, and gets a value. */
static sgm_status copy_entry(copying *state, sgm__entry *from, sgm__core *to)
{
    SGM_TRY(sgm__core_reserve(to, 1));
    SGM_TRY(sgm__reserve(&state->bound, &state->capacity, state->count + 1, sizeof *state->bound));
    sgm__entry *entry = sgm__entry_create(from->name, from->option, from->kind);
    if (entry == NULL)
        return SGM_ERROR_MEMORY;
    sgm__core_add(to, entry);
    sgm__entry_release(entry); /* the copy holds it */
    if (from->binding.get != NULL) {
        state->bound[state->count++] = (bound_entry){sgm__entry_retain(from), entry, to};
        return SGM_OK;
    }
    sgm__core *child = sgm__entry_child(from);
    return child != NULL ? copy_child(state, child, to, entry)
                         : sgm__content_copy(&from->content, false, &entry->content);
}

/* With the lock of `from`; no other thread knows `to`. */
static sgm_status copy_registry(copying *state, const sgm__core *from, sgm__core *to)
{
    for (size_t i = 0; i < from->tag_count; i++) {
        SGM_TRY(sgm__reserve(&to->tags, &to->tag_capacity, to->tag_count + 1, sizeof *to->tags));
        to->tags[to->tag_count] = sgm__strdup(from->tags[i]);
        if (to->tags[to->tag_count] == NULL)
            return SGM_ERROR_MEMORY;
        to->tag_count++;
    }
    for (size_t i = 0; i < from->entry_count; i++)
        SGM_TRY(copy_entry(state, from->entries[i], to));
    return SGM_OK;
}

/* Reads the bound entries, without the lock, and releases all of them also after a failure. An entry whose
 * binding has no value at the moment (SGM_ERROR_STATE) is removed from the copy. */
static sgm_status read_bound(copying *state, sgm_status status)
{
    for (size_t i = 0; i < state->count; i++) {
        bound_entry *bound = &state->bound[i];
        sgm_status read =
            status == SGM_OK ? sgm__entry_read(bound->from, bound->from->name, &bound->to->content) : status;
        if (status == SGM_OK)
            status = read == SGM_ERROR_STATE ? sgm_registry_remove(&bound->core->own, bound->to->name) : read;
        sgm__entry_release(bound->from);
    }
    sgm__free(state->bound);
    return status;
}

/* Replaces tensors that are shared with the original by copies of their elements. */
static sgm_status copy_tensors(sgm__core *core)
{
    for (size_t i = 0; i < core->entry_count; i++) {
        sgm_content *content = &core->entries[i]->content;
        if (content->kind == SGM_KIND_REGISTRY) {
            SGM_TRY(copy_tensors(content->as.registry->core));
        } else if (content->kind == SGM_KIND_TENSOR) {
            sgm_tensor *copy = sgm_tensor_copy(content->as.tensor);
            if (copy == NULL)
                return sgm_last_status();
            sgm_tensor_free(content->as.tensor);
            content->as.tensor = copy;
        }
    }
    return SGM_OK;
}

sgm_registry *sgm_registry_copy(sgm_registry *registry)
{
    copying state = {0};
    if (registry == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry to copy, got NULL");
        return NULL;
    }
    sgm_registry *copy = sgm_registry_create();
    if (copy == NULL)
        return NULL;
    sgm__tree *tree = sgm__tree_lock(registry->core);
    sgm_status status = copy_registry(&state, registry->core, copy->core);
    sgm__tree_unlock(tree);
    status = read_bound(&state, status);
    if (status == SGM_OK)
        status = copy_tensors(copy->core);
    if (status != SGM_OK) {
        sgm_registry_free(copy);
        return NULL;
    }
    return copy;
}

static sgm_status merge(sgm_registry *copy, sgm_registry *to);

/* A registry of this name in `to`, which is made where there is none. */
static sgm_status merge_child(sgm_registry *child, sgm_registry *to, const char *name)
{
    sgm_content there = {.kind = SGM_KIND_NOTHING};
    sgm_status status = SGM_OK;
    if (sgm_registry_has(to, name)) {
        SGM_TRY(sgm_registry_get(to, name, &there));
        status = there.kind == SGM_KIND_REGISTRY
                     ? merge(child, there.as.registry)
                     : sgm_fail(SGM_ERROR_TYPE, "'%.100s' is a registry, and a %s where it is copied to",
                                name, sgm_kind_name(there.kind));
        sgm_content_clear(&there);
        return status;
    }
    sgm_registry *made = sgm_registry_create();
    if (made == NULL)
        return SGM_ERROR_MEMORY;
    status = sgm_registry_put(to, name, made);
    if (status == SGM_OK)
        status = merge(child, made);
    sgm_registry_free(made);
    return status;
}

static sgm_status merge_entry(sgm_registry *copy, sgm_registry *to, const char *name)
{
    sgm_content content = {.kind = SGM_KIND_NOTHING};
    const sgm_option *row = sgm_registry_option(copy, name);
    SGM_TRY(sgm_registry_get(copy, name, &content));
    sgm_status status = SGM_OK;
    if (content.kind == SGM_KIND_REGISTRY) {
        status = merge_child(content.as.registry, to, name);
    } else {
        if (row != NULL && !sgm_registry_has(to, name))
            status = sgm_registry_define(to, row);
        if (status == SGM_OK && content.kind != SGM_KIND_NOTHING)
            status = sgm_registry_set_own(to, name, content);
    }
    sgm_content_clear(&content);
    return status;
}

static sgm_status merge_tags(sgm_registry *copy, sgm_registry *to)
{
    char **tags;
    size_t count;
    SGM_TRY(sgm_registry_tags(copy, &tags, &count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = sgm_registry_add_tag(to, tags[i]);
    sgm_names_free(tags, count);
    return status;
}

/* `copy` belongs to nobody else; `to` is changed entry by entry, as by any other setter. */
static sgm_status merge(sgm_registry *copy, sgm_registry *to)
{
    char **names;
    size_t count;
    SGM_TRY(merge_tags(copy, to));
    SGM_TRY(sgm_registry_names(copy, &names, &count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        status = merge_entry(copy, to, names[i]);
    sgm_names_free(names, count);
    return status;
}

sgm_status sgm_registry_copy_into(sgm_registry *from, sgm_registry *to)
{
    if (to == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry to copy into, got NULL");
    sgm_registry *copy = sgm_registry_copy(from);
    if (copy == NULL)
        return sgm_last_status();
    sgm_status status = merge(copy, to);
    sgm_registry_free(copy);
    return status;
}

/* --- texts --- */

/* Appends the value that the identifier between two braces leads to; texts without quotes. */
static sgm_status append_value(sgm_registry *root, sgm__text *text, const char *identifier, size_t length)
{
    sgm_content content = {0};
    char *copy = sgm__strndup(identifier, length);
    sgm_status status = copy != NULL ? sgm_registry_resolve_one(root, copy, &content) : SGM_ERROR_MEMORY;
    sgm__free(copy);
    SGM_TRY(status);
    char *value =
        content.kind == SGM_KIND_TEXT ? sgm__strdup(content.as.text) : sgm_content_describe(&content);
    if (value != NULL)
        sgm__text_append_bytes(text, value, strlen(value));
    sgm_string_free(value);
    sgm_content_clear(&content);
    return value != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* "{{" and "}}" become single braces; anything else between "{" and "}" is an identifier. */
static sgm_status fill_in(sgm_registry *root, sgm__text *text, const char *format)
{
    for (const char *next = format; *next != '\0';) {
        size_t plain = strcspn(next, "{}");
        sgm__text_append_bytes(text, next, plain);
        next += plain;
        if (*next == '\0')
            return SGM_OK;
        if (next[0] == next[1]) { /* "{{" and "}}" */
            sgm__text_append_bytes(text, next, 1);
            next += 2;
            continue;
        }
        size_t length = strcspn(next + 1, "{}");
        if (*next == '}' || next[1 + length] != '}')
            return sgm_fail(SGM_ERROR_FORMAT, "'%.100s', column %td: '%c' without its other brace", format,
                            next - format + 1, *next);
        SGM_TRY(append_value(root, text, next + 1, length));
        next += length + 2;
    }
    return SGM_OK;
}

char *sgm_registry_resolve_text(sgm_registry *root, const char *format)
{
    sgm__text text = {0};
    if (root == NULL || format == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "expected a registry and a text to fill in, got NULL");
        return NULL;
    }
    if (fill_in(root, &text, format) != SGM_OK) {
        sgm__text_free(&text);
        return NULL;
    }
    return sgm__text_take(&text);
}
