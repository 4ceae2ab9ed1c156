/* Values that rules have set for a time ("set optimiser.learning_rate *= 0.1 for 3 epochs"). Internal.
 *
 * The list belongs to the trainer and not to the rule: a value goes back also when the rule's life is over,
 * or when it was detached. With the trainer's lock, but for sgm__temporary_base, which the training's thread
 * calls from a hook. */
#ifndef SGM_JOURNAL_TEMPORARY_H
#define SGM_JOURNAL_TEMPORARY_H

#include "hooks/commands.h"
#include <jansson.h>

/* Sets one value for so many iterations or epochs. A value that is in force by an earlier call keeps the
 * value that it goes back to, and its time begins anew. */
sgm_status sgm__temporary_set(sgm_trainer *trainer, const char *identifier, sgm_content content,
                              sgm__command_period period);
/* What a value goes back to if it is in force by sgm__temporary_set: then *content is replaced, else it
 * stays. The caller clears it in either case. */
sgm_status sgm__temporary_base(sgm_trainer *trainer, const char *identifier, sgm_content *content);
/* At the end of an iteration or an epoch, before its hooks run: sets back all values whose time is over. One
 * that somebody else has set meanwhile stays as it is, and the log says so. */
void sgm__temporary_end(sgm_trainer *trainer, sgm_time_scale scale);
/* Sets all values back now: the position begins anew. */
void sgm__temporary_end_all(sgm_trainer *trainer);
/* Empties the list; values stay as they are. */
void sgm__temporary_forget(sgm_trainer *trainer);

/* The list as JSON for a checkpoint: [[IDENTIFIER, BEFORE, SET, SCALE, LAST, REASON or null], ...]; NULL: it
 * is empty. */
json_t *sgm__temporary_describe(const sgm_trainer *trainer);
/* Whether a list of a checkpoint can be restored; NULL: that one has none. */
bool sgm__temporary_is_readable(const json_t *list);
/* Takes the list; fails only for want of memory. */
sgm_status sgm__temporary_restore(sgm_trainer *trainer, const json_t *list);

#endif
