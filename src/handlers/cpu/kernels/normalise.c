/* layer_norm, rms_norm and their gradients over the last axis, each row while it is in the first cache.
 *
 * layer_norm: y = (x - mean(x)) / sqrt(variance(x) + epsilon); rms_norm: y = x / sqrt(mean(x^2) + epsilon)
 * (Zhang and Sennrich, 2019). Scales and biases are elementwise operations of their own. Sums are kept in
 * double. A task does some rows; float32 only, other types are composed of single operations
 * (src/ops/normalise.c). */
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/kernels/rows.h"
#include "ops/ops.h"

#include <math.h>

/* Returns 1 / sqrt(mean(z^2) + epsilon), where z is x minus its mean (`centred`: layer_norm), or x. A centred
 * z goes to `to`; else `to` is not written. */
static float centre(const sgm__rows *r, bool centred, const float *x, float *to)
{
    const sgm__vector *vector = r->call->cpu->vector;
    double n = (double)r->columns, epsilon = r->call->node->attributes.numbers[0];
    if (centred)
        vector->shift_f32(r->columns, to, x, (float)(vector->sum_f32(r->columns, x) / n));
    const float *z = centred ? to : x;
    return (float)(1 / sqrt(vector->dot_f32(r->columns, z, z) / n + epsilon));
}

static void normalise(const sgm__rows *r, bool centred, int64_t index)
{
    const float *x = sgm__row_of(r, 0, index);
    float *to = sgm__row_of_result(r, index);
    float scale = centre(r, centred, x, to);
    r->call->cpu->vector->scale_f32(r->columns, to, centred ? to : x, scale);
}

/* With y the result and g its gradient: scale (g - mean(g) - y mean(g y)), for rms_norm without mean(g).
 * Operands: x, y, g. The scale is computed again from x, for which the result's memory serves as scratch. */
static void gradient(const sgm__rows *r, bool centred, int64_t index)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *y = sgm__row_of(r, 1, index), *g = sgm__row_of(r, 2, index);
    float *to = sgm__row_of_result(r, index);
    float scale = centre(r, centred, sgm__row_of(r, 0, index), to);
    double n = (double)r->columns, mean = centred ? vector->sum_f32(r->columns, g) / n : 0;
    double share = vector->dot_f32(r->columns, g, y) / n;
    vector->blend_f32(r->columns, to, g, scale, y, -scale * (float)share, -scale * (float)mean);
}

/* An operation: one row at a time. */
#define NORMALISATION(name, of_row, centred)                                                                 \
    static void name##_row(const sgm__rows *r, int64_t first, int64_t count)                                 \
    {                                                                                                        \
        (void)count;                                                                                         \
        of_row(r, centred, first);                                                                           \
    }                                                                                                        \
    static sgm_status run_##name(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        return sgm__rows_post(call, 1, name##_row);                                                          \
    }                                                                                                        \
    const sgm__cpu_kernel sgm__cpu_##name = {                                                                \
        .op = &sgm__op_##name, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_##name};

NORMALISATION(layer_norm, normalise, true)
NORMALISATION(layer_norm_gradient, gradient, true)
NORMALISATION(rms_norm, normalise, false)
NORMALISATION(rms_norm_gradient, gradient, false)
