/* The search for an input that a network takes for a class, without its hook: for the web monitor's page.
 * Internal. */
#ifndef SGM_HOOKS_READY_TARGET_MAXIMISER_H
#define SGM_HOOKS_READY_TARGET_MAXIMISER_H

#include <sigma/hooks.h>
#include <stdatomic.h>

/* What a search found, whether or not it reached the desired cost. */
typedef struct sgm__target_found {
    sgm_tensor *input; /* the best one, without a first dimension; the caller's */
    double cost;
    bool found; /* its cost is below what was desired */
} sgm__target_found;

/* Searches on the calling thread. `options` are those of the hook. The caller holds the trainer's lock and
 * releases it in `copied(trainer)`, which is called once, also on failure, as soon as the parameters are
 * copied; NULL: the caller keeps the lock throughout. When another thread sets *ending, the search fails
 * at its next step; NULL: nobody does. On success found->input is the caller's. */
sgm_status sgm__target_maximise(sgm_trainer *trainer, int64_t wanted, const sgm_target_options *options,
                                void (*copied)(void *trainer), const atomic_bool *ending,
                                sgm__target_found *found);

#endif
