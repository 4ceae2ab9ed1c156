/* A pool of threads that waits for loops to share. Internal.
 *
 * A loop is a number of tasks; which thread does a task is not fixed, so results must not depend on it: what
 * a task computes depends on its index alone. One loop at a time; a task starts no loop of its own.
 */
#ifndef SGM_HANDLERS_CPU_POOL_H
#define SGM_HANDLERS_CPU_POOL_H

#include "base/base.h"

typedef struct sgm__pool sgm__pool;
/* `thread` is 0 .. threads - 1: for memory that each thread has for itself. */
typedef void (*sgm__pool_task)(void *context, int64_t index, int32_t thread);

/* threads 0: one per processor that this process may use. */
sgm__pool *sgm__pool_create(int32_t threads);
void sgm__pool_free(sgm__pool *pool);
int32_t sgm__pool_threads(const sgm__pool *pool);
/* task(context, 0 .. tasks - 1, thread), in any order; returns when all are done. */
void sgm__pool_run(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context);

/* The part of `total` elements that task `index` of `tasks` does, in multiples of `unit` (but the last). */
static inline void sgm__pool_part(int64_t total, int64_t unit, int64_t tasks, int64_t index, int64_t *first,
                                  int64_t *last)
{
    int64_t units = (total + unit - 1) / unit;
    *first = units * index / tasks * unit;
    *last = units * (index + 1) / tasks * unit;
    *last = *last < total ? *last : total;
}

#endif
