/* Running an environment: its trainers side by side, each on a thread; a single one on the caller's. */
#include "base/turn_lock.h"
#include "environment/environment.h"
#include "loop/trainer_run.h"
#include "monitors/monitor.h"
#include "trainer/signals.h"
#include "trainer/trainer.h"

#include <stdio.h>

/* --- one trainer --- */

/* How many have stopped: those that have ended refuse. With sgm__env_lock. */
static size_t stop_all(sgm_env *env, const sgm__runner *but, const char *reason)
{
    size_t stopped = 0;
    for (size_t i = 0; i < env->runner_count; i++)
        if (&env->runners[i] != but)
            stopped += sgm_trainer_stop(env->runners[i].trainer, reason) == SGM_OK;
    for (size_t i = 0; i < env->branches.count; i++)
        stopped += sgm_trainer_stop(env->branches.items[i]->trainer, reason) == SGM_OK;
    return stopped;
}

static void keep_outcome(sgm__runner *runner, sgm_status status)
{
    runner->status = status;
    if (status == SGM_OK)
        return;
    snprintf(runner->message, sizeof runner->message, "%s", sgm_last_error());
    if (status == SGM_ERROR_INTERRUPTED)
        return;
    sgm__env_keep(runner->env, status);
    char reason[160];
    snprintf(reason, sizeof reason, "the failure of trainer '%.100s'", sgm_trainer_name(runner->trainer));
    sgm__env_lock();
    stop_all(runner->env, runner, reason);
    sgm__env_unlock();
}

static void *run_trainer(void *argument)
{
    sgm__runner *runner = argument;
    keep_outcome(runner, sgm__trainer_run_reserved(runner->trainer, &runner->options));
    return NULL;
}

/* --- all --- */

void sgm__env_expect(const sgm_env *env, size_t trainers)
{
    for (size_t i = 0; i < env->monitor_count; i++)
        if (env->monitors[i]->expect != NULL)
            env->monitors[i]->expect(env->monitors[i], trainers);
}

static void run_side_by_side(sgm_env *env)
{
    size_t started = 0;
    for (; started < env->runner_count; started++) {
        sgm__runner *runner = &env->runners[started];
        if (pthread_create(&runner->thread, NULL, run_trainer, runner) == 0)
            continue;
        keep_outcome(runner, sgm_fail(SGM_ERROR_MEMORY, "trainer '%s': the system refused a thread for it",
                                      sgm_trainer_name(runner->trainer)));
        break;
    }
    for (size_t i = started; i < env->runner_count; i++)
        sgm__control_end(&env->runners[i].trainer->control);
    for (size_t i = 0; i < started; i++)
        pthread_join(env->runners[i].thread, NULL);
}

/* The first failure; without one, that a trainer was interrupted. */
static sgm_status outcome(const sgm_env *env)
{
    SGM_TRY(sgm__env_check(env));
    for (size_t i = 0; i < env->runner_count; i++)
        if (env->runners[i].status != SGM_OK)
            return sgm_fail(env->runners[i].status, "%s", env->runners[i].message);
    return SGM_OK;
}

static sgm_status run_all(sgm_env *env)
{
    if (env->runners == NULL)
        return sgm__env_check(env);
    bool catches = env->runners[0].options.catch_interrupt;
    sgm__log(SGM_LOG_INFO, env->name, "running %zu trainer%s with seed %llu", env->runner_count,
             env->runner_count == 1 ? "" : "s", (unsigned long long)env->seed);
    sgm__signals_catch(catches); /* also between the first trainer's end and the last one's start */
    sgm__env_expect(env, env->runner_count);
    sgm__env_open_branches(env);
    if (env->runner_count == 1)
        run_trainer(&env->runners[0]);
    else
        run_side_by_side(env);
    sgm__env_end_branches(env);
    sgm__env_expect(env, 1);
    sgm__signals_release(catches);
    return outcome(env);
}

/* --- beginning and end --- */

static sgm_status claim(sgm_env *env)
{
    sgm__env_lock();
    bool running = env->running, unwaited = env->in_background;
    env->running = running || !unwaited;
    sgm__env_unlock();
    if (running)
        return sgm_fail(SGM_ERROR_STATE, "%s: is running already", env->name);
    if (unwaited)
        return sgm_fail(SGM_ERROR_STATE, "%s: ran in the background; call sgm_wait first", env->name);
    return SGM_OK;
}

static size_t count_runners(const sgm_env *env)
{
    size_t count = 0;
    for (size_t i = 0; i < env->trainer_count; i++)
        count += !env->trainers[i]->unscheduled && !env->trainers[i]->branched;
    return count;
}

/* Several trainers cannot write into one folder: each gets its own below it. */
static sgm_status fill_runner(sgm__runner *runner, const sgm_run_options *options, bool several)
{
    const char *name = sgm_trainer_name(runner->trainer);
    runner->options = *options;
    if (options->folder == NULL)
        return SGM_OK;
    runner->folder = several ? sgm__format("%s/%s", options->folder, name) : sgm__strdup(options->folder);
    runner->options.folder = runner->folder;
    return runner->folder != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status make_runners(sgm_env *env, const sgm_run_options *options, sgm__runner *runners,
                               size_t count)
{
    size_t made = 0;
    env->several = count > 1;
    for (size_t i = 0; i < env->trainer_count; i++) {
        sgm_trainer *trainer = env->trainers[i];
        if (trainer->branched)
            continue;
        SGM_TRY(sgm_trainer_status(trainer));
        if (trainer->unscheduled) {
            SGM_TRY(sgm_trainer_prepare(trainer));
            continue;
        }
        runners[made] = (sgm__runner){.env = env, .trainer = trainer};
        SGM_TRY(fill_runner(&runners[made++], options, count > 1));
    }
    return SGM_OK;
}

/* All or none: a trainer may be running by itself. */
static sgm_status reserve(const sgm__runner *runners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm_status status = sgm__trainer_reserve(runners[i].trainer, runners[i].options.paused);
        if (status == SGM_OK)
            continue;
        while (i-- > 0)
            sgm__control_end(&runners[i].trainer->control);
        return status;
    }
    return SGM_OK;
}

static void free_runners(sgm__runner *runners, size_t count)
{
    for (size_t i = 0; runners != NULL && i < count; i++)
        sgm__free(runners[i].folder);
    sgm__free(runners);
}

static sgm_status plan_run(sgm_env *env, const sgm_run_options *given, sgm__runner **runners, size_t *count)
{
    sgm_run_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_run"));
    SGM_TRY(sgm__env_start_monitors(env));
    *count = count_runners(env);
    if (*count == 0)
        return sgm_fail(SGM_ERROR_STATE, "there is no trainer to run; make one with sgm_trainer_create");
    *runners = sgm__calloc(*count, sizeof **runners);
    return *runners != NULL ? make_runners(env, &options, *runners, *count) : SGM_ERROR_MEMORY;
}

/* Gives the environment its run, or lets go of it. */
static void set_run(sgm_env *env, sgm__runner *runners, size_t count)
{
    sgm__env_lock();
    env->runners = runners;
    env->runner_count = count;
    env->running = count > 0;
    sgm__env_unlock();
}

static sgm_status begin_run(sgm_env *env, const sgm_run_options *given)
{
    if (env == NULL)
        return sgm_last_status() != SGM_OK
                   ? sgm_last_status()
                   : sgm_fail(SGM_ERROR_ARGUMENT, "expected an environment, got NULL");
    SGM_TRY(sgm__env_check(env));
    SGM_TRY(claim(env));
    sgm__runner *runners = NULL;
    size_t count = 0;
    sgm_status status = sgm__env_keep(env, plan_run(env, given, &runners, &count));
    if (status == SGM_OK)
        status = reserve(runners, count); /* a trainer that runs by itself is no failure of the environment */
    set_run(env, status == SGM_OK ? runners : NULL, status == SGM_OK ? count : 0);
    if (status != SGM_OK)
        free_runners(runners, count);
    return status;
}

sgm_status sgm__env_begin_search(sgm_env *env, sgm_search *search)
{
    SGM_TRY(sgm__env_check(env));
    SGM_TRY(claim(env));
    sgm__env_lock();
    env->search = search;
    sgm__env_unlock();
    return SGM_OK;
}

void sgm__env_end_search(sgm_env *env)
{
    sgm__env_lock();
    env->search = NULL;
    env->running = false;
    sgm__env_unlock();
}

static void end_run(sgm_env *env)
{
    sgm__runner *runners = env->runners;
    size_t count = env->runner_count;
    set_run(env, NULL, 0);
    free_runners(runners, count);
}

sgm_status sgm_run_env(sgm_env *env, const sgm_run_options *options)
{
    SGM_TRY(begin_run(env, options));
    sgm_status status = run_all(env);
    end_run(env);
    return status;
}

/* --- in the background --- */

static void *run_in_background(void *argument)
{
    sgm_env *env = argument;
    env->background_status = run_all(env);
    if (env->background_status != SGM_OK)
        snprintf(env->background_message, sizeof env->background_message, "%s", sgm_last_error());
    end_run(env);
    return NULL;
}

static void set_in_background(sgm_env *env, bool is)
{
    sgm__env_lock();
    env->in_background = is;
    env->awaited = false;
    sgm__env_unlock();
}

sgm_status sgm_run_background_env(sgm_env *env, const sgm_run_options *options)
{
    SGM_TRY(begin_run(env, options));
    set_in_background(env, true);
    if (pthread_create(&env->background, NULL, run_in_background, env) == 0)
        return SGM_OK;
    set_in_background(env, false);
    for (size_t i = 0; i < env->runner_count; i++)
        sgm__control_end(&env->runners[i].trainer->control);
    end_run(env);
    return sgm__env_keep(
        env, sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread for a run in the background"));
}

sgm_status sgm_wait(sgm_env *env)
{
    if (env == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_wait: expected an environment, got NULL");
    if (sgm__is_busy())
        return sgm_fail(SGM_ERROR_STATE,
                        "sgm_wait: a hook or an observer would wait for the run that waits for it; ask for a "
                        "stop instead (sgm_hook_request_stop, sgm_stop)");
    sgm__env_lock();
    bool waits = env->in_background && !env->awaited;
    env->awaited |= waits;
    sgm__env_unlock();
    if (!waits)
        return sgm_fail(SGM_ERROR_STATE,
                        "%s: nothing was begun with sgm_run_background, or somebody waits already",
                        env->name);
    pthread_join(env->background, NULL);
    set_in_background(env, false);
    return env->background_status == SGM_OK ? SGM_OK
                                            : sgm_fail(env->background_status, "%s", env->background_message);
}

sgm_status sgm_stop(sgm_env *env, const char *reason)
{
    if (env == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_stop: expected an environment, got NULL");
    sgm__env_lock();
    size_t stopped = stop_all(env, NULL, reason);
    if (env->search != NULL)
        sgm__search_stop(env->search);
    stopped += env->search != NULL;
    sgm__env_unlock();
    if (stopped == 0)
        return sgm_fail(SGM_ERROR_STATE, "%s: does not run and cannot be stopped", env->name);
    sgm_clear_error();
    return SGM_OK;
}

void sgm__env_end(sgm_env *env)
{
    if (!env->in_background)
        return;
    sgm_stop(env, "its environment, which was freed");
    sgm_wait(env);
}
