/* Local hooks: each worker has a copy, attached to its scope. */
#include "registry/registry_internal.h"
#include "training/hooks_internal.h"
#include "training/ranks.h"
#include "training/trainer.h"

#include <math.h>

#define LOCAL "local " /* in front of names */

static sgm__local_hook *find_hook(sgm_operator *team, const sgm_hook *hook)
{
    for (size_t i = 0; i < team->hook_count; i++)
        if (team->hooks[i].hook == hook)
            return &team->hooks[i];
    return NULL;
}

static sgm_status copy_for(sgm_operator *team, sgm_hook *hook, int32_t worker, sgm_hook **copy);

static sgm_status copy_required(sgm_operator *team, const sgm_hook *hook, int32_t worker, sgm_hook *copy)
{
    for (size_t i = 0; i < hook->required_count; i++) {
        sgm_hook *required;
        SGM_TRY(copy_for(team, hook->required[i], worker, &required));
        SGM_TRY(sgm_hook_require(copy, sgm_hook_retain(required)));
    }
    return SGM_OK;
}

/* The worker's copy, made when first needed, with copies of what it requires. */
static sgm_status copy_for(sgm_operator *team, sgm_hook *hook, int32_t worker, sgm_hook **copy)
{
    sgm__local_hook *known = find_hook(team, hook);
    if (known == NULL) {
        SGM_TRY(
            sgm__reserve(&team->hooks, &team->hook_capacity, team->hook_count + 1, sizeof(sgm__local_hook)));
        known = &team->hooks[team->hook_count++];
        *known = (sgm__local_hook){.hook = sgm_hook_retain(hook)};
    }
    *copy = known->copies[worker];
    if (*copy != NULL)
        return SGM_OK;
    sgm_hook *made = sgm__hook_copy(hook);
    sgm_status status = made != NULL ? copy_required(team, hook, worker, made) : sgm__last_failure();
    if (status != SGM_OK) {
        sgm_hook_free(made);
        return status;
    }
    find_hook(team, hook)->copies[worker] = made; /* the list may have moved */
    *copy = made;
    return SGM_OK;
}

/* "local accumulator#1", which a list has beside the trainer's; `name` is freed. */
static sgm_status name_local(char **name)
{
    char *own = *name;
    *name = own != NULL ? sgm__format(LOCAL "%s", own) : NULL;
    sgm__free(own);
    return *name != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status attach(sgm_operator *team, sgm_hook *hook, int32_t worker, sgm__attachment how,
                         bool *attached, char **name)
{
    sgm_hook *copy = NULL;
    pthread_mutex_lock(&team->hook_lock);
    sgm_status status = copy_for(team, hook, worker, &copy);
    pthread_mutex_unlock(&team->hook_lock);
    return status == SGM_OK
               ? sgm__hooks_attach_as(team->workers[worker].scope->hooks, copy, how, attached, name)
               : status;
}

/* All workers or none. */
sgm_status sgm__operator_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                char **name)
{
    sgm_operator *team = trainer->team;
    bool added[SGM__MOST_WORKERS] = {false};
    sgm_status status = SGM_OK;
    int32_t done = 0;
    for (; done < team->count && status == SGM_OK; done++)
        status = attach(team, hook, done, how, &added[done], done == 0 ? name : NULL);
    if (status == SGM_OK && name != NULL)
        status = name_local(name);
    if (attached != NULL)
        *attached = status == SGM_OK && added[0];
    for (int32_t i = 0; i < done && status != SGM_OK; i++)
        if (added[i])
            sgm__hooks_detach(team->workers[i].scope->hooks, find_hook(team, hook)->copies[i]);
    return status;
}

/* The workers' lists are alike, so the name is the same for all; the last one's texts are the caller's. */
sgm_status sgm__operator_detach(sgm_trainer *trainer, const char *name, char **full, char **text)
{
    const sgm_operator *team = trainer->team;
    sgm_status status = SGM_OK;
    *full = *text = NULL;
    if (strncmp(name, LOCAL, strlen(LOCAL)) == 0)
        name += strlen(LOCAL);
    for (int32_t i = 0; i < team->count && status == SGM_OK; i++) {
        sgm__free(*full);
        sgm__free(*text);
        status = sgm__hooks_detach_named(team->workers[i].scope->hooks, name, full, text, NULL);
    }
    return status == SGM_OK ? name_local(full) : status;
}

/* Alike for all workers, so it is the first one's that are counted. */
sgm_status sgm__operator_list(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    sgm_status status = sgm__hooks_list(trainer->team->workers[0].scope->hooks, list, count);
    for (size_t i = 0; i < *count && status == SGM_OK; i++)
        status = name_local(&(*list)[i].name);
    if (status == SGM_OK)
        return SGM_OK;
    sgm_attached_hooks_free(*list, *count);
    *list = NULL;
    *count = 0;
    return status;
}

/* An iteration is one only for those that had records. */
sgm_status sgm__operator_event(sgm_trainer *trainer, sgm_time_scale scale)
{
    const sgm_operator *team = trainer->team;
    for (int32_t i = 0; i < team->count; i++) {
        const sgm__worker *worker = &team->workers[i];
        const sgm__training_position *position = &worker->scope->position;
        if (scale == SGM_ITERATION && worker->records == 0)
            continue;
        if (sgm__hooks_event(worker->scope->hooks, scale, position->epoch, position->iteration) != SGM_OK)
            return sgm__fail_within("worker %d", i);
    }
    return SGM_OK;
}

sgm_status sgm__operator_reset(sgm_trainer *trainer)
{
    sgm__operator_restart(trainer);
    SGM_TRY(sgm__ranks_begin_anew(trainer));
    for (int32_t i = 0; i < trainer->team->count; i++) {
        sgm_trainer *scope = trainer->team->workers[i].scope;
        scope->newest_loss = NAN;
        sgm__registry_clear_child(scope->registry, "shared");
        sgm__registry_clear(trainer->team->workers[i].results);
        SGM_TRY(sgm__hooks_restart(scope->hooks));
    }
    return SGM_OK;
}

void sgm__operator_wait_for_hooks(sgm_trainer *trainer)
{
    for (int32_t i = 0; i < trainer->team->count; i++)
        sgm__hooks_wait(trainer->team->workers[i].scope->hooks);
}

sgm__request *sgm__operator_take_request(sgm_trainer *trainer, sgm_trainer **scope)
{
    for (int32_t i = 0; i < trainer->team->count; i++) {
        *scope = trainer->team->workers[i].scope;
        sgm__request *request = sgm__hooks_take_request((*scope)->hooks);
        if (request != NULL)
            return request;
    }
    return NULL;
}
