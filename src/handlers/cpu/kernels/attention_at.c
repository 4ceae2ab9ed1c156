/* attention_at: queries that see the keys and values up to a place, which is known in each run only.
 *
 * Queries are (..., rows, size), keys (..., places, size), values (..., places, wide); the leading axes are
 * sequences and their heads. Rows are one, as many as share keys (grouped queries), or those of several
 * steps, each with its own place. Each row is a product of a vector, and nothing is packed: keys and values
 * are read where they lie, from the cache or from memory, and what lies behind the place is not read. Some
 * keys at a time are used by some rows before the next. Scores, softmax and sums are float32 also where all
 * else is bfloat16; results are rounded once. A task does some rows of some heads, each in one order, so that
 * bits do not depend on the number of threads. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#include <math.h>

#define BLOCK 64 /* keys or values that rows use before the next: some kilobytes */
#define ROWS 32  /* that use them together at most */
/* Multiplications up to which one thread does all: it takes them some microseconds, about as long as threads
 * take to meet. */
#define ALONE (4 * SGM__CPU_PARALLEL_WORK)

/* One call. Sizes are in numbers, bytes those of a thread's memory. */
typedef struct heads {
    const sgm__cpu_call *call;
    bool narrow;                             /* bfloat16 */
    sgm__vector_function widen, round;       /* between bfloat16 and float32 */
    int64_t count, rows, size, places, wide; /* heads; of one */
    int64_t lines, parts;                    /* rows that are done together; how often that is in a head */
    int64_t tasks;                           /* set by run */
    size_t scores_at, sums_at, bytes;        /* where parts of it begin; all of it */
} heads;

static heads see(const sgm__cpu_call *call)
{
    const sgm_shape *queries = &call->inputs[0].shape, *values = &call->inputs[2].shape;
    int32_t rank = queries->rank;
    heads h = {.call = call,
               .narrow = call->output.dtype == SGM_BFLOAT16,
               .widen = sgm__vector_find(call->cpu->vector, &sgm__op_cast, SGM_BFLOAT16, SGM_FLOAT32),
               .round = sgm__vector_find(call->cpu->vector, &sgm__op_cast, SGM_FLOAT32, SGM_BFLOAT16),
               .count = 1,
               .rows = queries->dims[rank - 2],
               .size = queries->dims[rank - 1],
               .places = values->dims[rank - 2],
               .wide = values->dims[rank - 1]};
    h.lines = sgm__minimum(h.rows, ROWS);
    h.parts = (h.rows + ROWS - 1) / ROWS;
    for (int32_t i = 0; i + 2 < rank; i++)
        h.count *= queries->dims[i];
    h.scores_at = sgm__align((size_t)(h.lines * h.size) * sizeof(float));
    h.sums_at = h.scores_at + sgm__align((size_t)(h.lines * h.places) * sizeof(float));
    h.bytes = h.sums_at + sgm__align((size_t)(h.lines * h.wide) * sizeof(float));
    return h;
}

static size_t scratch(const sgm__cpu_call *call)
{
    return see(call).bytes * (size_t)call->cpu->threads;
}

/* How many places a row of a head sees. */
static int64_t seen_by(const heads *h, int64_t row)
{
    const sgm_array *places = &h->call->inputs[3];
    return (int64_t)sgm_array_load(places, places->shape.rank > 0 ? row : 0) + 1;
}

/* Some rows of one head: their operands, and a thread's memory. */
typedef struct head {
    const unsigned char *keys, *values;
    float *queries, *scores, *sums; /* (rows, size), (rows, places), (rows, wide) */
    int64_t rows, seen[ROWS], most; /* the largest of `seen` */
} head;

/* The queries from row `first` of all heads on, as float32, divided by sqrt(size). */
static void take_queries(const heads *h, int64_t first, const head *some)
{
    int64_t n = some->rows * h->size;
    const void *from = (const unsigned char *)h->call->inputs[0].data +
                       (size_t)(first * h->size) * sgm_dtype_size(h->call->output.dtype);
    if (h->narrow) {
        h->widen(n, some->queries, &from, 0);
        from = some->queries;
    }
    h->call->cpu->vector->scale_f32(n, some->queries, from, (float)(1 / sqrt((double)h->size)));
}

/* How many of the places from `first` on, BLOCK at most, a row sees. */
static int64_t block_of(const head *some, int64_t row, int64_t first)
{
    int64_t left = some->seen[row] - first;
    return left > 0 ? sgm__minimum(left, BLOCK) : 0;
}

/* Scores of the keys from `first` on, BLOCK at most. */
static void score(const heads *h, const head *some, int64_t first)
{
    const sgm__vector *vector = h->call->cpu->vector;
    int64_t at = first * h->size;
    for (int64_t row = 0; row < some->rows; row++) {
        int64_t n = block_of(some, row, first);
        const float *query = some->queries + row * h->size;
        float *scores = some->scores + row * h->places + first;
        if (h->narrow)
            vector->dot_rows_bf16(n, h->size, scores, query, (const uint16_t *)(const void *)some->keys + at);
        else
            vector->dot_rows_f32(n, h->size, scores, query, (const float *)(const void *)some->keys + at);
    }
}

/* Adds what the values from `first` on give to the sums. */
static void mix(const heads *h, const head *some, int64_t first)
{
    const sgm__vector *vector = h->call->cpu->vector;
    int64_t at = first * h->wide;
    for (int64_t row = 0; row < some->rows; row++) {
        int64_t n = block_of(some, row, first);
        const float *weights = some->scores + row * h->places + first;
        float *sums = some->sums + row * h->wide;
        if (h->narrow)
            vector->mix_rows_bf16(n, h->wide, sums, weights,
                                  (const uint16_t *)(const void *)some->values + at);
        else
            vector->mix_rows_f32(n, h->wide, sums, weights, (const float *)(const void *)some->values + at);
    }
}

/* The operands of part `part` of a head's rows. */
static head rows_of(const heads *h, int64_t index, int64_t part, unsigned char *memory)
{
    size_t bytes = sgm_dtype_size(h->call->output.dtype);
    head some = {.keys = (const unsigned char *)h->call->inputs[1].data +
                         (size_t)(index * h->places * h->size) * bytes,
                 .values = (const unsigned char *)h->call->inputs[2].data +
                           (size_t)(index * h->places * h->wide) * bytes,
                 .queries = (float *)(void *)memory,
                 .scores = (float *)(void *)(memory + h->scores_at),
                 .sums = (float *)(void *)(memory + h->sums_at),
                 .rows = sgm__minimum(ROWS, h->rows - part * ROWS)};
    for (int64_t row = 0; row < some.rows; row++) {
        some.seen[row] = seen_by(h, part * ROWS + row);
        some.most = some.seen[row] > some.most ? some.seen[row] : some.most;
    }
    return some;
}

static void attend(const heads *h, int64_t index, int64_t part, unsigned char *memory)
{
    head some = rows_of(h, index, part, memory);
    int64_t first_row = index * h->rows + part * ROWS, numbers = some.rows * h->wide;
    unsigned char *result = (unsigned char *)h->call->output.data +
                            (size_t)(first_row * h->wide) * sgm_dtype_size(h->call->output.dtype);
    if (!h->narrow)
        some.sums = (float *)(void *)result;
    take_queries(h, first_row, &some);
    for (int64_t first = 0; first < some.most; first += BLOCK)
        score(h, &some, first);
    for (int64_t row = 0; row < some.rows; row++) {
        float *scores = some.scores + row * h->places;
        h->call->cpu->vector->softmax_f32(some.seen[row], scores, scores, 1);
    }
    memset(some.sums, 0, (size_t)numbers * sizeof(float));
    for (int64_t first = 0; first < some.most; first += BLOCK)
        mix(h, &some, first);
    const void *sums = some.sums;
    if (h->narrow)
        h->round(numbers, result, &sums, 0);
}

static void attend_some(void *context, int64_t task, int32_t thread)
{
    const heads *h = context;
    int64_t first, last;
    sgm__pool_part(h->count * h->parts, 1, h->tasks, task, &first, &last);
    for (int64_t i = first; i < last; i++)
        attend(h, i / h->parts, i % h->parts, h->call->scratch + (size_t)thread * h->bytes);
}

/* Checks all places; *seen: how many places all rows of a head see together. */
static sgm_status check_places(const heads *h, int64_t *seen)
{
    sgm_array at = h->call->inputs[3];
    int64_t axis = h->call->inputs[1].shape.rank - 2, count = sgm_shape_elements(&at.shape), place;
    *seen = 0;
    for (int64_t i = 0; i < count; i++) {
        SGM_TRY(sgm__cpu_index(&at, 1, axis, h->places, &place));
        at.data = (unsigned char *)at.data + sgm_dtype_size(at.dtype);
        *seen += place + 1;
    }
    *seen *= count == 1 ? h->rows : 1;
    return SGM_OK;
}

static sgm_status run(const sgm__cpu_call *call)
{
    heads h = see(call);
    int64_t seen;
    sgm__pool_ready(call->cpu->pool);
    SGM_TRY(check_places(&h, &seen));
    int64_t work = h.count * seen * (h.size + h.wide), all = h.count * h.parts;
    h.tasks = work < ALONE ? 1 : sgm__minimum(all, 4 * (int64_t)call->cpu->threads);
    sgm__pool_post(call->cpu->pool, h.tasks, attend_some, &h, sizeof h);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_attention_at = {.op = &sgm__op_attention_at,
                                               .types = SGM__CPU_FLOAT32 | (uint32_t)1 << SGM_BFLOAT16,
                                               .scratch = scratch,
                                               .posts = true,
                                               .run = run};
