/* How kernels are written: the source writer with parameters, launches and work-items. Internal to the
 * renderer (code*.c).
 *
 * A kernel is begun, its lines are written with the functions of source.h, and it is ended, which adds a
 * launch to the step. Pointers to what nodes lie in are called x0, x1, ... in the order of first use. */
#ifndef SGM_HANDLERS_DEVICE_CODE_CODE_INTERNAL_H
#define SGM_HANDLERS_DEVICE_CODE_CODE_INTERNAL_H

#include "handlers/device/code/code.h"
#include "handlers/source/source.h"
#include "ops/ops.h"

#define SGM__DEVICE_PARAMETERS 60 /* of a kernel: what the smallest of devices take */
#define SGM__DEVICE_GROUP 256     /* work-items, where nothing else says how many */

typedef struct sgm__device_parameter {
    sgm__device_argument argument;
    const char *type;        /* in memory */
    const sgm__place *place; /* of a node; else NULL */
    int64_t low, high;       /* bytes of that place's memory */
    bool written;
} sgm__device_parameter;

typedef struct sgm__device_kernel {
    uint64_t hash;
    size_t begin;          /* in kernels_text */
    size_t offset, length; /* of its parameters and its body, there */
    uint32_t group;
} sgm__device_kernel;

typedef struct sgm__device_render {
    sgm__source_writer writer; /* first: the dialect's functions get that */
    const sgm_device_info *info;
    sgm__device_code *code;
    sgm__text kernels_text;
    sgm__device_kernel *kernels;
    size_t kernel_capacity, call_capacity, argument_capacity;
    int32_t call_count, argument_count;
    bool can_fault; /* the plan reads indices: states are written only while none was out of range */
    /* of the step */
    int64_t scratch; /* bytes so far */
    /* of the kernel */
    sgm__device_parameter parameters[SGM__DEVICE_PARAMETERS];
    int32_t parameter_count;
    int64_t groups;
    uint32_t group;
    bool in_fours;     /* a work-item has elements n to n + 3, "u" is which: random numbers come so */
    const char *about; /* for a comment */
} sgm__device_render;

/* --- code_text.c --- */
/* With indices of 64 bits where a plan has so many elements: they are slower. */
const sgm__source_dialect *sgm__device_dialect(const sgm__plan *plan);

void sgm__device_begin(sgm__device_render *r);
/* Adds the kernel, unless there is one with that text, and its launch. */
sgm_status sgm__device_end(sgm__device_render *r);
/* A work-item for each of `count` things: `variable` is its number. */
void sgm__device_items(sgm__device_render *r, const char *variable, int64_t count);
/* A group of `group` work-items for each of `count` things. */
void sgm__device_groups(sgm__device_render *r, const char *variable, int64_t count, uint32_t group);
/* Lines that draw random numbers `number` to `number` + 3 of a node: a multiple of 4. */
void sgm__device_draw_four(sgm__device_render *r, int32_t node, const char *number);
/* Lines that take `number` apart: a variable for each axis of the walk that is not 1. */
void sgm__device_unravel(sgm__device_render *r, const char *number, const sgm__source_walk *walk,
                         const char **index);
/* All axes of a shape but those of 1. */
sgm__source_walk sgm__device_walk(const sgm_shape *shape, uint32_t axes);
/* A pointer to `offset` bytes into the step's scratch memory. */
const char *sgm__device_scratch(sgm__device_render *r, int64_t offset, const char *type, bool written);
/* Room in the step's scratch memory. */
int64_t sgm__device_take_scratch(sgm__device_render *r, int64_t bytes);
const char *sgm__device_fault(sgm__device_render *r);
/* "c": the type of indices. */
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

/* code_functions.c: those of `needed` (bits of sgm__source_function), for float, and for double if `wide`. */
void sgm__device_write_functions(uint32_t needed, bool wide, sgm__text *text);

#endif
