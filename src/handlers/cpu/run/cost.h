/* What steps take, estimated. Internal. */
#ifndef SGM_HANDLERS_CPU_RUN_COST_H
#define SGM_HANDLERS_CPU_RUN_COST_H

#include "handlers/cpu/cpu.h"

/* Nanoseconds: of the work alone; with one thread, which fetches what others have written; with all. */
typedef struct sgm__cost {
    double time, alone, shared;
} sgm__cost;

/* `partner`, `product`: the steps that it does, too; -1: none. `spread`: nodes that all threads write. */
sgm__cost sgm__cost_of(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step, int32_t partner,
                       int32_t product, const bool *spread);
/* The estimate is good enough to choose by. */
bool sgm__cost_is_known(const sgm__plan *plan, int32_t step);

#endif
