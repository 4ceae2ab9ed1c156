/* What all parts of the cpu handler share: the handler's own state, the kernel interface, and helpers for
 * strided arrays. Internal.
 *
 * A kernel (sgm__cpu_kernel) is a row of the table in run/kernels.c: the operation that the kernel computes,
 * the result types that it takes, the scratch memory that it needs, and the function that runs it.
 * run/compile.c compiles a plan into steps and finds the kernel of each, run/execute.c calls it. Operations
 * without a kernel run their own plain loop (sgm_op.forward) in one thread; elementwise steps do not come
 * through here but through elementwise/step.h. Threads are those of pool.h. */
#ifndef SGM_HANDLERS_CPU_CPU_H
#define SGM_HANDLERS_CPU_CPU_H

#include "handlers/cpu/pool.h"
#include "handlers/cpu/vector/vector.h"
#include "handlers/handler.h"

struct sgm__dense;
struct sgm__onednn;
/* How products of bfloat16 are computed: as products of float32 between two casts, by our own loops, or by
 * oneDNN. */
typedef enum sgm__bfloat16_products {
    SGM__BFLOAT16_WIDENED,
    SGM__BFLOAT16_OWN,
    SGM__BFLOAT16_ONEDNN,
} sgm__bfloat16_products;

typedef struct sgm__packed_store sgm__packed_store;

/* State of one open handler, shared by all of its executables. Everything but `pool`, `busy` and what is in
 * the store is constant after open_cpu (run/cpu.c), so that compiling needs no lock. */
typedef struct sgm__cpu {
    sgm__pool *pool;
    const sgm__vector *vector;   /* `table` */
    sgm__vector table;           /* a copy of that of the instruction set, as options and processor have it */
    const sgm__int8_tiles *int8; /* of products of integers of 8 bits (product/quantized.c) */
    struct sgm__dense *dense;
    sgm__bfloat16_products products; /* chosen by bfloat16.c */
    struct sgm__onednn *onednn;      /* computes products of bfloat16; NULL: it does not */
    /* One line for users: which way products of bfloat16 take, and why. */
    char bfloat16[200];
    /* Products by constants of bfloat16 are by our own tiles, though the others go through float32: reading
     * weights takes more time than widening them again for each product, where there are few rows. */
    bool reads_halves;
    double bfloat16_speed;         /* times as fast as float32, measured; 0: it was not */
    const char *bfloat16_measured; /* the instructions that this is for; a literal */
    sgm__packed_store *store;      /* of weights that are constant (run/packed_store.h) */
    pthread_mutex_t busy;          /* held during a run: the pool takes loops from one thread at a time */
    int32_t threads;
    /* Elementwise steps are interpreted although machine code could be made of them: the option asked for
     * that (`told`), or the system allows no code. */
    bool interprets;
    bool told;
    /* Results that are too small for full precision are kept; else they become zero during a run (flush.h).
     */
    bool keeps_subnormals;
    bool exact; /* convolutions are computed as they are defined (sgm_handler_options) */
    /* For tests: programs are shared among threads also where cost.c estimates that one thread is faster. */
    bool shares_all;
} sgm__cpu;

/* One operation with its operands, as kernels see it. A call is made when a program is compiled and used by
 * all its runs; `data` of operands and result is NULL while compiling and is set by run/execute.c before the
 * first run. */
typedef struct sgm__cpu_call {
    sgm__cpu *cpu;
    const sgm__node *node;
    /* Owned by the executable. */
    sgm_array *inputs;
    int32_t input_count;
    sgm_array output;
    /* As many bytes as the kernel's `scratch` asked for, 64-byte aligned; their contents do not survive the
     * step. */
    unsigned char *scratch;
    /* Between which the kernel keeps its results, if it has `limits`. */
    sgm__limits limits;
    /* What the kernel's `plan` filled in; NULL: the kernel has none, or the call is still being compiled. */
    const void *plan;
    /* The second operand (weights) is constant, and the kernel has `pack`. */
    bool packs;
    /* What `pack` made of it; NULL: nothing, or the call is still being compiled. */
    const unsigned char *packed;
} sgm__cpu_call;

#define SGM__CPU_FLOAT32 ((uint32_t)1 << SGM_FLOAT32)
#define SGM__CPU_FLOATS (SGM__CPU_FLOAT32 | (uint32_t)1 << SGM_FLOAT64)
#define SGM__CPU_ALL_TYPES (~(uint32_t)0)

/* How an operation is computed. All functions are told everything by the call; kernels keep nothing between
 * runs but what their `plan` filled in. */
typedef struct sgm__cpu_kernel {
    const sgm_op *op;
    /* The types of results that the kernel makes, a bit for each: SGM__CPU_FLOATS, say. */
    uint32_t types;
    /* `types` are those of the first operand, since the result has a type of its own (a count, a position).
     */
    bool by_operand;
    /* Whether shapes, strides and operands' types are such that the kernel can run; NULL: always. */
    bool (*accepts)(const sgm__cpu_call *call);
    /* Bytes of scratch memory; NULL: none. */
    size_t (*scratch)(const sgm__cpu_call *call);
    /* `plan` fills in `plan_size` zeroed bytes with all that shapes and strides decide, once for all runs.
     * NULL: nothing. `call` is the one that each run gets, so the plan may keep a pointer to it. */
    size_t plan_size;
    sgm_status (*plan)(const sgm__cpu_call *call, void *plan);
    /* Frees what `plan` allocated, also if that failed, but not the `plan_size` bytes themselves; NULL:
     * nothing was allocated. */
    void (*discard)(void *plan);
    /* For calls whose second operand is constant: bytes of what the kernel makes of it, once instead of in
     * each run, and the function that does so when a program is compiled. Calls of equal attributes, types
     * and second operand share it. NULL: nothing; 0 bytes: nothing for this call. */
    size_t (*packed_bytes)(const sgm__cpu_call *call);
    sgm_status (*pack)(const sgm__cpu_call *call, unsigned char *to);
    /* `run` reads nothing of an operand that was packed but what `pack` made of it. */
    bool reads_packed_only;
    /* Promises that `run` touches memory only in tasks that it posts, or after sgm__pool_ready or
     * sgm__pool_finish; `run` may then return before its tasks are done, and a step behind it may begin
     * (flow.c). `call` lasts until the tasks are done. */
    bool posts;
    sgm_status (*run)(const sgm__cpu_call *call);
    /* For results that only one elementwise step reads (fused.c): how many parts the result can be computed
     * in, each a run of consecutive elements, and in *maximum the elements of the largest. 0: not with these
     * shapes. NULL: the kernel never does. */
    int64_t (*parts)(const sgm__cpu_call *call, int64_t *maximum);
    /* Posts the loops that all parts need before them; NULL: there are none. */
    void (*begin)(const sgm__cpu_call *call);
    /* Computes part `index`, elements *first to *last - 1 of the result, which go to `to` on; runs within a
     * task of thread `thread`. */
    void (*part)(const sgm__cpu_call *call, int64_t index, int32_t thread, void *to, int64_t *first,
                 int64_t *last);
    /* The first operand has the result's shape, and a part reads of it only the elements at the places that
     * the part computes: so the elementwise step that follows may overwrite that operand. */
    bool aligned;
    /* `run` keeps results between call->limits: so an elementwise step that does no more runs with it. */
    bool limits;
} sgm__cpu_kernel;

/* --- random numbers (random.c) --- */

extern const sgm__cpu_kernel sgm__cpu_random_uniform;
/* Numbers `first` to `first + count - 1` of the ones that a random_uniform node draws, without the rest of
 * its array: for elementwise steps that draw numbers tile by tile. */
void sgm__cpu_draw(const sgm__vector *vector, const sgm__plan *plan, const sgm__node *node,
                   const sgm__memory *memory, int64_t first, int64_t count, void *to);

/* --- arrays (array.c) --- */

/* Whether the byte ranges of two values, from each one's first byte to its last, have a byte in common. Two
 * interleaved strided values count as overlapping: the answer errs on the safe side. */
bool sgm__cpu_overlap(const sgm__node *a, const sgm__node *b);
/* Joins neighbouring dimensions that every one of the `count` lists of strides walks through in one go, and
 * drops dimensions of size 1, in place. At least one dimension stays, so that loops always have a last
 * dimension. */
void sgm__cpu_collapse(int32_t *rank, int64_t *dims, int64_t **strides, int32_t count);
/* The distance, in elements, between the first element and element `number` in row-major order. */
int64_t sgm__cpu_offset(int64_t number, int32_t rank, const int64_t *dims, const int64_t *strides);
/* Reads one index, of int64 or int32, that names the first of `count` neighbouring entries of an axis; an
 * error if that has no such entries. */
sgm_status sgm__cpu_index(const sgm_array *array, int64_t count, int64_t axis, int64_t entries,
                          int64_t *index);
/* Copies `n` elements of `size` bytes. Strides count elements; `from_stride` 0 repeats one element. */
void sgm__cpu_copy_row(unsigned char *to, int64_t to_stride, const unsigned char *from, int64_t from_stride,
                       int64_t n, size_t size);
/* Copies a strided array to another one of equal shape and type, shared among all threads; done on return. */
void sgm__cpu_copy(const sgm__cpu *cpu, const sgm_array *from, const sgm_array *to);

/* Elements times operations from which on a loop is cut into several tasks. Less than that takes one thread
 * only some microseconds, and a meeting of threads costs one to two (performance.md, Threads). */
#define SGM__CPU_PARALLEL_WORK 16384

#endif
