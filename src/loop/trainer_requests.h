/* What hooks have asked for, done by the training's thread. Internal. */
#ifndef SGM_LOOP_TRAINER_REQUESTS_H
#define SGM_LOOP_TRAINER_REQUESTS_H

#include "hooks/hooks.h"
#include "trainer/view.h"

/* After an event. One that cannot be fulfilled is logged: it must not end hours of training. Fails where the
 * hooks of other ranks ask for something else. */
sgm_status sgm__requests_do(sgm_trainer *trainer);
/* Does one now. `asker`: the trainer, or a replica, whose values it sets. */
void sgm__request_fulfil(sgm_trainer *trainer, sgm_trainer *asker, const sgm__request *request);
/* A stop that checkpoints keep, for a resume. */
sgm_status sgm__trainer_end_for_good(sgm_trainer *trainer, const char *by);

#endif
