/* Helpers for strided arrays: overlap of values, collapsing of dimensions, offsets, one index, and copies
 * shared among threads.
 *
 * Used by all parts of the cpu handler (declared in cpu.h): fused.c, summed.c and flow.c ask for overlaps,
 * elementwise steps and reductions collapse their dimensions, and steps that are nothing but a copy end in
 * sgm__cpu_copy. Strides count elements and may be 0 (broadcast) or negative (flipped); dimension `rank - 1`
 * is the last and fastest. */
#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

bool sgm__cpu_overlap(const sgm__node *a, const sgm__node *b)
{
    if (a->place.store == SGM__STORE_NONE || a->place.store != b->place.store ||
        a->place.index != b->place.index)
        return false;
    sgm__span x = sgm__node_span(a), y = sgm__node_span(b);
    return x.first < y.last && y.first < x.last;
}

/* Dimension i joins the kept dimension before it if each list's outer stride is its inner stride times
 * dims[i]. */
void sgm__cpu_collapse(int32_t *rank, int64_t *dims, int64_t **strides, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < *rank; i++) {
        if (dims[i] == 1 && !(kept == 0 && i + 1 == *rank))
            continue;
        bool joins = kept > 0;
        for (int32_t k = 0; k < count && joins; k++)
            joins = strides[k][kept - 1] == strides[k][i] * dims[i];
        int32_t to = joins ? kept - 1 : kept;
        dims[to] = joins ? dims[to] * dims[i] : dims[i];
        for (int32_t k = 0; k < count; k++)
            strides[k][to] = strides[k][i];
        kept = to + 1;
    }
    if (kept == 0) {
        kept = 1;
        dims[0] = 1;
        for (int32_t k = 0; k < count; k++)
            strides[k][0] = 0;
    }
    *rank = kept;
}

sgm_status sgm__cpu_index(const sgm_array *array, int64_t count, int64_t axis, int64_t entries,
                          int64_t *index)
{
    int32_t narrow;
    if (array->dtype == SGM_INT64) {
        memcpy(index, array->data, sizeof *index);
    } else {
        memcpy(&narrow, array->data, sizeof narrow);
        *index = narrow;
    }
    if (*index >= 0 && *index <= entries - count)
        return SGM_OK;
    return sgm__fail_entry(*index < 0 || *index >= entries ? *index : entries, axis, entries);
}

/* --- copies --- */

#define PIECE 64 /* elements: pieces of a row begin at multiples of it */

/* A copy that is under way: collapsed dimensions, and how it is cut into tasks. */
typedef struct copy {
    const sgm__cpu *cpu;
    size_t size; /* of an element, in bytes */
    int32_t rank;
    int64_t dims[SGM_MAX_RANK], from_strides[SGM_MAX_RANK], to_strides[SGM_MAX_RANK];
    const unsigned char *from;
    unsigned char *to;
    int64_t rows, columns, tasks; /* rows run along the last dimension and have `columns` elements */
} copy;

/* One loop for each size of element. The value that a broadcast repeats is read before the loop, so that
 * compilers make the loop a fill. */
#define COPY_STRIDED(type)                                                                                   \
    do {                                                                                                     \
        const type *source = (const type *)(const void *)from;                                               \
        type *target = (type *)(void *)to;                                                                   \
        const type first = *source;                                                                          \
        if (from_stride == 0 && to_stride == 1)                                                              \
            for (int64_t i = 0; i < n; i++)                                                                  \
                target[i] = first;                                                                           \
        else                                                                                                 \
            for (int64_t i = 0; i < n; i++)                                                                  \
                target[i * to_stride] = source[i * from_stride];                                             \
    } while (0)

void sgm__cpu_copy_row(unsigned char *to, int64_t to_stride, const unsigned char *from, int64_t from_stride,
                       int64_t n, size_t size)
{
    if (n == 0)
        return;
    if (from_stride == 1 && to_stride == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1:
        COPY_STRIDED(uint8_t);
        break;
    case 2:
        COPY_STRIDED(uint16_t);
        break;
    case 4:
        COPY_STRIDED(uint32_t);
        break;
    default:
        COPY_STRIDED(uint64_t);
    }
}

/* Without a division for the outermost dimension, as divisions cost more than all else here. */
int64_t sgm__cpu_offset(int64_t number, int32_t rank, const int64_t *dims, const int64_t *strides)
{
    int64_t offset = 0;
    for (int32_t i = rank; i-- > 1;) {
        offset += number % dims[i] * strides[i];
        number /= dims[i];
    }
    return rank > 0 ? offset + number * strides[0] : 0;
}

/* Copies elements first .. last - 1 of a row, which runs along the last dimension. */
static inline void copy_piece(const copy *c, int64_t row, int64_t first, int64_t last)
{
    int32_t outer = c->rank - 1;
    int64_t to_stride = c->to_strides[outer], from_stride = c->from_strides[outer];
    int64_t to = sgm__cpu_offset(row, outer, c->dims, c->to_strides) + first * to_stride;
    int64_t from = sgm__cpu_offset(row, outer, c->dims, c->from_strides) + first * from_stride;
    sgm__cpu_copy_row(c->to + to * (int64_t)c->size, to_stride, c->from + from * (int64_t)c->size,
                      from_stride, last - first, c->size);
}

/* A task copies some rows, or a piece of one where there are fewer rows than tasks. */
static void copy_rows(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const copy *c = context;
    int64_t first, last, pieces = c->tasks / c->rows;
    if (pieces > 1) {
        sgm__pool_part(c->columns, PIECE, pieces, index % pieces, &first, &last);
        if (first < last)
            copy_piece(c, index / pieces, first, last);
        return;
    }
    sgm__pool_part(c->rows, 1, c->tasks, index, &first, &last);
    for (int64_t row = first; row < last; row++)
        copy_piece(c, row, 0, c->columns);
}

/* A task transposes a part of the rows of one matrix of the target, in multiples of 16 rows, which is a cache
 * line of float32 read from the source. Uses the instruction set's own transposition of blocks
 * (vector_rows.h). */
static void transpose_rows(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const copy *c = context;
    int32_t outer = c->rank - 2;
    int64_t rows = c->dims[outer], matrices = c->rows / rows, parts = c->tasks / matrices, first, last;
    sgm__pool_part(rows, 16, parts, index % parts, &first, &last);
    const sgm__tiles *tiles = c->size == 4 ? &c->cpu->vector->f32 : &c->cpu->vector->f64;
    int64_t from = sgm__cpu_offset(index / parts, outer, c->dims, c->from_strides) + first;
    int64_t to = sgm__cpu_offset(index / parts, outer, c->dims, c->to_strides) + first * c->columns;
    if (first < last)
        tiles->transpose(c->to + (size_t)to * c->size, c->columns, c->from + from * (int64_t)c->size,
                         c->from_strides[c->rank - 1], c->columns, last - first);
}

/* The source's last two dimensions have changed places, and the target's elements are contiguous in them:
 * then blocks are transposed in registers, while rows would read one element of each cache line. */
static bool is_transposed(const copy *c)
{
    int32_t last = c->rank - 1;
    return c->rank >= 2 && c->size >= 4 && c->from_strides[last - 1] == 1 && c->from_strides[last] > 1 &&
           c->to_strides[last] == 1 && c->to_strides[last - 1] == c->dims[last];
}

void sgm__cpu_copy(const sgm__cpu *cpu, const sgm_array *from, const sgm_array *to)
{
    int64_t elements = sgm_shape_elements(&from->shape);
    if (elements == 0)
        return;
    copy c = {.cpu = cpu,
              .size = sgm_dtype_size(from->dtype),
              .rank = from->shape.rank,
              .from = from->data,
              .to = to->data};
    memcpy(c.dims, from->shape.dims, sizeof c.dims);
    memcpy(c.from_strides, from->strides, sizeof c.from_strides);
    memcpy(c.to_strides, to->strides, sizeof c.to_strides);
    sgm__cpu_collapse(&c.rank, c.dims, (int64_t *[]){c.from_strides, c.to_strides}, 2);
    c.columns = c.dims[c.rank - 1];
    c.rows = elements / c.columns;
    bool transposed = is_transposed(&c);
    c.tasks = elements >= SGM__CPU_PARALLEL_WORK ? 4 * (int64_t)cpu->threads : 1;
    if (transposed)
        c.tasks *= c.rows / c.dims[c.rank - 2];
    else if (c.tasks > c.rows)
        c.tasks -= c.tasks % c.rows;
    sgm__pool_run(cpu->pool, c.tasks, transposed ? transpose_rows : copy_rows, &c);
}
