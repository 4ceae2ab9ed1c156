/* The threads of workers: each does the task that all are given, while the run's thread waits. */
#include "base/clock.h"
#include "handlers/session.h"
#include "training/ranks.h"

#include <signal.h>
#include <stdio.h>

/* A sum with other workers is due, or a bucket of gradients is complete. */
static sgm_status piece_done(void *user, size_t piece)
{
    sgm__worker *worker = user;
    sgm_operator *team = worker->team;
    if (piece < worker->reduction_count)
        return sgm__worker_reduce(worker, piece);
    if (worker->end_count == worker->reduction_count) /* no buckets: gradients wait for the end */
        return SGM_OK;
    pthread_mutex_lock(&team->lock);
    worker->pieces = piece - worker->reduction_count + 1;
    pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
    return SGM_OK;
}

sgm_status sgm__worker_run(sgm__worker *worker)
{
    const sgm__pieces pieces = {worker->ends, worker->end_count, piece_done, worker};
    return worker->end_count > 0 ? sgm__session_run_pieces(worker->scope->session, worker->program, &pieces)
                                 : sgm_session_run(worker->scope->session, worker->program);
}

/* Nobody waits any more for a sum with this worker. */
static void leave_sums(sgm_operator *team)
{
    pthread_mutex_lock(&team->lock);
    team->ended = true;
    pthread_cond_broadcast(&team->summed);
    pthread_mutex_unlock(&team->lock);
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
        leave_sums(worker->team);
    worker->seconds += sgm__now() - began;
}

static void *work(void *argument)
{
    sgm__worker *worker = argument;
    sgm_operator *team = worker->team;
    pthread_mutex_lock(&team->lock);
    for (;;) {
        while (!worker->busy && !worker->quit)
            pthread_cond_wait(&worker->wake, &team->lock);
        if (worker->quit)
            break;
        pthread_mutex_unlock(&team->lock);
        sgm_clear_error();
        compute(worker);
        pthread_mutex_lock(&team->lock);
        worker->busy = false;
        if (--team->pending == 0)
            pthread_cond_signal(&team->done);
    }
    pthread_mutex_unlock(&team->lock);
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
static sgm_status wait_for_tasks(sgm_operator *team)
{
    sgm_status status = SGM_OK;
    while (team->pending > 0) {
        double rest = 1;
        if (team->ranks != NULL && status == SGM_OK) {
            pthread_mutex_unlock(&team->lock);
            status = sgm__ranks_go_on(team->ranks, &rest);
            pthread_mutex_lock(&team->lock);
        }
        struct timespec until = sgm__time_in(rest);
        if (team->pending > 0 && !sgm__ranks_are_behind(team->ranks))
            pthread_cond_timedwait(&team->done, &team->lock, &until);
    }
    return status;
}

/* The first failure, by number, counts, but those who gave up as another one had failed. */
static sgm_status first_failure(const sgm_operator *team)
{
    const sgm__worker *first = NULL;
    for (int32_t i = 0; i < team->count; i++) {
        const sgm__worker *worker = &team->workers[i];
        if (worker->status != SGM_OK && (first == NULL || (first->follows && !worker->follows)))
            first = worker;
    }
    return first != NULL ? sgm_fail(first->status, "worker %d: %s", first->number, first->message) : SGM_OK;
}

static bool carries_sums(const sgm_operator *team)
{
    return team->ranks != NULL && team->ranks->near == NULL;
}

/* With the lock. This thread does the last task itself where it has nothing else to do meanwhile. */
static void start_tasks(sgm_operator *team, sgm_status (*task)(sgm__worker *worker), bool all,
                        sgm__worker **own)
{
    team->gave_up = team->ended = false;
    team->waiting = 0;
    for (int32_t i = 0; i < team->count; i++) {
        sgm__worker *worker = &team->workers[i];
        worker->status = SGM_OK;
        worker->pieces = 0;
        worker->follows = false;
        worker->task = task;
        worker->busy = all || worker->records > 0;
        if (worker->busy)
            *own = worker;
    }
    if (carries_sums(team))
        *own = NULL;
    for (int32_t i = 0; i < team->count; i++) {
        sgm__worker *worker = &team->workers[i];
        if (worker == *own)
            worker->busy = false;
        team->pending += worker->busy;
        if (worker->busy)
            pthread_cond_signal(&worker->wake);
    }
}

sgm_status sgm__workers_do(sgm_operator *team, sgm_status (*task)(sgm__worker *worker), bool all)
{
    sgm__worker *own = NULL;
    pthread_mutex_lock(&team->lock);
    start_tasks(team, task, all, &own);
    pthread_mutex_unlock(&team->lock);
    if (own != NULL)
        compute(own);
    pthread_mutex_lock(&team->lock);
    sgm_status status = wait_for_tasks(team);
    pthread_mutex_unlock(&team->lock);
    sgm_status failure = first_failure(team);
    return failure != SGM_OK ? failure : status;
}

void sgm__operator_end(sgm_trainer *trainer)
{
    sgm_operator *team = trainer->team;
    if (team == NULL)
        return;
    sgm__peers_end(team);
    pthread_mutex_lock(&team->lock);
    for (int32_t i = 0; i < team->count; i++) {
        team->workers[i].quit = true;
        pthread_cond_signal(&team->workers[i].wake);
    }
    pthread_mutex_unlock(&team->lock);
    for (int32_t i = 0; i < team->count; i++) {
        if (team->workers[i].started)
            pthread_join(team->workers[i].thread, NULL);
        team->workers[i].started = false;
    }
}
