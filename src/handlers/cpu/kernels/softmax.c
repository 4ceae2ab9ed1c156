/* softmax, log_softmax, softmax_cross_entropy, class_cross_entropy and their gradients over the last axis,
 * each in one pass over a row.
 *
 * All start from the same three things of a row x: its largest element, e^(x - largest), and the sum of that
 * in double; shifting by the largest keeps everything from overflowing. Rows of fewer than NARROW columns
 * (classes of small networks) share vectors: up to BLOCK elements are done together. A task does some rows.
 * float32 only; other types are composed of single operations (src/ops/softmax.c). */
#include "handlers/cpu/kernels/kernels.h"
#include "handlers/cpu/kernels/rows.h"
#include "ops/ops.h"

#include <math.h>

#define NARROW 16 /* columns from which on a row fills vectors of its own */
#define BLOCK 256 /* elements of narrow rows that are done together */

/* What all of them need of each row of a block. `exps` is used only where they are not kept in the result. */
typedef struct weights {
    float largest[BLOCK], exps[BLOCK];
    double sums[BLOCK];
} weights;

/* One exponential loop for all rows of the block. A NaN in a row makes its largest element NaN, and with it
 * all results. */
static void weigh_narrow(const sgm__rows *r, const float *x, int64_t count, float *exps, weights *w)
{
    for (int64_t row = 0; row < count; row++, x += r->columns) {
        float largest = -INFINITY;
        for (int64_t i = 0; i < r->columns; i++)
            largest = x[i] > largest || x[i] != x[i] ? x[i] : largest;
        for (int64_t i = 0; i < r->columns; i++)
            exps[row * r->columns + i] = x[i] - largest;
        w->largest[row] = largest;
    }
    r->call->cpu->vector->exp_shifted_f32(count * r->columns, exps, exps, 0);
    for (int64_t row = 0; row < count; row++) {
        double sum = 0;
        for (int64_t i = 0; i < r->columns; i++)
            sum += (double)exps[row * r->columns + i];
        w->sums[row] = sum;
    }
}

/* Fills in `w` for `count` rows. `exps`: where e^(x - largest) goes; NULL: it is not kept. */
static void weigh(const sgm__rows *r, int64_t first, int64_t count, float *exps, weights *w)
{
    const sgm__vector *vector = r->call->cpu->vector;
    const float *x = sgm__row_of(r, 0, first);
    if (r->columns < NARROW) {
        weigh_narrow(r, x, count, exps != NULL ? exps : w->exps, w);
        return;
    }
    for (int64_t row = 0; row < count; row++, x += r->columns) {
        w->largest[row] = vector->largest_f32(r->columns, x);
        w->sums[row] = vector->exp_shifted_f32(r->columns, exps, x, w->largest[row]);
        exps = exps != NULL ? exps + r->columns : NULL;
    }
}

/* e^(x - largest) / sum */
static void softmax_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    float *to = sgm__row_of_result(r, first);
    weigh(r, first, count, to, &w);
    for (int64_t row = 0; row < count; row++, to += r->columns)
        r->call->cpu->vector->scale_f32(r->columns, to, to, (float)(1 / w.sums[row]));
}

/* x - largest - ln(sum) */
static void log_softmax_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    const float *x = sgm__row_of(r, 0, first);
    float *to = sgm__row_of_result(r, first);
    weigh(r, first, count, NULL, &w);
    for (int64_t row = 0; row < count; row++, x += r->columns, to += r->columns) {
        r->call->cpu->vector->shift_f32(r->columns, to, x, w.largest[row]);
        r->call->cpu->vector->shift_f32(r->columns, to, to, (float)log(w.sums[row]));
    }
}

/* sum(t (l - x)) over the classes whose target is not 0, in double. */
static double sum_of_shares(const float *targets, const float *x, int64_t count, double l)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += targets[i] != 0 ? (double)targets[i] * (l - (double)x[i]) : 0;
    return sum;
}

/* -sum(t (x - l)) = l sum(t) - sum(t x), where l = ln(sum(e^x)) = ln(sum(e^(x - largest))) + largest. If that
 * is not finite, an infinite x may have met a target of 0, where the product is NaN: then the sum is taken
 * over the classes with a target. */
static void cross_entropy_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    const float *x = sgm__row_of(r, 0, first);
    const float *targets = sgm__row_of(r, 1, first);
    float *to = (float *)r->call->output.data + first;
    weigh(r, first, count, NULL, &w);
    for (int64_t row = 0; row < count; row++, x += r->columns, targets += r->columns) {
        const sgm__vector *vector = r->call->cpu->vector;
        double total = log(w.sums[row]) + (double)w.largest[row];
        double cost = total * vector->sum_f32(r->columns, targets) - vector->dot_f32(r->columns, targets, x);
        to[row] = (float)(isfinite(cost) ? cost : sum_of_shares(targets, x, r->columns, total));
    }
}

/* (softmax(x) sum(t) - t) factor, where `factor` is the gradient of the row's cost. */
static void cross_entropy_gradient_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    const float *targets = sgm__row_of(r, 1, first);
    const float *factors = (const float *)r->call->inputs[2].data + first;
    float *to = sgm__row_of_result(r, first);
    weigh(r, first, count, to, &w);
    for (int64_t row = 0; row < count; row++, targets += r->columns, to += r->columns) {
        const sgm__vector *vector = r->call->cpu->vector;
        double factor = (double)factors[row], share = vector->sum_f32(r->columns, targets) / w.sums[row];
        vector->blend_f32(r->columns, to, to, (float)(share * factor), targets, (float)-factor, 0);
    }
}

/* --- class_cross_entropy: targets are numbers of classes, int32 or int64 --- */

static int64_t class_at(const sgm_array *classes, int64_t row)
{
    return classes->dtype == SGM_INT64 ? ((const int64_t *)classes->data)[row]
                                       : ((const int32_t *)classes->data)[row];
}

/* -log(e^x[class] / sum(e^x)). */
static void class_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    const float *x = sgm__row_of(r, 0, first);
    float *to = (float *)r->call->output.data + first;
    weigh(r, first, count, NULL, &w);
    for (int64_t row = 0; row < count; row++, x += r->columns) {
        double total = log(w.sums[row]) + (double)w.largest[row];
        to[row] = (float)(total - (double)x[class_at(&r->call->inputs[1], first + row)]);
    }
}

/* softmax(x) factor, less the factor at the class. The result may lie where x does. */
static void class_gradient_block(const sgm__rows *r, int64_t first, int64_t count)
{
    weights w;
    const float *factors = (const float *)r->call->inputs[2].data + first, one = 1;
    const sgm__vector *vector = r->call->cpu->vector;
    float *to = sgm__row_of_result(r, first);
    weigh(r, first, count, to, &w);
    for (int64_t row = 0; row < count; row++, to += r->columns) {
        int64_t class = class_at(&r->call->inputs[1], first + row);
        double factor = (double)factors[row];
        float scale = (float)(1 / w.sums[row] * factor), weight = to[class];
        vector->scale_f32(r->columns, to, to, scale);
        vector->blend_f32(1, to + class, &weight, scale, &one, (float)-factor, 0);
    }
}

/* Posts the loop if all classes are there: a wrong one is an error that names it. */
static sgm_status post_classes(const sgm__cpu_call *call,
                               void (*block)(const sgm__rows *r, int64_t first, int64_t count))
{
    const sgm_shape *shape = &call->inputs[0].shape;
    int64_t columns = shape->dims[shape->rank - 1], rows = sgm_shape_elements(&call->inputs[1].shape);
    sgm__pool_ready(call->cpu->pool);
    for (int64_t row = 0; row < rows; row++) {
        int64_t class = class_at(&call->inputs[1], row);
        if (class < 0 || class >= columns)
            return sgm__fail_class(class, columns);
    }
    return sgm__rows_post(call, columns < NARROW ? BLOCK : 1, block);
}

static sgm_status run_class_cross_entropy(const sgm__cpu_call *call)
{
    return post_classes(call, class_block);
}

static sgm_status run_class_cross_entropy_gradient(const sgm__cpu_call *call)
{
    return post_classes(call, class_gradient_block);
}

#define OF_CLASSES(name)                                                                                     \
    const sgm__cpu_kernel sgm__cpu_##name = {                                                                \
        .op = &sgm__op_##name, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_##name};

OF_CLASSES(class_cross_entropy)
OF_CLASSES(class_cross_entropy_gradient)

/* --- the others --- */

/* An operation. Narrow rows are done together. */
#define OVER_ROWS(name, block)                                                                               \
    static sgm_status run_##name(const sgm__cpu_call *call)                                                  \
    {                                                                                                        \
        const sgm_shape *shape = &call->inputs[0].shape;                                                     \
        return sgm__rows_post(call, shape->dims[shape->rank - 1] < NARROW ? BLOCK : 1, block);               \
    }                                                                                                        \
    const sgm__cpu_kernel sgm__cpu_##name = {                                                                \
        .op = &sgm__op_##name, .types = SGM__CPU_FLOAT32, .posts = true, .run = run_##name};

OVER_ROWS(softmax, softmax_block)
OVER_ROWS(log_softmax, log_softmax_block)
OVER_ROWS(softmax_cross_entropy, cross_entropy_block)
OVER_ROWS(softmax_cross_entropy_gradient, cross_entropy_gradient_block)
