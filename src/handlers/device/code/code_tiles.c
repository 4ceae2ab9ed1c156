/* Products on devices of many cores: a group holds a tile of both sides in local memory, and each work-item
 * sums a block of results in registers.
 *
 * The group goes through the depth in slices of DEEP: all work-items load a slice of both sides together,
 * wait, multiply it, and wait again. A work-item's results are `down` rows and `along` columns apart, so that
 * neighbours read neighbouring elements of local memory and write neighbouring results. code_product.c is the
 * caller.
 */
#include "handlers/device/code/code_contraction.h"

#define DEEP 16          /* depth of a slice */
#define MINIMUM_PART 256 /* of the depth: a part of fewer is not worth a group */

/* Work-items of a group (down x along) and results of each (high x wide): a tile is down high rows by along
 * wide columns. */
typedef struct tiling {
    int32_t down, high, along, wide;
} tiling;

/* Square tiles first, then flat and tall ones for products with few rows or columns. */
static const tiling tilings[] = {{16, 8, 16, 8}, {16, 4, 16, 8}, {16, 8, 16, 4}, {16, 4, 16, 4},
                                 {8, 4, 32, 4},  {4, 4, 64, 4},  {4, 2, 64, 4},  {32, 4, 8, 4},
                                 {64, 4, 4, 4},  {64, 4, 4, 2},  {16, 2, 16, 2}, {16, 1, 16, 1},
                                 {8, 4, 8, 4},   {8, 2, 8, 2}};

static int32_t items_of(const tiling *t)
{
    return t->down * t->along;
}

/* Whether both sides' slices fit into local memory and the work-items into a group. Rows in local memory are
 * one longer than needed, against conflicts of its banks. */
static bool fits(const sgm__device_render *r, const sgm__contraction *p, const tiling *t)
{
    int64_t rows = t->down * t->high + 1, columns = t->along * t->wide + 1;
    int64_t size = strcmp(p->type, "double") == 0 ? 8 : 4;
    return DEEP * (rows + columns) * size <= (int64_t)r->info->local &&
           (uint32_t)items_of(t) <= r->info->group;
}

/* Takes the tiling with the shortest estimated time, in multiplications that a work-item does one after the
 * other: its results and what it costs to load operands for them, times the rounds of groups on the device's
 * processors, times the depth of a part. The depth is divided if there are fewer than two groups for each
 * processor. False: no tiling fits the device. */
static bool choose(const sgm__device_render *r, const sgm__contraction *p, tiling *best,
                   sgm__contraction_parts *parts)
{
    double minimum = 0;
    for (size_t i = 0; i < sizeof tilings / sizeof *tilings; i++) {
        const tiling *t = &tilings[i];
        int64_t groups = p->batch * sgm__divide_up(p->rows, t->down * t->high) *
                         sgm__divide_up(p->columns, t->along * t->wide);
        int64_t units = r->info->units > 0 ? r->info->units : 1;
        int64_t count = sgm__minimum(sgm__divide_up(2 * units, groups), p->depth / MINIMUM_PART);
        count = count > 1 ? count : 1;
        double each = (double)t->high * t->wide * (1 + 2.0 / t->high + 2.0 / t->wide);
        double time =
            each * (double)sgm__divide_up(groups * count, units) * (double)sgm__divide_up(p->depth, count);
        if (!fits(r, p, t) || (minimum > 0 && time >= minimum))
            continue;
        minimum = time;
        *best = *t;
        parts->depth = sgm__divide_up(sgm__divide_up(p->depth, count), DEEP) * DEEP;
        parts->count = sgm__divide_up(p->depth, parts->depth);
    }
    return minimum > 0;
}

/* Lines that load a slice of one side into local memory, with zeros behind its end. Work-items follow the
 * direction in which elements lie side by side. */
static void load_side(sgm__device_render *r, const sgm__contraction *p, bool left, int32_t size,
                      int32_t items)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *name = left ? "row" : "column";
    bool deep = left ? sgm__contraction_left_is_deep(r, p) : sgm__contraction_right_is_deep(r, p);
    int64_t end = left ? p->rows : p->columns, each = DEEP * size;
    sgm__source_line(w, "#pragma unroll");
    sgm__source_open(w, "for (int u = 0; u < %lld; u++)", (long long)sgm__divide_up(each, items));
    sgm__source_line(w, "const int e = u * %d + ITEM;", items);
    if (each % items != 0) {
        sgm__source_line(w, "if (e >= %lld)", (long long)each);
        sgm__source_line(w, "    break;");
    }
    if (deep)
        sgm__source_line(w, "const int deep = e %% %d, side = e / %d;", DEEP, DEEP);
    else
        sgm__source_line(w, "const int side = e %% %d, deep = e / %d;", size, size);
    sgm__source_line(w, "const %s %s = %s_tile * %d + side, k = start + deep;", counter, name, name, size);
    sgm__source_line(w, "%s value = 0;", p->type);
    sgm__source_open(w, "if (%s < %lld && k < to)", name, (long long)end);
    const char *value = left ? sgm__contraction_left(r, p, "l", "row", "k")
                             : sgm__contraction_right(r, p, "r", "k", "column");
    sgm__source_line(w, "value = %s;", value);
    sgm__source_close(w, 1);
    sgm__source_line(w, "%s[deep][side] = value;", left ? "left" : "right");
    sgm__source_close(w, 1);
}

/* Lines that multiply a slice: each step of the depth loads high + wide numbers and does high x wide
 * multiply-adds. */
static void multiply(sgm__device_render *r, const sgm__contraction *p, const tiling *t)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "#pragma unroll");
    sgm__source_open(w, "for (int k = 0; k < %d; k++)", DEEP);
    sgm__source_line(w, "%s a[%d], b[%d];", p->type, t->high, t->wide);
    sgm__source_line(w, "#pragma unroll");
    sgm__source_line(w, "for (int i = 0; i < %d; i++)", t->high);
    sgm__source_line(w, "    a[i] = left[k][down + i * %d];", t->down);
    sgm__source_line(w, "#pragma unroll");
    sgm__source_line(w, "for (int j = 0; j < %d; j++)", t->wide);
    sgm__source_line(w, "    b[j] = right[k][along + j * %d];", t->along);
    sgm__source_line(w, "#pragma unroll");
    sgm__source_line(w, "for (int i = 0; i < %d; i++)", t->high);
    sgm__source_line(w, "#pragma unroll");
    sgm__source_line(w, "    for (int j = 0; j < %d; j++)", t->wide);
    sgm__source_line(w, "        sum[i][j] = sgm_fma(a[i], b[j], sum[i][j]);");
    sgm__source_close(w, 1);
}

/* The head of the loops over a work-item's results, unrolled so that sums stay in registers. */
static void open_block(sgm__device_render *r, const tiling *t)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "#pragma unroll");
    sgm__source_line(w, "for (int i = 0; i < %d; i++)", t->high);
    sgm__source_line(w, "#pragma unroll");
    w->depth++;
    sgm__source_open(w, "for (int j = 0; j < %d; j++)", t->wide);
}

static void close_block(sgm__device_render *r)
{
    sgm__source_close(&r->writer, 1);
    r->writer.depth--;
}

/* A device that no tiling fits leaves the step to the host. */
sgm_status sgm__device_write_tiles(sgm__device_render *r, const sgm__contraction *p,
                                   sgm__contraction_parts *parts)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    tiling t = tilings[0];
    if (!choose(r, p, &t, parts)) {
        w->failed = true;
        return SGM_OK;
    }
    int32_t high = t.down * t.high, wide = t.along * t.wide;
    int64_t row_tiles = sgm__divide_up(p->rows, high), column_tiles = sgm__divide_up(p->columns, wide);
    sgm__device_begin(r);
    sgm__device_groups(r, "tile", parts->count * p->batch * row_tiles * column_tiles, (uint32_t)items_of(&t));
    sgm__contraction_open(r, p, parts, row_tiles, column_tiles);
    sgm__source_line(w, "const int along = ITEM %% %d, down = ITEM / %d;", t.along, t.along);
    sgm__source_line(w, "LOCAL %s left[%d][%d];", p->type, DEEP, high + 1);
    sgm__source_line(w, "LOCAL %s right[%d][%d];", p->type, DEEP, wide + 1);
    sgm__source_line(w, "%s sum[%d][%d];", p->type, t.high, t.wide);
    open_block(r, &t);
    sgm__source_line(w, "sum[i][j] = 0;");
    close_block(r);
    sgm__source_open(w, "for (%s start = from; start < to; start += %d)", counter, DEEP);
    load_side(r, p, true, high, items_of(&t));
    load_side(r, p, false, wide, items_of(&t));
    sgm__source_line(w, "BARRIER;");
    multiply(r, p, &t);
    sgm__source_line(w, "BARRIER;");
    sgm__source_close(w, 1);
    open_block(r, &t);
    sgm__source_line(w, "const %s row = row_tile * %d + down + i * %d;", counter, high, t.down);
    sgm__source_line(w, "const %s column = column_tile * %d + along + j * %d;", counter, wide, t.along);
    sgm__source_open(w, "if (row < %lld && column < %lld)", (long long)p->rows, (long long)p->columns);
    sgm__contraction_keep(r, p, parts, "sum[i][j]");
    sgm__source_close(w, 1);
    close_block(r);
    return sgm__device_end(r);
}
