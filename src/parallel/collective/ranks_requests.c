/* What hooks of ranks ask for. They run on each rank and decide alike, as long as they decide by numbers that
 * all have: that they do is looked at. Those in the background are at another iteration on each rank, so
 * that rank 0's decide for all. */
#include "parallel/collective/ranks.h"

#include "registry/registry_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#define SIGN_BITS 20 /* of what was asked for: its square, summed over 4096 ranks, is exact in a double */
#define ACCOUNT_SECONDS 1.0 /* between two accounts of what ranks do */
#define PATIENCE 0.8 /* of the timeout: who asked is to speak before those that wait for its gradients */
#define REMEDY                                                                                               \
    "hooks on ranks decide by numbers that all ranks have, not by the clock, or run in the background "      \
    "(background=true), where those of rank 0 decide for all"

static const char *verb_of(const sgm__request *request)
{
    static const char *const verbs[] = {
        [SGM__REQUEST_STOP] = "stop",   [SGM__REQUEST_SET] = "set",   [SGM__REQUEST_PAUSE] = "pause",
        [SGM__REQUEST_RESET] = "reset", [SGM__REQUEST_SAVE] = "save", [SGM__REQUEST_ACT] = "save"};
    return verbs[request->kind];
}

/* --- all ask alike --- */

/* Adds a request to this rank's signature, which travels with the sums of the iteration, and keeps its text
 * for the message if they differ. */
static sgm_status note(sgm__ranks *ranks, const sgm__request *request)
{
    bool sets = request->kind == SGM__REQUEST_SET;
    char *value = sets ? sgm__content_text(&request->content) : NULL;
    char *text = sgm__format("hook '%s' asked to %s%s%s%s%.60s after iteration %lld", request->who,
                             verb_of(request), sets ? " " : "", sets ? request->text : "", sets ? " to " : "",
                             value != NULL ? value : "", (long long)ranks->trainer->position.iteration);
    if (text != NULL) {
        ranks->sign = sgm__hash(text, strlen(text), ranks->sign) & ((1u << SIGN_BITS) - 1);
        snprintf(ranks->newest_request, sizeof ranks->newest_request, "%s", text);
    }
    sgm__free(value);
    sgm__free(text);
    return text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Gathers the newest request of all ranks and names the first that differs from rank 0's. */
static sgm_status compare(sgm__ranks *ranks, char *all, bool apart)
{
    const size_t size = sizeof ranks->newest_request;
    const char *own = all + (size_t)ranks->rank * size;
    sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_GATHER,
                                  .type = SGM_COMMUNICATOR_BYTES,
                                  .data = all,
                                  .count = size,
                                  .apart = apart};
    int32_t ticket;
    memcpy(all + (size_t)ranks->rank * size, ranks->newest_request, size);
    SGM_TRY(sgm__ranks_start(ranks, &work, &ticket));
    if (sgm__ranks_wait_for(ranks, ticket, "the other ranks' hooks", ranks->options.timeout * PATIENCE) !=
        SGM_OK)
        return sgm__fail_within("%s on rank %d, and not on all ranks; " REMEDY, own, ranks->rank);
    for (int32_t rank = 1; rank < ranks->count; rank++) {
        const char *other = all + (size_t)rank * size;
        if (strcmp(all, other) != 0)
            return sgm_fail(
                SGM_ERROR_STATE,
                "hooks have not asked for the same on all ranks: on rank 0 %s; on rank %d %s; " REMEDY,
                all[0] != '\0' ? all : "none asked", rank, other[0] != '\0' ? other : "none asked");
    }
    return SGM_OK;
}

static sgm_status compare_requests(sgm__ranks *ranks, bool apart)
{
    char *all = sgm__calloc((size_t)ranks->count, sizeof ranks->newest_request);
    sgm_status status = all != NULL ? compare(ranks, all, apart) : SGM_ERROR_MEMORY;
    sgm__free(all);
    return status;
}

void sgm__ranks_put_sign(const sgm__ranks *ranks, double signs[2])
{
    signs[0] = ranks->sign;
    signs[1] = (double)ranks->sign * ranks->sign;
}

/* n numbers are equal where the sum of their squares is the square of their sum by n. */
sgm_status sgm__ranks_check_signs(sgm__ranks *ranks, const double signs[2])
{
    uint64_t sum = (uint64_t)signs[0], squares = (uint64_t)signs[1];
    if (sum * sum == (uint64_t)ranks->count * squares)
        return SGM_OK;
    SGM_TRY(compare_requests(ranks, false));
    return sgm_fail(SGM_ERROR_STATE, "hooks have not asked for the same on all ranks, before %s; " REMEDY,
                    ranks->newest_request);
}

/* --- what becomes of a request --- */

/* Followers hear of it in the meeting; what moves or stops them they hear there anyway. */
static void tell_set(sgm_trainer *trainer, const sgm__request *request)
{
    char *value = sgm__content_text(&request->content);
    json_t *command = json_pack("{s:s, s:s, s:s}", "command", "set", "identifier", request->text, "value",
                                value != NULL ? value : "");
    if (command != NULL)
        sgm__ranks_note(trainer, request->who, command);
    json_decref(command);
    sgm__free(value);
}

static void keep(sgm__ranks *ranks, sgm__request *request)
{
    sgm__request **last = &ranks->kept;
    while (*last != NULL)
        last = &(*last)->next;
    *last = request;
}

sgm_status sgm__ranks_decide(sgm_trainer *trainer, const sgm_trainer *asker, sgm__request *request,
                             sgm__request_time *time)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__request_kind kind = request->kind;
    *time = SGM__REQUEST_NOW;
    if (ranks == NULL || ranks->count < 2 || (kind == SGM__REQUEST_SET && asker != trainer))
        return SGM_OK; /* alone, or a worker's own value */
    if (request->background) {
        *time = ranks->rank == 0 ? SGM__REQUEST_LATER : SGM__REQUEST_NEVER;
        if (ranks->rank == 0)
            keep(ranks, request);
        return SGM_OK;
    }
    bool saves = kind == SGM__REQUEST_SAVE || kind == SGM__REQUEST_ACT;
    if (saves && (ranks->meeting || !sgm__ranks_sharded(ranks)))
        return SGM_OK; /* rank 0 alone does it */
    SGM_TRY(note(ranks, request));
    return kind == SGM__REQUEST_SET ? SGM_OK : compare_requests(ranks, true);
}

sgm__request *sgm__ranks_take_kept(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__request *first = ranks->kept;
    if (first == NULL)
        return NULL;
    ranks->kept = first->next;
    first->next = NULL;
    if (first->kind == SGM__REQUEST_SET)
        tell_set(trainer, first);
    return first;
}

void sgm__ranks_forget_requests(sgm__ranks *ranks)
{
    while (ranks->kept != NULL) {
        sgm__request *first = ranks->kept;
        ranks->kept = first->next;
        sgm__request_free(first);
    }
    ranks->sign = 0;
    memset(ranks->newest_request, 0, sizeof ranks->newest_request);
}

/* A command that rank 0 has done, for the others: they get the lines in the next meeting. */
void sgm__ranks_note(sgm_trainer *trainer, const char *who, const json_t *request)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks == NULL || ranks->rank > 0)
        return;
    char *text = json_dumps(request, JSON_COMPACT);
    pthread_mutex_lock(&ranks->lock);
    sgm__text_append(&ranks->lines, "%s\t%s\n", who, text != NULL ? text : "");
    pthread_mutex_unlock(&ranks->lock);
    free(text);
}

/* Rank 0 calls a meeting when somebody waits for the trainer, an order is queued, a pause or stop is
 * wanted, or the account is due. */
bool sgm__ranks_wants_meeting(sgm__ranks *ranks)
{
    sgm_trainer *trainer = ranks->trainer;
    return ranks->rank == 0 &&
           (ranks->kept != NULL || sgm__now() - ranks->told > ACCOUNT_SECONDS ||
            sgm__turn_lock_is_wanted(&trainer->lock) || atomic_load(&trainer->control.has_order) ||
            sgm__control_is_due(&trainer->control));
}
