/* Matrix products without a library: c = a b, for any strides. Internal.
 *
 * a is packed first (panels of a tile's rows), then each task takes some columns of c and some of its rows; b
 * is stored in cache while the first tile of a column reads it. Every element is summed in the same order
 * whatever the number of threads.
 */
#ifndef SGM_HANDLERS_CPU_PRODUCT_PRODUCT_H
#define SGM_HANDLERS_CPU_PRODUCT_PRODUCT_H

#include "handlers/cpu/pool.h"
#include "handlers/cpu/vector/vector.h"

#define SGM__PRODUCT_SMALL_WORK (64 * 64 * 32) /* multiplications that are not worth a second thread */

/* Strides count elements. c's rows are contiguous. Types: float32, float64. */
typedef struct sgm__product {
    sgm_dtype dtype;
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row, b_column;
    void *c;
    int64_t c_row;
} sgm__product;

/* Bytes of memory that sgm__product_post needs, 64-byte aligned. */
size_t sgm__product_scratch(const sgm__vector *vector, const sgm__product *product, int32_t threads);
/* May return before the product is there: see sgm__pool_post. `pool` NULL: in this thread only, with scratch
 * for one. */
void sgm__product_post(const sgm__vector *vector, sgm__pool *pool, const sgm__product *product,
                       unsigned char *scratch);
/* Those that are not worth packing: in this thread, with scratch for one. */
bool sgm__product_is_small(const sgm__vector *vector, const sgm__product *product);
void sgm__product_run_small(const sgm__vector *vector, const sgm__product *product, unsigned char *scratch);

#endif
