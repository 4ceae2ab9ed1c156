/* How kernels are written: the source writer (handlers/source/source.h) with parameters, launches and
 * work-items. Internal to this folder.
 *
 * A writer of a step calls sgm__device_begin, writes lines with the functions of source.h, and calls
 * sgm__device_end, which adds a kernel and a launch to the step; a step may have several. In the text,
 * pointers to the memory of nodes are called x0, x1, ... in the order of their first use. What cannot be
 * written sets writer.failed, and the step is left to the host.
 */
#ifndef SGM_HANDLERS_DEVICE_CODE_CODE_INTERNAL_H
#define SGM_HANDLERS_DEVICE_CODE_CODE_INTERNAL_H

#include "handlers/device/code/code.h"
#include "handlers/source/source.h"
#include "ops/ops.h"

/* Parameters of a kernel at most: OpenCL promises 1024 bytes of arguments, and a place takes 16. */
#define SGM__DEVICE_PARAMETERS 60
/* Work-items of a group, unless a writer has a reason for another number. */
#define SGM__DEVICE_GROUP 256

/* A parameter of the kernel that is being written. */
typedef struct sgm__device_parameter {
    sgm__device_argument argument;
    const char *type;        /* of an element in memory */
    const sgm__place *place; /* of a node's memory; otherwise NULL */
    sgm__span span;          /* the bytes of that memory that the kernel may touch */
    bool written;
} sgm__device_parameter;

/* A kernel that is written, to find equal ones. */
typedef struct sgm__device_kernel {
    uint64_t hash;
    size_t begin;          /* where it begins in kernels_text */
    size_t offset, length; /* of its parameters and body there: everything but comment and name */
    uint32_t group;
} sgm__device_kernel;

/* The state of writing one plan's code. */
typedef struct sgm__device_render {
    sgm__source_writer writer; /* the first member: functions of the dialect get a pointer to it */
    const sgm_device_info *info;
    sgm__device_code *code;
    sgm__text kernels_text;
    sgm__device_kernel *kernels;
    size_t kernel_capacity, call_capacity, argument_capacity;
    int32_t call_count, argument_count;
    bool can_fault; /* the plan reads indices, so kernels that write states first look at the fault words */
    /* of the step that is being written: */
    int64_t scratch; /* bytes of scratch memory taken so far */
    /* of the kernel that is being written: */
    sgm__device_parameter parameters[SGM__DEVICE_PARAMETERS];
    int32_t parameter_count;
    int64_t groups;
    uint32_t group;
    /* A work-item computes elements 4 item to 4 item + 3 in a loop over "u", since random numbers are drawn
     * four at a time. */
    bool in_fours;
    const char *about; /* what the step computes, for a comment in the text */
} sgm__device_render;

/* --- code_text.c --- */
/* The dialect of kernels. It counts elements in 64 bits if a value of the plan has so many, else in 32 bits,
 * which are faster. */
const sgm__source_dialect *sgm__device_dialect(const sgm__plan *plan);

void sgm__device_begin(sgm__device_render *r);
/* Ends the kernel and adds its launch. A kernel whose text exists already is not added again. */
sgm_status sgm__device_end(sgm__device_render *r);
/* Lines that make `variable` the number of the work-item, for `count` of them; the kernel must have no other
 * launch size. */
void sgm__device_items(sgm__device_render *r, const char *variable, int64_t count);
/* Lines that make `variable` (NULL: none) the number of the group, for `count` groups of `group`
 * work-items. */
void sgm__device_groups(sgm__device_render *r, const char *variable, int64_t count, uint32_t group);
/* Lines that draw random numbers `number` to `number` + 3 of a node; `number` is an expression and a multiple
 * of 4. */
void sgm__device_draw_four(sgm__device_render *r, int32_t node, const char *number);
/* Lines that take `number`, an expression, apart into indices of the walk's axes; `index` gets an expression
 * for each. */
void sgm__device_unravel(sgm__device_render *r, const char *number, const sgm__source_walk *walk,
                         const char **index);
/* The axes of a shape that the bits in `axes` select, without those of length 1. */
sgm__source_walk sgm__device_walk(const sgm_shape *shape, uint32_t axes);
/* A pointer to elements of `type` at `offset` in the step's scratch memory, as an expression. */
const char *sgm__device_scratch(sgm__device_render *r, int64_t offset, const char *type, bool written);
/* Takes bytes of the step's scratch memory and returns their offset. The contents are arbitrary. */
int64_t sgm__device_take_scratch(sgm__device_render *r, int64_t bytes);
/* The fault words, as an expression. */
const char *sgm__device_fault(sgm__device_render *r);
/* The type of indices in the text: int or int64_t. */
const char *sgm__device_counter(const sgm__device_render *r);

/* --- writers of steps; each begins and ends kernels --- */

static inline const sgm__node *sgm__device_node(const sgm__device_render *r, int32_t number)
{
    return &r->writer.plan->nodes[number];
}

static inline const sgm__node *sgm__device_operand(const sgm__device_render *r, int32_t number, int32_t k)
{
    return sgm__device_node(r, sgm__source_operand(&r->writer, number, k));
}

sgm_status sgm__device_write_elementwise(sgm__device_render *r, int32_t step); /* code_elementwise.c */
sgm_status sgm__device_write_reduction(sgm__device_render *r, int32_t node);   /* code_reduce.c */
sgm_status sgm__device_write_product(sgm__device_render *r, int32_t node);     /* code_product.c */
sgm_status sgm__device_write_pooling(sgm__device_render *r, int32_t node);     /* code_windows.c */
sgm_status sgm__device_write_rows(sgm__device_render *r, int32_t node);        /* code_rows.c */
/* code_move.c */
sgm_status sgm__device_write_shared(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_concatenate(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_pad(sgm__device_render *r, int32_t node);
/* code_index.c */
sgm_status sgm__device_write_gather(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_scatter(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_one_hot(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_argsort(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_accuracy(sgm__device_render *r, int32_t node);
sgm_status sgm__device_write_random(sgm__device_render *r, int32_t node);

/* code_functions.c: appends the functions in `needed`, bits of sgm__source_function, for float, and for
 * double if `wide`. */
void sgm__device_write_functions(uint32_t needed, bool wide, sgm__text *text);

#endif
