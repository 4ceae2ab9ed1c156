/* The states of the workers and of their trainer: who has which, and how they become one.
 *
 * Where gradients are merged in the computer's memory, workers read the trainer's parameters where they lie
 * (shared), since only the trainer's update changes them; they have states of their own only for what their
 * layers change (running statistics) and for random numbers. Where parameters are merged, or devices sum,
 * each worker has all states. `synchronised` says that workers go on from the trainer's states, `changed`
 * that the trainer's are older than theirs. */
#include "handlers/session.h"
#include "network/rerecord.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "train/train.h"

/* --- copies --- */

/* Copies a state from one session to another: by memcpy where both compute in the host's memory and `to` has
 * the state already, otherwise by way of a tensor. */
static sgm_status copy_state(sgm_session *to, sgm_session *from, const char *name)
{
    const void *memory = sgm__session_state_memory(from, name);
    sgm_type type;
    SGM_TRY(sgm_session_state_type(from, name, &type));
    if (memory != NULL && sgm_session_has(to, name) && sgm__session_is_host(to)) {
        size_t size = (size_t)sgm_shape_elements(&type.shape) * sgm_dtype_size(type.dtype);
        memcpy(sgm__session_state_memory(to, name), memory, size);
        return SGM_OK;
    }
    sgm_tensor *value = sgm_session_get(from, name);
    sgm_status status = value != NULL ? sgm_session_set(to, name, value) : sgm_last_status();
    sgm_tensor_free(value);
    return status;
}

/* The first worker of all has the trainer's seed, every other one a hash of it with its number, so that
 * dropout differs between workers and is the same in each run. */
static sgm_status set_seed(sgm_trainer *replica)
{
    static const char name[] = "random.seed";
    sgm_tensor *value = sgm_session_get(sgm__learner_of(sgm__sharing_of(replica)->owner)->session, name);
    if (value == NULL)
        return sgm_last_status();
    int32_t number = sgm__worker_number(sgm__sharing_of(sgm__sharing_of(replica)->owner)->parallel,
                                        sgm__sharing_of(replica)->worker);
    if (number > 0) {
        uint64_t seed;
        memcpy(&seed, sgm_tensor_const_data(value), sizeof seed);
        seed = sgm__hash(&number, sizeof number, seed);
        memcpy(sgm_tensor_data(value), &seed, sizeof seed);
    }
    sgm_status status = sgm_session_set(sgm__learner_of(replica)->session, name, value);
    sgm_tensor_free(value);
    return status;
}

/* Whether a replica reads a state in the trainer's memory instead of having a copy: where gradients are
 * merged, only the trainer's update changes parameters, optimiser states, averages and the random step, and
 * both sessions compute in the host's memory. */
static bool is_shared(const sgm_trainer *replica, const char *name)
{
    return sgm__sharing_of(sgm__sharing_of(replica)->owner)->parallel->merges_gradients &&
           sgm__session_is_host(sgm__learner_of(replica)->session) &&
           sgm__session_is_host(sgm__learner_of(sgm__sharing_of(replica)->owner)->session) &&
           (sgm__trainer_trains(replica, name) || sgm__begins_with(name, SGM__SLOT_PREFIX) ||
            sgm__begins_with(name, SGM__AVERAGE_PREFIX) || strcmp(name, "random.step") == 0);
}

/* Whether a state is a gradient or update that is kept only for a reader of the trainer. */
static bool is_kept(const char *name)
{
    return sgm__begins_with(name, SGM__KEPT_PREFIX);
}

/* Whether a replica has a copy of a state, not the trainer's own memory. */
static bool has_own(const sgm_trainer *replica, const char *name)
{
    const sgm__learner *learner = sgm__learner_of(replica);
    const void *memory = sgm__session_state_memory(learner->session, name);
    return sgm_session_has(learner->session, name) &&
           (memory == NULL || memory != sgm__session_state_memory(
                                            sgm__learner_of(sgm__sharing_of(replica)->owner)->session, name));
}

/* The trainer's value becomes the replica's. */
static sgm_status take_state(sgm_trainer *replica, const char *name)
{
    sgm__learner *learner = sgm__learner_of(replica);
    if (strcmp(name, "random.seed") == 0)
        return set_seed(replica);
    if (!sgm_session_has(learner->session, name) && is_shared(replica, name))
        return sgm__session_share(learner->session, sgm__learner_of(sgm__sharing_of(replica)->owner)->session,
                                  name);
    return !sgm_session_has(learner->session, name) || has_own(replica, name)
               ? copy_state(learner->session, sgm__learner_of(sgm__sharing_of(replica)->owner)->session, name)
               : SGM_OK;
}

/* Gives a state that a replica's program uses its first value. The trainer gets the state first, if it is new
 * there: its value is drawn once and not for each worker. States are collected before, as a moving average
 * begins with its parameter's newest value. */
sgm_status sgm__replica_define_state(sgm_trainer *replica, const char *name, const sgm_type *type)
{
    if (sgm__begins_with(name, SGM__PART_PREFIX))
        return sgm__peers_define(replica, name, type);
    if (!sgm_session_has(sgm__learner_of(sgm__sharing_of(replica)->owner)->session, name)) {
        SGM_TRY(sgm__operator_collect(sgm__sharing_of(replica)->owner));
        SGM_TRY(sgm__trainer_define_state(sgm__sharing_of(replica)->owner, name, type));
    }
    return take_state(replica, name);
}

/* Each replica takes the trainer's states and position, unless it has them; its sums of metrics begin anew,
 * as they are of its own examples. */
sgm_status sgm__operator_synchronise(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    const char *name;
    if (parallel->synchronised)
        return SGM_OK;
    sgm__operator_recorded(trainer);
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_trainer *replica = parallel->workers[i].replica;
        for (size_t k = 0; (name = sgm_session_state_at(sgm__learner_of(trainer)->session, k)) != NULL; k++)
            if (!is_kept(name))
                SGM_TRY(take_state(replica, name));
        *sgm__position_of(replica) = *sgm__position_of(trainer);
        sgm__position_of(replica)->sums = (sgm__metric_sums){0};
    }
    parallel->synchronised = true;
    parallel->changed = parallel->at_end = false;
    return SGM_OK;
}

/* Only marks the workers as out of date: the next iteration synchronises them. Until then, nothing is
 * collected from them either. */
void sgm__operator_restart(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    parallel->synchronised = parallel->changed = sgm__sharing_of(trainer)->parallel->at_end = false;
}

/* A state was set from outside: workers that have a copy get the new value. */
sgm_status sgm__operator_was_set(sgm_trainer *trainer, const char *name)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; parallel->synchronised && i < parallel->count; i++)
        if (has_own(parallel->workers[i].replica, name))
            SGM_TRY(take_state(parallel->workers[i].replica, name));
    return SGM_OK;
}

/* --- merging --- */

/* The values that several workers have of one state, as arrays in the host's memory, and the weight of each.
 */
typedef struct gathered {
    const void *values[SGM__MAXIMUM_WORKERS];
    double shares[SGM__MAXIMUM_WORKERS];
    sgm_tensor *copies[SGM__MAXIMUM_WORKERS]; /* of values that are not in the computer's memory */
    size_t count;
} gathered;

static void let_go(gathered *all)
{
    for (size_t i = 0; i < all->count; i++)
        sgm_tensor_free(all->copies[i]);
}

/* The values of all workers that have the state. `newest`: only of those that had examples in this
 * iteration, with their shares of the examples. */
static sgm_status gather(const sgm_operator *parallel, const char *name, bool newest, gathered *all)
{
    int64_t examples = 0;
    all->count = 0;
    for (int32_t i = 0; i < parallel->count; i++) {
        const sgm__worker *worker = &parallel->workers[i];
        sgm_session *session = sgm__learner_of(worker->replica)->session;
        if (!sgm_session_has(session, name) || (newest && worker->examples == 0))
            continue;
        const void *memory = sgm__session_state_memory(session, name);
        sgm_tensor *copy = memory == NULL ? sgm_session_get(session, name) : NULL;
        if (memory == NULL && copy == NULL) {
            let_go(all);
            return sgm_last_status();
        }
        all->values[all->count] = copy != NULL ? sgm_tensor_const_data(copy) : memory;
        all->copies[all->count] = copy;
        all->shares[all->count++] = (double)worker->examples;
        examples += worker->examples;
    }
    for (size_t i = 0; i < all->count && newest; i++)
        all->shares[i] /= (double)examples;
    return SGM_OK;
}

/* How values of workers become one: with gradients by their shares of the examples; of parameters as the
 * reducer says, an average as its parameter; optimiser states as their mean. */
static void merge_values(const sgm_operator *parallel, const char *name, const sgm_type *type, void *result,
                         gathered *all)
{
    bool averaged = sgm__begins_with(name, SGM__AVERAGE_PREFIX),
         slot = sgm__begins_with(name, SGM__SLOT_PREFIX) || is_kept(name);
    if (parallel->merges_gradients) {
        sgm__merge_weighted(all->shares, type, result, all->values, all->count);
    } else if (slot) {
        for (size_t i = 0; i < all->count; i++)
            all->shares[i] = 1.0 / (double)all->count;
        sgm__merge_weighted(all->shares, type, result, all->values, all->count);
    } else {
        sgm__reducer_reduce(parallel->reducer, averaged ? name + strlen(SGM__AVERAGE_PREFIX) : name, type,
                            result, all->values, all->count);
    }
}

/* Merges a state into the trainer's session, in place where it lies in the host's memory. `newest`: as in
 * gather. A state that no worker has stays as it is. */
static sgm_status merge_state(const sgm_operator *parallel, const char *name, bool newest)
{
    gathered all;
    sgm_session *session = sgm__learner_of(parallel->trainer)->session;
    sgm_type type;
    SGM_TRY(sgm_session_state_type(session, name, &type));
    SGM_TRY(gather(parallel, name, newest, &all));
    if (all.count == 0)
        return SGM_OK;
    void *memory = sgm__session_state_memory(session, name);
    sgm_tensor *result = memory == NULL ? sgm_tensor_create(type.dtype, &type.shape) : NULL;
    sgm_status status = memory != NULL || result != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        merge_values(parallel, name, &type, memory != NULL ? memory : sgm_tensor_data(result), &all);
    if (result != NULL)
        status = sgm_session_set(session, name, result);
    sgm_tensor_free(result);
    let_go(&all);
    return status;
}

/* States that layers change themselves, such as running means: the mean over the examples. */
sgm_status sgm__operator_merge_others(sgm_operator *parallel)
{
    sgm_trainer *trainer = parallel->trainer;
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(sgm__learner_of(trainer)->session, i)) != NULL; i++)
        if (sgm__trainer_is_layer_state(trainer, name))
            SGM_TRY(merge_state(parallel, name, true));
    return SGM_OK;
}

/* Gives the merged states back to the workers. Peers get layers' states only: all else they have computed
 * themselves, and the trainer's values may be older. */
sgm_status sgm__operator_spread_others(sgm_operator *parallel)
{
    const char *name;
    for (int32_t k = 0; k < parallel->count; k++)
        for (size_t i = 0;
             (name = sgm_session_state_at(sgm__learner_of(parallel->workers[k].replica)->session, i)) != NULL;
             i++)
            if (has_own(parallel->workers[k].replica, name) && strcmp(name, "random.seed") != 0 &&
                (!parallel->together || sgm__trainer_is_layer_state(parallel->trainer, name)))
                SGM_TRY(take_state(parallel->workers[k].replica, name));
    return SGM_OK;
}

/* Brings the trainer's states up to date before somebody reads them, if an iteration has changed the workers'
 * since. With peers all workers have the same parameters, so the first one's are copied; where parameters are
 * merged, the trainer gets the merged value, and the workers keep theirs. random.step is the same everywhere;
 * random.seed stays the trainer's. */
sgm_status sgm__operator_collect(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    const char *name;
    if (!parallel->changed)
        return SGM_OK;
    sgm_session *first = sgm__learner_of(parallel->workers[0].replica)->session;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++) {
        bool copied = parallel->merges_gradients || strcmp(name, "random.step") == 0;
        if (strcmp(name, "random.seed") == 0)
            continue;
        if (!copied)
            SGM_TRY(merge_state(parallel, name, false));
        else if (sgm_session_has(first, name))
            SGM_TRY(copy_state(learner->session, first, name));
    }
    parallel->changed = false;
    return SGM_OK;
}

/* Parameters and optimiser states of all ranks become one: from here on all workers go on alike, as after a
 * resume. */
sgm_status sgm__operator_merge_all(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    if (parallel->ranks == NULL || sgm__sharing_of(trainer)->parallel->merges_gradients ||
        !sgm__sharing_of(trainer)->parallel->synchronised)
        return SGM_OK;
    SGM_TRY(sgm__operator_collect(trainer));
    SGM_TRY(sgm__ranks_average(trainer, true));
    bool at_end = parallel->at_end;
    sgm__operator_restart(trainer);
    parallel->at_end = at_end;
    return SGM_OK;
}

/* Merges parameters and gives them to the workers, who keep their own optimiser states. */
sgm_status sgm__operator_merge(sgm_operator *parallel)
{
    sgm_trainer *trainer = parallel->trainer;
    const char *name;
    SGM_TRY(sgm__operator_collect(trainer));
    SGM_TRY(sgm__ranks_average(trainer, false));
    for (int32_t k = 0; k < parallel->count; k++)
        for (size_t i = 0; (name = sgm_session_state_at(sgm__learner_of(trainer)->session, i)) != NULL; i++)
            if (!sgm__begins_with(name, "random.") && !sgm__begins_with(name, SGM__SLOT_PREFIX) &&
                !is_kept(name))
                SGM_TRY(take_state(parallel->workers[k].replica, name));
    return SGM_OK;
}
