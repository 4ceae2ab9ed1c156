/* Products so small that packing would be a quarter of their work: operands are read where they lie, by one
 * function that goes over columns, then rows (vector/vector_product.h). */
#include "handlers/cpu/product/product_cut.h"

/* Multiplications up to which this is faster. */
#define SMALL_WORK (32 * 32 * 24)

/* One wide panel of columns, and rows of b that are contiguous or can be made so in a thread's panel, which
 * sgm__product_scratch has. A last block of rows of a larger product may be small, too; if b is packed, it
 * may be nowhere else. */
bool sgm__product_is_small(const sgm__vector *vector, const sgm__product *p)
{
    bool known = p->b_column == 1 || p->b_row == 1;
    return known && p->packed == NULL && p->dtype != SGM_BFLOAT16 && !p->rounds_b && p->m > 0 && p->n > 0 &&
           p->k > 0 && p->n <= sgm__cut_tiles(vector, p)->columns && p->k <= SGM__MAXIMUM_DEPTH &&
           p->m <= SMALL_WORK && p->m * p->n * p->k <= SMALL_WORK;
}

void sgm__product_run_small(const sgm__vector *vector, const sgm__product *p, unsigned char *scratch)
{
    const sgm__tiles *tiles = sgm__cut_tiles(vector, p);
    sgm__small_product small = {.m = p->m,
                                .n = p->n,
                                .k = p->k,
                                .a = p->a,
                                .a_row = p->a_row,
                                .a_column = p->a_column,
                                .b = p->b,
                                .b_row = p->b_row,
                                .c = p->c,
                                .c_row = p->c_row};
    if (p->b_column != 1) {
        tiles->transpose(scratch, p->n, p->b, p->b_column, p->n, p->k);
        small.b = scratch;
        small.b_row = p->n;
    }
    tiles->small(&small);
}
