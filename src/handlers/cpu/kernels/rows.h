/* What softmax.c and normalise.c share: loops over contiguous rows of float32, the last axis. Internal.
 *
 * Rows do not depend on each other, so the bits are the same for any number of threads. */
#ifndef SGM_HANDLERS_CPU_KERNELS_ROWS_H
#define SGM_HANDLERS_CPU_KERNELS_ROWS_H

#include "handlers/cpu/cpu.h"

/* Elements from which on rows are worth another task. */
#define SGM__ROWS_TASK_WORK 4096

/* A call: `count` rows of `columns` elements. */
typedef struct sgm__rows {
    const sgm__cpu_call *call;
    int64_t count, columns, tasks;
    /* What is done with `count` rows from `first` on, at most `together` of them. */
    void (*block)(const struct sgm__rows *r, int64_t first, int64_t count);
    int64_t together;
} sgm__rows;

static inline const float *sgm__row_of(const sgm__rows *r, int32_t operand, int64_t index)
{
    return (const float *)r->call->inputs[operand].data + index * r->columns;
}

static inline float *sgm__row_of_result(const sgm__rows *r, int64_t index)
{
    return (float *)r->call->output.data + index * r->columns;
}

static inline void sgm__rows_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    const sgm__rows *r = context;
    int64_t first, last;
    sgm__pool_part(r->count, 1, r->tasks, index, &first, &last);
    for (int64_t i = first; i < last; i += r->together)
        r->block(r, i, sgm__minimum(last - i, r->together));
}

/* The rows of operand 0, `elements` of them together, but at least one row. */
static inline sgm_status sgm__rows_post(const sgm__cpu_call *call, int64_t elements,
                                        void (*block)(const sgm__rows *r, int64_t first, int64_t count))
{
    const sgm_shape *shape = &call->inputs[0].shape;
    sgm__rows r = {.call = call, .columns = shape->dims[shape->rank - 1], .count = 1, .block = block};
    for (int32_t i = 0; i + 1 < shape->rank; i++)
        r.count *= shape->dims[i];
    r.together = r.columns > 0 && elements > r.columns ? elements / r.columns : 1;
    r.tasks = sgm__minimum(r.count * r.columns / SGM__ROWS_TASK_WORK, 4 * (int64_t)call->cpu->threads);
    r.tasks = r.tasks < 1 ? 1 : r.tasks;
    sgm__pool_post(call->cpu->pool, r.tasks, sgm__rows_task, &r, sizeof r);
    return SGM_OK;
}

#endif
