/* A search for an input that a network takes for a class. Internal. */
#ifndef SGM_HOOKS_READY_TARGET_MAXIMISER_H
#define SGM_HOOKS_READY_TARGET_MAXIMISER_H

#include <sigma/diagnostics.h>
#include <stdatomic.h>

typedef struct sgm__target_found {
    sgm_tensor *input; /* the best one, without a first dimension; the caller's */
    double cost;
    bool found; /* its cost is below what was desired */
} sgm__target_found;

/* `options` as for the hook. `copied(trainer)` once, when the trainer's parameters are copied and it may go
 * on, also on failure; NULL: nobody wants to know. `ending`: once it is true, the search fails; NULL: it goes
 * on. */
sgm_status sgm__target_maximise(sgm_trainer *trainer, int64_t wanted, const sgm_target_options *options,
                                void (*copied)(void *trainer), const atomic_bool *ending,
                                sgm__target_found *found);

#endif
