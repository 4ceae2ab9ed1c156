/* Ranks agree: on where they begin, on what their hooks command, and on what rank 0 was told between two
 * iterations.
 *
 * Hooks run on each rank, and decide alike as long as they decide by numbers that all ranks have; whether
 * they do is checked by checksums of their commands, which travel with the sums of each iteration. Background
 * hooks are at another iteration on each rank, so those of rank 0 decide for all.
 *
 * Rank 0 alone receives commands. The other ranks hear of them in a meeting between two iterations, and carry
 * out the same. That there will be a meeting, all ranks learn from the sums of the iteration before
 * (ranks_merge.c), so they hold it at the same iteration. Messages within a meeting: any number of questions
 * of rank 0 for optimiser states; then a sgm__rank_message with what is decided, and the commands' lines;
 * then, if rank 0 is at another position, its states. */
#include "control/control.h"
#include "data/dataset.h"
#include "loop/trainer_run.h"
#include "parallel/collective/ranks.h"
#include "registry/registry_internal.h"
#include "runs/trainer_commands.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIGN_BITS 20        /* of the checksum: its square, summed over 4096 ranks, is exact in a double */
#define ACCOUNT_SECONDS 1.0 /* between two accounts of what ranks do */
/* Of operator.timeout: a rank whose hook alone gives a command fails before those that wait for its
 * gradients. */
#define PATIENCE 0.8
#define REMEDY                                                                                               \
    "hooks on ranks decide by numbers that all ranks have, not by the clock, or run in the background "      \
    "(background=true), where those of rank 0 decide for all"

/* The verb of a command, for messages. */
static const char *verb_of(const sgm__command *command)
{
    static const char *const verbs[] = {
        [SGM__COMMAND_STOP] = "stop",     [SGM__COMMAND_SET] = "set",          [SGM__COMMAND_PAUSE] = "pause",
        [SGM__COMMAND_RESET] = "reset",   [SGM__COMMAND_SAVE] = "save",        [SGM__COMMAND_ACT] = "save",
        [SGM__COMMAND_FREEZE] = "freeze", [SGM__COMMAND_UNFREEZE] = "unfreeze"};
    return verbs[command->kind];
}

/* Whether a command changes a value, whose name or pattern is its text: all ranks do it by themselves, and
 * the iteration's checksums tell where they did not do the same. */
static bool is_change(const sgm__command *command)
{
    return command->kind == SGM__COMMAND_SET || command->kind == SGM__COMMAND_FREEZE ||
           command->kind == SGM__COMMAND_UNFREEZE;
}

/* --- whether hooks of all ranks command the same --- */

/* Adds a command to this rank's checksum, which travels with the sums of the iteration, and keeps its text
 * for the message that is needed if checksums differ. */
static sgm_status note(sgm__ranks *ranks, const sgm__command *command)
{
    bool sets = command->kind == SGM__COMMAND_SET, changes = is_change(command);
    char *value = sets ? sgm__content_text(&command->content) : NULL;
    char *text =
        sgm__format("hook '%s' asked to %s%s%s%s%.60s after iteration %lld", command->who, verb_of(command),
                    changes ? " " : "", changes ? command->text : "", sets ? " to " : "",
                    value != NULL ? value : "", (long long)sgm__position_of(ranks->trainer)->iteration);
    if (text != NULL) {
        ranks->sign = sgm__hash(text, strlen(text), ranks->sign) & ((1u << SIGN_BITS) - 1);
        snprintf(ranks->newest_command, sizeof ranks->newest_command, "%s", text);
    }
    sgm__free(value);
    sgm__free(text);
    return text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

/* Gathers the newest command of all ranks into `all`, one text behind the other, and fails, naming the first
 * that differs from rank 0's. `apart`: the gathering is no part of the order in which all ranks start their
 * works, since a rank whose hooks give no command does not come to it. Then this wait ends before
 * operator.timeout does, and its error names the hook. */
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

/* As compare, with memory for the texts of all ranks. */
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

/* signs[0] is the sum over all ranks of their checksums, signs[1] the sum of the squares. By the inequality
 * of Cauchy and Schwarz, n numbers are all equal exactly where n times the sum of their squares is the square
 * of their sum. All of these integers are exact in a double. */
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

/* Notes a change of a value for the other ranks, who carry it out in the meeting. Pause, stop and reset need
 * no such line: the meeting's message has them. */
static void tell_change(sgm_trainer *trainer, const sgm__command *command)
{
    bool sets = command->kind == SGM__COMMAND_SET;
    char *value = sets ? sgm__content_text(&command->content) : NULL;
    json_t *line = sets ? json_pack("{s:s, s:s, s:s}", "command", "set", "identifier", command->text, "value",
                                    value != NULL ? value : "")
                        : json_pack("{s:s, s:s}", "command", verb_of(command), "pattern", command->text);
    if (line != NULL)
        sgm__ranks_note(trainer, command->who, line);
    json_decref(line);
    sgm__free(value);
}

/* Hooks that run in the foreground give the same command on all ranks at this iteration, so it is carried out
 * at once; that it was given on all is checked at once for commands that stop, pause or reset, and by the
 * iteration's checksums for values that are set. A background hook's command waits for a meeting at rank 0
 * and is dropped elsewhere. Checkpoints are made by rank 0 alone, and need the others only if optimiser
 * states are sharded. */
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
    return is_change(command) ? SGM_OK : compare_commands(ranks, true);
}

/* Takes the oldest command of a background hook; NULL: there is none. It is the caller's then, and noted for
 * the other ranks. */
static sgm__command *take_kept(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__command *first = sgm__commands_take(&ranks->kept);
    if (first != NULL && is_change(first))
        tell_change(trainer, first);
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

/* Keeps a command that rank 0 has carried out as a line "WHO<tab>JSON": the others get the lines in the next
 * meeting. */
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

/* Rank 0 wants a meeting when a thread waits for the trainer's lock, a command is queued, a pause or stop is
 * wanted, or accounts are due. */
bool sgm__ranks_wants_meeting(sgm__ranks *ranks)
{
    sgm_trainer *trainer = ranks->trainer;
    return ranks->rank == 0 && (ranks->kept.first != NULL || sgm__now() - ranks->told > ACCOUNT_SECONDS ||
                                sgm__turn_lock_is_wanted(&sgm__control_of(trainer)->turn) ||
                                atomic_load(&sgm__control_of(trainer)->commands.has_any) ||
                                sgm__control_is_due(sgm__control_of(trainer)));
}

/* --- states of rank 0 for all, by way of a checkpoint ---
 *
 * A checkpoint has everything that a training consists of, and loading one is tested well; so rank 0 writes
 * one into a temporary file, broadcasts its bytes, and the others load them. */

/* Makes an empty temporary file in $TMPDIR or /tmp and writes its path to `path`. */
static sgm_status make_file(char *path, size_t size)
{
    const char *given = getenv("TMPDIR"), *folder = given != NULL && given[0] == '/' ? given : "/tmp";
    int length = snprintf(path, size, "%s/sigma-rank-XXXXXX", folder);
    errno = ENAMETOOLONG;
    int file = length > 0 && (size_t)length < size ? mkstemp(path) : -1;
    if (file < 0)
        return sgm_fail(SGM_ERROR_FILE, "no temporary file can be made in %.100s: %s", folder,
                        sgm__errno_text(errno));
    close(file);
    return SGM_OK;
}

static sgm_status send_file(sgm__ranks *ranks, sgm_trainer *trainer, const char *path)
{
    char *data = NULL;
    size_t size = 0;
    SGM_TRY(sgm_trainer_save(trainer, path));
    SGM_TRY(sgm__file_read(path, SIZE_MAX / 2, &data, &size));
    uint64_t length = size;
    sgm_status status = sgm__ranks_send(ranks, &length, sizeof length, "the states of rank 0");
    if (status == SGM_OK)
        status = sgm__ranks_send(ranks, data, size, "the states of rank 0");
    sgm__free(data);
    return status;
}

/* Optimiser states of this rank are set to zero before it loads those of the checkpoint, which lacks states
 * that no update has made yet. */
static sgm_status receive_file(sgm__ranks *ranks, sgm_trainer *trainer, const char *path)
{
    uint64_t length = 0;
    SGM_TRY(sgm__ranks_send(ranks, &length, sizeof length, "the states of rank 0"));
    char *data = sgm__alloc((size_t)length);
    if (data == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__ranks_send(ranks, data, (size_t)length, "the states of rank 0");
    if (status == SGM_OK)
        status = sgm__file_write_atomic(path, data, (size_t)length);
    sgm__free(data);
    if (status == SGM_OK)
        status = sgm__ranks_clear_slots(trainer);
    return status == SGM_OK ? sgm_trainer_load(trainer, path) : status;
}

/* All ranks take the states of rank 0. Optimiser states that only their owners have come to rank 0 first. */
static sgm_status send_states(sgm__ranks *ranks)
{
    char path[4096];
    sgm_trainer *trainer = ranks->trainer;
    SGM_TRY(sgm__ranks_complete(trainer));
    SGM_TRY(make_file(path, sizeof path));
    sgm_status status =
        ranks->rank == 0 ? send_file(ranks, trainer, path) : receive_file(ranks, trainer, path);
    unlink(path);
    ranks->anew = false;
    return status;
}

/* --- the beginning and the end --- */

/* What rank 0 tells all others before the first iteration. */
typedef struct rank_beginning {
    int64_t saves;    /* epochs from one checkpoint of rank 0 to the next; 0: it makes none */
    uint64_t network; /* a hash of its text */
    int32_t precision;
    uint8_t sharded, anew;
} rank_beginning;

/* The hash of the network's text, which the caller frees; 0 and a text of NULL for networks that have none
 * (layers of the program's own, say). */
static uint64_t hash_network(const sgm__ranks *ranks, char **text)
{
    *text = sgm_network_text(sgm__learner_of(ranks->trainer)->network);
    if (*text == NULL)
        sgm_clear_error();
    return *text != NULL ? sgm__hash(*text, strlen(*text), 3) : 0;
}

/* Checks what must agree before rank 0's states can be loaded: network, precision, sharding. */
static sgm_status check_beginning(const sgm__ranks *ranks, const rank_beginning *own,
                                  const rank_beginning *first, const char *network)
{
    sgm_status status = SGM_OK;
    if (own->network != first->network)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "its network is '%s'; all want the same",
                          network != NULL ? network : "without text");
    else if (own->precision != first->precision)
        status =
            sgm_fail(SGM_ERROR_ARGUMENT, "precision is %s, not %s; all want the same",
                     sgm_dtype_name((sgm_dtype)own->precision), sgm_dtype_name((sgm_dtype)first->precision));
    else if (own->sharded != first->sharded)
        status = sgm_fail(SGM_ERROR_ARGUMENT, "operator.sharded is %d, not %d; all want the same",
                          own->sharded, first->sharded);
    return status == SGM_OK ? SGM_OK
                            : sgm__fail_within("rank %d (%s) was given other things than rank 0", ranks->rank,
                                               ranks->table->place(ranks->self, ranks->rank));
}

/* All ranks receive rank 0's beginning and compare it with their own. The status of the comparison differs
 * between ranks: a rank that fails ends its run, which tells the others. */
static sgm_status begin_together(sgm__ranks *ranks, int64_t saves, bool *anew)
{
    char *network;
    const rank_beginning own = {.saves = saves,
                                .network = hash_network(ranks, &network),
                                .precision = (int32_t)sgm__settings_of(ranks->trainer)->precision,
                                .sharded = ranks->options.sharded,
                                .anew = ranks->anew};
    rank_beginning first = own;
    sgm_status status = sgm__ranks_send(ranks, &first, sizeof first, "the beginning");
    ranks->saves = first.saves;
    *anew = first.anew != 0;
    if (status == SGM_OK)
        status = check_beginning(ranks, &own, &first, network);
    sgm_string_free(network);
    return status;
}

/* Only rank 0 has a folder, so the others know by `saves` when it makes a checkpoint. */
bool sgm__ranks_save_is_due(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && ranks->saves > 0 && sgm__position_of(trainer)->epoch % ranks->saves == 0;
}

sgm_status sgm__ranks_prepare_save(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__ranks_forget_lost(trainer);
    return ranks != NULL && !ranks->meeting ? sgm__ranks_complete(trainer) : SGM_OK;
}

/* Before a run: forgets the run before, compares network and settings with rank 0, and sends rank 0's
 * states if any rank has others. */
sgm_status sgm__ranks_begin(sgm_trainer *trainer, int64_t saves)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    bool anew, alike;
    if (ranks == NULL)
        return SGM_OK;
    ranks->trainer = trainer;
    ranks->waited = ranks->computed = 0;
    ranks->began = ranks->told = sgm__now();
    ranks->bytes = 0;
    ranks->examples = 0;
    sgm__ranks_forget_accounts(ranks);
    ranks->meets = true;
    ranks->wants_stop = ranks->someone_stops = ranks->moved = ranks->meeting = ranks->saved = false;
    sgm__ranks_forget(ranks);
    sgm__ranks_forget_commands(ranks);
    SGM_TRY(sgm__trainer_prepare(trainer));
    SGM_TRY(sgm__ranks_look_intra_node(ranks));
    if (ranks->count < 2)
        return SGM_OK;
    SGM_TRY(begin_together(ranks, saves, &anew));
    SGM_TRY(sgm__ranks_are_alike(ranks, &alike));
    if (!alike || anew)
        SGM_TRY(send_states(ranks));
    return sgm__ranks_compare_given(ranks);
}

/* A sum of nothing: no rank leaves before all have come, as a process that exits early takes its memory and
 * its end of the communication with it. */
sgm_status sgm__ranks_leave(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    double nothing = 0;
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = &nothing, .count = 1};
    return ranks != NULL ? sgm__ranks_do(ranks, &work, "the end") : SGM_OK;
}

void sgm__ranks_end(sgm_trainer *trainer)
{
    sgm__trainer_data *data = sgm__data_of(trainer);
    if (sgm__trainer_ranks(trainer) != NULL && data->training != NULL)
        sgm__iterator_set_part(data->training, 0, 1);
}

/* --- meetings --- */

void sgm__ranks_must_meet(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL)
        ranks->meets = true;
}

void sgm__ranks_moved(sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL)
        ranks->moved = true;
}

void sgm__ranks_note_saved(const sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks != NULL && ranks->meeting)
        ranks->saved = true;
}

/* Answers a question of rank 0: sends the named optimiser state if this rank owns it, or, without a name,
 * takes part in collecting all of them. */
static sgm_status answer(sgm__ranks *ranks, const sgm__rank_message *message)
{
    sgm_tensor *value = NULL;
    if (message->bytes == 0)
        return sgm__ranks_collect(ranks);
    char *name = sgm__calloc(message->bytes + 1, 1);
    sgm_status status =
        name != NULL ? sgm__ranks_send(ranks, name, message->bytes, "a meeting") : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__ranks_bring_slot(ranks, message->owner, name, &value);
    sgm_tensor_free(value);
    sgm__free(name);
    return status;
}

/* Carries out a command that rank 0 has carried out, under the name of who gave it. */
static sgm_status do_line(sgm__ranks *ranks, const char *line, size_t length)
{
    const char *tab = memchr(line, '\t', length);
    char *who = tab != NULL ? sgm__strndup(line, (size_t)(tab - line)) : NULL;
    json_t *request = tab != NULL ? json_loadb(tab + 1, length - (size_t)(tab + 1 - line), 0, NULL) : NULL;
    json_t *answer = json_object();
    sgm__control_call call = {.trainer = ranks->trainer, .who = who, .role = SGM__ROLE_ADMIN, .files = true};
    sgm_status status = who != NULL && request != NULL && answer != NULL
                            ? sgm__control_obey(&call, request, answer)
                            : sgm_fail(SGM_ERROR_FORMAT, "rank 0 sent a command that cannot be read");
    json_decref(answer);
    json_decref(request);
    sgm__free(who);
    return status == SGM_OK ? SGM_OK
                            : sgm__fail_within("rank %d cannot do what rank 0 was told", ranks->rank);
}

static sgm_status do_lines(sgm__ranks *ranks, const char *text, size_t length)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t line = end != NULL ? (size_t)(end - text) : length;
        SGM_TRY(do_line(ranks, text, line));
        length -= line + (end != NULL);
        text += line + (end != NULL);
    }
    return SGM_OK;
}

/* Broadcasts what a meeting decides, and behind it the lines of commands. */
static sgm_status tell(sgm__ranks *ranks, const sgm__rank_news *news, char *lines, size_t length)
{
    sgm__rank_message message = {.bytes = length,
                                 .paused = news->paused,
                                 .stopped = news->stopped,
                                 .interrupted = news->interrupted,
                                 .moved = ranks->moved,
                                 .saved = ranks->saved};
    SGM_TRY(sgm__ranks_send(ranks, &message, sizeof message, "a meeting"));
    return sgm__ranks_send(ranks, lines, length, "a meeting");
}

/* The lines are taken under the lock, as other threads add to them, and sent without it. */
static sgm_status tell_news(sgm__ranks *ranks, const sgm__rank_news *news)
{
    pthread_mutex_lock(&ranks->lock);
    size_t length = ranks->lines.length;
    bool failed = ranks->lines.failed;
    char *lines = sgm__text_take(&ranks->lines);
    pthread_mutex_unlock(&ranks->lock);
    sgm_status status = failed ? SGM_ERROR_MEMORY : tell(ranks, news, lines, length);
    sgm__free(lines);
    return status;
}

/* Takes part in a meeting that rank 0 leads: answers its questions, then learns its decisions. If the
 * training has moved, the states that follow contain what commands have set. */
static sgm_status hear_news(sgm__ranks *ranks, sgm__rank_news *news)
{
    sgm__rank_message message = {0};
    do {
        SGM_TRY(sgm__ranks_send(ranks, &message, sizeof message, "a meeting"));
        if (message.asks)
            SGM_TRY(answer(ranks, &message));
    } while (message.asks);
    *news = (sgm__rank_news){message.paused != 0, message.stopped != 0, message.interrupted != 0};
    ranks->moved = message.moved != 0;
    ranks->saved = message.saved != 0;
    char *lines = sgm__alloc((size_t)message.bytes);
    if (lines == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__ranks_send(ranks, lines, (size_t)message.bytes, "a meeting");
    if (status == SGM_OK && !ranks->moved) /* else the states have it */
        status = do_lines(ranks, lines, (size_t)message.bytes);
    sgm__free(lines);
    return status;
}

/* In a pause there are no sums of iterations that would tell all ranks of a signal, so whether a rank wants
 * to stop is summed here. */
static sgm_status share_stops(sgm__ranks *ranks, bool stops)
{
    double stopping = stops;
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = &stopping, .count = 1};
    SGM_TRY(sgm__ranks_do(ranks, &work, "a meeting"));
    ranks->someone_stops = stopping > 0;
    return SGM_OK;
}

/* A meeting between two iterations, which all ranks hold at the same iteration, as the sums of the
 * iteration before have told all of them. */
static sgm_status meet(sgm_trainer *trainer, bool stops, sgm__rank_news *news)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    ranks->meets = false;
    if (ranks->count < 2)
        sgm__text_free(&ranks->lines);
    else
        SGM_TRY(ranks->rank == 0 ? tell_news(ranks, news) : hear_news(ranks, news));
    SGM_TRY(news->paused ? share_stops(ranks, stops) : sgm__ranks_account(ranks));
    if (ranks->saved || ranks->moved)
        sgm__ranks_forget_lost(trainer);
    sgm_status status = ranks->moved && ranks->count > 1 ? send_states(ranks) : SGM_OK;
    ranks->moved = ranks->saved = false;
    return status;
}

/* --- the meeting: rank 0 does what it was asked for, and the others do the same --- */

/* Seconds after which rank 0 tells the others again that it is paused: often enough that their waits do not
 * come near operator.timeout. */
static double patience(const sgm__ranks *ranks)
{
    double quarter = ranks->options.timeout / 4;
    return quarter < 1 ? quarter : 1;
}

/* Carries out what background hooks of rank 0 have commanded. The other ranks get the lines. */
static void do_kept(sgm_trainer *trainer)
{
    sgm__command *command;
    while ((command = take_kept(trainer)) != NULL)
        sgm__trainer_do_for_hook(trainer, command);
}

/* The meeting at rank 0: carries out commands, waits while paused, and tells the others. During a pause it
 * meets the others again and again, so that they do not time out, and hears whether one of them wants to
 * stop. */
static sgm_status lead(sgm__training_run *run)
{
    sgm_trainer *trainer = run->trainer;
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    sgm__rank_news news = {0};
    sgm__trainer_let_others(trainer);
    do_kept(trainer);
    SGM_TRY(sgm__run_do_commands(run));
    if (sgm__control_wants_pause(sgm__control_of(trainer))) {
        SGM_TRY(sgm__run_begin_pause(run));
        for (bool goes_on = false; !goes_on;) {
            news.paused = true;
            SGM_TRY(meet(trainer, run->stopped, &news));
            if (ranks->someone_stops)
                SGM_TRY(sgm_trainer_resume(trainer));
            SGM_TRY(sgm__run_wait_paused(run, patience(ranks), &goes_on));
        }
        SGM_TRY(sgm__run_end_pause(run));
    }
    sgm__run_look_for_signals(run);
    run->stopped |= ranks->someone_stops;
    news = (sgm__rank_news){.interrupted = run->stopped,
                            .stopped = run->stopped || sgm__control_stops(sgm__control_of(trainer), NULL, 0)};
    run->agreed = news.stopped;
    return meet(trainer, run->stopped, &news);
}

/* The meeting at every other rank: takes part until rank 0 is not paused any more. */
static sgm_status follow(sgm__training_run *run)
{
    sgm__rank_news news = {0};
    bool paused = false;
    sgm__trainer_let_others(run->trainer);
    for (;;) {
        sgm__run_look_for_signals(run);
        SGM_TRY(meet(run->trainer, run->stopped, &news));
        SGM_TRY(sgm__run_do_commands(run));
        if (!news.paused)
            break;
        if (!paused)
            SGM_TRY(sgm__run_begin_pause(run));
        paused = true;
    }
    run->agreed = news.stopped;
    run->stopped |= news.interrupted; /* a wish to stop that came too late for this meeting stays */
    return paused ? sgm__run_end_pause(run) : SGM_OK;
}

sgm_status sgm__ranks_meeting(sgm__training_run *run)
{
    sgm__ranks *ranks = sgm__trainer_ranks(run->trainer);
    ranks->wants_stop = run->stopped;
    ranks->meeting = ranks->meets;
    if (!ranks->meets)
        return SGM_OK;
    sgm__trainer_note_whereabouts(run->trainer, "meeting the other ranks");
    SGM_TRY(ranks->rank > 0 ? follow(run) : lead(run));
    ranks->meeting = false;
    return SGM_OK;
}
