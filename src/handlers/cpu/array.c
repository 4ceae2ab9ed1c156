/* Strided arrays: fewer dimensions, and copies. */
#include "handlers/cpu/cpu.h"

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

bool sgm__cpu_is_contiguous(const sgm_array *array)
{
    int64_t stride = 1;
    for (int32_t i = array->shape.rank; i-- > 0;) {
        if (array->shape.dims[i] != 1 && array->strides[i] != stride)
            return false;
        stride *= array->shape.dims[i];
    }
    return true;
}

/* --- copies --- */

typedef struct copy {
    const sgm__cpu *cpu;
    size_t size;
    int32_t rank;
    int64_t dims[SGM_MAX_RANK], strides[SGM_MAX_RANK];
    const unsigned char *from;
    unsigned char *to;
    int64_t rows, columns, tasks; /* `columns` elements of the target lie together */
    bool transposed;              /* the last two dimensions */
} copy;

#define COPY_STRIDED(type)                                                                                   \
    do {                                                                                                     \
        const type *source = (const type *)(const void *)from;                                               \
        type *target = (type *)(void *)to;                                                                   \
        for (int64_t i = 0; i < n; i++)                                                                      \
            target[i] = source[i * stride];                                                                  \
    } while (0)

static void copy_row(unsigned char *to, const unsigned char *from, int64_t stride, int64_t n, size_t size)
{
    if (stride == 1) {
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

/* Elements from the start of `from` to the row of this number; rows are counted over all but the last
 * `inner` dimensions. */
static int64_t row_offset(const copy *c, int64_t row, int32_t inner)
{
    int64_t offset = 0;
    for (int32_t i = c->rank - inner; i-- > 0;) {
        offset += row % c->dims[i] * c->strides[i];
        row /= c->dims[i];
    }
    return offset;
}

static void copy_rows(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const copy *c = context;
    int64_t first, last, stride = c->strides[c->rank - 1];
    sgm__pool_part(c->rows, 1, c->tasks, index, &first, &last);
    for (int64_t row = first; row < last; row++)
        copy_row(c->to + (size_t)(row * c->columns) * c->size,
                 c->from + row_offset(c, row, 1) * (int64_t)c->size, stride, c->columns, c->size);
}

/* A task is a part of the rows of one matrix. */
static void transpose_rows(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const copy *c = context;
    int64_t rows = c->dims[c->rank - 2], matrices = c->rows / rows, parts = c->tasks / matrices, first, last;
    sgm__pool_part(rows, 16, parts, index % parts, &first, &last);
    const sgm__tiles *tiles = c->size == 4 ? &c->cpu->vector->f32 : &c->cpu->vector->f64;
    int64_t from = row_offset(c, index / parts, 2) + first, to = (index / parts * rows + first) * c->columns;
    if (first < last)
        tiles->transpose(c->to + (size_t)to * c->size, c->columns, c->from + from * (int64_t)c->size,
                         c->strides[c->rank - 1], c->columns, last - first);
}

void sgm__cpu_copy(const sgm__cpu *cpu, const sgm_array *from, void *to)
{
    int64_t elements = sgm_shape_elements(&from->shape);
    if (elements == 0)
        return;
    copy c = {.cpu = cpu,
              .size = sgm_dtype_size(from->dtype),
              .rank = from->shape.rank,
              .from = from->data,
              .to = to};
    memcpy(c.dims, from->shape.dims, sizeof c.dims);
    memcpy(c.strides, from->strides, sizeof c.strides);
    sgm__cpu_collapse(&c.rank, c.dims, (int64_t *[]){c.strides}, 1);
    c.columns = c.dims[c.rank - 1];
    c.rows = elements / c.columns;
    c.transposed = c.rank >= 2 && c.strides[c.rank - 2] == 1 && c.strides[c.rank - 1] > 1 && c.size >= 4;
    bool parallel = elements >= SGM__CPU_PARALLEL_WORK;
    c.tasks = parallel ? 4 * (int64_t)cpu->threads : 1;
    if (!c.transposed) {
        c.tasks = c.tasks < c.rows ? c.tasks : c.rows;
        sgm__pool_run(cpu->pool, c.tasks, copy_rows, &c);
        return;
    }
    c.tasks *= c.rows / c.dims[c.rank - 2];
    sgm__pool_run(cpu->pool, c.tasks, transpose_rows, &c);
}
