/* What updates share with the optimiser that records them. Internal. */
#ifndef SGM_OPTIM_UPDATES_H
#define SGM_OPTIM_UPDATES_H

#include "optim/optimiser.h"
#include <sigma/graph.h>

/* --- optimiser.c --- */
/* A number that the update is fed, of rank 0 and of the parameter's type. */
sgm_value sgm__update_fed(sgm_graph *graph, sgm_value parameter, sgm__fed_number number);

/* --- lbfgs.c --- */
/* Records the steps of all parameters together, in place of their gradients; the update then adds a step. */
void sgm__prepare_lbfgs(sgm_update_call *calls, size_t count);
sgm_value sgm__update_lbfgs(const sgm_update_call *call);

/* --- used_rows.c --- */
/* Of shape (rows, 1, ...): whether an element of the row's gradient differs from 0 (NaN does). Record it
 * before the update, so that the update remains one fused step. */
sgm_value sgm__used_rows(sgm_graph *graph, sgm_value gradient);
/* The number of assignments that the graph has now. */
size_t sgm__assignments_so_far(const sgm_graph *graph);
/* Returns `after` in rows that were used and `before` in all others; changes the assignments since
 * `assignments`, which are those of slots, in the same way. */
sgm_value sgm__update_used_rows(sgm_graph *graph, sgm_value used, size_t assignments, sgm_value before,
                                sgm_value after);

#endif
