/* What is known of an operator without asking anybody: its numbers, and which states are of which kind. */
#include "network/rerecord.h"
#include "training/ranks.h"

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
    sgm_trainer *owner = trainer->owner;
    sgm_recording recording = trainer->recording;
    owner->recording = recording;
    for (int32_t i = 0; i < owner->parallel->count; i++)
        owner->parallel->workers[i].replica->recording = recording;
}

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool sgm__operator_trains(const sgm_trainer *trainer, const char *name)
{
    const sgm_parameter *parameter = sgm__network_parameter(trainer->network, name);
    return parameter != NULL && parameter->trainable;
}

bool sgm__operator_is_other(const sgm_trainer *trainer, const char *state)
{
    bool ours = begins(state, "random.") || begins(state, SGM__SLOT_PREFIX) ||
                begins(state, SGM__AVERAGE_PREFIX) || begins(state, SGM__KEPT_PREFIX);
    return !ours && !sgm__operator_trains(trainer, state);
}
