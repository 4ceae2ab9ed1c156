/* A pool of threads that share loops. Internal.
 *
 * A loop is a number of tasks. Any thread may do any task, so results must not depend on the thread: what a
 * task computes depends on its index alone. A task starts no loop of its own. The thread that posts loops
 * takes part as thread 0; only one thread may post at a time (run/execute.c holds sgm__cpu.busy meanwhile).
 *
 * Each thread begins with its own share of a loop's tasks, always the same share, so that it finds in its
 * cache what it left there in the loop before. A thread that is done with its share takes tasks from the far
 * ends of the others' shares (affinity scheduling: Markatos and LeBlanc, 1994).
 *
 * Loops are done in the order in which they were posted, but a thread that finds no task left in one begins
 * with the next one while others end theirs, unless the next one needs it: each loop says how many of all
 * loops since the pool's creation must be done before it may start (sgm__pool_needs). */
#ifndef SGM_HANDLERS_CPU_POOL_H
#define SGM_HANDLERS_CPU_POOL_H

#include "base/base.h"

#define SGM__POOL_CONTEXT 1024 /* bytes of context that sgm__pool_post copies at most */

typedef struct sgm__pool sgm__pool;
/* `thread` is 0 .. threads - 1 and selects memory that each thread has for itself; no two tasks with the same
 * number run at once. */
typedef void (*sgm__pool_task)(void *context, int64_t index, int32_t thread);

/* `threads` 0: one for each processor that this process may use. keeps_subnormals: see flush.h. NULL after a
 * failure. */
sgm__pool *sgm__pool_create(int32_t threads, bool keeps_subnormals);
void sgm__pool_free(sgm__pool *pool);
/* How many threads loops are shared among: 1 while sgm__pool_alone holds. */
int32_t sgm__pool_threads(const sgm__pool *pool);
/* Calls task(context, i, thread) for i = 0 .. tasks - 1, in any order, and returns when all are done. If
 * other threads take part, all loops posted before are done, too; a loop of one task only waits for the loops
 * that it needs. */
void sgm__pool_run(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context);

/* --- loops that nobody waits for at once --- */

/* As sgm__pool_run, but may return before the tasks are done, or have begun. `size` bytes of the context are
 * copied; what they point to must last until the tasks are done. A context of more than SGM__POOL_CONTEXT
 * bytes is not copied, and the call waits. Loops that are posted later need this one to be done, unless
 * sgm__pool_needs says otherwise in between. */
void sgm__pool_post(sgm__pool *pool, int64_t tasks, sgm__pool_task task, const void *context, size_t size);
/* How many loops have been posted since the pool was created: the number to give to sgm__pool_needs later. */
int64_t sgm__pool_posted(const sgm__pool *pool);
/* The next loop to be posted starts only when the first `loops` of all loops that were ever posted are done.
 */
void sgm__pool_needs(sgm__pool *pool, int64_t loops);
/* Helps with tasks until the next loop's needs are met. Called by a step that works in this thread without a
 * loop. A pool that is NULL has nothing to wait for. */
void sgm__pool_ready(sgm__pool *pool);
/* Helps with tasks until all posted loops are done. A pool that is NULL has nothing to wait for. */
void sgm__pool_finish(sgm__pool *pool);
/* With `alone` true, the calling thread runs all tasks of later loops itself, until a call with false. For
 * steps that one thread does faster (cost.c). To be called only while no loop is being posted. */
void sgm__pool_alone(sgm__pool *pool, bool alone);

/* Elements *first to *last - 1 that task `index` of `tasks` does, of `total`. Parts begin at multiples of
 * `unit` and are as even as that allows; a part may be empty. */
static inline void sgm__pool_part(int64_t total, int64_t unit, int64_t tasks, int64_t index, int64_t *first,
                                  int64_t *last)
{
    int64_t units = (total + unit - 1) / unit;
    *first = units * index / tasks * unit;
    *last = units * (index + 1) / tasks * unit;
    *last = *last < total ? *last : total;
}

#endif
