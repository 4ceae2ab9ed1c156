/* Plans as kernels: the source of all of a plan's steps, and what is launched for each. Internal.
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

/* A parameter of a launch: where a node of the plan lies, or memory that only the launches of one step use.
 */
typedef struct sgm__device_argument {
    enum { SGM__DEVICE_NODE, SGM__DEVICE_SCRATCH, SGM__DEVICE_FAULT } kind;
    int32_t node;
    int64_t offset; /* in the scratch memory, or behind the node's first byte */
} sgm__device_argument;

typedef struct sgm__device_call {
    int32_t kernel; /* it is called "sgm_k<number>" */
    uint32_t groups, group;
    int32_t first_argument, argument_count;
} sgm__device_call;

typedef enum sgm__device_step_kind {
    SGM__DEVICE_CALLS,   /* kernels */
    SGM__DEVICE_PRODUCT, /* the driver's matrix product, if it takes it, else kernels */
    SGM__DEVICE_HOST,    /* an operation without a kernel: on the host, by the reference handler */
    SGM__DEVICE_NOTHING  /* all is in place already */
} sgm__device_step_kind;

typedef struct sgm__device_step {
    sgm__device_step_kind kind;
    int32_t first_call, call_count;
} sgm__device_step;

typedef struct sgm__device_code {
    sgm__text source; /* without prelude: functions, then kernels; empty: no step has kernels */
    int32_t kernel_count;
    size_t *kernel_at;       /* where each begins in the source, and behind the last: its end */
    sgm__device_step *steps; /* as many as the plan has */
    sgm__device_call *calls;
    sgm__device_argument *arguments;
    int64_t scratch_bytes; /* that the step which needs most wants */
} sgm__device_code;

/* An index out of range is noted in SGM__DEVICE_FAULT, int32_t[5], all 0 before: 2^31 - 1 less its place
 * among the step's indices (1 from 2^31 - 2 on), the node and 1, whether one is being noted, and the value's
 * lower and upper half. The first step that meets one stays, and the first of those that it meets, in all
 * runs until the words are read. */
#define SGM__DEVICE_FAULT_WORDS 5

sgm_status sgm__device_code_create(const sgm__plan *plan, const sgm_device_info *info,
                                   sgm__device_code **code);
void sgm__device_code_free(sgm__device_code *code);
/* Whether there is a kernel for it, with operands of that type. */
bool sgm__device_code_has(const sgm_op *op, sgm_dtype dtype);

#endif
