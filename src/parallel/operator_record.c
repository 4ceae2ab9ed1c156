/* What workers add to recordings: a training step in two halves. The first half ends in gradients, as
 * outputs or, with peers, as states; the second takes them as inputs and makes the update.
 *
 * Gradients of all workers have names that the operator keeps in the order of the trained parameters;
 * places of gradients in programs, buckets of ranks and addends of devices follow that order. */
#include "network/rerecord.h"
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "train/train.h"
#include <sigma/graph.h>

void sgm__operator_forget_names(sgm_operator *parallel)
{
    for (size_t i = 0; i < parallel->name_count; i++)
        sgm__free(parallel->names[i]);
    sgm__free(parallel->names);
    parallel->names = NULL;
    parallel->name_count = 0;
}

/* Copies the names of the trained parameters: those of the network are gone when it records again. If they
 * are others, everything that was found by the old ones is forgotten. */
static sgm_status keep_names(sgm_operator *parallel, const sgm__trained_parameter *trained, size_t count)
{
    bool same = parallel->name_count == count;
    for (size_t i = 0; i < count && same; i++)
        same = strcmp(parallel->names[i], trained[i].name) == 0;
    if (same)
        return SGM_OK;
    sgm__operator_forget_names(parallel);
    sgm__ranks_forget(parallel->ranks);
    parallel->names = sgm__calloc(count, sizeof(char *));
    if (parallel->names == NULL)
        return SGM_ERROR_MEMORY;
    for (; parallel->name_count < count; parallel->name_count++) {
        parallel->names[parallel->name_count] = sgm__strdup(trained[parallel->name_count].name);
        if (parallel->names[parallel->name_count] == NULL)
            return SGM_ERROR_MEMORY;
    }
    for (int32_t i = 0; i < parallel->count; i++) { /* places of gradients are in the order of the names */
        parallel->workers[i].from = NULL;
        parallel->workers[i].addend_count = 0;
    }
    sgm__forget_update_parts(parallel);
    return SGM_OK;
}

/* Makes a gradient an output of the replica's program, "trainer.part.PARAMETER". */
static sgm_status record_output(const sgm_trainer *replica, size_t index, sgm_value gradient)
{
    const sgm__learner *learner = sgm__learner_of(replica);
    char *name = sgm__format(SGM__PART_PREFIX "%s", learner->trained[index].name);
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_graph_add_output(learner->graph, name, gradient);
    sgm__free(name);
    return SGM_OK;
}

/* Gradients of what this worker's examples add to the cost of the whole minibatch (recording.part), which
 * sum up to the whole's. */
static sgm_status record_gradients(sgm_trainer *replica)
{
    sgm__learner *learner = sgm__learner_of(replica);
    sgm_operator *parallel = sgm__sharing_of(sgm__sharing_of(replica)->owner)->parallel;
    size_t count = learner->trained_count;
    SGM_TRY(keep_names(parallel, learner->trained, count));
    parallel->random = learner->recording.random;
    sgm_value *values = sgm__calloc(count, 2 * sizeof(sgm_value));
    if (values == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        values[i] = learner->trained[i].value;
    sgm_status status =
        sgm_gradients(learner->graph, learner->recording.part, values, (int32_t)count, values + count);
    for (size_t i = 0; i < count && status == SGM_OK; i++)
        if (parallel->together)
            sgm__peers_record_part(replica, i, values[count + i]);
        else
            status = record_output(replica, i, values[count + i]);
    sgm__free(values);
    return status;
}

/* Fills in learner->trained from the operator's names, for a program that records no network: parameters are
 * states of the graph. */
static sgm_status find_trained(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_operator *parallel = sgm__sharing_of(sgm__sharing_of(trainer)->owner)->parallel;
    SGM_TRY(sgm__reserve(&learner->trained, &learner->trained_capacity, parallel->name_count,
                         sizeof(sgm__trained_parameter)));
    learner->trained_count = parallel->name_count;
    for (size_t i = 0; i < parallel->name_count; i++) {
        sgm_type type;
        const sgm_parameter *recorded = sgm__network_parameter(learner->network, parallel->names[i]);
        SGM_TRY(sgm_session_state_type(learner->session, parallel->names[i], &type));
        learner->trained[i] = (sgm__trained_parameter){
            parallel->names[i], sgm_state(learner->graph, parallel->names[i], type.dtype, &type.shape),
            recorded != NULL && recorded->sparse, false};
    }
    return SGM_OK;
}

/* The input of the update for the gradient that worker `worker` gives. */
static sgm_value part(sgm_trainer *trainer, const sgm__trained_parameter *parameter, int32_t worker)
{
    sgm_graph *graph = sgm__learner_of(trainer)->graph;
    sgm_type type = sgm_value_type(graph, parameter->value);
    char *name = sgm__format(SGM__PART_PREFIX "%d.%s", worker, parameter->name);
    if (name == NULL)
        return sgm_graph_fail(graph, SGM_ERROR_MEMORY, "no memory for the name of a gradient");
    sgm_value gradient = sgm_input_value(graph, name, type.dtype, &type.shape);
    sgm__free(name);
    return gradient;
}

/* Records the gradients of the update, one for each parameter: the sum over the workers' parts, which are
 * added in the order of the workers, so that each run gives the same bits. A replica whose device has summed
 * with others reads the sum from the state that its own gradient was in. The caller frees *gradients. */
static sgm_status record_sums(sgm_trainer *trainer, int32_t workers, sgm_value **gradients)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    SGM_TRY(find_trained(trainer));
    *gradients = sgm__calloc(learner->trained_count, sizeof(sgm_value));
    if (*gradients == NULL)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < learner->trained_count; i++) {
        if (sgm__trainer_is_replica(trainer)) {
            (*gradients)[i] = sgm__peers_record_sum(trainer, i);
            continue;
        }
        sgm_value sum = part(trainer, &learner->trained[i], 0);
        for (int32_t k = 1; k < workers; k++)
            sum = sgm_add(learner->graph, sum, part(trainer, &learner->trained[i], k));
        (*gradients)[i] = sum;
    }
    return SGM_OK;
}

/* Records an update from the gradients of `workers` parts. `own`: only for the parameters that this rank
 * updates, where ranks of one node divide the update. */
static sgm_status record_merged(sgm_trainer *trainer, bool update, int64_t workers, bool own)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_value *gradients = NULL;
    sgm_graph_clear(learner->graph);
    SGM_TRY(record_sums(trainer, (int32_t)workers, &gradients));
    sgm_status status = own ? sgm__ranks_mark_placed(trainer) : SGM_OK;
    if (status == SGM_OK)
        status = sgm__trainer_record_update(trainer, update, gradients,
                                            sgm__ranks_sharded(sgm__trainer_ranks(trainer)));
    sgm__free(gradients);
    SGM_TRY(status);
    if (sgm__sharing_of(sgm__sharing_of(trainer)->owner)->parallel->random)
        sgm__trainer_record_random_step(learner->graph);
    return sgm_graph_status(learner->graph);
}

/* The second half of a step, whose gradients come from so many parts; in a replica, from its own states.
 * Whether the update can be divided among ranks of one node shows only in its recording (whether the
 * optimiser remembers anything): so it may be recorded twice. */
static sgm_status record_apply(sgm_trainer *trainer, bool update, int64_t workers)
{
    SGM_TRY(record_merged(trainer, update, workers, false));
    if (update && sgm__ranks_divide(trainer))
        SGM_TRY(record_merged(trainer, update, workers, true));
    return SGM_OK;
}

/* Moving averages by themselves, for updates that leave them out (averages_apart). */
static sgm_status record_averages(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm_graph_clear(learner->graph);
    SGM_TRY(find_trained(trainer));
    return sgm__optimiser_record_averages(learner->optimiser, learner->graph, learner->trained,
                                          learner->trained_count);
}

sgm_status sgm__operator_record(sgm_trainer *trainer, int purpose, int64_t batch)
{
    if (purpose == SGM__AVERAGE)
        return record_averages(trainer);
    if (purpose == SGM__APPLY || purpose == SGM__APPLY_LATER)
        return record_apply(trainer, purpose == SGM__APPLY, batch);
    return record_gradients(trainer);
}
