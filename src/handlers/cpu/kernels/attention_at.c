/* attention_at: queries that see the keys and values up to a place, which is known in each run only.
 *
 * Queries are (..., rows, size), keys (..., places, size), values (..., places, wide); the leading axes are
 * sequences and their heads, and rows are few: one, or as many as share keys (grouped queries). So each row
 * is a product of a vector, and nothing is packed: keys and values are read once, from the cache or from
 * memory, where they lie, and what lies behind the place is not read. Some keys at a time are used by all
 * rows before the next. Scores, softmax and sums are float32 also where all else is bfloat16; results are
 * rounded once. A task does some of the heads, each in one order, so that bits do not depend on the number of
 * threads. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#include <math.h>

#define BLOCK 64 /* keys or values that all rows use before the next: some kilobytes */
/* Multiplications up to which one thread does all: it takes them some microseconds, about as long as threads
 * take to meet. */
#define ALONE (4 * SGM__CPU_PARALLEL_WORK)

/* One call. Sizes are in numbers, bytes those of a thread's memory. */
typedef struct heads {
    const sgm__cpu_call *call;
    bool narrow;                             /* bfloat16 */
    sgm__vector_function widen, round;       /* between bfloat16 and float32 */
    int64_t count, rows, size, places, wide; /* heads; of one */
    int64_t seen, tasks;                     /* places; set by run */
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
    for (int32_t i = 0; i + 2 < rank; i++)
        h.count *= queries->dims[i];
    h.scores_at = sgm__align((size_t)(h.rows * h.size) * sizeof(float));
    h.sums_at = h.scores_at + sgm__align((size_t)(h.rows * h.places) * sizeof(float));
    h.bytes = h.sums_at + sgm__align((size_t)(h.rows * h.wide) * sizeof(float));
    return h;
}

static size_t scratch(const sgm__cpu_call *call)
{
    return see(call).bytes * (size_t)call->cpu->threads;
}

/* One head: its operands, and a thread's memory. */
typedef struct head {
    const unsigned char *keys, *values;
    float *queries, *scores, *sums; /* (rows, size), (rows, places), (rows, wide) */
} head;

/* The queries of a head as float32, divided by sqrt(size). */
static void take_queries(const heads *h, int64_t index, float *to)
{
    int64_t n = h->rows * h->size;
    const void *from = (const unsigned char *)h->call->inputs[0].data +
                       (size_t)(index * n) * sgm_dtype_size(h->call->output.dtype);
    if (h->narrow) {
        h->widen(n, to, &from, 0);
        from = to;
    }
    h->call->cpu->vector->scale_f32(n, to, from, (float)(1 / sqrt((double)h->size)));
}

/* Scores of the keys `first` to `last` - 1. */
static void score(const heads *h, const head *one, int64_t first, int64_t last)
{
    const sgm__vector *vector = h->call->cpu->vector;
    int64_t n = last - first, at = first * h->size;
    for (int64_t row = 0; row < h->rows; row++) {
        const float *query = one->queries + row * h->size;
        float *scores = one->scores + row * h->places + first;
        if (h->narrow)
            vector->dot_rows_bf16(n, h->size, scores, query, (const uint16_t *)(const void *)one->keys + at);
        else
            vector->dot_rows_f32(n, h->size, scores, query, (const float *)(const void *)one->keys + at);
    }
}

/* Adds what the values `first` to `last` - 1 give to the sums. */
static void mix(const heads *h, const head *one, int64_t first, int64_t last)
{
    const sgm__vector *vector = h->call->cpu->vector;
    int64_t n = last - first, at = first * h->wide;
    for (int64_t row = 0; row < h->rows; row++) {
        const float *weights = one->scores + row * h->places + first;
        float *sums = one->sums + row * h->wide;
        if (h->narrow)
            vector->mix_rows_bf16(n, h->wide, sums, weights,
                                  (const uint16_t *)(const void *)one->values + at);
        else
            vector->mix_rows_f32(n, h->wide, sums, weights, (const float *)(const void *)one->values + at);
    }
}

static void attend(const heads *h, int64_t index, unsigned char *memory)
{
    size_t bytes = sgm_dtype_size(h->call->output.dtype);
    head one = {.keys = (const unsigned char *)h->call->inputs[1].data +
                        (size_t)(index * h->places * h->size) * bytes,
                .values = (const unsigned char *)h->call->inputs[2].data +
                          (size_t)(index * h->places * h->wide) * bytes,
                .queries = (float *)(void *)memory,
                .scores = (float *)(void *)(memory + h->scores_at),
                .sums = (float *)(void *)(memory + h->sums_at)};
    unsigned char *result =
        (unsigned char *)h->call->output.data + (size_t)(index * h->rows * h->wide) * bytes;
    if (!h->narrow)
        one.sums = (float *)(void *)result;
    take_queries(h, index, one.queries);
    for (int64_t first = 0; first < h->seen; first += BLOCK)
        score(h, &one, first, sgm__minimum(first + BLOCK, h->seen));
    for (int64_t row = 0; row < h->rows; row++) {
        float *scores = one.scores + row * h->places;
        h->call->cpu->vector->softmax_f32(h->seen, scores, scores, 1);
    }
    memset(one.sums, 0, (size_t)(h->rows * h->wide) * sizeof(float));
    for (int64_t first = 0; first < h->seen; first += BLOCK)
        mix(h, &one, first, sgm__minimum(first + BLOCK, h->seen));
    const void *sums = one.sums;
    if (h->narrow)
        h->round(h->rows * h->wide, result, &sums, 0);
}

static void attend_some(void *context, int64_t task, int32_t thread)
{
    const heads *h = context;
    int64_t first, last;
    sgm__pool_part(h->count, 1, h->tasks, task, &first, &last);
    for (int64_t i = first; i < last; i++)
        attend(h, i, h->call->scratch + (size_t)thread * h->bytes);
}

static sgm_status run(const sgm__cpu_call *call)
{
    heads h = see(call);
    int64_t place, axis = call->inputs[1].shape.rank - 2;
    sgm__pool_ready(call->cpu->pool);
    SGM_TRY(sgm__cpu_index(&call->inputs[3], 1, axis, h.places, &place));
    h.seen = place + 1;
    int64_t work = h.count * h.rows * h.seen * (h.size + h.wide);
    h.tasks = work < ALONE ? 1 : sgm__minimum(h.count, 4 * (int64_t)call->cpu->threads);
    sgm__pool_post(call->cpu->pool, h.tasks, attend_some, &h, sizeof h);
    return SGM_OK;
}

const sgm__cpu_kernel sgm__cpu_attention_at = {.op = &sgm__op_attention_at,
                                               .types = SGM__CPU_FLOAT32 | (uint32_t)1 << SGM_BFLOAT16,
                                               .scratch = scratch,
                                               .posts = true,
                                               .run = run};
