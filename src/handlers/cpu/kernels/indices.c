/* Operations that take or give positions: gather, scatter_add, arg_max and arg_min.
 *
 * gather and scatter_add (an embedding and its gradient) see their arrays as (outer, entries of the axis,
 * inner), where indices choose entries. Indices are int32 or int64 and are checked before anything is
 * written. scatter_add divides columns among threads, not indices, so that each element's sum goes in the
 * order of the indices whatever the number of threads. Arrays whose axes cannot be joined so are left to the
 * operations' plain loops (accepts). */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#define COLUMNS_PER_TASK 64 /* of scatter_add: 4 cache lines of float32 */

/* An array seen as (outer, entries of the axis, inner), with the distance, in elements, of neighbours in
 * each. */
typedef struct layers {
    int64_t outer, entries, inner;
    int64_t outer_stride, entry_stride, inner_stride;
} layers;

/* Dimensions first .. last - 1 as one; false if strides do not allow that. */
static bool join(const sgm_array *array, int32_t first, int32_t last, int64_t *size, int64_t *stride)
{
    int64_t dims[SGM_MAX_RANK], strides[SGM_MAX_RANK];
    int32_t rank = last - first;
    memcpy(dims, array->shape.dims + first, (size_t)rank * sizeof *dims);
    memcpy(strides, array->strides + first, (size_t)rank * sizeof *strides);
    sgm__cpu_collapse(&rank, dims, (int64_t *[]){strides}, 1);
    *size = dims[0];
    *stride = strides[0];
    return rank == 1;
}

/* Axes axis .. axis + count - 1 are the entries. */
static bool see_as_layers(const sgm_array *array, int32_t axis, int32_t count, layers *l)
{
    return join(array, 0, axis, &l->outer, &l->outer_stride) &&
           join(array, axis, axis + count, &l->entries, &l->entry_stride) &&
           join(array, axis + count, array->shape.rank, &l->inner, &l->inner_stride);
}

typedef struct lookup {
    const sgm__cpu_call *call;
    layers x; /* of gather: the input; of scatter_add: the updates */
    layers y; /* the result */
    const unsigned char *indices;
    int64_t index_stride, tasks;
    bool wide; /* indices are int64 */
    size_t size;
} lookup;

/* `*fits` is false if an array cannot be seen as layers, or the indices not as one row. */
static lookup see(const sgm__cpu_call *call, bool *fits)
{
    bool gathers = call->node->op == &sgm__op_gather;
    const sgm_array *indices = &call->inputs[1];
    int32_t axis = (int32_t)call->node->attributes.integers[0], rank = indices->shape.rank;
    int64_t count;
    lookup l = {.call = call,
                .indices = indices->data,
                .wide = indices->dtype == SGM_INT64,
                .size = sgm_dtype_size(call->output.dtype)};
    *fits = see_as_layers(&call->inputs[0], axis, gathers ? 1 : rank, &l.x) &&
            see_as_layers(&call->output, axis, gathers ? rank : 1, &l.y) &&
            join(indices, 0, rank, &count, &l.index_stride);
    return l;
}

static bool accepts(const sgm__cpu_call *call)
{
    bool fits;
    if (sgm_shape_elements(&call->inputs[0].shape) == 0 || sgm_shape_elements(&call->output.shape) == 0)
        return false;
    (void)see(call, &fits);
    return fits;
}

static int64_t index_at(const lookup *l, int64_t i)
{
    const unsigned char *at = l->indices + i * l->index_stride * (l->wide ? 8 : 4);
    int64_t wide;
    int32_t narrow;
    if (l->wide)
        memcpy(&wide, at, sizeof wide);
    else
        memcpy(&narrow, at, sizeof narrow);
    return l->wide ? wide : narrow;
}

/* An index out of range is an error that names it. */
static sgm_status check_indices(const lookup *l, int64_t count, int64_t size)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t index = index_at(l, i);
        if (index < 0 || index >= size)
            return sgm__fail_entry(index, l->call->node->attributes.integers[0], size);
    }
    return SGM_OK;
}

/* A task copies some rows (outer, index) of the result, which is contiguous. */
static void gather_rows(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const lookup *l = context;
    int64_t first, last, size = (int64_t)l->size;
    sgm__pool_part(l->y.outer * l->y.entries, 1, l->tasks, task, &first, &last);
    const unsigned char *x = l->call->inputs[0].data;
    unsigned char *y = l->call->output.data;
    for (int64_t row = first; row < last; row++) {
        int64_t from =
            row / l->y.entries * l->x.outer_stride + index_at(l, row % l->y.entries) * l->x.entry_stride;
        sgm__cpu_copy_row(y + row * l->y.inner * size, 1, x + from * size, l->x.inner_stride, l->y.inner,
                          l->size);
    }
}

static sgm_status run_gather(const sgm__cpu_call *call)
{
    bool fits;
    lookup l = see(call, &fits);
    SGM_TRY(check_indices(&l, l.y.entries, l.x.entries));
    int64_t rows = l.y.outer * l.y.entries, elements = rows * l.y.inner;
    l.tasks = elements < SGM__CPU_PARALLEL_WORK ? 1 : 4 * (int64_t)call->cpu->threads;
    sgm__pool_run(call->cpu->pool, l.tasks, gather_rows, &l);
    return SGM_OK;
}

/* --- scatter_add: tasks divide the result's outer entries and its columns, so that no two add to one
 * element, and each element's sum goes in the order of the indices --- */

#define ADD_ROW(type)                                                                                        \
    do {                                                                                                     \
        const type *source = (const type *)l->call->inputs[0].data + from;                                   \
        type *target = (type *)l->call->output.data + to;                                                    \
        for (int64_t c = first; c < last; c++)                                                               \
            target[c] += source[c * l->x.inner_stride];                                                      \
    } while (0)

/* A task clears its columns of one outer entry and adds the updates of all indices to them. */
static void scatter_columns(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const lookup *l = context;
    int64_t across = sgm__divide_up(l->y.inner, COLUMNS_PER_TASK), outer = task / across;
    int64_t first = task % across * COLUMNS_PER_TASK,
            last = sgm__minimum(first + COLUMNS_PER_TASK, l->y.inner);
    for (int64_t entry = 0; entry < l->y.entries; entry++) {
        unsigned char *row = l->call->output.data;
        row += ((outer * l->y.entries + entry) * l->y.inner + first) * (int64_t)l->size;
        memset(row, 0, (size_t)(last - first) * l->size);
    }
    for (int64_t i = 0; i < l->x.entries; i++) {
        int64_t from = outer * l->x.outer_stride + i * l->x.entry_stride;
        int64_t to = (outer * l->y.entries + index_at(l, i)) * l->y.inner;
        if (l->size == 4)
            ADD_ROW(float);
        else
            ADD_ROW(double);
    }
}

static sgm_status run_scatter(const sgm__cpu_call *call)
{
    bool fits;
    lookup l = see(call, &fits);
    SGM_TRY(check_indices(&l, l.x.entries, l.y.entries));
    int64_t tasks = l.y.outer * sgm__divide_up(l.y.inner, COLUMNS_PER_TASK);
    sgm__pool_run(call->cpu->pool, tasks, scatter_columns, &l);
    return SGM_OK;
}

/* --- arg_max, arg_min --- */

/* arg_max or arg_min over one axis of `size` elements, `stride` apart; the other dimensions are in dims and
 * strides. */
typedef struct search {
    const sgm__cpu_call *call;
    int32_t rank; /* of the result */
    int64_t dims[SGM_MAX_RANK], strides[SGM_MAX_RANK];
    int64_t count, size, stride, tasks;
    bool largest;
} search;

/* The position of the first best element, or of the first NaN. Without branches, which would be guessed wrong
 * half of the time. */
#define DEFINE_FIND_BEST(name, type, better)                                                                 \
    static int64_t name(const type *x, int64_t stride, int64_t size)                                         \
    {                                                                                                        \
        int64_t best = 0;                                                                                    \
        type old = *x;                                                                                       \
        for (int64_t k = 1; k < size; k++) {                                                                 \
            type value = x[k * stride];                                                                      \
            bool wins = (better) & (old == old);                                                             \
            best = wins ? k : best;                                                                          \
            old = wins ? value : old;                                                                        \
        }                                                                                                    \
        return best;                                                                                         \
    }
DEFINE_FIND_BEST(find_largest_f32, float, !(value <= old))
DEFINE_FIND_BEST(find_largest_f64, double, !(value <= old))
DEFINE_FIND_BEST(find_smallest_f32, float, !(value >= old))
DEFINE_FIND_BEST(find_smallest_f64, double, !(value >= old))

static void find_positions(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const search *s = context;
    const sgm_array *x = &s->call->inputs[0];
    const float *f32 = x->data;
    const double *f64 = x->data;
    int64_t *to = s->call->output.data;
    int64_t first, last;
    sgm__pool_part(s->count, 1, s->tasks, task, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t offset = sgm__cpu_offset(i, s->rank, s->dims, s->strides);
        if (x->dtype == SGM_FLOAT32)
            to[i] = (s->largest ? find_largest_f32 : find_smallest_f32)(f32 + offset, s->stride, s->size);
        else
            to[i] = (s->largest ? find_largest_f64 : find_smallest_f64)(f64 + offset, s->stride, s->size);
    }
}

static sgm_status plan_search(const sgm__cpu_call *call, void *plan)
{
    search *s = plan;
    const sgm_array *x = &call->inputs[0];
    int32_t axis = (int32_t)call->node->attributes.integers[0];
    *s = (search){.call = call,
                  .count = sgm_shape_elements(&call->output.shape),
                  .size = x->shape.dims[axis],
                  .stride = x->strides[axis],
                  .largest = call->node->op == &sgm__op_arg_max};
    for (int32_t i = 0; i < x->shape.rank; i++)
        if (i != axis) {
            s->dims[s->rank] = x->shape.dims[i];
            s->strides[s->rank++] = x->strides[i];
        }
    sgm__cpu_collapse(&s->rank, s->dims, (int64_t *[]){s->strides}, 1);
    s->tasks = s->count * s->size < SGM__CPU_PARALLEL_WORK ? 1 : 4 * (int64_t)call->cpu->threads;
    return SGM_OK;
}

static sgm_status run_search(const sgm__cpu_call *call)
{
    sgm__pool_post(call->cpu->pool, ((const search *)call->plan)->tasks, find_positions, call->plan,
                   sizeof(search));
    return SGM_OK;
}

/* --- the table's rows --- */

const sgm__cpu_kernel sgm__cpu_gather = {
    .op = &sgm__op_gather, .types = SGM__CPU_ALL_TYPES, .accepts = accepts, .run = run_gather};
const sgm__cpu_kernel sgm__cpu_scatter_add = {
    .op = &sgm__op_scatter_add, .types = SGM__CPU_FLOATS, .accepts = accepts, .run = run_scatter};
#define DEFINE_SEARCH(name)                                                                                  \
    const sgm__cpu_kernel sgm__cpu_##name = {.op = &sgm__op_##name,                                          \
                                             .types = SGM__CPU_FLOATS,                                       \
                                             .by_operand = true,                                             \
                                             .plan_size = sizeof(search),                                    \
                                             .plan = plan_search,                                            \
                                             .posts = true,                                                  \
                                             .run = run_search};
DEFINE_SEARCH(arg_max)
DEFINE_SEARCH(arg_min)
