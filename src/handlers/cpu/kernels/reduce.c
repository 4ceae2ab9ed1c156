/* Sums, largest and smallest elements over axes.
 *
 * The dimensions that stay (kept) and those that are reduced (gone) are joined where strides allow. Sums of
 * floats are kept in double and added in an order that depends on shapes alone. Long sums with few results
 * are cut into parts of fixed size; threads sum parts into `partial`, and the parts are added in order at the
 * end. Where results are contiguous and terms are not (sums over rows), whole rows are added to running sums
 * (`columns`); where each result has a line of terms in each of many examples, as the sums of channels have,
 * lines are the parts, in the order of memory (`lines`); else each result is summed by itself. A section
 * gives run/summed.c access to the parts, so that terms can be summed as they are made. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

/* Results that one task sums at once: 8 KiB of running sums, which read 4 KiB (of floats) of each row. */
#define COLUMNS 1024
#define SMALL 4096 /* elements that lie in the first cache */
/* Terms of a part of a long sum. */
#define PART 16384
#define PART_ROWS 256      /* the same for sums over rows */
#define MAXIMUM_PARTS 4096 /* of a sum: more would only make `partial` larger */
/* Terms of a line from which its sum is worth a place in `partial`. */
#define MINIMUM_LINE 32
#define TOGETHER 8 /* rows that are added at once, as the processor fetches that many streams ahead */

/* A reduction, planned once. kept_* and gone_*: the dimensions of both kinds with the operand's strides, in
 * elements. */
typedef struct reduction {
    const sgm__cpu_call *call;
    sgm_dtype dtype;
    size_t size;
    int32_t kept_rank, gone_rank;
    int64_t kept[SGM_MAX_RANK], kept_strides[SGM_MAX_RANK];
    int64_t gone[SGM_MAX_RANK], gone_strides[SGM_MAX_RANK];
    int64_t results, terms; /* how many results; how many terms each has */
    bool columns;           /* results are contiguous in the operand, and terms are not: rows are added up */
    bool lines;             /* of a sum: terms are lines, one for each result, and again in each example */
    int64_t parts;          /* into which each result's terms are cut */
    int64_t unit;           /* parts begin at multiples of so many terms */
    /* Tasks of a search for extremes, and of a sum. */
    int64_t tasks, sums;
    double *partial; /* (parts, results), in scratch memory; set by the run */
} reduction;

/* Bit i of `mask` says that axis i is reduced. */
static void split_axes(reduction *r, const sgm_array *x, int64_t mask)
{
    for (int32_t i = 0; i < x->shape.rank; i++) {
        bool goes = (mask >> i & 1) != 0;
        int32_t *rank = goes ? &r->gone_rank : &r->kept_rank;
        (goes ? r->gone : r->kept)[*rank] = x->shape.dims[i];
        (goes ? r->gone_strides : r->kept_strides)[(*rank)++] = x->strides[i];
        *(goes ? &r->terms : &r->results) *= x->shape.dims[i];
    }
    if (r->results == 0 || r->terms == 0)
        return;
    sgm__cpu_collapse(&r->kept_rank, r->kept, (int64_t *[]){r->kept_strides}, 1);
    sgm__cpu_collapse(&r->gone_rank, r->gone, (int64_t *[]){r->gone_strides}, 1);
}

/* Whether the operand is (examples, results, terms of a line) in memory's order. */
static bool has_lines(const reduction *r)
{
    if (r->call->node->op != &sgm__op_reduce_sum || r->columns || r->kept_rank != 1 || r->gone_rank != 2)
        return false;
    int64_t line = r->gone[1];
    return r->results > 1 && r->gone_strides[1] == 1 && r->kept_strides[0] == line &&
           r->gone_strides[0] == r->results * line && line >= MINIMUM_LINE && line <= PART &&
           r->gone[0] <= MAXIMUM_PARTS;
}

/* All that shapes decide. `tasks` follows from the number of threads, but parts, and with them the bits, do
 * not. */
static reduction prepare(const sgm__cpu_call *call)
{
    const sgm_array *x = &call->inputs[0];
    reduction r = {.call = call,
                   .dtype = x->dtype,
                   .size = sgm_dtype_size(x->dtype),
                   .results = 1,
                   .terms = 1,
                   .parts = 1,
                   .unit = 1};
    split_axes(&r, x, call->node->attributes.integers[0]);
    if (r.results == 0 || r.terms == 0)
        return r;
    int64_t last = r.kept[r.kept_rank - 1];
    r.columns = last >= 8 && r.kept_strides[r.kept_rank - 1] == 1 && r.gone_strides[r.gone_rank - 1] != 1;
    int64_t part = r.columns ? PART_ROWS : PART;
    if (r.results <= COLUMNS && r.terms >= 2 * part)
        r.parts = sgm__minimum(sgm__divide_up(r.terms, part), MAXIMUM_PARTS);
    int64_t line = x->shape.rank > 0 ? x->shape.dims[x->shape.rank - 1] : 1;
    /* Whole rows, so that parts can be summed as blocks of a product are made. */
    if (r.results == 1 && line <= PART)
        r.unit = line;
    r.tasks = sgm__minimum(r.results, 4 * (int64_t)call->cpu->threads);
    r.lines = has_lines(&r);
    if (r.lines) {
        r.parts = r.gone[0];
        r.unit = r.gone[1];
    }
    r.sums = r.parts > 1 && !r.lines ? r.parts * r.results : r.tasks;
    if (r.columns)
        r.sums = r.results / last * sgm__divide_up(last, COLUMNS) * r.parts;
    return r;
}

static sgm_status plan(const sgm__cpu_call *call, void *to)
{
    *(reduction *)to = prepare(call);
    return SGM_OK;
}

static size_t scratch(const sgm__cpu_call *call)
{
    reduction r = prepare(call);
    return r.parts > 1 ? (size_t)(r.parts * r.results) * sizeof(double) : 0;
}

static void store(const reduction *r, void *results, int64_t result, double sum)
{
    if (r->dtype == SGM_FLOAT32)
        ((float *)results)[result] = (float)sum;
    else
        ((double *)results)[result] = sum;
}

/* Terms *first to *last - 1. */
static void range_of_part(const reduction *r, int64_t part, int64_t *first, int64_t *last)
{
    sgm__pool_part(r->terms, r->unit, r->parts, part, first, last);
}

/* --- results that lie together --- */

/* sums[i] = terms first .. last - 1 of result `result + i`, for `count` results whose terms form rows. Few
 * terms are added with the sums in registers; many go a few rows at a time, over sums in memory. */
static void add_rows(const reduction *r, int64_t result, int64_t count, int64_t first, int64_t last,
                     double *sums)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const unsigned char *x = r->call->inputs[0].data;
    x += sgm__cpu_offset(result, r->kept_rank, r->kept, r->kept_strides) * (int64_t)r->size;
    if (r->gone_rank == 1 && (last - first) * r->gone_strides[0] <= SMALL) {
        int64_t stride = r->gone_strides[0];
        const void *from = x + first * stride * (int64_t)r->size;
        if (r->dtype == SGM_FLOAT32)
            vector->add_rows_f32(count, sums, from, last - first, stride);
        else
            vector->add_rows_f64(count, sums, from, last - first, stride);
        return;
    }
    memset(sums, 0, (size_t)count * sizeof *sums);
    int64_t maximum = r->gone_rank == 1 ? TOGETHER : 1, stride = r->gone_strides[r->gone_rank - 1];
    for (int64_t term = first; term < last; term += maximum) {
        int64_t rows = sgm__minimum(last - term, maximum);
        const unsigned char *row =
            x + sgm__cpu_offset(term, r->gone_rank, r->gone, r->gone_strides) * (int64_t)r->size;
        if (r->dtype == SGM_FLOAT32)
            vector->add_f32(count, sums, (const float *)(const void *)row, rows, stride);
        else
            vector->add_f64(count, sums, (const double *)(const void *)row, rows, stride);
    }
}

/* A task does up to COLUMNS results of one line of results, for one part of the terms, into `partial` or, if
 * there are no parts, into the result. */
static void sum_columns(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const reduction *r = context;
    int64_t line = r->kept[r->kept_rank - 1], across = sgm__divide_up(line, COLUMNS);
    int64_t part = index % r->parts, block = index / r->parts;
    int64_t first = block % across * COLUMNS, count = sgm__minimum(line - first, COLUMNS);
    int64_t result = block / across * line + first;
    double sums[COLUMNS];
    double *to = r->parts > 1 ? r->partial + part * r->results + result : sums;
    int64_t begin, end;
    range_of_part(r, part, &begin, &end);
    add_rows(r, result, count, begin, end, to);
    if (r->parts == 1)
        for (int64_t i = 0; i < count; i++)
            store(r, r->call->output.data, result + i, sums[i]);
}

/* --- results one by one --- */

/* Terms at equal distances. */
static double sum_line(const reduction *r, const unsigned char *x, int64_t stride, int64_t count)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *f32 = (const float *)(const void *)x;
    const double *f64 = (const double *)(const void *)x;
    if (stride == 1)
        return r->dtype == SGM_FLOAT32 ? vector->sum_f32(count, f32) : vector->sum_f64(count, f64);
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += r->dtype == SGM_FLOAT32 ? (double)f32[i * stride] : f64[i * stride];
    return sum;
}

/* Terms first .. last - 1 of one result, line by line of the last reduced dimension. */
static double sum_terms(const reduction *r, int64_t result, int64_t first, int64_t last)
{
    const unsigned char *x = r->call->inputs[0].data;
    x += sgm__cpu_offset(result, r->kept_rank, r->kept, r->kept_strides) * (int64_t)r->size;
    int64_t line = r->gone[r->gone_rank - 1], stride = r->gone_strides[r->gone_rank - 1];
    double sum = 0;
    while (first < last) {
        int64_t left = line - first % line, count = sgm__minimum(last - first, left);
        int64_t offset = sgm__cpu_offset(first, r->gone_rank, r->gone, r->gone_strides);
        sum += sum_line(r, x + offset * (int64_t)r->size, stride, count);
        first += count;
    }
    return sum;
}

/* A task does some lines, which follow each other in memory. */
static void sum_lines(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const reduction *r = context;
    int64_t first, last, line = r->gone[1];
    const unsigned char *x = r->call->inputs[0].data;
    sgm__pool_part(r->parts * r->results, 1, r->sums, index, &first, &last);
    for (int64_t i = first; i < last; i++)
        r->partial[i] = sum_line(r, x + i * line * (int64_t)r->size, 1, line);
}

/* A task does one part of one result, or, without parts, some results. */
static void sum_results(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const reduction *r = context;
    int64_t first, last;
    if (r->parts > 1) {
        int64_t part = index % r->parts, result = index / r->parts;
        range_of_part(r, part, &first, &last);
        r->partial[part * r->results + result] = sum_terms(r, result, first, last);
        return;
    }
    sgm__pool_part(r->results, 1, r->tasks, index, &first, &last);
    for (int64_t i = first; i < last; i++)
        store(r, r->call->output.data, i, sum_terms(r, i, 0, r->terms));
}

static void add_parts(const reduction *r, const double *partial, void *results)
{
    for (int64_t i = 0; i < r->results; i++) {
        double sum = 0;
        for (int64_t part = 0; part < r->parts; part++)
            sum += partial[part * r->results + i];
        store(r, results, i, sum);
    }
}

/* Small reductions are done here and now, without the pool. */
static void post(const reduction *r, int64_t tasks, sgm__pool_task task)
{
    if (r->results * r->terms >= SGM__CPU_PARALLEL_WORK) {
        sgm__pool_post(r->call->cpu->pool, tasks, task, r, sizeof *r);
        return;
    }
    sgm__pool_ready(r->call->cpu->pool);
    for (int64_t i = 0; i < tasks; i++)
        task((void *)(uintptr_t)r, i, 0);
}

static void add_up(const reduction *r)
{
    post(r, r->sums, r->columns ? sum_columns : r->lines ? sum_lines : sum_results);
}

/* With parts, the last addition happens in this thread, once all parts are there. */
static sgm_status run_sum(const sgm__cpu_call *call)
{
    const reduction *planned = call->plan;
    if (planned->results == 0 || planned->terms == 0) {
        sgm__pool_ready(call->cpu->pool);
        memset(call->output.data, 0, (size_t)planned->results * planned->size);
    } else if (planned->parts == 1) {
        add_up(planned);
    } else {
        reduction r = *planned;
        r.partial = (double *)(void *)call->scratch;
        add_up(&r);
        sgm__pool_finish(call->cpu->pool);
        add_parts(&r, r.partial, call->output.data);
    }
    return SGM_OK;
}

/* --- sums whose terms come part by part --- */

/* Terms of a row that is summed at a time: of one result, or of one in one example. */
static int64_t row_of(const reduction *r)
{
    return r->lines ? r->gone[1] : r->terms;
}

/* Rows that are summed together: some 4096 terms. */
static int64_t rows_of_part(const reduction *r)
{
    return row_of(r) < SMALL ? SMALL / row_of(r) : 1;
}

static int64_t rows_in_all(const reduction *r)
{
    return r->lines ? r->parts * r->results : r->results;
}

/* Whether sums are of rows that lie one after the other. */
static bool sums_rows(const reduction *r)
{
    return r->lines || (r->results > 1 && r->parts == 1 && r->terms <= PART && r->kept_rank == 1 &&
                        r->kept_strides[0] == r->terms);
}

/* A sum of everything has the parts that it would have alone. Sums of rows: some whole rows in each part. */
int64_t sgm__cpu_sum_parts(const sgm__cpu_call *call, int64_t *maximum, int64_t *unit)
{
    const reduction *r = call->plan;
    bool contiguous = r != NULL && !r->columns && r->results > 0 && r->terms > 0 &&
                      (r->lines || (r->gone_rank == 1 && (r->gone_strides[0] == 1 || r->terms == 1)));
    if (contiguous && r->results == 1) {
        *maximum = sgm__divide_up(r->terms / r->unit, r->parts) * r->unit;
        *unit = r->unit;
        return r->parts;
    }
    if (!contiguous || !sums_rows(r))
        return 0;
    *maximum = rows_of_part(r) * row_of(r);
    *unit = row_of(r);
    return sgm__divide_up(rows_in_all(r), rows_of_part(r));
}

int64_t sgm__cpu_sum_partials(const sgm__cpu_call *call)
{
    const reduction *r = call->plan;
    return r->results == 1 || r->lines ? r->parts * r->results : 0;
}

void sgm__cpu_sum_range(const sgm__cpu_call *call, int64_t part, int64_t *first, int64_t *last)
{
    const reduction *r = call->plan;
    if (r->results == 1) {
        range_of_part(r, part, first, last);
        return;
    }
    int64_t rows = rows_of_part(r), end = (part + 1) * rows;
    *first = part * rows * row_of(r);
    *last = sgm__minimum(end, rows_in_all(r)) * row_of(r);
}

void sgm__cpu_sum_part(const sgm__cpu_call *call, int64_t part, const void *terms, double *partial,
                       void *result)
{
    const reduction *r = call->plan;
    int64_t first, last;
    sgm__cpu_sum_range(call, part, &first, &last);
    if (r->results == 1) {
        partial[part] = sum_line(r, terms, 1, last - first);
        return;
    }
    const unsigned char *row = terms;
    int64_t length = row_of(r);
    for (int64_t i = first / length; i < last / length; i++, row += length * (int64_t)r->size) {
        double sum = sum_line(r, row, 1, length);
        if (r->lines)
            partial[i] = sum;
        else
            store(r, result, i, sum);
    }
}

void sgm__cpu_sum_end(const sgm__cpu_call *call, const double *partial, void *result)
{
    const reduction *r = call->plan;
    if (r->results == 1 || r->lines)
        add_parts(r, partial, result);
}

/* --- largest and smallest --- */

/* Whether `value` takes the place of the extreme so far: the last NaN wins over everything else, and of equal
 * values the first stays. So the extreme of parts, taken in their order, has the bits that one pass gives. */
#define WINS(value, beats, best) ((value)beats(best) || (value) != (value))

/* The extreme of `best` and of `count` terms at equal distances. */
#define DEFINE_LINE(name, type, beats)                                                                       \
    static type name(int64_t count, const type *from, int64_t stride, type best)                             \
    {                                                                                                        \
        for (int64_t i = 0; i < count; i++) {                                                                \
            type value = from[i * stride];                                                                   \
            if (WINS(value, beats, best))                                                                    \
                best = value;                                                                                \
        }                                                                                                    \
        return best;                                                                                         \
    }
DEFINE_LINE(max_float, float, >)
DEFINE_LINE(min_float, float, <)
DEFINE_LINE(max_double, double, >)
DEFINE_LINE(min_double, double, <)

/* *to = the extreme of terms first .. last - 1 of result `result`, line by line of the last reduced
 * dimension.
 */
#define FIND_EXTREME(type)                                                                                   \
    do {                                                                                                     \
        const type *x = (const type *)r->call->inputs[0].data + base;                                        \
        const type *from = x + sgm__cpu_offset(first, r->gone_rank, r->gone, r->gone_strides);               \
        type best = *from;                                                                                   \
        for (int64_t left = first > 0 ? line - first % line : line;; left = line) {                          \
            int64_t count = sgm__minimum(last - first, left);                                                \
            best = (largest ? max_##type : min_##type)(count, from, stride, best);                           \
            first += count;                                                                                  \
            if (first == last)                                                                               \
                break;                                                                                       \
            from = x + sgm__cpu_offset(first, r->gone_rank, r->gone, r->gone_strides);                       \
        }                                                                                                    \
        *(type *)to = best;                                                                                  \
    } while (0)

static void find_extreme(const reduction *r, int64_t result, int64_t first, int64_t last, bool largest,
                         void *to)
{
    int64_t base = sgm__cpu_offset(result, r->kept_rank, r->kept, r->kept_strides);
    int64_t line = r->gone[r->gone_rank - 1], stride = r->gone_strides[r->gone_rank - 1];
    if (r->dtype == SGM_FLOAT32)
        FIND_EXTREME(float);
    else
        FIND_EXTREME(double);
}

/* Results that lie together are many, and the parts of their sums are few terms far from each other, which
 * take longer than the threads would save. So only other searches are cut into parts. */
static bool searches_parts(const reduction *r)
{
    return r->parts > 1 && !r->columns;
}

/* A task does one part of one result, or, without parts, some results. Extremes of parts lie in `partial` in
 * the operand's type, as a way through double would change some NaNs. */
static void find_extremes(const reduction *r, int64_t index, bool largest)
{
    int64_t first, last;
    if (searches_parts(r)) {
        int64_t part = index % r->parts, result = index / r->parts;
        range_of_part(r, part, &first, &last);
        find_extreme(r, result, first, last, largest, (char *)r->partial + (size_t)index * r->size);
        return;
    }
    sgm__pool_part(r->results, 1, r->tasks, index, &first, &last);
    for (int64_t i = first; i < last; i++)
        find_extreme(r, i, 0, r->terms, largest, (char *)r->call->output.data + (size_t)i * r->size);
}

#define JOIN_PARTS(type)                                                                                     \
    for (int64_t i = 0; i < r->results; i++) {                                                               \
        const type *parts = (const type *)(const void *)r->partial + i * r->parts;                           \
        type best = parts[0];                                                                                \
        for (int64_t part = 1; part < r->parts; part++)                                                      \
            if (largest ? WINS(parts[part], >, best) : WINS(parts[part], <, best))                           \
                best = parts[part];                                                                          \
        ((type *)r->call->output.data)[i] = best;                                                            \
    }

static void join_extremes(const reduction *r, bool largest)
{
    if (r->dtype == SGM_FLOAT32)
        JOIN_PARTS(float)
    else
        JOIN_PARTS(double)
}

/* With parts, they are compared in this thread, once all of them are there. */
static sgm_status run_extreme(const sgm__cpu_call *call, sgm__pool_task find, bool largest)
{
    reduction r = *(const reduction *)call->plan;
    if (!searches_parts(&r)) {
        post(call->plan, r.tasks, find);
        return SGM_OK;
    }
    r.partial = (double *)(void *)call->scratch;
    post(&r, r.parts * r.results, find);
    sgm__pool_finish(call->cpu->pool);
    join_extremes(&r, largest);
    return SGM_OK;
}

/* An operation. */
#define DEFINE_EXTREMES(name, largest)                                                                       \
    static void find_##name(void *context, int64_t index, int32_t thread)                                    \
    {                                                                                                        \
        (void)thread;                                                                                        \
        find_extremes(context, index, largest);                                                              \
    }                                                                                                        \
    static sgm_status run_##name(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        return run_extreme(call, find_##name, largest);                                                      \
    }                                                                                                        \
    const sgm__cpu_kernel sgm__cpu_reduce_##name = {.op = &sgm__op_reduce_##name,                            \
                                                    .types = SGM__CPU_FLOATS,                                \
                                                    .scratch = scratch,                                      \
                                                    .plan_size = sizeof(reduction),                          \
                                                    .plan = plan,                                            \
                                                    .posts = true,                                           \
                                                    .run = run_##name};
DEFINE_EXTREMES(max, true)
DEFINE_EXTREMES(min, false)

const sgm__cpu_kernel sgm__cpu_reduce_sum = {.op = &sgm__op_reduce_sum,
                                             .types = SGM__CPU_FLOATS,
                                             .scratch = scratch,
                                             .plan_size = sizeof(reduction),
                                             .plan = plan,
                                             .posts = true,
                                             .run = run_sum};
