/* The pool: workers spin briefly for the next loop, then sleep in the kernel. A worker that wakes too late
 * finds the loop's gate closed, so nobody waits for a thread that has no processor. */
#include "handlers/cpu/pool.h"
#include "handlers/cpu/flush.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS                                                                                                \
    4000 /* pauses before sleep: some tens of microseconds, longer than the gap between two steps            \
          */
#define CLOSED ((uint32_t)1 << 31)
#define MOST_THREADS 1024

typedef struct worker {
    sgm__pool *pool;
    pthread_t thread;
    int32_t number;
} worker;

struct sgm__pool {
    int32_t threads;
    int32_t started;
    worker *workers;
    sgm__pool_task task;
    void *context;
    int64_t tasks;
    _Alignas(64) _Atomic uint32_t epoch; /* counts loops; workers sleep on it */
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
    _Alignas(64) _Atomic uint32_t gate; /* workers inside the loop, and whether it is closed */
    _Alignas(64) _Atomic int64_t next;
};

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void sleep_on(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void work(sgm__pool *pool, int32_t thread)
{
    for (;;) {
        int64_t index = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (index >= pool->tasks)
            return;
        pool->task(pool->context, index, thread);
    }
}

static void wait_for_loop(sgm__pool *pool, uint32_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->epoch, memory_order_acquire) != seen)
            return;
        pause_briefly();
    }
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->epoch) == seen)
        sleep_on(&pool->epoch, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void *worker_main(void *argument)
{
    const worker *self = argument;
    sgm__pool *pool = self->pool;
    uint32_t seen = 0;
    sgm__flush_begin();
    while (!atomic_load(&pool->stop)) {
        wait_for_loop(pool, seen);
        seen = atomic_load(&pool->epoch);
        if ((atomic_fetch_add(&pool->gate, 1) & CLOSED) == 0)
            work(pool, self->number);
        atomic_fetch_sub(&pool->gate, 1);
    }
    return NULL;
}

sgm__pool *sgm__pool_create(int32_t threads)
{
    if (threads < 0 || threads > MOST_THREADS) {
        sgm_fail(SGM_ERROR_ARGUMENT, "threads is %d; give 1 to %d, or 0 for one per processor", threads,
                 MOST_THREADS);
        return NULL;
    }
    sgm__pool *pool = sgm__alloc_aligned(sizeof(sgm__pool));
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->threads = threads > 0 ? threads : sgm__processors();
    pool->workers = sgm__calloc((size_t)pool->threads, sizeof(worker));
    atomic_store(&pool->gate, CLOSED);
    bool failed = pool->workers == NULL;
    for (int32_t i = 1; i < pool->threads && !failed; i++) {
        worker *self = &pool->workers[i];
        *self = (worker){.pool = pool, .number = i};
        failed = pthread_create(&self->thread, NULL, worker_main, self) != 0;
        if (failed)
            sgm_fail(SGM_ERROR_MEMORY, "the system refused thread %d of %d; ask for fewer", i, pool->threads);
        else
            pool->started = i;
    }
    if (!failed)
        return pool;
    sgm__pool_free(pool);
    return NULL;
}

void sgm__pool_free(sgm__pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->epoch, 1);
    wake_all(&pool->epoch);
    for (int32_t i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    sgm__free(pool->workers);
    sgm__free_aligned(pool);
}

int32_t sgm__pool_threads(const sgm__pool *pool)
{
    return pool->threads;
}

void sgm__pool_run(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context)
{
    if (pool->threads == 1 || tasks <= 1) {
        for (int64_t i = 0; i < tasks; i++)
            task(context, i, 0);
        return;
    }
    pool->task = task;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_fetch_and(&pool->gate, ~CLOSED);
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleepers) > 0)
        wake_all(&pool->epoch);
    work(pool, 0);
    atomic_fetch_or(&pool->gate, CLOSED);
    for (int i = 0; (atomic_load(&pool->gate) & ~CLOSED) != 0; i++) {
        if (i < SPINS)
            pause_briefly();
        else
            sched_yield();
    }
}
