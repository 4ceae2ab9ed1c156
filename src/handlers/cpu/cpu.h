/* What all parts of the cpu handler know: its threads, and what a kernel is. Internal.
 *
 * A kernel is a row of the table in run/kernels.c: the operation it computes, what it takes, how much scratch
 * memory it needs, and the function that runs it. Operations without one run their own plain loop
 * (sgm_op.forward) in one thread.
 */
#ifndef SGM_HANDLERS_CPU_CPU_H
#define SGM_HANDLERS_CPU_CPU_H

#include "handlers/cpu/pool.h"
#include "handlers/cpu/vector/vector.h"
#include "handlers/handler.h"

struct sgm__dense;
struct sgm__onednn;
typedef struct sgm__cpu {
    sgm__pool *pool;
    const sgm__vector *vector;
    sgm__vector approximate; /* `vector` is this copy, with the option approximate */
    struct sgm__dense *dense;
    struct sgm__onednn *onednn; /* for products of bfloat16; NULL: they go through float32 */
    char bfloat16[200];         /* which way they go, and why */
    pthread_mutex_t busy;       /* one run at a time has the pool */
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

/* --- random numbers (random.c) --- */

extern const sgm__cpu_kernel sgm__cpu_random_uniform;
/* Numbers first .. first + count - 1 of what such a node draws. */
void sgm__cpu_draw(const sgm__vector *vector, const sgm__plan *plan, const sgm__node *node,
                   const sgm__memory *memory, int64_t first, int64_t count, void *to);

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
