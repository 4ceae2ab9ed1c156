/* Local hooks: each worker has a copy, attached to its replica, which sees the worker's own values.
 *
 * Copies are made when first needed and kept with the operator, so that a hook which is taken off and
 * attached again goes on. The lists of all workers are alike, so the first one's answers for all; names
 * carry "local " in front. */
#include "hooks/hooks_internal.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "registry/registry_internal.h"
#include "trainer/trainer.h"

#include <math.h>

#define LOCAL "local " /* in front of names */

static sgm__local_hook *find_hook(sgm_operator *parallel, const sgm_hook *hook)
{
    for (size_t i = 0; i < parallel->hook_count; i++)
        if (parallel->hooks[i].hook == hook)
            return &parallel->hooks[i];
    return NULL;
}

static sgm_status copy_for(sgm_operator *parallel, sgm_hook *hook, int32_t worker, sgm_hook **copy);

/* What a hook requires is copied with it, once for each worker. */
static sgm_status copy_required(sgm_operator *parallel, const sgm_hook *hook, int32_t worker, sgm_hook *copy)
{
    for (size_t i = 0; i < hook->required_count; i++) {
        sgm_hook *required;
        SGM_TRY(copy_for(parallel, hook->required[i], worker, &required));
        SGM_TRY(sgm_hook_require(copy, sgm_hook_retain(required)));
    }
    return SGM_OK;
}

/* The worker's copy, made when first needed, with copies of what it requires. */
static sgm_status copy_for(sgm_operator *parallel, sgm_hook *hook, int32_t worker, sgm_hook **copy)
{
    sgm__local_hook *known = find_hook(parallel, hook);
    if (known == NULL) {
        SGM_TRY(sgm__reserve(&parallel->hooks, &parallel->hook_capacity, parallel->hook_count + 1,
                             sizeof(sgm__local_hook)));
        known = &parallel->hooks[parallel->hook_count++];
        *known = (sgm__local_hook){.hook = sgm_hook_retain(hook)};
    }
    *copy = known->copies[worker];
    if (*copy != NULL)
        return SGM_OK;
    sgm_hook *made = sgm__hook_copy(hook);
    sgm_status status = made != NULL ? copy_required(parallel, hook, worker, made) : sgm__last_failure();
    if (status != SGM_OK) {
        sgm_hook_free(made);
        return status;
    }
    find_hook(parallel, hook)->copies[worker] = made; /* the list may have moved */
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

static sgm_status attach(sgm_operator *parallel, sgm_hook *hook, int32_t worker, sgm__attachment how,
                         bool *attached, char **name)
{
    sgm_hook *copy = NULL;
    pthread_mutex_lock(&parallel->hook_lock);
    sgm_status status = copy_for(parallel, hook, worker, &copy);
    pthread_mutex_unlock(&parallel->hook_lock);
    return status == SGM_OK ? sgm__hooks_attach_as(sgm__hooks_of(parallel->workers[worker].replica), copy,
                                                   how, attached, name)
                            : status;
}

/* All workers or none. */
sgm_status sgm__operator_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                                char **name)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    bool added[SGM__MAXIMUM_WORKERS] = {false};
    sgm_status status = SGM_OK;
    int32_t done = 0;
    for (; done < parallel->count && status == SGM_OK; done++)
        status = attach(parallel, hook, done, how, &added[done], done == 0 ? name : NULL);
    if (status == SGM_OK && name != NULL)
        status = name_local(name);
    if (attached != NULL)
        *attached = status == SGM_OK && added[0];
    for (int32_t i = 0; i < done && status != SGM_OK; i++)
        if (added[i])
            sgm__hooks_detach(sgm__hooks_of(parallel->workers[i].replica),
                              find_hook(parallel, hook)->copies[i]);
    return status;
}

/* The workers' lists are alike, so the name is the same for all; the last one's texts are the caller's. */
sgm_status sgm__operator_detach(sgm_trainer *trainer, const char *name, char **full, char **text)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    sgm_status status = SGM_OK;
    *full = *text = NULL;
    if (strncmp(name, LOCAL, strlen(LOCAL)) == 0)
        name += strlen(LOCAL);
    for (int32_t i = 0; i < parallel->count && status == SGM_OK; i++) {
        sgm__free(*full);
        sgm__free(*text);
        status = sgm__hooks_detach_named(sgm__hooks_of(parallel->workers[i].replica), name, full, text, NULL);
    }
    return status == SGM_OK ? name_local(full) : status;
}

/* Alike for all workers, so it is the first one's that are counted. */
sgm_status sgm__operator_list(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    sgm_status status =
        sgm__hooks_list(sgm__hooks_of(sgm__sharing_of(trainer)->operator->workers[0].replica), list, count);
    for (size_t i = 0; i < *count && status == SGM_OK; i++)
        status = name_local(&(*list)[i].name);
    if (status == SGM_OK)
        return SGM_OK;
    sgm_attached_hooks_free(*list, *count);
    *list = NULL;
    *count = 0;
    return status;
}

/* An iteration is one only for those that had examples. */
sgm_status sgm__operator_event(sgm_trainer *trainer, sgm_time_scale scale)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    for (int32_t i = 0; i < parallel->count; i++) {
        const sgm__worker *worker = &parallel->workers[i];
        const sgm__training_position *position = sgm__position_of(worker->replica);
        if (scale == SGM_ITERATION && worker->examples == 0)
            continue;
        if (sgm__hooks_event(sgm__hooks_of(worker->replica), scale, position->epoch, position->iteration) !=
            SGM_OK)
            return sgm__fail_within("worker %d", i);
    }
    return SGM_OK;
}

sgm_status sgm__operator_reset(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    sgm__operator_restart(trainer);
    SGM_TRY(sgm__ranks_begin_anew(trainer));
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_trainer *replica = parallel->workers[i].replica;
        sgm__progress_of(replica)->newest_loss = NAN;
        sgm__registry_clear_child(sgm__registry_of(replica), "shared");
        sgm__registry_clear(parallel->workers[i].results);
        SGM_TRY(sgm__hooks_restart(sgm__hooks_of(replica)));
    }
    return SGM_OK;
}

void sgm__operator_wait_for_hooks(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    for (int32_t i = 0; i < parallel->count; i++)
        sgm__hooks_wait(sgm__hooks_of(parallel->workers[i].replica));
}

sgm__command *sgm__operator_take_command(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    sgm__command *command = NULL;
    for (int32_t i = 0; i < parallel->count && command == NULL; i++)
        command = sgm__hooks_take_command(sgm__hooks_of(parallel->workers[i].replica));
    return command;
}
