/* The struct of a trainer, for src/trainer, src/train and src/loop, which make it, prepare it and run it. All
 * other folders take a group of it by the functions of trainer.h. Internal.
 *
 * Members are read and written with the trainer's lock (trainer_lock.h) or on the run's thread, except for
 * those with guards of their own: status, control, the results' list of hooks' values, and the hooks. */
#ifndef SGM_TRAINER_TRAINER_STRUCT_H
#define SGM_TRAINER_TRAINER_STRUCT_H

#include "trainer/trainer.h"

struct sgm_trainer {
    char *name;
    sgm__trainer_settings settings;
    sgm__membership membership;
    _Atomic(sgm_status)
        status; /* first failure; any thread may look: `message` is written before the status */
    char message[1024];

    sgm__learner learner;
    sgm__trainer_data data;
    sgm__trainer_patterns patterns;
    sgm__trainer_webhooks webhooks;
    sgm__trainer_observers observers;
    sgm__hooks *hooks;

    sgm__sharing sharing;
    struct sgm__layer_times *times; /* NULL: times of layers have never been wanted */

    sgm__training_position position;
    sgm__trainer_progress progress;
    sgm__trainer_results results;

    sgm_registry *registry;
    sgm__trainer_kept kept;
    sgm__trainer_journal journal;
    sgm__control control;
};

#endif
