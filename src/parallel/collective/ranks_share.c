/* What ranks share: the examples of a minibatch among them, and what all learn of an iteration. */
#include "parallel/collective/ranks.h"

#include "data/dataset.h"
#include "handlers/session.h"

#include <math.h>

/* --- examples --- */

void sgm__ranks_take_part(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL && sgm__sharing_of(trainer)->operator->merges_gradients)
        sgm__iterator_set_part(sgm__data_of(trainer)->training, ranks->rank, ranks->count);
}

/* This rank's examples of the minibatch: whole * rank / count up to whole * (rank + 1) / count, within the
 * part that its iterator has copied. */
void sgm__ranks_part(const sgm_trainer *trainer, const sgm_block *block, int64_t *first, int64_t *count,
                     int64_t *whole)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__given_part given;
    sgm__iterator_given(sgm__data_of(trainer)->training, block, &given);
    int64_t begin = given.whole * ranks->rank / ranks->count;
    int64_t end = given.whole * (ranks->rank + 1) / ranks->count;
    *whole = given.whole;
    *first = begin - given.first;
    *count = end - begin;
}

/* --- what all learn --- */

/* What all ranks learn of an iteration, as sums; costs and states that the network changes follow. */
enum { LOSS, CORRECT, EXAMPLES, HAS_ACCURACY, MEETS, STOPS, UPDATES, ACCUMULATED, SIGNS, SHARED = SIGNS + 2 };

/* States that the network itself changes: the average over the examples. */
typedef sgm_status (*each_state)(sgm__ranks *ranks, const char *name, size_t *at, double share);

/* Multiplied by this rank's share of the examples, so that the sum over ranks is the mean over examples. */
static sgm_status put_state(sgm__ranks *ranks, const char *name, size_t *at, double share)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
    sgm_status status =
        sgm__reserve(&ranks->shared, &ranks->shared_capacity, *at + count, sizeof *ranks->shared);
    if (status == SGM_OK)
        status = sgm_tensor_read(value, ranks->shared + *at, count);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        ranks->shared[*at + i] *= share;
    *at += count;
    sgm_tensor_free(value);
    return status;
}

/* Integers are rounded: the weighted sum may miss them by a rounding error. */
static sgm_status get_state(sgm__ranks *ranks, const char *name, size_t *at, double share)
{
    (void)share;
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(value));
    sgm_dtype dtype = sgm_tensor_dtype(value);
    bool rounds = dtype != SGM_FLOAT32 && dtype != SGM_FLOAT64 && dtype != SGM_BFLOAT16;
    for (size_t i = 0; i < count && rounds; i++)
        ranks->shared[*at + i] = rint(ranks->shared[*at + i]);
    sgm_status status = sgm_tensor_write(value, ranks->shared + *at, count);
    if (status == SGM_OK)
        status = sgm_session_set(sgm__learner_of(ranks->trainer)->session, name, value);
    *at += count;
    sgm_tensor_free(value);
    return status;
}

static sgm_status for_others(sgm__ranks *ranks, each_state function, size_t *at, double share)
{
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(sgm__learner_of(ranks->trainer)->session, i)) != NULL;
         i++)
        if (sgm__trainer_is_layer_state(ranks->trainer, name))
            SGM_TRY(function(ranks, name, at, share));
    return SGM_OK;
}

sgm_status sgm__ranks_put_states(sgm__ranks *ranks, double share)
{
    return for_others(ranks, put_state, &ranks->shared_count, share);
}

sgm_status sgm__ranks_get_states(sgm__ranks *ranks)
{
    size_t at = SHARED + sgm__learner_of(ranks->trainer)->cost_count;
    return for_others(ranks, get_state, &at, 0);
}

/* Everything that all ranks learn of an iteration goes as one list of doubles, in one sum: losses, counts,
 * whether someone wants to meet or to stop, a signature of what hooks requested. */
sgm_status sgm__ranks_put_shared(sgm__ranks *ranks, const sgm__metric_sums *own)
{
    const sgm_trainer *trainer = ranks->trainer;
    const sgm__training_position *first =
        sgm__position_of(sgm__sharing_of(trainer)->operator->workers[0].replica);
    size_t count = SHARED + sgm__learner_of(trainer)->cost_count;
    SGM_TRY(sgm__reserve(&ranks->shared, &ranks->shared_capacity, count, sizeof *ranks->shared));
    ranks->shared[LOSS] = own->loss;
    ranks->shared[CORRECT] = own->correct;
    ranks->shared[EXAMPLES] = (double)own->examples;
    ranks->shared[HAS_ACCURACY] = own->has_accuracy;
    ranks->shared[MEETS] = sgm__ranks_wants_meeting(ranks);
    ranks->shared[STOPS] = ranks->wants_stop;
    ranks->shared[UPDATES] = ranks->rank == 0 ? (double)first->updates : 0;
    ranks->shared[ACCUMULATED] = ranks->rank == 0 ? (double)first->accumulated : 0;
    sgm__ranks_put_sign(ranks, &ranks->shared[SIGNS]);
    for (size_t i = 0; i < sgm__learner_of(trainer)->cost_count; i++)
        ranks->shared[SHARED + i] =
            own->examples > 0 ? sgm__learner_of(trainer)->costs[i]->newest * (double)own->examples : 0;
    ranks->shared_count = count;
    return SGM_OK;
}

sgm_status sgm__ranks_get_shared(sgm__ranks *ranks, sgm__metric_sums *sums)
{
    const sgm_trainer *trainer = ranks->trainer;
    const double *shared = ranks->shared;
    *sums = (sgm__metric_sums){.loss = shared[LOSS],
                               .correct = shared[CORRECT],
                               .examples = (int64_t)shared[EXAMPLES],
                               .has_accuracy = shared[HAS_ACCURACY] > 0};
    ranks->someone_stops = shared[STOPS] > 0;
    ranks->meets = shared[MEETS] > 0 || shared[STOPS] > 0;
    for (size_t i = 0; i < sgm__learner_of(trainer)->cost_count; i++)
        sgm__learner_of(trainer)->costs[i]->newest = shared[SHARED + i] / shared[EXAMPLES];
    return sgm__ranks_check_signs(ranks, &shared[SIGNS]);
}

sgm_status sgm__ranks_sum_shared(sgm__ranks *ranks, int32_t *ticket)
{
    const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_SUM,
                                        .type = SGM_COMMUNICATOR_FLOAT64,
                                        .data = ranks->shared,
                                        .count = ranks->shared_count};
    return sgm__ranks_start(ranks, &work, ticket);
}

sgm_status sgm__ranks_share(sgm_trainer *trainer, sgm__metric_sums *sums, int64_t *updates,
                            int64_t *accumulated)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    int32_t ticket;
    SGM_TRY(sgm__ranks_put_shared(ranks, sums));
    SGM_TRY(sgm__ranks_sum_shared(ranks, &ticket));
    SGM_TRY(sgm__ranks_wait(ranks, ticket, "the costs"));
    SGM_TRY(sgm__ranks_get_shared(ranks, sums));
    *updates = (int64_t)ranks->shared[UPDATES];
    *accumulated = (int64_t)ranks->shared[ACCUMULATED];
    return SGM_OK;
}
