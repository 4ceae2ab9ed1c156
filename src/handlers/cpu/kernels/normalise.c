/* layer_norm, rms_norm and their gradients over the last axis, each row while it is in the first cache.
 *
 * layer_norm: y = (x - mean(x)) / sqrt(variance(x) + epsilon); rms_norm: y = x / sqrt(mean(x^2) + epsilon)
 * (Zhang and Sennrich, 2019). Scales and biases are elementwise operations of their own. Sums are kept in
 * double. A task does some rows; float32 only, other types are composed of single operations
 * (src/ops/normalise.c). */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#include <math.h>

#define ROWS_PER_TASK_WORK 4096 /* elements from which on rows are worth another task */

/* A call: `count` rows of `columns` elements, contiguous. `centred`: layer_norm; else rms_norm. */
typedef struct rows {
    const sgm__cpu_call *call;
    int64_t count, columns, tasks;
    double epsilon;
    bool centred;
    void (*row)(const struct rows *r, int64_t index);
} rows;

static const float *row_of(const sgm_array *array, int64_t index, int64_t columns)
{
    return (const float *)array->data + index * columns;
}

/* Returns 1 / sqrt(mean(z^2) + epsilon), where z is x minus its mean (centred), or x. A centred z goes to
 * `to`; else `to` is not written. */
static float centre(const rows *r, const float *x, float *to)
{
    const sgm__vector *vector = r->call->cpu->vector;
    double n = (double)r->columns;
    if (r->centred)
        vector->shift_f32(r->columns, to, x, (float)(vector->sum_f32(r->columns, x) / n));
    const float *centred = r->centred ? to : x;
    return (float)(1 / sqrt(vector->dot_f32(r->columns, centred, centred) / n + r->epsilon));
}

static void normalise_row(const rows *r, int64_t index)
{
    const float *x = row_of(&r->call->inputs[0], index, r->columns);
    float *to = (float *)r->call->output.data + index * r->columns;
    float scale = centre(r, x, to);
    r->call->cpu->vector->scale_f32(r->columns, to, r->centred ? to : x, scale);
}

/* With y the result and g its gradient: scale (g - mean(g) - y mean(g y)), for rms_norm without mean(g).
 * Operands: x, y, g. The scale is computed again from x, for which the result's memory serves as scratch. */
static void gradient_row(const rows *r, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *y = row_of(&r->call->inputs[1], index, r->columns);
    const float *g = row_of(&r->call->inputs[2], index, r->columns);
    float *to = (float *)r->call->output.data + index * r->columns;
    float scale = centre(r, row_of(&r->call->inputs[0], index, r->columns), to);
    double n = (double)r->columns, mean = r->centred ? vector->sum_f32(r->columns, g) / n : 0;
    double share = vector->dot_f32(r->columns, g, y) / n;
    vector->blend_f32(r->columns, to, g, scale, y, -scale * (float)share, -scale * (float)mean);
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

static sgm_status run_rows(const sgm__cpu_call *call, bool centred, void (*row)(const rows *r, int64_t index))
{
    const sgm_shape *shape = &call->inputs[0].shape;
    rows r = {.call = call,
              .count = 1,
              .columns = shape->dims[shape->rank - 1],
              .epsilon = call->node->attributes.numbers[0],
              .centred = centred,
              .row = row};
    for (int32_t i = 0; i + 1 < shape->rank; i++)
        r.count *= shape->dims[i];
    int64_t maximum = 4 * (int64_t)call->cpu->threads;
    r.tasks = r.count * r.columns / ROWS_PER_TASK_WORK;
    r.tasks = r.tasks > maximum ? maximum : r.tasks < 1 ? 1 : r.tasks;
    sgm__pool_post(call->cpu->pool, r.tasks, run_task, &r, sizeof r);
    return SGM_OK;
}

static sgm_status run_layer_norm(const sgm__cpu_call *call)
{
    return run_rows(call, true, normalise_row);
}

static sgm_status run_layer_norm_gradient(const sgm__cpu_call *call)
{
    return run_rows(call, true, gradient_row);
}

static sgm_status run_rms_norm(const sgm__cpu_call *call)
{
    return run_rows(call, false, normalise_row);
}

static sgm_status run_rms_norm_gradient(const sgm__cpu_call *call)
{
    return run_rows(call, false, gradient_row);
}

const sgm__cpu_kernel sgm__cpu_layer_norm = {
    .op = &sgm__op_layer_norm, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_layer_norm};
const sgm__cpu_kernel sgm__cpu_layer_norm_gradient = {.op = &sgm__op_layer_norm_gradient,
                                                      .types = SGM__CPU_FLOAT32,
                                                      .posts = true,
                                                      .run = run_layer_norm_gradient};
const sgm__cpu_kernel sgm__cpu_rms_norm = {
    .op = &sgm__op_rms_norm, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_rms_norm};
const sgm__cpu_kernel sgm__cpu_rms_norm_gradient = {
    .op = &sgm__op_rms_norm_gradient, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_rms_norm_gradient};
