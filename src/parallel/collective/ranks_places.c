/* Where parameters lie, one after the other, and who updates each: one table for gradients that travel
 * (ranks_merge.c), values that ranks of one node see (ranks_divide.c), and an optimiser state that is divided
 * (ranks_shard.c). */
#include "parallel/collective/ranks.h"

#include "handlers/session.h"

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

/* --- who has what --- */

bool sgm__ranks_sharded(const sgm__ranks *ranks)
{
    return ranks != NULL && ranks->options.sharded && ranks->count > 1;
}

/* -1: no update of it was recorded. */
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
        SGM__SLOT_PREFIX "accumulated."; /* who looks at all gradients has all of it */
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

/* Behind the last part are parameters without elements. */
static int32_t part_at(const sgm__ranks *ranks, double middle, double all)
{
    int32_t part = all > 0 ? (int32_t)(middle / all * ranks->count) : 0;
    return part < ranks->count ? part : ranks->count - 1;
}

/* One after the other: whose middle is in the n-th part is the n-th rank's. So neighbours stay together, no
 * part is larger than its share by more than one parameter, and all ranks find the same. With memory of their
 * own, who has an owner keeps it, as what is frozen and trained again later finds its memory; the others are
 * divided by themselves. */
sgm_status sgm__ranks_find_owners(sgm__ranks *ranks, sgm__rank_place *places, size_t count)
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

/* --- where --- */

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
    const sgm_operator *parallel = sgm__sharing_of(ranks->trainer)->operator;
    if (ranks->place_count == parallel->name_count)
        return SGM_OK;
    SGM_TRY(lay_out(ranks, parallel));
    SGM_TRY(sgm__ranks_find_owners(ranks, ranks->places, parallel->name_count));
    ranks->place_count = parallel->name_count;
    return SGM_OK;
}
