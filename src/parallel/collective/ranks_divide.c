/* Updates divided among ranks of one node: each parameter has an owner, which alone updates it; from its
 * memory the others take the new values. So that they can, what is trained lies in a block that all see.
 *
 * That is for optimisers that remember nothing of a parameter: else their memory would have to follow, which
 * costs more than the update; or that stays apart, which operator.sharded wants (ranks_shard.c). */
#include "graph/graph_internal.h"
#include "handlers/session.h"
#include "ops/ops.h"
#include "parallel/collective/ranks.h"

/* --- whether --- */

static bool remembers(const sgm_graph *graph)
{
    static const char *const prefixes[] = {SGM__SLOT_PREFIX, SGM__AVERAGE_PREFIX};
    for (size_t i = 0; i < graph->count; i++) {
        const char *name = sgm__graph_string(graph, graph->instructions[i].name);
        for (int k = 0; k < 2 && graph->instructions[i].op == &sgm__op_state; k++)
            if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0)
                return true;
    }
    return false;
}

/* Each parameter by itself, and nothing else that its owner would have to tell. */
static bool is_divisible(const sgm_trainer *trainer)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_optimiser *optimiser = learner->optimiser;
    return optimiser->type->prepare == NULL && optimiser->options.clip_norm == 0 &&
           !sgm_network_is_dynamic(learner->network) && !remembers(learner->graph);
}

bool sgm__ranks_divide(sgm_trainer *trainer)
{
    sgm__trainer_kept *kept = sgm__kept_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks == NULL)
        return false;
    bool sharded = sgm__ranks_sharded(ranks); /* then it was recorded so already */
    bool looked_at = kept->gradients_until > 0 || kept->updates_until > 0; /* those of all, here */
    ranks->divides = ranks->node != NULL && ranks->count > 1 && (sharded || is_divisible(trainer));
    return ranks->divides && !sharded && !looked_at;
}

sgm_status sgm__ranks_mark_placed(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    SGM_TRY(sgm__ranks_find_places(ranks));
    for (size_t i = 0; i < learner->trained_count; i++)
        learner->trained[i].elsewhere = ranks->places[i].owner != ranks->rank;
    return SGM_OK;
}

/* --- where all see it --- */

/* Workers that read what the trainer has do so where it is now. */
static void follow(const sgm_trainer *trainer, const char *name, const void *before)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->operator;
    void *now = sgm__session_state_memory(sgm__learner_of(trainer)->session, name);
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm_session *session = sgm__learner_of(parallel->workers[i].replica)->session;
        if (sgm__session_state_memory(session, name) == before)
            sgm__session_place_state(session, name, now);
    }
}

static void move(const sgm_trainer *trainer, const sgm__rank_place *place, unsigned char *block)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const void *before = sgm__session_state_memory(learner->session, place->name);
    memcpy(block + place->first, before, place->bytes);
    sgm__session_place_state(learner->session, place->name, block + place->first);
    follow(trainer, place->name, before);
}

/* What is not trained any more, and is in the block that was used before. */
static sgm_status bring_home(const sgm_trainer *trainer, const unsigned char *block, size_t bytes)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++) {
        const unsigned char *memory = sgm__session_state_memory(learner->session, name);
        if (block == NULL || memory < block || memory >= block + bytes)
            continue;
        SGM_TRY(sgm__session_bring_home(learner->session, name));
        follow(trainer, name, memory);
    }
    return SGM_OK;
}

/* Two blocks take turns, as the values come from the one before. */
sgm_status sgm__ranks_place_values(sgm__ranks *ranks)
{
    unsigned char *before = ranks->value_memory;
    size_t bytes_before = ranks->value_bytes;
    if (ranks->placed)
        return SGM_OK;
    SGM_TRY(sgm__ranks_find_places(ranks));
    ranks->value_block = ranks->value_block == SGM__VALUE_BLOCK ? SGM__VALUE_BLOCK + 1 : SGM__VALUE_BLOCK;
    ranks->value_memory = sgm__intra_node_block(ranks->node, ranks->value_block, ranks->place_bytes);
    if (ranks->value_memory == NULL)
        return sgm__last_failure();
    for (size_t i = 0; i < ranks->place_count; i++)
        move(ranks->trainer, &ranks->places[i], ranks->value_memory);
    ranks->placed = true;
    ranks->value_bytes = ranks->place_bytes;
    return bring_home(ranks->trainer, before, bytes_before);
}

static void take_values(const sgm__ranks *ranks, int32_t owner, const unsigned char *values)
{
    for (size_t i = 0; i < ranks->place_count; i++) {
        const sgm__rank_place *place = &ranks->places[i];
        if (place->owner == owner)
            memcpy(ranks->value_memory + place->first, values + place->first, place->bytes);
    }
}

sgm_status sgm__ranks_exchange_values(sgm__ranks *ranks)
{
    SGM_TRY(sgm__intra_node_meet(ranks->node, "the new values"));
    for (int32_t i = 1; i < ranks->count; i++) {
        int32_t owner = (ranks->rank + i) % ranks->count;
        const unsigned char *values;
        SGM_TRY(sgm__ranks_look_at_values(ranks, owner, &values));
        take_values(ranks, owner, values);
    }
    return SGM_OK;
}
