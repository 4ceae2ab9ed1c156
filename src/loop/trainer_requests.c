/* Carries out what hooks requested during an event: stop, pause, save, set a value, reset, or an action of
 * their own.
 *
 * Hooks only queue requests while they run (src/hooks/hooks_requests.c), so all hooks of an event see the
 * same trainer. With several processes the strategy decides when a request is carried out: at once where
 * all processes' hooks ask for the same, in the next meeting, or never. A request that fails is logged: a
 * hook's mistake must not end hours of training. */
#include "loop/trainer_requests.h"

#include "hooks/hooks.h"
#include "runs/orders.h"
#include "runs/run_folder.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"

/* Sets a value in the hook's name, so that the record of changes says who did it. `trainer` may be a
 * replica, whose values are its own; the record is its owner's. */
static sgm_status change_value(sgm_trainer *trainer, const sgm__request *request)
{
    sgm_trainer *owner = trainer->owner; /* who has the record */
    owner->journal.changed_by = request->who;
    sgm_status status = sgm_resolve_set(trainer->registry, request->text, request->content, NULL, NULL);
    owner->journal.changed_by = "program";
    return status;
}

/* Stops the run in a way that checkpoints keep: a resumed run with the same length does not begin again. */
sgm_status sgm__trainer_end_for_good(sgm_trainer *trainer, const char *by)
{
    sgm__free(trainer->progress.ended_by);
    trainer->progress.ended_by = sgm__strdup(by);
    return trainer->progress.ended_by != NULL ? sgm_trainer_stop(trainer, by) : SGM_ERROR_MEMORY;
}

static sgm_status stop_for(sgm_trainer *trainer, const sgm__request *request)
{
    char *reason = sgm__format("%s: %s", request->who, request->text);
    sgm_status status = reason != NULL ? sgm__trainer_end_for_good(trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

static sgm_status pause_for(sgm_trainer *trainer, const sgm__request *request)
{
    bool has_text = request->text[0] != '\0';
    char *who = sgm__format(has_text ? "%s (%s)" : "%s", request->who, request->text);
    sgm_status status = who != NULL ? sgm__trainer_pause_by(trainer, who) : SGM_ERROR_MEMORY;
    sgm__free(who);
    return status;
}

/* All processes bring their parts of the optimiser's states to the one that saves. */
static sgm_status prepare_save(sgm_trainer *trainer)
{
    return trainer->strategy != NULL ? trainer->strategy->prepare_save(trainer, false) : SGM_OK;
}

/* Makes the processes meet before their next iteration. */
static void must_meet(sgm_trainer *trainer)
{
    if (trainer->strategy != NULL)
        trainer->strategy->must_meet(trainer);
}

/* Does one request. What only the leading process does (saving, resetting) is done when the others follow. */
static sgm_status fulfil(sgm_trainer *trainer, sgm_trainer *asker, const sgm__request *request)
{
    switch (request->kind) {
    case SGM__REQUEST_STOP:
        return stop_for(trainer, request);
    case SGM__REQUEST_SAVE:
        SGM_TRY(prepare_save(trainer));
        if (sgm__trainer_follows(trainer))
            return SGM_OK;
        return trainer->journal.folder != NULL
                   ? sgm__run_folder_save_as(trainer, trainer->journal.folder, request->text)
                   : sgm_fail(SGM_ERROR_STATE, "the run has no folder to save '%s' in", request->text);
    case SGM__REQUEST_SET:
        return change_value(asker, request);
    case SGM__REQUEST_PAUSE:
        must_meet(trainer);
        return pause_for(trainer, request);
    case SGM__REQUEST_RESET: /* at the end of the iteration: this thread is busy */
        must_meet(trainer);
        if (sgm__trainer_follows(trainer))
            return SGM_OK; /* rank 0 has the same hook, and all follow it */
        return sgm__trainer_order(trainer, SGM__ORDER_RESET, (sgm__order_texts){.who = request->who});
    case SGM__REQUEST_ACT: /* it saves, too */
        SGM_TRY(prepare_save(trainer));
        return sgm__trainer_follows(trainer) ? SGM_OK : request->act(request->user, trainer);
    }
    return SGM_OK;
}

void sgm__request_fulfil(sgm_trainer *trainer, sgm_trainer *asker, const sgm__request *request)
{
    if (fulfil(trainer, asker, request) != SGM_OK)
        sgm__log(SGM_LOG_ERROR, trainer->name, "%s: %s", request->who, sgm_last_error());
}

/* Decides and carries out; frees the request unless the strategy keeps it until the next meeting. */
static sgm_status do_request(sgm_trainer *trainer, sgm_trainer *asker, sgm__request *request)
{
    sgm__request_time time = SGM__REQUEST_NOW;
    sgm_status status =
        trainer->strategy != NULL ? trainer->strategy->decide(trainer, asker, request, &time) : SGM_OK;
    if (status == SGM_OK && time == SGM__REQUEST_NOW)
        sgm__request_fulfil(trainer, asker, request);
    if (time != SGM__REQUEST_LATER)
        sgm__request_free(request);
    return status;
}

/* Requests of replicas' hooks first, then the trainer's own, each in the order in which they were made. */
sgm_status sgm__requests_do(sgm_trainer *trainer)
{
    sgm_trainer *replica;
    sgm__request *request;
    while (trainer->strategy != NULL &&
           (request = trainer->strategy->next_request(trainer, &replica)) != NULL)
        SGM_TRY(do_request(trainer, replica, request));
    while ((request = sgm__hooks_take_request(trainer->hooks)) != NULL)
        SGM_TRY(do_request(trainer, trainer, request));
    return SGM_OK;
}
