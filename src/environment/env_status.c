/* Whether an environment has failed, and whether it runs.
 *
 * An environment keeps its first failure, not the newest, since later ones are mostly consequences. Later
 * calls report it again. Failures of trainers are kept by the trainers (the run adds them to the
 * environment's, env_run.c); sgm_env_status and sgm_env_error look at both. One mutex serves all
 * environments: it is taken rarely and briefly. */
#include "environment/environment.h"
#include "trainer/trainer.h"

#include <pthread.h>
#include <stdio.h>

/* Guards the table of environments and, of each of them, the members that environment.h says. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sgm__env_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sgm__env_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

sgm_status sgm__env_keep(sgm_env *env, sgm_status status)
{
    if (status == SGM_OK || status == SGM_ERROR_INTERRUPTED)
        return status;
    sgm__env_lock();
    if (env->status == SGM_OK) {
        sgm__fail_within("%s", env->name);
        snprintf(env->message, sizeof env->message, "%s", sgm_last_error());
        env->status = status;
    }
    sgm__env_unlock();
    return status;
}

/* The failure that is kept in the environment itself. If there is one, env->message may be read without
 * the lock afterwards, because it never changes again. */
static sgm_status own_status(const sgm_env *env, bool *running)
{
    sgm__env_lock();
    sgm_status status = env->status;
    *running = env->running;
    sgm__env_unlock();
    return status;
}

/* The first failure of the environment or, in the order of creation, of its trainers; "" and SGM_OK if
 * there is none. While the environment runs, its trainers are not read: their threads write the status,
 * and a failure there becomes the environment's. A branch's failure is its own. */
static const char *first_failure(const sgm_env *env, sgm_status *status)
{
    bool running;
    *status = own_status(env, &running);
    if (*status != SGM_OK)
        return env->message;
    if (running)
        return "";
    const char *message = "";
    for (size_t i = 0; i < env->trainer_count && *status == SGM_OK; i++)
        if (!sgm__membership_of(env->trainers[i])->branched)
            message = sgm__trainer_failure(env->trainers[i], status);
    return message;
}

sgm_status sgm__env_check(const sgm_env *env)
{
    bool running;
    sgm_status status = own_status(env, &running);
    return status == SGM_OK ? SGM_OK : sgm_fail(status, "%s", env->message);
}

sgm_status sgm_env_status(const sgm_env *env)
{
    sgm_status status;
    if (env == NULL)
        return SGM_ERROR_ARGUMENT;
    first_failure(env, &status);
    return status;
}

/* A trainer's own message lacks the environment's name. It is put in front in the buffer of this thread's
 * newest error, which is then returned, so that nothing has to be freed. */
const char *sgm_env_error(const sgm_env *env)
{
    sgm_status status;
    if (env == NULL)
        return sgm_last_error();
    const char *message = first_failure(env, &status);
    if (message == env->message || status == SGM_OK)
        return message;
    sgm_fail(status, "%s: %s", env->name, message);
    return sgm_last_error();
}

bool sgm__env_is_free(const sgm_env *env, const char *what)
{
    bool running;
    own_status(env, &running);
    if (running)
        sgm_fail(SGM_ERROR_STATE, "%s: the environment is running and takes no new %s", env->name, what);
    return !running;
}
