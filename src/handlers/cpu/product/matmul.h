/* Batches of matrix products, of an instruction `matmul`. Internal. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_MATMUL_H
#define SGM_HANDLERS_CPU_PRODUCT_MATMUL_H

#include "handlers/cpu/cpu.h"
#include "handlers/cpu/product/product.h"

typedef struct sgm__batches {
    const sgm__cpu_call *call;
    sgm__product product; /* the first */
    int32_t rank;         /* of the leading dimensions */
    int64_t count;
    int64_t a_strides[SGM_MAX_RANK], b_strides[SGM_MAX_RANK];
    bool together; /* a thread does whole products */
    bool small;    /* one, of the smallest sort */
} sgm__batches;

sgm__batches sgm__batches_of(const sgm__cpu_call *call);
/* Product `index`, where product 0's addresses are those in `batches`. */
sgm__product sgm__batches_at(const sgm__batches *batches, int64_t index);

extern const sgm__cpu_kernel sgm__cpu_matmul, sgm__cpu_matmul_bfloat16;
/* --- bfloat16.c --- */
/* `dense`: as in the handler's options. */
sgm_status sgm__cpu_choose_bfloat16(sgm__cpu *cpu, const char *dense);
const char *sgm__cpu_bfloat16(void *self); /* which way its products go */

#endif
