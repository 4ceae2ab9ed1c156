/* Copies of a trainer's hooks for another trainer. What a hook remembers is not copied: a checkpoint has it.
 */
#include "training/hooks_internal.h"
#include "training/hooks_ready/hook_text.h"
#include "training/operator.h"
#include "training/trainer_copy.h"

typedef struct attached {
    sgm_hook *hook; /* retained */
    bool stored;
} attached;

/* Those that nobody else has brought along, in order of attachment. */
static sgm_status list_chosen(sgm__hooks *hooks, attached **list, size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&hooks->lock);
    *list = sgm__calloc(hooks->count + 1, sizeof **list);
    for (size_t i = 0; *list != NULL && i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->chosen && entry->attached)
            (*list)[(*count)++] = (attached){sgm_hook_retain(entry->hook), entry->stored};
    }
    pthread_mutex_unlock(&hooks->lock);
    return *list != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* One that has neither a text nor a way to be copied would share what it knows with the first trainer's. */
static bool can_copy(const sgm_hook *hook)
{
    bool own = hook->text != NULL || hook->type->copy != NULL;
    for (size_t i = 0; own && hook->text == NULL && i < hook->required_count; i++)
        own = can_copy(hook->required[i]);
    return own;
}

static sgm_hook *copy_hook(sgm_hook *hook)
{
    if (hook->text != NULL)
        return sgm_hook_parse(hook->text);
    sgm_hook *copy = sgm__hook_copy(hook);
    for (size_t i = 0; copy != NULL && i < hook->required_count; i++) {
        sgm_hook *required = copy_hook(hook->required[i]);
        if (required == NULL || sgm_hook_require(copy, required) != SGM_OK) {
            sgm_hook_free(copy);
            return NULL;
        }
    }
    return copy;
}

static sgm_status attach_copy(sgm_trainer *to, const attached *original)
{
    bool is_new = false;
    if (!can_copy(original->hook)) {
        sgm__log(SGM_LOG_INFO, to->name, "goes without the hook '%s', which cannot be copied",
                 sgm_hook_name(original->hook));
        return SGM_OK;
    }
    sgm_hook *copy = copy_hook(original->hook);
    if (copy == NULL)
        return sgm__last_failure();
    bool local = to->team != NULL && sgm__hook_is_local(copy);
    sgm_status status = local ? sgm__operator_attach(to->team, copy, original->stored, &is_new, NULL)
                              : sgm__hooks_attach_as(to->hooks, copy, original->stored, &is_new, NULL);
    sgm_hook_free(copy);
    return status;
}

static sgm_status copy_all(sgm__hooks *hooks, sgm_trainer *to)
{
    attached *list;
    size_t count;
    SGM_TRY(list_chosen(hooks, &list, &count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == SGM_OK)
            status = attach_copy(to, &list[i]);
        sgm_hook_free(list[i].hook);
    }
    sgm__free(list);
    return status;
}

/* Workers' hooks are alike: those of the first are enough. */
sgm_status sgm__hooks_copy(sgm_trainer *from, sgm_trainer *to)
{
    SGM_TRY(copy_all(from->hooks, to));
    return from->team != NULL ? copy_all(from->team->workers[0].scope->hooks, to) : SGM_OK;
}
