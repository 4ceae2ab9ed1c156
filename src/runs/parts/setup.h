/* The optimiser and the hooks that a program gave to a trainer, in its checkpoints. Internal.
 *
 * With the trainer's lock. */
#ifndef SGM_RUNS_PARTS_SETUP_H
#define SGM_RUNS_PARTS_SETUP_H

#include "runs/parts/parts.h"

/* Write their keys into the JSON text of a checkpoint. */
sgm_status sgm__setup_describe_optimiser(const sgm_trainer *trainer, json_t *state);
sgm_status sgm__setup_describe_hooks(const sgm_trainer *trainer, json_t *state);

/* Whether loading these parts gives the trainer optimiser and hooks of the checkpoint: it has no optimiser,
 * but data to train on, and the whole checkpoint is wanted. */
bool sgm__setup_is_wanted(const sgm_trainer *trainer, const sgm__saved_state *state,
                          const sgm__parts *wanted);
/* Gives the trainer the optimiser; after a failure that comes later it is given back. */
sgm_status sgm__setup_take_optimiser(sgm_trainer *trainer, const sgm__saved_state *state);
void sgm__setup_give_back_optimiser(sgm_trainer *trainer);

/* Names of the hooks that were attached. */
typedef struct sgm__set_up_hooks {
    char **names;
    size_t count;
} sgm__set_up_hooks;
/* Attaches the hooks of the checkpoint, before their states are set. *made begins with zeros; it goes to
 * sgm__setup_end_hooks with how the loading ended, also after a failure of this function. */
sgm_status sgm__setup_take_hooks(sgm_trainer *trainer, const sgm__saved_state *state,
                                 sgm__set_up_hooks *made);
/* Takes them off again after a failure, whose error stays the thread's. */
void sgm__setup_end_hooks(sgm_trainer *trainer, sgm__set_up_hooks *made, sgm_status status);

#endif
