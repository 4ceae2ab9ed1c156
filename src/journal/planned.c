/* The list of what a trainer has to do again at later iterations: see planned.h. */
#include "journal/planned.h"
#include "base/base.h"
#include "trainer/trainer.h"

/* Removes an entry and keeps the order of the others. */
static void remove_at(sgm__trainer_journal *journal, size_t index)
{
    sgm__planned *old = &journal->planned[index];
    sgm__free(old->identifier);
    sgm__free(old->text);
    sgm__free(old->who);
    journal->planned_count--;
    memmove(old, old + 1, (journal->planned_count - index) * sizeof *old);
}

sgm_status sgm__plan_add(sgm_trainer *trainer, const sgm__planned *planned)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    SGM_TRY(sgm__reserve(&journal->planned, &journal->planned_capacity, journal->planned_count + 1,
                         sizeof *journal->planned));
    sgm__planned *made = &journal->planned[journal->planned_count++];
    *made = *planned;
    made->identifier = sgm__strdup(planned->identifier);
    made->text = sgm__strdup(planned->text);
    made->who = sgm__strdup(planned->who);
    if (made->identifier != NULL && made->text != NULL && made->who != NULL)
        return SGM_OK;
    remove_at(journal, journal->planned_count - 1);
    return SGM_ERROR_MEMORY;
}

/* Epochs are compared, too: between the last iteration of an epoch and the first of the next one come the
 * hooks of the epoch, which see what was changed before them. */
static bool is_before(const sgm__planned *planned, int64_t epoch, int64_t iteration)
{
    return planned->iteration < iteration || (planned->iteration == iteration && planned->epoch < epoch);
}

const sgm__planned *sgm__plan_due(const sgm_trainer *trainer)
{
    const sgm__trainer_journal *journal = sgm__journal_of(trainer);
    const sgm__training_position *position = sgm__position_of(trainer);
    bool due = journal->planned_count > 0 &&
               is_before(&journal->planned[0], position->epoch + 1, position->iteration);
    return due ? &journal->planned[0] : NULL;
}

void sgm__plan_remove_first(sgm_trainer *trainer)
{
    remove_at(sgm__journal_of(trainer), 0);
}

void sgm__plan_supersede(sgm_trainer *trainer, const char *identifier, int64_t epoch, int64_t iteration)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    for (size_t i = journal->planned_count; i-- > 0;)
        if (!is_before(&journal->planned[i], epoch, iteration) &&
            strcmp(journal->planned[i].identifier, identifier) == 0)
            remove_at(journal, i);
}

void sgm__plan_forget(sgm_trainer *trainer)
{
    sgm__trainer_journal *journal = sgm__journal_of(trainer);
    while (journal->planned_count > 0)
        remove_at(journal, journal->planned_count - 1);
    sgm__free(journal->planned);
    journal->planned = NULL;
    journal->planned_capacity = 0;
}
