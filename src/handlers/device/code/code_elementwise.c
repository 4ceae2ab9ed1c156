/* Kernels of elementwise steps: a work-item computes all members of a step for one element, or for four.
 *
 * The formulas are written by sgm__source_write_members (handlers/source/source_elementwise.c); this file
 * decides which work-item computes which elements. Values between members stay in registers.
 */
#include "handlers/device/code/code_internal.h"

/* Elements of a work-item, where it has more than one: as many as random words come from one call. */
#define FEW 4

static bool has_draws(const sgm__device_render *r, const sgm__step *step)
{
    for (int32_t p = 0; p < step->count; p++)
        if (sgm__device_node(r, r->writer.plan->order[step->first + p])->op == &sgm__op_random_uniform)
            return true;
    return false;
}

/* Four neighbouring elements for each work-item, whose random numbers are drawn together in front of the
 * loop. */
static void open_fours(sgm__device_render *r, const sgm__step *step, int64_t count)
{
    sgm__source_writer *w = &r->writer;
    sgm__device_items(r, "item", (count + FEW - 1) / FEW);
    for (int32_t p = 0; p < step->count; p++) {
        int32_t node = w->plan->order[step->first + p];
        if (sgm__device_node(r, node)->op == &sgm__op_random_uniform)
            sgm__device_draw_four(r, node, "item * 4");
    }
    r->in_fours = true;
    sgm__source_line(w, "#pragma unroll");
    sgm__source_open(w, "for (int u = 0; u < %d; u++)", FEW);
    sgm__source_line(w, "const %s n = item * %d + u;", sgm__device_counter(r), FEW);
}

/* Four elements for each work-item, a group's width apart, so that neighbouring work-items touch neighbouring
 * elements in each turn of the loop. */
static void open_strides(sgm__device_render *r, int64_t count)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    int64_t each = FEW * SGM__DEVICE_GROUP;
    sgm__device_groups(r, NULL, (count + each - 1) / each, SGM__DEVICE_GROUP);
    sgm__source_line(w, "#pragma unroll");
    sgm__source_open(w, "for (int u = 0; u < %d; u++)", FEW);
    sgm__source_line(w, "const %s n = ((%s)GROUP * %d + u) * %d + ITEM;", counter, counter, FEW,
                     SGM__DEVICE_GROUP);
}

/* Four elements save indices and keep more loads under way, but only where enough elements are left to keep
 * all processors busy. */
sgm_status sgm__device_write_elementwise(sgm__device_render *r, int32_t s)
{
    sgm__source_writer *w = &r->writer;
    const sgm__step *step = &w->plan->steps[s];
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__source_walk walk;
    int64_t count = 1, busy = (int64_t)r->info->units * 2048; /* 2048 work-items for each processor fill it */
    sgm__source_find_walk(w, s, &walk);
    for (int32_t i = 0; i < walk.count; i++)
        count *= walk.sizes[i];
    sgm__device_begin(r);
    bool fours = count >= FEW && has_draws(r, step);
    bool strides =
        !fours && !r->info->is_processor && r->info->group >= SGM__DEVICE_GROUP && count >= FEW * busy;
    if (fours)
        open_fours(r, step, count);
    else if (strides)
        open_strides(r, count);
    else
        sgm__device_items(r, "n", count);
    if ((fours && count % FEW != 0) || (strides && count % (FEW * SGM__DEVICE_GROUP) != 0)) {
        sgm__source_line(w, "if (n >= %lld)", (long long)count);
        sgm__source_line(w, "    break;");
    }
    sgm__device_unravel(r, "n", &walk, index);
    sgm__source_write_members(w, s, &walk, index);
    if (fours || strides) {
        sgm__source_close(w, 1);
    }
    return sgm__device_end(r);
}
