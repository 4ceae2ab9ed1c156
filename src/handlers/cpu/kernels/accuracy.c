/* The operation accuracy: the share of rows whose largest output is at the target's class.
 *
 * Outputs are (..., classes); targets have the same shape, and their largest element is the class, or one
 * number of a class for each row. Rows are compared in place, without a list of positions in between (arg_max
 * in indices.c makes one). The result is one float64. Threads count in slots of their own, which are added at
 * the end. */
#include "handlers/cpu/cpu.h"
#include "handlers/cpu/kernels/kernels.h"
#include "ops/ops.h"

#include <math.h>

#define LONG 64 /* classes from which on two passes by vectors are faster than one by single numbers */

/* `tasks` is planned with the number of threads; counts are whole numbers, so the result does not depend on
 * it. */
typedef struct rows {
    const sgm__cpu_call *call;
    int64_t count, classes, tasks;
    bool numbers;   /* targets are numbers of classes */
    int64_t *right; /* correct rows of each task, in scratch memory */
} rows;

/* The position of the first largest element, or of the first NaN. Without branches, which would be guessed
 * wrong half of the time. */
static inline int64_t largest_of(const float *x, int64_t classes)
{
    int64_t best = 0;
    float old = *x;
    for (int64_t k = 1; k < classes; k++) {
        bool wins = !(x[k] <= old) & (old == old);
        best = wins ? k : best;
        old = wins ? x[k] : old;
    }
    return best;
}

/* The same; of long rows the largest by vectors, then where it is for the first time. */
static int64_t first_largest(const sgm__vector *vector, const float *x, int64_t classes)
{
    if (classes < LONG)
        return largest_of(x, classes);
    float largest = vector->largest_f32(classes, x);
    int64_t first = 0;
    if (isnan(largest))
        return largest_of(x, classes);
    while (x[first] != largest)
        first++;
    return first;
}

static void count_right(void *context, int64_t task, int32_t thread)
{
    (void)thread;
    const rows *r = context;
    int64_t first, last, right = 0;
    sgm__pool_part(r->count, 1, r->tasks, task, &first, &last);
    const float *x = (const float *)r->call->inputs[0].data + first * r->classes;
    const float *targets = r->call->inputs[1].data;
    for (int64_t row = first; row < last; row++, x += r->classes) {
        int64_t predicted = first_largest(r->call->cpu->vector, x, r->classes);
        if (r->numbers)
            right += trunc((double)targets[row]) == (double)predicted;
        else
            right += first_largest(r->call->cpu->vector, targets + row * r->classes, r->classes) == predicted;
    }
    r->right[task] = right;
}

static rows prepare(const sgm__cpu_call *call)
{
    const sgm_shape *shape = &call->inputs[0].shape;
    rows r = {.call = call,
              .classes = shape->dims[shape->rank - 1],
              .numbers = call->inputs[1].shape.rank < shape->rank};
    r.count = sgm_shape_elements(shape) / r.classes;
    r.tasks = r.count * r.classes < SGM__CPU_PARALLEL_WORK ? 1 : 4 * (int64_t)call->cpu->threads;
    return r;
}

static sgm_status plan(const sgm__cpu_call *call, void *to)
{
    *(rows *)to = prepare(call);
    return SGM_OK;
}

static size_t scratch(const sgm__cpu_call *call)
{
    return (size_t)prepare(call).tasks * sizeof(int64_t);
}

static sgm_status run(const sgm__cpu_call *call)
{
    rows r = *(const rows *)call->plan;
    int64_t right = 0;
    r.right = (int64_t *)(void *)call->scratch;
    sgm__pool_run(call->cpu->pool, r.tasks, count_right, &r);
    for (int64_t i = 0; i < r.tasks; i++)
        right += r.right[i];
    *(double *)call->output.data = (double)right / (double)r.count;
    return SGM_OK;
}

static bool accepts(const sgm__cpu_call *call)
{
    return call->inputs[1].dtype == SGM_FLOAT32;
}

const sgm__cpu_kernel sgm__cpu_accuracy = {.op = &sgm__op_accuracy,
                                           .types = SGM__CPU_FLOAT32,
                                           .by_operand = true,
                                           .accepts = accepts,
                                           .scratch = scratch,
                                           .plan_size = sizeof(rows),
                                           .plan = plan,
                                           .run = run};
