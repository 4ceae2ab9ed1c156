/* The threads of workers: each does the task that all are given, while the run's thread waits. */
#include "base/clock.h"
#include "handlers/session.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"

#include <signal.h>
#include <stdio.h>

/* A sum with other workers is due, or a bucket of gradients is complete. */
static sgm_status piece_done(void *user, size_t piece)
{
    sgm__worker *worker = user;
    sgm_operator *parallel = worker->parallel;
    if (piece < worker->reduction_count)
        return sgm__worker_reduce(worker, piece);
    if (worker->end_count == worker->reduction_count) /* no buckets: gradients wait for the end */
        return SGM_OK;
    pthread_mutex_lock(&parallel->lock);
    worker->pieces = piece - worker->reduction_count + 1;
    pthread_cond_signal(&parallel->done);
    pthread_mutex_unlock(&parallel->lock);
    return SGM_OK;
}

sgm_status sgm__worker_run(sgm__worker *worker)
{
    const sgm__pieces pieces = {worker->ends, worker->end_count, piece_done, worker};
    return worker->end_count > 0
               ? sgm__session_run_pieces(sgm__learner_of(worker->replica)->session, worker->program, &pieces)
               : sgm_session_run(sgm__learner_of(worker->replica)->session, worker->program);
}

/* Nobody waits any more for a sum with this worker. */
static void leave_sums(sgm_operator *parallel)
{
    pthread_mutex_lock(&parallel->lock);
    parallel->ended = true;
    pthread_cond_broadcast(&parallel->summed);
    pthread_mutex_unlock(&parallel->lock);
}

static void compute(sgm__worker *worker)
{
    double began = sgm__now();
    worker->status = worker->task(worker);
    if (worker->status != SGM_OK) {
        snprintf(worker->message, sizeof worker->message, "%s", sgm_last_error());
        sgm__peers_give_up(worker);
    }
    if (worker->reduction_count > 0)
        leave_sums(worker->parallel);
    worker->seconds += sgm__now() - began;
}

static void *work(void *argument)
{
    sgm__worker *worker = argument;
    sgm_operator *parallel = worker->parallel;
    pthread_mutex_lock(&parallel->lock);
    for (;;) {
        while (!worker->busy && !worker->quit)
            pthread_cond_wait(&worker->wake, &parallel->lock);
        if (worker->quit)
            break;
        pthread_mutex_unlock(&parallel->lock);
        sgm_clear_error();
        compute(worker);
        pthread_mutex_lock(&parallel->lock);
        worker->busy = false;
        if (--parallel->pending == 0)
            pthread_cond_signal(&parallel->done);
    }
    pthread_mutex_unlock(&parallel->lock);
    return NULL;
}

/* Signals are for the program's own threads. */
sgm_status sgm__worker_start(sgm__worker *worker)
{
    sigset_t all, before;
    sigfillset(&all);
    worker->quit = false;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    worker->started = error == 0;
    return error == 0 ? SGM_OK
                      : sgm_fail(SGM_ERROR_STATE, "the system refused a thread for worker %d: %s",
                                 worker->number, sgm__errno_text(error));
}

/* With the lock. Meanwhile this thread brings what workers have ready to other ranks. */
static sgm_status wait_for_tasks(sgm_operator *parallel)
{
    sgm_status status = SGM_OK;
    while (parallel->pending > 0) {
        double rest = 1;
        if (parallel->ranks != NULL && status == SGM_OK) {
            pthread_mutex_unlock(&parallel->lock);
            status = sgm__ranks_go_on(parallel->ranks, &rest);
            pthread_mutex_lock(&parallel->lock);
        }
        struct timespec until = sgm__time_in(rest);
        if (parallel->pending > 0 && !sgm__ranks_are_behind(parallel->ranks))
            pthread_cond_timedwait(&parallel->done, &parallel->lock, &until);
    }
    return status;
}

/* The first failure, by number, counts, but those who gave up as another one had failed. */
static sgm_status first_failure(const sgm_operator *parallel)
{
    const sgm__worker *first = NULL;
    for (int32_t i = 0; i < parallel->count; i++) {
        const sgm__worker *worker = &parallel->workers[i];
        if (worker->status != SGM_OK && (first == NULL || (first->follows && !worker->follows)))
            first = worker;
    }
    return first != NULL ? sgm_fail(first->status, "worker %d: %s", first->number, first->message) : SGM_OK;
}

static bool carries_sums(const sgm_operator *parallel)
{
    return parallel->ranks != NULL && parallel->ranks->node == NULL;
}

/* With the lock. This thread does the last task itself where it has nothing else to do meanwhile. */
static void start_tasks(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all,
                        sgm__worker **own)
{
    parallel->gave_up = parallel->ended = false;
    parallel->waiting = 0;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__worker *worker = &parallel->workers[i];
        worker->status = SGM_OK;
        worker->pieces = 0;
        worker->follows = false;
        worker->task = task;
        worker->busy = all || worker->examples > 0;
        if (worker->busy)
            *own = worker;
    }
    if (carries_sums(parallel))
        *own = NULL;
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__worker *worker = &parallel->workers[i];
        if (worker == *own)
            worker->busy = false;
        parallel->pending += worker->busy;
        if (worker->busy)
            pthread_cond_signal(&worker->wake);
    }
}

sgm_status sgm__workers_do(sgm_operator *parallel, sgm_status (*task)(sgm__worker *worker), bool all)
{
    sgm__worker *own = NULL;
    pthread_mutex_lock(&parallel->lock);
    start_tasks(parallel, task, all, &own);
    pthread_mutex_unlock(&parallel->lock);
    if (own != NULL)
        compute(own);
    pthread_mutex_lock(&parallel->lock);
    sgm_status status = wait_for_tasks(parallel);
    pthread_mutex_unlock(&parallel->lock);
    sgm_status failure = first_failure(parallel);
    return failure != SGM_OK ? failure : status;
}

void sgm__operator_end(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    if (parallel == NULL)
        return;
    sgm__peers_end(parallel);
    pthread_mutex_lock(&parallel->lock);
    for (int32_t i = 0; i < parallel->count; i++) {
        parallel->workers[i].quit = true;
        pthread_cond_signal(&parallel->workers[i].wake);
    }
    pthread_mutex_unlock(&parallel->lock);
    for (int32_t i = 0; i < parallel->count; i++) {
        if (parallel->workers[i].started)
            pthread_join(parallel->workers[i].thread, NULL);
        parallel->workers[i].started = false;
    }
}
