/* Which rank updates a parameter, and where the parameter lies among all that are trained.
 *
 * With operator.sharded each parameter has an owner, which alone has its optimiser states, makes its update
 * and sends the new values to all (Rajbhandari et al., ZeRO, 2020). The table of places (sgm__rank_place)
 * also serves gradients that travel as messages (ranks_merge.c) and values that ranks of one node share
 * (ranks_shared_memory.c).
 *
 * Owners are found by the order and the sizes of the parameters alone, so all ranks find the same without a
 * message. */
#include "handlers/session.h"
#include "parallel/collective/ranks.h"
#include "train/train.h"

#define ALIGNED 64 /* bytes where a parameter begins */

void sgm__ranks_forget(sgm__ranks *ranks)
{
    if (ranks == NULL)
        return;
    ranks->place_count = ranks->bucket_count = 0;
    ranks->placed = false;
    sgm__free(ranks->lost);
    ranks->lost = NULL;
}

/* --- owners of parameters --- */

bool sgm__ranks_sharded(const sgm__ranks *ranks)
{
    return ranks != NULL && ranks->options.sharded && ranks->count > 1;
}

/* The rank that owns a parameter; -1: no update of the parameter was recorded yet. */
static int32_t find_owner(const sgm__ranks *ranks, const char *parameter)
{
    for (size_t i = 0; i < ranks->owner_count; i++)
        if (strcmp(ranks->owners[i].parameter, parameter) == 0)
            return ranks->owners[i].rank;
    return -1;
}

int32_t sgm__ranks_owner(const sgm__ranks *ranks, const char *parameter)
{
    int32_t owner = sgm__ranks_sharded(ranks) ? find_owner(ranks, parameter) : -1;
    return owner >= 0 ? owner : ranks->rank;
}

int32_t sgm__ranks_slot_owner(const sgm__ranks *ranks, const char *state)
{
    static const char summed[] =
        SGM__SLOT_PREFIX "accumulated."; /* sums of gradients over minibatches are on every rank */
    size_t length = strlen(SGM__SLOT_PREFIX);
    if (!sgm__ranks_sharded(ranks) || strncmp(state, SGM__SLOT_PREFIX, length) != 0 ||
        strncmp(state, summed, sizeof summed - 1) == 0)
        return -1;
    const char *dot = strchr(state + length, '.');
    return dot != NULL ? find_owner(ranks, dot + 1) : -1;
}

static sgm_status add_owner(sgm__ranks *ranks, const char *parameter, int32_t rank)
{
    SGM_TRY(
        sgm__reserve(&ranks->owners, &ranks->owner_capacity, ranks->owner_count + 1, sizeof *ranks->owners));
    char *copy = sgm__strdup(parameter);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    ranks->owners[ranks->owner_count++] = (sgm__rank_owner){copy, rank};
    return SGM_OK;
}

/* The part that holds the byte `middle` of `all`, if these are divided into as many equal parts as there are
 * ranks. Parameters without elements behind the last byte belong to the last part. */
static int32_t part_at(const sgm__ranks *ranks, double middle, double all)
{
    int32_t part = all > 0 ? (int32_t)(middle / all * ranks->count) : 0;
    return part < ranks->count ? part : ranks->count - 1;
}

/* Divides the parameters among the ranks, in their order: a parameter belongs to rank n if its middle byte
 * lies in the n-th equal part of all bytes. So neighbours stay together, no rank has more than its share and
 * one parameter, and all ranks find the same owners. With sharded states a parameter that has an owner keeps
 * it, so that a parameter which is frozen and trained again later finds its optimiser states; the other
 * parameters are divided among themselves. */
static sgm_status find_owners(sgm__ranks *ranks, sgm__rank_place *places, size_t count)
{
    double all = 0, before = 0; /* bytes */
    for (size_t i = 0; i < count; i++) {
        places[i].owner = find_owner(ranks, places[i].name);
        all += places[i].owner < 0 ? (double)places[i].bytes : 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (places[i].owner >= 0)
            continue;
        places[i].owner = part_at(ranks, before + (double)places[i].bytes / 2, all);
        before += (double)places[i].bytes;
        if (sgm__ranks_sharded(ranks))
            SGM_TRY(add_owner(ranks, places[i].name, places[i].owner));
    }
    return SGM_OK;
}

/* --- places of parameters in flat memory --- */

/* Puts all trained parameters one behind the other, each at a multiple of ALIGNED bytes, in the order of the
 * operator's names. */
static sgm_status lay_out(sgm__ranks *ranks, const sgm_operator *parallel)
{
    size_t next = 0;
    SGM_TRY(
        sgm__reserve(&ranks->places, &ranks->place_capacity, parallel->name_count, sizeof *ranks->places));
    for (size_t i = 0; i < parallel->name_count; i++) {
        sgm_type type;
        SGM_TRY(sgm_session_state_type(sgm__learner_of(ranks->trainer)->session, parallel->names[i], &type));
        size_t bytes = (size_t)sgm_shape_elements(&type.shape) * sgm_dtype_size(type.dtype);
        ranks->places[i] = (sgm__rank_place){parallel->names[i], type.dtype, next, bytes, 0};
        next += (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
    }
    ranks->place_bytes = next;
    return SGM_OK;
}

sgm_status sgm__ranks_find_places(sgm__ranks *ranks)
{
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->parallel;
    if (ranks->place_count == parallel->name_count)
        return SGM_OK;
    SGM_TRY(lay_out(ranks, parallel));
    SGM_TRY(find_owners(ranks, ranks->places, parallel->name_count));
    ranks->place_count = parallel->name_count;
    return SGM_OK;
}

/* --- sharded updates: this rank's part --- */

#define MAXIMUM_MESSAGES 64 /* under way at once */

/* L-BFGS looks at all parameters together, and a dynamic network may get other parameters: neither can be
 * divided. */
static sgm_status check_divisible(const sgm_trainer *trainer)
{
    const sgm__learner *learner = sgm__learner_of(trainer);
    const sgm_optimiser_type *type = learner->optimiser->type;
    if (type->prepare != NULL)
        return sgm_fail(
            SGM_ERROR_UNSUPPORTED,
            "the optimiser %s takes steps of all parameters together, so that its memory cannot be "
            "divided among ranks: leave out sharded, or take another optimiser",
            type->name);
    if (sgm_network_is_dynamic(learner->network))
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a network that is recorded in each iteration may come to have other parameters, so "
                        "that they cannot be divided among ranks: leave out sharded");
    return SGM_OK;
}

/* Finds the owner of each trained parameter and marks those that another rank updates. */
static sgm_status mark(sgm__ranks *ranks, sgm_trainer *trainer, sgm__rank_place *places)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    size_t count = learner->trained_count;
    for (size_t i = 0; i < count; i++) {
        sgm_type type = sgm_value_type(learner->graph, learner->trained[i].value);
        places[i].name = learner->trained[i].name;
        places[i].bytes = (size_t)sgm_shape_elements(&type.shape) * sgm_dtype_size(type.dtype);
    }
    SGM_TRY(find_owners(ranks, places, count));
    for (size_t i = 0; i < count; i++)
        learner->trained[i].elsewhere = places[i].owner != ranks->rank;
    return SGM_OK;
}

sgm_status sgm__ranks_mark_owned(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (!sgm__ranks_sharded(ranks))
        return SGM_OK;
    SGM_TRY(check_divisible(trainer));
    sgm__rank_place *places = sgm__calloc(sgm__learner_of(trainer)->trained_count, sizeof *places);
    sgm_status status = places != NULL ? mark(ranks, trainer, places) : SGM_ERROR_MEMORY;
    sgm__free(places);
    return status == SGM_OK ? sgm__ranks_find_slots(trainer) : status;
}

/* Whether sums of gradients go to their owner alone. Clipping by the norm of all gradients needs all sums
 * on every rank. */
bool sgm__ranks_reduce(const sgm_trainer *trainer)
{
    return sgm__ranks_sharded(sgm__trainer_ranks(trainer)) &&
           !sgm__optimiser_looks_across(sgm__learner_of(trainer)->optimiser);
}

/* --- new values for all, by messages --- */

/* Between the session and `memory`; `out`: from the session. */
static sgm_status copy_parameter(const sgm__ranks *ranks, size_t index, unsigned char *memory, bool out)
{
    sgm_session *session = sgm__learner_of(ranks->trainer)->session;
    const char *name = ranks->places[index].name;
    size_t size = ranks->places[index].bytes;
    void *own = sgm__session_state_memory(session, name);
    if (own != NULL) {
        memcpy(out ? memory : own, out ? own : memory, size);
        return SGM_OK;
    }
    sgm_tensor *value = sgm_session_get(session, name);
    if (value == NULL)
        return sgm_last_status();
    memcpy(out ? memory : sgm_tensor_data(value), out ? sgm_tensor_data(value) : memory, size);
    sgm_status status = out ? SGM_OK : sgm_session_set(session, name, value);
    sgm_tensor_free(value);
    return status;
}

/* Copies the parameters that this rank updates from the session to the flat memory (`own`), or those of other
 * ranks from the flat memory to the session. */
static sgm_status copy_parameters(const sgm__ranks *ranks, bool own)
{
    for (size_t i = 0; i < ranks->place_count; i++)
        if ((ranks->places[i].owner == ranks->rank) == own)
            SGM_TRY(copy_parameter(ranks, i, ranks->flat + ranks->places[i].first, own));
    return SGM_OK;
}

/* Broadcasts that are under way. */
typedef struct messages {
    int32_t tickets[MAXIMUM_MESSAGES];
    size_t count;
} messages;

static sgm_status wait_for_all(sgm__ranks *ranks, messages *sent)
{
    for (size_t i = 0; i < sent->count; i++)
        SGM_TRY(sgm__ranks_wait(ranks, sent->tickets[i], "the parameters"));
    sent->count = 0;
    return SGM_OK;
}

/* Broadcasts bytes [first, end) of the flat memory, which are the owner's, to all ranks. */
static sgm_status send_range(sgm__ranks *ranks, size_t first, size_t end, int32_t owner, messages *sent)
{
    for (size_t part; first < end; first += part) {
        part = end - first < SGM__MAXIMUM_SENT ? end - first : SGM__MAXIMUM_SENT;
        const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_BROADCAST,
                                            .type = SGM_COMMUNICATOR_BYTES,
                                            .data = ranks->flat + first,
                                            .count = part,
                                            .root = owner};
        if (sent->count == MAXIMUM_MESSAGES)
            SGM_TRY(wait_for_all(ranks, sent));
        SGM_TRY(sgm__ranks_start(ranks, &work, &sent->tickets[sent->count++]));
    }
    return SGM_OK;
}

/* Broadcasts all parameters from their owners. Neighbouring parameters of one owner travel in one message. */
static sgm_status exchange(sgm__ranks *ranks)
{
    messages sent = {.count = 0};
    for (size_t i = 0, next; i < ranks->place_count; i = next) {
        int32_t owner = ranks->places[i].owner;
        for (next = i + 1; next < ranks->place_count && ranks->places[next].owner == owner;)
            next++;
        size_t end = next < ranks->place_count ? ranks->places[next].first : ranks->place_bytes;
        SGM_TRY(send_range(ranks, ranks->places[i].first, end, owner, &sent));
    }
    return wait_for_all(ranks, &sent);
}

/* New values travel in the flat memory of the gradients, which the update has read already. */
static sgm_status bring_by_messages(sgm__ranks *ranks)
{
    SGM_TRY(copy_parameters(ranks, true));
    SGM_TRY(exchange(ranks));
    return copy_parameters(ranks, false);
}

/* --- new values by shared memory or by messages --- */

/* Moves the moving averages of all parameters, on every rank, as each rank validates with them: they are
 * updated apart from the sharded update, from the same parameters, and so have the same bits everywhere. */
static sgm_status average(sgm_trainer *trainer)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    if (learner->optimiser->options.average == 0)
        return SGM_OK;
    sgm_program *program = sgm__trainer_program(trainer, SGM__AVERAGE, 1);
    return program != NULL ? sgm_session_run(learner->session, program) : sgm_last_status();
}

sgm_status sgm__ranks_bring(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks->divides) /* between ranks of one node */
        SGM_TRY(sgm__ranks_exchange_values(ranks));
    SGM_TRY(sgm__ranks_give_back(ranks));
    if (!sgm__ranks_sharded(ranks))
        return SGM_OK;
    if (ranks->node == NULL)
        SGM_TRY(bring_by_messages(ranks));
    return average(trainer);
}
