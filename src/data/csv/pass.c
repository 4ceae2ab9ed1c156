/* Goes once over the rows of a reader, with several threads: see pass.h.
 *
 * There are two batches of pieces. The caller takes the slots of one; the threads work on the other. When the
 * caller has taken all, it fills its batch with the next pieces of the file, helps with the other one, waits
 * for the threads, and sets them to the batch that it has filled. Threads live for one batch: starting one
 * takes some ten microseconds, a batch milliseconds, and nobody has to be told to leave. */
#include "data/csv/pass.h"

#include "base/clock.h"
#include "data/csv/reader_csv.h"
#include "data/read/reader.h"

#include <stdatomic.h>

#define ROWS_AT_ONCE 1024 /* of readers that are not of csv */
/* Where so many bytes are kept of a byte of text, or fewer, a batch has all its pieces: those of two batches
 * are 16 MB then. */
#define SMALL_EXPANSION 4.0

/* A piece and what became of it. */
typedef struct task {
    sgm__csv_piece piece;
    sgm__csv_ragged ragged;
    sgm_status status;
    char *message; /* of a failure; NULL: there was no memory for it */
} task;

typedef struct batch {
    task tasks[SGM__PASS_BATCH];
    size_t count, taken;
    atomic_size_t next; /* that no thread works on yet */
} batch;

typedef struct worker {
    sgm__pass *pass;
    size_t number;
    pthread_t thread;
    sgm__csv_rows rows;
} worker;

struct sgm__pass {
    sgm_reader *reader;
    sgm__csv_reader *csv; /* the same, or NULL: it is another one */
    sgm__pass_work work;
    void *user;
    batch batches[2];
    size_t front; /* whose slots the caller takes; the other batch is worked on */
    bool has_begun, at_end;
    task other;                   /* the failure of a reader that is not of csv */
    size_t batch_size;            /* pieces */
    size_t thread_count, running; /* workers; threads beside the caller's */
    worker workers[SGM__PASS_MAXIMUM_THREADS];
};

/* --- one piece --- */

/* Errors are the thread's own, so they are kept with the task until the caller comes to it. */
static void note_failure(task *t, sgm_status status)
{
    t->status = status;
    t->message = status != SGM_OK ? sgm__strdup(sgm_last_error()) : NULL;
}

static sgm_status raise_failure(const task *t)
{
    if (t->status == SGM_OK)
        return SGM_OK;
    return sgm_fail(t->status, "%s", t->message != NULL ? t->message : "out of memory");
}

static void do_task(sgm__pass *pass, batch *b, size_t index, size_t number)
{
    task *t = &b->tasks[index];
    sgm__csv_rows *rows = &pass->workers[number].rows;
    size_t slot = (size_t)(b - pass->batches) * SGM__PASS_BATCH + index;
    if (t->status != SGM_OK) /* it could not be read */
        return;
    sgm__csv_rows_clear(rows);
    note_failure(t, sgm__csv_split(sgm__csv_reader_format(pass->csv), &t->piece, INT64_MAX, rows));
    t->ragged = rows->ragged;
    sgm_status status = pass->work(pass->user, slot, number, rows); /* rows before a bad one are good */
    if (status != SGM_OK) {
        sgm__free(t->message);
        note_failure(t, status);
    }
}

/* --- batches --- */

static batch *other_batch(sgm__pass *pass)
{
    return &pass->batches[1 - pass->front];
}

static void clear_task(task *t)
{
    sgm__free(t->message);
    t->message = NULL;
    t->status = SGM_OK;
    t->ragged.count = 0;
}

static void clear_batch(batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        clear_task(&b->tasks[i]);
    b->count = b->taken = 0;
    atomic_store(&b->next, 0);
}

/* Fills a batch with pieces. A piece that cannot be read is the last one of the file. */
static void read_batch(sgm__pass *pass, batch *b)
{
    clear_batch(b);
    while (b->count < pass->batch_size && !pass->at_end) {
        task *t = &b->tasks[b->count];
        note_failure(t, sgm__csv_reader_cut(pass->csv, &t->piece));
        pass->at_end = t->status != SGM_OK || t->piece.length == 0;
        b->count += t->status != SGM_OK || t->piece.length > 0;
    }
}

static void work_on_batch(sgm__pass *pass, batch *b, size_t number)
{
    size_t index;
    while ((index = atomic_fetch_add(&b->next, 1)) < b->count)
        do_task(pass, b, index, number);
}

static void *run_worker(void *pointer)
{
    worker *w = pointer;
    work_on_batch(w->pass, other_batch(w->pass), w->number);
    return NULL;
}

/* The first row of the file decides the number of columns, which the threads must know. */
static void find_columns(sgm__pass *pass, batch *b)
{
    while (sgm__csv_reader_format(pass->csv)->columns == 0 && atomic_load(&b->next) < b->count) {
        do_task(pass, b, atomic_fetch_add(&b->next, 1), 0);
        sgm__csv_reader_note_columns(pass->csv, &pass->workers[0].rows);
    }
}

/* Lets the threads begin with the batch that is not in front. It is no failure if none can be started. */
static void start_workers(sgm__pass *pass)
{
    batch *b = other_batch(pass);
    find_columns(pass, b);
    for (size_t i = 1; i < pass->thread_count && i < b->count; i++) {
        if (sgm__thread_start(&pass->workers[i].thread, run_worker, &pass->workers[i]) != 0)
            break;
        pass->running++;
    }
}

static void wait_for_workers(sgm__pass *pass)
{
    for (size_t i = 1; i <= pass->running; i++)
        pthread_join(pass->workers[i].thread, NULL);
    pass->running = 0;
}

/* Brings the next batch to the front. */
static void turn(sgm__pass *pass)
{
    batch *used = &pass->batches[pass->front], *next = other_batch(pass);
    if (!pass->has_begun) {
        pass->has_begun = true;
        read_batch(pass, next);
        start_workers(pass);
    }
    read_batch(pass, used);
    work_on_batch(pass, next, 0);
    wait_for_workers(pass);
    for (size_t i = 0; i < next->count; i++)
        sgm__csv_reader_log_ragged(pass->csv, &next->tasks[i].ragged);
    pass->front = 1 - pass->front;
    start_workers(pass);
}

/* --- rows of other readers --- */

static sgm_status read_run(sgm__pass *pass, size_t *slot)
{
    sgm_examples examples;
    sgm__csv_rows *rows = &pass->workers[0].rows;
    SGM_TRY(raise_failure(&pass->other));
    SGM_TRY(sgm_reader_read(pass->reader, ROWS_AT_ONCE, &examples));
    if (examples.count == 0)
        return SGM_OK;
    if (examples.values != NULL)
        return sgm_fail(SGM_ERROR_TYPE,
                        "%s: expected text, but the reader gives arrays; use sgm_array_extractor",
                        sgm_reader_name(pass->reader));
    SGM_TRY(sgm__csv_rows_copy(rows, &examples));
    *slot = 0;
    sgm_status status = pass->work(pass->user, 0, 0, rows);
    note_failure(&pass->other, status);
    return status;
}

/* --- the pass --- */

sgm__pass *sgm__pass_create(sgm_reader *reader, int32_t threads, double expansion, sgm__pass_work work,
                            void *user)
{
    sgm__pass *made = sgm__calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    if (threads <= 0)
        threads = sgm__processors();
    made->reader = reader;
    made->csv = sgm__csv_reader_of(reader);
    made->work = work;
    made->user = user;
    made->batch_size = expansion <= SMALL_EXPANSION
                           ? SGM__PASS_BATCH
                           : (size_t)(SGM__PASS_BATCH * SMALL_EXPANSION / expansion) + 1;
    made->thread_count = threads < SGM__PASS_MAXIMUM_THREADS ? (size_t)threads : SGM__PASS_MAXIMUM_THREADS;
    for (size_t i = 0; i < SGM__PASS_MAXIMUM_THREADS; i++)
        made->workers[i] = (worker){.pass = made, .number = i};
    return made;
}

size_t sgm__pass_threads(const sgm__pass *pass)
{
    return pass->thread_count;
}

sgm_status sgm__pass_next(sgm__pass *pass, size_t *slot)
{
    *slot = SGM__PASS_SLOTS;
    SGM_TRY(sgm_reader_prepare(pass->reader));
    if (pass->csv == NULL)
        return read_run(pass, slot);
    if (pass->batches[pass->front].taken == pass->batches[pass->front].count)
        turn(pass);
    batch *front = &pass->batches[pass->front];
    if (front->count == 0)
        return SGM_OK;
    *slot = pass->front * SGM__PASS_BATCH + front->taken;
    SGM_TRY(raise_failure(&front->tasks[front->taken]));
    front->taken++;
    return SGM_OK;
}

void sgm__pass_stop(sgm__pass *pass)
{
    if (pass == NULL)
        return;
    atomic_store(&other_batch(pass)->next, SGM__PASS_BATCH); /* nothing is begun any more */
    wait_for_workers(pass);
    for (int i = 0; i < 2; i++)
        clear_batch(&pass->batches[i]);
    clear_task(&pass->other);
    pass->has_begun = pass->at_end = false;
}

void sgm__pass_free(sgm__pass *pass)
{
    if (pass == NULL)
        return;
    sgm__pass_stop(pass);
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < SGM__PASS_BATCH; k++)
            sgm__free(pass->batches[i].tasks[k].piece.text);
    for (size_t i = 0; i < SGM__PASS_MAXIMUM_THREADS; i++)
        sgm__csv_rows_free(&pass->workers[i].rows);
    sgm__free(pass);
}
