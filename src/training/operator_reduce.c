/* Sums that workers make amid their programs (all_reduce): what a layer or a cost wants to know of the whole
 * minibatch, of which each worker has a part. Behind each such step a worker waits for the others; the last
 * one adds up what all have, in the order of the workers, and sums that with the other ranks. */
#include "training/operator.h"
#include "training/ranks.h"

/* Anew when a minibatch of another size came. */
sgm_status sgm__worker_find_reductions(sgm__worker *worker, const sgm_program *program)
{
    if (worker->reduces == program)
        return SGM_OK;
    worker->reduces = NULL;
    worker->cut = NULL;
    SGM_TRY(sgm__program_sums(program, &worker->reductions, &worker->reduction_count,
                              &worker->reduction_capacity));
    size_t count = worker->reduction_count, most = 0;
    SGM_TRY(sgm__reserve(&worker->ends, &worker->end_capacity, count, sizeof *worker->ends));
    for (size_t i = 0; i < count; i++) {
        worker->ends[i] = worker->reductions[i].end;
        most = worker->reductions[i].elements > most ? worker->reductions[i].elements : most;
    }
    worker->end_count = count;
    SGM_TRY(sgm__reserve(&worker->reduced, &worker->reduced_capacity, most, sizeof *worker->reduced));
    worker->reduces = program;
    return SGM_OK;
}

/* --- with the operator's lock --- */

static sgm_status sum_with_ranks(sgm_operator *team, size_t elements)
{
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = team->sum, .count = elements};
    return team->ranks != NULL && team->ranks->count > 1
               ? sgm__ranks_do(team->ranks, &work, "what layers sum over the minibatch")
               : SGM_OK;
}

static sgm_status clear_sum(sgm_operator *team, size_t elements)
{
    SGM_TRY(sgm__reserve(&team->sum, &team->sum_capacity, elements, sizeof *team->sum));
    for (size_t i = 0; i < elements; i++)
        team->sum[i] = 0;
    return SGM_OK;
}

static sgm_status fail_differing(const sgm__worker *worker)
{
    return sgm_fail(
        SGM_ERROR_STATE,
        "its layers sum over the minibatch, but not as those of another worker do: all workers must "
        "record the network alike (worker %d)",
        worker->number);
}

static sgm_status add_up(const sgm__worker *last, size_t index)
{
    sgm_operator *team = last->team;
    size_t elements = last->reductions[index].elements;
    SGM_TRY(clear_sum(team, elements));
    for (int32_t k = 0; k < team->count; k++) {
        const sgm__worker *worker = &team->workers[k];
        if (worker->records == 0)
            continue;
        if (worker->reduction_count != last->reduction_count ||
            worker->reductions[index].elements != elements)
            return fail_differing(last);
        for (size_t i = 0; i < elements; i++)
            team->sum[i] += worker->reduced[i];
    }
    return sum_with_ranks(team, elements);
}

static int32_t count_taking_part(const sgm_operator *team)
{
    int32_t count = 0;
    for (int32_t i = 0; i < team->count; i++)
        count += team->workers[i].records > 0;
    return count;
}

/* A worker whose program is over makes no more sums. */
static sgm_status wait_for_sum(const sgm__worker *worker)
{
    sgm_operator *team = worker->team;
    uint64_t newest = team->sums_made;
    while (team->sums_made == newest && !team->gave_up && !team->ended)
        pthread_cond_wait(&team->summed, &team->lock);
    if (team->sums_made != newest)
        return SGM_OK;
    return team->gave_up ? sgm_fail(SGM_ERROR_STATE, "another worker has failed") : fail_differing(worker);
}

static sgm_status meet(const sgm__worker *worker, size_t index)
{
    sgm_operator *team = worker->team;
    if (++team->waiting < count_taking_part(team))
        return wait_for_sum(worker);
    SGM_TRY(add_up(worker, index));
    team->waiting = 0;
    team->sums_made++;
    pthread_cond_broadcast(&team->summed);
    return SGM_OK;
}

/* --- */

sgm_status sgm__worker_reduce(sgm__worker *worker, size_t index)
{
    sgm_operator *team = worker->team;
    const sgm__program_sum *sum = &worker->reductions[index];
    const sgm_session *session = worker->scope->session;
    SGM_TRY(sgm__session_read_sum(session, worker->program, sum, worker->reduced));
    pthread_mutex_lock(&team->lock);
    sgm_status status = meet(worker, index);
    pthread_mutex_unlock(&team->lock);
    SGM_TRY(status);
    return sgm__session_write_sum(session, worker->program, sum, team->sum);
}

sgm_status sgm__operator_reduce_nothing(sgm_operator *team)
{
    const sgm__worker *first = &team->workers[0];
    for (size_t i = 0; i < first->reduction_count; i++) {
        SGM_TRY(clear_sum(team, first->reductions[i].elements));
        SGM_TRY(sum_with_ranks(team, first->reductions[i].elements));
    }
    return SGM_OK;
}
