/* Whether a run goes on, told from any thread: pause, resume, step, stop.
 *
 * Callers change a few flags under the control's own lock, and never wait for the step that is running: the
 * run's thread looks at the flags between two iterations. The atomic `asked` says whether any flag was ever
 * set in this run, so that a run nobody steers never takes the lock. The control's lock is a leaf: no other
 * lock is taken while it is held. */
#include "base/clock.h"
#include "trainer/trainer_struct.h"

#include <jansson.h>
#include <stdio.h>

/* Conditions wait by the monotonic clock (sgm__cond_init), so that a changed clock neither ends nor prolongs
 * a wait. */
void sgm__control_init(sgm__control *control)
{
    pthread_mutex_init(&control->lock, NULL);
    sgm__cond_init(&control->changed);
    control->steps = -1;
}

/* Removes the commands that nobody waits for; with the control's lock. */
static void drop_commands(sgm__control *control)
{
    for (sgm__command *command = control->commands.first, *next; command != NULL; command = next) {
        next = command->next;
        if (command->waited)
            continue;
        sgm__commands_remove(&control->commands, command);
        sgm__command_free(command);
    }
}

void sgm__control_destroy(sgm__control *control)
{
    sgm__free(control->reason);
    sgm__free(control->paused_by);
    sgm__asker_clear(&control->pauser);
    sgm__asker_clear(&control->resumer);
    json_decref(control->approve);
    json_decref(control->pending);
    drop_commands(control);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->lock);
}

/* The error of a command that the trainer's state does not allow; with the control's lock. */
static sgm_status wrong_state(const sgm_trainer *trainer, const char *what)
{
    static const char *const names[] = {"idle", "running", "paused"};
    return sgm_fail(SGM_ERROR_STATE, "trainer '%s' is %s and cannot be %s", trainer->name,
                    names[trainer->control.state], what);
}

/* From here on the run's thread looks at the flags. Relaxed is enough: the flags themselves are read under
 * the lock, and an iteration sooner or later does not matter. */
static void was_asked(sgm__control *control)
{
    atomic_store_explicit(&control->asked, true, memory_order_relaxed);
}

static bool is_asked(sgm__control *control)
{
    return atomic_load_explicit(&control->asked, memory_order_relaxed);
}

/* --- askers --- */

void sgm__asker_clear(sgm__asker *asker)
{
    sgm__free(asker->who);
    sgm__free(asker->reason);
    *asker = (sgm__asker){0};
}

/* A name or a reason for which there is no memory is left out. */
static sgm__asker asker_of(const char *who, const char *reason)
{
    return (sgm__asker){who != NULL ? sgm__strdup(who) : NULL, reason != NULL ? sgm__strdup(reason) : NULL};
}

static void set_asker(sgm__asker *asker, const char *who, const char *reason)
{
    sgm__asker_clear(asker);
    *asker = asker_of(who, reason);
}

sgm__asker sgm__control_asker(sgm__control *control, bool of_pause)
{
    pthread_mutex_lock(&control->lock);
    const sgm__asker *asker = of_pause ? &control->pauser : &control->resumer;
    sgm__asker copy = asker_of(asker->who, asker->reason);
    pthread_mutex_unlock(&control->lock);
    return copy;
}

/* --- pausing, going on --- */

/* Pauses the trainer in the name of the hook `by` (NULL: a person, `who`, or the program), and frees `by`. If
 * a pause is already wanted, it keeps the names of whoever wanted it first. */
static sgm_status pause_by(sgm_trainer *trainer, char *by, const char *who, const char *reason)
{
    sgm__control *control = &trainer->control;
    pthread_mutex_lock(&control->lock);
    sgm_status status = control->state == SGM_TRAINER_IDLE ? wrong_state(trainer, "paused") : SGM_OK;
    if (status == SGM_OK && !control->pause) {
        sgm__free(control->paused_by);
        control->paused_by = by;
        by = NULL;
        set_asker(&control->pauser, who, reason);
        control->pause = true;
        was_asked(control);
    }
    pthread_mutex_unlock(&control->lock);
    sgm__free(by);
    return status;
}

sgm_status sgm_trainer_pause(sgm_trainer *trainer)
{
    return pause_by(trainer, NULL, NULL, NULL);
}

sgm_status sgm__trainer_pause_for(sgm_trainer *trainer, const char *who, const char *reason)
{
    return pause_by(trainer, NULL, who, reason);
}

/* In a replay nobody waits at a hook's pause: what was done meanwhile is in the journal. */
sgm_status sgm__trainer_pause_by(sgm_trainer *trainer, const char *who)
{
    if (trainer->journal.replay != NULL) {
        sgm__log(SGM_LOG_INFO, trainer->name, "%s pauses the training: the replay goes on", who);
        return SGM_OK;
    }
    char *copy = sgm__strdup(who);
    return copy != NULL ? pause_by(trainer, copy, NULL, NULL) : SGM_ERROR_MEMORY;
}

/* A copy, since the name is freed when the pause ends. */
char *sgm__trainer_paused_by(sgm_trainer *trainer)
{
    sgm__control *control = &trainer->control;
    pthread_mutex_lock(&control->lock);
    bool pauses = control->pause && control->paused_by != NULL;
    char *who = pauses ? sgm__strdup(control->paused_by) : NULL;
    pthread_mutex_unlock(&control->lock);
    return who;
}

/* Ends a pause: for `steps` iterations, after which it pauses again in the same name, or for good (-1). */
static sgm_status go_on(sgm_trainer *trainer, int64_t steps, const char *who, const char *reason)
{
    const char *what = steps < 0 ? "resumed" : "stepped";
    sgm__control *control = &trainer->control;
    pthread_mutex_lock(&control->lock);
    sgm_status status = control->state == SGM_TRAINER_IDLE ? wrong_state(trainer, what) : SGM_OK;
    if (status == SGM_OK) {
        control->pause = false;
        sgm__free(control->paused_by);
        control->paused_by = NULL;
        control->steps = steps;
        set_asker(&control->pauser, who, reason);
        set_asker(&control->resumer, who, reason);
        was_asked(control);
        pthread_cond_broadcast(&control->changed);
    }
    pthread_mutex_unlock(&control->lock);
    return status;
}

sgm_status sgm__trainer_go_on_for(sgm_trainer *trainer, int64_t iterations, const char *who,
                                  const char *reason)
{
    return go_on(trainer, iterations, who, reason);
}

sgm_status sgm_trainer_resume(sgm_trainer *trainer)
{
    return go_on(trainer, -1, NULL, NULL);
}

sgm_status sgm_trainer_step(sgm_trainer *trainer, int64_t iterations)
{
    if (iterations < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "stepping takes at least 1 iteration, not %lld",
                        (long long)iterations);
    return go_on(trainer, iterations, NULL, NULL);
}

/* The run ends before the next iteration, also out of a pause. The newest reason is the one that is told. */
sgm_status sgm_trainer_stop(sgm_trainer *trainer, const char *reason)
{
    sgm__control *control = &trainer->control;
    char *copy = sgm__strdup(reason != NULL ? reason : "asked to");
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_lock(&control->lock);
    sgm_status status = control->state == SGM_TRAINER_IDLE ? wrong_state(trainer, "stopped") : SGM_OK;
    if (status == SGM_OK) {
        sgm__free(control->reason);
        control->reason = copy;
        copy = NULL;
        control->stop = true;
        was_asked(control);
        pthread_cond_broadcast(&control->changed);
    }
    pthread_mutex_unlock(&control->lock);
    sgm__free(copy);
    return status;
}

/* --- for the training's thread --- */

/* The trainer counts as running from here on, before its thread has begun: commands that come in between
 * are not lost. Flags of the run before are cleared. */
sgm_status sgm__trainer_reserve(sgm_trainer *trainer, bool paused)
{
    sgm__control *control = &trainer->control;
    pthread_mutex_lock(&control->lock);
    sgm_status status = control->state != SGM_TRAINER_IDLE ? wrong_state(trainer, "run again") : SGM_OK;
    if (status == SGM_OK) {
        control->state = SGM_TRAINER_RUNNING;
        pthread_cond_broadcast(&control->changed);
        control->pause = paused;
        sgm__free(control->paused_by);
        control->paused_by = NULL;
        sgm__asker_clear(&control->pauser);
        sgm__asker_clear(&control->resumer);
        control->stop = false;
        control->steps = -1;
        atomic_store(&control->asked, paused);
    }
    pthread_mutex_unlock(&control->lock);
    return status;
}

/* Makes the trainer idle, unless commands are queued that no thread waits for: the run has to carry these out
 * first. A thread that waits for its command finds the trainer idle and carries the command out itself. */
bool sgm__control_try_end(sgm__control *control)
{
    bool ends = true;
    pthread_mutex_lock(&control->lock);
    for (const sgm__command *command = control->commands.first; command != NULL; command = command->next)
        ends = ends && command->waited;
    if (ends) {
        control->state = SGM_TRAINER_IDLE;
        pthread_cond_broadcast(&control->changed);
    }
    pthread_mutex_unlock(&control->lock);
    return ends;
}

/* Makes the trainer idle after a failure; commands that nobody waits for are dropped. */
void sgm__control_end(sgm__control *control)
{
    pthread_mutex_lock(&control->lock);
    drop_commands(control);
    control->state = SGM_TRAINER_IDLE;
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
}

bool sgm__control_is_held(sgm__control *control)
{
    pthread_mutex_lock(&control->lock);
    bool held = control->pause && !control->stop;
    pthread_mutex_unlock(&control->lock);
    return held;
}

bool sgm__control_is_due(sgm__control *control)
{
    if (!is_asked(control))
        return false;
    pthread_mutex_lock(&control->lock);
    bool due = control->pause || control->stop || control->steps > 0;
    pthread_mutex_unlock(&control->lock);
    return due;
}

/* Whether to pause now; counts one of the steps that were asked for. */
bool sgm__control_wants_pause(sgm__control *control)
{
    if (!is_asked(control))
        return false;
    pthread_mutex_lock(&control->lock);
    if (control->steps > 0 && --control->steps == 0)
        control->pause = true;
    bool pause = control->pause && !control->stop;
    pthread_mutex_unlock(&control->lock);
    return pause;
}

/* Waits until the pause ends, a command comes or the time is over. A signal cannot wake a condition
 * variable, so the wait looks up every 50 ms. */
bool sgm__control_wait(sgm__control *control, bool (*interrupted)(void), double seconds)
{
    double end = sgm__now() + seconds;
    bool late = false;
    pthread_mutex_lock(&control->lock);
    control->state = SGM_TRAINER_PAUSED;
    pthread_cond_broadcast(&control->changed);
    while (control->commands.first == NULL && control->pause && !control->stop && !late &&
           (interrupted == NULL || !interrupted())) {
        struct timespec until = sgm__time_in(0.05);
        pthread_cond_timedwait(&control->changed, &control->lock, &until);
        late = sgm__now() >= end;
    }
    bool goes_on = control->commands.first == NULL &&
                   (!late || !control->pause || control->stop || (interrupted != NULL && interrupted()));
    if (goes_on)
        control->state = SGM_TRAINER_RUNNING;
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
    return goes_on;
}

/* Waits in turns, as an infinite time has no end that a condition could be given. */
sgm_status sgm_trainer_wait_for(sgm_trainer *trainer, sgm_trainer_state state, double seconds)
{
    static const char *const names[] = {"idle", "running", "paused"};
    if (trainer == NULL || (unsigned)state > SGM_TRAINER_PAUSED || !(seconds >= 0))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "sgm_trainer_wait_for: expected a trainer, one of its states and a time of 0 or more");
    if (sgm__is_busy())
        return sgm_fail(
            SGM_ERROR_STATE,
            "trainer '%s': a hook or an observer cannot wait for a trainer: it would wait for itself",
            trainer->name);
    sgm__control *control = &trainer->control;
    double end = sgm__now() + seconds;
    pthread_mutex_lock(&control->lock);
    while (control->state != state && sgm__now() < end) {
        double left = end - sgm__now();
        struct timespec until = sgm__time_in(left < 0.05 ? left : 0.05);
        pthread_cond_timedwait(&control->changed, &control->lock, &until);
    }
    sgm_trainer_state now = control->state;
    pthread_mutex_unlock(&control->lock);
    if (now == state)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_STATE, "trainer '%s' is %s, not %s, after %g s", trainer->name, names[now],
                    names[state], seconds);
}

void sgm__control_forget_stop(sgm__control *control)
{
    pthread_mutex_lock(&control->lock);
    control->stop = false;
    pthread_mutex_unlock(&control->lock);
}

bool sgm__control_stops(sgm__control *control, char *reason, size_t size)
{
    if (!is_asked(control))
        return false;
    pthread_mutex_lock(&control->lock);
    bool stop = control->stop;
    if (stop && size > 0)
        snprintf(reason, size, "%s", control->reason);
    pthread_mutex_unlock(&control->lock);
    return stop;
}
