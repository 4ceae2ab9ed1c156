/* Declares a recursive lock that threads take in turns, and that a thread gives up while it waits for another
 * lock. Internal.
 *
 * Each trainer has one: the thread that trains holds it during a step, and monitors, hooks and observers of
 * other trainers take it to look. A thread that holds such locks and must wait for one more first releases
 * all that it holds, and goes on when it has all of them. So two threads that want each other's lock do not
 * block each other for ever, without any order among the locks. The price: what a thread has read under one
 * lock may be outdated once it has taken another one. */
#ifndef SGM_BASE_TURN_LOCK_H
#define SGM_BASE_TURN_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sgm__turn_lock {
    pthread_mutex_t mutex; /* recursive */
    atomic_int waiting;    /* number of threads that wait for it */
    atomic_uint turns;     /* how often it was taken; wraps round */
    int away; /* threads that have released it while they wait for another lock, and will come back; guarded
                 by mutex */
} sgm__turn_lock;

void sgm__turn_lock_init(sgm__turn_lock *lock);
void sgm__turn_lock_destroy(sgm__turn_lock *lock);
void sgm__turn_lock_take(sgm__turn_lock *lock);
bool sgm__turn_lock_try(sgm__turn_lock *lock); /* without waiting */
/* Waits as long as goes_on(user) returns true, which is called every 20 ms; false: the lock was not taken.
 * For a thread that holds no other lock of this kind, as it releases none meanwhile. */
bool sgm__turn_lock_take_while(sgm__turn_lock *lock, bool (*goes_on)(void *user), void *user);
void sgm__turn_lock_leave(sgm__turn_lock *lock);
/* Lets each thread that waits at this moment have the lock once, then takes it back. The caller must hold it
 * exactly once (not recursively). */
void sgm__turn_lock_let_others(sgm__turn_lock *lock);
bool sgm__turn_lock_is_wanted(sgm__turn_lock *lock);
/* Waits until no thread is away from this lock, that is, until no thread is in the middle of something that
 * it began under the lock and will continue. False if the caller holds another lock of this kind: the thread
 * that is away may be waiting for that one. The caller holds this lock. */
bool sgm__turn_lock_gather(sgm__turn_lock *lock);
/* Waits for an ordinary mutex, and releases all turn locks of this thread meanwhile; afterwards the thread
 * has the mutex and all of its turn locks again. */
void sgm__lock_giving_way(pthread_mutex_t *mutex);

/* Between these two, which do not nest, this thread holds none of its turn locks: for other kinds of waiting.
 * At the end it holds no mutex that a thread with a turn lock may want. */
void sgm__give_way_begin(void);
void sgm__give_way_end(void);

/* A busy thread must not wait for anything that may in turn wait for this thread. A thread is busy while it
 * holds a turn lock, and between sgm__busy_begin and sgm__busy_end, which nest. */
void sgm__busy_begin(void);
void sgm__busy_end(void);
bool sgm__is_busy(void);

#endif
