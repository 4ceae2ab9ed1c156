/* Sums that workers make amid their programs (all_reduce): what a layer or a cost wants to know of the whole
 * minibatch, of which each worker has a part; and the workers' numbers among those of all ranks.
 *
 * Behind each step with such a sum a worker waits for the others; the last one adds up what all have, in the
 * order of the workers, and sums that with the other ranks. */
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"

int32_t sgm_operator_rank(const sgm_operator *parallel)
{
    return parallel != NULL && parallel->ranks != NULL ? parallel->ranks->rank : 0;
}

int32_t sgm_operator_ranks(const sgm_operator *parallel)
{
    return parallel != NULL && parallel->ranks != NULL ? parallel->ranks->count : 1;
}

int32_t sgm__worker_number(const sgm_operator *parallel, int32_t worker)
{
    return parallel->ranks != NULL ? parallel->ranks->rank * parallel->count + worker : worker;
}

/* Copies the newest recording to the trainer and all replicas. The arrays that a recording points to belong
 * to the network, which all of them share: after a new recording, pointers of older ones are invalid. */
void sgm__operator_recorded(sgm_trainer *trainer)
{
    sgm_trainer *owner = sgm__sharing_of(trainer)->owner;
    sgm_recording recording = sgm__learner_of(trainer)->recording;
    sgm__learner_of(owner)->recording = recording;
    for (int32_t i = 0; i < sgm__sharing_of(owner)->parallel->count; i++)
        sgm__learner_of(sgm__sharing_of(owner)->parallel->workers[i].replica)->recording = recording;
}

/* --- sums --- */

/* Finds the steps of the program behind which a sum over all workers is made (all_reduce), and ends a piece
 * of the program behind each. Done again when the worker has another program, as for a minibatch of another
 * size. Buckets of ranks add pieces of their own afterwards (cut in collective/ranks_merge.c), so the cut is
 * forgotten, too. */
sgm_status sgm__worker_find_reductions(sgm__worker *worker, const sgm_program *program)
{
    if (worker->reduces == program)
        return SGM_OK;
    worker->reduces = NULL;
    worker->cut = NULL;
    SGM_TRY(sgm__program_sums(program, &worker->reductions, &worker->reduction_count,
                              &worker->reduction_capacity));
    size_t count = worker->reduction_count, maximum = 0;
    SGM_TRY(sgm__reserve(&worker->ends, &worker->end_capacity, count, sizeof *worker->ends));
    for (size_t i = 0; i < count; i++) {
        worker->ends[i] = worker->reductions[i].end;
        maximum = worker->reductions[i].elements > maximum ? worker->reductions[i].elements : maximum;
    }
    worker->end_count = count;
    SGM_TRY(sgm__reserve(&worker->reduced, &worker->reduced_capacity, maximum, sizeof *worker->reduced));
    worker->reduces = program;
    return SGM_OK;
}

/* --- with the operator's lock --- */

/* Sums parallel->sum over all ranks, in place. The worker that calls this holds the operator's lock and is
 * the only thread of this rank that communicates: all other workers wait for the sum. */
static sgm_status sum_with_ranks(sgm_operator *parallel, size_t elements)
{
    const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_SUM,
                                        .type = SGM_COMMUNICATOR_FLOAT64,
                                        .data = parallel->sum,
                                        .count = elements};
    return parallel->ranks != NULL && parallel->ranks->count > 1
               ? sgm__ranks_do(parallel->ranks, &work, "what layers sum over the minibatch")
               : SGM_OK;
}

static sgm_status clear_sum(sgm_operator *parallel, size_t elements)
{
    SGM_TRY(sgm__reserve(&parallel->sum, &parallel->sum_capacity, elements, sizeof *parallel->sum));
    for (size_t i = 0; i < elements; i++)
        parallel->sum[i] = 0;
    return SGM_OK;
}

/* The error for a worker whose program has other sums than that of another worker. */
static sgm_status fail_differing(const sgm__worker *worker)
{
    return sgm_fail(
        SGM_ERROR_STATE,
        "its layers sum over the minibatch, but not as those of another worker do: all workers must "
        "record the network alike (worker %d)",
        worker->number);
}

/* The last worker to come adds up what all have, in their order, and sums that with the other ranks.
 * Workers whose sums differ in number or length have recorded different networks. */
static sgm_status add_up(const sgm__worker *last, size_t index)
{
    sgm_operator *parallel = last->parallel;
    size_t elements = last->reductions[index].elements;
    SGM_TRY(clear_sum(parallel, elements));
    for (int32_t k = 0; k < parallel->count; k++) {
        const sgm__worker *worker = &parallel->workers[k];
        if (worker->examples == 0)
            continue;
        if (worker->reduction_count != last->reduction_count ||
            worker->reductions[index].elements != elements)
            return fail_differing(last);
        for (size_t i = 0; i < elements; i++)
            parallel->sum[i] += worker->reduced[i];
    }
    return sum_with_ranks(parallel, elements);
}

/* Workers without examples run no program and take part in no sum. */
static int32_t count_taking_part(const sgm_operator *parallel)
{
    int32_t count = 0;
    for (int32_t i = 0; i < parallel->count; i++)
        count += parallel->workers[i].examples > 0;
    return count;
}

/* Waits until the last worker has added up. It ends, too, when a worker fails, or has ended its program
 * without this sum. */
static sgm_status wait_for_sum(const sgm__worker *worker)
{
    sgm_operator *parallel = worker->parallel;
    uint64_t newest = parallel->sums_made;
    while (parallel->sums_made == newest && !parallel->gave_up && !parallel->ended)
        pthread_cond_wait(&parallel->summed, &parallel->lock);
    if (parallel->sums_made != newest)
        return SGM_OK;
    return parallel->gave_up ? sgm_fail(SGM_ERROR_STATE, "another worker has failed")
                             : fail_differing(worker);
}

/* A worker has come to a sum: waits, or, as the last worker that takes part, adds up and wakes the others.
 * Called with the operator's lock, which is held while the ranks sum: the other workers only wait meanwhile.
 */
static sgm_status meet(const sgm__worker *worker, size_t index)
{
    sgm_operator *parallel = worker->parallel;
    if (++parallel->waiting < count_taking_part(parallel))
        return wait_for_sum(worker);
    SGM_TRY(add_up(worker, index));
    parallel->waiting = 0;
    parallel->sums_made++;
    pthread_cond_broadcast(&parallel->summed);
    return SGM_OK;
}

sgm_status sgm__worker_reduce(sgm__worker *worker, size_t index)
{
    sgm_operator *parallel = worker->parallel;
    const sgm__program_sum *sum = &worker->reductions[index];
    const sgm_session *session = sgm__learner_of(worker->replica)->session;
    SGM_TRY(sgm__session_read_sum(session, worker->program, sum, worker->reduced));
    pthread_mutex_lock(&parallel->lock);
    sgm_status status = meet(worker, index);
    pthread_mutex_unlock(&parallel->lock);
    SGM_TRY(status);
    return sgm__session_write_sum(session, worker->program, sum, parallel->sum);
}

/* A rank without examples takes part in the sums of all ranks with zeros. */
sgm_status sgm__operator_reduce_nothing(sgm_operator *parallel)
{
    const sgm__worker *first = &parallel->workers[0];
    for (size_t i = 0; i < first->reduction_count; i++) {
        SGM_TRY(clear_sum(parallel, first->reductions[i].elements));
        SGM_TRY(sum_with_ranks(parallel, first->reductions[i].elements));
    }
    return SGM_OK;
}
