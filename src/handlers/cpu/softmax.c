/* softmax, log_softmax and softmax_cross_entropy over the last axis, in one pass over each row. Rows are
 * shifted by their largest element, so that nothing overflows. */
#include "handlers/cpu/cpu.h"
#include "ops/ops.h"

#include <math.h>

#define ROWS_PER_TASK_WORK 4096

typedef struct rows {
    const sgm__cpu_call *call;
    int64_t count, columns, tasks;
    void (*row)(const struct rows *r, int64_t index);
} rows;

static const float *row_of(const sgm_array *array, int64_t index, int64_t columns)
{
    return (const float *)array->data + index * columns;
}

static void softmax_row(const rows *r, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *x = row_of(&r->call->inputs[0], index, r->columns);
    float *to = (float *)r->call->output.data + index * r->columns;
    double sum = vector->exp_shifted_f32(r->columns, to, x, vector->largest_f32(r->columns, x));
    vector->scale_f32(r->columns, to, to, (float)(1 / sum));
}

static void log_softmax_row(const rows *r, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *x = row_of(&r->call->inputs[0], index, r->columns);
    float *to = (float *)r->call->output.data + index * r->columns;
    float largest = vector->largest_f32(r->columns, x);
    double sum = vector->exp_shifted_f32(r->columns, NULL, x, largest);
    vector->shift_f32(r->columns, to, x, largest);
    vector->shift_f32(r->columns, to, to, (float)log(sum));
}

/* -sum(t * (x - l)) = l * sum(t) - sum(t * x), where l is the logarithm of sum(exp(x)); both relative to the
 * largest x. */
static void cross_entropy_row(const rows *r, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *x = row_of(&r->call->inputs[0], index, r->columns);
    const float *targets = row_of(&r->call->inputs[1], index, r->columns);
    float largest = vector->largest_f32(r->columns, x);
    double total = log(vector->exp_shifted_f32(r->columns, NULL, x, largest)), cost = 0;
    for (int64_t i = 0; i < r->columns; i++)
        cost -= (double)targets[i] * ((double)x[i] - (double)largest - total);
    ((float *)r->call->output.data)[index] = (float)cost;
}

/* (softmax(x) * sum(t) - t) * factor */
static void cross_entropy_slope_row(const rows *r, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *x = row_of(&r->call->inputs[0], index, r->columns);
    const float *targets = row_of(&r->call->inputs[1], index, r->columns);
    float factor = ((const float *)r->call->inputs[2].data)[index];
    float *to = (float *)r->call->output.data + index * r->columns;
    double sum = vector->exp_shifted_f32(r->columns, to, x, vector->largest_f32(r->columns, x));
    float share = (float)(vector->sum_f32(r->columns, targets) / sum);
    for (int64_t i = 0; i < r->columns; i++)
        to[i] = (to[i] * share - targets[i]) * factor;
}

static void run_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const rows *r = context;
    int64_t first, last;
    sgm__pool_part(r->count, 1, r->tasks, index, &first, &last);
    for (int64_t i = first; i < last; i++)
        r->row(r, i);
}

static sgm_status run_rows(const sgm__cpu_call *call, void (*row)(const rows *r, int64_t index))
{
    const sgm_shape *shape = &call->inputs[0].shape;
    rows r = {.call = call, .columns = shape->dims[shape->rank - 1], .count = 1, .row = row};
    for (int32_t i = 0; i + 1 < shape->rank; i++)
        r.count *= shape->dims[i];
    r.tasks = r.count * r.columns / ROWS_PER_TASK_WORK;
    r.tasks = r.tasks > 4 * (int64_t)call->cpu->threads ? 4 * (int64_t)call->cpu->threads : r.tasks;
    r.tasks = r.tasks < 1 ? 1 : r.tasks;
    sgm__pool_run(call->cpu->pool, r.tasks, run_task, &r);
    return SGM_OK;
}

static sgm_status run_softmax(const sgm__cpu_call *call)
{
    return run_rows(call, softmax_row);
}

static sgm_status run_log_softmax(const sgm__cpu_call *call)
{
    return run_rows(call, log_softmax_row);
}

static sgm_status run_cross_entropy(const sgm__cpu_call *call)
{
    return run_rows(call, cross_entropy_row);
}

static sgm_status run_cross_entropy_slope(const sgm__cpu_call *call)
{
    return run_rows(call, cross_entropy_slope_row);
}

static bool takes(sgm_dtype dtype)
{
    return dtype == SGM_FLOAT32;
}

const sgm__cpu_kernel sgm__cpu_softmax = {.op = &sgm__op_softmax, .takes = takes, .run = run_softmax};
const sgm__cpu_kernel sgm__cpu_log_softmax = {
    .op = &sgm__op_log_softmax, .takes = takes, .run = run_log_softmax};
const sgm__cpu_kernel sgm__cpu_softmax_cross_entropy = {
    .op = &sgm__op_softmax_cross_entropy, .takes = takes, .run = run_cross_entropy};
const sgm__cpu_kernel sgm__cpu_softmax_cross_entropy_slope = {
    .op = &sgm__op_softmax_cross_entropy_slope, .takes = takes, .run = run_cross_entropy_slope};
