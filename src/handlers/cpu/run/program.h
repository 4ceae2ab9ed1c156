/* How a program's steps run: each alone, or together with its neighbours. Internal. */
#ifndef SGM_HANDLERS_CPU_RUN_PROGRAM_H
#define SGM_HANDLERS_CPU_RUN_PROGRAM_H

#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/product/product.h"

/* NULL: none for this operation and type. */
const sgm__cpu_kernel *sgm__cpu_find_kernel(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype dtype);

/* --- products and other kernels together with the elementwise step that reads them (fused.c) --- */

typedef struct sgm__fused sgm__fused;
/* A matrix product that is worth computing in blocks of rows; and what it is, but for where operands lie. */
bool sgm__fused_is_product(const sgm__plan *plan, const sgm__node *node);
sgm__product sgm__fused_product(const sgm__plan *plan, const sgm__node *node);
/* The elementwise step with which this step could run, whose kernel's call is `call`; -1: none. */
int32_t sgm__fused_find(const sgm__plan *plan, int32_t step, const sgm__cpu_kernel *kernel,
                        const sgm__cpu_call *call);
/* *fused is NULL if the elementwise step is not fit for it. */
sgm_status sgm__fused_create(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step,
                             const sgm__cpu_kernel *kernel, const sgm__cpu_call *call,
                             const sgm__elementwise *elementwise, sgm__fused **fused);
void sgm__fused_free(sgm__fused *fused);
size_t sgm__fused_scratch(const sgm__fused *fused, const sgm__cpu *cpu);
void sgm__fused_run(const sgm__cpu *cpu, const sgm__plan *plan, sgm__fused *fused, const sgm__memory *memory,
                    unsigned char *scratch);

/* --- sums together with the elementwise step before them (summed.c, reduce.c) --- */

typedef struct sgm__summed sgm__summed;
/* This step is a sum, which could run together with the step before it. */
bool sgm__summed_is_possible(const sgm__plan *plan, int32_t step);
/* `call` is the sum's; *summed is NULL if its shapes are not fit for it. */
sgm_status sgm__summed_create(const sgm__plan *plan, const sgm__cpu_call *call,
                              const sgm__elementwise *elementwise, sgm__summed **summed);
/* The product in step `step` - 2 can be computed with it, block by block, if others read that, too: true, and
 * it will be. */
bool sgm__summed_add_product(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step, sgm__summed *summed);
void sgm__summed_free(sgm__summed *summed);
size_t sgm__summed_scratch(const sgm__summed *summed, const sgm__cpu *cpu);
/* `product`: with that. */
void sgm__summed_run(const sgm__cpu *cpu, const sgm__summed *summed, bool product, const sgm__memory *memory,
                     unsigned char *scratch);

/* --- steps that need not wait for the one before (flow.c) --- */

#define SGM__FLOW_AREAS 3 /* of scratch memory: as many steps may be under way */

/* What a step of a program may do while others are under way. */
typedef struct sgm__flow {
    bool posts;      /* may still be under way when the next begins */
    int32_t partner; /* a step that it does, too; -1: none */
    int32_t product; /* and another one; -1: none */
    int32_t needs;   /* the newest step before that has to be done; -1: none has to */
    int32_t area;    /* of scratch memory */
} sgm__flow;
/* Fills in `needs` and `area` of steps in their order, knowing the rest. */
void sgm__flow_plan(const sgm__plan *plan, sgm__flow *steps);

#endif
