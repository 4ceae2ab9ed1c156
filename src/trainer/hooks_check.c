/* Checks hooks before the first iteration, so that a run does not end after an hour because of a misspelt
 * name.
 *
 * src/loop/trainer_run.c has all hooks checked at the start of a run (sgm__hooks_check), and commands check a
 * hook that is attached to a running trainer (sgm__hooks_check_new). A hook's type may have a function
 * `check`; identifiers of its criteria are looked up here. Values that come later (shared.*, training.*, what
 * is measured on validation data) cannot be known to be missing, and names that begin with a wildcard are not
 * looked up. */
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"
#include "registry/pattern.h"
#include "trainer/trainer_struct.h"

/* "validation" of "validation.loss" */
static bool begins_with(const char *identifier, const char *part)
{
    size_t length = strlen(part);
    return strncmp(identifier, part, length) == 0 &&
           (identifier[length] == '.' || identifier[length] == '\0');
}

/* Whether a value with this identifier would have to exist before the first iteration: false for results of
 * hooks and for what is measured on the trainer's data. */
bool sgm__hooks_is_known_early(sgm_trainer *trainer, const char *identifier)
{
    if (!trainer || begins_with(identifier, "shared") || begins_with(identifier, "training") ||
        identifier[0] == '*')
        return false;
    for (size_t i = 0; i < trainer->data.validation_count; i++) {
        char *part = sgm__identifier_part(trainer->data.validation[i].name);
        bool is_of = part && begins_with(identifier, part);
        sgm__free(part);
        if (is_of)
            return false;
    }
    return true;
}

/* The hook as the user knows it: where it is attached only because others require it, the first of those that
 * the user attached. With the lock; retained. */
static sgm_hook *asked_for(const sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    const sgm__hook_entry *requiring;
    while (!entry->chosen && (requiring = sgm__hook_entry_requiring(hooks, entry)) != NULL)
        entry = requiring;
    return sgm_hook_retain(entry->hook);
}

/* Calls the hook's own check in its turn, as a background hook may be in the middle of its work. Messages
 * name the hook `asked`. */
static sgm_status check_entry(sgm__hooks *hooks, sgm__hook_entry *entry, const sgm_hook *asked,
                              sgm_hook_call call)
{
    sgm_hook *hook = entry->hook;
    sgm__hook_control control = {hooks, hook};
    call.control = &control;
    sgm__lock_giving_way(hook->turn);
    sgm_status status = hook->type->check(hook->self, &call);
    pthread_mutex_unlock(hook->turn);
    return status == SGM_OK ? SGM_OK
                            : sgm__fail_within("hook '%s'", asked->text ? asked->text : asked->type->name);
}

/* Resolves what the condition reads, as far as it would be there already. */
static sgm_status check_criteria(const sgm__hooks *hooks, sgm_trainer *trainer, const sgm_hook *hook)
{
    const char *identifier;
    sgm_status status = SGM_OK;
    for (size_t i = 0; hook->criteria != NULL && status == SGM_OK &&
                       (identifier = sgm_criteria_identifier_at(hook->criteria, i)) != NULL;
         i++) {
        sgm_content content = {0};
        if (sgm__hooks_is_known_early(trainer, identifier))
            status = sgm_registry_resolve_one(hooks->registry, identifier, &content);
        sgm_content_clear(&content);
    }
    return status;
}

sgm_status sgm__hooks_check_new(sgm__hooks *hooks, sgm_trainer *trainer, sgm_hook *hook)
{
    sgm__hook_control control = {hooks, hook};
    sgm_hook_call call = {
        .registry = hooks->registry, .trainer = hooks->trainer, .scale = SGM_START, .control = &control};
    SGM_TRY(check_criteria(hooks, trainer, hook));
    return hook->type->check != NULL ? hook->type->check(hook->self, &call) : SGM_OK;
}

/* Asks each hook in the order of running. The lock is let go of while a hook is asked, since it may attach
 * or detach hooks: the entry is referenced meanwhile, and a changed list ends the walk. */
sgm_status sgm__hooks_check(sgm__hooks *hooks, int64_t epoch, int64_t iteration)
{
    sgm_hook_call call = {.registry = hooks->registry,
                          .trainer = hooks->trainer,
                          .scale = SGM_START,
                          .epoch = epoch,
                          .iteration = iteration};
    sgm__hook_entry *garbage = NULL;
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&hooks->lock);
    int64_t version = hooks->version;
    for (size_t i = 0; i < hooks->count && status == SGM_OK && version == hooks->version; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        if (entry->stored || !entry->hook->type->check)
            continue;
        entry->references++;
        sgm_hook *asked = asked_for(hooks, entry);
        pthread_mutex_unlock(&hooks->lock);
        status = check_entry(hooks, entry, asked, call);
        sgm_hook_free(asked);
        pthread_mutex_lock(&hooks->lock);
        sgm__hook_entry_drop(entry, &garbage);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    return status;
}
