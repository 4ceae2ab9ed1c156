/* A run that repeats what another run's journal has: checking beforehand that it can, and what is still to be
 * done. Internal.
 *
 * The run's loop (src/loop/run_between.c) takes entry after entry; this file knows which. With the trainer's
 * lock. */
#ifndef SGM_RUNS_REPLAY_H
#define SGM_RUNS_REPLAY_H

#include "journal/history.h"
#include "trainer/view.h"
#include <sigma/replay.h>

typedef struct sgm__replay {
    char *folder;                     /* of the run that is replayed */
    int64_t until;                    /* iterations of `branch`; 0: to the newest checkpoint */
    int64_t branch, epoch, iteration; /* where the newest checkpoint of that run was made */
    bool exact;   /* nothing is left out, and nothing is known that would change the result */
    bool inexact; /* another result is no error */
    bool check;   /* nothing is trained */
    bool over;    /* all is done */
} sgm__replay;

/* Whether a replay can be asked to leave an entry out. Moves cannot be left out, as what follows belongs to
 * the branch that they began, and files cannot, as a move may need them. */
bool sgm__replay_can_leave_out(const sgm__journal_entry *entry);
/* Before the first iteration, when the trainer is prepared: reads the journal, checks, plans. Sets how long
 * the run is to be, as the journal has it. */
sgm_status sgm__replay_begin(sgm_trainer *trainer, const sgm_replay *options);
/* Takes the next entry that is due at the present position out of the plan into *entry, whose texts the
 * caller frees with sgm__entry_clear. False: there is none. */
bool sgm__replay_take(sgm_trainer *trainer, sgm__journal_entry *entry);
/* The same only if it is a change: for those that were made at the end of an epoch, before its checkpoint. */
bool sgm__replay_take_change(sgm_trainer *trainer, sgm__journal_entry *entry);
/* After checkpoint.safetensors was written: compares its checksum with that of the run's own. */
sgm_status sgm__replay_compare(sgm_trainer *trainer, const char *checksum);
/* Whether the training ends here. */
bool sgm__replay_is_over(sgm_trainer *trainer);
/* Behind the last iteration: fails if an exact replay has not come to its end. */
sgm_status sgm__replay_check_end(sgm_trainer *trainer);
/* Before an upload or a restore is done again: puts the checkpoint that it needs into this run's folder. */
sgm_status sgm__replay_provide(sgm_trainer *trainer, const sgm__journal_entry *entry);
/* The folder that names of files in entries belong to: that of the run which is replayed, or the trainer's.
 */
const char *sgm__replay_folder(const sgm_trainer *trainer);
void sgm__replay_end(sgm_trainer *trainer);

#endif
