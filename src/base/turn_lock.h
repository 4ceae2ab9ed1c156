/* A lock that threads have in turns, and that goes through their waiting for another one. Internal.
 *
 * A thread that has some of these locks and has to wait for one more lets go of what it has until it can have
 * all: two threads that want each other's lock do not wait for ever. So what was read under a lock is old
 * once another one was taken. */
#ifndef SGM_BASE_TURN_LOCK_H
#define SGM_BASE_TURN_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct sgm__turn_lock {
    pthread_mutex_t mutex; /* recursive */
    atomic_int waiting;    /* threads that want it */
    atomic_uint turns;     /* how often it was taken */
    int away;              /* threads that have let go of it while they wait for another one; guarded by it */
} sgm__turn_lock;

void sgm__turn_lock_init(sgm__turn_lock *lock);
void sgm__turn_lock_destroy(sgm__turn_lock *lock);
void sgm__turn_lock_take(sgm__turn_lock *lock);
bool sgm__turn_lock_try(sgm__turn_lock *lock); /* without waiting */
/* Waits while `goes_on` says so, which is asked now and then; false: it was not taken. For a
 * thread that has no other lock of this kind. */
bool sgm__turn_lock_take_while(sgm__turn_lock *lock, bool (*goes_on)(void *user), void *user);
void sgm__turn_lock_leave(sgm__turn_lock *lock);
/* Who waits goes first. */
void sgm__turn_lock_let_others(sgm__turn_lock *lock);
bool sgm__turn_lock_is_wanted(sgm__turn_lock *lock);
/* Waits until no thread is away from it; false where that could be waiting for each other: this thread has
 * another lock. The caller has it once. */
bool sgm__turn_lock_gather(sgm__turn_lock *lock);
/* Waits for another mutex, and lets go of all locks of this kind meanwhile. */
void sgm__lock_giving_way(pthread_mutex_t *mutex);

/* A thread that is busy must not wait for anything that may wait for it: one that has a lock of this kind, or
 * that has said so. */
void sgm__busy_begin(void);
void sgm__busy_end(void);
bool sgm__is_busy(void);

#endif
