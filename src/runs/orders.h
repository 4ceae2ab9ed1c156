/* Orders to a training, which are done between two of its iterations: to go back, to branch; and hooks that
 * come and go while it runs. Internal. */
#ifndef SGM_RUNS_ORDERS_H
#define SGM_RUNS_ORDERS_H

#include "trainer/trainer.h"
#include "trainer/view.h"

/* trainer_order.c. Has an order done: by this thread if the trainer is idle, else by the training's, which
 * this one waits for with its patience (trainer_lock.h), unless it is busy (then a failure is logged). Texts
 * are copied, NULL: none. What nobody waits for any more is not done, but a note is. */
typedef struct sgm__order_texts {
    const char *who, *what, *before, *after; /* of a note about a hook: texts of hooks, NULL: none */
    int64_t undoes;
} sgm__order_texts;
sgm_status sgm__trainer_order(sgm_trainer *trainer, sgm__order_kind kind, sgm__order_texts texts);
/* The next one to do, or NULL; then say how it went. */
sgm__order *sgm__order_take(sgm__control *control);
size_t sgm__orders_count(sgm__control *control);
void sgm__order_done(sgm_trainer *trainer, sgm__order *order, sgm_status status);

/* trainer_branch.c. Does an order; with the trainer's lock. *broken: it failed half-way, and nothing can go
 * on. After SGM_OK *moved says whether the training stands somewhere else now. */
sgm_status sgm__trainer_obey(sgm_trainer *trainer, const sgm__order *order, bool *moved, bool *broken);

/* trainer_attach.c. From any thread. Who does it, and which change it takes back (0: none). */
typedef struct sgm__hook_change {
    const char *who;
    int64_t undoes;
} sgm__hook_change;
sgm_status sgm__trainer_attach(sgm_trainer *trainer, sgm_hook *hook, sgm__hook_change change, char **name);
sgm_status sgm__trainer_detach(sgm_trainer *trainer, const char *name, sgm__hook_change change);
/* Whether its hooks can do what they are told, before it runs: see `check` of hook.h. Prepares the trainer.
 */
sgm_status sgm__trainer_check_hooks(sgm_trainer *trainer);

#endif
