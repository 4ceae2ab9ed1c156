/* Commands that let a training run, wait and end, and the one that tells how it stands.
 *
 * Each reads fields that are texts, and adds to the answer; command_table.c has the rows. */
#include "control/control_internal.h"
#include "hooks/hooks.h"
#include "trainer/trainer.h"
#include "trainer/trainer_lock.h"

static const char *const state_names[] = {"idle", "running", "paused"};

sgm_status sgm__control_pause(sgm__control_request *c)
{
    return sgm__trainer_pause_for(c->call->trainer, c->call->who, c->reason);
}

sgm_status sgm__control_resume(sgm__control_request *c)
{
    return sgm__trainer_go_on_for(c->call->trainer, -1, c->call->who, c->reason);
}

static sgm_status read_iterations(const sgm__control_request *c, int64_t *iterations)
{
    const char *text = sgm__control_field(c, "iterations");
    if (!sgm__parse_int64(text, iterations))
        return sgm_fail(SGM_ERROR_ARGUMENT, "step: expected a number of iterations, got '%.100s'", text);
    return *iterations >= 1
               ? SGM_OK
               : sgm_fail(SGM_ERROR_ARGUMENT, "stepping takes at least 1 iteration, not %s", text);
}

sgm_status sgm__control_step(sgm__control_request *c)
{
    int64_t iterations;
    SGM_TRY(read_iterations(c, &iterations));
    return sgm__trainer_go_on_for(c->call->trainer, iterations, c->call->who, c->reason);
}

sgm_status sgm__control_stop(sgm__control_request *c)
{
    const char *who = c->call->who;
    char *reason = c->reason != NULL ? sgm__format("%s: %s", who, c->reason) : sgm__strdup(who);
    sgm_status status = reason != NULL ? sgm_trainer_stop(c->call->trainer, reason) : SGM_ERROR_MEMORY;
    sgm__free(reason);
    return status;
}

/* --- what they would do --- */

static sgm_status would_be(sgm__control_request *c, const char *state)
{
    sgm_trainer_state now = sgm_trainer_get_state(c->call->trainer);
    return sgm__would_change(c, "state", json_string(state_names[now]), json_string(state), NULL);
}

sgm_status sgm__control_try_pause(sgm__control_request *c)
{
    return would_be(c, "paused");
}

sgm_status sgm__control_try_resume(sgm__control_request *c)
{
    return would_be(c, "running");
}

/* A pause again, so many iterations later. */
sgm_status sgm__control_try_step(sgm__control_request *c)
{
    int64_t iterations;
    SGM_TRY(read_iterations(c, &iterations));
    int64_t now = atomic_load(&sgm__control_of(c->call->trainer)->whereabouts.iteration);
    return sgm__would_change(c, "iteration", json_integer(now), json_integer(now + iterations), NULL);
}

sgm_status sgm__control_try_stop(sgm__control_request *c)
{
    return would_be(c, "idle");
}

/* --- status --- */

typedef struct status_row {
    const char *key, *identifier;
} status_row;

/* Keys of the answer to `status`, and the identifiers of the values that they show. */
static const status_row status_rows[] = {
    {"epoch", "epoch"},
    {"iteration", "iteration"},
    {"loss", "training.loss"},
    {"accuracy", "training.accuracy"},
    {"learning_rate", "optimiser.current_learning_rate"},
    {"seconds", "running_time"},
};

/* Reads the values of status_rows, which need the trainer's lock. */
static sgm_status add_numbers(sgm__control_request *c)
{
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        sgm_content content = {0};
        SGM_TRY(sgm_registry_resolve_one(sgm__registry_of(c->call->trainer), status_rows[i].identifier,
                                         &content));
        json_object_set_new(c->answer, status_rows[i].key, sgm__answer_content(&content));
        sgm_content_clear(&content);
    }
    if (sgm__progress_of(c->call->trainer)->epochs > 0)
        json_object_set_new(c->answer, "epochs", json_integer(sgm__progress_of(c->call->trainer)->epochs));
    return SGM_OK;
}

/* What the training's thread leaves in atomic members for threads that cannot wait for it: what it is
 * doing, and the position when it last said so. */
static void add_whereabouts(sgm__control_request *c)
{
    sgm__whereabouts *place = &sgm__control_of(c->call->trainer)->whereabouts;
    const char *doing = atomic_load(&place->doing);
    json_object_set_new(c->answer, "epoch", json_integer(atomic_load(&place->epoch)));
    json_object_set_new(c->answer, "iteration", json_integer(atomic_load(&place->iteration)));
    json_object_set_new(c->answer, "busy", json_string(doing != NULL ? doing : "busy"));
}

/* Adds a text, which is freed; NULL: there is nothing to add. */
static void add_text(sgm__control_request *c, const char *key, char *text)
{
    if (text != NULL)
        json_object_set_new(c->answer, key, sgm__answer_text(text));
    sgm__free(text);
}

/* Never fails because the trainer is busy: without the lock it tells the whereabouts instead of the
 * values. */
sgm_status sgm__control_status(sgm__control_request *c)
{
    sgm_trainer *trainer = c->call->trainer;
    json_object_set_new(c->answer, "trainer", sgm__answer_text(sgm_trainer_name(trainer)));
    json_object_set_new(c->answer, "state", json_string(state_names[sgm_trainer_get_state(trainer)]));
    if (c->locked)
        SGM_TRY(add_numbers(c));
    else
        add_whereabouts(c);
    add_text(c, "paused_by", sgm__trainer_paused_by(trainer));
    add_text(c, "silent", sgm__trainer_silent(trainer));
    return SGM_OK;
}
