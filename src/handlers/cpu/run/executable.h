/* A compiled program of the cpu handler: what compile.c makes and execute.c runs. Internal. */
#ifndef SGM_HANDLERS_CPU_RUN_EXECUTABLE_H
#define SGM_HANDLERS_CPU_RUN_EXECUTABLE_H

#include "handlers/cpu/run/cost.h"
#include "handlers/cpu/run/program.h"

/* A step of the plan, ready to run. Members that do not apply to its kind are NULL. */
typedef struct sgm__cpu_step {
    sgm__elementwise *elementwise; /* NULL: the step is one operation, `node` */
    sgm__bound *bound;             /* the same elementwise step with addresses; NULL: more than one tile */
    const sgm__cpu_kernel *kernel; /* NULL: the operation's own loop */
    void *plan;                    /* what the kernel's `plan` filled in; owned */
    int32_t node;
    int32_t first_array; /* in executable->arrays */
    /* Elementwise: how to run it together with the kernel of step `partner`. NULL: each alone. */
    sgm__fused *fused;
    /* A sum: how to run it together with the elementwise step `partner`. NULL: each alone. */
    sgm__summed *summed;
    /* The step that this one can do too, or that can do this one (`leads` tells which); -1: none. */
    int32_t partner;
    /* A sum: another step, a product, that it can do, too; -1: none. */
    int32_t product;
    sgm__cpu_call call;     /* of a kernel or of the operation's own loop */
    unsigned char *scratch; /* the step's area of executable->scratch */
    bool alone;             /* one thread is estimated to be faster */
    int64_t posted;         /* how many loops the pool had after this step, in the newest run */
    bool done;              /* nothing to do: the steps before wrote their results here (a concatenation) */
    int32_t packer;         /* the step that packs the second operand in each run; -1: none does */
} sgm__cpu_step;

/* A compiled program. Only one run at a time uses it, with sgm__cpu.busy held. */
typedef struct sgm__executable {
    const sgm__plan *plan;
    sgm__cpu_step *steps;
    int32_t step_count;
    /* Operands and results of all steps that are one operation; `data` is set by execute.c. */
    sgm_array *arrays;
    /* The addresses that the newest run had: arena, constants, inputs, states. */
    void **memory;
    /* For each step, which earlier step it waits for. NULL: the program runs with one thread, one step after
     * the other. */
    sgm__flow *flow;
    /* Estimates for the whole program: `alone` with one thread, `shared` as the steps are run. */
    sgm__cost cost;
    unsigned char *scratch;
    sgm__packings packings; /* of operands that are constant or read often */
    void *code;             /* machine code of all elementwise steps; NULL: none */
    size_t code_size;
} sgm__executable;

/* Of the steps that run together the last one does the work of all (it leads); the others are skipped. */
static inline bool sgm__cpu_leads(const sgm__cpu_step *step)
{
    return step->fused != NULL || step->summed != NULL;
}

/* Brings the constants into the plan that some step reads otherwise than packed, when all steps are compiled
 * (packed.c). */
void sgm__packings_fill_others(const sgm__executable *e);

/* The functions of sgm__handler_type (src/handlers/handler.h) by these names; `self` is the sgm__cpu,
 * `compiled` an sgm__executable. */
sgm_status sgm__cpu_compile(void *self, const sgm__plan *plan, void **compiled);
void sgm__cpu_discard(void *self, void *compiled);
sgm_status sgm__cpu_run(void *self, void *compiled, const sgm__memory *memory, int32_t first, int32_t count);
sgm_status sgm__cpu_time(void *self, void *compiled, const sgm__memory *memory, sgm__step_time *times);
void sgm__cpu_estimate(void *self, const void *compiled, sgm__estimate *to);

#endif
