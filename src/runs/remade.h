/* What a resumed run, or one that replays another, makes again of what its journal has. Internal.
 *
 * With the trainer's lock. */
#ifndef SGM_RUNS_REMADE_H
#define SGM_RUNS_REMADE_H

#include "journal/history.h"
#include "trainer/view.h"

/* After a resume: reads from the journal what a person or the program changed before the checkpoint, which
 * the record of changes has then (sgm__changes_recall), and after it, to be
 * made again at the same iterations: values, tensors whose values the folder keeps, and hooks that came or
 * went. What hooks changed they change again by themselves; a change that cannot be made again is dropped
 * with a warning. */
sgm_status sgm__remade_read(sgm_trainer *trainer);
/* Makes the changes again that are due at the present position. */
void sgm__remade_make(sgm_trainer *trainer);

/* Makes one change again, in the name of who made it first. */
sgm_status sgm__remade_change(sgm_trainer *trainer, const sgm__journal_entry *entry);
/* "optimiser.learning_rate was set to 0.1", "hook early_stopper#1 was detached"; sgm__free. NULL: out of
 * memory. */
char *sgm__remade_told(const sgm__journal_entry *entry);

#endif
