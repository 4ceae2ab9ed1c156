/* Matrix products by tiles of panels, posted as tasks to the pool.
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
 * - Where b shall be rounded to bfloat16 (rounds_b) all its panels are packed, and rounded in the first
 * cache.
 * - k is cut into depth blocks; from the second block on, tiles add to c.
 * - bfloat16 is multiplied in pairs of neighbouring numbers along k: a step of a tile is a pair, and packing
 *   puts pairs together (vector/vector_pairs.h). Sums of several depth blocks are kept in float32 until the
 *   last one rounds them into c.
 *
 * - With AMX tiles of bfloat16 are blocks of 32 by 32 (blocks_amx.c). They read rows of a, packed or
 * not, as rows, whose numbers of all steps lie together.
 *
 * Two ways to share: with few row panels a is packed by one loop, and tasks of a second loop do some columns
 * each (post_columns); with many, each task packs some rows for itself and does all their columns
 * (post_rows). How a product is cut is decided in product_cut.c. */
#include "handlers/cpu/product/product_cut.h"

/* Bytes of the largest tile of any instruction set: a block of bfloat16. */
#define LARGEST_TILE (SGM__BLOCK_ROWS * SGM__BLOCK_COLUMNS * 2)
/* Rows of b that a tile fetches ahead while it stores them, as they come from far away. */
#define ROWS_AHEAD 32
/* The same if rows of b lie whole pages apart: no more lines fit into one set of the first cache. */
#define PAGES_AHEAD 12
/* Row panels of a task from which on the next panel of b is copied between tiles: with fewer, too much would
 * have to be fetched before each. */
#define PANELS_AHEAD 8
/* Several tasks for each thread, so that threads that start late get less of the work. */
#define TASKS_PER_THREAD 4

/* A tile at the right edge whose columns do not fill the panel: computed in full on the stack, with only its
 * real columns copied to c. The panel of b has zeros beyond them. */
static void run_edge(const sgm__cut *w, sgm__tile tile, sgm__tile_function function, int64_t rows,
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

/* Points the tile to the row panel of a, packed or in place, of `rows` rows from `row` on. */
static void set_left(const sgm__cut *w, const sgm__slab *s, int64_t row, int64_t rows, sgm__tile *tile)
{
    const sgm__product *p = &w->product;
    tile->rows = (int32_t)rows;
    if (w->in_place) {
        tile->a = (const unsigned char *)p->a + (row * p->a_row + s->number * p->a_column) * (int64_t)w->size;
        tile->a_row = p->a_row / w->pair;
        tile->a_step = p->a_column;
    } else {
        tile->a = sgm__slab_panel(w, s, row);
        tile->a_row = s->depth; /* of blocks */
        tile->a_step = tile->rows;
    }
}

/* Points the tile to where its results go: c, and for sums that are kept in float32, the slab's. */
static void set_result(const sgm__cut *w, const sgm__slab *s, int64_t row, int64_t column, sgm__tile *tile)
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
    bool copied;        /* `now` was filled while the panel before was used */
    int32_t configured; /* sgm__tile has it */
} share;

static share share_of(const sgm__cut *w, int32_t thread, int64_t first, int64_t last, int64_t column,
                      int64_t column_end)
{
    unsigned char *panels = w->panels + (size_t)thread * 2 * w->panel_bytes;
    return (share){first, last, column, column_end, panels, panels + w->panel_bytes, false, 0};
}

/* Once a task has computed its last tile. */
static void end_share(const sgm__cut *w)
{
    if (w->tiles->block_end != NULL)
        w->tiles->block_end();
}

/* Where column panel `column_panel` of depth block `block` lies in b. */
static const unsigned char *panel_of_b(const sgm__cut *w, int64_t block, int64_t column_panel)
{
    const sgm__product *p = &w->product;
    int64_t k = sgm__cut_number(w, block), column = column_panel * w->tiles->columns;
    return (const unsigned char *)p->b + (k * p->b_row + column * p->b_column) * (int64_t)w->size;
}

/* Whether the column panel lies in b as tiles read it: its rows are contiguous and full. */
static bool lies_ready(const sgm__cut *w, int64_t column_panel)
{
    int64_t columns, width = sgm__cut_width(w, column_panel, &columns);
    return w->pair == 1 && w->whole == NULL && w->product.b_column == 1 && columns == width;
}

/* Whether tiles can read it there: its numbers need no rounding. */
static bool is_direct(const sgm__cut *w, int64_t column_panel)
{
    return lies_ready(w, column_panel) && !w->product.rounds_b;
}

/* The panel of b that a task needs after the one that it is at. */
typedef struct following {
    const unsigned char *from; /* NULL: there is none that is read in b itself */
    int64_t depth, copied;     /* rows: all, and those that are copied */
    bool copies; /* it is copied between tiles; else its first rows are fetched before the last */
} following;

/* The panel after column panel `column_panel` of depth block `block`, perhaps of the next block. */
static following panel_after(const sgm__cut *w, const share *t, int64_t block, int64_t column_panel)
{
    bool same = column_panel + 1 < t->column_end;
    int64_t next = same ? column_panel + 1 : t->column, columns;
    block += same ? 0 : 1;
    if (!w->ahead || block == w->depth_blocks || !lies_ready(w, next))
        return (following){NULL, 0, 0, false};
    bool wide = sgm__cut_width(w, next, &columns) == w->tiles->columns;
    return (following){panel_of_b(w, block, next), sgm__cut_depth(w, block), 0,
                       wide && t->last - t->first >= PANELS_AHEAD};
}

/* Fetches rows of the following panel. */
static void fetch_rows(const sgm__cut *w, const following *f, int64_t first, int64_t last)
{
    for (int64_t row = first; row < last && row < f->depth; row++)
        for (int64_t at = 0; at < w->tiles->columns * (int64_t)w->size; at += SGM__CACHE_LINE)
            __builtin_prefetch(f->from + row * w->product.b_row * (int64_t)w->size + at);
}

/* Before tile `index` of a column panel: copies the rows of the following panel that were fetched before the
 * last tile, and fetches as many for the next time. */
static void copy_ahead(const sgm__cut *w, const share *t, following *f, int64_t index)
{
    int64_t parts = t->last - t->first - 1, width = w->tiles->columns, size = (int64_t)w->size;
    int64_t end = sgm__cut_part(f->depth, parts, index);
    unsigned char *to = t->next + f->copied * width * size;
    w->tiles->copy_rows(to, width, f->from + f->copied * w->product.b_row * size, w->product.b_row, width,
                        end - f->copied);
    sgm__round_right(w, to, (end - f->copied) * width);
    f->copied = end;
    fetch_rows(w, f, end, sgm__cut_part(f->depth, parts, index + 1));
}

/* Fetches what a tile of `rows` rows adds to. */
static void fetch_sums(const sgm__cut *w, const sgm__tile *tile, int64_t rows, int64_t columns)
{
    int64_t row_bytes = tile->c_stride * (int64_t)w->size;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t at = 0; at < columns * (int64_t)w->size; at += SGM__CACHE_LINE)
            __builtin_prefetch((const unsigned char *)tile->c + i * row_bytes + at, 1);
}

/* Finds the panel of b for column panel `column_panel`, `width` wide, and points the tile to it: in all of
 * b as panels, or in b itself if it can be read `direct`ly; else it is in `now`, copied ahead or packed here.
 */
static void set_right(const sgm__cut *w, const sgm__slab *s, int64_t column_panel, bool direct,
                      const share *t, sgm__tile *tile)
{
    const sgm__product *p = &w->product;
    int64_t columns, width = sgm__cut_width(w, column_panel, &columns);
    tile->b = panel_of_b(w, s->block, column_panel);
    tile->b_stride = p->b_row;
    if (direct)
        return;
    if (w->whole == NULL && !t->copied)
        sgm__pack_right(w, t->now, tile->b, columns, s->numbers, width);
    tile->b = w->whole == NULL ? t->now : w->whole + sgm__cut_offset(w, column_panel, s->step, width);
    tile->b_stride = width;
}

/* What computes a tile of `rows` rows. */
static sgm__tile_function function_of(const sgm__cut *w, const sgm__tile_functions *kind, bool narrow,
                                      int64_t rows)
{
    if (w->tiles->block != NULL)
        return w->tiles->block;
    return narrow ? kind->narrow[rows - 1] : kind->wide[rows - 1];
}

/* One column panel of one depth block. Where b can be read itself, it is if just one row panel reads it, or
 * else by the first tile, if that has all rows, while it stores it in `now` for the following ones (`keep`).
 */
static void run_panel(const sgm__cut *w, const sgm__slab *s, int64_t column_panel, share *t)
{
    const sgm__product *p = &w->product;
    const sgm__tiles *tiles = w->tiles;
    const sgm__tile_functions *kind = !w->in_place       ? &tiles->packed
                                      : p->a_column == 1 ? &tiles->apart
                                                         : &tiles->transposed;
    int64_t first_row = sgm__cut_row(w, t->first), row_bytes = p->b_row * (int64_t)w->size;
    int64_t columns, width = sgm__cut_width(w, column_panel, &columns);
    bool narrow = width != tiles->columns, several = t->last - t->first > 1;
    sgm__tile tile = {.depth = w->in_place ? sgm__divide_up(s->numbers, w->pair) : s->depth,
                      .keep = t->now,
                      .keep_ahead = row_bytes % SGM__PAGE != 0 ? ROWS_AHEAD : PAGES_AHEAD,
                      .c_stride = p->c_row,
                      .add = s->block > 0,
                      .rounds = s->block == w->depth_blocks - 1,
                      .columns = (int32_t)width,
                      .configured = &t->configured};
    bool direct = is_direct(w, column_panel) && !t->copied;
    bool keep = direct && !narrow && several && sgm__cut_row(w, t->first + 1) - first_row == tiles->rows;
    set_right(w, s, column_panel, keep || (direct && !several), t, &tile);
    following after = panel_after(w, t, s->block, column_panel);
    for (int64_t r = t->first, row = first_row, rows; r < t->last; r++, row += rows) {
        rows = sgm__cut_row(w, r + 1) - row;
        set_left(w, s, row, rows, &tile);
        set_result(w, s, row, column_panel * tiles->columns, &tile);
        if (after.copies)
            copy_ahead(w, t, &after, r - t->first);
        else if (after.from != NULL && r == t->last - 1)
            fetch_rows(w, &after, 0, tile.keep_ahead);
        if (tile.add && tile.sums == NULL)
            fetch_sums(w, &tile, rows, columns);
        sgm__tile_function function = function_of(w, kind, narrow, rows);
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
static bool is_row(const sgm__cut *w, int64_t column, int64_t end)
{
    int64_t last = column + SGM__ROW_PANELS;
    return w->product.m == 1 && w->pair == 1 && w->whole != NULL && last <= end &&
           last * w->tiles->columns <= w->product.n;
}

/* SGM__ROW_PANELS column panels of the only row, of all depth blocks: b is read in the order of memory. */
static void run_row(const sgm__cut *w, int64_t column)
{
    const sgm__product *p = &w->product;
    int64_t width = w->tiles->columns;
    sgm__tile tile = {.c = (unsigned char *)p->c + column * width * (int64_t)w->size};
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        sgm__slab s = sgm__slab_whole(w, block);
        set_left(w, &s, 0, 1, &tile);
        tile.depth = s.depth;
        tile.b = w->whole + sgm__cut_offset(w, column, s.step, width);
        tile.add = block > 0;
        w->tiles->row(&tile, width * w->steps);
    }
}

/* A task of post_rows: packs its rows and does all their columns, depth block after depth block, while the
 * rows are in the second cache. */
static void run_rows(void *context, int64_t index, int32_t thread)
{
    const sgm__cut *w = context;
    share t = share_of(w, thread, sgm__cut_part(w->row_panels, w->row_tasks, index),
                       sgm__cut_part(w->row_panels, w->row_tasks, index + 1), 0, w->column_panels);
    unsigned char *packed = w->packed + (size_t)thread * w->packed_bytes;
    unsigned char *sums = w->sums + (size_t)thread * w->sums_bytes;
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        sgm__slab s = sgm__slab_make(w, packed, sums, sgm__cut_row(w, t.first), block);
        if (!w->in_place)
            sgm__pack_panels(w, &s, t.first, t.last);
        for (int64_t c = t.column; c < t.column_end; c++)
            run_panel(w, &s, c, &t);
    }
    end_share(w);
}

/* A task of post_columns: some column panels of some row panels. Task numbers go through the row tasks first.
 */
static void run_task(void *context, int64_t index, int32_t thread)
{
    const sgm__cut *w = context;
    int64_t row_task = index % w->row_tasks, column_task = index / w->row_tasks;
    share t = share_of(w, thread, sgm__cut_part(w->row_panels, w->row_tasks, row_task),
                       sgm__cut_part(w->row_panels, w->row_tasks, row_task + 1),
                       sgm__cut_part(w->column_panels, w->column_tasks, column_task),
                       sgm__cut_part(w->column_panels, w->column_tasks, column_task + 1));
    for (; is_row(w, t.column, t.column_end); t.column += SGM__ROW_PANELS)
        run_row(w, t.column);
    for (int64_t block = 0; block < w->depth_blocks; block++) {
        sgm__slab s = sgm__slab_whole(w, block);
        for (int64_t c = t.column; c < t.column_end; c++)
            run_panel(w, &s, c, &t);
    }
    end_share(w);
}

/* A product with k = 0 is zero. */
static void clear(const sgm__cut *w)
{
    const sgm__product *p = &w->product;
    for (int64_t i = 0; i < p->m; i++)
        memset((unsigned char *)p->c + (size_t)(i * p->c_row) * w->size, 0, (size_t)p->n * w->size);
}

/* Posts a loop, or, if `threads` is 1, runs it here once the loops that it needs are done. */
static void post(sgm__pool *pool, int32_t threads, int64_t tasks, sgm__pool_task task, sgm__cut *w)
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
static void post_rows(sgm__pool *pool, sgm__cut *w, int32_t threads)
{
    w->row_tasks = sgm__divide_up(sgm__divide_up(w->row_panels, sgm__cut_together(w)), threads) * threads;
    w->row_tasks = sgm__minimum(w->row_tasks, w->row_panels);
    if (w->transposed != NULL)
        post(pool, threads, w->column_panels, sgm__pack_columns, w);
    post(pool, threads, w->row_tasks, run_rows, w);
}

/* Columns are shared first, as tasks of different columns read b only once among them; rows also, where there
 * are fewer column panels than threads. */
static void post_columns(sgm__pool *pool, sgm__cut *w, int32_t threads)
{
    w->row_tasks = w->column_tasks = w->pack_tasks = 1;
    if (threads > 1) {
        w->column_tasks = sgm__minimum(w->column_panels, threads * TASKS_PER_THREAD);
        w->row_tasks = w->column_panels >= threads ? 1 : sgm__minimum(w->row_panels, threads);
        w->pack_tasks = sgm__minimum(w->row_panels, threads * TASKS_PER_THREAD);
    }
    if (!w->in_place)
        post(pool, threads, w->pack_tasks, sgm__pack_rows, w);
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
    sgm__cut w = sgm__cut_make(vector, product);
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
