/* The lock between steps.
 *
 * Hooks, observers and monitors of one trainer may look at another one while both run. Each of their threads
 * has its own trainer's lock then, so that they could wait for each other: whoever has to wait lets go of
 * what it has, and goes on when it has all of it again. A background hook may be waited for by who has the
 * lock, so it is refused. */
#include "training/trainer_lock.h"
#include "training/hooks_internal.h"

#include "training/ranks.h"

#include <sched.h>
#include <time.h>

#define MOST_HELD 16 /* by one thread; beyond, nothing is let go of */
#define LOOK_NANOSECONDS 20000000

typedef struct held_lock {
    sgm_trainer *trainer;
    int depth;
} held_lock;

static _Thread_local held_lock held[MOST_HELD];
static _Thread_local size_t held_count;
static _Thread_local int busy;

void sgm__busy_begin(void)
{
    busy++;
}

void sgm__busy_end(void)
{
    busy--;
}

bool sgm__is_busy(void)
{
    return busy > 0;
}

static held_lock *find_held(const sgm_trainer *trainer)
{
    for (size_t i = 0; i < held_count; i++)
        if (held[i].trainer == trainer)
            return &held[i];
    return NULL;
}

static void wait_for(sgm_trainer *trainer)
{
    atomic_fetch_add(&trainer->waiting, 1);
    pthread_mutex_lock(&trainer->lock);
    atomic_fetch_sub(&trainer->waiting, 1);
}

/* --- several locks --- */

static void let_go(const held_lock *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int depth = 0; depth < locks[i].depth; depth++)
            pthread_mutex_unlock(&locks[i].trainer->lock);
}

/* All but `first`, which this thread has; the number of the one that somebody else has, `count`: none. */
static size_t take_others(const held_lock *locks, size_t count, size_t first)
{
    size_t i = 0;
    while (i < count && (i == first || pthread_mutex_trylock(&locks[i].trainer->lock) == 0))
        i++;
    for (size_t k = 0; k < i && i < count; k++)
        if (k != first)
            pthread_mutex_unlock(&locks[k].trainer->lock);
    return i;
}

/* Waits for one at a time, without any other. */
static void take(const held_lock *locks, size_t count)
{
    for (size_t first = count - 1;;) {
        wait_for(locks[first].trainer);
        size_t missing = take_others(locks, count, first);
        if (missing == count)
            break;
        pthread_mutex_unlock(&locks[first].trainer->lock);
        first = missing;
        sched_yield();
    }
    for (size_t i = 0; i < count; i++)
        for (int depth = 1; depth < locks[i].depth; depth++)
            pthread_mutex_lock(&locks[i].trainer->lock);
}

/* A hook may be in the middle of something there. */
static void leave_held(void)
{
    for (size_t i = 0; i < held_count; i++)
        held[i].trainer->away++;
    let_go(held, held_count);
}

static void come_back(void)
{
    for (size_t i = 0; i < held_count; i++)
        held[i].trainer->away--;
}

static void give_way(sgm_trainer *wanted)
{
    held_lock all[MOST_HELD + 1];
    memcpy(all, held, sizeof held);
    all[held_count] = (held_lock){wanted, 1};
    leave_held();
    take(all, held_count + 1);
    come_back();
}

void sgm__lock_giving_way(pthread_mutex_t *mutex)
{
    if (pthread_mutex_trylock(mutex) == 0)
        return;
    leave_held();
    pthread_mutex_lock(mutex);
    if (held_count > 0)
        take(held, held_count);
    come_back();
}

/* --- one lock --- */

void sgm__trainer_was_locked(sgm_trainer *trainer)
{
    held_lock *known = find_held(trainer);
    if (known != NULL)
        known->depth++;
    else if (held_count < MOST_HELD)
        held[held_count++] = (held_lock){trainer, 1};
    atomic_fetch_add_explicit(&trainer->turns, 1, memory_order_relaxed);
    sgm__busy_begin();
}

void sgm__trainer_lock(sgm_trainer *trainer)
{
    trainer = trainer->owner;
    if (pthread_mutex_trylock(&trainer->lock) != 0) {
        if (held_count == 0)
            wait_for(trainer);
        else
            give_way(trainer);
    }
    sgm__trainer_was_locked(trainer);
}

void sgm__trainer_unlock(sgm_trainer *trainer)
{
    trainer = trainer->owner;
    held_lock *known = find_held(trainer);
    sgm__busy_end();
    if (known != NULL && --known->depth == 0)
        *known = held[--held_count];
    pthread_mutex_unlock(&trainer->lock);
}

/* A mutex may be taken again by the thread that has just left it, so each of those who wait goes first, once:
 * threads that never stop asking leave the training its share. */
void sgm__trainer_let_others(sgm_trainer *trainer)
{
    int waiting = atomic_load(&trainer->waiting);
    unsigned before = atomic_load(&trainer->turns);
    if (waiting == 0)
        return;
    sgm__trainer_unlock(trainer);
    while (atomic_load(&trainer->waiting) > 0 && atomic_load(&trainer->turns) - before < (unsigned)waiting)
        sched_yield();
    sgm__trainer_lock(trainer);
}

/* --- who must not wait --- */

sgm_status sgm__trainer_check_thread(const sgm_trainer *trainer)
{
    const sgm__hooks *hooks = sgm__hooks_of_background();
    if (hooks != NULL && hooks->owner != NULL && hooks->owner->owner == trainer)
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

static sgm_status fail_busy(sgm_trainer *trainer, double seconds)
{
    sgm__whereabouts *place = &trainer->whereabouts;
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

/* Between two steps; a thread that waits with patience has no other trainer's lock. */
static sgm_status lock_with_patience(sgm_trainer *trainer)
{
    int error = pthread_mutex_trylock(&trainer->lock);
    sgm_status status = SGM_OK;
    atomic_fetch_add(&trainer->waiting, 1);
    while (error != 0 && (status = sgm__patience_check(trainer)) == SGM_OK) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        error = pthread_mutex_timedlock(&trainer->lock, &until);
    }
    atomic_fetch_sub(&trainer->waiting, 1);
    if (status == SGM_OK)
        sgm__trainer_was_locked(trainer);
    return status;
}

sgm_status sgm__trainer_enter(sgm_trainer *trainer)
{
    trainer = trainer->owner;
    SGM_TRY(sgm__trainer_check_thread(trainer));
    if (patience_of_thread != NULL)
        return lock_with_patience(trainer);
    sgm__trainer_lock(trainer);
    return SGM_OK;
}

sgm_status sgm__trainer_enter_for_hooks(sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_enter(trainer));
    while (trainer->away > 0) {
        if (held_count > 1) {
            sgm__trainer_unlock(trainer);
            return sgm_fail(SGM_ERROR_STATE,
                            "trainer '%s' has a hook that waits for another trainer just now: its hooks "
                            "cannot be saved or loaded out of a hook of that one",
                            trainer->name);
        }
        const held_lock own = held[0];
        let_go(&own, 1);
        sched_yield();
        take(&own, 1);
    }
    return SGM_OK;
}

/* Monitors look at a trainer from their own threads while it is set up: parts change between two looks. */
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
