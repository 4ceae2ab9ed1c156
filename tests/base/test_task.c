/* Tasks: what is listed, what is told, and how one is ended from outside. */
#include "base/allocator.h"
#include "test.h"

#include <pthread.h>
#include <sigma/base.h>
#include <time.h>
#include <unistd.h>

typedef struct seen {
    int calls, begun, ended;
    sgm_task_info newest;
    bool begins; /* a task of its own, which nobody is told of */
} seen;

static void remember(void *user, const sgm_task_info *info)
{
    seen *self = user;
    self->calls++;
    self->begun += info->status == SGM_TASK_RUNNING && info->done == 0;
    self->ended += info->status != SGM_TASK_RUNNING;
    self->newest = *info;
    if (self->begins)
        sgm_task_end(sgm_task_begin(SGM_TASK_LOAD, "inner", NULL), SGM_OK);
}

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

TEST(tasks_are_listed_while_they_run)
{
    sgm_task_info infos[4];
    CHECK_INT(sgm_task_list(infos, 4), 0);
    sgm_task first = sgm_task_begin(SGM_TASK_DOWNLOAD, "mnist\033[2J.gz", "bytes");
    sgm_task second = sgm_task_begin(SGM_TASK_TRAIN, "digits", "iterations");
    CHECK(first > 0 && second > first);
    CHECK(sgm_task_set_progress(second, 10, 0));
    pause_for(0.02);
    CHECK(sgm_task_set_progress(first, 250, 1000));
    CHECK(sgm_task_set_progress(second, 30, 40));
    CHECK_INT(sgm_task_list(infos, 1), 2);
    CHECK_INT(sgm_task_list(infos, 4), 2);
    CHECK_INT(infos[0].task, first);
    CHECK_INT(infos[0].kind, SGM_TASK_DOWNLOAD);
    CHECK_INT(infos[0].status, SGM_TASK_RUNNING);
    CHECK_STR(infos[0].description, "mnist?[2J.gz");
    CHECK_STR(infos[0].unit, "bytes");
    CHECK_NEAR(infos[0].progress, 0.25, 0);
    CHECK_NEAR(infos[0].began, (double)time(NULL), 2);
    CHECK(infos[0].seconds >= 0.02 && infos[0].seconds < 60);
    CHECK_INT(infos[1].task, second);
    CHECK_NEAR(infos[1].progress, 0.75, 0);
    CHECK_NEAR(infos[1].rate * infos[1].seconds, 20, 1e-9); /* 10 were there before */
    sgm_task_end(first, SGM_OK);
    CHECK_INT(sgm_task_list(infos, 4), 1);
    CHECK_INT(infos[0].task, second);
    sgm_task_end(second, SGM_OK);
    sgm_task_end(second, SGM_OK);
    CHECK_INT(sgm_task_list(NULL, 0), 0);
}

TEST(progress_is_a_share_or_unknown)
{
    sgm_task_info info;
    sgm_task task = sgm_task_begin(SGM_TASK_EXTRACT, NULL, NULL);
    CHECK_INT(sgm_task_list(&info, 1), 1);
    CHECK(info.progress < 0 && info.rate == 0);
    CHECK_STR(info.description, "");
    CHECK(sgm_task_set_progress(task, 5, 0));
    sgm_task_list(&info, 1);
    CHECK(info.progress < 0);
    CHECK(sgm_task_set_progress(task, 7, 5)); /* more than there should be */
    sgm_task_list(&info, 1);
    CHECK_NEAR(info.progress, 1, 0);
    sgm_task_end(task, SGM_OK);
}

TEST(pauses_count_for_no_rate)
{
    sgm_task_info info;
    sgm_task task = sgm_task_begin(SGM_TASK_TRAIN, "paused", "iterations");
    CHECK(sgm_task_set_progress(task, 0, 2000));
    usleep(20000);
    CHECK(sgm_task_set_progress(task, 1000, 2000));
    sgm_task_set_paused(task, true);
    sgm_task_list(&info, 1);
    CHECK(info.paused);
    double rate = info.rate, seconds = info.seconds;
    usleep(200000);
    sgm_task_list(&info, 1);
    CHECK(info.rate > 0.9 * rate && info.seconds >= seconds + 0.2);
    sgm_task_set_paused(task, false);
    sgm_task_list(&info, 1);
    CHECK(!info.paused && info.rate * (info.seconds - 0.2) >= 999.9);
    sgm_task_end(task, SGM_OK);
}

TEST(watchers_are_told_of_begin_progress_and_end)
{
    static const struct {
        sgm_status status;
        sgm_task_status outcome;
    } cases[] = {{SGM_OK, SGM_TASK_ENDED},
                 {SGM_ERROR_INTERRUPTED, SGM_TASK_CANCELLED},
                 {SGM_ERROR_FILE, SGM_TASK_FAILED}};
    for (size_t i = 0; i < 3; i++) {
        seen self = {.begins = true};
        CHECK_OK(sgm_task_watch(remember, &self));
        sgm_task task = sgm_task_begin(SGM_TASK_SAVE, "a.safetensors", "bytes");
        CHECK_INT(self.calls, 1);
        for (uint64_t k = 1; k <= 1000; k++)
            sgm_task_set_progress(task, k, 1000);
        CHECK(self.calls <= 3); /* at most ten times a second */
        pause_for(0.11);
        sgm_task_set_progress(task, 600, 1000);
        CHECK(self.calls >= 2);
        CHECK_NEAR(self.newest.progress, 0.6, 0);
        sgm_task_end(task, cases[i].status);
        CHECK_INT(self.newest.status, cases[i].outcome);
        CHECK_INT(self.begun, 1);
        CHECK_INT(self.ended, 1);
        sgm_task_unwatch(remember, &self);
        sgm_task_end(sgm_task_begin(SGM_TASK_SAVE, "b", NULL), SGM_OK);
        CHECK_INT(self.ended, 1);
    }
    CHECK_ERROR(sgm_task_watch(NULL, NULL), "expected a function");
}

TEST(a_task_is_cancelled_by_its_number)
{
    sgm_task task = sgm_task_begin(SGM_TASK_PREPARE, "digits", NULL);
    CHECK_ERROR(sgm_task_cancel(task), "preparing 'digits' cannot be cancelled");
    CHECK_INT(sgm_last_status(), SGM_ERROR_UNSUPPORTED);
    sgm_task_allow_cancel(task);
    CHECK(sgm_task_set_progress(task, 1, 0));
    CHECK_OK(sgm_task_cancel(task));
    CHECK(!sgm_task_set_progress(task, 2, 0));
    sgm_task_end(task, SGM_ERROR_INTERRUPTED);
    CHECK_ERROR(sgm_task_cancel(task), "is not running");
    CHECK_INT(sgm_last_status(), SGM_ERROR_NOT_FOUND);
    CHECK_ERROR(sgm_task_cancel(0), "is not running");
    CHECK_ERROR(sgm_task_cancel(-64), "is not running");
}

TEST(a_full_table_and_no_task_are_no_failure)
{
    sgm_task tasks[70];
    allocator_start(1);
    for (int i = 0; i < 70; i++) {
        tasks[i] = sgm_task_begin(SGM_TASK_LOAD, "one of many", "files");
        CHECK((tasks[i] != 0) == (i < 64));
        CHECK(sgm_task_set_progress(tasks[i], 1, 2));
    }
    CHECK_INT(sgm_task_list(NULL, 0), 64);
    for (int i = 0; i < 70; i++)
        sgm_task_end(tasks[i], SGM_OK);
    CHECK_INT(atomic_load(&allocator_calls), 0);
    allocator_stop();
    CHECK_INT(sgm_task_list(NULL, 0), 0);
}

static void *work(void *user)
{
    for (int i = 0; i < 300; i++) {
        sgm_task task = sgm_task_begin(SGM_TASK_LOAD, user, "files");
        sgm_task_allow_cancel(task);
        for (uint64_t k = 0; k < 20; k++)
            sgm_task_set_progress(task, k, 20);
        sgm_task_end(task, SGM_OK);
    }
    return NULL;
}

TEST(threads_tell_while_others_look)
{
    pthread_t threads[4];
    static char name[] = "work";
    seen self = {0};
    CHECK_OK(sgm_task_watch(remember, &self));
    for (int i = 0; i < 4; i++)
        CHECK_INT(pthread_create(&threads[i], NULL, work, name), 0);
    for (int i = 0; i < 300; i++) {
        sgm_task_info infos[4];
        seen passing = {0};
        size_t count = sgm_task_list(infos, 4);
        CHECK(count <= 4);
        for (size_t k = 0; k < count; k++)
            CHECK_STR(infos[k].description, "work");
        if (count > 0)
            sgm_task_cancel(infos[0].task);
        sgm_task_watch(remember, &passing);
        sgm_task_unwatch(remember, &passing);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    sgm_task_unwatch(remember, &self);
    CHECK_INT(self.ended, 1200);
    CHECK_INT(sgm_task_list(NULL, 0), 0);
}

TEST(kinds_have_names)
{
    CHECK_STR(sgm_task_kind_name(SGM_TASK_DOWNLOAD), "download");
    CHECK_STR(sgm_task_kind_going(SGM_TASK_SAVE), "saving");
    CHECK_STR(sgm_task_kind_name((sgm_task_kind)99), "unknown");
    CHECK_STR(sgm_task_kind_going((sgm_task_kind)-1), "unknown");
}
