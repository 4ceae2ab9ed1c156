/* Copies of a trainer's hooks for another trainer, which takes a checkpoint next. What a hook remembers is
 * not copied, as the checkpoint has it. All hooks are that the checkpoint may know: those whose life is over
 * and those that someone took off come along, too, and the state that is set takes off what it does not know.
 */
#include "hooks/hooks_internal.h"
#include "runs/trainer_copy.h"
#include "train/train.h"

#include <stdlib.h>

typedef struct original {
    int64_t number;
    sgm_hook *hook; /* retained; NULL: it was taken off */
    char *text;     /* of one that was taken off */
} original;

static void clear_original(original *one)
{
    sgm_hook_free(one->hook);
    sgm__free(one->text);
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t one = ((const original *)a)->number, other = ((const original *)b)->number;
    return (one > other) - (one < other);
}

/* With the lock, and room for all. What a checkpoint brings along by itself is left to it. */
static size_t fill(const sgm__hooks *hooks, original *list)
{
    size_t count = 0;
    for (size_t i = 0; i < hooks->count; i++) {
        const sgm__hook_entry *entry = hooks->entries[i];
        if (entry->attached && entry->chosen && !(entry->stored && entry->hook->text != NULL))
            list[count++] = (original){.number = entry->number, .hook = sgm_hook_retain(entry->hook)};
    }
    for (size_t i = 0; i < hooks->gone_count; i++) {
        const sgm__gone *gone = &hooks->gone[i];
        if (gone->entry != NULL)
            list[count++] = (original){.number = gone->number, .hook = sgm_hook_retain(gone->entry->hook)};
    }
    for (size_t i = 0; i < hooks->taken_off_count; i++)
        list[count++] =
            (original){.number = hooks->taken_off[i].number, .text = sgm__strdup(hooks->taken_off[i].text)};
    return count;
}

/* All hooks that nobody else has brought along, in order of attachment: a copy attaches them in the same
 * order, by which checkpoints find their states. */
static sgm_status list_originals(sgm__hooks *hooks, original **list, size_t *count)
{
    *count = 0;
    pthread_mutex_lock(&hooks->lock);
    *list = sgm__calloc(hooks->count + hooks->gone_count + hooks->taken_off_count + 1, sizeof **list);
    if (*list != NULL)
        *count = fill(hooks, *list);
    pthread_mutex_unlock(&hooks->lock);
    if (*list == NULL)
        return SGM_ERROR_MEMORY;
    qsort(*list, *count, sizeof **list, compare_numbers);
    return SGM_OK;
}

/* One that has neither a text nor a way to be copied would share what it knows with the first trainer's. */
static bool can_copy(const sgm_hook *hook)
{
    bool own = hook->text != NULL || hook->type->copy != NULL;
    for (size_t i = 0; own && hook->text == NULL && i < hook->required_count; i++)
        own = can_copy(hook->required[i]);
    return own;
}

/* From its text if it has one, else by its own copy function, with the hooks that it requires. */
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

static sgm_status attach_copy(sgm_trainer *to, const original *one)
{
    bool is_new = false;
    if (one->hook != NULL && !can_copy(one->hook)) {
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(to), "goes without the hook '%s', which cannot be copied",
                 sgm_hook_name(one->hook));
        return SGM_OK;
    }
    if (one->hook == NULL && one->text == NULL)
        return SGM_ERROR_MEMORY;
    sgm_hook *copy = one->hook != NULL ? copy_hook(one->hook) : sgm_hook_parse(one->text);
    if (copy == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__trainer_attach_as(to, copy, SGM__ATTACHED_COPY, &is_new, NULL);
    sgm_hook_free(copy);
    return status;
}

static sgm_status copy_all(sgm__hooks *hooks, sgm_trainer *to)
{
    original *list;
    size_t count;
    SGM_TRY(list_originals(hooks, &list, &count));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == SGM_OK)
            status = attach_copy(to, &list[i]);
        clear_original(&list[i]);
    }
    sgm__free(list);
    return status;
}

sgm_status sgm__hooks_copy(sgm_trainer *from, sgm_trainer *to)
{
    const sgm__strategy *strategy = sgm__sharing_of(from)->strategy;
    SGM_TRY(copy_all(sgm__hooks_of(from), to));
    return strategy != NULL ? copy_all(sgm__hooks_of(strategy->first_replica(from)), to) : SGM_OK;
}
