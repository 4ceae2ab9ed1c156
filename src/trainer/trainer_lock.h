/* A trainer's lock: the run's thread holds it during a step, other threads take it between two steps; and how
 * long a thread is willing to wait for it (its patience). Internal. */
#ifndef SGM_TRAINER_TRAINER_LOCK_H
#define SGM_TRAINER_TRAINER_LOCK_H

#include "hooks/hooks.h"
#include "trainer/view.h"
#include <stdatomic.h>

/* Takes the trainer's lock; of a replica, its owner's. A thread that holds locks of other trainers may lose
 * them while it waits: values that it read under them before are out of date then. */
void sgm__trainer_lock(sgm_trainer *trainer);
void sgm__trainer_unlock(sgm_trainer *trainer);
/* Between two iterations: the run's thread lets waiting threads have the lock. */
void sgm__trainer_let_others(sgm_trainer *trainer);
/* Fails with SGM_ERROR_STATE on a thread that runs a background hook of this trainer: it would wait for
 * itself. */
sgm_status sgm__trainer_check_thread(const sgm_trainer *trainer);
/* sgm__trainer_check_thread, then sgm__trainer_lock, waiting no longer than this thread's patience. */
sgm_status sgm__trainer_enter(sgm_trainer *trainer);

/* How long this thread waits for a trainer, which may be in the middle of a long step or hook, or wait for
 * other ranks. Threads that answer requests set one. */
typedef struct sgm__patience {
    double asked, until; /* when the thread began to wait, and until when it waits (sgm__now); 0: for ever */
    const atomic_bool *ending; /* true: the run, or the server, waits for this thread to end; NULL: never */
    bool (*has_left)(const void *asker); /* whether the asker has gone, and needs no answer; NULL: never */
    const void *asker;                   /* the argument of has_left */
} sgm__patience;
/* Sets this thread's patience; NULL: it waits for ever. Returns the patience that it had before. */
const sgm__patience *sgm__patience_set(const sgm__patience *patience);
const sgm__patience *sgm__patience_now(void);
/* Whether the asker for whom this thread computes an answer has gone, and the answer is needed no more. */
bool sgm__patience_has_left(void);
/* SGM_OK while the patience lasts; then SGM_ERROR_INTERRUPTED, whose message says what the trainer is doing,
 * and that nothing was changed. */
sgm_status sgm__patience_check(sgm_trainer *trainer);
/* As sgm__trainer_enter, and also waits until no other thread runs a hook of the trainer, and takes the turns
 * of all of them, so that nobody runs one until they are left: for callers that read or set the hooks'
 * states, and that would otherwise wait for a turn when half of their work is done. SGM_ERROR_STATE where two
 * hooks would wait for each other. */
sgm_status sgm__trainer_enter_with_hooks(sgm_trainer *trainer, sgm__held_hooks *held);
void sgm__trainer_leave_with_hooks(sgm_trainer *trainer, sgm__held_hooks *held);

#endif
