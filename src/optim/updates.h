/* What methods of optimisation share: parts of an update, and the updates of large_updates.c. Internal. */
#ifndef SGM_OPTIM_UPDATES_H
#define SGM_OPTIM_UPDATES_H

#include "optim/optimiser.h"
#include <sigma/graph.h>

sgm_value sgm__update_number(const sgm_update_call *call, double value);
sgm_value sgm__update_times(const sgm_update_call *call, sgm_value a, sgm_value b);
/* decay * slot + share * value, which is assigned to the slot. */
sgm_value sgm__update_blend(const sgm_update_call *call, const char *slot, double decay, double share,
                            sgm_value value);
/* A number that the update is fed, of rank 0 and of the parameter's type. */
sgm_value sgm__update_fed(sgm_graph *graph, sgm_value parameter, sgm__fed_number number);
/* Those of adam: 1 - beta1^t and 1 - beta2^t */
typedef struct sgm__bias_corrections {
    sgm_value mean, squares;
} sgm__bias_corrections;
sgm__bias_corrections sgm__update_corrections(const sgm_update_call *call);
/* p (1 - r d): the parameter after the weight decay */
sgm_value sgm__update_decayed(const sgm_update_call *call);
/* Adam on p (1 - r d) (Loshchilov and Hutter, 2017) */
sgm_value sgm__update_adamw(const sgm_update_call *call);

/* --- large_updates.c --- */
sgm_value sgm__update_lion(const sgm_update_call *call);
sgm_value sgm__update_lamb(const sgm_update_call *call);
sgm_value sgm__update_adafactor(const sgm_update_call *call);
sgm_value sgm__update_muon(const sgm_update_call *call);

/* --- lbfgs.c: steps of all parameters in place of their gradients, and adding them --- */
void sgm__prepare_lbfgs(sgm_update_call *calls, size_t count);
sgm_value sgm__update_lbfgs(const sgm_update_call *call);

/* --- used_rows.c --- */
/* (rows, 1, ...): whether an element of the row's gradient is not 0; a NaN is not. Record it before the
 * update: then that stays one step. */
sgm_value sgm__used_rows(sgm_graph *graph, sgm_value gradient);
size_t sgm__assignments_so_far(const sgm_graph *graph);
/* `after` in rows that were used, `before` in the others; the same for the slots that were assigned since
 * there were so many assignments. */
sgm_value sgm__update_used_rows(sgm_graph *graph, sgm_value used, size_t assignments, sgm_value before,
                                sgm_value after);

#endif
