/* Visits files on several threads.
 *
 * Each thread takes the next file as soon as it is done with one, so that large files keep nobody waiting.
 * What becomes of a file depends on nothing but the file, and goes to a place of its own: results are the
 * same for any number of threads, and so is the failure, which is that of the first file that fails. */
#include "base/clock.h"
#include "data/files/files.h"

#include <stdatomic.h>
#include <stdio.h>

/* Fewer files are not worth a thread, which takes about as long to begin as a small picture to decode. */
#define MINIMUM_FILES 4

typedef struct visits {
    int64_t count;
    sgm_status (*visit)(void *user, int32_t thread, int64_t item);
    void *user;
    atomic_llong next;
    atomic_bool has_failed;
    /* Under the mutex: the first of the items that failed, and its failure. */
    pthread_mutex_t mutex;
    int64_t failed;
    sgm_status status;
    char message[1024];
} visits;

typedef struct visitor {
    visits *all;
    int32_t thread;
    pthread_t id;
} visitor;

/* Errors are kept per thread, so the message is copied for the thread that waits. */
static void note_failure(visits *all, int64_t item, sgm_status status)
{
    atomic_store(&all->has_failed, true);
    pthread_mutex_lock(&all->mutex);
    if (all->status == SGM_OK || item < all->failed) {
        all->failed = item;
        all->status = status;
        snprintf(all->message, sizeof all->message, "%s", sgm_last_error());
    }
    pthread_mutex_unlock(&all->mutex);
}

/* Items are taken in order, so all before one that fails have been taken, and are finished. */
static void *visit_all(void *pointer)
{
    const visitor *self = pointer;
    visits *all = self->all;
    while (!atomic_load(&all->has_failed)) {
        int64_t item = atomic_fetch_add(&all->next, 1);
        if (item >= all->count)
            break;
        sgm_status status = all->visit(all->user, self->thread, item);
        if (status != SGM_OK)
            note_failure(all, item, status);
    }
    return NULL;
}

int32_t sgm__files_threads(int32_t asked)
{
    int32_t threads = asked > 0 ? asked : sgm__processors();
    return threads < SGM__MAXIMUM_FILE_THREADS ? threads : SGM__MAXIMUM_FILE_THREADS;
}

/* A thread that cannot be started is done without. */
sgm_status sgm__files_visit(int64_t count, int32_t threads,
                            sgm_status (*visit)(void *user, int32_t thread, int64_t item), void *user)
{
    visits all = {.count = count, .visit = visit, .user = user, .mutex = PTHREAD_MUTEX_INITIALIZER};
    visitor visitors[SGM__MAXIMUM_FILE_THREADS];
    int32_t started = 1;
    while (started < threads && started < count / MINIMUM_FILES) {
        visitors[started] = (visitor){.all = &all, .thread = started};
        if (sgm__thread_start(&visitors[started].id, visit_all, &visitors[started]) != 0)
            break;
        started++;
    }
    visit_all(&(visitor){.all = &all});
    for (int32_t i = 1; i < started; i++)
        pthread_join(visitors[i].id, NULL);
    pthread_mutex_destroy(&all.mutex);
    return all.status == SGM_OK ? SGM_OK : sgm_fail(all.status, "%s", all.message);
}
