/* Estimates how long a step takes with one thread and with all, to choose between the two. Internal. */
#ifndef SGM_HANDLERS_CPU_RUN_COST_H
#define SGM_HANDLERS_CPU_RUN_COST_H

#include "handlers/cpu/cpu.h"

/* Nanoseconds: `time` of the work alone; `alone` with one thread, which also fetches what other threads have
 * written; `shared` with all threads. */
typedef struct sgm__cost {
    double time, alone, shared;
} sgm__cost;

/* `partner` and `product` are steps that `step` also does; -1: none. `spread`: for each node of the plan,
 * whether all threads write it. */
sgm__cost sgm__cost_of(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step, int32_t partner,
                       int32_t product, const bool *spread);
/* Whether the estimate for the step is good enough to choose by. */
bool sgm__cost_is_known(const sgm__plan *plan, int32_t step);

#endif
