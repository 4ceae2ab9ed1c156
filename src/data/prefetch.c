/* Reads the next block on a thread of its own while the current one is in use.
 *
 * Called by iterator.c:sgm__iterator_acquire: after it has taken block i it requests the block that comes
 * next in its order. The thread only calls sgm__dataset_fetch_range, which may be called from any thread, and
 * keeps the range until it is taken. Augmenting minibatches ahead is something else: augmentation_ring.c. The
 * iterator's thread and the reading thread share one request, whose stage says whose turn it is:
 *   IDLE -> WANTED (sgm__prefetch_request) -> READY (thread) -> IDLE (sgm__prefetch_take) */
#include "data/dataset.h"

/* WANTED: requested, or being read. READY: the range, or the failure, can be taken. LEAVING: the thread is to
 * end. */
typedef enum { IDLE, WANTED, READY, LEAVING } stage;

struct sgm__prefetch {
    sgm_dataset *dataset;
    pthread_t thread;
    pthread_mutex_t mutex;  /* guards all below */
    pthread_cond_t changed; /* the stage has changed; both threads wait on it */
    stage stage;
    int64_t index;            /* the block that was requested */
    sgm__example_range range; /* when READY: the block, in use on behalf of the prefetch until it is taken */
    sgm_status status;
    char message[1024]; /* of the thread's failure, for the thread that takes the block */
};

/* Reads the requested block, on the thread of its own. Holds the mutex before and after, but not while it
 * reads. Errors are kept per thread, so the message is copied for the thread that takes the block. */
static void fetch(sgm__prefetch *prefetch)
{
    int64_t index = prefetch->index;
    sgm__example_range range;
    pthread_mutex_unlock(&prefetch->mutex);
    sgm_status status = sgm__dataset_fetch_range(prefetch->dataset, index, &range);
    pthread_mutex_lock(&prefetch->mutex);
    prefetch->range = range;
    prefetch->status = status;
    if (status != SGM_OK) {
        const char *message = sgm_last_error();
        size_t length = strnlen(message, sizeof prefetch->message - 1);
        memcpy(prefetch->message, message, length);
        prefetch->message[length] = '\0';
    }
    if (prefetch->stage == WANTED)
        prefetch->stage = READY;
    pthread_cond_broadcast(&prefetch->changed);
}

static void *work(void *user)
{
    sgm__prefetch *prefetch = user;
    pthread_mutex_lock(&prefetch->mutex);
    while (prefetch->stage != LEAVING) {
        if (prefetch->stage == WANTED)
            fetch(prefetch);
        else
            pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
    }
    pthread_mutex_unlock(&prefetch->mutex);
    return NULL;
}

static void destroy(sgm__prefetch *prefetch)
{
    pthread_cond_destroy(&prefetch->changed);
    pthread_mutex_destroy(&prefetch->mutex);
    sgm__free(prefetch);
}

/* The dataset is not retained: the iterator that owns the prefetch does that, and frees the prefetch first.
 */
sgm__prefetch *sgm__prefetch_create(sgm_dataset *dataset)
{
    sgm__prefetch *made = sgm__calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->dataset = dataset;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&made->thread, NULL, work, made) != 0) {
        destroy(made);
        return NULL;
    }
    return made;
}

/* Forgets the request: waits for a block that is being read, since reading cannot be interrupted, and
 * releases it. Under the mutex. */
static void drop(sgm__prefetch *prefetch)
{
    while (prefetch->stage == WANTED)
        pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
    sgm__example_range_release(&prefetch->range);
    prefetch->stage = IDLE;
}

void sgm__prefetch_request(sgm__prefetch *prefetch, int64_t index)
{
    pthread_mutex_lock(&prefetch->mutex);
    if (prefetch->stage == IDLE || prefetch->index != index) {
        drop(prefetch);
        prefetch->stage = WANTED;
        prefetch->index = index;
        pthread_cond_broadcast(&prefetch->changed);
    }
    pthread_mutex_unlock(&prefetch->mutex);
}

/* The range passes to the caller, who releases it. For a block that was not requested, as after a change of
 * position, the request is dropped and the block read on this thread. */
sgm_status sgm__prefetch_take(sgm__prefetch *prefetch, int64_t index, sgm__example_range *range)
{
    pthread_mutex_lock(&prefetch->mutex);
    if (prefetch->stage == IDLE || prefetch->index != index) {
        drop(prefetch);
        pthread_mutex_unlock(&prefetch->mutex);
        return sgm__dataset_fetch_range(prefetch->dataset, index, range);
    }
    while (prefetch->stage == WANTED)
        pthread_cond_wait(&prefetch->changed, &prefetch->mutex);
    prefetch->stage = IDLE;
    *range = prefetch->range;
    prefetch->range = (sgm__example_range){0};
    sgm_status status = prefetch->status;
    if (status != SGM_OK)
        sgm_fail(status, "%s", prefetch->message);
    pthread_mutex_unlock(&prefetch->mutex);
    return status;
}

/* Waits for a block that is being read. */
void sgm__prefetch_free(sgm__prefetch *prefetch)
{
    if (!prefetch)
        return;
    pthread_mutex_lock(&prefetch->mutex);
    drop(prefetch);
    prefetch->stage = LEAVING;
    pthread_cond_broadcast(&prefetch->changed);
    pthread_mutex_unlock(&prefetch->mutex);
    pthread_join(prefetch->thread, NULL);
    destroy(prefetch);
}
