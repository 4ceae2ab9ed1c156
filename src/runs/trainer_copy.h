/* Making a trainer of the same parts as another one, which may be running: for branches and searches.
 * Internal. */
#ifndef SGM_RUNS_TRAINER_COPY_H
#define SGM_RUNS_TRAINER_COPY_H

#include "trainer/view.h"

/* Gives `to`, which is new and has had no run, what `from` is made of: network, data (the same datasets),
 * optimiser with its settings as they are at present, initialisers, modifiers, what is frozen, operator,
 * hooks. Waits for the step of `from`. Not copied are parameters and the place in the training (a
 * checkpoint has them), observers of the program, and hooks of the program that cannot be copied, which
 * the log names. */
sgm_status sgm__trainer_copy_setup(sgm_trainer *to, sgm_trainer *from);

#endif
