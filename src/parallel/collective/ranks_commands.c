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

static const char *verb_of(const sgm__command *command)
{
    static const char *const verbs[] = {
        [SGM__COMMAND_STOP] = "stop",   [SGM__COMMAND_SET] = "set",   [SGM__COMMAND_PAUSE] = "pause",
        [SGM__COMMAND_RESET] = "reset", [SGM__COMMAND_SAVE] = "save", [SGM__COMMAND_ACT] = "save"};
    return verbs[command->kind];
}

/* --- all ask alike --- */

/* Adds a command to this rank's signature, which travels with the sums of the iteration, and keeps its text
 * for the message if they differ. */
static sgm_status note(sgm__ranks *ranks, const sgm__command *command)
{
    bool sets = command->kind == SGM__COMMAND_SET;
    char *value = sets ? sgm__content_text(&command->content) : NULL;
    char *text =
        sgm__format("hook '%s' asked to %s%s%s%s%.60s after iteration %lld", command->who, verb_of(command),
                    sets ? " " : "", sets ? command->text : "", sets ? " to " : "",
                    value != NULL ? value : "", (long long)sgm__position_of(ranks->trainer)->iteration);
    if (text != NULL) {
        ranks->sign = sgm__hash(text, strlen(text), ranks->sign) & ((1u << SIGN_BITS) - 1);
        snprintf(ranks->newest_command, sizeof ranks->newest_command, "%s", text);
    }
    sgm__free(value);
    sgm__free(text);
    return text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Gathers the newest command of all ranks and names the first that differs from rank 0's. */
static sgm_status compare(sgm__ranks *ranks, char *all, bool apart)
{
    const size_t size = sizeof ranks->newest_command;
    const char *own = all + (size_t)ranks->rank * size;
    sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_GATHER,
                                  .type = SGM_COMMUNICATOR_BYTES,
                                  .data = all,
                                  .count = size,
                                  .apart = apart};
    int32_t ticket;
    memcpy(all + (size_t)ranks->rank * size, ranks->newest_command, size);
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

static sgm_status compare_commands(sgm__ranks *ranks, bool apart)
{
    char *all = sgm__calloc((size_t)ranks->count, sizeof ranks->newest_command);
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
    SGM_TRY(compare_commands(ranks, false));
    return sgm_fail(SGM_ERROR_STATE, "hooks have not asked for the same on all ranks, before %s; " REMEDY,
                    ranks->newest_command);
}

/* --- what becomes of a command --- */

/* Followers hear of it in the meeting; what moves or stops them they hear there anyway. */
static void tell_set(sgm_trainer *trainer, const sgm__command *command)
{
    char *value = sgm__content_text(&command->content);
    json_t *line = json_pack("{s:s, s:s, s:s}", "command", "set", "identifier", command->text, "value",
                             value != NULL ? value : "");
    if (line != NULL)
        sgm__ranks_note(trainer, command->who, line);
    json_decref(line);
    sgm__free(value);
}

sgm_status sgm__ranks_decide(sgm_trainer *trainer, sgm__command *command, sgm__command_time *time)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__command_kind kind = command->kind;
    *time = SGM__COMMAND_NOW;
    if (ranks == NULL || ranks->count < 2 || (kind == SGM__COMMAND_SET && command->asker != trainer))
        return SGM_OK; /* alone, or a worker's own value */
    if (command->background) {
        *time = ranks->rank == 0 ? SGM__COMMAND_LATER : SGM__COMMAND_NEVER;
        if (ranks->rank == 0)
            sgm__commands_append(&ranks->kept, command);
        return SGM_OK;
    }
    bool saves = kind == SGM__COMMAND_SAVE || kind == SGM__COMMAND_ACT;
    if (saves && (ranks->meeting || !sgm__ranks_sharded(ranks)))
        return SGM_OK; /* rank 0 alone does it */
    SGM_TRY(note(ranks, command));
    return kind == SGM__COMMAND_SET ? SGM_OK : compare_commands(ranks, true);
}

sgm__command *sgm__ranks_take_kept(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__command *first = sgm__commands_take(&ranks->kept);
    if (first != NULL && first->kind == SGM__COMMAND_SET)
        tell_set(trainer, first);
    return first;
}

void sgm__ranks_forget_commands(sgm__ranks *ranks)
{
    sgm__command *command;
    while ((command = sgm__commands_take(&ranks->kept)) != NULL)
        sgm__command_free(command);
    ranks->sign = 0;
    memset(ranks->newest_command, 0, sizeof ranks->newest_command);
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

/* Rank 0 calls a meeting when somebody waits for the trainer, a command is queued, a pause or stop is
 * wanted, or the account is due. */
bool sgm__ranks_wants_meeting(sgm__ranks *ranks)
{
    sgm_trainer *trainer = ranks->trainer;
    return ranks->rank == 0 && (ranks->kept.first != NULL || sgm__now() - ranks->told > ACCOUNT_SECONDS ||
                                sgm__turn_lock_is_wanted(&sgm__control_of(trainer)->turn) ||
                                atomic_load(&sgm__control_of(trainer)->commands.has_any) ||
                                sgm__control_is_due(sgm__control_of(trainer)));
}
