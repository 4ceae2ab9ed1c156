/* Implements the locks of turn_lock.h: recursive mutexes, with a list for each thread of those that it holds.
 *
 * The list `held` is what makes giving way possible: a thread that has to wait unlocks each of its mutexes as
 * often as it has locked it, waits, and locks all again. While a thread waits for a turn lock it holds no
 * other turn lock: "hold and wait", a condition of every deadlock (Coffman et al., 1971), does not occur
 * among them. Users: src/trainer/trainer_lock.c (the trainer's lock), src/hooks/hooks_run.c and
 * src/trainer/hooks_check.c (a hook's mutex). */
#include "base/turn_lock.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* Locks that one thread can hold with giving way; a lock beyond is held too, but not released while the
 * thread waits. */
#define MAXIMUM_HELD 16
#define LOOK_NANOSECONDS 20000000 /* time between two questions to goes_on: 20 ms */

typedef struct held_lock {
    sgm__turn_lock *lock;
    int depth; /* how often this thread has locked it */
} held_lock;

/* The locks of this thread, in any order. */
static _Thread_local held_lock held[MAXIMUM_HELD];
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

void sgm__turn_lock_init(sgm__turn_lock *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock->mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    atomic_init(&lock->waiting, 0);
    atomic_init(&lock->turns, 0);
    lock->away = 0;
}

void sgm__turn_lock_destroy(sgm__turn_lock *lock)
{
    pthread_mutex_destroy(&lock->mutex);
}

static held_lock *find_held(const sgm__turn_lock *lock)
{
    for (size_t i = 0; i < held_count; i++)
        if (held[i].lock == lock)
            return &held[i];
    return NULL;
}

/* `waiting` makes the holder's sgm__turn_lock_let_others give the lock away. */
static void wait_for(sgm__turn_lock *lock)
{
    atomic_fetch_add(&lock->waiting, 1);
    pthread_mutex_lock(&lock->mutex);
    atomic_fetch_sub(&lock->waiting, 1);
}

/* --- several locks --- */

/* Unlocks each lock as often as it is held. The list is not changed, so that take() restores the same depths.
 */
static void let_go(const held_lock *locks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (int depth = 0; depth < locks[i].depth; depth++)
            pthread_mutex_unlock(&locks[i].lock->mutex);
}

/* Tries to take all locks but locks[first], which this thread has already, without waiting. Returns `count`
 * on success; otherwise the index of a lock that another thread holds, with all that were taken here
 * released. */
static size_t take_others(const held_lock *locks, size_t count, size_t first)
{
    size_t i = 0;
    while (i < count && (i == first || pthread_mutex_trylock(&locks[i].lock->mutex) == 0))
        i++;
    for (size_t k = 0; k < i && i < count; k++)
        if (k != first)
            pthread_mutex_unlock(&locks[k].lock->mutex);
    return i;
}

/* Takes all locks, at first once each. The thread waits for one lock while holding none, then tries the
 * others; if another thread holds one of those, it releases everything and waits for that one next (the
 * scheme of C++'s std::lock). It begins with the last of the list, which give_way fills with the lock that is
 * wanted. Locking again up to the old depths needs no waiting. */
static void take(const held_lock *locks, size_t count)
{
    for (size_t first = count - 1;;) {
        wait_for(locks[first].lock);
        size_t missing = take_others(locks, count, first);
        if (missing == count)
            break;
        pthread_mutex_unlock(&locks[first].lock->mutex);
        first = missing;
        sched_yield();
    }
    for (size_t i = 0; i < count; i++)
        for (int depth = 1; depth < locks[i].depth; depth++)
            pthread_mutex_lock(&locks[i].lock->mutex);
}

/* Releases all locks of this thread, each marked as left by a thread that may be in the middle of something:
 * see sgm__turn_lock_gather. `away` changes while the lock is still held. */
static void leave_held(void)
{
    for (size_t i = 0; i < held_count; i++)
        held[i].lock->away++;
    let_go(held, held_count);
}

/* Takes the marks back, when all locks are held again. */
static void come_back(void)
{
    for (size_t i = 0; i < held_count; i++)
        held[i].lock->away--;
}

/* Waits for `wanted` together with all locks held so far. The caller adds `wanted` to the list afterwards. */
static void give_way(sgm__turn_lock *wanted)
{
    held_lock all[MAXIMUM_HELD + 1];
    memcpy(all, held, sizeof held);
    all[held_count] = (held_lock){wanted, 1};
    leave_held();
    take(all, held_count + 1);
    come_back();
}

/* The mutex is kept while the thread waits for its turn locks. That cannot block for ever: a thread that
 * holds one of these and wants the mutex comes here too, and releases its turn locks. */
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

void sgm__give_way_begin(void)
{
    leave_held();
}

void sgm__give_way_end(void)
{
    if (held_count > 0)
        take(held, held_count);
    come_back();
}

/* --- one lock --- */

/* Notes a lock that this thread has just taken: its depth, one more turn, and that the thread is busy. */
static void was_taken(sgm__turn_lock *lock)
{
    held_lock *known = find_held(lock);
    if (known != NULL)
        known->depth++;
    else if (held_count < MAXIMUM_HELD)
        held[held_count++] = (held_lock){lock, 1};
    atomic_fetch_add_explicit(&lock->turns, 1, memory_order_relaxed);
    sgm__busy_begin();
}

bool sgm__turn_lock_try(sgm__turn_lock *lock)
{
    if (pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    was_taken(lock);
    return true;
}

void sgm__turn_lock_take(sgm__turn_lock *lock)
{
    if (sgm__turn_lock_try(lock))
        return;
    if (held_count == 0)
        wait_for(lock);
    else
        give_way(lock);
    was_taken(lock);
}

/* pthread_mutex_timedlock measures by the real-time clock; if somebody sets that clock, a wait becomes
 * shorter or longer once, which only moves the next question. */
bool sgm__turn_lock_take_while(sgm__turn_lock *lock, bool (*goes_on)(void *user), void *user)
{
    bool taken = pthread_mutex_trylock(&lock->mutex) == 0;
    atomic_fetch_add(&lock->waiting, 1);
    while (!taken && goes_on(user)) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += LOOK_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        taken = pthread_mutex_timedlock(&lock->mutex, &until) == 0;
    }
    atomic_fetch_sub(&lock->waiting, 1);
    if (taken)
        was_taken(lock);
    return taken;
}

/* The last entry of the list fills the gap. */
void sgm__turn_lock_leave(sgm__turn_lock *lock)
{
    held_lock *known = find_held(lock);
    sgm__busy_end();
    if (known != NULL && --known->depth == 0)
        *known = held[--held_count];
    pthread_mutex_unlock(&lock->mutex);
}

bool sgm__turn_lock_is_wanted(sgm__turn_lock *lock)
{
    return atomic_load(&lock->waiting) > 0;
}

/* A mutex may be taken again by the thread that has just released it, before a waiting thread wakes up. So
 * this thread spins until as many turns have passed as threads were waiting, or none waits any more. Threads
 * that came later do not count: ones that never stop asking leave this thread its share. */
void sgm__turn_lock_let_others(sgm__turn_lock *lock)
{
    int waiting = atomic_load(&lock->waiting);
    unsigned before = atomic_load(&lock->turns);
    if (waiting == 0)
        return;
    sgm__turn_lock_leave(lock);
    while (sgm__turn_lock_is_wanted(lock) && atomic_load(&lock->turns) - before < (unsigned)waiting)
        sched_yield();
    sgm__turn_lock_take(lock);
}

/* With one lock held, that is held[0]. It is released and taken back until all threads that are away have
 * come back; they need only this lock and others that the caller does not hold. */
bool sgm__turn_lock_gather(sgm__turn_lock *lock)
{
    while (lock->away > 0) {
        if (held_count > 1)
            return false;
        const held_lock own = held[0];
        let_go(&own, 1);
        sched_yield();
        take(&own, 1);
    }
    return true;
}
