/* The thread pool: a ring of loops, and threads that walk along the ring.
 *
 * A thread that finds no loop spins for a while (SPINS), then sleeps in the kernel on a futex. Spinning for
 * about as long as a waking takes costs at most twice the best choice (Karlin et al., 1991). Where more
 * threads of this library are awake than there are processors, a thread gives way at once and sleeps soon; a
 * thread that waits for others' tasks gives way after a moment, as the others may have no processor.
 *
 * The counters `posted` and `done` number all loops since the pool was created; loop i lies in ring[i %
 * RING]. A worker enters a loop by writing the loop's number to `inside`, and then looks whether that loop is
 * still undone. A slot of the ring is used again only when its loop is done and no worker says that it is
 * inside. So nobody has to wait for a worker that wakes too late. */
#include "handlers/cpu/pool.h"
#include "handlers/cpu/flush.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looks at `posted` before sleeping, about 170 microseconds. Waking takes 25 to 35, and costs the thread that
 * wakes another one 12; with 56 microseconds of spinning, threads slept through the feeding of each
 * minibatch, and steps took 3 to 5 % longer. */
#define SPINS 9000
/* Pauses of the processor before the first sched_yield, about 3 microseconds; after that, one yield in
 * BETWEEN looks. */
#define POLITE 200
#define BETWEEN 64
#define CROWDED_SPINS (8 * BETWEEN)
#define MAXIMUM_THREADS 1024
/* Loops that can be posted and not yet done. */
#define RING 16
/* Loops that are posted before the posting thread works on the first of them: other threads should never find
 * the ring empty. */
#define AHEAD 3

/* The pieces of a loop that one thread begins with and that are not yet taken: first in the lower half of the
 * word, end in the upper half. The owner takes from the front, others from the end, each by one
 * compare-and-swap. A share has a cache line to itself. */
typedef struct share {
    _Alignas(64) _Atomic uint64_t range;
} share;

typedef struct pool_loop {
    sgm__pool_task task;
    void *context;
    /* A piece is `together` tasks (1 for fewer than 2^31 tasks); shares count pieces. */
    int64_t tasks, together;
    int64_t needs; /* the first `needs` loops of all must be done before this one starts */
    share *shares; /* one for each thread */
    _Alignas(64) _Atomic int64_t left;                  /* pieces that are not done */
    _Alignas(64) unsigned char copy[SGM__POOL_CONTEXT]; /* of the context, if it was posted by value */
} pool_loop;

/* A thread that the pool created. Thread 0, which posts, has no worker. */
typedef struct worker {
    _Alignas(64) sgm__pool *pool;
    pthread_t thread;
    int32_t number;
    _Alignas(64) _Atomic int64_t inside; /* 1 + the number of the loop that this thread may touch; 0: none */
} worker;

/* Members before `posted` belong to the posting thread, or are constant. */
struct sgm__pool {
    int32_t threads, processors;
    int32_t started; /* workers whose threads exist; less than threads - 1 only if creation failed */
    bool alone, keeps_subnormals;
    worker *workers;
    share *shares;
    int64_t needs; /* of the next loop to be posted */
    int64_t at;    /* the first loop that the posting thread has not worked on */
    _Alignas(64) _Atomic int64_t posted;
    /* The lower half of `posted`, as futexes have 32 bits; sleeping workers wait for it to change. */
    _Atomic uint32_t posted_word;
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
    /* All loops with smaller numbers are done. */
    _Alignas(64) _Atomic int64_t done;
    pool_loop ring[RING];
};

/* Workers of all pools of this process that are not asleep; threads that post loops are not counted. */
static _Atomic int32_t awake;

/* --- waiting --- */

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Between two looks at something that another thread is about to do; `turn` counts the looks. */
static void wait_a_moment(int turn)
{
    if (turn < POLITE || turn % BETWEEN != 0)
        pause_briefly();
    else
        sched_yield();
}

/* Whether more threads are awake than there are processors, the calling poster counted as one. */
static bool is_crowded(const sgm__pool *pool)
{
    return atomic_load_explicit(&awake, memory_order_relaxed) + 1 > pool->processors;
}

/* Sleeps until loop `at` is posted or the pool ends. `sleepers` is raised before `posted_word` is read, and
 * post() writes `posted_word` before it reads `sleepers` (all in one order of sequential consistency): so
 * either this thread sees the new value or the poster wakes it. */
static void sleep_until_posted(sgm__pool *pool, int64_t at)
{
    uint32_t seen = (uint32_t)at;
    atomic_fetch_add(&pool->sleepers, 1);
    atomic_fetch_sub(&awake, 1);
    while (atomic_load(&pool->posted_word) == seen && !atomic_load(&pool->stop))
        syscall(SYS_futex, &pool->posted_word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_add(&awake, 1);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static void wake(sgm__pool *pool, int maximum)
{
    syscall(SYS_futex, &pool->posted_word, FUTEX_WAKE_PRIVATE, maximum, NULL, NULL, 0);
}

/* --- working --- */

/* Takes one piece from a share: the first one for the owner (`own`), the last one for a helper. -1: none is
 * left. */
static int64_t take_from(share *from, bool own)
{
    uint64_t range = atomic_load_explicit(&from->range, memory_order_relaxed), less;
    uint32_t first, last;
    do {
        first = (uint32_t)range;
        last = (uint32_t)(range >> 32);
        if (first >= last)
            return -1;
        less = own ? range + 1 : range - ((uint64_t)1 << 32);
    } while (!atomic_compare_exchange_weak_explicit(&from->range, &range, less, memory_order_relaxed,
                                                    memory_order_relaxed));
    return own ? first : last - 1;
}

/* From the thread's own share, then from those of its neighbours in turn. -1: all pieces of the loop are
 * taken. */
static int64_t take_piece(const sgm__pool *pool, const pool_loop *loop, int32_t thread)
{
    int64_t piece = take_from(&loop->shares[thread], true);
    for (int32_t other = 1; piece < 0 && other < pool->threads; other++)
        piece = take_from(&loop->shares[(thread + other) % pool->threads], false);
    return piece;
}

/* Moves `done` past all loops without pieces left. Called by the thread that ended a loop's last piece. The
 * loads and stores of `done`, `posted` and `left` need one order that all threads agree on (sequential
 * consistency): else two threads that end neighbouring loops at once could each leave it to the other to move
 * `done`. */
static void note_done(sgm__pool *pool)
{
    int64_t done = atomic_load(&pool->done);
    while (done < atomic_load(&pool->posted) && atomic_load(&pool->ring[done % RING].left) == 0)
        if (atomic_compare_exchange_strong(&pool->done, &done, done + 1))
            done++;
}

/* Does pieces of a loop until none can be taken, which is not until all are done: other threads may still be
 * at theirs. Waits first for the loops that this one needs. */
static void work_on(sgm__pool *pool, pool_loop *loop, int32_t thread)
{
    int64_t needs = loop->needs;
    for (int turn = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < needs; turn++)
        wait_a_moment(turn);
    for (int64_t piece; (piece = take_piece(pool, loop, thread)) >= 0;) {
        int64_t first = piece * loop->together, last = first + loop->together;
        last = last < loop->tasks ? last : loop->tasks;
        for (int64_t i = first; i < last; i++)
            loop->task(loop->context, i, thread);
        if (atomic_fetch_sub(&loop->left, 1) == 1)
            note_done(pool);
    }
}

/* Waits until loop `at` is posted: true. False: the pool is to end. */
static bool wait_for_loop(sgm__pool *pool, int64_t at)
{
    bool crowded = is_crowded(pool);
    int first = crowded ? POLITE : 0, last = crowded ? POLITE + CROWDED_SPINS : SPINS;
    for (int i = first; i < last; i++) {
        if (atomic_load_explicit(&pool->posted, memory_order_acquire) > at)
            return true;
        wait_a_moment(i);
    }
    while (atomic_load(&pool->posted) <= at) {
        if (atomic_load(&pool->stop))
            return false;
        sleep_until_posted(pool, at);
    }
    return true;
}

/* Each worker walks along all loops in order, entering those that are not done. One that was asleep for long
 * skips to `done`. */
static void *worker_main(void *argument)
{
    worker *self = argument;
    sgm__pool *pool = self->pool;
    int64_t at = 0;
    sgm__flush_begin(pool->keeps_subnormals);
    atomic_fetch_add(&awake, 1);
    while (wait_for_loop(pool, at)) {
        atomic_store(&self->inside, at + 1);
        int64_t done = atomic_load(&pool->done);
        if (done <= at)
            work_on(pool, &pool->ring[at % RING], self->number);
        atomic_store_explicit(&self->inside, 0, memory_order_release);
        at = done <= at ? at + 1 : done;
    }
    atomic_fetch_sub(&awake, 1);
    return NULL;
}

/* --- the pool --- */

/* After a failure `started` says how many threads sgm__pool_free has to join. */
static sgm_status start(sgm__pool *pool)
{
    for (int32_t i = 1; i < pool->threads; i++) {
        worker *self = &pool->workers[i];
        *self = (worker){.pool = pool, .number = i};
        if (pthread_create(&self->thread, NULL, worker_main, self) != 0)
            return sgm_fail(SGM_ERROR_MEMORY, "the system refused thread %d of %d; ask for fewer", i,
                            pool->threads);
        pool->started = i;
    }
    return SGM_OK;
}

sgm__pool *sgm__pool_create(int32_t threads, bool keeps_subnormals)
{
    if (threads < 0 || threads > MAXIMUM_THREADS) {
        sgm_fail(SGM_ERROR_ARGUMENT, "threads is %d; give 1 to %d, or 0 for one per processor", threads,
                 MAXIMUM_THREADS);
        return NULL;
    }
    sgm__pool *pool = sgm__alloc_aligned(sizeof(sgm__pool));
    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->processors = sgm__processors();
    pool->keeps_subnormals = keeps_subnormals;
    pool->threads = threads > 0 ? threads : pool->processors;
    size_t count = (size_t)pool->threads;
    pool->workers = sgm__alloc_aligned(count * sizeof(worker));
    pool->shares = sgm__alloc_aligned(RING * count * sizeof(share));
    if (pool->workers != NULL && pool->shares != NULL) {
        memset(pool->shares, 0, RING * count * sizeof(share));
        for (size_t i = 0; i < RING; i++)
            pool->ring[i].shares = pool->shares + i * count;
        if (start(pool) == SGM_OK)
            return pool;
    }
    sgm__pool_free(pool);
    return NULL;
}

void sgm__pool_free(sgm__pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->stop, true);
    atomic_fetch_add(&pool->posted_word, 1);
    wake(pool, INT_MAX);
    for (int32_t i = 1; i <= pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    sgm__free_aligned(pool->workers);
    sgm__free_aligned(pool->shares);
    sgm__free_aligned(pool);
}

int32_t sgm__pool_threads(const sgm__pool *pool)
{
    return pool->alone ? 1 : pool->threads;
}

void sgm__pool_alone(sgm__pool *pool, bool alone)
{
    pool->alone = alone;
}

/* --- posting --- */

/* The posting thread works on loops in their order until the first `loops` of them are done. */
static void help(sgm__pool *pool, int64_t loops)
{
    for (; pool->at < loops; pool->at++)
        work_on(pool, &pool->ring[pool->at % RING], 0);
    for (int turn = 0; atomic_load_explicit(&pool->done, memory_order_acquire) < loops; turn++)
        wait_a_moment(turn);
}

/* Whether a worker may still touch the loop, be it only to find out that no task is left. */
static bool is_inside(const sgm__pool *pool, int64_t loop)
{
    for (int32_t i = 1; i <= pool->started; i++)
        if (atomic_load(&pool->workers[i].inside) == loop + 1)
            return true;
    return false;
}

/* The slot of the ring for loop `next`, once the loop that has it is done and all workers have left that
 * loop. */
static pool_loop *free_slot(sgm__pool *pool, int64_t next)
{
    if (next >= RING) {
        help(pool, next - RING + 1);
        for (int turn = 0; is_inside(pool, next - RING); turn++)
            wait_a_moment(turn);
    }
    return &pool->ring[next % RING];
}

/* Cuts a loop into one share of consecutive pieces for each thread. The same number of tasks always gives the
 * same shares. */
static void divide(const sgm__pool *pool, pool_loop *loop, int64_t tasks)
{
    int64_t pieces;
    loop->tasks = tasks;
    loop->together = tasks / INT32_MAX + 1;
    pieces = (tasks + loop->together - 1) / loop->together;
    for (int32_t i = 0; i < pool->threads; i++) {
        uint64_t first = (uint64_t)(pieces * i / pool->threads);
        uint64_t last = (uint64_t)(pieces * (i + 1) / pool->threads);
        atomic_store_explicit(&loop->shares[i].range, last << 32 | first, memory_order_relaxed);
    }
    atomic_store_explicit(&loop->left, pieces, memory_order_relaxed);
}

/* Puts a loop into the ring and wakes sleeping workers. `size` 0: the context is not copied, as the caller
 * waits for the loop. */
static void post(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context, size_t size)
{
    int64_t next = atomic_load_explicit(&pool->posted, memory_order_relaxed);
    pool_loop *loop = free_slot(pool, next);
    loop->task = task;
    loop->context = size > 0 ? loop->copy : context;
    if (size > 0)
        memcpy(loop->copy, context, size);
    loop->needs = pool->needs;
    divide(pool, loop, tasks);
    pool->needs = next + 1;
    atomic_store(&pool->posted, next + 1);
    atomic_store(&pool->posted_word, (uint32_t)(next + 1));
    if (atomic_load(&pool->sleepers) > 0)
        /* More threads would only wait for a processor. */
        wake(pool, pool->processors > 1 ? pool->processors - 1 : 1);
}

/* Whether other threads can be of use; else the loop never enters the ring. */
static bool is_shared(const sgm__pool *pool, int64_t tasks)
{
    return tasks > 1 && pool->threads > 1 && !pool->alone;
}

/* Runs a loop in the calling thread. The loop keeps its place in the order: its needs are waited for first.
 */
static void run_here(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context)
{
    sgm__pool_ready(pool);
    for (int64_t i = 0; i < tasks; i++)
        task(context, i, 0);
}

void sgm__pool_run(sgm__pool *pool, int64_t tasks, sgm__pool_task task, void *context)
{
    if (!is_shared(pool, tasks)) {
        run_here(pool, tasks, task, context);
        return;
    }
    post(pool, tasks, task, context, 0);
    sgm__pool_finish(pool);
}

/* Works on old loops after posting, so that never more than AHEAD loops wait for the posting thread's own
 * shares. */
void sgm__pool_post(sgm__pool *pool, int64_t tasks, sgm__pool_task task, const void *context, size_t size)
{
    if (!is_shared(pool, tasks)) {
        run_here(pool, tasks, task, (void *)(uintptr_t)context);
        return;
    }
    if (size > SGM__POOL_CONTEXT) {
        sgm__pool_run(pool, tasks, task, (void *)(uintptr_t)context);
        return;
    }
    post(pool, tasks, task, (void *)(uintptr_t)context, size);
    int64_t late = sgm__pool_posted(pool) - AHEAD;
    for (; pool->at < late; pool->at++)
        work_on(pool, &pool->ring[pool->at % RING], 0);
}

int64_t sgm__pool_posted(const sgm__pool *pool)
{
    return atomic_load_explicit(&pool->posted, memory_order_relaxed);
}

void sgm__pool_needs(sgm__pool *pool, int64_t loops)
{
    pool->needs = loops;
}

void sgm__pool_ready(sgm__pool *pool)
{
    if (pool != NULL && pool->threads > 1 && !pool->alone)
        help(pool, pool->needs);
}

void sgm__pool_finish(sgm__pool *pool)
{
    if (pool != NULL && pool->threads > 1)
        help(pool, sgm__pool_posted(pool));
}
