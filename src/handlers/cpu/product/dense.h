/* Matrix products, by a library or by our own loops. Internal.
 *
 * Libraries are loaded when first asked for. They run without threads of their own: the rows or columns of
 * the result are divided among ours.
 */
#ifndef SGM_HANDLERS_CPU_PRODUCT_DENSE_H
#define SGM_HANDLERS_CPU_PRODUCT_DENSE_H

#include "handlers/cpu/product/product.h"

typedef struct sgm__dense sgm__dense;

/* `name`: "openblas", "onednn", "own", or NULL for the fastest. A library that is named but not there is an
 * error. */
sgm__dense *sgm__dense_create(const char *name);
void sgm__dense_free(sgm__dense *dense);
/* "OpenBLAS 0.3.21 (SkylakeX)" */
const char *sgm__dense_text(const sgm__dense *dense);
/* A library computes it, not our own loops. */
bool sgm__dense_for_library(const sgm__dense *dense, const sgm__product *product);
size_t sgm__dense_scratch(const sgm__dense *dense, const sgm__vector *vector, const sgm__product *product,
                          int32_t threads);
void sgm__dense_run(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                    const sgm__product *product, unsigned char *scratch);
/* May return before the product is there: see sgm__pool_post. */
void sgm__dense_post(const sgm__dense *dense, const sgm__vector *vector, sgm__pool *pool,
                     const sgm__product *product, unsigned char *scratch);

#endif
