/* How values of a trainer become entries of its registry: the part that all files of this folder share.
 *
 * An entry is bound to where its value lies: reading calls `get`, setting calls `set`, both with the
 * trainer's lock, so they wait for the step that is running. A set that changes something is noted in the
 * journal (who, when, from what, to what), for undo, for changes.jsonl and for checkpoints. Which values
 * there are is in trainer_values.c, trainer_settings.c, trainer_layers.c, trainer_iterators.c,
 * trainer_states.c and trainer_gradients.c. */
#include "show/trainer_publish.h"
#include "journal/change_record.h"
#include "journal/changes.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

/* A value as a person would type it: "0.1", "true", a text as it is; free with sgm__free. */
static char *plain_text(const sgm_content *content)
{
    switch (content->kind) {
    case SGM_KIND_BOOLEAN:
        return sgm__strdup(content->as.boolean ? "true" : "false");
    case SGM_KIND_INTEGER:
        return sgm__format("%lld", (long long)content->as.integer);
    case SGM_KIND_NUMBER:
        return sgm_content_describe(content);
    case SGM_KIND_TEXT:
        return sgm__strdup(content->as.text);
    case SGM_KIND_NOTHING:
    case SGM_KIND_TENSOR:
    case SGM_KIND_REGISTRY:
        break;
    }
    return sgm__strdup(sgm_kind_name(content->kind));
}

/* Notes a change for checkpoints (settings.c) and in the record (change_record.c). The change is made
 * already, so a failure to note it is only a warning. */
static void note_change(sgm_trainer *trainer, const char *identifier, const sgm_content *before,
                        const sgm_content *after)
{
    char *old = plain_text(before), *new = plain_text(after);
    trainer = sgm__sharing_of(trainer)->owner;
    sgm_status status =
        old != NULL && new != NULL ? sgm__settings_note(trainer, identifier, old, new) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__change_note(trainer, identifier, before, after);
    if (status != SGM_OK)
        sgm__log(SGM_LOG_WARNING, sgm_trainer_name(trainer), "the change of %s could not be recorded: %s",
                 identifier, sgm_last_error());
    sgm__free(old);
    sgm__free(new);
}

/* Values that another lock guards are read without the trainer's: they can be seen while a long step runs. */
static sgm_status get_bound(void *user, sgm_content *content)
{
    const sgm__bound *bound = user;
    if (bound->access->guarded)
        return bound->access->get(bound, content);
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_status status = bound->access->get(bound, content);
    sgm__trainer_unlock(bound->trainer);
    return status;
}

/* With the lock. Setting a value to what it is already is no change. */
static sgm_status change(const sgm__bound *bound, const sgm_content *content)
{
    sgm_content before = {0};
    SGM_TRY(bound->access->get(bound, &before));
    sgm_status status = SGM_OK;
    if (!sgm_content_equal(&before, content)) {
        status = bound->access->set(bound, content);
        if (status == SGM_OK)
            note_change(bound->trainer, bound->identifier, &before, content);
    }
    sgm_content_clear(&before);
    return status;
}

static sgm_status set_bound(void *user, const sgm_content *content)
{
    const sgm__bound *bound = user;
    SGM_TRY(sgm__trainer_enter(bound->trainer));
    sgm_status status = change(bound, content);
    sgm__trainer_unlock(bound->trainer);
    return status;
}

sgm_status sgm__publish_value(sgm_trainer *trainer, sgm_registry *registry, const char *prefix,
                              const sgm_option *option, const sgm__access *access, const void *row)
{
    size_t prefix_size = strlen(prefix), name_size = strlen(option->name) + 1;
    sgm__bound *bound = sgm__calloc(1, sizeof(sgm__bound) + prefix_size + name_size);
    if (bound == NULL)
        return SGM_ERROR_MEMORY;
    bound->trainer = trainer;
    bound->access = access;
    bound->row = row;
    memcpy(bound->identifier, prefix, prefix_size);
    memcpy(bound->identifier + prefix_size, option->name, name_size);
    const sgm_binding binding = {
        .get = get_bound, .set = access->set != NULL ? set_bound : NULL, .release = sgm__free, .user = bound};
    return sgm_registry_bind(registry, option, &binding);
}

/* The child of this name, made if it is not there. A value of that name is in the way: a data set cannot be
 * called "epoch". */
sgm_status sgm__publish_child(sgm_registry *registry, const char *name, const char *tag, sgm_registry **child)
{
    sgm_content content = {0};
    if (sgm_registry_has(registry, name)) {
        SGM_TRY(sgm_registry_get(registry, name, &content));
        bool is_registry = content.kind == SGM_KIND_REGISTRY;
        *child = is_registry ? content.as.registry : NULL;
        sgm_content_clear(&content);
        return is_registry ? SGM_OK
                           : sgm_fail(SGM_ERROR_ARGUMENT,
                                      "'%s' is a value of the trainer; choose another name", name);
    }
    sgm_registry *made = sgm_registry_create();
    sgm_status status = made != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK && tag != NULL)
        status = sgm_registry_tag(made, tag);
    if (status == SGM_OK)
        status = sgm_registry_put(registry, name, made);
    *child = made;
    sgm_registry_free(made);
    return status;
}

/* Walks down "2-dense.inner." and makes what is missing. What is behind the dash of a part is its tag, by
 * which patterns find it. */
sgm_status sgm__publish_path(sgm_registry *registry, const char *path, sgm_registry **child)
{
    char part[128];
    const char *dot;
    *child = registry;
    for (; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        size_t length = (size_t)(dot - path);
        if (length >= sizeof part)
            return sgm_fail(SGM_ERROR_ARGUMENT, "the name '%.140s' has a part that is too long", path);
        memcpy(part, path, length);
        part[length] = '\0';
        const char *dash = strchr(part, '-');
        SGM_TRY(sgm__publish_child(*child, part, dash != NULL ? dash + 1 : NULL, child));
    }
    return SGM_OK;
}

/* A copy of an option that stays as long as the trainer; equal ones are shared. */
const sgm_option *sgm__trainer_keep_row(sgm_trainer *trainer, const sgm_option *row)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    for (size_t i = 0; i < learner->row_count; i++) {
        const sgm_option *known = learner->rows[i];
        if (strcmp(known->name, row->name) == 0 && known->doc == row->doc && known->kind == row->kind &&
            known->effect == row->effect)
            return known;
    }
    if (sgm__reserve(&learner->rows, &learner->row_capacity, learner->row_count + 1, sizeof(sgm_option *)) !=
        SGM_OK)
        return NULL;
    size_t size = strlen(row->name) + 1;
    sgm_option *copy = sgm__alloc(sizeof *copy + size);
    if (copy == NULL)
        return NULL;
    *copy = *row;
    copy->name = memcpy(copy + 1, row->name, size);
    learner->rows[learner->row_count++] = copy;
    return copy;
}
