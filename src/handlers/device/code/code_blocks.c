/* Products on a computer's own processor (OpenCL by PoCL): a group is one work-item, which computes a tile of
 * results.
 *
 * The work-item goes through the depth in slices of DEEP. Of each slice it packs the right side's panels of
 * WIDE columns and, one at a time, the left side's strips of HIGH rows into private memory, and adds their
 * products to its sums in blocks of HIGH x WIDE numbers, which fit into vector registers: 12 sums, 2 of the
 * right side and one of the left make 15 vectors of 16 numbers. The scheme is that of Goto and van de Geijn
 * (2008). code_product.c is the caller.
 */
#include "handlers/device/code/code_contraction.h"

/* Numbers of a VECTOR, see code.h. A block is HIGH rows by WIDE columns; DEEP is the depth of a slice. */
#define LANES 16
#define WIDE (2 * LANES)
#define HIGH 6
#define DEEP 128
#define MAXIMUM_STRIPS 16 /* strips (of HIGH rows) of one work-item */
#define MAXIMUM_PANELS 4  /* panels (of WIDE columns) of one work-item */
#define MINIMUM_PART 512  /* of the depth: a part of fewer is not worth a work-item */

/* The tiles of a product, each of `strips` x `panels` blocks. */
typedef struct blocking {
    int64_t strips, panels, row_tiles, column_tiles; /* of a tile; and how many tiles there are */
} blocking;

/* Begins with the largest tiles, which pack the least, and halves them until there are four for each
 * processor; then, if there are still too few, divides the depth into parts. */
static blocking choose(const sgm__device_render *r, const sgm__contraction *p, sgm__contraction_parts *parts)
{
    int64_t strips = sgm__divide_up(p->rows, HIGH), panels = sgm__divide_up(p->columns, WIDE),
            wanted = 4 * (int64_t)r->info->units;
    blocking b = {.row_tiles = sgm__divide_up(strips, MAXIMUM_STRIPS),
                  .column_tiles = sgm__divide_up(panels, MAXIMUM_PANELS)};
    while (b.row_tiles * b.column_tiles * p->batch < wanted && 2 * b.column_tiles <= panels)
        b.column_tiles *= 2;
    while (b.row_tiles * b.column_tiles * p->batch < wanted && 4 * b.row_tiles <= strips)
        b.row_tiles *= 2;
    b.strips = sgm__divide_up(strips, b.row_tiles);
    b.panels = sgm__divide_up(panels, b.column_tiles);
    b.row_tiles = sgm__divide_up(strips, b.strips);
    b.column_tiles = sgm__divide_up(panels, b.panels);
    int64_t count = sgm__minimum(sgm__divide_up(wanted, b.row_tiles * b.column_tiles * p->batch),
                                 p->depth / MINIMUM_PART);
    count = count > 1 ? count : 1;
    parts->depth = sgm__divide_up(sgm__divide_up(p->depth, count), DEEP) * DEEP;
    parts->count = sgm__divide_up(p->depth, parts->depth);
    return b;
}

/* Lines that copy a slice of one side: right[panel][depth][column], or left[depth][row] of one strip. The
 * loop over what lies side by side in memory is the inner one. Rows and columns behind the last are copies of
 * the last: their sums are never read. */
static void pack(sgm__device_render *r, const sgm__contraction *p, bool left)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *name = left ? "row" : "column";
    bool deep = left ? sgm__contraction_left_is_deep(r, p) : sgm__contraction_right_is_deep(r, p);
    int32_t wide = left ? HIGH : WIDE;
    int64_t last = (left ? p->rows : p->columns) - 1;
    const char *sides = sgm__source_format(w, "for (int s = 0; s < %d; s++)", wide);
    const char *depths = "for (int d = 0; d < deep; d++)";
    sgm__source_line(w, "%s", deep ? sides : depths);
    w->depth++;
    sgm__source_open(w, "%s", deep ? depths : sides);
    sgm__source_line(w, "const %s whole = (%s_tile * %s) * %d + s;", counter, name,
                     left ? "STRIPS + strip" : "PANELS + panel", wide);
    sgm__source_line(w, "const %s %s = whole < %lld ? whole : %lld, k = start + d;", counter, name,
                     (long long)last, (long long)last);
    const char *value = left ? sgm__contraction_left(r, p, "l", "row", "k")
                             : sgm__contraction_right(r, p, "r", "k", "column");
    if (left)
        sgm__source_line(w, "left[d * %d + s] = %s;", HIGH, value);
    else
        sgm__source_line(w, "right[(panel * %d + d) * %d + s] = %s;", DEEP, WIDE, value);
    sgm__source_close(w, 1);
    w->depth--;
}

/* Lines that add the product of a strip and a panel to the block's sums. */
static void multiply(sgm__device_render *r, const sgm__contraction *p)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "%s *const block = sums + (strip * PANELS + panel) * %d;", p->type, HIGH * WIDE);
    for (int i = 0; i < HIGH; i++)
        sgm__source_line(w, "VECTOR(%s) a%d = LOAD_VECTOR(block + %d), b%d = LOAD_VECTOR(block + %d);",
                         p->type, i, i * WIDE, i, i * WIDE + LANES);
    sgm__source_open(w, "for (int d = 0; d < deep; d++)");
    sgm__source_line(w, "const %s *const from = right + (panel * %d + d) * %d;", p->type, DEEP, WIDE);
    sgm__source_line(w, "const VECTOR(%s) a = LOAD_VECTOR(from), b = LOAD_VECTOR(from + %d);", p->type,
                     LANES);
    for (int i = 0; i < HIGH; i++) {
        sgm__source_line(w, "a%d += left[d * %d + %d] * a;", i, HIGH, i);
        sgm__source_line(w, "b%d += left[d * %d + %d] * b;", i, HIGH, i);
    }
    sgm__source_close(w, 1);
    for (int i = 0; i < HIGH; i++) {
        sgm__source_line(w, "STORE_VECTOR(a%d, block + %d);", i, i * WIDE);
        sgm__source_line(w, "STORE_VECTOR(b%d, block + %d);", i, i * WIDE + LANES);
    }
}

/* Lines that store the tile's sums, apart from those behind the last row or column. */
static void keep(sgm__device_render *r, const sgm__contraction *p, const blocking *b,
                 const sgm__contraction_parts *parts)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    int64_t high = b->strips * HIGH, wide = b->panels * WIDE;
    sgm__source_line(w, "for (int i = 0; i < %lld; i++)", (long long)high);
    w->depth++;
    sgm__source_open(w, "for (int j = 0; j < %lld; j++)", (long long)wide);
    sgm__source_line(w, "const %s row = row_tile * %lld + i, column = column_tile * %lld + j;", counter,
                     (long long)high, (long long)wide);
    sgm__source_line(w, "if (row >= %lld || column >= %lld)", (long long)p->rows, (long long)p->columns);
    sgm__source_line(w, "    continue;");
    sgm__contraction_keep(
        r, p, parts,
        sgm__source_format(w, "sums[((i / %d) * %lld + j / %d) * %d + i %% %d * %d + j %% %d]", HIGH,
                           (long long)b->panels, WIDE, HIGH * WIDE, HIGH, WIDE, WIDE));
    sgm__source_close(w, 1);
    w->depth--;
}

sgm_status sgm__device_write_blocks(sgm__device_render *r, const sgm__contraction *p,
                                    sgm__contraction_parts *parts)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    blocking b = choose(r, p, parts);
    sgm__device_begin(r);
    sgm__device_groups(r, "tile", parts->count * p->batch * b.row_tiles * b.column_tiles, 1);
    sgm__contraction_open(r, p, parts, b.row_tiles, b.column_tiles);
    sgm__source_line(w, "enum { STRIPS = %lld, PANELS = %lld };", (long long)b.strips, (long long)b.panels);
    sgm__source_line(w, "%s right[PANELS * %d], left[%d], sums[STRIPS * PANELS * %d];", p->type, DEEP * WIDE,
                     DEEP * HIGH, HIGH * WIDE);
    sgm__source_line(w, "for (int i = 0; i < STRIPS * PANELS * %d; i++)", HIGH * WIDE);
    sgm__source_line(w, "    sums[i] = 0;");
    sgm__source_open(w, "for (%s start = from; start < to; start += %d)", counter, DEEP);
    sgm__source_line(w, "const int deep = to - start < %d ? to - start : %d;", DEEP, DEEP);
    sgm__source_line(w, "for (int panel = 0; panel < PANELS; panel++)");
    w->depth++;
    pack(r, p, false);
    w->depth--;
    sgm__source_open(w, "for (int strip = 0; strip < STRIPS; strip++)");
    pack(r, p, true);
    sgm__source_open(w, "for (int panel = 0; panel < PANELS; panel++)");
    multiply(r, p);
    sgm__source_close(w, 3);
    keep(r, p, &b, parts);
    return sgm__device_end(r);
}
