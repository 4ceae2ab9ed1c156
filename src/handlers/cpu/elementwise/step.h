/* Elementwise steps of a plan: compiled to machine code or to a list of vector loops, and run. Internal.
 *
 * An elementwise step is a group of operations on values of one shape that the planner (src/handlers/plan)
 * put together; it is computed in one pass, tile by tile. run/compile.c compiles steps, run/execute.c runs
 * them; run/fused.c and run/summed.c run parts of them between other work. What the functions share among
 * themselves is in elementwise.h. */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_STEP_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_STEP_H

#include "handlers/cpu/cpu.h"

struct sgm__assembler;
typedef struct sgm__elementwise sgm__elementwise;
/* `*compiled` refers to the plan. Appends machine code to `assembler` if that is not NULL and the step allows
 * it. */
sgm_status sgm__elementwise_compile(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__step *step,
                                    struct sgm__assembler *assembler, sgm__elementwise **compiled);
/* `code`: where the assembler's code lies, executable. Without this call the step is interpreted. */
void sgm__elementwise_set_code(sgm__elementwise *compiled, unsigned char *code);
void sgm__elementwise_free(sgm__elementwise *compiled);
/* Bytes of scratch memory for a run with all threads. */
size_t sgm__elementwise_scratch(const sgm__elementwise *compiled);
/* Posts the step's tasks; may return before they are done. */
void sgm__elementwise_run(const sgm__cpu *cpu, const sgm__elementwise *compiled, const sgm__memory *memory,
                          unsigned char *scratch);

/* A step of one tile with all of its addresses, for small networks, where finding them takes as long as the
 * step. It runs in the calling thread and has memory of its own. */
typedef struct sgm__bound sgm__bound;
/* *bound is NULL, without an error, if the step is not suited: several tiles, operations without a loop, or
 * results with gaps. */
sgm_status sgm__bound_create(const sgm__cpu *cpu, const sgm__elementwise *compiled, sgm__bound **bound);
void sgm__bound_free(sgm__bound *bound);
/* Finds the addresses: before the first run, and whenever the memory is another. */
void sgm__bound_place(sgm__bound *bound, const sgm__memory *memory);
void sgm__bound_run(const sgm__bound *bound, const sgm__memory *memory);

/* Bytes of buffers that one thread needs for sgm__elementwise_run_part. */
size_t sgm__elementwise_buffers(const sgm__elementwise *compiled);
/* Whether the step can be done in parts that begin and end at multiples of `unit` elements, with the elements
 * of `node` in the order of the results. */
bool sgm__elementwise_has_parts(const sgm__elementwise *compiled, int32_t node, int64_t unit);
/* Does elements first .. last - 1 of such a step, in this thread, with its `buffers`. The elements of `node`
 * are read or written at `block`, where element `first` is, and not at the node's place. */
void sgm__elementwise_run_part(const sgm__cpu *cpu, const sgm__elementwise *compiled,
                               const sgm__memory *memory, unsigned char *buffers, int64_t first, int64_t last,
                               int32_t node, unsigned char *block);
/* Whether an instruction of the step computes this node. */
bool sgm__elementwise_makes(const sgm__elementwise *compiled, int32_t node);

#endif
