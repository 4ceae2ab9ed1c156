/* The instruction matmul: a batch of matrix products over leading dimensions. Internal.
 *
 * (..., m, k) times (..., k, n) gives (..., m, n). matmul.c computes them, but for those of bfloat16 where
 * matmul_onednn.c does it; bfloat16.c decides. Both kernels see the batch as sgm__batches. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_MATMUL_H
#define SGM_HANDLERS_CPU_PRODUCT_MATMUL_H

#include "handlers/cpu/cpu.h"
#include "handlers/cpu/product/product.h"

/* The products of one instruction: product 0, and the distances to the others. */
typedef struct sgm__batches {
    const sgm__cpu_call *call;
    sgm__product product; /* the first; its addresses are set by each run */
    int32_t rank;         /* of the leading dimensions, over which `count` products lie; 0 for one product */
    int64_t count;
    /* Elements between neighbours along a leading dimension, 0 where one operand is shared. Results follow
     * each other without gaps. */
    int64_t a_strides[SGM_MAX_RANK], b_strides[SGM_MAX_RANK];
    bool together; /* each task does one whole product */
    bool small;    /* one product, too small to be packed or shared (sgm__product_is_small) */
} sgm__batches;

/* Looks at shapes and strides only. */
sgm__batches sgm__batches_of(const sgm__cpu_call *call);
/* Product `index` with its addresses, computed from those that `batches->product` has for product 0. */
sgm__product sgm__batches_at(const sgm__batches *batches, int64_t index);

extern const sgm__cpu_kernel sgm__cpu_matmul, sgm__cpu_matmul_onednn;
/* --- bfloat16.c --- */
/* What the option `bfloat16` takes; NULL at the end. */
extern const char *const sgm__bfloat16_ways[];
/* Whether there is a way of that name (NULL: the default), without loading anything. */
sgm_status sgm__cpu_check_bfloat16(const char *name);
/* Decides how products of bfloat16 are computed, loads oneDNN if it is to do it, and writes cpu->products and
 * cpu->bfloat16. `options` are the handler's. A library that is missing is an error only where
 * options->bfloat16 names it. */
sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const sgm_handler_options *options);
/* Which way products of bfloat16 go, as a line for users; `self` is a sgm__cpu. */
const char *sgm__cpu_bfloat16(void *self);

#endif
