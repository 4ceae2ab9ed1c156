/* Optimiser states where they are sharded, so that each rank has only those of its own parameters: all of
 * them come to rank 0 for a checkpoint or for a reader, and from there to their owners.
 *
 * `others` is a bundle of the other ranks' states at rank 0. Rank 0 has it from the ranks
 * (sgm__ranks_collect) or from a checkpoint (sgm__ranks_loaded), until the next update, after which only the
 * owners know their states: then `others` is NULL. Which rank owns a state is said by ranks_shard.c. In a
 * run, states travel only in a meeting (ranks_agree.c) or where all ranks come by themselves (a checkpoint at
 * the end of an epoch). */
#include "graph/graph_internal.h"
#include "parallel/collective/ranks.h"
#include "runs/parts/parts.h"
#include <sigma/graph.h>

/* Rank 0, in a meeting: asks the others for one state, or for all of theirs (NULL). Afterwards all ranks,
 * rank 0 included, call sgm__ranks_bring_slot or sgm__ranks_collect. */
static sgm_status ask(sgm__ranks *ranks, const char *state)
{
    size_t length = state != NULL ? strlen(state) : 0;
    sgm__rank_message message = {
        .bytes = length, .asks = 1, .owner = state != NULL ? sgm__ranks_slot_owner(ranks, state) : 0};
    char *name = sgm__strdup(state != NULL ? state : "");
    if (name == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__ranks_send(ranks, &message, sizeof message, "a meeting");
    if (status == SGM_OK && length > 0)
        status = sgm__ranks_send(ranks, name, length, "a meeting");
    sgm__free(name);
    return status;
}

/* --- from the owners to rank 0 --- */

/* What precedes a state in a message. */
typedef struct slot_header {
    uint64_t name; /* bytes, which follow, and then the values; 0: there are no more */
    sgm_dtype dtype;
    sgm_shape shape;
} slot_header;

static const char what[] = "the optimiser state";

/* Broadcasts a state of this rank: header, name, values. All ranks receive it, as there is only a broadcast;
 * the others drop it. */
static sgm_status give_slot(sgm__ranks *ranks, const char *name)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(ranks->trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    slot_header header = {strlen(name), sgm_tensor_dtype(value), *sgm_tensor_shape(value)};
    size_t size = (size_t)sgm_shape_elements(&header.shape) * sgm_dtype_size(header.dtype);
    char *copy = sgm__strdup(name);
    sgm_status status = copy != NULL ? sgm__ranks_send_from(ranks, ranks->rank, &header, sizeof header, what)
                                     : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__ranks_send_from(ranks, ranks->rank, copy, header.name, what);
    if (status == SGM_OK)
        status = sgm__ranks_send_from(ranks, ranks->rank, sgm_tensor_data(value), size, what);
    sgm__free(copy);
    sgm_tensor_free(value);
    return status;
}

/* Broadcasts all states of this rank, and an empty header behind the last one. */
static sgm_status give_slots(sgm__ranks *ranks)
{
    const char *name;
    slot_header end = {0};
    for (size_t i = 0; (name = sgm_session_state_at(sgm__learner_of(ranks->trainer)->session, i)) != NULL;
         i++)
        if (sgm__ranks_slot_owner(ranks, name) == ranks->rank)
            SGM_TRY(give_slot(ranks, name));
    return sgm__ranks_send_from(ranks, ranks->rank, &end, sizeof end, what);
}

/* Receives one state of `owner`. *name and *value are the caller's, also after a failure; both are NULL
 * behind the last state. */
static sgm_status take_slot(sgm__ranks *ranks, int32_t owner, char **name, sgm_tensor **value)
{
    slot_header header = {0};
    *name = NULL;
    *value = NULL;
    SGM_TRY(sgm__ranks_send_from(ranks, owner, &header, sizeof header, what));
    if (header.name == 0)
        return SGM_OK;
    size_t size = (size_t)sgm_shape_elements(&header.shape) * sgm_dtype_size(header.dtype);
    *name = sgm__calloc(header.name + 1, 1);
    *value = sgm_tensor_create(header.dtype, &header.shape);
    sgm_status status = *name != NULL && *value != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__ranks_send_from(ranks, owner, *name, header.name, what);
    if (status == SGM_OK)
        status = sgm__ranks_send_from(ranks, owner, sgm_tensor_data(*value), size, what);
    return status;
}

/* Receives all states of `owner`; only rank 0 keeps them. */
static sgm_status take_slots(sgm__ranks *ranks, int32_t owner)
{
    sgm_status status = SGM_OK;
    for (bool more = true; more && status == SGM_OK;) {
        char *name;
        sgm_tensor *value;
        status = take_slot(ranks, owner, &name, &value);
        more = name != NULL;
        if (status == SGM_OK && more && ranks->rank == 0)
            status = sgm_bundle_add(ranks->others, name, value);
        sgm_tensor_free(value);
        sgm__free(name);
    }
    return status;
}

/* Each rank in turn broadcasts its states. Rank 0 has its own in its session. */
sgm_status sgm__ranks_collect(sgm__ranks *ranks)
{
    SGM_TRY(sgm__ranks_know_others(ranks, ranks->rank == 0));
    for (int32_t owner = 1; owner < ranks->count; owner++)
        SGM_TRY(owner == ranks->rank ? give_slots(ranks) : take_slots(ranks, owner));
    return SGM_OK;
}

/* Rank 0 alone knows whether it has them already, so it tells all ranks whether to collect. */
sgm_status sgm__ranks_complete(const sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (!sgm__ranks_sharded(ranks))
        return SGM_OK;
    uint8_t knows = ranks->others != NULL;
    SGM_TRY(sgm__ranks_send(ranks, &knows, sizeof knows, what));
    return knows ? SGM_OK : sgm__ranks_collect(ranks);
}

/* The owner answers with an empty header if no update has made the state yet. */
sgm_status sgm__ranks_bring_slot(sgm__ranks *ranks, int32_t owner, const char *state, sgm_tensor **value)
{
    slot_header none = {0};
    char *name = NULL;
    *value = NULL;
    if (owner != ranks->rank) {
        sgm_status status = take_slot(ranks, owner, &name, value);
        sgm__free(name);
        return status;
    }
    return sgm_session_has(sgm__learner_of(ranks->trainer)->session, state)
               ? give_slot(ranks, state)
               : sgm__ranks_send_from(ranks, owner, &none, sizeof none, what);
}

/* --- what rank 0 knows --- */

sgm_status sgm__ranks_know_others(sgm__ranks *ranks, bool knows)
{
    sgm_bundle_free(ranks->others);
    ranks->others = knows ? sgm_bundle_create() : NULL;
    return ranks->others != NULL || !knows ? SGM_OK : SGM_ERROR_MEMORY;
}

/* At rank 0: the others' states are known to be empty, and `anew` has them sent at the beginning of the next
 * run. */
sgm_status sgm__ranks_begin_anew(const sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (!sgm__ranks_sharded(ranks) || ranks->rank > 0)
        return SGM_OK;
    ranks->anew = true;
    return sgm__ranks_know_others(ranks, true);
}

/* The other ranks load nothing themselves: rank 0 sends them the states at the beginning of the next run or
 * in the meeting behind a restore. */
sgm_status sgm__ranks_loaded(const sgm_trainer *trainer, const sgm_bundle *bundle, const bool *taken)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (!sgm__ranks_sharded(ranks) || ranks->rank > 0)
        return SGM_OK;
    SGM_TRY(sgm__ranks_begin_anew(trainer));
    for (size_t i = 0; i < sgm_bundle_count(bundle); i++) {
        const char *name = sgm_bundle_name_at(bundle, i);
        if (taken[i] && sgm__ranks_slot_owner(ranks, name) > 0)
            SGM_TRY(sgm_bundle_add(ranks->others, name, sgm_bundle_get(bundle, name)));
    }
    return SGM_OK;
}

bool sgm__ranks_have(const sgm_trainer *trainer, const char *state)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    int32_t owner = sgm__ranks_slot_owner(ranks, state);
    return owner < 0 || owner == ranks->rank;
}

/* Rank 0, in a meeting: collects the states of all ranks. */
static sgm_status ask_all(sgm__ranks *ranks)
{
    SGM_TRY(ask(ranks, NULL));
    return sgm__ranks_collect(ranks);
}

/* Whether rank 0 has, or can get, the states of all ranks. Outside a meeting the other ranks do not listen.
 */
static sgm_status check_complete(sgm__ranks *ranks)
{
    if (ranks->rank > 0)
        return sgm_fail(SGM_ERROR_STATE,
                        "rank %d has the optimiser state of its own parameters only (operator.sharded): "
                        "rank 0 saves all of it; others save without SGM_PART_OPTIMISER",
                        ranks->rank);
    if (ranks->others != NULL)
        return SGM_OK;
    return ranks->meeting
               ? ask_all(ranks)
               : sgm_fail(SGM_ERROR_STATE,
                          "the optimiser state is divided among the ranks (operator.sharded), which give "
                          "it for the run's checkpoints, to hooks and to commands, and at the end of the "
                          "run: save then, or without SGM_PART_OPTIMISER");
}

sgm_status sgm__ranks_add_slots(const sgm_trainer *trainer, const sgm__parts *wanted, sgm_bundle *bundle)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (!sgm__ranks_sharded(ranks) || (wanted->parts & SGM_PART_OPTIMISER) == 0)
        return SGM_OK;
    SGM_TRY(check_complete(ranks));
    for (size_t i = 0; i < sgm_bundle_count(ranks->others); i++) {
        const char *name = sgm_bundle_name_at(ranks->others, i);
        if (sgm__parts_have(wanted, name))
            SGM_TRY(sgm_bundle_add(bundle, name, sgm_bundle_get(ranks->others, name)));
    }
    return SGM_OK;
}

/* --- from rank 0 to the owners --- */

/* Sets a state to zero. */
static sgm_status clear_state(sgm_session *session, const char *name)
{
    sgm_type type;
    SGM_TRY(sgm_session_state_type(session, name, &type));
    sgm_tensor *zeros = sgm_tensor_create(type.dtype, &type.shape);
    sgm_status status = zeros != NULL ? sgm_session_set(session, name, zeros) : SGM_ERROR_MEMORY;
    sgm_tensor_free(zeros);
    return status;
}

sgm_status sgm__ranks_clear_slots(const sgm_trainer *trainer)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++)
        if (sgm__ranks_slot_owner(ranks, name) >= 0)
            SGM_TRY(clear_state(learner->session, name));
    return SGM_OK;
}

sgm_status sgm__ranks_check_set(const sgm_trainer *trainer, const char *state)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    int32_t owner = sgm__ranks_slot_owner(ranks, state);
    return owner < 0 ? SGM_OK
                     : sgm_fail(SGM_ERROR_UNSUPPORTED,
                                "'%s' is in rank %d's part of the optimiser state (operator.sharded), which "
                                "cannot be set; a checkpoint can be restored",
                                state, owner);
}

/* --- optimiser states of other ranks, as the registry shows them ---
 *
 * A rank never records the updates of other ranks' parameters, so it does not know which states they have.
 * They are recorded once, into a graph that is thrown away, only to read the names and types of its states.
 */

/* Records the updates that other ranks make, with zeros for gradients. */
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

/* Adds the states of other ranks in a graph to ranks->slots. */
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

/* A state of another rank, of which rank 0 has all: from `others`, or zeros for one that is not in there
 * because no update has made it yet. The caller frees it. */
static sgm_tensor *known_slot(const sgm_trainer *trainer, const char *state)
{
    const sgm_bundle *others = sgm__trainer_ranks(trainer)->others;
    sgm_type type;
    if (sgm_bundle_has(others, state))
        return sgm_tensor_retain(sgm_bundle_get(others, state));
    return sgm__ranks_slot_type(trainer, state, &type) ? sgm_tensor_create(type.dtype, &type.shape) : NULL;
}

/* In a meeting rank 0 asks the owner; the caller must not hold ranks->lock. */
sgm_tensor *sgm__ranks_get_slot(const sgm_trainer *trainer, const char *state)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm_tensor *value = NULL;
    if (ranks->rank == 0 && ranks->others != NULL)
        return known_slot(trainer, state);
    int32_t owner = sgm__ranks_slot_owner(ranks, state);
    if (ranks->rank > 0 || !ranks->meeting)
        fail_far(ranks, state);
    else if (ask(ranks, state) != SGM_OK)
        return NULL;
    else if (sgm__ranks_bring_slot(ranks, owner, state, &value) != SGM_OK) {
        sgm_tensor_free(value); /* which may be filled in part */
        value = NULL;
    } else if (value == NULL)
        sgm_fail(SGM_ERROR_STATE, "'%s' will be with rank %d, which has not updated it yet", state, owner);
    return value;
}
