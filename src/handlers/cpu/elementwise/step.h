/* Elementwise steps, compiled to machine code or to be interpreted. Internal. */
#ifndef SGM_HANDLERS_CPU_ELEMENTWISE_STEP_H
#define SGM_HANDLERS_CPU_ELEMENTWISE_STEP_H

#include "handlers/cpu/cpu.h"

struct sgm__assembler;
typedef struct sgm__elementwise sgm__elementwise;
/* Appends machine code to `assembler`, if that is not NULL and the step allows it. */
sgm_status sgm__elementwise_compile(const sgm__cpu *cpu, const sgm__plan *plan, const sgm__step *step,
                                    struct sgm__assembler *assembler, sgm__elementwise **compiled);
/* Where the assembler's code lies now; without this call the step is interpreted. */
void sgm__elementwise_set_code(sgm__elementwise *compiled, unsigned char *code);
void sgm__elementwise_free(sgm__elementwise *compiled);
size_t sgm__elementwise_scratch(const sgm__elementwise *compiled);
void sgm__elementwise_run(const sgm__cpu *cpu, const sgm__elementwise *compiled, const sgm__memory *memory,
                          unsigned char *scratch);

/* A step of one tile, for which everything is found out when its memory is known. *bound is NULL if this one
 * is not fit for it. */
typedef struct sgm__bound sgm__bound;
sgm_status sgm__bound_create(const sgm__cpu *cpu, const sgm__elementwise *compiled, sgm__bound **bound);
void sgm__bound_free(sgm__bound *bound);
/* Before the first run, and whenever the memory is another. */
void sgm__bound_place(sgm__bound *bound, const sgm__memory *memory);
void sgm__bound_run(const sgm__bound *bound, const sgm__memory *memory);

/* Bytes of buffers that one thread needs. */
size_t sgm__elementwise_buffers(const sgm__elementwise *compiled);
/* It can be done in parts that begin and end at multiples of `unit` elements, and `node`'s elements lie as
 * the results do. */
bool sgm__elementwise_has_parts(const sgm__elementwise *compiled, int32_t node, int64_t unit);
/* Elements first .. last - 1 of such a step, in this thread. Those of `node` begin at `block` with `first`.
 */
void sgm__elementwise_run_part(const sgm__cpu *cpu, const sgm__elementwise *compiled,
                               const sgm__memory *memory, unsigned char *buffers, int64_t first, int64_t last,
                               int32_t node, unsigned char *block);
/* The step computes this value by an instruction. */
bool sgm__elementwise_makes(const sgm__elementwise *compiled, int32_t node);

#endif
