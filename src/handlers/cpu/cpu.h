/* The cpu handler: compiled steps and kernels. Internal.
 *
 * A kernel is a row of the table in kernels.c: the operation it computes, what it takes, how much scratch
 * memory it needs, and the function that runs it. Operations without one run their own plain loop
 * (sgm_op.forward) in one thread.
 */
#ifndef SGM_HANDLERS_CPU_CPU_H
#define SGM_HANDLERS_CPU_CPU_H

#include "handlers/cpu/dense.h"
#include "handlers/cpu/onednn.h"
#include "handlers/cpu/pool.h"
#include "handlers/cpu/vector.h"
#include "handlers/handler.h"

typedef struct sgm__cpu {
    sgm__pool *pool;
    const sgm__vector *vector;
    sgm__vector approximate; /* `vector` is this copy, with the option approximate */
    sgm__dense *dense;
    sgm__onednn *onednn;  /* for products of bfloat16; NULL: they go through float32 */
    char bfloat16[200];   /* which way they go, and why */
    pthread_mutex_t busy; /* one run at a time has the pool */
    int32_t threads;
    bool interprets;       /* elementwise steps, though it knows how to make machine code */
    bool told;             /* so by who created it; else the system allows no code */
    bool keeps_subnormals; /* flush.h */
    bool shares_all;       /* for tests: programs are shared also where one thread would be faster */
} sgm__cpu;

typedef struct sgm__cpu_call {
    sgm__cpu *cpu;
    const sgm__node *node;
    sgm_array *inputs; /* without data while compiling */
    int32_t input_count;
    sgm_array output;
    unsigned char *scratch; /* 64-byte aligned */
    const void *plan;       /* what the kernel found out when it was compiled; NULL: nothing, or not yet */
} sgm__cpu_call;

typedef struct sgm__cpu_kernel {
    const sgm_op *op;
    bool (*takes)(sgm_dtype dtype);               /* of the result */
    bool (*accepts)(const sgm__cpu_call *call);   /* NULL: all that has such a type */
    size_t (*scratch)(const sgm__cpu_call *call); /* NULL: none */
    /* All that shapes and strides decide, once for all runs: fills in `plan_size` bytes. NULL: nothing.
     * `call` is the one that all runs get. */
    size_t plan_size;
    void (*plan)(const sgm__cpu_call *call, void *plan);
    void (*discard)(void *plan); /* what `plan` made, but not the bytes; NULL: nothing */
    /* `run` touches memory only in tasks that it posts, or after sgm__pool_ready or sgm__pool_finish, and may
     * return before its tasks are done; `call` lasts until then. */
    bool posts;
    sgm_status (*run)(const sgm__cpu_call *call);
    /* For steps that alone read the result (fused.c), if it can be computed in parts, each a run of elements:
     * how many, and elements of the largest; 0: not for these shapes. NULL: for none. */
    int64_t (*parts)(const sgm__cpu_call *call, int64_t *maximum);
    void (*begin)(const sgm__cpu_call *call); /* posts what comes before all parts; NULL: nothing does */
    /* Elements *first to *last - 1, into `to`. */
    void (*part)(const sgm__cpu_call *call, int64_t index, int32_t thread, void *to, int64_t *first,
                 int64_t *last);
    /* The first operand has the result's shape, and of it a part reads the elements that it computes. */
    bool aligned;
} sgm__cpu_kernel;

/* `dense`: as in the handler's options. */
sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const char *dense);
const char *sgm__cpu_bfloat16(void *self); /* which way its products go */
/* NULL: none for this operation and type. */
const sgm__cpu_kernel *sgm__cpu_find_kernel(const sgm__cpu *cpu, const sgm_op *op, sgm_dtype dtype);

/* A concatenation whose operands were made where they belong: nothing is left to do. */
bool sgm__cpu_is_put_together(const sgm__plan *plan, const sgm__node *node);

extern const sgm__cpu_kernel sgm__cpu_matmul, sgm__cpu_matmul_bfloat16;
extern const sgm__cpu_kernel sgm__cpu_convolution, sgm__cpu_convolution_input_gradient,
    sgm__cpu_convolution_weights_gradient;
extern const sgm__cpu_kernel sgm__cpu_max_pooling, sgm__cpu_max_pooling_gradient, sgm__cpu_average_pooling,
    sgm__cpu_average_pooling_gradient;
extern const sgm__cpu_kernel sgm__cpu_reduce_sum, sgm__cpu_reduce_max, sgm__cpu_reduce_min;
extern const sgm__cpu_kernel sgm__cpu_softmax, sgm__cpu_log_softmax, sgm__cpu_softmax_cross_entropy,
    sgm__cpu_softmax_cross_entropy_gradient;
extern const sgm__cpu_kernel sgm__cpu_self_attention, sgm__cpu_self_attention_gradient;
extern const sgm__cpu_kernel sgm__cpu_layer_norm, sgm__cpu_layer_norm_gradient, sgm__cpu_rms_norm,
    sgm__cpu_rms_norm_gradient;
extern const sgm__cpu_kernel sgm__cpu_concatenate, sgm__cpu_pad, sgm__cpu_gather, sgm__cpu_scatter_add;
extern const sgm__cpu_kernel sgm__cpu_arg_max, sgm__cpu_arg_min, sgm__cpu_accuracy;
extern const sgm__cpu_kernel sgm__cpu_random_uniform;

/* --- random numbers (random.c) --- */

/* Numbers first .. first + count - 1 of what such a node draws. */
void sgm__cpu_draw(const sgm__vector *vector, const sgm__plan *plan, const sgm__node *node,
                   const sgm__memory *memory, int64_t first, int64_t count, void *to);

/* --- elementwise steps (elementwise_compile.c, elementwise_run.c) --- */

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

/* The step computes this value by an instruction. */
bool sgm__elementwise_makes(const sgm__elementwise *compiled, int32_t node);

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

/* A sum whose terms come part by part, each a run of elements: how many parts, elements of the largest, and
 * of what they are multiples; 0: not this one. */
int64_t sgm__cpu_sum_parts(const sgm__cpu_call *call, int64_t *maximum, int64_t *unit);
void sgm__cpu_sum_range(const sgm__cpu_call *call, int64_t part, int64_t *first, int64_t *last);
/* Adds up the terms of a part, into `partial` or, where none is needed, into the result. */
void sgm__cpu_sum_part(const sgm__cpu_call *call, int64_t part, const void *terms, double *partial,
                       void *result);
void sgm__cpu_sum_end(const sgm__cpu_call *call, int64_t parts, const double *partial, void *result);

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

/* --- arrays (array.c) --- */

/* Some bytes between the first and the last of both are the same. */
bool sgm__cpu_overlap(const sgm__node *a, const sgm__node *b);
/* Joins neighbouring dimensions that all `count` lists of strides walk through in one go, and drops those of
 * 1. At least one dimension stays. */
void sgm__cpu_collapse(int32_t *rank, int64_t *dims, int64_t **strides, int32_t count);
/* Elements from the first to this one in row-major order. */
int64_t sgm__cpu_offset(int64_t number, int32_t rank, const int64_t *dims, const int64_t *strides);
/* Strides count elements of `size` bytes. */
void sgm__cpu_copy_row(unsigned char *to, int64_t to_stride, const unsigned char *from, int64_t from_stride,
                       int64_t n, size_t size);
/* Copies a strided array to another of equal shape and type, by all threads. */
void sgm__cpu_copy(const sgm__cpu *cpu, const sgm_array *from, const sgm_array *to);

/* Work (in elements times some operations) that is worth more than one thread. */
#define SGM__CPU_PARALLEL_WORK 16384

#endif
