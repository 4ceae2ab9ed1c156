/* The queue of lines behind line_queue.h: a linked list that any thread appends to and one thread writes.
 *
 * Invariant: `bytes` is the sum of the lengths of all lines in the list and of the line that is being
 * written, `count` their number. `last` points to the `next` of the last line, or to `first` when the list
 * is empty, so that appending needs no case for an empty list. The writing thread holds the lock only to
 * take a line out and to count it as written, never while it writes. It waits with poll and a timeout
 * rather than in write, so that the end of the queue can interrupt a wait for a reader that never reads. */
#include "monitors/line_queue.h"
#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* Time between two checks of whether the queue is to end, while the reader's pipe is full. */
#define LOOK_MILLISECONDS 50
/* Seconds that the end of the queue waits for a reader that reads nothing. */
#define PATIENCE 1.0

/* A line and its text in one allocation; `bytes` has `length` bytes, without a terminating zero. */
typedef struct line {
    struct line *next;
    size_t length;
    char bytes[];
} line;

/* `descriptor` and `thread` do not change after the start. */
struct sgm__line_queue {
    int descriptor;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t changed;
    line *first, **last;
    size_t count, bytes;
    bool ending; /* no more lines come; the thread ends when the list is empty */
    int error;   /* errno of the write that ended the thread; EAGAIN: nobody read */
};

/* Waits for a line and takes it out of the list. NULL: the queue is ending and the list is empty. `count`
 * and `bytes` still include the line, until it has been written. */
static line *take(sgm__line_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->ending)
        pthread_cond_wait(&queue->changed, &queue->lock);
    line *taken = queue->first;
    if (taken != NULL) {
        queue->first = taken->next;
        if (queue->first == NULL)
            queue->last = &queue->first;
    }
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

static bool is_ending(sgm__line_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool ending = queue->ending;
    pthread_mutex_unlock(&queue->lock);
    return ending;
}

/* Waits until the descriptor takes bytes. While the queue is in use this waits without a limit. Once it is
 * ending, false is returned after PATIENCE seconds without room. A descriptor whose reader has gone counts
 * as ready (POLLERR), and the following write then fails with EPIPE. */
static bool await_room(sgm__line_queue *queue)
{
    struct pollfd wait = {.fd = queue->descriptor, .events = POLLOUT};
    double since = 0;
    while (poll(&wait, 1, LOOK_MILLISECONDS) <= 0) {
        if (!is_ending(queue))
            continue;
        if (since == 0)
            since = sgm__now();
        else if (sgm__now() - since > PATIENCE)
            return false;
    }
    return true;
}

/* Writes one line, in pieces of at most PIPE_BUF bytes: POSIX guarantees that a pipe that poll reports as
 * writable takes that much at once, so write never blocks although the descriptor is in blocking mode.
 * Returns 0 when all is written, EAGAIN when nobody reads, else the errno of write. */
static int write_line(sgm__line_queue *queue, const line *given)
{
    for (size_t done = 0; done < given->length;) {
        size_t part = given->length - done < PIPE_BUF ? given->length - done : PIPE_BUF;
        if (!await_room(queue))
            return EAGAIN;
        ssize_t written = write(queue->descriptor, given->bytes + done, part);
        if (written < 0 && errno != EINTR && errno != EAGAIN)
            return errno;
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

/* The writing thread. It ends when take returns NULL or at the first error. The line that failed stays in
 * `count`, so that sgm__line_queue_end counts it as lost. */
static void *run(void *argument)
{
    sgm__line_queue *queue = argument;
    line *taken;
    int error = 0;
    while (error == 0 && (taken = take(queue)) != NULL) {
        error = write_line(queue, taken);
        pthread_mutex_lock(&queue->lock);
        queue->count -= error == 0;
        queue->bytes -= taken->length;
        queue->error = error;
        pthread_mutex_unlock(&queue->lock);
        sgm__free(taken);
    }
    return NULL;
}

/* SIGPIPE is among the signals that are blocked in the thread: a reader that has gone gives EPIPE, an error
 * like others, and does not kill the process. */
sgm__line_queue *sgm__line_queue_start(int descriptor)
{
    sgm__line_queue *queue = sgm__calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    queue->descriptor = descriptor;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    if (sgm__thread_start(&queue->thread, run, queue) == 0)
        return queue;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    sgm__free(queue);
    sgm_fail(SGM_ERROR_MEMORY, "the system refused a thread that writes lines");
    return NULL;
}

/* The first line always fits, however long it is; otherwise a line longer than the limit could never be
 * written. */
bool sgm__line_queue_push(sgm__line_queue *queue, const char *text, size_t length)
{
    pthread_mutex_lock(&queue->lock);
    bool over = queue->error != 0;
    bool fits = !over && (queue->bytes == 0 || queue->bytes + length <= SGM__LINE_QUEUE_BYTES);
    line *made = fits ? sgm__alloc(sizeof *made + length) : NULL;
    if (made != NULL) {
        made->next = NULL;
        made->length = length;
        memcpy(made->bytes, text, length);
        *queue->last = made;
        queue->last = &made->next;
        queue->count++;
        queue->bytes += length;
        pthread_cond_signal(&queue->changed);
    }
    pthread_mutex_unlock(&queue->lock);
    return made != NULL || over;
}

int sgm__line_queue_error(sgm__line_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    int error = queue->error;
    pthread_mutex_unlock(&queue->lock);
    return error;
}

/* Reads `count` and `error` without the lock: the thread has been joined. */
size_t sgm__line_queue_end(sgm__line_queue *queue, int *error)
{
    pthread_mutex_lock(&queue->lock);
    queue->ending = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    size_t left = queue->count;
    *error = queue->error != EAGAIN ? queue->error : 0;
    for (line *next, *rest = queue->first; rest != NULL; rest = next) {
        next = rest->next;
        sgm__free(rest);
    }
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    sgm__free(queue);
    return left;
}
