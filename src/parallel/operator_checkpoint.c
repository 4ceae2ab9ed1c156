/* Workers in checkpoints: their positions and hooks beside the trainer's, and what only they have. */
#include "parallel/operator.h"
#include "runs/parts.h"

#include <stdio.h>
#include <stdlib.h>

#define KEY "workers"
#define WORKER_PARTS ((unsigned)SGM_PART_POSITION | SGM_PART_OPTIMISER | SGM_PART_HOOKS | SGM_PART_METRICS)

/* --- saving --- */

sgm_status sgm__operator_describe(const sgm_trainer *trainer, json_t *state)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    if (parallel->ranks != NULL || !parallel->synchronised) /* ranks are alike where they are saved */
        return SGM_OK;
    json_t *list = json_array();
    json_object_set_new(state, KEY, list);
    for (int32_t i = 0; i < parallel->count; i++) {
        json_t *one = json_object();
        json_array_append_new(list, one);
        SGM_TRY(sgm__state_describe(parallel->workers[i].replica, WORKER_PARTS, one));
    }
    return SGM_OK;
}

/* Gradients and updates are kept for whoever looks: no part of a checkpoint, of workers either. */
static bool is_kept(const char *state)
{
    return strncmp(state, SGM__KEPT_PREFIX, strlen(SGM__KEPT_PREFIX)) == 0;
}

static sgm_status add_replica(sgm_trainer *replica, sgm_bundle *bundle)
{
    sgm__learner *learner = sgm__learner_of(replica);
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++) {
        if (is_kept(name))
            continue;
        char *full = sgm__format(SGM__WORKER_PREFIX "%d.%s", sgm__sharing_of(replica)->worker, name);
        sgm_tensor *value = sgm_session_get(learner->session, name);
        sgm_status status =
            full != NULL && value != NULL ? sgm_bundle_add(bundle, full, value) : sgm__last_failure();
        sgm_tensor_free(value);
        sgm__free(full);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Where gradients are merged, the workers have nothing of their own. */
sgm_status sgm__operator_add_states(sgm_trainer *trainer, sgm_bundle *bundle)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    if (parallel->ranks != NULL || parallel->merges_gradients || !parallel->synchronised)
        return SGM_OK;
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(add_replica(parallel->workers[i].replica, bundle));
    return SGM_OK;
}

/* --- loading --- */

/* Workers of as many are what this operator goes on from. */
static const json_t *workers_in(const sgm_operator *parallel, const json_t *state)
{
    const json_t *list = json_object_get(state, KEY);
    return json_array_size(list) == (size_t)parallel->count ? list : NULL;
}

static sgm_status check_tensors(const sgm_trainer *trainer, const sgm_bundle *bundle, const char *path)
{
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name(bundle, i), *state;
        long worker = sgm__worker_of_state(name, &state);
        if (worker < 0 || worker >= sgm__sharing_of(trainer)->operator->count ||
                                    is_kept(state)) /* older files have some */
            continue;
        if (!sgm_bundle_has(bundle, state))
            return sgm_fail(SGM_ERROR_FORMAT, "'%s': a worker has '%s', the trainer has not", path, state);
        const sgm_tensor *own = sgm_bundle_get(bundle, name), *all = sgm_bundle_get(bundle, state);
        if (sgm_tensor_dtype(own) != sgm_tensor_dtype(all) ||
            !sgm_shape_equal(sgm_tensor_shape(own), sgm_tensor_shape(all)))
            return sgm_fail(SGM_ERROR_SHAPE, "'%s': tensor '%s' is of another type or shape than '%s'", path,
                            name, state);
    }
    return SGM_OK;
}

sgm_status sgm__operator_check(sgm_trainer *trainer, const sgm_bundle *bundle, const json_t *state,
                               const char *path)
{
    const json_t *list = workers_in(sgm__sharing_of(trainer)->operator, state);
    for (size_t i = 0; i < json_array_size(list); i++) {
        sgm__saved_state one = {.json = json_array_get(list, i), .parts = WORKER_PARTS};
        SGM_TRY(sgm__state_read(&one, path));
    }
    return list != NULL ? check_tensors(trainer, bundle, path) : SGM_OK;
}

static sgm_status take_over_states(const sgm_operator *parallel, const sgm_bundle *bundle)
{
    for (size_t i = 0; i < sgm_bundle_count(bundle) && !parallel->merges_gradients; i++) {
        const char *name = sgm_bundle_name(bundle, i), *state;
        long worker = sgm__worker_of_state(name, &state);
        if (worker >= 0 && worker < parallel->count && !is_kept(state))
            SGM_TRY(sgm_session_set(sgm__learner_of(parallel->workers[worker].replica)->session, state,
                                    sgm_bundle_get(bundle, name)));
    }
    return SGM_OK;
}

sgm_status sgm__operator_take_over(sgm_trainer *trainer, const sgm_bundle *bundle, const json_t *state,
                                   const char *path)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    const json_t *list = workers_in(parallel, state);
    sgm__operator_restart(trainer);
    if (list == NULL && json_object_get(state, KEY) != NULL)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer),
                 "'%s' is of %zu workers: the %d of now begin with what those have learnt together", path,
                 json_array_size(json_object_get(state, KEY)), parallel->count);
    if (list == NULL)
        return SGM_OK;
    SGM_TRY(sgm__operator_synchronise(trainer));
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__saved_state one = {.json = json_array_get(list, (size_t)i), .parts = WORKER_PARTS};
        sgm_trainer *replica = parallel->workers[i].replica;
        SGM_TRY(sgm__state_read(&one, path));
        SGM_TRY(sgm__state_set_learnt(replica, &one, WORKER_PARTS));
        SGM_TRY(sgm__state_set_position(replica, &one, WORKER_PARTS));
    }
    return take_over_states(parallel, bundle);
}
