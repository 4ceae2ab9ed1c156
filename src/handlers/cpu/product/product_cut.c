/* Decides how a product is cut: panels, depth blocks, what is packed, and how much scratch memory that takes.
 */
#include "handlers/cpu/product/product_cut.h"
#include "ops/ops.h"

/* Columns of c up to which a is read in place if its rows are contiguous: with so few, packing is a tenth to
 * a fifth of the work. Measured in docs/performance.md, Matrix products. */
#define MAXIMUM_COLUMNS_APART 256
/* The same if the columns of a are contiguous. */
#define MAXIMUM_COLUMNS_TRANSPOSED 512
/* Row panels that a task packs and uses while they are in its second cache. */
#define PANELS_TOGETHER 16
/* The same in rows, whatever a tile has, for a large b, which would else be read more often: 208 KiB of
 * float32 with a depth block. */
#define ROWS_TOGETHER 256
/* Bytes from which on b is large. Its next panel is copied while tiles of the one before run (copy_ahead): it
 * comes from behind the second cache, where a tile that stored it would wait for each row. */
#define BYTES_BEHIND (1 << 19)

/* Whether a is read without packing, which takes longer than it saves where there are few columns. Rows or
 * steps of a that lie whole pages apart would push each other out of the first cache, so these are packed.
 * Pairs have to lie ready: whole ones, and at distances of whole pairs. */
static bool reads_in_place(const sgm__cut *w)
{
    const sgm__product *p = &w->product;
    if (w->pair > 1 && (p->a_column != 1 || p->k % w->pair != 0 || p->a_row % w->pair != 0))
        return false;
    if (w->tiles->block != NULL) /* which reads each cache line of a row once */
        return true;
    if (p->a_column == 1)
        return p->n <= MAXIMUM_COLUMNS_APART && p->a_row * (int64_t)w->size % SGM__PAGE != 0;
    return p->a_row == 1 && p->n <= MAXIMUM_COLUMNS_TRANSPOSED &&
           p->a_column * (int64_t)w->size % SGM__PAGE != 0;
}

const sgm__tiles *sgm__cut_tiles(const sgm__vector *vector, const sgm__product *p)
{
    return p->dtype == SGM_FLOAT64 ? &vector->f64 : p->dtype == SGM_BFLOAT16 ? &vector->pairs : &vector->f32;
}

/* Bytes of all of b as panels. */
static size_t whole_bytes(const sgm__cut *w)
{
    return sgm__align((size_t)(w->column_panels * w->tiles->columns) * (size_t)w->steps * w->step_size);
}

int64_t sgm__cut_together(const sgm__cut *w)
{
    return w->large ? sgm__divide_up(ROWS_TOGETHER, w->tiles->rows) : PANELS_TOGETHER;
}

/* How many depth blocks there are. */
static int64_t count_blocks(const sgm__cut *w)
{
    bool deep = w->tiles->block != NULL || w->steps <= SGM__WHOLE_DEPTH;
    int64_t most = deep ? SGM__WHOLE_DEPTH : w->pair > 1 ? SGM__MAXIMUM_PAIRS : SGM__MAXIMUM_DEPTH;
    return sgm__divide_up(w->steps, most);
}

/* Steps of the largest depth block. */
static int64_t largest_depth(const sgm__cut *w)
{
    int64_t unit = w->tiles->block != NULL ? SGM__BLOCK_STEPS : 1;
    return sgm__divide_up(sgm__divide_up(w->steps, unit), w->depth_blocks > 0 ? w->depth_blocks : 1) * unit;
}

/* Bytes of scratch memory for the parts that were decided on. */
static void measure(sgm__cut *w)
{
    const sgm__product *p = &w->product;
    size_t depth = (size_t)largest_depth(w);
    size_t columns = (size_t)(w->column_panels * w->tiles->columns);
    size_t rows = w->by_rows ? (size_t)(sgm__cut_together(w) * w->tiles->rows) : (size_t)p->m;
    w->panel_bytes = sgm__align(depth * (size_t)w->tiles->columns * w->step_size);
    if (!w->in_place)
        w->packed_bytes = sgm__align(rows * (w->by_rows ? depth : (size_t)w->steps) * w->step_size);
    if (w->by_rows && (p->b_column != 1 || w->pair > 1) && p->packed == NULL)
        w->transposed_bytes = whole_bytes(w);
    if (w->pair > 1 && w->depth_blocks > 1)
        w->sums_bytes = sgm__align(rows * columns * sizeof(float));
}

sgm__cut sgm__cut_make(const sgm__vector *vector, const sgm__product *product)
{
    sgm__cut w = {.product = *product,
                  .tiles = sgm__cut_tiles(vector, product),
                  .size = sgm_dtype_size(product->dtype),
                  .pair = product->dtype == SGM_BFLOAT16 ? 2 : 1};
    if (product->rounds_b) {
        w.narrow = sgm__vector_find(vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16);
        w.widen = sgm__vector_find(vector, &sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32);
    }
    w.step_size = w.size * (size_t)w.pair;
    w.steps = sgm__divide_up(product->k, w.pair);
    if (w.tiles->block != NULL)
        w.steps = sgm__divide_up(w.steps, SGM__BLOCK_STEPS) * SGM__BLOCK_STEPS;
    w.row_panels = sgm__divide_up(product->m, w.tiles->rows);
    w.column_panels = sgm__divide_up(product->n, w.tiles->columns);
    w.depth_blocks = count_blocks(&w);
    w.large = (double)product->k * (double)product->n * (double)w.size > BYTES_BEHIND;
    w.ahead = w.large && w.pair == 1 && product->packed == NULL && product->b_column == 1;
    w.by_rows = w.row_panels > sgm__cut_together(&w);
    w.in_place = reads_in_place(&w);
    measure(&w);
    return w;
}

size_t sgm__product_scratch(const sgm__vector *vector, const sgm__product *product, int32_t threads)
{
    sgm__cut w = sgm__cut_make(vector, product);
    size_t slabs = w.by_rows ? (size_t)threads : 1;
    return (w.packed_bytes + w.sums_bytes) * slabs + (size_t)threads * 2 * w.panel_bytes + w.transposed_bytes;
}

size_t sgm__product_packed_bytes(const sgm__vector *vector, const sgm__product *product)
{
    sgm__cut w = sgm__cut_make(vector, product);
    return whole_bytes(&w);
}
