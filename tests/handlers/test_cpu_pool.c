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
        sgm__pool *pool = sgm__pool_create(threads);
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
    sgm__pool *pool = sgm__pool_create(3);
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
    sgm__pool *pool = sgm__pool_create(4);
    CHECK(pool != NULL);
    for (int i = 0; i < 20; i++) {
        check_counts(pool, 100);
        nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL);
    }
    sgm__pool_free(pool);
}

TEST(starts_and_ends_quickly)
{
    for (int i = 0; i < 50; i++) {
        sgm__pool *pool = sgm__pool_create(2);
        CHECK(pool != NULL);
        sgm__pool_free(pool);
    }
    CHECK(sgm__pool_create(-1) == NULL);
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
