/* Parameters and their moving averages change places, and back. */
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"
#include <sigma/diagnostics.h>

static sgm_status exchange(sgm_session *session, const char *average)
{
    const char *parameter = average + strlen(SGM__AVERAGE_PREFIX);
    sgm_tensor *a = sgm_session_get(session, average), *b = sgm_session_get(session, parameter);
    sgm_status status = a && b ? sgm_session_set(session, parameter, a) : sgm_last_status();
    if (status == SGM_OK)
        status = sgm_session_set(session, average, b);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    return status;
}

sgm_status sgm__trainer_swap_averages(sgm_trainer *trainer)
{
    const char *name;
    size_t count = 0;
    if (trainer->sharing.strategy)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "averages are not swapped while several workers train");
    for (size_t i = 0; (name = sgm_session_state_at(trainer->learner.session, i)); i++) {
        if (strncmp(name, SGM__AVERAGE_PREFIX, strlen(SGM__AVERAGE_PREFIX)) != 0)
            continue;
        SGM_TRY(exchange(trainer->learner.session, name));
        count++;
    }
    if (count == 0)
        return sgm_fail(SGM_ERROR_STATE, "there are no averages of parameters: set the optimiser's average "
                                         "to a number such as 0.999");
    trainer->learner.averages_in = !trainer->learner.averages_in;
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

sgm_status sgm_trainer_swap_averages(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_status(trainer));
    SGM_TRY(sgm__trainer_enter(trainer));
    sgm_status status = trainer->learner.averages_in ? SGM_OK : sgm__trainer_prepare(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_swap_averages(trainer);
    sgm__trainer_unlock(trainer);
    return status;
}

bool sgm_trainer_averages_are_in(const sgm_trainer *trainer)
{
    return trainer && trainer->learner.averages_in;
}
