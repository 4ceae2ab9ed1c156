/* Ranks agree: on where they begin, and on what they are told between two iterations. */
#include "control/control.h"
#include "data/dataset.h"
#include "parallel/collective/ranks.h"
#include "train/train.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- states of rank 0 for all, by way of a checkpoint --- */

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

/* What rank 0 says first. */
typedef struct rank_beginning {
    int64_t saves;
    uint64_t network; /* a hash of its text */
    int32_t precision;
    uint8_t sharded, anew;
} rank_beginning;

/* 0: one that has no text. */
static uint64_t hash_network(const sgm__ranks *ranks, char **text)
{
    *text = sgm_network_text(sgm__learner_of(ranks->trainer)->network);
    if (*text == NULL)
        sgm_clear_error();
    return *text != NULL ? sgm__hash(*text, strlen(*text), 3) : 0;
}

/* That without which rank 0's states would not fit. */
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

/* Does a command of rank 0's here, too, in the same name. */
static sgm_status do_line(sgm__ranks *ranks, const char *line, size_t length)
{
    const char *tab = memchr(line, '\t', length);
    char *who = tab != NULL ? sgm__strndup(line, (size_t)(tab - line)) : NULL;
    json_t *request = tab != NULL ? json_loadb(tab + 1, length - (size_t)(tab + 1 - line), 0, NULL) : NULL;
    json_t *answer = json_object();
    sgm__control_call call = {.trainer = ranks->trainer, .who = who, .files = true};
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

/* Rank 0 asks for a slot that this rank owns, or for all of them. */
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

/* What a meeting decides, from rank 0 to all. */
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

static sgm_status lead(sgm__ranks *ranks, const sgm__rank_news *news)
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
static sgm_status follow(sgm__ranks *ranks, sgm__rank_news *news)
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

/* In a pause no iteration's sums tell of a signal on another rank. */
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
sgm_status sgm__ranks_meet(sgm_trainer *trainer, bool stops, sgm__rank_news *news)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    ranks->meets = false;
    if (ranks->count < 2)
        sgm__text_free(&ranks->lines);
    else
        SGM_TRY(ranks->rank == 0 ? lead(ranks, news) : follow(ranks, news));
    SGM_TRY(news->paused ? share_stops(ranks, stops) : sgm__ranks_account(ranks));
    if (ranks->saved || ranks->moved)
        sgm__ranks_forget_lost(trainer);
    sgm_status status = ranks->moved && ranks->count > 1 ? send_states(ranks) : SGM_OK;
    ranks->moved = ranks->saved = false;
    return status;
}
