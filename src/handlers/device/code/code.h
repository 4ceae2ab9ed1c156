/* Writes the kernels of a plan: source text for all of its steps, and the launches of each step. Internal.
 *
 * run/run.c is the caller. The text is compiled by a driver (../driver.h) and launched by run/; nothing here
 * touches a device. Elementwise formulas and loops come from the generator that also writes C
 * (handlers/source/).
 *
 * The text is of one dialect; words that differ between OpenCL C and CUDA C++ are defined by the driver's
 * prelude (prelude_opencl.h, prelude_cuda.h):
 *
 *     KERNEL(group) name(PLACE(a), PLACE(b), ...)   begins a kernel; group: its work-items
 *     PLACE(a)          a parameter: where something lies, a buffer and bytes from its start
 *     POINTER(type, a)  that place as "GLOBAL type *"; type may begin with const
 *     GLOBAL, LOCAL     before a pointer to a buffer, before an array that a group shares
 *     RESTRICT          after the * of a pointer: nothing else points there
 *     FUNCTION          before a function that kernels call; one for float and one for double may share a
 *                       name
 *     GROUP, ITEM       the numbers of this group and of this work-item in it: int
 *     BARRIER           all work-items of a group have come here: "BARRIER;"
 *     VECTOR(type), LOAD_VECTOR(pointer), STORE_VECTOR(vector, pointer)
 *                       16 numbers; only where info->is_processor
 *     int64_t, int32_t, uint32_t, uint64_t, uint16_t, uint8_t; INT64_MIN, INT64_MAX; INFINITY and NAN, of
 *     float
 *     $exp(x), ...      what the languages have, for float and double ($ is sgm_): exp, log, log1p, sqrt,
 *                       sin, cos, tan, asin, acos, atan, tanh, erf, erfc, floor, fma(x, y, z), power(x, y)
 *     $fault(words, node, place, value)
 *                       notes an index out of range in SGM__DEVICE_FAULT, a GLOBAL int32_t *
 *     bfloat16 is uint16_t; sgm_widen(x) and sgm_narrow(x) make it float32 and back, to nearest even
 *
 * All other functions (sigmoid, gelu, random numbers, ...) the text brings along.
 *
 * Double is used only where a plan has it: a device may have none.
 *
 * All sizes and strides are numbers in the text; where values lie are parameters, so that equal layers share
 * kernels. The same plan and device give the same text.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_CODE_H
#define SGM_HANDLERS_DEVICE_CODE_CODE_H

#include "handlers/device/driver.h"
#include "handlers/handler.h"

/* An argument of a launch: where a node of the plan lies, scratch memory that only the launches of one step
 * use, or the fault words. */
typedef struct sgm__device_argument {
    enum { SGM__DEVICE_NODE, SGM__DEVICE_SCRATCH, SGM__DEVICE_FAULT } kind;
    int32_t node;
    int64_t offset; /* bytes from the beginning of the scratch memory, or from the node's first byte */
} sgm__device_argument;

/* A launch: a kernel, its groups and work-items, and its arguments in code->arguments. */
typedef struct sgm__device_call {
    int32_t kernel; /* its number; in the text it is called "sgm_k<number>" */
    uint32_t groups, group;
    int32_t first_argument, argument_count;
} sgm__device_call;

/* How a step is computed. */
typedef enum sgm__device_step_kind {
    SGM__DEVICE_CALLS,   /* by its launches, in order */
    SGM__DEVICE_PRODUCT, /* by the driver's library if that takes the product, else by its launches */
    SGM__DEVICE_HOST,    /* by the reference handler on the host, as there is no kernel */
    SGM__DEVICE_NOTHING  /* there is nothing to compute */
} sgm__device_step_kind;

/* The launches of a step: code->calls[first_call] and the following. */
typedef struct sgm__device_step {
    sgm__device_step_kind kind;
    int32_t first_call, call_count;
} sgm__device_step;

/* The result: text and launches of a whole plan. */
typedef struct sgm__device_code {
    sgm__text source; /* functions, then kernels, without the prelude; empty if no step has kernels */
    int32_t kernel_count;
    /* `kernel_count` + 1 offsets into `source`: where each kernel begins, and the end. */
    size_t *kernel_at;
    sgm__device_step *steps; /* one for each step of the plan */
    sgm__device_call *calls;
    sgm__device_argument *arguments;
    int64_t scratch_bytes; /* the largest scratch memory that a step needs; all steps share it */
} sgm__device_code;

/* The fault words, int32_t[5] in memory of the device, all 0 at first, note an index out of range:
 *     [0] 2^31 - 1 less the index's place among the step's indices (1 for places from 2^31 - 2 on)
 *     [1] the number of the node, plus 1
 *     [2] 1 while a work-item writes [3] and [4]
 *     [3], [4] the lower and the upper half of the index
 * The first step that meets a wrong index keeps the words until they are read and cleared, in whichever run
 * that is; of the wrong indices of that step the first in order stays, as [0] is found by an atomic maximum.
 */
#define SGM__DEVICE_FAULT_WORDS 5

/* Writes the code of a plan for a device. The caller owns *code. */
sgm_status sgm__device_code_create(const sgm__plan *plan, const sgm_device_info *info,
                                   sgm__device_code **code);
void sgm__device_code_free(sgm__device_code *code);
/* Whether there is a kernel for an operation, on operands of every type. */
bool sgm__device_code_has(const sgm_op *op);

#endif
