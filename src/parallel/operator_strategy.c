/* An operator as a trainer's strategy: which function of workers and ranks does what the trainer asks for;
 * workers in checkpoints; and local hooks.
 *
 * Each worker has a copy of a local hook, attached to its replica, which sees the worker's own values. Copies
 * are made when first needed and kept with the operator, so that a hook which is taken off and attached again
 * goes on. The lists of all workers are alike, so the first one's answers for all; names carry "local " in
 * front. */
#include "hooks/hooks_internal.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "registry/registry_internal.h"
#include "runs/parts/parts.h"
#include "trainer/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY "workers" /* of the workers' list in the JSON text of a checkpoint */
/* What a checkpoint has of each worker; parameters are the trainer's. */
#define WORKER_PARTS ((unsigned)SGM_PART_POSITION | SGM_PART_OPTIMISER | SGM_PART_HOOKS | SGM_PART_METRICS)

/* --- saving --- */

/* Adds what WORKER_PARTS says of each worker to a checkpoint's text. Ranks are alike when a checkpoint is
 * made, so rank 0's own state is enough for all. */
static sgm_status describe(const sgm_trainer *trainer, json_t *state)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
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

/* Whether a state is a gradient or update that is kept for a reader: no part of a checkpoint. */
static bool is_kept(const char *state)
{
    return sgm__begins_with(state, SGM__KEPT_PREFIX);
}

/* Adds the states of a replica to the bundle, under names such as "workers.0.NAME". */
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

/* Adds the states that workers have of their own: those of operators that merge parameters, whose workers
 * differ between two merges. */
static sgm_status add_worker_states(sgm_trainer *trainer, sgm_bundle *bundle)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    if (parallel->ranks != NULL || parallel->merges_gradients || !parallel->synchronised)
        return SGM_OK;
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(add_replica(parallel->workers[i].replica, bundle));
    return SGM_OK;
}

/* --- loading --- */

/* The list of workers in a checkpoint, if it has as many workers as this operator; NULL: the present workers
 * begin from the trainer's states instead. */
static const json_t *workers_in(const sgm_operator *parallel, const json_t *state)
{
    const json_t *list = json_object_get(state, KEY);
    return json_array_size(list) == (size_t)parallel->count ? list : NULL;
}

/* Before anything changes: each tensor of a worker must have a counterpart of the trainer, of the same type
 * and shape. */
static sgm_status check_tensors(const sgm_trainer *trainer, const sgm_bundle *bundle, const char *path)
{
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i), *state;
        long worker = sgm__worker_of_state(name, &state);
        if (worker < 0 || worker >= sgm__sharing_of(trainer)->parallel->count ||
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

/* Whether the workers' states of a checkpoint can be loaded; nothing is changed. */
static sgm_status check(sgm_trainer *trainer, const sgm_bundle *bundle, const json_t *state, const char *path)
{
    const json_t *list = workers_in(sgm__sharing_of(trainer)->parallel, state);
    for (size_t i = 0; i < json_array_size(list); i++) {
        sgm__saved_state one = {.json = json_array_get(list, i), .parts = WORKER_PARTS};
        SGM_TRY(sgm__state_read(&one, path));
    }
    return list != NULL ? check_tensors(trainer, bundle, path) : SGM_OK;
}

/* Sets the states of each worker from the bundle. Workers that merge gradients share the trainer's. */
static sgm_status take_over_states(const sgm_operator *parallel, const sgm_bundle *bundle)
{
    for (size_t i = 0; i < sgm_bundle_count(bundle) && !parallel->merges_gradients; i++) {
        const char *name = sgm_bundle_name_at(bundle, i), *state;
        long worker = sgm__worker_of_state(name, &state);
        if (worker >= 0 && worker < parallel->count && !is_kept(state))
            SGM_TRY(sgm_session_set(sgm__learner_of(parallel->workers[worker].replica)->session, state,
                                    sgm_bundle_get(bundle, name)));
    }
    return SGM_OK;
}

/* After the trainer has loaded its part of a checkpoint: gives the workers theirs. With another number of
 * workers than the checkpoint's, all begin from the trainer's states, with a message. */
static sgm_status take_over(sgm_trainer *trainer, const sgm_bundle *bundle, const json_t *state,
                            const char *path)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
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
        SGM_TRY(sgm__state_set_rest(replica, &one, WORKER_PARTS));
    }
    return take_over_states(parallel, bundle);
}

/* --- local hooks --- */

#define LOCAL "local " /* in front of names */

static sgm__local_hook *find_hook(sgm_operator *parallel, const sgm_hook *hook)
{
    for (size_t i = 0; i < parallel->hook_count; i++)
        if (parallel->hooks[i].hook == hook)
            return &parallel->hooks[i];
    return NULL;
}

static sgm_status copy_for(sgm_operator *parallel, sgm_hook *hook, int32_t worker, sgm_hook **copy);

/* Copies the hooks that a hook requires, once for each worker, and has the copy require the copies. */
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

/* Attaches a copy of the hook to each worker, or to none: after a failure, copies that this call has attached
 * are detached again. *attached says whether the hook is new. */
static sgm_status attach_local(sgm_trainer *trainer, sgm_hook *hook, sgm__attachment how, bool *attached,
                               char **name)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    bool added[SGM__MAXIMUM_WORKERS] = {false};
    sgm_status status = SGM_OK;
    int32_t done = 0;
    for (; done < parallel->count && status == SGM_OK; done++)
        status = attach(parallel, hook, done, how, &added[done], done == 0 ? name : NULL);
    if (status == SGM_OK && name != NULL)
        status = name_local(name);
    if (attached != NULL)
        *attached = status == SGM_OK && added[0];
    for (int32_t i = 0; i < done && status != SGM_OK; i++) {
        if (!added[i])
            continue;
        pthread_mutex_lock(&parallel->hook_lock);
        sgm_hook *copy = find_hook(parallel, hook)->copies[i];
        pthread_mutex_unlock(&parallel->hook_lock);
        sgm__hooks_detach(sgm__hooks_of(parallel->workers[i].replica), copy);
    }
    return status;
}

/* Detaches a local hook by its name, with or without "local " in front, from all workers. The workers' lists
 * are alike, so the name is the same for each; *full and *text are those of the last worker, and the
 * caller's. */
static sgm_status detach(sgm_trainer *trainer, const char *name, char **full, char **text)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm_status status = SGM_OK;
    *full = *text = NULL;
    if (sgm__begins_with(name, LOCAL))
        name += strlen(LOCAL);
    for (int32_t i = 0; i < parallel->count && status == SGM_OK; i++) {
        sgm__free(*full);
        sgm__free(*text);
        status = sgm__hooks_detach_named(sgm__hooks_of(parallel->workers[i].replica), name, full, text, NULL);
    }
    return status == SGM_OK ? name_local(full) : status;
}

/* All workers have the same hooks, so those of the first one count. */
static void press_local(sgm_trainer *trainer, const char *name, size_t *count)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; i < parallel->count; i++) {
        size_t pressed = 0;
        sgm__hooks_press(sgm__hooks_of(parallel->workers[i].replica), name, &pressed);
        *count += i == 0 ? pressed : 0;
    }
}

/* Lists the local hooks, by the first worker's list: all lists are alike. */
static sgm_status list_local(sgm_trainer *trainer, sgm_attached_hook **list, size_t *count)
{
    sgm_status status =
        sgm__hooks_list(sgm__hooks_of(sgm__sharing_of(trainer)->parallel->workers[0].replica), list, count);
    for (size_t i = 0; i < *count && status == SGM_OK; i++)
        status = name_local(&(*list)[i].name);
    if (status == SGM_OK)
        return SGM_OK;
    sgm_attached_hooks_free(*list, *count);
    *list = NULL;
    *count = 0;
    return status;
}

/* --- the trainer's life --- */

static void free_operator(sgm_trainer *trainer)
{
    sgm_operator_free(sgm__sharing_of(trainer)->parallel);
}

static sgm_status copy(sgm_trainer *to, const sgm_trainer *from)
{
    return sgm_trainer_set_operator(to, sgm__operator_copy(sgm__sharing_of(from)->parallel));
}

/* --- a run --- */

/* Ranks first: they bring all processes to the same states, from which the workers then begin. */
static sgm_status start(sgm_trainer *trainer, int64_t saves)
{
    SGM_TRY(sgm__ranks_begin(trainer, saves));
    return sgm__operator_start(trainer);
}

/* Tells the workers' hooks of an event. An iteration is one only for workers that had examples. */
static sgm_status event(sgm_trainer *trainer, sgm_time_scale scale)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
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

/* Ranks are compared before a checkpoint would keep a difference. What rounding to bfloat16 has lost is
 * forgotten, so that a run that resumes here computes the same. */
static sgm_status end_epoch(sgm_trainer *trainer)
{
    SGM_TRY(sgm__operator_end_epoch(trainer));
    SGM_TRY(sgm__ranks_compare(trainer));
    sgm__ranks_forget_lost(trainer);
    return SGM_OK;
}

static sgm_status prepare_save(sgm_trainer *trainer, bool at_epoch)
{
    return !at_epoch || sgm__ranks_save_is_due(trainer) ? sgm__ranks_prepare_save(trainer) : SGM_OK;
}

/* Hooks of workers that compute in the background have ended when this returns. */
static void wait_for_hooks(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; i < parallel->count; i++)
        sgm__hooks_wait(sgm__hooks_of(parallel->workers[i].replica));
}

/* After the last iteration: waits for background hooks, merges the parameters of all ranks and brings
 * optimiser states to rank 0, for the last checkpoint. */
static sgm_status finish(sgm_trainer *trainer)
{
    wait_for_hooks(trainer);
    SGM_TRY(sgm__operator_merge_all(trainer));
    return sgm__ranks_prepare_save(trainer);
}

/* Other ranks are told of a failure first, before this one waits for its own threads. */
static void end(sgm_trainer *trainer, bool failed)
{
    if (failed)
        sgm__ranks_fail(sgm__trainer_ranks(trainer));
    sgm__operator_end(trainer);
    sgm__ranks_end(trainer);
}

/* --- states --- */

/* The trainer has been reset to its beginning: so are hooks and results of the workers. Their states follow
 * at the next iteration. */
static sgm_status reset(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
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

/* Finds the session that keeps the gradient or update of a parameter: where gradients are merged, the
 * trainer's, whose update sees the sum; where parameters are merged, that of the replica that was asked. */
static sgm_status find_kept(sgm_trainer *trainer, const char *parameter, const char *what,
                            sgm_trainer **keeper)
{
    const sgm_operator *parallel = sgm__sharing_of(sgm__sharing_of(trainer)->owner)->parallel;
    if (parallel->ranks != NULL && sgm__ranks_owner(parallel->ranks, parameter) != parallel->ranks->rank)
        return sgm_fail(SGM_ERROR_STATE, "the %s of %s are with rank %d, which updates it (operator.sharded)",
                        what, parameter, sgm__ranks_owner(parallel->ranks, parameter));
    *keeper = parallel->merges_gradients ? sgm__sharing_of(trainer)->owner : trainer;
    return SGM_OK;
}

/* Each state is returned once: `shown` counts those that the registry has got. */
static const char *next_elsewhere(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && ranks->shown < ranks->slot_count ? ranks->slots[ranks->shown++].state : NULL;
}

/* Ranks are told of a whole checkpoint only (sgm__ranks_note_saved): a copy of some parts is no point to
 * resume from. */
static sgm_status add_states(sgm_trainer *trainer, const sgm__parts *wanted, sgm_bundle *bundle)
{
    if (sgm__parts_are_all(wanted))
        sgm__ranks_note_saved(trainer);
    SGM_TRY(sgm__ranks_add_slots(trainer, wanted, bundle));
    return sgm__parts_are_all(wanted) ? add_worker_states(trainer, bundle) : SGM_OK;
}

/* --- hooks --- */

/* The oldest command of a local hook. NULL: none. */
static sgm__command *take_command(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__command *command = NULL;
    for (int32_t i = 0; i < parallel->count && command == NULL; i++)
        command = sgm__hooks_take_command(sgm__hooks_of(parallel->workers[i].replica));
    return command;
}

static const sgm_trainer *first_replica(const sgm_trainer *trainer)
{
    return sgm__sharing_of(trainer)->parallel->workers[0].replica;
}

static sgm_registry *results(const sgm_trainer *replica)
{
    const sgm__sharing *sharing = sgm__sharing_of(replica);
    return sgm__sharing_of(sharing->owner)->parallel->workers[sharing->worker].results;
}

/* --- the table ---
 *
 * Both strategies have the same functions: those of ranks do nothing where parallel->ranks is NULL. Only
 * `meet` tells a run whether there are other processes to agree with. */

#define FUNCTIONS                                                                                            \
    .free = free_operator, .copy = copy, .start = start, .synchronise = sgm__operator_synchronise,           \
    .describe = sgm__ranks_describe, .next = sgm__operator_next, .iterate = sgm__operator_iterate,           \
    .check = sgm__ranks_compare_when_due, .event = event, .end_epoch = end_epoch,                            \
    .prepare_save = prepare_save, .finish = finish, .leave = sgm__ranks_leave, .end = end,                   \
    .follows = sgm__ranks_follow, .must_meet = sgm__ranks_must_meet, .moved = sgm__ranks_moved,              \
    .note = sgm__ranks_note, .next_command = take_command, .decide = sgm__ranks_decide,                      \
    .silent = sgm__ranks_silent, .record = sgm__operator_record, .find_owners = sgm__ranks_mark_owned,       \
    .recorded = sgm__operator_recorded, .forget_programs = sgm__operator_forget_programs,                    \
    .collect = sgm__operator_collect, .restart = sgm__operator_restart, .reset = reset,                      \
    .new_session = sgm__operator_new_sessions, .define_state = sgm__replica_define_state,                    \
    .state_was_set = sgm__operator_was_set, .find_kept = find_kept, .has_state = sgm__ranks_have,            \
    .next_elsewhere = next_elsewhere, .type_elsewhere = sgm__ranks_slot_type,                                \
    .get_elsewhere = sgm__ranks_get_slot, .check_set = sgm__ranks_check_set, .attach = attach_local,         \
    .detach = detach, .press = press_local, .list_hooks = list_local, .first_replica = first_replica,        \
    .describe_state = describe, .add_states = add_states, .check_states = check,                             \
    .loaded = sgm__ranks_loaded, .take_over = take_over, .results = results

static const sgm__strategy with_workers = {FUNCTIONS}, with_ranks = {FUNCTIONS, .meet = sgm__ranks_meeting};

/* --- giving a trainer an operator --- */

/* Moves local hooks that were attached before there were workers from the trainer's list to the workers. */
static sgm_status take_local_hooks(sgm_trainer *trainer)
{
    sgm_hook *hook;
    while ((hook = sgm__hooks_take_local(sgm__hooks_of(trainer))) != NULL) {
        sgm_status status = attach_local(trainer, hook, SGM__ATTACHED_AS_SETUP, NULL, NULL);
        sgm_hook_free(hook);
        SGM_TRY(status);
    }
    return SGM_OK;
}

/* Makes the workers and ties the operator to the trainer. The strategy is set last, as any thread may look at
 * it, when everything that it needs is there. Sharded ranks need a trainer without states: it would have
 * optimiser states of all parameters, and not only of its own. */
static sgm_status give(sgm_trainer *trainer, sgm_operator *parallel)
{
    if (parallel == NULL)
        return sgm__trainer_missing("operator");
    if (parallel->trainer != NULL)
        return sgm_fail(SGM_ERROR_STATE, "the operator has a trainer already: each wants one of its own");
    if (sgm__sharing_of(trainer)->strategy != NULL)
        return sgm_fail(SGM_ERROR_STATE, "has an operator already");
    if (sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "is running: give it an operator before");
    if (sgm__ranks_sharded(parallel->ranks) &&
        sgm_session_state_at(sgm__learner_of(trainer)->session, 0) != NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        "has optimiser state already, of all parameters: give it an operator that is "
                        "sharded before it is prepared, or loads a checkpoint");
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(sgm__worker_create(parallel, trainer, i));
    parallel->trainer = trainer;
    sgm__sharing_of(trainer)->parallel = parallel;
    if (take_local_hooks(trainer) != SGM_OK) {
        sgm__sharing_of(trainer)->parallel = NULL;
        return sgm_last_status();
    }
    sgm__sharing_of(trainer)->strategy = parallel->ranks != NULL ? &with_ranks : &with_workers;
    return sgm__operator_publish(trainer);
}

/* Takes over the operator, also if it fails, unless the operator belongs to another trainer. */
sgm_status sgm_trainer_set_operator(sgm_trainer *trainer, sgm_operator *parallel)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_close(trainer, give(trainer, parallel));
    bool elsewhere = parallel != NULL && parallel->trainer != NULL && parallel->trainer != trainer;
    if (!elsewhere && (trainer == NULL || sgm__sharing_of(trainer)->parallel != parallel))
        sgm_operator_free(parallel);
    return status;
}
