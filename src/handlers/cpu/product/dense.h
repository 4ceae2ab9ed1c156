/* Matrix products by our own loops or by a library, whichever the handler's option `dense` names. Internal.
 *
 * Everything that multiplies matrices (matmul.c, run/fused.c, run/summed.c) comes through here, but for
 * products of bfloat16 that go to oneDNN (matmul_onednn.c); dense.c passes a product on to product.c or to
 * OpenBLAS or oneDNN. Libraries are loaded when first asked for. They run without threads of their own: the
 * rows or columns of the result are divided among the pool's threads, which is why bits may depend on the
 * number of threads then. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_DENSE_H
#define SGM_HANDLERS_CPU_PRODUCT_DENSE_H

#include "handlers/cpu/product/product.h"

typedef struct sgm__dense sgm__dense;

/* `name`: "openblas", "onednn", "own", or NULL for the default, our own loops. NULL, with an error set, if a
 * library is named that is not installed. */
sgm__dense *sgm__dense_create(const char *name);
/* Whether there is a choice of that name (NULL: the default), without loading anything. */
sgm_status sgm__dense_check(const char *name);
void sgm__dense_free(sgm__dense *dense);
/* For users: "OpenBLAS 0.3.21 (SkylakeX)". */
const char *sgm__dense_text(const sgm__dense *dense);
/* Whether our own loops compute all products. */
bool sgm__dense_is_own(const sgm__dense *dense);
/* Whether a library computes this product; else our own loops do. */
bool sgm__dense_for_library(const sgm__dense *dense, const sgm__product *product);
/* Bytes of scratch memory that the two functions below need with up to `threads` threads. */
size_t sgm__dense_scratch(const sgm__dense *dense, const sgm__vector *vector, const sgm__product *product,
                          int32_t threads);
/* Computed on return. `pool` NULL: in this thread alone. */
void sgm__dense_run(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                    const sgm__product *product, unsigned char *scratch);
/* May return before the product is computed, as sgm__pool_post does. */
void sgm__dense_post(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                     const sgm__product *product, unsigned char *scratch);

#endif
