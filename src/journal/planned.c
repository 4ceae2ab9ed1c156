/* The list of what a trainer has to do again at later iterations: see planned.h. */
#include "journal/planned.h"
#include "trainer/trainer.h"

sgm_status sgm__plan_add(sgm_trainer *trainer, const sgm__journal_entry *entry)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->planned == NULL)
        journal->planned = sgm__calloc(1, sizeof *journal->planned);
    return journal->planned != NULL ? sgm__entries_add(journal->planned, entry) : SGM_ERROR_MEMORY;
}

const sgm__journal_entry *sgm__plan_at(const sgm_trainer *trainer, size_t index)
{
    const sgm__journal_entries *planned = sgm__journal_of(trainer)->planned;
    return planned != NULL && index < planned->count ? &planned->items[index] : NULL;
}

/* Epochs are compared, too: between the last iteration of an epoch and the first of the next one come the
 * hooks of the epoch, which see what was changed before them. */
const sgm__journal_entry *sgm__plan_due(const sgm_trainer *trainer)
{
    const sgm__training_position *position = sgm__position_of(trainer);
    const sgm__journal_entry *first = sgm__plan_at(trainer, 0);
    bool due = first != NULL && first->branch == sgm__journal_of(trainer)->branch &&
               (first->iteration < position->iteration ||
                (first->iteration == position->iteration && first->epoch <= position->epoch));
    return due ? first : NULL;
}

void sgm__plan_remove_first(sgm_trainer *trainer)
{
    sgm__entries_remove(sgm__journal_of(trainer)->planned, 0);
}

bool sgm__plan_take(sgm_trainer *trainer, sgm__journal_entry *entry)
{
    sgm__journal_entries *planned = sgm__journal_of(trainer)->planned;
    if (sgm__plan_due(trainer) == NULL)
        return false;
    *entry = planned->items[0];
    planned->items[0] = (sgm__journal_entry){0};
    sgm__entries_remove(planned, 0);
    return true;
}

void sgm__plan_supersede(sgm_trainer *trainer, const char *identifier)
{
    sgm__journal_entries *planned = sgm__journal_of(trainer)->planned;
    for (size_t i = planned != NULL ? planned->count : 0; i-- > 0;)
        if (strcmp(planned->items[i].identifier, identifier) == 0)
            sgm__entries_remove(planned, i);
}

void sgm__plan_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    if (journal->planned != NULL)
        sgm__entries_clear(journal->planned);
    sgm__free(journal->planned);
    journal->planned = NULL;
}
