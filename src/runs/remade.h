/* What a resumed run makes again of the changes that are newer than its checkpoint. Internal.
 *
 * With the trainer's lock. */
#ifndef SGM_RUNS_REMADE_H
#define SGM_RUNS_REMADE_H

#include "trainer/view.h"

/* After a resume: reads from changes.jsonl what a person or the program changed after the checkpoint, to be
 * made again at the same iterations: values, tensors whose values the folder keeps, and hooks that came or
 * went. Lines of hooks' changes are dropped, as the hooks make them again; a change that cannot be made
 * again is dropped with a warning. */
sgm_status sgm__remade_read(sgm_trainer *trainer);
/* Makes the changes again that are due at the present position. */
void sgm__remade_make(sgm_trainer *trainer);

#endif
