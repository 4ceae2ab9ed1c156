/* Matrix products without a library: c = a b for operands of any strides. Internal.
 *
 * product.c cuts a product into tiles that fit the registers (vector/vector_product.h computes one) and
 * shares them among the pool's threads. a is packed first, as panels of a tile's rows, unless it can be read
 * in place; then each task computes some rows and columns of c. Every element of c is summed in the order of
 * k, in depth blocks that k alone decides, so the bits are the same for any number of threads. Called by
 * dense.c, which may give a product to a library instead. The smallest ones (product_small.c) matmul.c calls
 * itself. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_PRODUCT_H
#define SGM_HANDLERS_CPU_PRODUCT_PRODUCT_H

#include "handlers/cpu/pool.h"
#include "handlers/cpu/vector/vector.h"

/* Multiplications (m n k): products with fewer take one thread some microseconds and are not shared. */
#define SGM__PRODUCT_SMALL_WORK (64 * 64 * 32)

/* c (m x n) = a (m x k) times b (k x n). Element (i, j) of a lies at a[i * a_row + j * a_column], and so for
 * b; strides count elements. Rows of c are contiguous. float32, float64, or bfloat16 with sums in float32. */
typedef struct sgm__product {
    sgm_dtype dtype;
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_column;
    const void *b;
    int64_t b_row, b_column;
    void *c;
    int64_t c_row;
    const void *packed; /* b as sgm__product_pack gives it; NULL: it was not packed */
    /* Of float32: each number of b is rounded to what bfloat16 can say, as b is packed. */
    bool rounds_b;
} sgm__product;

/* Whether one of a matrix's strides is 1, and rows (or columns) do not overlap: so libraries want operands.
 */
static inline bool sgm__has_unit_stride(int64_t row, int64_t column, int64_t rows, int64_t columns)
{
    return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

/* Part `index` of `parts` of the rows of c, or else of its columns, in multiples of `unit`. m or n is 0 if
 * the part is empty. */
static inline sgm__product sgm__product_part(sgm__product p, bool by_rows, int64_t unit, int64_t parts,
                                             int64_t index)
{
    int64_t first, last, size = (int64_t)sgm_dtype_size(p.dtype);
    sgm__pool_part(by_rows ? p.m : p.n, unit, parts, index, &first, &last);
    if (by_rows) {
        p.a = (const unsigned char *)p.a + first * p.a_row * size;
        p.c = (unsigned char *)p.c + first * p.c_row * size;
        p.m = last > first ? last - first : 0;
    } else {
        p.b = (const unsigned char *)p.b + first * p.b_column * size;
        p.c = (unsigned char *)p.c + first * size;
        p.n = last > first ? last - first : 0;
    }
    return p;
}

/* b as panels of columns, for products of this k, n and b with any a: bytes, and the panels. */
size_t sgm__product_packed_bytes(const sgm__vector *vector, const sgm__product *product);
void sgm__product_pack(const sgm__vector *vector, const sgm__product *product, unsigned char *to);
/* Bytes of scratch memory that sgm__product_post needs with up to `threads` threads, 64-byte aligned. */
size_t sgm__product_scratch(const sgm__vector *vector, const sgm__product *product, int32_t threads);
/* May return before the product is computed, as sgm__pool_post does; operands and scratch must last until
 * then. `pool` NULL: computed in this thread on return, with scratch for one thread. */
void sgm__product_post(const sgm__vector *vector, sgm__pool *pool, const sgm__product *product,
                       unsigned char *scratch);
/* Whether packing would cost more than it saves. Such products have no tasks: sgm__product_run_small computes
 * them in this thread, with scratch for one, and does not wait for the pool. */
bool sgm__product_is_small(const sgm__vector *vector, const sgm__product *product);
void sgm__product_run_small(const sgm__vector *vector, const sgm__product *product, unsigned char *scratch);

#endif
