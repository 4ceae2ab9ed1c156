/* A look at the optimiser state that another rank has (operator.sharded): which there is, and what it is
 * now. */
#include "parallel/collective/ranks.h"

#include "graph/graph_internal.h"
#include <sigma/operations.h>

/* The updates that others make, to see what they remember. */
static sgm_status record_elsewhere(const sgm_trainer *trainer, sgm_graph *graph,
                                   sgm__trained_parameter *parameters, sgm_value *gradients)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    size_t count = 0;
    for (size_t i = 0; i < learner->trained_count; i++) {
        const sgm__trained_parameter *trained = &learner->trained[i];
        sgm_type type = sgm_value_type(learner->graph, trained->value);
        if (!trained->elsewhere)
            continue;
        sgm_value value = sgm_state(graph, trained->name, type.dtype, &type.shape);
        gradients[count] = sgm_filled_like(graph, value, 0);
        parameters[count++] =
            (sgm__trained_parameter){.name = trained->name, .value = value, .sparse = trained->sparse};
    }
    return sgm__optimiser_record(
        learner->optimiser, graph,
        &(sgm__update_request){
            .gradients = gradients, .parameters = parameters, .count = count, .update = true});
}

static const sgm__rank_slot *find_slot(const sgm__ranks *ranks, const char *state)
{
    for (size_t i = 0; i < ranks->slot_count; i++)
        if (strcmp(ranks->slots[i].state, state) == 0)
            return &ranks->slots[i];
    return NULL;
}

static sgm_status note_slots(sgm__ranks *ranks, const sgm_graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        const sgm__instruction *instruction = &graph->instructions[i];
        if (instruction->op != &sgm__op_state)
            continue;
        const char *state = sgm__graph_string(graph, instruction->name);
        if (sgm__ranks_slot_owner(ranks, state) < 0 || find_slot(ranks, state) != NULL)
            continue;
        SGM_TRY(
            sgm__reserve(&ranks->slots, &ranks->slot_capacity, ranks->slot_count + 1, sizeof *ranks->slots));
        char *copy = sgm__strdup(state);
        if (copy == NULL)
            return SGM_ERROR_MEMORY;
        ranks->slots[ranks->slot_count++] = (sgm__rank_slot){copy, instruction->type};
    }
    return SGM_OK;
}

sgm_status sgm__ranks_find_slots(const sgm_trainer *trainer)
{
    size_t count = sgm__learner_of(trainer)->trained_count;
    sgm_graph *graph = sgm_graph_create();
    sgm__trained_parameter *parameters = sgm__calloc(count, sizeof *parameters);
    sgm_value *gradients = sgm__calloc(count, sizeof *gradients);
    bool made = graph != NULL && parameters != NULL && gradients != NULL;
    sgm_status status = made ? record_elsewhere(trainer, graph, parameters, gradients) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = note_slots(sgm__trainer_ranks(trainer), graph);
    sgm__free(gradients);
    sgm__free(parameters);
    sgm_graph_free(graph);
    return status;
}

bool sgm__ranks_slot_type(const sgm_trainer *trainer, const char *state, sgm_type *type)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    const sgm__rank_slot *slot = ranks != NULL ? find_slot(ranks, state) : NULL;
    if (slot != NULL)
        *type = slot->type;
    return slot != NULL;
}

static sgm_status fail_far(const sgm__ranks *ranks, const char *state)
{
    return sgm_fail(SGM_ERROR_STATE,
                    "'%s' is in rank %d's part of the optimiser state (operator.sharded): rank 0 has it for "
                    "commands, in checkpoints, and at the end of the run",
                    state, sgm__ranks_slot_owner(ranks, state));
}

/* What rank 0 knows of all; those that it knows to begin anew are not in there. */
static sgm_tensor *known_slot(const sgm_trainer *trainer, const char *state)
{
    const sgm_bundle *others = sgm__trainer_ranks(trainer)->others;
    sgm_type type;
    if (sgm_bundle_has(others, state))
        return sgm_tensor_retain(sgm_bundle_get(others, state));
    return sgm__ranks_slot_type(trainer, state, &type) ? sgm_tensor_create(type.dtype, &type.shape) : NULL;
}

sgm_tensor *sgm__ranks_get_slot(const sgm_trainer *trainer, const char *state)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm_tensor *value = NULL;
    if (ranks->rank == 0 && ranks->others != NULL)
        return known_slot(trainer, state);
    int32_t owner = sgm__ranks_slot_owner(ranks, state);
    if (ranks->rank > 0 || !ranks->meeting)
        fail_far(ranks, state);
    else if (sgm__ranks_ask(ranks, state) == SGM_OK &&
             sgm__ranks_bring_slot(ranks, owner, state, &value) == SGM_OK && value == NULL)
        sgm_fail(SGM_ERROR_STATE, "'%s' will be with rank %d, which has not updated it yet", state, owner);
    return value;
}
