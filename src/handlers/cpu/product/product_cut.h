/* How a product is cut into panels, blocks and tasks, and what its operands look like once they are packed.
 * Internal: for the files product*.c alone.
 *
 * product_cut.c decides it, product_pack.c packs, product.c computes tiles. The layouts are explained in
 * product.c. */
#ifndef SGM_HANDLERS_CPU_PRODUCT_PRODUCT_CUT_H
#define SGM_HANDLERS_CPU_PRODUCT_PRODUCT_CUT_H

#include "handlers/cpu/product/product.h"

#define SGM__CACHE_LINE 64
/* Bytes. Addresses that are multiples of a page apart fall into the same set of the first cache and push each
 * other out. */
#define SGM__PAGE 4096
/* Steps of a panel of b: 26 KiB of the first cache for two vectors of 64 bytes. Depths of 264, 400 and 800
 * were not faster. */
#define SGM__MAXIMUM_DEPTH 208
/* The same of tiles of pairs, whose sums of each depth block go to memory and come back as float32: 208 take
 * 1.08 times as long, 1024 as long (docs/performance.md, Mixed precision). */
#define SGM__MAXIMUM_PAIRS 512
/* The same for blocks of bfloat16, and up to how many steps one depth block is better than two, which would
 * write c twice. */
#define SGM__WHOLE_DEPTH 256

/* How a product is cut, and where its scratch memory is. Decided by sgm__cut_make and sgm__product_post and
 * constant afterwards; tasks get a copy. */
typedef struct sgm__cut {
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
    /* Loops that cast to bfloat16 and back, where b is rounded; else NULL. */
    sgm__vector_function narrow, widen;
    size_t packed_bytes, panel_bytes, transposed_bytes, sums_bytes;
} sgm__cut;

/* --- product_cut.c --- */

/* All but the numbers of tasks and where memory is. Depends on shapes and strides alone, never on threads, as
 * the depth blocks decide the order of sums. */
sgm__cut sgm__cut_make(const sgm__vector *vector, const sgm__product *product);
/* The tiles of the product's type. */
const sgm__tiles *sgm__cut_tiles(const sgm__vector *vector, const sgm__product *product);
/* Row panels of a task of post_rows, at most. */
int64_t sgm__cut_together(const sgm__cut *w);

/* Where part `index` of `parts` begins; 0 if there are none. */
static inline int64_t sgm__cut_part(int64_t total, int64_t parts, int64_t index)
{
    return parts > 0 ? total * index / parts : 0;
}

/* The row at which row panel `panel` begins; `m` past the last. Panel 0 has a full tile's rows, since only
 * full tiles can store b while they read it (run_panel); the others share the rest evenly, as there is a tile
 * function for each number of rows. Blocks all have the same number but the last, as another number takes
 * setting up registers. */
static inline int64_t sgm__cut_row(const sgm__cut *w, int64_t panel)
{
    int64_t m = w->product.m, full = w->tiles->rows;
    if (w->tiles->block != NULL)
        return sgm__minimum(panel * full, m);
    if (panel == 0 || m <= full)
        return panel == 0 ? 0 : m;
    return full + sgm__cut_part(m - full, w->row_panels - 1, panel - 1);
}

/* The step at which a depth block begins; for blocks of bfloat16 a multiple of the steps that they take at a
 * time. */
static inline int64_t sgm__cut_step(const sgm__cut *w, int64_t block)
{
    if (w->tiles->block != NULL)
        return sgm__minimum(
            sgm__cut_part(sgm__divide_up(w->steps, SGM__BLOCK_STEPS), w->depth_blocks, block) *
                SGM__BLOCK_STEPS,
            w->steps);
    return sgm__cut_part(w->steps, w->depth_blocks, block);
}

/* Steps of a depth block. For blocks the last one is filled up with zeros, in what is packed. */
static inline int64_t sgm__cut_depth(const sgm__cut *w, int64_t block)
{
    return sgm__cut_step(w, block + 1) - sgm__cut_step(w, block);
}

/* The first number along k of a depth block; k past the last. */
static inline int64_t sgm__cut_number(const sgm__cut *w, int64_t block)
{
    return sgm__minimum(sgm__cut_step(w, block) * w->pair, w->product.k);
}

/* The padded width of a column panel in numbers, and in *columns how many of them exist. A panel with half of
 * a tile's columns or fewer is narrow: half as wide, for the tiles of one vector. */
static inline int64_t sgm__cut_width(const sgm__cut *w, int64_t column_panel, int64_t *columns)
{
    int64_t left = w->product.n - column_panel * w->tiles->columns;
    *columns = sgm__minimum(left, w->tiles->columns);
    return *columns * 2 <= w->tiles->columns ? w->tiles->columns / 2 : w->tiles->columns;
}

/* Bytes from the beginning of all of b as panels to step `step` of a column panel. */
static inline size_t sgm__cut_offset(const sgm__cut *w, int64_t column_panel, int64_t step, int64_t width)
{
    return (size_t)(column_panel * w->tiles->columns * w->steps + step * width) * w->step_size;
}

/* --- packing (product_pack.c) --- */

/* Memory with packed rows of a, from row `origin` on, of one depth block: row panel after row panel. And the
 * sums of these rows, if they are kept in float32. What is known of the block stands here, as to find it
 * takes divisions, and each tile reads it. */
typedef struct sgm__slab {
    unsigned char *at, *sums;
    int64_t origin, block;
    int64_t step, depth;     /* the block's first step, and how many it has */
    int64_t number, numbers; /* the same in numbers along k */
} sgm__slab;

static inline sgm__slab sgm__slab_make(const sgm__cut *w, unsigned char *at, unsigned char *sums,
                                       int64_t origin, int64_t block)
{
    int64_t number = sgm__cut_number(w, block);
    return (sgm__slab){.at = at,
                       .sums = sums,
                       .origin = origin,
                       .block = block,
                       .step = sgm__cut_step(w, block),
                       .depth = sgm__cut_depth(w, block),
                       .number = number,
                       .numbers = sgm__cut_number(w, block + 1) - number};
}

/* Depth block `block` of all rows of a: the blocks follow each other in `packed`. */
static inline sgm__slab sgm__slab_whole(const sgm__cut *w, int64_t block)
{
    size_t offset = (size_t)(sgm__cut_step(w, block) * w->product.m) * w->step_size;
    return sgm__slab_make(w, w->packed + offset, w->sums, 0, block);
}

/* The row panel that begins at row `row`. */
static inline unsigned char *sgm__slab_panel(const sgm__cut *w, const sgm__slab *s, int64_t row)
{
    return s->at + (size_t)((row - s->origin) * s->depth) * w->step_size;
}

/* target[k * padded + i] = source element (i, k) for i < width, zeros for i from width to padded. Element (i,
 * k) lies at source[i * stride + k * step]. Of pairs, two numbers of the source are an element of the target;
 * `depth` counts numbers. */
void sgm__pack(const sgm__cut *w, unsigned char *target, const unsigned char *source, int64_t stride,
               int64_t step, int64_t width, int64_t depth, int64_t padded);
/* The same of columns of b, rounded if the product says so. */
void sgm__pack_right(const sgm__cut *w, unsigned char *target, const unsigned char *source, int64_t width,
                     int64_t depth, int64_t padded);
/* Rounds `count` packed numbers of b, if the product says so. */
void sgm__round_right(const sgm__cut *w, unsigned char *numbers, int64_t count);
/* Packs row panels first .. last - 1 of one depth block into the slab. */
void sgm__pack_panels(const sgm__cut *w, const sgm__slab *s, int64_t first, int64_t last);
/* Tasks: some row panels, of all depth blocks; one column panel of b, over all of k. */
void sgm__pack_rows(void *context, int64_t task, int32_t thread);
void sgm__pack_columns(void *context, int64_t column_panel, int32_t thread);

#endif
