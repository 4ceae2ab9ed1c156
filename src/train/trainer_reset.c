/* Gives states their first values again: all of them (a reset), or what layers remember from minibatch to
 * minibatch (at an epoch's end).
 *
 * A reset marks every state of the session as stale and records anew; recording fills what is stale as if
 * it were new (trainer_program.c). So a reset draws exactly what a fresh trainer with the same seed would
 * draw. */
#include "network/rerecord.h"
#include "train/train.h"
#include "trainer/trainer_struct.h"

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* States that the new recording does not have: moments and the generator's counter begin anew at once.
 * Parameters that are recorded later (of a layer that a dynamic network does not use now) stay marked, as
 * only their recording knows their initialiser. */
static sgm_status refill_memories(sgm_trainer *trainer)
{
    for (size_t i = 0; i < trainer->learner.stale_count; i++) {
        const char *name = sgm_session_state_at(trainer->learner.session, i);
        sgm_type type;
        if (!trainer->learner.stale[i] || !(begins(name, SGM__SLOT_PREFIX) || begins(name, "random.")))
            continue;
        SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
        SGM_TRY(sgm__trainer_define_state(trainer, name, &type));
        trainer->learner.stale[i] = false;
    }
    return SGM_OK;
}

/* Without states nothing was drawn yet, and nothing has to be forgotten. */
sgm_status sgm__trainer_refill(sgm_trainer *trainer)
{
    size_t count = 0;
    while (sgm_session_state_at(trainer->learner.session, count) != NULL)
        count++;
    if (count == 0)
        return SGM_OK;
    bool *stale = sgm__realloc(trainer->learner.stale, count * sizeof *stale);
    if (stale == NULL)
        return SGM_ERROR_MEMORY;
    memset(stale, true, count * sizeof *stale);
    trainer->learner.stale = stale;
    trainer->learner.stale_count = count;
    sgm__trainer_forget_programs(trainer);
    SGM_TRY(sgm__trainer_prepare(trainer));
    return refill_memories(trainer);
}

/* What recurrent layers carry over between minibatches becomes zeros. */
sgm_status sgm__trainer_forget_memories(sgm_trainer *trainer)
{
    const char *name;
    for (size_t i = 0; (name = sgm__network_memory_at(trainer->learner.network, i)) != NULL; i++) {
        sgm_type type;
        if (!sgm_session_has(trainer->learner.session, name))
            continue;
        SGM_TRY(sgm_session_state_type(trainer->learner.session, name, &type));
        sgm_tensor *zeros = sgm_tensor_create(type.dtype, &type.shape);
        sgm_status status =
            zeros != NULL ? sgm_session_set(trainer->learner.session, name, zeros) : SGM_ERROR_MEMORY;
        sgm_tensor_free(zeros);
        SGM_TRY(status);
    }
    return SGM_OK;
}
