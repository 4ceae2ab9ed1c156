/* Makes a trainer of the same parts as another one, which then loads a checkpoint: for branches of a run
 * (src/environment/env_branch.c), which searches make too.
 *
 * Hooks are copied without what they remember, as the checkpoint has that. A checkpoint of an earlier
 * iteration may know hooks that the running trainer has no more: those whose life is over and those that
 * someone took off are copied too, and the state that is set takes off what it does not know
 * (src/hooks/hooks_state.c). Hooks that were attached by text while the trainer ran are left to the
 * checkpoint, which makes them itself. */
#include "runs/trainer_copy.h"
#include "data/dataset.h"
#include "hooks/hooks_internal.h"
#include "journal/changes.h"
#include "optim/optimiser.h"
#include "train/train.h"
#include "trainer/frozen.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

#include <jansson.h>
#include <stdlib.h>

/* A hook to be copied, or only its text. */
typedef struct original {
    int64_t number; /* place in the order of attachment */
    sgm_hook *hook; /* retained; NULL: it was taken off, and only its text is known */
    char *text;     /* the text of a hook that was taken off; else NULL */
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

/* Lists what is to be copied: hooks that the program attached, hooks whose life is over, texts of hooks
 * that were taken off. Hooks that only others require come with those; stored hooks with a text come from
 * the checkpoint. With the holder's lock; the list has room for all. */
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

/* Lists what is to be copied in order of attachment: a copy attaches in the same order, by which
 * checkpoints find states of hooks that are alike. */
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

/* Whether a copy would have a self of its own. A hook with neither a text nor a function that copies would
 * share what it knows with the first trainer's. */
static bool can_copy(const sgm_hook *hook)
{
    bool own = hook->text != NULL || hook->type->copy != NULL;
    for (size_t i = 0; own && hook->text == NULL && i < hook->required_count; i++)
        own = can_copy(hook->required[i]);
    return own;
}

/* Makes a hook anew from its text if it has one, else by its type's copy function; then also the hooks
 * that it requires. */
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

/* Attaches a copy of a hook. A hook that cannot be copied is left out, and the log says so. */
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

static sgm_status copy_hooks(sgm__hooks *hooks, sgm_trainer *to)
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

/* Also copies local hooks, from the first worker, which has what all workers have; attaching them to `to`
 * gives each of its workers one. */
static sgm_status hooks_copy(sgm_trainer *from, sgm_trainer *to)
{
    const sgm__strategy *strategy = sgm__sharing_of(from)->strategy;
    SGM_TRY(copy_hooks(sgm__hooks_of(from), to));
    return strategy != NULL ? copy_hooks(sgm__hooks_of(strategy->first_replica(from)), to) : SGM_OK;
}

/* --- the trainer --- */

static sgm_status copy_network(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__learner *learner = sgm__learner_of(from);
    if (learner->network == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", sgm_trainer_name(from));
    char *notation = sgm_network_text(learner->network);
    if (notation == NULL)
        return sgm__last_failure();
    sgm_status status = sgm_trainer_set_network(to, notation);
    sgm_string_free(notation);
    return status;
}

/* Iterators are copied, datasets shared. */
static sgm_status copy_data(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__trainer_data *data = sgm__data_of(from);
    if (data->training == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no data yet", sgm_trainer_name(from));
    SGM_TRY(sgm_trainer_set_data(to, sgm__iterator_copy(data->training)));
    for (size_t i = 0; i < data->validation_count; i++)
        SGM_TRY(sgm_trainer_add_data(to, data->validation[i].name,
                                     sgm__iterator_copy(data->validation[i].iterator)));
    return SGM_OK;
}

/* The copy has the settings of this moment, and a number of accumulated minibatches that was set and does
 * not count yet. */
static sgm_status copy_optimiser(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__learner *learner = sgm__learner_of(from);
    if (learner->optimiser == NULL)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no optimiser yet", sgm_trainer_name(from));
    sgm_optimiser *copy = sgm__calloc(1, sizeof *copy);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    *copy = *learner->optimiser;
    sgm__progress_of(to)->next_accumulate = sgm__progress_of(from)->next_accumulate;
    return sgm_trainer_set_optimiser(to, copy);
}

static sgm_status copy_rules(sgm_trainer *to, const sgm_trainer *from)
{
    const sgm__trainer_patterns *patterns = sgm__patterns_of(from);
    for (size_t i = 0; i < patterns->rule_count; i++)
        SGM_TRY(sgm_trainer_add_initialiser(to, patterns->rules[i].pattern,
                                            sgm__initialiser_copy(patterns->rules[i].initialiser)));
    for (size_t i = 0; i < patterns->modifier_count; i++)
        SGM_TRY(sgm_trainer_add_modifier(to, patterns->modifiers[i].pattern,
                                         sgm__modifier_copy(patterns->modifiers[i].modifier)));
    return sgm__frozen_copy(&patterns->frozen, &sgm__patterns_of(to)->frozen);
}

/* The order matters: hooks may read what the others have made, and changed settings are set last, in a
 * trainer that has all entries. */
static sgm_status copy_all(sgm_trainer *to, sgm_trainer *from)
{
    const sgm__strategy *strategy = sgm__sharing_of(from)->strategy;
    sgm__settings_of(to)->seed = sgm__settings_of(from)->seed;
    sgm__settings_of(to)->command_seconds = sgm__settings_of(from)->command_seconds;
    json_decref(sgm__control_of(to)->approve);
    sgm__control_of(to)->approve = json_deep_copy(sgm__control_of(from)->approve);
    for (size_t i = 0; i < sgm__webhooks_of(from)->count; i++)
        SGM_TRY(sgm_trainer_allow_webhook(to, sgm__webhooks_of(from)->allowed[i]));
    SGM_TRY(copy_network(to, from));
    SGM_TRY(copy_data(to, from));
    SGM_TRY(copy_optimiser(to, from));
    SGM_TRY(copy_rules(to, from));
    if (strategy != NULL)
        SGM_TRY(strategy->copy(to, from));
    SGM_TRY(hooks_copy(from, to));
    return sgm__settings_copy(from, to);
}

sgm_status sgm__trainer_copy_setup(sgm_trainer *to, sgm_trainer *from)
{
    sgm__trainer_lock(to); /* first, as a thread releases the locks that it holds while it waits for another:
                              nobody uses `to` yet */
    sgm_status status = sgm__trainer_enter(from);
    if (status == SGM_OK) {
        status = copy_all(to, from);
        sgm__trainer_unlock(from);
    }
    sgm__trainer_unlock(to);
    return status;
}
