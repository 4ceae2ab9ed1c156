/* The pool: each task once, whatever the number of threads, again and again. */
#include "handlers/cpu/pool.h"
#include "test.h"

#define TASKS 1000

typedef struct counts {
    atomic_int done[TASKS];
    atomic_int per_thread[8];
} counts;

static void count_task(void *context, int64_t index, int32_t thread)
{
    counts *c = context;
    atomic_fetch_add(&c->done[index], 1);
    atomic_fetch_add(&c->per_thread[thread], 1);
}

static void count_task_of(void *context, int64_t index, int32_t thread)
{
    count_task(*(counts **)context, index, thread);
}

static void check_counts(sgm__pool *pool, int64_t tasks)
{
    static counts c;
    memset(&c, 0, sizeof c);
    sgm__pool_run(pool, tasks, count_task, &c);
    int total = 0;
    for (int i = 0; i < 8; i++)
        total += atomic_load(&c.per_thread[i]);
    CHECK_INT(total, tasks);
    for (int64_t i = 0; i < TASKS; i++)
        CHECK_INT(atomic_load(&c.done[i]), i < tasks);
}

TEST(does_each_task_once)
{
    for (int32_t threads = 1; threads <= 4; threads++) {
        sgm__pool *pool = sgm__pool_create(threads, false);
        CHECK(pool != NULL);
        CHECK_INT(sgm__pool_threads(pool), threads);
        for (int64_t tasks = 0; tasks <= TASKS; tasks += tasks < 8 ? 1 : 124)
            check_counts(pool, tasks);
        sgm__pool_free(pool);
    }
}

static void add_task(void *context, int64_t index, int32_t thread)
{
    (void)thread;
    atomic_fetch_add((_Atomic int64_t *)context, index);
}

TEST(survives_many_short_loops)
{
    sgm__pool *pool = sgm__pool_create(3, false);
    CHECK(pool != NULL);
    for (int i = 0; i < 20000; i++) {
        _Atomic int64_t sum = 0;
        sgm__pool_run(pool, 5, add_task, &sum);
        CHECK_INT(atomic_load(&sum), 0 + 1 + 2 + 3 + 4);
    }
    sgm__pool_free(pool);
}

TEST(wakes_sleepers)
{
    sgm__pool *pool = sgm__pool_create(4, false);
    CHECK(pool != NULL);
    for (int i = 0; i < 20; i++) {
        check_counts(pool, 100);
        nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
    }
    sgm__pool_free(pool);
}

/* Loops in a row of which each needs all but the newest few: a task finds those done that its loop needs. */
typedef struct row {
    _Atomic int64_t *done; /* tasks of each loop */
    atomic_int *early;
    int64_t loop, needs, tasks;
} row;

static void row_task(void *context, int64_t index, int32_t thread)
{
    (void)index;
    (void)thread;
    const row *r = context;
    for (int64_t i = 0; i < r->needs; i++)
        if (atomic_load(&r->done[i]) != r->tasks)
            atomic_fetch_add(r->early, 1);
    atomic_fetch_add(&r->done[r->loop], 1);
}

static void check_row(int32_t threads, int64_t overlap)
{
    static _Atomic int64_t done[300];
    atomic_int early = 0;
    memset(done, 0, sizeof done);
    sgm__pool *pool = sgm__pool_create(threads, false);
    CHECK(pool != NULL);
    for (int64_t i = 0; i < 300; i++) {
        row r = {done, &early, i, i > overlap ? i - overlap : 0, 5};
        sgm__pool_needs(pool, threads > 1 ? r.needs : 0);
        sgm__pool_post(pool, r.tasks, row_task, &r, sizeof r);
        memset(&r, 0xff, sizeof r); /* a copy was made */
    }
    sgm__pool_finish(pool);
    CHECK_INT(sgm__pool_posted(pool), threads > 1 ? 300 : 0);
    CHECK_INT(atomic_load(&early), 0);
    for (int64_t i = 0; i < 300; i++)
        CHECK_INT(atomic_load(&done[i]), 5);
    sgm__pool_free(pool);
}

TEST(posted_loops_begin_when_what_they_need_is_done)
{
    for (int32_t threads = 1; threads <= 5; threads++)
        for (int64_t overlap = 0; overlap < 4; overlap++)
            check_row(threads, overlap);
}

TEST(waits_for_what_is_needed_before_work_without_a_loop)
{
    sgm__pool *pool = sgm__pool_create(3, false);
    static counts c;
    CHECK(pool != NULL);
    for (int i = 0; i < 200; i++) {
        counts *context = &c;
        memset(&c, 0, sizeof c);
        sgm__pool_needs(pool, sgm__pool_posted(pool));
        sgm__pool_post(pool, 40, count_task_of, &context, sizeof context);
        sgm__pool_needs(pool, sgm__pool_posted(pool));
        sgm__pool_ready(pool);
        for (int64_t k = 0; k < 40; k++)
            CHECK_INT(atomic_load(&c.done[k]), 1);
    }
    sgm__pool_free(pool);
}

TEST(runs_alone_when_told_to)
{
    sgm__pool *pool = sgm__pool_create(3, false);
    CHECK(pool != NULL);
    check_counts(pool, 100);
    int64_t posted = sgm__pool_posted(pool);
    sgm__pool_alone(pool, true);
    CHECK_INT(sgm__pool_threads(pool), 1);
    check_counts(pool, 100);
    CHECK_INT(sgm__pool_posted(pool), posted);
    sgm__pool_alone(pool, false);
    check_counts(pool, 100);
    CHECK_INT(sgm__pool_posted(pool), posted + 1);
    sgm__pool_free(pool);
}

/* More threads than processors, in several pools that are at work at the same time. */
static void *run_own_pool(void *failed)
{
    sgm__pool *pool = sgm__pool_create(2 * sgm__processors() + 1, false);
    for (int i = 0; i < 300 && pool != NULL; i++) {
        _Atomic int64_t sum = 0;
        sgm__pool_run(pool, 64, add_task, &sum);
        if (atomic_load(&sum) != 64 * 63 / 2)
            atomic_fetch_add((atomic_int *)failed, 1);
    }
    if (pool == NULL)
        atomic_fetch_add((atomic_int *)failed, 1);
    sgm__pool_free(pool);
    return NULL;
}

TEST(works_with_more_threads_than_processors)
{
    pthread_t threads[4];
    atomic_int failed = 0;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, run_own_pool, &failed) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(atomic_load(&failed), 0);
}

TEST(starts_and_ends_quickly)
{
    for (int i = 0; i < 50; i++) {
        sgm__pool *pool = sgm__pool_create(2, false);
        CHECK(pool != NULL);
        sgm__pool_free(pool);
    }
    CHECK(sgm__pool_create(-1, false) == NULL);
    CHECK(strstr(sgm_last_error(), "threads is -1") != NULL);
}

TEST(parts_cover_everything_once)
{
    for (int64_t total = 0; total < 100; total += 7)
        for (int64_t tasks = 1; tasks < 9; tasks++) {
            int64_t next = 0, first, last;
            for (int64_t i = 0; i < tasks; i++) {
                sgm__pool_part(total, 16, tasks, i, &first, &last);
                if (first >= last)
                    continue;
                CHECK_INT(first, next);
                CHECK(first % 16 == 0);
                next = last;
            }
            CHECK_INT(next, total);
        }
}
