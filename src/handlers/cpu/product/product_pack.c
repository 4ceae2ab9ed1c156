/* Packs operands of products: rows of a as panels of a tile's rows, columns of b as panels of its columns. */
#include "handlers/cpu/product/product_cut.h"

/* Numbers along k of a transposed a that are packed for all panels before the next ones (pack_transposed):
 * whole pairs. */
#define NUMBERS_TOGETHER 8
/* Those that are fetched ahead of packing: they lie too far apart for the processor to guess. */
#define NUMBERS_AHEAD 16
/* Numbers of b that are rounded at a time. */
#define ROUNDED_TOGETHER 512

void sgm__pack(const sgm__cut *w, unsigned char *target, const unsigned char *source, int64_t stride,
               int64_t step, int64_t width, int64_t depth, int64_t padded)
{
    if (stride == 1) {
        w->tiles->copy_rows(target, padded, source, step, width, depth);
        return;
    }
    if (step == 1 && stride % w->pair == 0) {
        w->tiles->transpose(target, padded, source, stride, width, depth);
        return;
    }
    memset(target, 0, (size_t)(padded * sgm__divide_up(depth, w->pair)) * w->step_size);
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < width; i++)
            memcpy(target + (size_t)((k / w->pair * padded + i) * w->pair + k % w->pair) * w->size,
                   source + (i * stride + k * step) * (int64_t)w->size, w->size);
}

/* By way of a few numbers in the first cache. */
void sgm__round_right(const sgm__cut *w, unsigned char *numbers, int64_t count)
{
    uint16_t narrow[ROUNDED_TOGETHER];
    for (int64_t at = 0; w->narrow != NULL && at < count; at += ROUNDED_TOGETHER) {
        int64_t some = sgm__minimum(count - at, ROUNDED_TOGETHER);
        unsigned char *from = numbers + at * (int64_t)w->size;
        w->narrow(some, narrow, (const void *const[]){from}, 0);
        w->widen(some, from, (const void *const[]){narrow}, 0);
    }
}

void sgm__pack_right(const sgm__cut *w, unsigned char *target, const unsigned char *source, int64_t width,
                     int64_t depth, int64_t padded)
{
    sgm__pack(w, target, source, w->product.b_column, w->product.b_row, width, depth, padded);
    sgm__round_right(w, target, depth * padded);
    int64_t steps = sgm__divide_up(depth, w->pair), rest = steps % SGM__BLOCK_STEPS;
    if (w->tiles->block != NULL && rest > 0)
        memset(target + (size_t)(steps * padded) * w->step_size, 0,
               (size_t)((SGM__BLOCK_STEPS - rest) * padded) * w->step_size);
}

/* Prefetches `numbers` numbers of rows `row` to `end` - 1 of a transposed a, from `first` on. */
static void fetch_ahead(const sgm__cut *w, int64_t row, int64_t end, int64_t first, int64_t numbers)
{
    const sgm__product *p = &w->product;
    for (int64_t k = first; k < first + numbers && k < p->k; k++) {
        const unsigned char *from = p->a;
        from += (row + k * p->a_column) * (int64_t)w->size;
        for (int64_t at = 0; at < (end - row) * (int64_t)w->size; at += SGM__CACHE_LINE)
            __builtin_prefetch(from + at);
    }
}

/* Packs panels first .. last - 1 of an a whose columns are contiguous. Panels take turns at a few numbers of
 * each row: those lie far apart, and neighbouring panels share cache lines that each panel alone would have
 * to fetch again. */
static void pack_transposed(const sgm__cut *w, const sgm__slab *s, int64_t first, int64_t last)
{
    const sgm__product *p = &w->product;
    int64_t k = s->number, depth = s->numbers;
    for (int64_t at = 0; at < depth; at += NUMBERS_TOGETHER) {
        int64_t numbers = sgm__minimum(depth - at, NUMBERS_TOGETHER);
        fetch_ahead(w, sgm__cut_row(w, first), sgm__cut_row(w, last), k + at + NUMBERS_AHEAD, numbers);
        for (int64_t panel = first; panel < last; panel++) {
            int64_t row = sgm__cut_row(w, panel), rows = sgm__cut_row(w, panel + 1) - row;
            const unsigned char *from = p->a;
            from += (row + (k + at) * p->a_column) * (int64_t)w->size;
            w->tiles->copy_rows(sgm__slab_panel(w, s, row) + (size_t)(at / w->pair * rows) * w->step_size,
                                rows, from, p->a_column, rows, numbers);
        }
    }
}

/* Packs rows of a for blocks: row after row, each with its `steps` pairs together, the last ones zeros. */
static void pack_apart(const sgm__cut *w, unsigned char *target, const unsigned char *source, int64_t rows,
                       int64_t depth, int64_t steps)
{
    const sgm__product *p = &w->product;
    int64_t whole = depth / w->pair, filled = sgm__divide_up(depth, w->pair);
    if (p->a_column != 1) {
        uint32_t pairs[SGM__WHOLE_DEPTH * SGM__BLOCK_ROWS];
        sgm__pack(w, (unsigned char *)pairs, source, p->a_row, p->a_column, rows, depth, rows);
        memset(pairs + filled * rows, 0, (size_t)((steps - filled) * rows) * sizeof *pairs);
        w->tiles->transpose(target, steps, pairs, rows * w->pair, steps, rows * w->pair);
        return;
    }
    for (int64_t i = 0; i < rows; i++, target += (size_t)steps * w->step_size) {
        memset(target + (size_t)whole * w->step_size, 0, (size_t)(steps - whole) * w->step_size);
        memcpy(target, source + i * p->a_row * (int64_t)w->size, (size_t)depth * w->size);
    }
}

/* Packs row panels first .. last - 1 of one depth block into the slab. */
void sgm__pack_panels(const sgm__cut *w, const sgm__slab *s, int64_t first, int64_t last)
{
    const sgm__product *p = &w->product;
    int64_t k = s->number, depth = s->numbers;
    if (p->a_row == 1 && w->tiles->block == NULL) {
        pack_transposed(w, s, first, last);
        return;
    }
    for (int64_t panel = first; panel < last; panel++) {
        int64_t row = sgm__cut_row(w, panel), rows = sgm__cut_row(w, panel + 1) - row;
        const unsigned char *from = p->a;
        from += (row * p->a_row + k * p->a_column) * (int64_t)w->size;
        if (w->tiles->block != NULL)
            pack_apart(w, sgm__slab_panel(w, s, row), from, rows, depth, s->depth);
        else
            sgm__pack(w, sgm__slab_panel(w, s, row), from, p->a_row, p->a_column, rows, depth, rows);
    }
}

/* A task packs some row panels, of all depth blocks. */
void sgm__pack_rows(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const sgm__cut *w = context;
    int64_t first = sgm__cut_part(w->row_panels, w->pack_tasks, task);
    int64_t last = sgm__cut_part(w->row_panels, w->pack_tasks, task + 1);
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        sgm__slab s = sgm__slab_whole(w, block);
        sgm__pack_panels(w, &s, first, last);
    }
}

/* A task transposes one column panel of b, over all of k. */
void sgm__pack_columns(void *context, int64_t column_panel, int32_t thread)
{
    (void)thread;
    const sgm__cut *w = context;
    const sgm__product *p = &w->product;
    int64_t columns, width = sgm__cut_width(w, column_panel, &columns);
    const unsigned char *from = p->b;
    from += column_panel * w->tiles->columns * p->b_column * (int64_t)w->size;
    sgm__pack_right(w, w->transposed + sgm__cut_offset(w, column_panel, 0, width), from, columns, p->k,
                    width);
}

void sgm__product_pack(const sgm__vector *vector, const sgm__product *product, unsigned char *to)
{
    sgm__cut w = sgm__cut_make(vector, product);
    w.transposed = to;
    for (int64_t i = 0; i < w.column_panels; i++)
        sgm__pack_columns(&w, i, 0);
}
