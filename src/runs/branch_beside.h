/* Branches that train beside the trainer that they come from, as a rule begins them. Internal. */
#ifndef SGM_RUNS_BRANCH_BESIDE_H
#define SGM_RUNS_BRANCH_BESIDE_H

#include "trainer/view.h"

/* On the training's thread, after the hooks of an event: saves NAME.safetensors (the request's name; its
 * `checkpoint` is not looked at), and begins a branch with it. A branch begins none itself, and in a replay
 * there is the checkpoint alone. */
sgm_status sgm__branch_begin(sgm_trainer *trainer, const sgm__branch_request *request);
/* Whether that can succeed at all: the trainer belongs to an environment, and trains in one process. */
sgm_status sgm__branch_check(const sgm_trainer *trainer);
/* Has the journal of a trainer tell of its branch; with the trainer's lock. */
sgm_status sgm__branch_tell(const sgm_trainer *trainer, const sgm__branch_request *request);

#endif
