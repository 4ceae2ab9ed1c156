/* Whether ranks have the same states at the same place. */
#include "parallel/collective/ranks.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_kept(const char *name)
{
    return strncmp(name, SGM__KEPT_PREFIX, strlen(SGM__KEPT_PREFIX)) == 0;
}

enum { NAMES, POSITION, STATES };

static sgm_status hash_state(sgm_trainer *trainer, const char *name, uint64_t *hash)
{
    sgm_tensor *value = sgm_session_get(sgm__learner_of(trainer)->session, name);
    if (value == NULL)
        return sgm_last_status();
    size_t size =
        (size_t)sgm_shape_elements(sgm_tensor_shape(value)) * sgm_dtype_size(sgm_tensor_dtype(value));
    *hash = sgm__hash(sgm_tensor_const_data(value), size, 1);
    sgm_tensor_free(value);
    return SGM_OK;
}

static uint64_t hash_position(const sgm_trainer *trainer)
{
    const sgm__training_position *p = sgm__position_of(trainer);
    const int64_t numbers[] = {p->epoch, p->batch, p->iteration, p->updates, p->accumulated};
    return sgm__hash(numbers, sizeof numbers, 2);
}

/* Names in an order of their own, as a resumed session may have another. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

sgm_status sgm__ranks_states(sgm_trainer *trainer, const char ***names, size_t *count)
{
    sgm__learner *learner = sgm__learner_of(trainer);
    const char *name;
    size_t all = 0;
    while (sgm_session_state_at(learner->session, all) != NULL)
        all++;
    *names = sgm__calloc(all + 1, sizeof **names);
    if (*names == NULL)
        return SGM_ERROR_MEMORY;
    *count = 0;
    for (size_t i = 0; (name = sgm_session_state_at(learner->session, i)) != NULL; i++)
        if (!is_kept(name) && sgm__ranks_slot_owner(sgm__trainer_ranks(trainer), name) < 0)
            (*names)[(*count)++] = name;
    qsort(*names, *count, sizeof **names, by_name);
    return SGM_OK;
}

static sgm_status hash_all(sgm_trainer *trainer, const char *const *names, size_t count, uint64_t *hashes)
{
    hashes[NAMES] = count;
    hashes[POSITION] = hash_position(trainer);
    for (size_t i = 0; i < count; i++) {
        hashes[NAMES] = sgm__hash(names[i], strlen(names[i]), hashes[NAMES]);
        SGM_TRY(hash_state(trainer, names[i], &hashes[STATES + i]));
    }
    return SGM_OK;
}

static sgm_status gather_hashes(sgm__ranks *ranks, uint64_t *all, size_t each)
{
    sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_GATHER,
                                  .type = SGM_COMMUNICATOR_BYTES,
                                  .data = all,
                                  .count = each * sizeof *all};
    return sgm__ranks_do(ranks, &work, "the comparison of states");
}

/* The place of the first hash that another rank has otherwise than rank 0; `each`: none. */
static size_t first_difference(const sgm__ranks *ranks, const uint64_t *all, size_t each, int32_t *rank)
{
    for (size_t i = 0; i < each; i++)
        for (*rank = 1; *rank < ranks->count; ++*rank)
            if (all[(size_t)*rank * each + i] != all[i])
                return i;
    return each;
}

/* Two rounds, as ranks with different numbers of states cannot compare them. *place: as above, `STATES` plus
 * the number of the name; *each: past the last. */
static sgm_status find_difference(sgm__ranks *ranks, const char *const *names, size_t count, uint64_t *all,
                                  size_t *place, int32_t *rank)
{
    uint64_t *own = all + (size_t)ranks->rank * STATES;
    uint64_t *hashes = all + (size_t)ranks->count * STATES;
    SGM_TRY(hash_all(ranks->trainer, names, count, hashes));
    memcpy(own, hashes, STATES * sizeof *own);
    SGM_TRY(gather_hashes(ranks, all, STATES));
    *place = first_difference(ranks, all, STATES, rank);
    if (*place < STATES)
        return SGM_OK;
    uint64_t *states = hashes + STATES + count; /* of all ranks */
    memcpy(states + (size_t)ranks->rank * count, hashes + STATES, count * sizeof *states);
    SGM_TRY(gather_hashes(ranks, states, count));
    *place = STATES + first_difference(ranks, states, count, rank);
    return SGM_OK;
}

/* The first of another rank than rank 0. */
typedef struct difference {
    bool found;
    size_t place; /* of its hash */
    int32_t rank;
    char name[512]; /* of a state */
} difference;

static sgm_status compare(sgm__ranks *ranks, difference *first)
{
    size_t all = (size_t)ranks->count, count;
    const char **names;
    SGM_TRY(sgm__trainer_collect(ranks->trainer));
    SGM_TRY(sgm__ranks_states(ranks->trainer, &names, &count));
    uint64_t *hashes = sgm__calloc(all * STATES + (STATES + count) * (all + 1), sizeof *hashes);
    sgm_status status = hashes != NULL
                            ? find_difference(ranks, names, count, hashes, &first->place, &first->rank)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK) {
        first->found = first->place < STATES + count;
        snprintf(first->name, sizeof first->name, "%s",
                 first->found && first->place >= STATES ? names[first->place - STATES] : "");
    }
    sgm__free(hashes);
    sgm__free(names);
    return status;
}

sgm_status sgm__ranks_are_alike(sgm__ranks *ranks, bool *alike)
{
    difference first;
    SGM_TRY(compare(ranks, &first));
    *alike = !first.found;
    return SGM_OK;
}

sgm_status sgm__ranks_compare(sgm_trainer *trainer)
{
    sgm__training_position *position = sgm__position_of(trainer);
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    difference first;
    if (ranks == NULL || ranks->count < 2)
        return SGM_OK;
    SGM_TRY(compare(ranks, &first));
    if (!first.found)
        return SGM_OK;
    sgm__ranks_fail(ranks);
    if (first.place < STATES)
        return sgm_fail(SGM_ERROR_STATE, "rank %d is not where rank 0 is after iteration %lld: %s differ",
                        first.rank, (long long)position->iteration,
                        first.place == NAMES ? "the names of states" : "iterations and updates");
    return sgm_fail(SGM_ERROR_STATE,
                    "rank %d (%s) has other values of '%s' than rank 0 after iteration %lld: the ranks have "
                    "come apart; the newest checkpoint is from before",
                    first.rank, ranks->table->place(ranks->self, first.rank), first.name,
                    (long long)position->iteration);
}

sgm_status sgm__ranks_compare_now_and_then(sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && sgm__sharing_of(trainer)
                                        ->
                                        operator->merges_gradients && sgm__position_of(trainer)
                                        ->iteration %
                                    ranks->options.check_every ==
                                0
               ? sgm__ranks_compare(trainer)
               : SGM_OK;
}
