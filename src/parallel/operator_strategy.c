/* An operator as a trainer's strategy: which function of workers and ranks does what the trainer asks for. */
#include "hooks/hooks_internal.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "runs/parts.h"

static void free_operator(sgm_trainer *trainer)
{
    sgm_operator_free(sgm__sharing_of(trainer)->operator);
}

static sgm_status copy(sgm_trainer *to, const sgm_trainer *from)
{
    return sgm_trainer_operator(to, sgm__operator_copy(sgm__sharing_of(from)->operator));
}

/* --- a run --- */

static sgm_status start(sgm_trainer *trainer, int64_t saves)
{
    SGM_TRY(sgm__ranks_begin(trainer, saves));
    return sgm__operator_start(trainer);
}

/* Ranks are compared before a checkpoint keeps what is wrong. */
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

static sgm_status finish(sgm_trainer *trainer)
{
    sgm__operator_wait_for_hooks(trainer);
    SGM_TRY(sgm__operator_merge_all(trainer));
    return sgm__ranks_prepare_save(trainer);
}

static void end(sgm_trainer *trainer, bool failed)
{
    if (failed)
        sgm__ranks_fail(sgm__trainer_ranks(trainer));
    sgm__operator_end(trainer);
    sgm__ranks_end(trainer);
}

/* --- states --- */

static sgm_status find_kept(sgm_trainer *trainer, const char *parameter, const char *what,
                            sgm_trainer **keeper)
{
    const sgm_operator *parallel = sgm__sharing_of(sgm__sharing_of(trainer)->owner)->operator;
    if (parallel->ranks != NULL && sgm__ranks_owner(parallel->ranks, parameter) != parallel->ranks->rank)
        return sgm_fail(SGM_ERROR_STATE, "the %s of %s are with rank %d, which updates it (operator.sharded)",
                        what, parameter, sgm__ranks_owner(parallel->ranks, parameter));
    *keeper = parallel->merges_gradients ? sgm__sharing_of(trainer)->owner
                                         : trainer; /* sums are kept, not what they are of */
    return SGM_OK;
}

static const char *next_elsewhere(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && ranks->shown < ranks->slot_count ? ranks->slots[ranks->shown++].state : NULL;
}

static sgm_status add_states(sgm_trainer *trainer, const sgm__parts *wanted, sgm_bundle *bundle)
{
    if (sgm__parts_are_all(wanted))
        sgm__ranks_note_saved(trainer);
    SGM_TRY(sgm__ranks_add_slots(trainer, wanted, bundle));
    return sgm__parts_are_all(wanted) ? sgm__operator_add_states(trainer, bundle) : SGM_OK;
}

/* --- hooks --- */

static const sgm_trainer *first_replica(const sgm_trainer *trainer)
{
    return sgm__sharing_of(trainer)->operator->workers[0].replica;
}

static sgm_registry *results(const sgm_trainer *replica)
{
    return sgm__sharing_of(sgm__sharing_of(replica)->owner)
        ->
        operator->workers[sgm__sharing_of(replica)->worker]
        .results;
}

/* --- the table --- */

#define FUNCTIONS                                                                                            \
    .free = free_operator, .copy = copy, .start = start, .describe = sgm__ranks_describe,                    \
    .next = sgm__operator_next, .iterate = sgm__operator_iterate, .check = sgm__ranks_compare_now_and_then,  \
    .event = sgm__operator_event, .end_epoch = end_epoch, .prepare_save = prepare_save, .finish = finish,    \
    .leave = sgm__ranks_leave, .end = end, .follows = sgm__ranks_follow, .must_meet = sgm__ranks_must_meet,  \
    .moved = sgm__ranks_moved, .note = sgm__ranks_note, .next_command = sgm__operator_take_command,          \
    .decide = sgm__ranks_decide, .silent = sgm__ranks_silent, .record = sgm__operator_record,                \
    .find_owners = sgm__ranks_mark_owned, .recorded = sgm__operator_recorded,                                \
    .forget_programs = sgm__operator_forget_programs, .collect = sgm__operator_collect,                      \
    .restart = sgm__operator_restart, .reset = sgm__operator_reset,                                          \
    .new_session = sgm__operator_new_sessions, .define_state = sgm__replica_define_state,                    \
    .state_was_set = sgm__operator_was_set, .find_kept = find_kept, .has_state = sgm__ranks_have,            \
    .next_elsewhere = next_elsewhere, .type_elsewhere = sgm__ranks_slot_type,                                \
    .get_elsewhere = sgm__ranks_get_slot, .check_set = sgm__ranks_check_set, .attach = sgm__operator_attach, \
    .detach = sgm__operator_detach, .list_hooks = sgm__operator_list, .first_replica = first_replica,        \
    .describe_state = sgm__operator_describe, .add_states = add_states, .check_states = sgm__operator_check, \
    .loaded = sgm__ranks_loaded, .take_over = sgm__operator_take_over, .results = results

static const sgm__strategy with_workers = {FUNCTIONS}, with_ranks = {FUNCTIONS, .meet = sgm__ranks_meeting};

/* --- giving a trainer an operator --- */

/* Local hooks that were attached before there were workers. */
static sgm_status take_local_hooks(sgm_trainer *trainer)
{
    sgm_hook *hook;
    while ((hook = sgm__hooks_take_local(sgm__hooks_of(trainer))) != NULL) {
        sgm_status status = sgm__operator_attach(trainer, hook, SGM__ATTACHED_AS_SETUP, NULL, NULL);
        sgm_hook_free(hook);
        SGM_TRY(status);
    }
    return SGM_OK;
}

static sgm_status give(sgm_trainer *trainer, sgm_operator *parallel)
{
    if (parallel == NULL)
        return sgm__trainer_missing("operator");
    if (parallel->trainer != NULL)
        return sgm_fail(SGM_ERROR_STATE, "the operator has a trainer already: each wants one of its own");
    if (sgm__sharing_of(trainer)->strategy != NULL)
        return sgm_fail(SGM_ERROR_STATE, "has an operator already");
    if (sgm_trainer_state_of(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "is running: give it an operator before");
    if (sgm__ranks_sharded(parallel->ranks) &&
        sgm_session_state_at(sgm__learner_of(trainer)->session, 0) != NULL)
        return sgm_fail(SGM_ERROR_STATE,
                        "has optimiser state already, of all parameters: give it an operator that is "
                        "sharded before it is prepared, or loads a checkpoint");
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(sgm__worker_create(parallel, trainer, i));
    parallel->trainer = trainer;
    sgm__sharing_of(trainer)->operator= parallel;
    if (take_local_hooks(trainer) != SGM_OK) {
        sgm__sharing_of(trainer)->operator= NULL;
        return sgm_last_status();
    }
    sgm__sharing_of(trainer)->strategy = parallel->ranks != NULL ? &with_ranks : &with_workers;
    return sgm__operator_publish(trainer);
}

sgm_status sgm_trainer_operator(sgm_trainer *trainer, sgm_operator *parallel)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_close(trainer, give(trainer, parallel));
    bool elsewhere = parallel != NULL && parallel->trainer != NULL && parallel->trainer != trainer;
    if (!elsewhere && (trainer == NULL || sgm__sharing_of(trainer)->operator!= parallel))
        sgm_operator_free(parallel);
    return status;
}
