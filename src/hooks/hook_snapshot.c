/* Copies parts of a trainer's registry: what a background hook reads, so that it never sees a value change.
 *
 * The copy has the same paths as the original (`optimiser.loss`, `network.layers.0.weights`), and the same
 * tags on the way, but only the entries that match; tensors are copied in full. hooks_background.c calls
 * sgm__copy_matches for each identifier, on the training's thread, and frees the copy when the batch has
 * run. The registry may change meanwhile, so each step of a path is looked up anew. */
#include "hooks/hooks_internal.h"
#include "registry/registry_internal.h"

/* Gives the copy of a registry the tags of the original: an identifier may name a registry by a tag, and
 * then must find in the copy what it finds in the trainer. The lock of the tree is taken for one tag at a
 * time, as adding a tag locks the target's tree. */
static sgm_status copy_tags(const sgm_registry *source, sgm_registry *target)
{
    for (size_t i = 0;; i++) {
        sgm__tree *tree = sgm__tree_lock(source->core);
        bool is_there = i < source->core->tag_count;
        char *tag = is_there ? sgm__strdup(source->core->tags[i]) : NULL;
        sgm__tree_unlock(tree);
        if (!is_there)
            return SGM_OK;
        sgm_status status = tag ? sgm_registry_add_tag(target, tag) : SGM_ERROR_MEMORY;
        sgm__free(tag);
        SGM_TRY(status);
    }
}

/* The registry `name` below `parent`, made if there is none; the caller frees its reference. */
static sgm_registry *child_of(sgm_registry *parent, const char *name)
{
    sgm_content content;
    if (sgm_registry_has(parent, name)) {
        if (sgm_registry_get(parent, name, &content) != SGM_OK)
            return NULL;
        if (content.kind == SGM_KIND_REGISTRY)
            return content.as.registry;
        sgm_content_clear(&content);
        sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a registry", name, sgm_kind_name(content.kind));
        return NULL;
    }
    sgm_registry *child = sgm_registry_create();
    if (child && sgm_registry_put(parent, name, child) != SGM_OK) {
        sgm_registry_free(child);
        return NULL;
    }
    return child;
}

/* Copies one value below a registry. Tensors and registries are copied in depth, since the training
 * overwrites them in place; sgm_registry_set_own retains, so this function's own reference is dropped. */
static sgm_status copy_into(sgm_registry *target, const char *name, const sgm_content *content)
{
    sgm_content copy = *content;
    if (content->kind == SGM_KIND_NOTHING)
        return SGM_OK;
    if (content->kind == SGM_KIND_REGISTRY) {
        sgm_registry *all = sgm_registry_copy(content->as.registry);
        sgm_status status = all ? sgm_registry_put(target, name, all) : sgm_last_status();
        sgm_registry_free(all);
        return status;
    }
    if (content->kind == SGM_KIND_TENSOR && !(copy.as.tensor = sgm_tensor_copy(content->as.tensor)))
        return sgm_last_status();
    sgm_status status = sgm_registry_set_own(target, name, copy);
    if (content->kind == SGM_KIND_TENSOR)
        sgm_tensor_free(copy.as.tensor);
    return status;
}

/* Replaces a registry and its copy by their children of that name, and drops the references to the
 * parents. */
static sgm_status descend(sgm_registry **source, sgm_registry **target, const char *name)
{
    sgm_content content;
    SGM_TRY(sgm_registry_get(*source, name, &content));
    sgm_status status = SGM_ERROR_NOT_FOUND; /* kept if the entry is no registry any more */
    sgm_registry *child = NULL;
    if (content.kind == SGM_KIND_REGISTRY) {
        child = child_of(*target, name);
        status = child ? copy_tags(content.as.registry, child) : sgm_last_status();
    }
    if (status != SGM_OK) {
        sgm_registry_free(child);
        sgm_content_clear(&content);
        return status;
    }
    sgm_registry_free(*source);
    sgm_registry_free(*target);
    *source = content.as.registry;
    *target = child;
    return SGM_OK;
}

/* Walks along the parts of `path` (which is cut at its dots in place), making registries in the copy as
 * needed, and copies the value to its end. An entry that was removed meanwhile is left out. */
static sgm_status copy_to_path(sgm_registry *source, sgm_registry *target, char *path,
                               const sgm_content *content)
{
    char *dot;
    sgm_status status = SGM_OK;
    sgm_registry_retain(source);
    sgm_registry_retain(target);
    while (status == SGM_OK && (dot = strchr(path, '.'))) {
        *dot = 0;
        status = descend(&source, &target, path);
        path = dot + 1;
    }
    if (status == SGM_OK)
        status = copy_into(target, path, content);
    sgm_registry_free(source);
    sgm_registry_free(target);
    return status == SGM_ERROR_NOT_FOUND ? SGM_OK : status;
}

sgm_status sgm__copy_matches(sgm_registry *source, const char *identifier, sgm_registry *target)
{
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(source, identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = copy_to_path(source, target, matches.items[i].identifier, &matches.items[i].content);
    sgm_matches_free(&matches);
    return status;
}
