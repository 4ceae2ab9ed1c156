/* The lock between steps. Internal. */
#ifndef SGM_TRAINER_TRAINER_LOCK_H
#define SGM_TRAINER_TRAINER_LOCK_H

#include "trainer/view.h"
#include <stdatomic.h>

/* A replica has its owner's lock. What this thread has of other trainers may be let go of until it
 * has all of it: what is read before is old then. */
void sgm__trainer_lock(sgm_trainer *trainer);
void sgm__trainer_unlock(sgm_trainer *trainer);
/* For the run's thread, between two iterations. */
void sgm__trainer_let_others(sgm_trainer *trainer);
/* A background hook of that trainer: SGM_ERROR_STATE. */
sgm_status sgm__trainer_check_thread(const sgm_trainer *trainer);
/* sgm__trainer_lock with that check, and with the thread's patience. */
sgm_status sgm__trainer_enter(sgm_trainer *trainer);

/* How long requests of others wait for a trainer, which may be amid a long step or hook, or wait for ranks.
 */
typedef struct sgm__patience {
    double asked, until;       /* moments of sgm__now; until 0: without end */
    const atomic_bool *ending; /* the run, or the server, waits for this thread to end; NULL: never */
    bool (*has_left)(const void *asker); /* nobody waits for the answer any more; NULL: nobody looks */
    const void *asker;
} sgm__patience;
/* This thread's from here on; NULL: it waits without end. Returns the one before. */
const sgm__patience *sgm__patience_set(const sgm__patience *patience);
const sgm__patience *sgm__patience_now(void);
bool sgm__patience_has_left(void); /* who asks */
/* SGM_OK while it lasts; else SGM_ERROR_INTERRUPTED, which says what the trainer is doing, and that nothing
 * was done. */
sgm_status sgm__patience_check(sgm_trainer *trainer);
/* The same, with no hook of the trainer in the middle of its work (but for the caller's own): for who takes
 * the state of hooks. SGM_ERROR_STATE also where that would be waiting for each other. */
sgm_status sgm__trainer_enter_for_hooks(sgm_trainer *trainer);

#endif
