/* What is known of an operator without asking anybody: its numbers. */
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

/* The arrays of a recording are the network's, and all replicas have the same network. */
void sgm__operator_recorded(sgm_trainer *trainer)
{
    sgm_trainer *owner = sgm__sharing_of(trainer)->owner;
    sgm_recording recording = sgm__learner_of(trainer)->recording;
    sgm__learner_of(owner)->recording = recording;
    for (int32_t i = 0; i < sgm__sharing_of(owner)->operator->count; i++)
        sgm__learner_of(sgm__sharing_of(owner)->operator->workers[i].replica)->recording = recording;
}
