/* What a trainer has to do again at later iterations, as it was done in the run that it goes on from, or
 * replays. Internal.
 *
 * A list of entries of a journal in the order of the training. src/runs/remade.c fills it and carries it out;
 * here it is only kept. With the trainer's lock. */
#ifndef SGM_JOURNAL_PLANNED_H
#define SGM_JOURNAL_PLANNED_H

#include "journal/history.h"
#include "trainer/view.h"

/* Appends a copy. */
sgm_status sgm__plan_add(sgm_trainer *trainer, const sgm__journal_entry *entry);
/* The entry at `index`, from 0; NULL: there are no more. */
const sgm__journal_entry *sgm__plan_at(const sgm_trainer *trainer, size_t index);
/* The first of the list if it is due at the trainer's position; NULL: there is none. */
const sgm__journal_entry *sgm__plan_due(const sgm_trainer *trainer);
void sgm__plan_remove_first(sgm_trainer *trainer);
/* Moves the first of the list, if it is due, into *entry, which the caller clears (sgm__entry_clear). False:
 * there is none. */
bool sgm__plan_take(sgm_trainer *trainer, sgm__journal_entry *entry);
/* Drops what is planned for this identifier, as it is set anew. */
void sgm__plan_supersede(sgm_trainer *trainer, const char *identifier);
/* Drops all. */
void sgm__plan_forget(sgm_trainer *trainer);

#endif
