/* What a trainer has to do again at later iterations, as the run that it goes on from has done it. Internal.
 *
 * A list in the order of the training. src/runs/remade.c fills it from a run's folder and carries it out;
 * here it is only kept. With the trainer's lock. */
#ifndef SGM_JOURNAL_PLANNED_H
#define SGM_JOURNAL_PLANNED_H

#include "trainer/view.h"

typedef enum sgm__planned_kind {
    SGM__PLANNED_VALUE,  /* `identifier` is set to the value that `text` means */
    SGM__PLANNED_TENSOR, /* `identifier` is set to the tensor in the .npy file `text` */
    SGM__PLANNED_ATTACH, /* the hook that `text` describes is attached */
    SGM__PLANNED_DETACH  /* the hook with this text is detached */
} sgm__planned_kind;

typedef struct sgm__planned {
    sgm__planned_kind kind;
    char *identifier, *text, *who; /* `who`: see sgm__noted_change */
    int64_t epoch, iteration;      /* so many were done when it was done first */
} sgm__planned;

/* Appends a copy. */
sgm_status sgm__plan_add(sgm_trainer *trainer, const sgm__planned *planned);
/* The first of the list if it is due at the trainer's position; NULL: there is none. */
const sgm__planned *sgm__plan_due(const sgm_trainer *trainer);
void sgm__plan_remove_first(sgm_trainer *trainer);
/* Drops what is planned for this identifier at this epoch and iteration or later, as it is set anew. */
void sgm__plan_supersede(sgm_trainer *trainer, const char *identifier, int64_t epoch, int64_t iteration);
/* Drops all. */
void sgm__plan_forget(sgm_trainer *trainer);

#endif
