/* The lock of a trainer: taking it, how long a thread is willing to wait for it, and the pair
 * sgm__trainer_open and sgm__trainer_close around changes of a trainer's parts.
 *
 * The run's thread holds the lock during a step, and lets waiting threads have it between two steps. A
 * replica has no lock of its own; its owner's is taken. Hooks, observers and monitors of one trainer may look
 * at another one while both run: each of their threads then holds its own trainer's lock, and
 * base/turn_lock.h says how they do not wait for each other for ever. A background hook must not take the
 * lock of its own trainer: the thread that holds the lock may be waiting for the hook. */
#include "trainer/trainer_lock.h"
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"
#include "trainer/trainer_struct.h"

void sgm__trainer_lock(sgm_trainer *trainer)
{
    sgm__turn_lock_take(&trainer->sharing.owner->control.turn);
}

void sgm__trainer_unlock(sgm_trainer *trainer)
{
    sgm__turn_lock_leave(&trainer->sharing.owner->control.turn);
}

/* Called by the run's thread only, on its own trainer, which is never a replica. */
void sgm__trainer_let_others(sgm_trainer *trainer)
{
    sgm__turn_lock_let_others(&trainer->control.turn);
}

/* --- threads that must not wait --- */

sgm_status sgm__trainer_check_thread(const sgm_trainer *trainer)
{
    const sgm__hooks *hooks = sgm__hooks_of_background();
    if (hooks != NULL && hooks->owner != NULL && hooks->owner->sharing.owner == trainer)
        return sgm_fail(SGM_ERROR_STATE,
                        "a background hook of trainer '%s' cannot wait for it: name what it reads in .reads, "
                        "and ask for changes with the sgm_hook_request functions",
                        trainer->name);
    return SGM_OK;
}

/* --- patience --- */

static _Thread_local const sgm__patience *patience_of_thread;

const sgm__patience *sgm__patience_set(const sgm__patience *patience)
{
    const sgm__patience *before = patience_of_thread;
    patience_of_thread = patience;
    return before;
}

const sgm__patience *sgm__patience_now(void)
{
    return patience_of_thread;
}

bool sgm__patience_has_left(void)
{
    const sgm__patience *patience = patience_of_thread;
    return patience != NULL && patience->has_left != NULL && patience->has_left(patience->asker);
}

/* The error of a thread whose patience is over. It may not read the trainer, whose lock it has not got:
 * `whereabouts` are atomics that the run's thread sets for this message. */
static sgm_status fail_busy(sgm_trainer *trainer, double seconds)
{
    sgm__whereabouts *place = &trainer->control.whereabouts;
    const char *doing = atomic_load(&place->doing);
    char *silent = sgm__trainer_silent(trainer);
    sgm_status status = sgm_fail(
        SGM_ERROR_INTERRUPTED,
        "trainer '%s' has not let anybody look for %.3g seconds: it is %s after epoch %lld, iteration "
        "%lld%s%s; nothing was done, so ask again, or wait for longer",
        trainer->name, seconds, doing != NULL ? doing : "busy", (long long)atomic_load(&place->epoch),
        (long long)atomic_load(&place->iteration), silent != NULL ? ", and " : "",
        silent != NULL ? silent : "");
    sgm__free(silent);
    return status;
}

sgm_status sgm__patience_check(sgm_trainer *trainer)
{
    const sgm__patience *patience = patience_of_thread;
    if (patience == NULL)
        return SGM_OK;
    if (patience->ending != NULL && atomic_load(patience->ending))
        return sgm_fail(SGM_ERROR_INTERRUPTED, "the run has just ended");
    if (sgm__patience_has_left())
        return sgm_fail(SGM_ERROR_INTERRUPTED, "who asked has left, so nothing was done");
    if (patience->until > 0 && sgm__now() >= patience->until)
        return fail_busy(trainer, sgm__now() - patience->asked);
    return SGM_OK;
}

/* The argument of goes_on: whom the thread waits for, and how the wait ended. */
typedef struct patient {
    sgm_trainer *trainer;
    sgm_status status;
} patient;

static bool goes_on(void *user)
{
    patient *self = user;
    self->status = sgm__patience_check(self->trainer);
    return self->status == SGM_OK;
}

/* Takes the lock as soon as the run's thread lets it go, unless the thread's patience ends first. Threads
 * with patience answer requests, and hold no other trainer's lock. */
static sgm_status lock_with_patience(sgm_trainer *trainer)
{
    patient self = {.trainer = trainer, .status = SGM_OK};
    return sgm__turn_lock_take_while(&trainer->control.turn, goes_on, &self) ? SGM_OK : self.status;
}

sgm_status sgm__trainer_enter(sgm_trainer *trainer)
{
    trainer = trainer->sharing.owner;
    SGM_TRY(sgm__trainer_check_thread(trainer));
    if (patience_of_thread != NULL)
        return lock_with_patience(trainer);
    sgm__trainer_lock(trainer);
    return SGM_OK;
}

/* Takes the lock when no hook is in the middle of its work. */
static sgm_status enter_for_hooks(sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_enter(trainer));
    trainer = trainer->sharing.owner;
    if (sgm__turn_lock_gather(&trainer->control.turn))
        return SGM_OK;
    sgm__trainer_unlock(trainer);
    return sgm_fail(
        SGM_ERROR_STATE,
        "trainer '%s' has a hook that waits for another trainer just now: its hooks cannot be saved or "
        "loaded out of a hook of that one",
        trainer->name);
}

/* Waiting for a hook that another trainer runs gives the lock away, and this trainer may go on meanwhile,
 * into the middle of an event too: then everything begins again. */
sgm_status sgm__trainer_enter_with_hooks(sgm_trainer *trainer, sgm__held_hooks *held)
{
    *held = (sgm__held_hooks){0};
    for (;;) {
        SGM_TRY(enter_for_hooks(trainer));
        sgm_status status = sgm__hooks_hold(trainer->hooks, held);
        if (status == SGM_OK && (held->count == 0 || trainer->sharing.owner->control.turn.away == 0))
            return SGM_OK;
        sgm__trainer_leave_with_hooks(trainer, held);
        SGM_TRY(status);
    }
}

void sgm__trainer_leave_with_hooks(sgm_trainer *trainer, sgm__held_hooks *held)
{
    sgm__hooks_let_go(held);
    sgm__trainer_unlock(trainer);
}

/* Takes the lock for a change of the trainer's parts: monitors look at a trainer from threads of their own
 * while it is set up, and must see a part before or after its change. */
sgm_status sgm__trainer_open(sgm_trainer *trainer)
{
    SGM_TRY(sgm_trainer_status(trainer));
    return sgm__trainer_enter(trainer);
}

sgm_status sgm__trainer_close(sgm_trainer *trainer, sgm_status status)
{
    status = sgm__trainer_keep(trainer, status);
    sgm__trainer_unlock(trainer);
    return status;
}

sgm_status sgm__trainer_missing(const char *what)
{
    return sgm_last_status() != SGM_OK ? sgm_last_status()
                                       : sgm_fail(SGM_ERROR_ARGUMENT, "was given no %s", what);
}
