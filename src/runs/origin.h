/* Where a run begins that goes on from another training, as branches do. Internal.
 *
 * Such a run keeps the state that it begins with as origin.safetensors in its folder. So it can be resumed
 * before it has come to a checkpoint of its own, and be replayed without the run that it came from. */
#ifndef SGM_RUNS_ORIGIN_H
#define SGM_RUNS_ORIGIN_H

#include "journal/history.h"
#include "trainer/view.h"

/* What a branch sets at its beginning, as a JSON object of texts; NULL: no memory. */
json_t *sgm__branch_values(const sgm__branch_request *request);
/* With the trainer's lock: the branch that this trainer is, told in the line of its run's beginning as
 * "branched": {"who", "from": a trainer's name, "checkpoint", "set": {IDENTIFIER: VALUE}}. */
sgm_status sgm__origin_note(sgm_trainer *trainer, const sgm_trainer *from,
                            const sgm__branch_request *request);
/* What was noted as a sentence, "began as a branch of digits, from best.safetensors, with ... = 0.001"; the
 * caller frees it with sgm__free. NULL: no memory. */
char *sgm__origin_told(const json_t *branched);
/* Before the first iteration: whether the training goes on from another one, or from what it did before. */
bool sgm__origin_is_elsewhere(const sgm_trainer *trainer);
/* The trainer's position as it is now, before the first iteration, becomes the run's origin: saves
 * origin.safetensors, and adds to the line of the beginning its name, its checksum and what
 * sgm__origin_note has noted. Does nothing for a training that begins at its beginning. */
sgm_status sgm__origin_keep(sgm_trainer *trainer, json_t *line);
/* Brings a new trainer to where a run began, by the first entry of the run's journal. Fails if the folder
 * has not got that state, with what to do instead. */
sgm_status sgm__origin_load(sgm_trainer *trainer, const char *folder, const sgm__journal_entry *first);

#endif
