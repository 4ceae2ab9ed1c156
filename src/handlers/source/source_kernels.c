/* Steps of one operation: reductions, products, movement, indices. Each writer writes the loops of one
 * operation.
 *
 * Writers get the number of a node and append lines to the writer's text. Those that open their loops over
 * results by sgm__source_turns also write kernels for devices, where results are work-items
 * (handlers/device/code/code_move.c); the others use plain loops. Windows are in source_windows.c. The table
 * of writers is at the end.
 */
#include "handlers/source/source.h"
#include "ops/ops.h"

static const sgm__node *node_at(const sgm__source_writer *w, int32_t number)
{
    return &w->plan->nodes[number];
}

static const sgm__node *operand_at(const sgm__source_writer *w, int32_t number, int32_t k)
{
    return node_at(w, sgm__source_operand(w, number, k));
}

/* Loops that set all elements of a result to 0. */
static void clear(sgm__source_writer *w, int32_t number)
{
    const char *index[SGM_MAX_RANK] = {NULL};
    const sgm_shape *shape = &node_at(w, number)->type.shape;
    int32_t opened = sgm__source_loops(w, shape, 0, shape->rank, index);
    sgm__source_line(w, "%s = 0;", sgm__source_element(w, number, index));
    sgm__source_close(w, opened);
}

/* --- reductions --- */

/* Opens turns over the axes of the operand that are not reduced. `from` gets the operand's index, `to` the
 * result's. The attributes' integers are the reduced axes as bits, and whether they are kept with length
 * 1. */
static void open_results(sgm__source_writer *w, int32_t number, const char **from, const char **to)
{
    const sgm__node *node = node_at(w, number);
    const sgm_shape *shape = &operand_at(w, number, 0)->type.shape;
    sgm__source_turns(w, shape, ~(uint32_t)node->attributes.integers[0], from);
    for (int32_t axis = 0, place = 0; axis < shape->rank; axis++) {
        bool goes = (node->attributes.integers[0] >> axis & 1) != 0;
        if (!goes)
            to[place] = from[axis];
        place += !goes || node->attributes.integers[1] != 0;
    }
    sgm__source_block(w);
}

/* Opens loops over the axes that are reduced; returns how many. */
static int32_t open_reduced(sgm__source_writer *w, int32_t number, const char **from)
{
    const sgm_shape *shape = &operand_at(w, number, 0)->type.shape;
    int32_t opened = 0;
    for (int32_t axis = 0; axis < shape->rank; axis++)
        if ((node_at(w, number)->attributes.integers[0] >> axis & 1) != 0)
            opened += sgm__source_loops(w, shape, axis, 1, from);
    return opened;
}

/* Integers are summed in 64 bits, see sgm__source_sum_type. */
static bool write_sum(sgm__source_writer *w, int32_t number)
{
    const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK] = {NULL};
    sgm_dtype dtype = node_at(w, number)->type.dtype;
    open_results(w, number, from, to);
    sgm__source_line(w, "%s sum = 0;", sgm__source_sum_type(w, dtype));
    int32_t opened = open_reduced(w, number, from);
    sgm__source_line(w, "sum += %s;", sgm__source_element(w, sgm__source_operand(w, number, 0), from));
    sgm__source_close(w, opened);
    sgm__source_store(w, number, to, sgm__source_of_sum(w, dtype, "sum"));
    return true;
}

/* A condition: `x` comes before `best`. NaN comes before all numbers, and the first of equal ones stays. */
static const char *beats(sgm__source_writer *w, sgm_dtype dtype, bool largest)
{
    const char *sign = largest ? ">" : "<";
    if (!sgm_dtype_is_float(dtype))
        return sgm__source_format(w, "x %s best", sign);
    return sgm__source_format(w, "x %s best || (x != x && best == best)", sign);
}

/* Begins with the first element, so that no neutral number is needed; that is compared with itself once. */
static bool write_extremum(sgm__source_writer *w, int32_t number)
{
    static const char *const start[SGM_MAX_RANK];
    const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK] = {NULL}, *first[SGM_MAX_RANK];
    int32_t operand = sgm__source_operand(w, number, 0);
    sgm_dtype dtype = node_at(w, number)->type.dtype;
    open_results(w, number, from, to);
    memcpy(first, start, sizeof first);
    for (int32_t axis = 0; axis < SGM_MAX_RANK; axis++)
        first[axis] = from[axis];
    sgm__source_line(w, "%s best = %s;", sgm__source_type_name(w, dtype),
                     sgm__source_element(w, operand, first));
    int32_t opened = open_reduced(w, number, from);
    const char *words = beats(w, dtype, node_at(w, number)->op == &sgm__op_reduce_max);
    if (opened > 0) {
        sgm__source_line(w, "const %s x = %s;", sgm__source_type_name(w, dtype),
                         sgm__source_element(w, operand, from));
        sgm__source_line(w, "if (%s)", words);
        sgm__source_line(w, "    best = x;");
    }
    sgm__source_close(w, opened);
    sgm__source_store(w, number, to, "best");
    return true;
}

/* Opens turns over all axes but one. */
static void open_lines(sgm__source_writer *w, const sgm_shape *shape, int32_t axis, const char **index)
{
    sgm__source_turns(w, shape, ~((uint32_t)1 << axis), index);
    sgm__source_block(w);
}

/* The position of the first largest or smallest element along an axis. */
static bool write_arg(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number), *x = operand_at(w, number, 0);
    const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK] = {NULL};
    int32_t axis = (int32_t)node->attributes.integers[0], operand = sgm__source_operand(w, number, 0);
    open_lines(w, &x->type.shape, axis, from);
    for (int32_t i = 0, place = 0; i < x->type.shape.rank; i++)
        if (i != axis)
            to[place++] = from[i];
    sgm__source_line(w, "%s best = %s;", sgm__source_type_name(w, x->type.dtype),
                     sgm__source_element(w, operand, from));
    sgm__source_line(w, "%s place = 0;", w->dialect->counter);
    from[axis] = "k";
    sgm__source_open(w, "for (%s k = 1; k < %lld; k++)", w->dialect->counter,
                     (long long)x->type.shape.dims[axis]);
    sgm__source_line(w, "const %s x = %s;", sgm__source_type_name(w, x->type.dtype),
                     sgm__source_element(w, operand, from));
    sgm__source_line(w, "if (%s) {", beats(w, x->type.dtype, node->op == &sgm__op_arg_max));
    sgm__source_line(w, "    best = x;");
    sgm__source_line(w, "    place = k;");
    sgm__source_line(w, "}");
    sgm__source_close(w, 1);
    sgm__source_store(w, number, to, "place");
    return true;
}

/* Running sums along an axis, from its end if the second attribute says so. */
static bool write_cumulative(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    const char *index[SGM_MAX_RANK] = {NULL};
    int32_t axis = (int32_t)node->attributes.integers[0];
    int64_t size = node->type.shape.dims[axis];
    open_lines(w, &node->type.shape, axis, index);
    sgm__source_line(w, "%s sum = 0;", sgm__source_sum_type(w, node->type.dtype));
    if (node->attributes.integers[1] != 0)
        sgm__source_open(w, "for (%s k = %lld; k-- > 0;)", w->dialect->counter, (long long)size);
    else
        sgm__source_open(w, "for (%s k = 0; k < %lld; k++)", w->dialect->counter, (long long)size);
    index[axis] = "k";
    sgm__source_line(w, "sum += %s;", sgm__source_element(w, sgm__source_operand(w, number, 0), index));
    sgm__source_store(w, number, index, sgm__source_of_sum(w, node->type.dtype, "sum"));
    return true;
}

/* --- products --- */

/* Matrix product. Where the right side's columns are contiguous, and for integers, each result is the sum
 * along the depth; otherwise rows of the right side, which are contiguous mostly, are added up, multiplied by
 * an element of the left side. */
static bool write_matmul(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    int32_t left = sgm__source_operand(w, number, 0), right = sgm__source_operand(w, number, 1);
    int32_t row = node->type.shape.rank - 2, column = row + 1;
    const char *to[SGM_MAX_RANK] = {NULL}, *a[SGM_MAX_RANK], *b[SGM_MAX_RANK];
    const char *type = sgm__source_type_name(w, node->type.dtype);
    int64_t depth = node_at(w, left)->type.shape.dims[column], columns = node->type.shape.dims[column];
    bool dots = node_at(w, right)->place.strides[row] == 1 || columns == 1 || depth == 1 ||
                !sgm_dtype_is_float(node->type.dtype);
    sgm__source_loops(w, &node->type.shape, 0, dots ? column + 1 : column, to);
    sgm__source_block(w);
    memcpy(a, to, sizeof a);
    memcpy(b, to, sizeof b);
    if (dots) {
        sgm__source_line(w, "%s sum = 0;", sgm__source_sum_type(w, node->type.dtype));
        int32_t before = w->opened;
        a[column] = b[row] = sgm__source_loop(w, "k", depth);
        sgm__source_add_product(w, node->type.dtype, sgm__source_element(w, left, a),
                                sgm__source_element(w, right, b));
        sgm__source_close(w, w->opened - before);
        sgm__source_store(w, number, to, sgm__source_of_sum(w, node->type.dtype, "sum"));
        return true;
    }
    to[column] = b[column] = "j";
    sgm__source_line(w, "for (%s j = 0; j < %lld; j++)", w->dialect->counter, (long long)columns);
    sgm__source_line(w, "    %s = 0;", sgm__source_element(w, number, to));
    a[column] = b[row] = sgm__source_loop(w, "k", depth);
    sgm__source_line(w, "const %s a = %s;", type, sgm__source_element(w, left, a));
    sgm__source_line(w, "for (%s j = 0; j < %lld; j++)", w->dialect->counter, (long long)columns);
    sgm__source_line(w, "    %s += a * %s;", sgm__source_element(w, number, to),
                     sgm__source_element(w, right, b));
    return true;
}

/* --- movement --- */

bool sgm__source_lies_there(const sgm__node *part, const sgm__node *whole, int32_t axis, int64_t start)
{
    int64_t size = (int64_t)sgm_dtype_size(whole->type.dtype);
    if (part->place.store != SGM__STORE_ARENA || whole->place.store != SGM__STORE_ARENA ||
        part->place.offset != whole->place.offset + start * whole->place.strides[axis] * size)
        return false;
    for (int32_t i = 0; i < part->type.shape.rank; i++)
        if (part->type.shape.dims[i] != 1 && part->place.strides[i] != whole->place.strides[i])
            return false;
    return true;
}

/* Copies the operands that were not computed in the result's memory. */
static bool write_concatenate(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    int32_t axis = (int32_t)node->attributes.integers[0];
    int64_t start = 0;
    for (int32_t k = 0; k < node->input_count; k++) {
        const sgm__node *part = operand_at(w, number, k);
        if (!sgm__source_lies_there(part, node, axis, start)) {
            const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK];
            int32_t opened = sgm__source_loops(w, &part->type.shape, 0, part->type.shape.rank, from);
            memcpy(to, from, sizeof to);
            if (start > 0)
                to[axis] = sgm__source_plus(w, sgm__source_format(w, "%lld", (long long)start), from[axis]);
            sgm__source_line(w, "%s = %s;", sgm__source_element(w, number, to),
                             sgm__source_element(w, sgm__source_operand(w, number, k), from));
            sgm__source_close(w, opened);
        }
        start += part->type.shape.dims[axis];
    }
    return true;
}

/* Zeros, then the elements at their places: before + index (gap + 1). */
static bool write_pad(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number), *x = operand_at(w, number, 0);
    const int64_t *integers = node->attributes.integers;
    const char *from[SGM_MAX_RANK] = {NULL}, *to[SGM_MAX_RANK];
    clear(w, number);
    sgm__source_loops(w, &x->type.shape, 0, x->type.shape.rank, from);
    memcpy(to, from, sizeof to);
    const char *place = sgm__source_times(w, from[integers[0]], integers[3] + 1);
    if (integers[1] > 0)
        place = sgm__source_plus(w, sgm__source_format(w, "%lld", (long long)integers[1]), place);
    to[integers[0]] = place;
    sgm__source_line(w, "%s = %s;", sgm__source_element(w, number, to),
                     sgm__source_element(w, sgm__source_operand(w, number, 0), from));
    return true;
}

/* Each element is its index along an axis. */
static bool write_iota(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    const char *index[SGM_MAX_RANK] = {NULL};
    sgm__source_turns(w, &node->type.shape, ~(uint32_t)0, index);
    const char *value = index[node->attributes.integers[1]];
    sgm__source_store(w, number, index,
                      sgm__source_format(w, "(%s)%s", sgm__source_type_name(w, node->type.dtype),
                                         value != NULL ? value : "0"));
    return true;
}

/* --- indices; one that is out of range ends the function with 1 --- */

/* Lines that load an index as "at" and end the function with 1 if it is out of range. */
static void read_index(sgm__source_writer *w, int32_t number, const char *const *index, int64_t size)
{
    sgm__source_line(w, "const int64_t at = %s;", sgm__source_element(w, number, index));
    sgm__source_line(w, "if (at < 0 || at >= %lld)", (long long)size);
    sgm__source_line(w, "    return 1;");
}

/* Loops over (axes before, axes of the indices, axes behind). `of_parts` is the index into the array with the
 * indices' axes, `of_whole` into the array that has one axis in their place, where "at" is the index. The
 * index is read outside of the loops over the axes behind. */
static void open_indexed(sgm__source_writer *w, const sgm_shape *parts, int32_t indices, int32_t axis,
                         int64_t size, const char **of_parts, const char **of_whole)
{
    int32_t rank = node_at(w, indices)->type.shape.rank, place = 0;
    sgm__source_loops(w, parts, 0, axis + rank, of_parts);
    sgm__source_block(w);
    read_index(w, indices, of_parts + axis, size);
    sgm__source_loops(w, parts, axis + rank, parts->rank - axis - rank, of_parts);
    for (int32_t i = 0; i < axis; i++)
        of_whole[place++] = of_parts[i];
    of_whole[place++] = "at";
    for (int32_t i = axis + rank; i < parts->rank; i++)
        of_whole[place++] = of_parts[i];
}

static bool write_gather(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    int32_t axis = (int32_t)node->attributes.integers[0], x = sgm__source_operand(w, number, 0);
    const char *to[SGM_MAX_RANK] = {NULL}, *from[SGM_MAX_RANK] = {NULL};
    open_indexed(w, &node->type.shape, sgm__source_operand(w, number, 1), axis,
                 node_at(w, x)->type.shape.dims[axis], to, from);
    sgm__source_line(w, "%s = %s;", sgm__source_element(w, number, to), sgm__source_element(w, x, from));
    return true;
}

/* Zeros, then each update is added at its place; indices may repeat. */
static bool write_scatter(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    int32_t axis = (int32_t)node->attributes.integers[0], updates = sgm__source_operand(w, number, 0);
    const char *to[SGM_MAX_RANK] = {NULL}, *from[SGM_MAX_RANK] = {NULL};
    clear(w, number);
    open_indexed(w, &node_at(w, updates)->type.shape, sgm__source_operand(w, number, 1), axis,
                 node->type.shape.dims[axis], from, to);
    const char *place = sgm__source_element(w, number, to), *added = sgm__source_element(w, updates, from);
    const char *sum =
        sgm__source_format(w, "(%s)%s + %s", sgm__source_sum_type(w, node->type.dtype), place, added);
    sgm__source_line(w, "%s = %s;", place, sgm__source_of_sum(w, node->type.dtype, sum));
    return true;
}

/* Zeros, then a 1 for each index. */
static bool write_one_hot(sgm__source_writer *w, int32_t number)
{
    const sgm__node *node = node_at(w, number);
    int32_t indices = sgm__source_operand(w, number, 0), rank = node_at(w, indices)->type.shape.rank;
    const char *index[SGM_MAX_RANK] = {NULL};
    clear(w, number);
    sgm__source_loops(w, &node->type.shape, 0, rank, index);
    sgm__source_block(w);
    read_index(w, indices, index, node->attributes.integers[1]);
    index[rank] = "at";
    sgm__source_line(w, "%s = 1;", sgm__source_element(w, number, index));
    return true;
}

/* Random numbers that are computed by a step of their own, in order. */
static bool write_random(sgm__source_writer *w, int32_t number)
{
    int64_t count = sgm_shape_elements(&node_at(w, number)->type.shape);
    sgm__source_block(w);
    sgm__source_draw_begin(w, number);
    const char *i = sgm__source_loop(w, "i", count);
    sgm__source_store_flat(w, number, i, sgm__source_draw(w, number, i));
    return true;
}

/* --- which writes what --- */

/* Which function writes which operation. What is not here cannot be written as C; devices have more in
 * handlers/device/code/. */
static const struct {
    const sgm_op *op;
    sgm__source_kernel write;
} kernels[] = {
    {&sgm__op_reduce_sum, write_sum},
    {&sgm__op_reduce_max, write_extremum},
    {&sgm__op_reduce_min, write_extremum},
    {&sgm__op_arg_max, write_arg},
    {&sgm__op_arg_min, write_arg},
    {&sgm__op_cumulative_sum, write_cumulative},
    {&sgm__op_matmul, write_matmul},
    {&sgm__op_concatenate, write_concatenate},
    {&sgm__op_pad, write_pad},
    {&sgm__op_iota, write_iota},
    {&sgm__op_gather, write_gather},
    {&sgm__op_scatter_add, write_scatter},
    {&sgm__op_one_hot, write_one_hot},
    {&sgm__op_random_uniform, write_random},
    {&sgm__op_convolution, sgm__source_write_windows},
    {&sgm__op_convolution_input_gradient, sgm__source_write_windows},
    {&sgm__op_convolution_weights_gradient, sgm__source_write_windows},
    {&sgm__op_max_pooling, sgm__source_write_windows},
    {&sgm__op_max_pooling_pick, sgm__source_write_windows},
    {&sgm__op_max_pooling_gradient, sgm__source_write_windows},
    {&sgm__op_average_pooling, sgm__source_write_windows},
    {&sgm__op_average_pooling_gradient, sgm__source_write_windows},
};

sgm__source_kernel sgm__source_find_kernel(const sgm_op *op)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].op == op)
            return kernels[i].write;
    return NULL;
}

/* Writes a step of one operation and closes what its writer has left open. */
sgm_status sgm__source_write_kernel(sgm__source_writer *w, int32_t step)
{
    int32_t number = w->plan->order[w->plan->steps[step].first];
    sgm__source_kernel write = sgm__source_find_kernel(node_at(w, number)->op);
    char where[320];
    if (write != NULL && write(w, number)) {
        sgm__source_close(w, w->opened);
        return SGM_OK;
    }
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "%s: it cannot be written as C yet; take a layer without it",
                    sgm__plan_describe(w->plan, number, where, sizeof where));
}
