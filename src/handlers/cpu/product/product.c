/* Cuts matrix products into panels and tiles, packs operands, and posts tasks to the pool.
 *
 * The method is that of Goto and van de Geijn (2008): a tile of c (up to 14 rows by two vectors with AVX-512)
 * stays in registers, a panel of b (one tile's columns, one depth block of k) stays in the first cache,
 * packed a stays in the second. Layouts:
 *
 * - a is cut into row panels; a packed panel has its rows' numbers of one step k together, step after step.
 * - b is cut into column panels. The first tile that reads a panel also stores it contiguously (`keep`), so
 *   that packing b costs almost nothing; a transposed b is packed before. A constant b comes packed. Of
 *   a b too large for the second cache the next panel is fetched and copied between the tiles of the one
 *   before (copy_ahead).
 * - k is cut into depth blocks; from the second block on, tiles add to c.
 * - bfloat16 is multiplied in pairs of neighbouring numbers along k: a step of a tile is a pair, and packing
 *   puts pairs together (vector/vector_pairs.h). Sums of several depth blocks are kept in float32 until the
 *   last one rounds them into c.
 *
 * Two ways to share: with few row panels a is packed by one loop, and tasks of a second loop do some columns
 * each (post_columns); with many, each task packs some rows for itself and does all
 * their columns (post_rows). */
#include "handlers/cpu/product/product.h"

/* Steps of a panel of b: 26 KiB of the first cache for two vectors of 64 bytes. Depths of 264, 400 and 800
 * were not faster. */
#define MAXIMUM_DEPTH 208
/* Up to this k one depth block is better than two, which would write c twice. */
#define WHOLE_DEPTH 256
/* Bytes of the largest tile of any instruction set. */
#define LARGEST_TILE (14 * 2 * 64)
/* Columns of c up to which a is read in place if its rows are contiguous: with so few, packing is a tenth to
 * a fifth of the work. Measured in docs/performance.md, Matrix products. */
#define MAXIMUM_COLUMNS_APART 256
/* The same if the columns of a are contiguous. */
#define MAXIMUM_COLUMNS_TRANSPOSED 512
/* Bytes. Addresses that are multiples of a page apart fall into the same set of the first cache and push each
 * other out. */
#define PAGE 4096
/* Rows of b that a tile fetches ahead while it stores them, as they come from far away. */
#define ROWS_AHEAD 32
/* The same if rows of b lie whole pages apart: no more lines fit into one set of the first cache. */
#define PAGES_AHEAD 12
/* Numbers along k of a transposed a that are packed for all panels before the next ones (pack_transposed):
 * whole pairs. */
#define NUMBERS_TOGETHER 8
/* Those that are fetched ahead of packing: they lie too far apart for the processor to guess. */
#define NUMBERS_AHEAD 16
#define CACHE_LINE 64
/* Row panels that a task packs and uses while they are in its second cache. */
#define PANELS_TOGETHER 16
/* The same in rows, whatever a tile has, for a large b, which would else be read more often: 208 KiB of
 * float32 with a depth block. */
#define ROWS_TOGETHER 256
/* Bytes from which on b is large. Its next panel is copied while tiles of the one before run (copy_ahead): it
 * comes from behind the second cache, where a tile that stored it would wait for each row. */
#define BYTES_BEHIND (1 << 19)
/* Row panels from which on this is done: with fewer, too much would have to be fetched before each tile. */
#define PANELS_AHEAD 8
/* Several tasks for each thread, so that threads that start late get less of the work. */
#define TASKS_PER_THREAD 4

/* How a product is cut, and where its scratch memory is. Decided by `plan` and `post_*` and constant
 * afterwards; tasks get a copy. */
typedef struct work {
    sgm__product product;
    const sgm__tiles *tiles;
    size_t size;      /* bytes of a number */
    int64_t pair;     /* numbers along k that a step of a tile multiplies: 2 of bfloat16, else 1 */
    size_t step_size; /* bytes of these */
    int64_t steps;    /* steps in k; a last pair may lack its second number */
    /* Panels and blocks that m, n and the steps are cut into. */
    int64_t row_panels, column_panels, depth_blocks;
    /* Tasks that these are divided among; chosen by post_rows or post_columns. */
    int64_t row_tasks, column_tasks, pack_tasks;
    bool in_place; /* a is read where it lies and not packed */
    /* There are many rows: a task packs some of them and does all their columns (post_rows). */
    bool by_rows;
    bool large; /* b comes from behind the second cache */
    bool ahead; /* b is large: panels are fetched, or copied, while the ones before are used */
    /* Packed a: all of it, or, if by rows, a slab of `packed_bytes` for each thread. */
    unsigned char *packed;
    /* Two panels of b for each thread, of `panel_bytes` each. */
    unsigned char *panels;
    /* All of b, panel after panel, if it comes so, or if by rows and the rows of b are not contiguous; else
     * NULL. */
    const unsigned char *whole;
    unsigned char *transposed; /* the same, to be written here */
    /* Of bfloat16 with several depth blocks: float32 sums of whole column panels; if by rows, a slab of
     * `sums_bytes` for each thread. */
    unsigned char *sums;
    size_t packed_bytes, panel_bytes, transposed_bytes, sums_bytes;
} work;

/* Where part `index` of `parts` begins. */
static int64_t part(int64_t total, int64_t parts, int64_t index)
{
    return total * index / parts;
}

/* The row at which row panel `panel` begins; `m` past the last. Panel 0 has a full tile's rows, since only
 * full tiles can store b while they read it (run_panel); the others share the rest evenly, as there is a tile
 * function for each number of rows. */
static int64_t first_row(const work *w, int64_t panel)
{
    int64_t m = w->product.m, full = w->tiles->rows;
    if (panel == 0 || m <= full)
        return panel == 0 ? 0 : m;
    return full + part(m - full, w->row_panels - 1, panel - 1);
}

/* Whether a is read without packing, which takes longer than it saves where there are few columns. Rows or
 * steps of a that lie whole pages apart would push each other out of the first cache, so these are packed.
 * Pairs have to lie ready: whole ones, and at distances of whole pairs. */
static bool reads_in_place(const work *w)
{
    const sgm__product *p = &w->product;
    if (w->pair > 1 && (p->a_column != 1 || p->k % w->pair != 0 || p->a_row % w->pair != 0))
        return false;
    if (p->a_column == 1)
        return p->n <= MAXIMUM_COLUMNS_APART && p->a_row * (int64_t)w->size % PAGE != 0;
    return p->a_row == 1 && p->n <= MAXIMUM_COLUMNS_TRANSPOSED && p->a_column * (int64_t)w->size % PAGE != 0;
}

static const sgm__tiles *tiles_for(const sgm__vector *vector, const sgm__product *p)
{
    return p->dtype == SGM_FLOAT64 ? &vector->f64 : p->dtype == SGM_BFLOAT16 ? &vector->pairs : &vector->f32;
}

/* Bytes of all of b as panels. */
static size_t whole_bytes(const work *w)
{
    return sgm__align((size_t)(w->column_panels * w->tiles->columns) * (size_t)w->steps * w->step_size);
}

/* Row panels of a task of post_rows, at most. */
static int64_t panels_together(const work *w)
{
    return w->large ? sgm__divide_up(ROWS_TOGETHER, w->tiles->rows) : PANELS_TOGETHER;
}

/* Bytes of scratch memory for the parts that `plan` has decided on. */
static void measure(work *w)
{
    const sgm__product *p = &w->product;
    size_t depth = (size_t)sgm__divide_up(w->steps, w->depth_blocks > 0 ? w->depth_blocks : 1);
    size_t columns = (size_t)(w->column_panels * w->tiles->columns);
    size_t rows = w->by_rows ? (size_t)(panels_together(w) * w->tiles->rows) : (size_t)p->m;
    w->panel_bytes = sgm__align(depth * (size_t)w->tiles->columns * w->step_size);
    if (!w->in_place)
        w->packed_bytes = sgm__align(rows * (w->by_rows ? depth : (size_t)w->steps) * w->step_size);
    if (w->by_rows && (p->b_column != 1 || w->pair > 1) && p->packed == NULL)
        w->transposed_bytes = whole_bytes(w);
    if (w->pair > 1 && w->depth_blocks > 1)
        w->sums_bytes = sgm__align(rows * columns * sizeof(float));
}

/* Decides how the product is cut, but for the numbers of tasks. Depends on shapes and strides alone, never on
 * threads, as the depth blocks decide the order of sums. */
static work plan(const sgm__vector *vector, const sgm__product *product)
{
    work w = {.product = *product,
              .tiles = tiles_for(vector, product),
              .size = sgm_dtype_size(product->dtype),
              .pair = product->dtype == SGM_BFLOAT16 ? 2 : 1};
    w.step_size = w.size * (size_t)w.pair;
    w.steps = sgm__divide_up(product->k, w.pair);
    w.row_panels = sgm__divide_up(product->m, w.tiles->rows);
    w.column_panels = sgm__divide_up(product->n, w.tiles->columns);
    w.depth_blocks = sgm__divide_up(w.steps, w.steps <= WHOLE_DEPTH ? WHOLE_DEPTH : MAXIMUM_DEPTH);
    w.large = (double)product->k * (double)product->n * (double)w.size > BYTES_BEHIND;
    w.ahead = w.large && w.pair == 1 && product->packed == NULL && product->b_column == 1;
    w.by_rows = w.row_panels > panels_together(&w);
    w.in_place = reads_in_place(&w);
    measure(&w);
    return w;
}

size_t sgm__product_scratch(const sgm__vector *vector, const sgm__product *product, int32_t threads)
{
    work w = plan(vector, product);
    size_t slabs = w.by_rows ? (size_t)threads : 1;
    return (w.packed_bytes + w.sums_bytes) * slabs + (size_t)threads * 2 * w.panel_bytes + w.transposed_bytes;
}

/* --- packing --- */

/* target[k * padded + i] = source element (i, k) for i < width, zeros for i from width to padded. Element (i,
 * k) lies at source[i * stride + k * step]. Of pairs, two numbers of the source are an element of the target;
 * `depth` counts numbers. */
static void pack(const work *w, unsigned char *target, const unsigned char *source, int64_t stride,
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

/* Memory with packed rows of a, from row `origin` on, of one depth block: row panel after row panel. And the
 * sums of these rows, if they are kept in float32. */
typedef struct slab {
    unsigned char *at, *sums;
    int64_t origin, block;
} slab;

/* The step at which a depth block begins. */
static int64_t first_step(const work *w, int64_t block)
{
    return part(w->steps, w->depth_blocks, block);
}

/* Steps of a depth block. */
static int64_t depth_of(const work *w, int64_t block)
{
    return first_step(w, block + 1) - first_step(w, block);
}

/* The first number along k of a depth block; k past the last. */
static int64_t first_number(const work *w, int64_t block)
{
    return sgm__minimum(first_step(w, block) * w->pair, w->product.k);
}

/* Numbers along k of a depth block. */
static int64_t numbers_of(const work *w, int64_t block)
{
    return first_number(w, block + 1) - first_number(w, block);
}

static unsigned char *packed_panel(const work *w, const slab *s, int64_t panel)
{
    int64_t offset = (first_row(w, panel) - s->origin) * depth_of(w, s->block);
    return s->at + (size_t)offset * w->step_size;
}

/* Depth block `block` of all rows of a: the blocks follow each other in `packed`. */
static slab whole_slab(const work *w, int64_t block)
{
    size_t offset = (size_t)(first_step(w, block) * w->product.m) * w->step_size;
    return (slab){w->packed + offset, w->sums, 0, block};
}

/* Prefetches `numbers` numbers of rows `row` to `end` - 1 of a transposed a, from `first` on. */
static void fetch_ahead(const work *w, int64_t row, int64_t end, int64_t first, int64_t numbers)
{
    const sgm__product *p = &w->product;
    for (int64_t k = first; k < first + numbers && k < p->k; k++) {
        const unsigned char *from = p->a;
        from += (row + k * p->a_column) * (int64_t)w->size;
        for (int64_t at = 0; at < (end - row) * (int64_t)w->size; at += CACHE_LINE)
            __builtin_prefetch(from + at);
    }
}

/* Packs panels first .. last - 1 of an a whose columns are contiguous. Panels take turns at a few numbers of
 * each row: those lie far apart, and neighbouring panels share cache lines that each panel alone would have
 * to fetch again. */
static void pack_transposed(const work *w, const slab *s, int64_t first, int64_t last)
{
    const sgm__product *p = &w->product;
    int64_t k = first_number(w, s->block), depth = numbers_of(w, s->block);
    for (int64_t at = 0; at < depth; at += NUMBERS_TOGETHER) {
        int64_t numbers = sgm__minimum(depth - at, NUMBERS_TOGETHER);
        fetch_ahead(w, first_row(w, first), first_row(w, last), k + at + NUMBERS_AHEAD, numbers);
        for (int64_t panel = first; panel < last; panel++) {
            int64_t row = first_row(w, panel), rows = first_row(w, panel + 1) - row;
            const unsigned char *from = p->a;
            from += (row + (k + at) * p->a_column) * (int64_t)w->size;
            w->tiles->copy_rows(packed_panel(w, s, panel) + (size_t)(at / w->pair * rows) * w->step_size,
                                rows, from, p->a_column, rows, numbers);
        }
    }
}

/* Packs row panels first .. last - 1 of one depth block into the slab. */
static void pack_panels(const work *w, const slab *s, int64_t first, int64_t last)
{
    const sgm__product *p = &w->product;
    int64_t k = first_number(w, s->block), depth = numbers_of(w, s->block);
    if (p->a_row == 1) {
        pack_transposed(w, s, first, last);
        return;
    }
    for (int64_t panel = first; panel < last; panel++) {
        int64_t row = first_row(w, panel), rows = first_row(w, panel + 1) - row;
        const unsigned char *from = p->a;
        from += (row * p->a_row + k * p->a_column) * (int64_t)w->size;
        pack(w, packed_panel(w, s, panel), from, p->a_row, p->a_column, rows, depth, rows);
    }
}

/* A task packs some row panels, of all depth blocks. */
static void pack_rows(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const work *w = context;
    int64_t first = part(w->row_panels, w->pack_tasks, task);
    int64_t last = part(w->row_panels, w->pack_tasks, task + 1);
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        slab s = whole_slab(w, block);
        pack_panels(w, &s, first, last);
    }
}

/* The padded width of a column panel in numbers, and in *columns how many of them exist. A panel with half of
 * a tile's columns or fewer is narrow: half as wide, for the tiles of one vector. */
static int64_t panel_width(const work *w, int64_t column_panel, int64_t *columns)
{
    int64_t left = w->product.n - column_panel * w->tiles->columns;
    *columns = sgm__minimum(left, w->tiles->columns);
    return *columns * 2 <= w->tiles->columns ? w->tiles->columns / 2 : w->tiles->columns;
}

/* Bytes from the beginning of all of b as panels to step `step` of a column panel. */
static size_t panel_offset(const work *w, int64_t column_panel, int64_t step, int64_t width)
{
    return (size_t)(column_panel * w->tiles->columns * w->steps + step * width) * w->step_size;
}

/* A task transposes one column panel of b, over all of k. */
static void turn_columns(void *context, int64_t column_panel, int32_t thread)
{
    (void)thread;
    const work *w = context;
    const sgm__product *p = &w->product;
    int64_t columns, width = panel_width(w, column_panel, &columns);
    const unsigned char *from = p->b;
    from += column_panel * w->tiles->columns * p->b_column * (int64_t)w->size;
    pack(w, w->transposed + panel_offset(w, column_panel, 0, width), from, p->b_column, p->b_row, columns,
         p->k, width);
}

size_t sgm__product_packed_bytes(const sgm__vector *vector, const sgm__product *product)
{
    work w = plan(vector, product);
    return whole_bytes(&w);
}

void sgm__product_pack(const sgm__vector *vector, const sgm__product *product, unsigned char *to)
{
    work w = plan(vector, product);
    w.transposed = to;
    for (int64_t i = 0; i < w.column_panels; i++)
        turn_columns(&w, i, 0);
}

/* --- products --- */

/* A tile at the right edge whose columns do not fill the panel: computed in full on the stack, with only its
 * real columns copied to c. The panel of b has zeros beyond them. */
static void run_edge(const work *w, sgm__tile tile, sgm__tile_function function, int64_t rows,
                     int64_t columns)
{
    _Alignas(64) unsigned char full[LARGEST_TILE];
    unsigned char *c = tile.c;
    int64_t stride = tile.c_stride;
    size_t bytes = (size_t)columns * w->size;
    tile.c = full;
    tile.c_stride = w->tiles->columns;
    if (tile.add && tile.sums == NULL)
        for (int64_t i = 0; i < rows; i++)
            memcpy(full + (size_t)(i * tile.c_stride) * w->size, c + (size_t)(i * stride) * w->size, bytes);
    function(&tile);
    for (int64_t i = 0; i < rows; i++)
        memcpy(c + (size_t)(i * stride) * w->size, full + (size_t)(i * tile.c_stride) * w->size, bytes);
}

/* Points the tile to row panel `panel` of a, packed or in place, whose first row is `row`. */
static void set_left(const work *w, const slab *s, int64_t panel, int64_t row, sgm__tile *tile)
{
    const sgm__product *p = &w->product;
    int64_t k = first_number(w, s->block);
    if (w->in_place) {
        tile->a = (const unsigned char *)p->a + (row * p->a_row + k * p->a_column) * (int64_t)w->size;
        tile->a_row = p->a_row / w->pair;
        tile->a_step = p->a_column;
    } else {
        tile->a = packed_panel(w, s, panel);
        tile->a_step = first_row(w, panel + 1) - row;
    }
}

/* Points the tile to where its results go: c, and for sums that are kept in float32, the slab's. */
static void set_result(const work *w, const slab *s, int64_t row, int64_t column, sgm__tile *tile)
{
    const sgm__product *p = &w->product;
    tile->c = (unsigned char *)p->c + (row * p->c_row + column) * (int64_t)w->size;
    if (w->sums_bytes == 0)
        return;
    tile->sums_stride = w->column_panels * w->tiles->columns;
    tile->sums = (float *)(void *)s->sums + (row - s->origin) * tile->sums_stride + column;
}

/* What a task does: row panels `first` to `last` - 1 by column panels `column` to `column_end` - 1. `now` is
 * the thread's memory for the panel of b that its tiles read, `next` that for the one after it. */
typedef struct share {
    int64_t first, last, column, column_end;
    unsigned char *now, *next;
    bool copied; /* `now` was filled while the panel before was used */
} share;

static share share_of(const work *w, int32_t thread, int64_t first, int64_t last, int64_t column,
                      int64_t column_end)
{
    unsigned char *panels = w->panels + (size_t)thread * 2 * w->panel_bytes;
    return (share){first, last, column, column_end, panels, panels + w->panel_bytes, false};
}

/* Where column panel `column_panel` of depth block `block` lies in b. */
static const unsigned char *panel_of_b(const work *w, int64_t block, int64_t column_panel)
{
    const sgm__product *p = &w->product;
    int64_t k = first_number(w, block), column = column_panel * w->tiles->columns;
    return (const unsigned char *)p->b + (k * p->b_row + column * p->b_column) * (int64_t)w->size;
}

/* Whether tiles can read the column panel in b itself: its rows are contiguous and full. */
static bool is_direct(const work *w, int64_t column_panel)
{
    int64_t columns, width = panel_width(w, column_panel, &columns);
    return w->pair == 1 && w->whole == NULL && w->product.b_column == 1 && columns == width;
}

/* The panel of b that a task needs after the one that it is at. */
typedef struct following {
    const unsigned char *from; /* NULL: there is none that is read in b itself */
    int64_t depth, copied;     /* rows: all, and those that are copied */
    bool copies; /* it is copied between tiles; else its first rows are fetched before the last */
} following;

/* The panel after column panel `column_panel` of depth block `block`, perhaps of the next block. */
static following panel_after(const work *w, const share *t, int64_t block, int64_t column_panel)
{
    bool same = column_panel + 1 < t->column_end;
    int64_t next = same ? column_panel + 1 : t->column, columns;
    block += same ? 0 : 1;
    if (!w->ahead || block == w->depth_blocks || !is_direct(w, next))
        return (following){NULL, 0, 0, false};
    bool wide = panel_width(w, next, &columns) == w->tiles->columns;
    return (following){panel_of_b(w, block, next), depth_of(w, block), 0,
                       wide && t->last - t->first >= PANELS_AHEAD};
}

/* Fetches rows of the following panel. */
static void fetch_rows(const work *w, const following *f, int64_t first, int64_t last)
{
    for (int64_t row = first; row < last && row < f->depth; row++)
        for (int64_t at = 0; at < w->tiles->columns * (int64_t)w->size; at += CACHE_LINE)
            __builtin_prefetch(f->from + row * w->product.b_row * (int64_t)w->size + at);
}

/* Before tile `index` of a column panel: copies the rows of the following panel that were fetched before the
 * last tile, and fetches as many for the next time. */
static void copy_ahead(const work *w, const share *t, following *f, int64_t index)
{
    int64_t parts = t->last - t->first - 1, width = w->tiles->columns, size = (int64_t)w->size;
    int64_t end = part(f->depth, parts, index);
    w->tiles->copy_rows(t->next + f->copied * width * size, width,
                        f->from + f->copied * w->product.b_row * size, w->product.b_row, width,
                        end - f->copied);
    f->copied = end;
    fetch_rows(w, f, end, part(f->depth, parts, index + 1));
}

/* Fetches what a tile of `rows` rows adds to. */
static void fetch_sums(const work *w, const sgm__tile *tile, int64_t rows, int64_t columns)
{
    int64_t row_bytes = tile->c_stride * (int64_t)w->size;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t at = 0; at < columns * (int64_t)w->size; at += CACHE_LINE)
            __builtin_prefetch((const unsigned char *)tile->c + i * row_bytes + at, 1);
}

/* Finds the panel of b for column panel `column_panel`, `width` wide, and points the tile to it: in all of
 * b as panels, or in b itself if it can be read `direct`ly; else it is in `now`, copied ahead or packed here.
 */
static void set_right(const work *w, const slab *s, int64_t column_panel, bool direct, const share *t,
                      sgm__tile *tile)
{
    const sgm__product *p = &w->product;
    int64_t columns, width = panel_width(w, column_panel, &columns);
    tile->b = panel_of_b(w, s->block, column_panel);
    tile->b_stride = p->b_row;
    if (direct)
        return;
    if (w->whole == NULL && !t->copied)
        pack(w, t->now, tile->b, p->b_column, p->b_row, columns, numbers_of(w, s->block), width);
    tile->b =
        w->whole == NULL ? t->now : w->whole + panel_offset(w, column_panel, first_step(w, s->block), width);
    tile->b_stride = width;
}

/* One column panel of one depth block. Where b can be read itself, it is if just one row panel reads it, or
 * else by the first tile, if that has all rows, while it stores it in `now` for the following ones (`keep`).
 */
static void run_panel(const work *w, const slab *s, int64_t column_panel, share *t)
{
    const sgm__product *p = &w->product;
    const sgm__tiles *tiles = w->tiles;
    const sgm__tile_functions *kind = !w->in_place       ? &tiles->packed
                                      : p->a_column == 1 ? &tiles->apart
                                                         : &tiles->transposed;
    int64_t columns, width = panel_width(w, column_panel, &columns), row_bytes = p->b_row * (int64_t)w->size;
    bool narrow = width != tiles->columns, several = t->last - t->first > 1;
    sgm__tile tile = {.depth = depth_of(w, s->block),
                      .keep = t->now,
                      .keep_ahead = row_bytes % PAGE != 0 ? ROWS_AHEAD : PAGES_AHEAD,
                      .c_stride = p->c_row,
                      .add = s->block > 0,
                      .rounds = s->block == w->depth_blocks - 1};
    bool direct = is_direct(w, column_panel) && !t->copied;
    bool keep =
        direct && !narrow && several && first_row(w, t->first + 1) - first_row(w, t->first) == tiles->rows;
    set_right(w, s, column_panel, keep || (direct && !several), t, &tile);
    following after = panel_after(w, t, s->block, column_panel);
    for (int64_t r = t->first; r < t->last; r++) {
        int64_t row = first_row(w, r), rows = first_row(w, r + 1) - row;
        set_left(w, s, r, row, &tile);
        set_result(w, s, row, column_panel * tiles->columns, &tile);
        if (after.copies)
            copy_ahead(w, t, &after, r - t->first);
        else if (after.from != NULL && r == t->last - 1)
            fetch_rows(w, &after, 0, tile.keep_ahead);
        if (tile.add && tile.sums == NULL)
            fetch_sums(w, &tile, rows, columns);
        sgm__tile_function function = narrow ? kind->narrow[rows - 1] : kind->wide[rows - 1];
        if (keep && r == t->first) {
            kind->keep(&tile);
            tile.b = t->now;
            tile.b_stride = width;
        } else if (columns == width || (w->pair > 1 && !tile.rounds)) {
            function(&tile);
        } else {
            run_edge(w, tile, function, rows, columns);
        }
    }
    t->copied = after.copies;
    if (t->copied) {
        unsigned char *used = t->now;
        t->now = t->next;
        t->next = used;
    }
}

/* Whether column panels `column` and the next ones can be done at once: one row, whose panels of b come
 * packed and are whole. */
static bool is_row(const work *w, int64_t column, int64_t end)
{
    int64_t last = column + SGM__ROW_PANELS;
    return w->product.m == 1 && w->pair == 1 && w->whole != NULL && last <= end &&
           last * w->tiles->columns <= w->product.n;
}

/* SGM__ROW_PANELS column panels of the only row, of all depth blocks: b is read in the order of memory. */
static void run_row(const work *w, int64_t column)
{
    const sgm__product *p = &w->product;
    int64_t width = w->tiles->columns;
    sgm__tile tile = {.c = (unsigned char *)p->c + column * width * (int64_t)w->size};
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        slab s = whole_slab(w, block);
        set_left(w, &s, 0, 0, &tile);
        tile.depth = depth_of(w, block);
        tile.b = w->whole + panel_offset(w, column, first_step(w, block), width);
        tile.add = block > 0;
        w->tiles->row(&tile, width * w->steps);
    }
}

/* A task of post_rows: packs its rows and does all their columns, depth block after depth block, while the
 * rows are in the second cache. */
static void run_rows(void *context, int64_t index, int32_t thread)
{
    const work *w = context;
    share t = share_of(w, thread, part(w->row_panels, w->row_tasks, index),
                       part(w->row_panels, w->row_tasks, index + 1), 0, w->column_panels);
    slab s = {w->packed + (size_t)thread * w->packed_bytes, w->sums + (size_t)thread * w->sums_bytes,
              first_row(w, t.first), 0};
    for (; s.block < w->depth_blocks; s.block++) {
        if (!w->in_place)
            pack_panels(w, &s, t.first, t.last);
        for (int64_t c = t.column; c < t.column_end; c++)
            run_panel(w, &s, c, &t);
    }
}

/* A task of post_columns: some column panels of some row panels. Task numbers go through the row tasks first.
 */
static void run_task(void *context, int64_t index, int32_t thread)
{
    const work *w = context;
    int64_t row_task = index % w->row_tasks, column_task = index / w->row_tasks;
    share t = share_of(w, thread, part(w->row_panels, w->row_tasks, row_task),
                       part(w->row_panels, w->row_tasks, row_task + 1),
                       part(w->column_panels, w->column_tasks, column_task),
                       part(w->column_panels, w->column_tasks, column_task + 1));
    for (; is_row(w, t.column, t.column_end); t.column += SGM__ROW_PANELS)
        run_row(w, t.column);
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        slab s = whole_slab(w, block);
        for (int64_t c = t.column; c < t.column_end; c++)
            run_panel(w, &s, c, &t);
    }
}

/* A product with k = 0 is zero. */
static void clear(const work *w)
{
    const sgm__product *p = &w->product;
    for (int64_t i = 0; i < p->m; i++)
        memset((unsigned char *)p->c + (size_t)(i * p->c_row) * w->size, 0, (size_t)p->n * w->size);
}

/* Posts a loop, or, if `threads` is 1, runs it here once the loops that it needs are done. */
static void post(sgm__pool *pool, int32_t threads, int64_t tasks, sgm__pool_task task, work *w)
{
    if (threads > 1) {
        sgm__pool_post(pool, tasks, task, w, sizeof *w);
        return;
    }
    sgm__pool_ready(pool);
    for (int64_t i = 0; i < tasks; i++)
        task(w, i, 0);
}

/* A multiple of the threads as tasks, so that all threads end at about the same time, each of at most
 * panels_together row panels. */
static void post_rows(sgm__pool *pool, work *w, int32_t threads)
{
    w->row_tasks = sgm__divide_up(sgm__divide_up(w->row_panels, panels_together(w)), threads) * threads;
    w->row_tasks = sgm__minimum(w->row_tasks, w->row_panels);
    if (w->transposed != NULL)
        post(pool, threads, w->column_panels, turn_columns, w);
    post(pool, threads, w->row_tasks, run_rows, w);
}

/* Columns are shared first, as tasks of different columns read b only once among them; rows also, where there
 * are fewer column panels than threads. */
static void post_columns(sgm__pool *pool, work *w, int32_t threads)
{
    w->row_tasks = w->column_tasks = w->pack_tasks = 1;
    if (threads > 1) {
        w->column_tasks = sgm__minimum(w->column_panels, threads * TASKS_PER_THREAD);
        w->row_tasks = w->column_panels >= threads ? 1 : sgm__minimum(w->row_panels, threads);
        w->pack_tasks = sgm__minimum(w->row_panels, threads * TASKS_PER_THREAD);
    }
    if (!w->in_place)
        post(pool, threads, w->pack_tasks, pack_rows, w);
    post(pool, threads, w->column_tasks * w->row_tasks, run_task, w);
}

void sgm__product_post(const sgm__vector *vector, sgm__pool *pool, const sgm__product *product,
                       unsigned char *scratch)
{
    if (sgm__product_is_small(vector, product)) {
        sgm__pool_ready(pool);
        sgm__product_run_small(vector, product, scratch);
        return;
    }
    work w = plan(vector, product);
    if (product->m == 0 || product->n == 0 || product->k == 0) {
        sgm__pool_ready(pool);
        clear(&w);
        return;
    }
    double multiplications = (double)product->m * (double)product->n * (double)product->k;
    int32_t threads = pool == NULL || multiplications < SGM__PRODUCT_SMALL_WORK ? 1 : sgm__pool_threads(pool);
    size_t slabs = w.by_rows ? (size_t)threads : 1;
    w.packed = scratch;
    w.sums = w.packed + w.packed_bytes * slabs;
    w.panels = w.sums + w.sums_bytes * slabs;
    w.transposed = w.transposed_bytes > 0 ? w.panels + (size_t)threads * 2 * w.panel_bytes : NULL;
    w.whole = product->packed != NULL ? product->packed : w.transposed;
    if (w.by_rows)
        post_rows(pool, &w, threads);
    else
        post_columns(pool, &w, threads);
}
