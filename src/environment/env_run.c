/* Runs the trainers of an environment side by side, in the foreground or in the background.
 *
 * sgm_env_run: begin_run checks and reserves everything, run_all trains, end_run lets go. A single trainer
 * runs on the calling thread, several run on a thread each. Each trainer's run itself is
 * sgm__trainer_run_reserved (src/loop/trainer_run.c); trainers added meanwhile are in env_branch.c; the
 * trials of a search are in search_run.c, which uses sgm__env_begin_search to keep other runs out.
 *
 * Invariant: env->runners is set and cleared under sgm__env_lock, and is constant in between. So
 * sgm_env_stop, from any thread, may go through it with that lock. When a trainer fails, the others are
 * stopped; the first failure becomes the environment's. */
#include "base/turn_lock.h"
#include "environment/environment.h"
#include "loop/trainer_run.h"
#include "monitors/monitor.h"
#include "trainer/signals.h"
#include "trainer/trainer.h"

#include <stdio.h>

/* --- one trainer --- */

/* With sgm__env_lock. Asks all trainers of the run but one to stop, branches too. Returns how many have
 * accepted: a trainer whose run has ended refuses. */
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

/* Notes how a trainer's run has ended, on its thread. An interruption is no failure: it stays with the
 * runner. A failure stops all other trainers. */
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

/* The thread of one trainer, or a plain call where there is only one. */
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

/* One thread for each trainer. If the system refuses a thread, the trainers that have none are released
 * from their reservation, and keep_outcome has stopped those that run. */
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
        sgm__control_end(sgm__control_of(env->runners[i].trainer));
    for (size_t i = 0; i < started; i++)
        pthread_join(env->runners[i].thread, NULL);
}

/* The environment's first failure; without one, the first runner that was interrupted. */
static sgm_status outcome(const sgm_env *env)
{
    SGM_TRY(sgm__env_check(env));
    for (size_t i = 0; i < env->runner_count; i++)
        if (env->runners[i].status != SGM_OK)
            return sgm_fail(env->runners[i].status, "%s", env->runners[i].message);
    return SGM_OK;
}

/* Trains until all trainers and branches have ended, on the calling thread or on that of the background.
 * Signals are caught for the whole time rather than by each trainer alone: a signal that comes after the
 * first trainer's end or before the last one's start must stop the rest too. */
static sgm_status run_all(sgm_env *env)
{
    if (env->runners == NULL)
        return sgm__env_check(env);
    bool catches = env->runners[0].options.catch_interrupt;
    sgm__log(SGM_LOG_INFO, env->name, "running %zu trainer%s with seed %llu", env->runner_count,
             env->runner_count == 1 ? "" : "s", (unsigned long long)env->seed);
    sgm__signals_catch(catches);
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

/* Marks the environment as running, or fails if it runs or if a run in the background was not waited for.
 * Test and change are one step under the lock, so two threads cannot both begin. */
static sgm_status claim(sgm_env *env)
{
    sgm__env_lock();
    bool running = env->running, unwaited = env->in_background;
    env->running = running || !unwaited;
    sgm__env_unlock();
    if (running)
        return sgm_fail(SGM_ERROR_STATE, "%s: is running already", env->name);
    if (unwaited)
        return sgm_fail(SGM_ERROR_STATE, "%s: ran in the background; call sgm_env_wait first", env->name);
    return SGM_OK;
}

/* How many trainers the run has: unscheduled trainers and past branches do not run. */
static size_t count_runners(const sgm_env *env)
{
    size_t count = 0;
    for (size_t i = 0; i < env->trainer_count; i++)
        count += !sgm__membership_of(env->trainers[i])->unscheduled &&
                 !sgm__membership_of(env->trainers[i])->branched;
    return count;
}

/* Several trainers cannot write into one folder: each gets FOLDER/NAME. One alone gets FOLDER itself. */
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

/* Fills in the runners in the order of creation, and prepares the trainers that do not run: their
 * predictions may be asked for during the run. */
static sgm_status make_runners(sgm_env *env, const sgm_run_options *options, sgm__runner *runners,
                               size_t count)
{
    size_t made = 0;
    env->several = count > 1;
    for (size_t i = 0; i < env->trainer_count; i++) {
        sgm_trainer *trainer = env->trainers[i];
        if (sgm__membership_of(trainer)->branched)
            continue;
        SGM_TRY(sgm_trainer_status(trainer));
        if (sgm__membership_of(trainer)->unscheduled) {
            SGM_TRY(sgm_trainer_prepare(trainer));
            continue;
        }
        runners[made] = (sgm__runner){.env = env, .trainer = trainer};
        SGM_TRY(fill_runner(&runners[made++], options, count > 1));
    }
    return SGM_OK;
}

/* Reserves all trainers or none: one may be running by itself (sgm_trainer_run) on another thread. From
 * here on commands reach the trainers, which sgm_env_run_background promises at its return. */
static sgm_status reserve(const sgm__runner *runners, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        sgm_status status = sgm__trainer_reserve(runners[i].trainer, runners[i].options.paused);
        if (status == SGM_OK)
            continue;
        while (i-- > 0)
            sgm__control_end(sgm__control_of(runners[i].trainer));
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

/* Reads the options, starts monitors and makes the runners. On failure *runners may be set; the caller
 * frees it. */
static sgm_status plan_run(sgm_env *env, const sgm_run_options *given, sgm__runner **runners, size_t *count)
{
    sgm_run_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_env_run"));
    SGM_TRY(sgm__env_start_monitors(env));
    *count = count_runners(env);
    if (*count == 0)
        return sgm_fail(SGM_ERROR_STATE, "there is no trainer to run; make one with sgm_trainer_create");
    *runners = sgm__calloc(*count, sizeof **runners);
    return *runners != NULL ? make_runners(env, &options, *runners, *count) : SGM_ERROR_MEMORY;
}

/* Gives the environment its runners, or with a count of 0 takes them away and ends its state "running". */
static void set_run(sgm_env *env, sgm__runner *runners, size_t count)
{
    sgm__env_lock();
    env->runners = runners;
    env->runner_count = count;
    env->running = count > 0;
    sgm__env_unlock();
}

/* After success the environment is running. A failure of plan_run stays the environment's, but not one of
 * `reserve`: that the trainer runs by itself is the caller's mistake and passes. Without an environment
 * the message is that of the failed sgm_env_create, if there is one. */
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
        status = reserve(runners, count);
    set_run(env, status == SGM_OK ? runners : NULL, status == SGM_OK ? count : 0);
    if (status != SGM_OK)
        free_runners(runners, count);
    return status;
}

/* The search makes and drops trainers itself, so there are no runners. */
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

/* `runners` is taken out under the lock before it is freed. */
static void end_run(sgm_env *env)
{
    sgm__runner *runners = env->runners;
    size_t count = env->runner_count;
    set_run(env, NULL, 0);
    free_runners(runners, count);
}

sgm_status sgm_env_run_with(sgm_env *env, const sgm_run_options *options)
{
    SGM_TRY(begin_run(env, options));
    sgm_status status = run_all(env);
    end_run(env);
    return status;
}

/* --- in the background --- */

/* The thread of sgm_env_run_background. The message is copied because sgm_last_error is this thread's own. */
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

/* in_background is set before the thread starts, so that the run cannot end before it counts as begun. */
sgm_status sgm_env_run_background_with(sgm_env *env, const sgm_run_options *options)
{
    SGM_TRY(begin_run(env, options));
    set_in_background(env, true);
    if (pthread_create(&env->background, NULL, run_in_background, env) == 0)
        return SGM_OK;
    set_in_background(env, false);
    for (size_t i = 0; i < env->runner_count; i++)
        sgm__control_end(sgm__control_of(env->runners[i].trainer));
    end_run(env);
    return sgm__env_keep(
        env, sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread for a run in the background"));
}

/* Refuses to wait on a thread that runs a hook or an observer, or that holds a trainer's lock
 * (sgm__is_busy): the run would be waiting for that thread. `awaited` lets one thread only join. */
sgm_status sgm_env_wait(sgm_env *env)
{
    if (env == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_wait: expected an environment, got NULL");
    if (sgm__is_busy())
        return sgm_fail(
            SGM_ERROR_STATE,
            "sgm_env_wait: a hook or an observer would wait for the run that waits for it; ask for a "
            "stop instead (sgm_hook_request_stop, sgm_env_stop)");
    sgm__env_lock();
    bool waits = env->in_background && !env->awaited;
    env->awaited |= waits;
    sgm__env_unlock();
    if (!waits)
        return sgm_fail(SGM_ERROR_STATE,
                        "%s: nothing was begun with sgm_env_run_background, or somebody waits already",
                        env->name);
    pthread_join(env->background, NULL);
    set_in_background(env, false);
    return env->background_status == SGM_OK ? SGM_OK
                                            : sgm_fail(env->background_status, "%s", env->background_message);
}

/* The lock is held throughout, so that runners and the search cannot end and be freed in between.
 * sgm_trainer_stop only leaves a request; errors of trainers that refuse are cleared. */
sgm_status sgm_env_stop(sgm_env *env, const char *reason)
{
    if (env == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_env_stop: expected an environment, got NULL");
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

/* For sgm_env_free. */
void sgm__env_end(sgm_env *env)
{
    if (!env->in_background)
        return;
    sgm_env_stop(env, "its environment, which was freed");
    sgm_env_wait(env);
}
