/* A pool of threads that waits for loops to share. Internal.
 *
 * A loop is a number of tasks; which thread does a task is not fixed, so results must not depend on it: what
 * a task computes depends on its index alone. A task starts no loop of its own.
 *
 * Each thread begins with its own part of a loop's tasks, always the same one of all, so that it finds in its
 * cache what it left there in the loop before; who is done first helps the others from their end.
 *
 * Loops are posted in an order and done in it, but a thread that finds nothing to do in one begins with the
 * next while others end it, if that one does not need it: `needs` counts the loops from the pool's first on
 * that must be done before.
 */
#ifndef SGM_HANDLERS_CPU_POOL_H
#define SGM_HANDLERS_CPU_POOL_H

#include "base/base.h"

#define SGM__POOL_CONTEXT 1024 /* bytes that sgm__pool_post copies at most */

typedef struct sgm__pool sgm__pool;
/* `thread` is 0 .. threads - 1: for memory that each thread has for itself. */
typedef void (*sgm__pool_task)(void *context, int64_t index, int32_t thread);

/* threads 0: one per processor that this process may use. keeps_subnormals: see flush.h. */
sgm__pool *sgm__pool_create(int32_t threads, bool keeps_subnormals);
void sgm__pool_free(sgm__pool *pool);
int32_t sgm__pool_threads(const sgm__pool *pool);
/* task(context, 0 .. tasks - 1, thread), in any order; returns when all are done, and all loops before. */
void sgm__pool_run(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context);

/* --- loops that nobody waits for at once --- */

/* As sgm__pool_run, but may return before the tasks are done, or begun. `size` bytes of the context are
 * copied; what they point to must last. Loops posted later without sgm__pool_needs in between come after this
 * one. */
void sgm__pool_post(sgm__pool *pool, int64_t tasks, sgm__pool_task task, const void *context, size_t size);
/* Loops posted so far. */
int64_t sgm__pool_posted(const sgm__pool *pool);
/* The next loop needs the first `loops` of all that were ever posted. */
void sgm__pool_needs(sgm__pool *pool, int64_t loops);
/* Waits, working, until the next loop could begin: before its work is done without a loop. NULL: at once. */
void sgm__pool_ready(sgm__pool *pool);
/* Waits, working, for all loops. NULL: at once. */
void sgm__pool_finish(sgm__pool *pool);
/* Until it is called with false, loops are run by the calling thread alone. Between loops only. */
void sgm__pool_alone(sgm__pool *pool, bool alone);

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
