/* Kernels for indices (gather, scatter, one-hot), argsort, accuracy and random numbers.
 *
 * A kernel cannot fail. One that meets an index out of range notes it in the fault words by sgm_fault
 * (prelude.h), and kernels that write states look at those words first. scatter_add sums without atomic
 * operations, in the order of the indices, so that results are the same in each run.
 */
#include "handlers/device/code/code_internal.h"

/* The place of an index among all indices, in row-major order: the first wrong one is reported. */
static const char *number_of(sgm__device_render *r, int32_t indices, const char *const *index)
{
    const sgm__source_walk walk = sgm__device_walk(&sgm__device_node(r, indices)->type.shape, ~(uint32_t)0);
    const char *number = walk.count > 0 ? index[walk.axes[0]] : "0";
    for (int32_t i = 1; i < walk.count; i++)
        number = sgm__source_format(&r->writer, "(%s * %lld + %s)", number, (long long)walk.sizes[i],
                                    index[walk.axes[i]]);
    return number;
}

/* Lines that load an index as "at" and say in "fits" whether it is in range; a wrong one is noted. `notes` is
 * an expression that is 0 in the one work-item of several that shall note; NULL: each does. */
static void read_index(sgm__device_render *r, int32_t node, int32_t indices, const char *const *index,
                       int64_t size, const char *notes)
{
    sgm__source_writer *w = &r->writer;
    sgm__source_line(w, "const int64_t at = %s;", sgm__source_element(w, indices, index));
    sgm__source_line(w, "const int fits = at >= 0 && at < %lld;", (long long)size);
    sgm__source_line(w, notes != NULL ? "if (!fits && %s == 0)" : "if (!fits)", notes);
    sgm__source_line(w, "    sgm_fault(%s, %d, %s, at);", sgm__device_fault(r), node,
                     number_of(r, indices, index));
}

static bool is_empty(const sgm__node *node)
{
    return sgm_shape_elements(&node->type.shape) == 0;
}

/* A kernel that only checks all indices: where the result is empty, so that no other kernel reads them. */
static sgm_status look_first(sgm__device_render *r, int32_t number, int32_t indices, int64_t size)
{
    const char *index[SGM_MAX_RANK] = {NULL};
    const sgm__node *node = sgm__device_node(r, number), *looked_at = sgm__device_node(r, indices);
    if (is_empty(looked_at) || !is_empty(node))
        return SGM_OK;
    sgm__device_begin(r);
    sgm__source_turns(&r->writer, &looked_at->type.shape, ~(uint32_t)0, index);
    read_index(r, number, indices, index, size, NULL);
    return sgm__device_end(r);
}

/* The index into the array that has one axis where the other one has the axes of the indices. */
static void find_whole(const sgm_shape *parts, int32_t axis, int32_t rank, const char *const *of_parts,
                       const char *at, const char **of_whole)
{
    int32_t place = 0;
    for (int32_t i = 0; i < axis; i++)
        of_whole[place++] = of_parts[i];
    of_whole[place++] = at;
    for (int32_t i = axis + rank; i < parts->rank; i++)
        of_whole[place++] = of_parts[i];
}

/* A work-item for each result; a wrong index gives 0. */
sgm_status sgm__device_write_gather(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number), *x = sgm__device_operand(r, number, 0);
    int32_t axis = (int32_t)node->attributes.integers[0], indices = sgm__source_operand(w, number, 1);
    const char *to[SGM_MAX_RANK] = {NULL}, *from[SGM_MAX_RANK] = {NULL};
    SGM_TRY(look_first(r, number, indices, x->type.shape.dims[axis]));
    if (is_empty(node))
        return SGM_OK;
    sgm__device_begin(r);
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, to);
    read_index(r, number, indices, to + axis, x->type.shape.dims[axis], NULL);
    find_whole(&node->type.shape, axis, sgm__device_node(r, indices)->type.shape.rank, to, "at", from);
    sgm__source_store(w, number, to,
                      sgm__source_format(w, "fits ? %s : 0",
                                         sgm__source_element(w, sgm__source_operand(w, number, 0), from)));
    return sgm__device_end(r);
}

/* A work-item for each result; the one of class 0 notes a wrong index. */
sgm_status sgm__device_write_one_hot(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number);
    int32_t indices = sgm__source_operand(w, number, 0), last = node->type.shape.rank - 1;
    const char *index[SGM_MAX_RANK] = {NULL};
    SGM_TRY(look_first(r, number, indices, node->attributes.integers[1]));
    if (is_empty(node))
        return SGM_OK;
    sgm__device_begin(r);
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, index);
    const char *class = index[last] != NULL ? index[last] : "0";
    read_index(r, number, indices, index, node->attributes.integers[1], class);
    sgm__source_store(w, number, index, sgm__source_format(w, "at == %s", class));
    return sgm__device_end(r);
}

/* --- sums by index --- */

/* Lists of the indices that have the same value, in ascending order: first[row] is the first, next[k] the one
 * after index k; -1: the end. Both are int32_t in scratch memory. */
typedef struct chains {
    int64_t first, next;   /* offsets in the scratch memory */
    int64_t rows, count;   /* length of the result's axis; number of indices */
    sgm__source_walk walk; /* the axes of the array of indices */
} chains;

/* Expressions for the axes of index number "k". */
static void take_apart(sgm__device_render *r, const chains *c, const char **index)
{
    int64_t below = 1;
    for (int32_t i = c->walk.count; i-- > 0; below *= c->walk.sizes[i])
        index[c->walk.axes[i]] = c->walk.count == 1
                                     ? "k"
                                     : sgm__source_format(&r->writer, "(k / %lld %% %lld)", (long long)below,
                                                          (long long)c->walk.sizes[i]);
}

/* A kernel that empties all lists. */
static sgm_status begin_chains(sgm__device_render *r, const chains *c)
{
    sgm__device_begin(r);
    sgm__device_items(r, "n", c->rows);
    sgm__source_line(&r->writer, "%s[n] = -1;", sgm__device_scratch(r, c->first, "int32_t", true));
    return sgm__device_end(r);
}

/* A kernel that builds the lists. Each work-item reads all indices, from the last to the first so that lists
 * ascend, and owns the rows whose number has its remainder: no two write the same list. Time grows with the
 * indices, not with rows times indices. */
static sgm_status link_chains(sgm__device_render *r, int32_t number, const chains *c)
{
    sgm__source_writer *w = &r->writer;
    const char *index[SGM_MAX_RANK] = {NULL};
    int64_t units = r->info->units > 0 ? r->info->units : 1,
            owners = r->info->is_processor ? units : 8 * units;
    owners = owners < c->rows ? owners : c->rows;
    sgm__device_begin(r);
    sgm__device_items(r, "owner", owners);
    const char *first = sgm__device_scratch(r, c->first, "int32_t", true);
    const char *next = sgm__device_scratch(r, c->next, "int32_t", true);
    sgm__source_open(w, "for (int k = %lld; k-- > 0;)", (long long)c->count);
    take_apart(r, c, index);
    read_index(r, number, sgm__source_operand(w, number, 1), index, c->rows, "owner");
    sgm__source_line(w, "if (fits && (uint32_t)at %% %lldu == (uint32_t)owner) {", (long long)owners);
    sgm__source_line(w, "    %s[k] = %s[at];", next, first);
    sgm__source_line(w, "    %s[at] = k;", first);
    sgm__source_line(w, "}");
    return sgm__device_end(r);
}

/* A kernel that sums the updates of each result along its list. Integers are limited to their range after
 * each addition, as on the host. */
static sgm_status add_chains(sgm__device_render *r, int32_t number, const chains *c)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number), *indices = sgm__device_operand(r, number, 1);
    int32_t axis = (int32_t)node->attributes.integers[0], rank = indices->type.shape.rank;
    const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK] = {NULL};
    sgm__device_begin(r);
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, to);
    for (int32_t i = 0; i < axis; i++)
        from[i] = to[i];
    take_apart(r, c, from + axis);
    for (int32_t i = axis + 1; i < node->type.shape.rank; i++)
        from[i + rank - 1] = to[i];
    sgm__source_line(w, "%s sum = 0;", sgm__source_sum_type(w, node->type.dtype));
    sgm__source_line(w, "for (int k = %s[%s]; k >= 0; k = %s[k])",
                     sgm__device_scratch(r, c->first, "int32_t", false), to[axis] != NULL ? to[axis] : "0",
                     sgm__device_scratch(r, c->next, "int32_t", false));
    const char *sum =
        sgm__source_format(w, "sum + %s", sgm__source_element(w, sgm__source_operand(w, number, 0), from));
    sgm__source_line(w, "    sum = %s;",
                     sgm__source_of_sum(w, node->type.dtype, sum)); /* limited after each addition */
    sgm__source_store(w, number, to, "sum");
    return sgm__device_end(r);
}

/* A result without updates is 0. */
static sgm_status clear(sgm__device_render *r, int32_t number)
{
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__device_begin(r);
    sgm__source_turns(&r->writer, &sgm__device_node(r, number)->type.shape, ~(uint32_t)0, index);
    sgm__source_store(&r->writer, number, index, "0");
    return sgm__device_end(r);
}

sgm_status sgm__device_write_scatter(sgm__device_render *r, int32_t number)
{
    const sgm__node *node = sgm__device_node(r, number);
    const sgm_shape *indices = &sgm__device_operand(r, number, 1)->type.shape;
    chains c = {.rows = node->type.shape.dims[node->attributes.integers[0]],
                .count = sgm_shape_elements(indices),
                .walk = sgm__device_walk(indices, ~(uint32_t)0)};
    if (is_empty(node))
        return look_first(r, number, sgm__source_operand(&r->writer, number, 1), c.rows);
    if (is_empty(sgm__device_operand(r, number, 0)))
        return clear(r, number);
    c.first = sgm__device_take_scratch(r, c.rows * (int64_t)sizeof(int32_t));
    c.next = sgm__device_take_scratch(r, c.count * (int64_t)sizeof(int32_t));
    SGM_TRY(begin_chains(r, &c));
    SGM_TRY(link_chains(r, number, &c));
    return add_chains(r, number, &c);
}

/* --- order --- */

/* The place of an element is the number of elements that come before it: smaller ones, or equal ones in
 * front, so that the order is stable. NaN counts as larger than all numbers. */
sgm_status sgm__device_write_argsort(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    const sgm__node *node = sgm__device_node(r, number);
    int32_t axis = (int32_t)node->attributes.integers[0], x = sgm__source_operand(w, number, 0);
    bool descending = node->attributes.integers[1] != 0;
    sgm_dtype dtype = sgm__device_node(r, x)->type.dtype;
    const char *index[SGM_MAX_RANK] = {NULL}, *type = sgm__source_type_name(w, dtype);
    const char *counter = sgm__device_counter(r);
    bool number_like = sgm_dtype_is_float(dtype); /* of integers none is NaN */
    sgm__device_begin(r);
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, index);
    const char *own = index[axis] != NULL ? index[axis] : "0";
    sgm__source_line(w, "const %s x = %s;", type, sgm__source_element(w, x, index));
    sgm__source_line(w, "%s place = 0;", counter);
    sgm__source_open(w, "for (%s k = 0; k < %lld; k++)", counter, (long long)node->type.shape.dims[axis]);
    index[axis] = "k";
    sgm__source_line(w, "const %s y = %s;", type, sgm__source_element(w, x, index));
    const char *below = number_like ? "y < x || (x != x && y == y)" : "y < x";
    const char *above = number_like ? "y > x || (y != y && x == x)" : "y > x";
    sgm__source_line(w, "const int before = %s, behind = %s;", descending ? above : below,
                     descending ? below : above);
    sgm__source_line(w, "place += before || (!behind && k < %s);", own);
    sgm__source_close(w, 1);
    index[axis] = "place";
    sgm__source_store(w, number, index, own);
    return sgm__device_end(r);
}

/* --- accuracy --- */

/* Lines that find the place of the first largest element of row "n"; a NaN counts as larger than all
 * numbers. */
static void find_largest(sgm__device_render *r, int32_t node, int64_t classes, const char *place)
{
    sgm__source_writer *w = &r->writer;
    sgm_dtype dtype = sgm__device_node(r, node)->type.dtype;
    const char *type = sgm__source_type_name(w, dtype);
    bool is_float = sgm_dtype_is_float(dtype);
    sgm__source_line(w, "int %s = 0;", place);
    sgm__source_block(w);
    const char *row = sgm__source_format(w, "n * %lld", (long long)classes);
    sgm__source_line(w, "%s best = %s;", type, sgm__source_flat(w, node, row));
    sgm__source_open(w, "for (int k = 1; k < %lld; k++)", (long long)classes);
    sgm__source_line(w, "const %s x = %s;", type,
                     sgm__source_flat(w, node, sgm__source_format(w, "%s + k", row)));
    sgm__source_line(w, is_float ? "if (x > best || (x != x && best == best)) {" : "if (x > best) {");
    sgm__source_line(w, "    best = x;");
    sgm__source_line(w, "    %s = k;", place);
    sgm__source_line(w, "}");
    sgm__source_close(w, 2);
}

/* Two kernels: each row's prediction is right or wrong, a byte in scratch memory; then one work-item counts
 * them. Targets are classes, or rows whose largest element is the class. */
sgm_status sgm__device_write_accuracy(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    int32_t x = sgm__source_operand(w, number, 0), targets = sgm__source_operand(w, number, 1);
    const sgm_shape *shape = &sgm__device_node(r, x)->type.shape;
    const sgm__node *target = sgm__device_node(r, targets);
    int64_t classes = shape->dims[shape->rank - 1], rows = sgm_shape_elements(shape) / classes;
    int64_t scratch = sgm__device_take_scratch(r, rows);
    sgm__device_begin(r);
    sgm__device_items(r, "n", rows);
    find_largest(r, x, classes, "predicted");
    const char *right;
    if (target->type.shape.rank < shape->rank) {
        right = sgm__source_flat(w, targets, "n");
        if (sgm_dtype_is_float(target->type.dtype)) {
            sgm__source_need(w, SGM__SOURCE_INTEGER);
            sgm__source_line(w, "const %s x = %s;", sgm__source_type_name(w, target->type.dtype), right);
            right = "(x == x ? sgm_integer(x, INT64_MIN, INT64_MAX) : -1)";
        }
    } else {
        find_largest(r, targets, classes, "target");
        right = "target";
    }
    sgm__source_line(w, "%s[n] = %s == predicted;", sgm__device_scratch(r, scratch, "uint8_t", true), right);
    SGM_TRY(sgm__device_end(r));
    sgm__device_begin(r);
    sgm__device_items(r, "n", 1);
    sgm__source_line(w, "%s right = 0;", sgm__device_counter(r));
    sgm__source_line(w, "for (%s k = 0; k < %lld; k++)", sgm__device_counter(r), (long long)rows);
    sgm__source_line(w, "    right += %s[k];", sgm__device_scratch(r, scratch, "uint8_t", false));
    const char *type = sgm__source_type_name(w, sgm__device_node(r, number)->type.dtype);
    sgm__source_store_flat(w, number, NULL, sgm__source_format(w, "(%s)right / %lld", type, (long long)rows));
    return sgm__device_end(r);
}

/* --- random numbers --- */

/* A work-item draws four numbers. */
sgm_status sgm__device_write_random(sgm__device_render *r, int32_t number)
{
    sgm__source_writer *w = &r->writer;
    int64_t count = sgm_shape_elements(&sgm__device_node(r, number)->type.shape);
    sgm__device_begin(r);
    sgm__device_items(r, "item", (count + 3) / 4);
    sgm__device_draw_four(r, number, "item * 4");
    r->in_fours = true;
    sgm__source_line(w, "for (int u = 0; u < 4 && item * 4 + u < %lld; u++)", (long long)count);
    w->depth++;
    sgm__source_store_flat(w, number, "item * 4 + u", w->dialect->draw(w, number, NULL));
    w->depth--;
    return sgm__device_end(r);
}
