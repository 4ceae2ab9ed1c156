/* Reductions: sum, largest and smallest over any axes, with kernels by how the operand lies in memory.
 *
 * Where neighbouring results are read side by side (a sum over rows), each result has a work-item; otherwise
 * a group reads a result's elements side by side and puts them together by a tree in local memory. A
 * computer's own processor uses vector lanes instead. Where results are few, elements are divided into parts,
 * whose values a second kernel puts together. The order is always the same, and so are the bits.
 */
#include "handlers/device/code/code_internal.h"

#define MINIMUM_PART 64 /* elements: a part of fewer is not worth a work-item */
#define MAXIMUM_PARTS 256
#define LANES 16 /* partial values on a computer's own processor, which its compiler makes vectors of */
#define SHORT 16 /* elements, or parts, that one work-item reads one after the other */

/* A reduction and how it is divided. Numbers of parts and elements are known when the text is written. */
typedef struct reduction {
    int32_t node, operand;
    sgm_dtype dtype;
    const char *type, *begin;      /* the type of partial values; the value of no elements */
    sgm__source_walk outer, inner; /* the operand's axes that stay, and those that are reduced */
    int64_t results, elements;
    /* Neighbouring results, rather than elements of one result, are neighbours in memory. */
    bool side_by_side;
    int64_t parts, part, scratch; /* how many, elements of each, offset of their values */
} reduction;

/* --- what is done with two of them --- */

/* The neutral element of the operation. */
static const char *first_value(const sgm_op *op, sgm_dtype dtype)
{
    bool largest = op == &sgm__op_reduce_max;
    if (op == &sgm__op_reduce_sum)
        return "0";
    switch ((int)dtype) {
    case SGM_INT64:
        return largest ? "INT64_MIN" : "INT64_MAX";
    case SGM_INT32:
        return largest ? "(-2147483647 - 1)" : "2147483647";
    case SGM_BOOL:
    case SGM_UINT8:
        return largest ? "0" : "255";
    default:
        return largest ? "-INFINITY" : "INFINITY";
    }
}

/* A line "a = a combined with b;". NaN counts as larger and as smaller than all numbers. */
static void put_together(sgm__device_render *r, const reduction *d, const char *a, const char *b)
{
    const sgm_op *op = sgm__device_node(r, d->node)->op;
    const char *sign = op == &sgm__op_reduce_max ? ">" : "<";
    if (op == &sgm__op_reduce_sum)
        sgm__source_line(&r->writer, "%s += %s;", a, b);
    else if (sgm_dtype_is_float(d->dtype)) /* NaN wins over all numbers */
        sgm__source_line(&r->writer, "%s = %s %s %s || %s != %s ? %s : %s;", a, b, sign, a, b, b, b, a);
    else
        sgm__source_line(&r->writer, "%s = %s %s %s ? %s : %s;", a, b, sign, a, b, a);
}

/* --- axes --- */

/* The operand's axes by the bits in `mask`, with axes that are one walk through memory joined. `to` are the
 * result's strides by the operand's axes, which must then continue, too; NULL: they do not matter. *count is
 * the number of elements. */
static sgm__source_walk merged(const sgm__node *x, uint32_t mask, const int64_t *to, int64_t *count)
{
    sgm__source_walk walk = {0};
    *count = 1;
    for (int32_t i = 0, last = -1; i < x->type.shape.rank; i++) {
        int64_t size = x->type.shape.dims[i];
        if ((mask >> i & 1) == 0 || size == 1)
            continue;
        bool same = last >= 0 && x->place.strides[last] == x->place.strides[i] * size &&
                    (to == NULL || to[last] == to[i] * size);
        if (same)
            walk.sizes[walk.count - 1] *= size;
        else
            walk.sizes[walk.count++] = size;
        walk.axes[walk.count - 1] = last = i;
        *count *= size;
    }
    if (*count == 0) /* there are no elements, so no index is to be computed */
        walk.count = 0;
    return walk;
}

/* How far apart neighbours along the walk's last axis are. */
static int64_t last_stride(const sgm__node *x, const sgm__source_walk *walk)
{
    return walk->count > 0 ? x->place.strides[walk->axes[walk->count - 1]] : INT64_MAX;
}

/* Everything about a reduction but its division into parts. */
static reduction measure(const sgm__device_render *r, int32_t number)
{
    const sgm__node *node = sgm__device_node(r, number), *x = sgm__device_operand(r, number, 0);
    uint32_t mask = (uint32_t)node->attributes.integers[0];
    int64_t to[SGM_MAX_RANK] = {0};
    for (int32_t i = 0, place = 0; i < x->type.shape.rank; i++) {
        bool goes = (mask >> i & 1) != 0;
        to[i] = goes ? 0 : node->place.strides[place];
        place += !goes || node->attributes.integers[1] != 0;
    }
    reduction d = {.node = number,
                   .operand = sgm__source_operand(&r->writer, number, 0),
                   .dtype = node->type.dtype,
                   .type = node->op == &sgm__op_reduce_sum
                               ? sgm__source_sum_type(&r->writer, node->type.dtype)
                               : sgm__source_type_name(&r->writer, node->type.dtype),
                   .begin = first_value(node->op, node->type.dtype),
                   .parts = 1};
    d.outer = merged(x, ~mask, to, &d.results);
    d.inner = merged(x, mask, NULL, &d.elements);
    d.side_by_side = last_stride(x, &d.outer) < last_stride(x, &d.inner);
    d.part = d.elements;
    return d;
}

/* Divides elements into about `parts` parts of a multiple of `multiple` elements, if they are large
 * enough. */
static void divide(reduction *d, int64_t parts, int64_t multiple)
{
    int64_t maximum = d->elements / MINIMUM_PART < MAXIMUM_PARTS ? d->elements / MINIMUM_PART : MAXIMUM_PARTS;
    parts = parts < maximum ? parts : maximum;
    if (parts <= 1)
        return;
    d->part = ((d->elements + parts - 1) / parts + multiple - 1) / multiple * multiple;
    d->parts = (d->elements + d->part - 1) / d->part;
}

/* --- lines --- */

/* The operand's element with the number `element` among those that are reduced to result "n". */
static const char *element_at(sgm__device_render *r, const reduction *d, const char *const *outer,
                              const char *element)
{
    static const char *const variables[] = {"e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"};
    sgm__source_writer *w = &r->writer;
    const char *index[SGM_MAX_RANK];
    memcpy(index, outer, sizeof index);
    int64_t below = 1;
    for (int32_t i = d->inner.count; i-- > 0; below *= d->inner.sizes[i]) {
        int32_t axis = d->inner.axes[i];
        if (d->inner.count == 1) {
            index[axis] = element;
            continue;
        }
        index[axis] = variables[axis];
        sgm__source_line(w, "const %s %s = (%s) / %lld %% %lld;", sgm__device_counter(r), variables[axis],
                         element, (long long)below, (long long)d->inner.sizes[i]);
    }
    return sgm__source_element(w, d->operand, index);
}

/* Stores a value as result "n", or in the scratch memory as that of a part. */
static void store(sgm__device_render *r, const reduction *d, const char *const *outer, const char *value)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, d->node), *x = sgm__device_operand(r, d->node, 0);
    const char *to[SGM_MAX_RANK] = {NULL};
    if (d->parts > 1) {
        sgm__source_line(w, "%s[part * %lld + n] = %s;", sgm__device_scratch(r, d->scratch, d->type, true),
                         (long long)d->results, value);
        return;
    }
    for (int32_t i = 0, place = 0; i < x->type.shape.rank; i++) {
        bool goes = (node->attributes.integers[0] >> i & 1) != 0;
        if (!goes)
            to[place] = outer[i];
        place += !goes || node->attributes.integers[1] != 0;
    }
    if (node->op == &sgm__op_reduce_sum)
        value = sgm__source_of_sum(w, d->dtype, value);
    sgm__source_store(w, d->node, to, value);
}

/* Lines that take "n" and "part" out of a number of both, with the part's elements "from" to "to". */
static void open_part(sgm__device_render *r, const reduction *d, const char *number)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r);
    if (d->parts == 1) {
        sgm__source_line(w, "const %s n = %s;", counter, number);
        sgm__source_line(w, "const %s from = 0, to = %lld;", counter, (long long)d->elements);
        return;
    }
    sgm__source_line(w, "const %s n = %s %% %lld;", counter, number, (long long)d->results);
    sgm__source_line(w, "const %s part = %s / %lld, from = part * %lld;", counter, number,
                     (long long)d->results, (long long)d->part);
    sgm__source_line(w, "const %s to = from + %lld < %lld ? from + %lld : %lld;", counter, (long long)d->part,
                     (long long)d->elements, (long long)d->part, (long long)d->elements);
}

/* A loop over "e", whose head is `loop`, that combines each element with "all". */
static void take_in(sgm__device_render *r, const reduction *d, const char *const *outer, const char *loop)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_open(w, "%s", loop);
    sgm__source_line(w, "const %s one = %s;", d->type, element_at(r, d, outer, "e"));
    put_together(r, d, "all", "one");
    sgm__source_close(w, 1);
}

/* --- kernels --- */

/* A work-item for each result and part. */
static sgm_status write_items(sgm__device_render *r, const reduction *d)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *index[SGM_MAX_RANK] = {NULL};
    sgm__device_begin(r);
    sgm__device_items(r, "item", d->results * d->parts);
    open_part(r, d, "item");
    sgm__device_unravel(r, "n", &d->outer, index);
    sgm__source_line(w, "%s all = %s;", d->type, d->begin);
    take_in(r, d, index, sgm__source_format(w, "for (%s e = from; e < to; e++)", counter));
    store(r, d, index, "all");
    return sgm__device_end(r);
}

/* Lines that combine the values of a group's work-items in shared[0]. */
static void write_tree(sgm__device_render *r, const reduction *d, uint32_t group)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "LOCAL %s shared[%u];", d->type, group);
    sgm__source_line(w, "shared[ITEM] = all;");
    sgm__source_line(w, "BARRIER;");
    sgm__source_open(w, "for (int reach = %u; reach > 0; reach /= 2)", group / 2);
    sgm__source_line(w, "if (ITEM < reach)");
    w->depth++;
    put_together(r, d, "shared[ITEM]", "shared[ITEM + reach]");
    w->depth--;
    sgm__source_line(w, "BARRIER;");
    sgm__source_close(w, 1);
}

/* A group for each result and part. It has 32 work-items, or more as long as each has at least two
 * elements. */
static sgm_status write_groups(sgm__device_render *r, const reduction *d)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *index[SGM_MAX_RANK] = {NULL};
    uint32_t group = 32;
    while (group < SGM__DEVICE_GROUP && group < r->info->group && group * 4 <= d->part)
        group *= 2;
    sgm__device_begin(r);
    sgm__device_groups(r, "item", d->results * d->parts, group);
    open_part(r, d, "item");
    sgm__device_unravel(r, "n", &d->outer, index);
    sgm__source_line(w, "%s all = %s;", d->type, d->begin);
    take_in(r, d, index, sgm__source_format(w, "for (%s e = from + ITEM; e < to; e += %u)", counter, group));
    write_tree(r, d, group);
    sgm__source_open(w, "if (ITEM == 0)");
    store(r, d, index, "shared[0]");
    return sgm__device_end(r);
}

/* The second kernel: combines the parts' values of each result, by one work-item or, if they are many, by a
 * group. */
static sgm_status write_parts(sgm__device_render *r, const reduction *d)
{
    sgm__source_writer *w = &r->writer;
    const char *index[SGM_MAX_RANK] = {NULL};
    reduction whole = *d;
    bool tree = d->parts > SHORT && !r->info->is_processor;
    uint32_t group = 32;
    while (group < d->parts && group < SGM__DEVICE_GROUP && group < r->info->group)
        group *= 2;
    whole.parts = 1;
    sgm__device_begin(r);
    if (tree)
        sgm__device_groups(r, "n", d->results, group);
    else
        sgm__device_items(r, "n", d->results);
    sgm__device_unravel(r, "n", &d->outer, index);
    const char *from = sgm__device_scratch(r, d->scratch, d->type, false);
    sgm__source_line(w, "%s all = %s;", d->type, d->begin);
    sgm__source_open(w, "for (int k = %s; k < %lld; k += %u)", tree ? "ITEM" : "0", (long long)d->parts,
                     tree ? group : 1);
    sgm__source_line(w, "const %s one = %s[k * %lld + n];", d->type, from, (long long)d->results);
    put_together(r, d, "all", "one");
    sgm__source_close(w, 1);
    if (tree) {
        write_tree(r, d, group);
        sgm__source_open(w, "if (ITEM == 0)");
    }
    store(r, &whole, index, tree ? "shared[0]" : "all");
    return sgm__device_end(r);
}

/* --- on a computer's own processor, with vector registers --- */

/* A work-item for each result and part: neighbouring elements go to different lanes, which are combined
 * last. */
static sgm_status write_lanes(sgm__device_render *r, const reduction *d)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *index[SGM_MAX_RANK] = {NULL};
    sgm__device_begin(r);
    sgm__device_items(r, "item", d->results * d->parts);
    open_part(r, d, "item");
    sgm__device_unravel(r, "n", &d->outer, index);
    sgm__source_line(w, "%s lanes[%d], all = %s;", d->type, LANES, d->begin);
    sgm__source_line(w, "%s e = from;", counter);
    sgm__source_line(w, "for (int l = 0; l < %d; l++)", LANES);
    sgm__source_line(w, "    lanes[l] = %s;", d->begin);
    sgm__source_line(w, "for (; e + %d <= to; e += %d)", LANES, LANES);
    w->depth++;
    sgm__source_open(w, "for (int l = 0; l < %d; l++)", LANES);
    sgm__source_line(w, "const %s one = %s;", d->type, element_at(r, d, index, "(e + l)"));
    put_together(r, d, "lanes[l]", "one");
    sgm__source_close(w, 1);
    w->depth--;
    take_in(r, d, index, "for (; e < to; e++)");
    sgm__source_open(w, "for (int l = 0; l < %d; l++)", LANES);
    put_together(r, d, "all", "lanes[l]");
    sgm__source_close(w, 1);
    store(r, d, index, "all");
    return sgm__device_end(r);
}

/* A work-item for neighbouring results and a part: each result has a lane. */
static sgm_status write_columns(sgm__device_render *r, const reduction *d)
{
    sgm__source_writer *w = &r->writer;
    const char *counter = sgm__device_counter(r), *index[SGM_MAX_RANK] = {NULL};
    int32_t wide = 4 * LANES;
    int64_t blocks = (d->results + wide - 1) / wide;
    reduction block = *d;
    block.results = blocks;
    sgm__device_begin(r);
    sgm__device_groups(r, "item", blocks * d->parts, 1);
    open_part(r, &block, "item");
    sgm__source_line(w, "%s lanes[%d];", d->type, wide);
    sgm__source_line(w, "const int width = n * %d + %d < %lld ? %d : %lld;", wide, wide,
                     (long long)d->results, wide, (long long)(d->results - (blocks - 1) * wide));
    sgm__source_line(w, "for (int l = 0; l < %d; l++)", wide);
    sgm__source_line(w, "    lanes[l] = %s;", d->begin);
    sgm__source_line(w, "for (%s e = from; e < to; e++)", counter);
    w->depth++;
    sgm__source_open(w, "for (int l = 0; l < width; l++)");
    sgm__source_line(w, "const %s lane = n * %d + l;", counter, wide);
    sgm__device_unravel(r, "lane", &d->outer, index);
    sgm__source_line(w, "const %s one = %s;", d->type, element_at(r, d, index, "e"));
    put_together(r, d, "lanes[l]", "one");
    sgm__source_close(w, 1);
    w->depth--;
    sgm__source_line(w, "const %s first = n * %d;", counter, wide);
    sgm__source_open(w, "for (int l = 0; l < width; l++)");
    sgm__source_line(w, "const %s n = first + l;", counter);
    sgm__device_unravel(r, "n", &d->outer, index);
    store(r, d, index, "lanes[l]");
    return sgm__device_end(r);
}

/* --- which --- */

/* Chooses the kernel, and divides elements so that a device has enough to do: 1024 work-items or 4 groups for
 * each processor of a graphics card, 4 work-items for each of a computer's own. */
sgm_status sgm__device_write_reduction(sgm__device_render *r, int32_t number)
{
    reduction d = measure(r, number);
    int64_t units = r->info->units > 0 ? r->info->units : 1;
    sgm_status (*write)(sgm__device_render *, const reduction *) = write_items;
    if (r->info->is_processor) {
        bool wide = d.side_by_side && d.results >= LANES;
        int64_t tasks = wide ? (d.results + 4 * LANES - 1) / (4 * LANES) : d.results;
        write = wide ? write_columns : d.elements >= LANES ? write_lanes : write_items;
        if (d.results * d.elements > 65536)
            divide(&d, (4 * units + tasks - 1) / tasks, LANES);
    } else if (d.side_by_side || d.elements <= SHORT) {
        divide(&d, units * 1024 / d.results, 1);
    } else {
        write = write_groups;
        if (d.elements >= 16 * SGM__DEVICE_GROUP)
            divide(&d, 4 * units / d.results, SGM__DEVICE_GROUP);
    }
    if (d.parts > 1)
        d.scratch = sgm__device_take_scratch(r, d.parts * d.results * 8);
    SGM_TRY(write(r, &d));
    return d.parts > 1 ? write_parts(r, &d) : SGM_OK;
}
