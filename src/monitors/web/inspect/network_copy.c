/* Copies a network in two visits to its trainer: first the notation, and, after the graph has been
 * recorded without the trainer's lock, the values of the parameters. In between another network may be
 * set, hence the comparison. The copy is recorded from the notation, so it shares nothing with the trainer
 * but the handler. */
#include "monitors/web/inspect/network_copy.h"
#include "train/measure.h"
#include "trainer/trainer_lock.h"

/* With the trainer's lock; free with sgm_string_free. NULL: failed, with an error. */
static char *notation_of(sgm_trainer *trainer, sgm__web_readiness readiness)
{
    if (readiness == SGM__WEB_PREPARED && sgm__trainer_prepare(trainer) != SGM_OK)
        return NULL;
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    if (view.network != NULL)
        return sgm_network_text(view.network);
    sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no network yet", view.name);
    return NULL;
}

/* The value of one parameter, from the trainer's session. NULL, with an error: it does not exist yet. */
static sgm_tensor *value_of(void *user, const char *name)
{
    const sgm__trainer_view view = sgm__trainer_look(user);
    if (sgm_session_has(view.session, name))
        return sgm_session_get(view.session, name);
    sgm_fail(SGM_ERROR_STATE, "trainer '%s' has no parameters yet: they come with its first run", view.name);
    return NULL;
}

/* With the trainer's lock, which was released since the notation was read. sgm__trainer_collect brings the
 * newest parameters into the trainer's session, as workers may have them. */
static sgm_status copy_values(sgm__web_copy *copy, sgm_trainer *trainer, const char *notation)
{
    char *now = notation_of(trainer, SGM__WEB_AS_IT_IS);
    if (now == NULL)
        return sgm__last_failure();
    bool same = strcmp(now, notation) == 0;
    sgm_string_free(now);
    if (!same)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' has just got another network: ask again",
                        sgm_trainer_name(trainer));
    SGM_TRY(sgm__trainer_collect(trainer));
    copy->iteration = sgm__trainer_look(trainer).iteration;
    return sgm__inference_copy_fill(&copy->copied, value_of, trainer);
}

sgm_status sgm__web_copy_network(sgm__web_copy *copy, const sgm__web_trainer *watched, int64_t examples,
                                 sgm__web_readiness readiness)
{
    sgm_trainer *trainer = watched->trainer;
    *copy = (sgm__web_copy){0};
    SGM_TRY(sgm__trainer_enter(trainer));
    char *notation = notation_of(trainer, readiness);
    const sgm__trainer_view view = sgm__trainer_look(trainer);
    sgm__trainer_unlock(trainer);
    if (notation == NULL)
        return sgm__last_failure();
    sgm_status status =
        sgm__inference_copy_record(&copy->copied, view.handler, notation, examples, view.precision, false);
    if (status == SGM_OK)
        status = sgm__trainer_enter(trainer);
    if (status == SGM_OK) {
        status = copy_values(copy, trainer, notation);
        sgm__trainer_unlock(trainer);
    }
    sgm_string_free(notation);
    return status;
}
