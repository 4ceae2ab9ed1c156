/* What begins and ends with environments: the table by which sgm_env_find finds them, preparation, shutdown,
 * and removal of single trainers.
 *
 * Functions here are called by env.c (creation and sgm_env_free) and env_run.c (sgm__env_start_monitors).
 * The table is a linked list from the newest environment to the oldest, guarded by sgm__env_lock. */
#include "environment/environment.h"
#include "monitors/monitor.h"
#include "trainer/trainer.h"

/* --- the table --- */

/* Head of the list; `older` links it. */
static sgm_env *newest;

void sgm__env_enter(sgm_env *env)
{
    sgm__env_lock();
    env->older = newest;
    newest = env;
    sgm__env_unlock();
}

void sgm__env_leave(sgm_env *env)
{
    sgm__env_lock();
    for (sgm_env **place = &newest; *place != NULL; place = &(*place)->older)
        if (*place == env) {
            *place = env->older;
            break;
        }
    sgm__env_unlock();
}

const char *sgm_env_name(const sgm_env *env)
{
    return env != NULL ? env->name : "";
}

/* Walks from the newest, so that of several environments with one name the newest is found. */
sgm_env *sgm_env_find(const char *name)
{
    sgm__env_lock();
    sgm_env *env = newest;
    while (env != NULL && (name == NULL || strcmp(env->name, name) != 0))
        env = env->older;
    sgm__env_unlock();
    return env;
}

/* --- the beginning --- */

/* Counts a monitor only after its start has succeeded, so that no monitor is started twice. */
sgm_status sgm__env_start_monitors(sgm_env *env)
{
    for (; env->monitors_started < env->monitor_count; env->monitors_started++) {
        sgm_monitor *monitor = env->monitors[env->monitors_started];
        if (monitor->start != NULL)
            SGM_TRY(monitor->start(monitor));
    }
    return SGM_OK;
}

static bool is_running(const sgm_env *env)
{
    sgm__env_lock();
    bool running = env->running;
    sgm__env_unlock();
    return running;
}

/* Initialises the parameters of all trainers, also of unscheduled ones. Trainers that were made by a
 * branch have had their only run and are left alone. */
static sgm_status prepare(sgm_env *env)
{
    for (size_t i = 0; i < env->trainer_count; i++)
        if (!sgm__membership_of(env->trainers[i])->branched)
            SGM_TRY(sgm_trainer_prepare(env->trainers[i]));
    return sgm__env_start_monitors(env);
}

sgm_status sgm_env_prepare(sgm_env *env)
{
    if (env == NULL)
        return sgm__fail_null("sgm_env_prepare: expected an environment, got NULL");
    SGM_TRY(sgm__env_check(env));
    if (is_running(env))
        return sgm_fail(SGM_ERROR_STATE, "%s: is running, and so prepared already", env->name);
    return sgm__env_keep(env, prepare(env));
}

/* --- the end --- */

void sgm__env_hide_trainer(const sgm_env *env, sgm_trainer *trainer)
{
    for (size_t i = 0; i < env->monitor_count; i++)
        if (env->monitors[i]->detach != NULL)
            env->monitors[i]->detach(env->monitors[i], trainer);
}

/* All monitors finish before any trainer is detached: the page of a monitor may still show trainers while
 * a person looks at it. */
void sgm__env_leave_monitors(const sgm_env *env)
{
    for (size_t i = 0; i < env->monitor_count; i++)
        if (env->monitors[i]->finish != NULL)
            env->monitors[i]->finish(env->monitors[i]);
    for (size_t i = env->trainer_count; i-- > 0;)
        sgm__env_hide_trainer(env, env->trainers[i]);
}

sgm_status sgm_env_on_shutdown(sgm_env *env, sgm_shutdown_function function, void *user)
{
    if (env == NULL || function == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_on_shutdown: expected %s, got NULL",
                        env == NULL ? "an environment" : "a function");
    SGM_TRY(sgm__reserve(&env->shutdowns, &env->shutdown_capacity, env->shutdown_count + 1,
                         sizeof *env->shutdowns));
    env->shutdowns[env->shutdown_count++] = (sgm__shutdown){function, user};
    return SGM_OK;
}

/* A function is taken off the list before it is called, so it may register others. */
void sgm__env_shut_down(sgm_env *env)
{
    while (env->shutdown_count > 0) {
        sgm__shutdown last = env->shutdowns[--env->shutdown_count];
        last.function(last.user);
    }
}

/* --- single trainers --- */

sgm_trainer *sgm_env_trainer(const sgm_env *env, const char *name)
{
    for (size_t i = 0; env != NULL && name != NULL && i < env->trainer_count; i++)
        if (strcmp(sgm_trainer_name(env->trainers[i]), name) == 0)
            return env->trainers[i];
    return NULL;
}

static sgm_status check_owner(const sgm_env *env, const sgm_trainer *trainer)
{
    for (size_t i = 0; i < env->trainer_count; i++)
        if (env->trainers[i] == trainer)
            return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: the trainer to remove belongs to another environment",
                    env->name);
}

/* Only an idle trainer can be removed, and only while the environment is idle too. The trainer of a model
 * (`held`) would leave the model with a dangling pointer. */
static sgm_status check_removable(const sgm_env *env, sgm_trainer *trainer)
{
    if (is_running(env) || sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "%s: trainer '%s' cannot be removed while %s runs; stop it first",
                        env->name, sgm_trainer_name(trainer), is_running(env) ? "the environment" : "it");
    if (sgm__membership_of(trainer)->held)
        return sgm_fail(SGM_ERROR_STATE, "%s: trainer '%s' is a model's and goes with the environment",
                        env->name, sgm_trainer_name(trainer));
    return SGM_OK;
}

/* The state is checked first: only while nothing runs may `trainers` be read without a lock, since
 * branches add to it during a run. */
sgm_status sgm_env_remove_trainer(sgm_env *env, sgm_trainer *trainer)
{
    if (env == NULL || trainer == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_remove_trainer: expected %s, got NULL",
                        env == NULL ? "an environment" : "a trainer");
    SGM_TRY(check_removable(env, trainer));
    SGM_TRY(check_owner(env, trainer));
    sgm__env_drop_trainer(env, trainer);
    return SGM_OK;
}
