/* How steps of a program run together, and beside each other. Internal.
 *
 * compile.c compiles each step of a plan by itself and then asks three files: fused.c, whether a kernel can
 * run together with the elementwise step that reads its result; summed.c, whether a sum can run together with
 * the elementwise step that makes its terms; flow.c, which steps have to wait for which. Steps that run
 * together give the same bits as one after the other, and each can still run alone, as the debug handler or a
 * part of a program may ask for. Steps are numbers in plan->steps, nodes in plan->nodes. */
#ifndef SGM_HANDLERS_CPU_RUN_PROGRAM_H
#define SGM_HANDLERS_CPU_RUN_PROGRAM_H

#include "handlers/cpu/elementwise/step.h"
#include "handlers/cpu/product/product.h"

/* The kernel that computes `op` with results of `result` and a first operand of `operand`; NULL: there is
 * none. No more of the operands is looked at: that is the kernel's `accepts`. */
const sgm__cpu_kernel *sgm__cpu_find_kernel(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype result,
                                            sgm_dtype operand);

/* --- what kernels make of operands that several calls read (packed.c) --- */

/* `call` is the first with this operand. */
typedef struct sgm__packing {
    const sgm__cpu_kernel *kernel;
    const sgm__cpu_call *call;
    const unsigned char *kept; /* of a constant operand, in the handler's store; else NULL */
    size_t kept_bytes;
    unsigned char *bytes; /* of another operand, made in each run; else NULL */
    int32_t packer;       /* the step that does so; -1: the operand is constant */
} sgm__packing;
typedef struct sgm__packings {
    sgm__packing *all;
    size_t count, capacity;
} sgm__packings;
/* Gives the call what its kernel makes of a constant second operand, if it packs such. `call` must last as
 * long as the packings. */
sgm_status sgm__packings_give(sgm__packings *packings, const sgm__plan *plan, const sgm__cpu_kernel *kernel,
                              sgm__cpu_call *call);
/* The bytes of what was made of constants. */
size_t sgm__packings_kept(const sgm__packings *packings);
/* Operands that are not constant, but read by several products as panels of b: `calls` has the calls of such
 * products, by step, and NULL for other steps. The first product by an operand packs it, in each run, and all
 * of them read its panels. packers[step] becomes the step that packs for this one, or -1. */
sgm_status sgm__packings_share(sgm__packings *packings, const sgm__plan *plan, sgm__cpu_call *const *calls,
                               int32_t count, int32_t *packers);
/* Posts what step `step` has to pack, if anything. */
void sgm__packings_post(const sgm__packings *packings, int32_t step);
void sgm__packings_free(sgm__cpu *cpu, sgm__packings *packings);

/* --- products and other kernels together with the elementwise step that reads them (fused.c) --- */

/* Of a block of a product: it stays in the second cache. */
#define SGM__FUSED_BLOCK_BYTES (1 << 18)

typedef struct sgm__fused sgm__fused;
/* How many of `count` rows, or parts, are a block: about `each`, but so that the number of blocks is a
 * multiple of the threads where that is possible. */
int64_t sgm__fused_share(int64_t count, int64_t each, int32_t threads);
/* Whether the node is a product of two matrices by our own loops or a library behind dense.c that is worth
 * computing in blocks of rows. */
bool sgm__fused_is_product(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__node *node);
/* Shape and strides of such a product, without addresses. */
sgm__product sgm__fused_product(const sgm__plan *plan, const sgm__node *node);
/* The elementwise step with which this step could run; -1: there is none. `call` is the call of the step's
 * kernel. */
int32_t sgm__fused_find(const sgm__plan *plan, int32_t step, const sgm__cpu_kernel *kernel,
                        const sgm__cpu_call *call);
/* `reader` is the elementwise step. *fused is NULL, without an error, if that cannot be done in the parts in
 * which the kernel computes. */
sgm_status sgm__fused_create(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step,
                             const sgm__cpu_kernel *kernel, const sgm__cpu_call *call, int32_t reader,
                             const sgm__elementwise *elementwise, sgm__fused **fused);
void sgm__fused_free(sgm__fused *fused);
/* Bytes of scratch memory for a run with all threads. */
size_t sgm__fused_scratch(const sgm__fused *fused, const sgm__cpu *cpu);
/* Posts both steps; may return before they are done. */
sgm_status sgm__fused_run(const sgm__cpu *cpu, const sgm__plan *plan, sgm__fused *fused,
                          const sgm__memory *memory, unsigned char *scratch);

/* --- sums together with the elementwise step before them (summed.c, reduce.c) --- */

typedef struct sgm__summed sgm__summed;
/* Whether the step is a sum that could run together with the elementwise step just before it. */
bool sgm__summed_is_possible(const sgm__plan *plan, int32_t step);
/* `call` is the sum's. *summed is NULL, without an error, if the shapes do not suit. */
sgm_status sgm__summed_create(const sgm__plan *plan, const sgm__cpu_call *call,
                              const sgm__elementwise *elementwise, sgm__summed **summed);
/* Whether the product in step `step` - 2, of `call`, can be computed block by block with the sum in step
 * `step`, although others read the product, too. True: it was added, and sgm__summed_run can compute it. */
bool sgm__summed_add_product(const sgm__cpu *cpu, const sgm__plan *plan, int32_t step,
                             const sgm__cpu_call *call, sgm__summed *summed);
void sgm__summed_free(sgm__summed *summed);
/* Bytes of scratch memory for a run with all threads. */
size_t sgm__summed_scratch(const sgm__summed *summed, const sgm__cpu *cpu);
/* Posts the elementwise step and the sum, and the added product if `product`; may return before they are
 * done. */
void sgm__summed_run(const sgm__cpu *cpu, const sgm__summed *summed, bool product, const sgm__memory *memory,
                     unsigned char *scratch);

/* --- steps that need not wait for the one before (flow.c) --- */

/* Areas of scratch memory that posted steps take in turn: as many steps may be under way at a time. */
#define SGM__FLOW_AREAS 3

/* What a step of a program may do while others are under way. cpu.c fills in the first four members, flow.c
 * the others. */
typedef struct sgm__flow {
    bool posts;      /* the step may still be under way when the next one begins */
    int32_t partner; /* a step that this one does, too; -1: none */
    int32_t product; /* another step that this one does, too; -1: none */
    int32_t packer;  /* a step that packs an operand of this one; -1: none */
    int32_t needs;   /* the newest earlier step that must be done before this one begins; -1: none */
    int32_t area;    /* the area of scratch memory that the step uses if it posts */
} sgm__flow;
/* Whether a node of the step lies, or has an operand that lies, where `written` does. */
bool sgm__flow_touches(const sgm__plan *plan, int32_t step, const sgm__node *written);
/* Fills in `needs` and `area` of all steps. */
void sgm__flow_plan(const sgm__plan *plan, sgm__flow *steps);

#endif
