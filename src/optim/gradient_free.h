/* Methods that need no gradients: what a trainer (src/train/trainer_search.c) and tests see of them.
 * Internal. */
#ifndef SGM_OPTIM_GRADIENT_FREE_H
#define SGM_OPTIM_GRADIENT_FREE_H

#include "optim/optimiser.h"

/* --- random_search.c, cma_es.c --- */
extern const sgm_gradient_free_method sgm__random_search, sgm__cma_es;

/* Candidates of a generation: what the options say, or 4 + 3 ln(count). */
int64_t sgm__gradient_free_candidates(const sgm_optimiser_options *options, size_t count);
/* One number, normally distributed, of candidate `candidate` in the generation that `seed` is of. */
void sgm__gradient_free_draw(uint64_t seed, int64_t candidate, double *normal, size_t count);

#endif
