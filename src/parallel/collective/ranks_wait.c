/* Communication with a time limit: starting works of the communicator, waiting for them, and telling which
 * ranks do not come.
 *
 * All files of this folder communicate through the functions here. A wait fails after operator.timeout.
 * Before that, every few seconds, the waiting rank asks all others whether they are there, and logs the names
 * of ranks that are silent. A rank answers only while it waits itself (in the communicator's `test` or
 * `call`), so a silent rank has ended, is stopped, or is busy with something that takes long. After the first
 * failure the ranks are `broken`: every later work fails with the first failure's message.
 *
 * Only the run's thread waits; the registry's threads read `silent_since` under ranks->lock. */
#include "parallel/collective/ranks.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#define ANSWER_SECONDS 1.0 /* within which a rank must answer, or counts as silent */
#define SILENT_SECONDS 5.0 /* of waiting before all ranks are asked, and between two times */
#define QUIET_SECONDS 60.0 /* between two messages in the log about silent ranks */
#define MAXIMUM_NAMES 8    /* of ranks in a message */
/* For waits until another process has written into shared memory: */
#define LOOKS 64            /* looks at the memory between two looks at the clock */
#define SPIN_SECONDS 200e-6 /* in which the thread keeps its processor */
#define REST_SECONDS 20e-6  /* for which the communicator may work between two looks */

/* Marks the ranks as broken and keeps the reason: the failure may be met by a command, whose error goes to
 * the asker, while the run that ends because of it must say why, too. */
static sgm_status fail_for_good(sgm__ranks *ranks)
{
    if (!ranks->broken)
        snprintf(ranks->why, sizeof ranks->why, "%s", sgm_last_error());
    sgm__ranks_fail(ranks);
    return sgm_last_status();
}

/* The error of a communicator's function, which has put a sentence into `message`. */
static sgm_status fail(sgm__ranks *ranks, const char *what, const char *message)
{
    sgm_fail(SGM_ERROR_STATE, "%s of rank %d (%s): %s", what, ranks->rank,
             ranks->table->place(ranks->self, ranks->rank), message);
    return fail_for_good(ranks);
}

/* Marks the ranks as broken and tells the other ranks, as far as the library can. */
void sgm__ranks_fail(sgm__ranks *ranks)
{
    if (ranks == NULL || ranks->broken)
        return;
    ranks->broken = true;
    ranks->table->fail(ranks->self);
}

sgm_status sgm__ranks_start(sgm__ranks *ranks, const sgm_communicator_work *work, int32_t *ticket)
{
    static const size_t sizes[] = {4, 8, 2, 1};
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    if (ranks->broken)
        return sgm_fail(SGM_ERROR_STATE, "the other ranks cannot be reached any more%s%s",
                        ranks->why[0] != '\0' ? ": " : "", ranks->why);
    if (ranks->table->start(ranks->self, work, ticket, message) != SGM_COMMUNICATOR_OK)
        return fail(ranks, "a message", message);
    ranks->bytes += work->count * sizes[work->type];
    return SGM_OK;
}

/* Adds a rank to a list of names; `before`: how many are in it. */
static void append_rank(const sgm__ranks *ranks, int32_t rank, int32_t before, sgm__text *names)
{
    if (before < MAXIMUM_NAMES)
        sgm__text_append(names, "%srank %d (%s)", before > 0 ? ", " : "", rank,
                         ranks->table->place(ranks->self, rank));
    else if (before == MAXIMUM_NAMES)
        sgm__text_append(names, ", ...");
}

/* Asks all ranks whether they are there, and writes the names of those that do not answer to *names, their
 * number to *missing. */
static sgm_status find_silent(sgm__ranks *ranks, const char *what, sgm__text *names, int32_t *missing)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    bool *silent = sgm__calloc((size_t)ranks->count, sizeof *silent);
    *missing = 0;
    if (silent == NULL)
        return SGM_ERROR_MEMORY;
    bool asked = ranks->table->call(ranks->self, ANSWER_SECONDS, silent, message) == SGM_COMMUNICATOR_OK;
    for (int32_t i = 0; i < ranks->count && asked; i++)
        if (silent[i])
            append_rank(ranks, i, (*missing)++, names);
    sgm__free(silent);
    return asked ? SGM_OK : fail(ranks, what, message);
}

/* The error of a wait that took longer than operator.timeout. If all ranks answer, they do different things
 * or the network is slow, which is another remedy. */
static sgm_status fail_waiting(sgm__ranks *ranks, const char *what, double seconds)
{
    sgm__text names = {0};
    int32_t missing;
    SGM_TRY(find_silent(ranks, what, &names, &missing));
    if (missing > 0)
        sgm_fail(SGM_ERROR_STATE,
                 "rank %d has waited for %s for %g seconds (operator.timeout), and there is no answer from "
                 "%s: it has ended, is stopped, or takes longer than that",
                 ranks->rank, what, seconds, names.data);
    else
        sgm_fail(SGM_ERROR_STATE,
                 "rank %d has waited for %s for %g seconds (operator.timeout), though all ranks are "
                 "there: they do not do the same, or the network is slower than that",
                 ranks->rank, what, seconds);
    sgm__text_free(&names);
    return fail_for_good(ranks);
}

sgm_status sgm__ranks_name_silent(sgm__ranks *ranks, const char *what)
{
    sgm__text names = {0};
    int32_t missing;
    sgm_status status = sgm_last_status();
    char *message = sgm__strdup(sgm_last_error());
    if (message == NULL)
        return SGM_ERROR_MEMORY;
    if (find_silent(ranks, what, &names, &missing) == SGM_OK)
        sgm_fail(status, "%s%s%s", message, missing > 0 ? "; there is no answer from " : "",
                 missing > 0 ? names.data : "");
    sgm__free(message);
    sgm__text_free(&names);
    return status;
}

/* --- silent ranks, before the time limit --- */

/* "rank 1 (beta, process 4711) has not answered since 12:34:56", which the caller frees; NULL: all answer.
 * Called with ranks->lock. */
static char *silent_text(const sgm__ranks *ranks)
{
    sgm__text text = {0};
    int32_t missing = 0;
    double first = 0;
    for (int32_t i = 0; i < ranks->count; i++) {
        double since = ranks->silent_since[i];
        if (since == 0)
            continue;
        append_rank(ranks, i, missing++, &text);
        first = first == 0 || since < first ? since : first;
    }
    if (missing == 0)
        return NULL;
    time_t moment = time(NULL) - (time_t)(sgm__now() - first);
    struct tm parts;
    char clock[16];
    strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&moment, &parts));
    sgm__text_append(&text, " %s not answered since %s", missing > 1 ? "have" : "has", clock);
    return sgm__text_take(&text);
}

char *sgm__ranks_silent(const sgm_trainer *trainer)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks == NULL)
        return NULL;
    pthread_mutex_lock(&ranks->lock);
    char *text = silent_text(ranks);
    pthread_mutex_unlock(&ranks->lock);
    return text;
}

/* Less than SILENT_SECONDS where operator.timeout is short, so that silence is told before the run fails. */
static double silent_seconds(const sgm__ranks *ranks)
{
    double third = ranks->options.timeout / 3;
    return third < SILENT_SECONDS ? third : SILENT_SECONDS;
}

/* Logs which ranks are silent. Of several waiting ranks only the first one that answers does so, and again
 * only when the wait is twice as long as at the last message or after a minute, as a rank may be slow in each
 * iteration. */
static void tell_silent(sgm__ranks *ranks, const char *what, double waited)
{
    bool speaks = waited >= 2 * ranks->waited_then || sgm__now() - ranks->spoke > QUIET_SECONDS;
    pthread_mutex_lock(&ranks->lock);
    for (int32_t i = 0; i < ranks->rank && speaks; i++)
        speaks = ranks->silent_since[i] > 0;
    char *text = speaks ? silent_text(ranks) : NULL;
    pthread_mutex_unlock(&ranks->lock);
    if (text == NULL)
        return;
    ranks->spoke = sgm__now();
    ranks->waited_then = waited;
    sgm__log(SGM_LOG_WARNING, ranks->trainer != NULL ? sgm_trainer_name(ranks->trainer) : "ranks",
             "%s, for which rank %d waits with %s: it is stopped, or busy with something that takes long; "
             "after %g seconds (operator.timeout) the run ends",
             text, ranks->rank, what, ranks->options.timeout);
    sgm__free(text);
}

/* In a long wait: asks all ranks every few seconds, and notes since when each has been silent. */
static void ask_all(sgm__ranks *ranks, const char *what, double began)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    double now = sgm__now();
    if (now - (ranks->asked > began ? ranks->asked : began) < silent_seconds(ranks))
        return;
    bool *silent = sgm__calloc((size_t)ranks->count, sizeof *silent);
    if (silent != NULL &&
        ranks->table->call(ranks->self, ANSWER_SECONDS, silent, message) == SGM_COMMUNICATOR_OK) {
        pthread_mutex_lock(&ranks->lock);
        for (int32_t i = 0; i < ranks->count; i++)
            ranks->silent_since[i] = !silent[i]                   ? 0
                                     : ranks->silent_since[i] > 0 ? ranks->silent_since[i]
                                                                  : began;
        pthread_mutex_unlock(&ranks->lock);
        tell_silent(ranks, what, now - began);
    }
    sgm__free(silent);
    ranks->asked = sgm__now();
}

/* Ends a wait whose work is complete: counts its time, and forgets silences, if any were noted. */
static void end_wait(sgm__ranks *ranks, double began)
{
    double seconds = sgm__now() - began;
    ranks->waited += seconds;
    if (ranks->asked < began) /* as nearly always */
        return;
    pthread_mutex_lock(&ranks->lock);
    memset(ranks->silent_since, 0, (size_t)ranks->count * sizeof *ranks->silent_since);
    pthread_mutex_unlock(&ranks->lock);
    if (ranks->spoke > began)
        sgm__log(SGM_LOG_WARNING, ranks->trainer != NULL ? sgm_trainer_name(ranks->trainer) : "ranks",
                 "all ranks answer again, after %.0f seconds", seconds);
}

/* Looks in pieces of a quarter of a second, so that silent ranks are noticed while there is still hope. */
sgm_status sgm__ranks_wait_for(sgm__ranks *ranks, int32_t ticket, const char *what, double seconds)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    double began = sgm__now();
    for (bool done = false; !done;) {
        double left = seconds - (sgm__now() - began);
        if (ranks->table->test(ranks->self, ticket, left < 0.25 ? left : 0.25, &done, message) !=
            SGM_COMMUNICATOR_OK)
            return fail(ranks, what, message);
        if (!done && left <= 0)
            return fail_waiting(ranks, what, seconds);
        if (!done)
            ask_all(ranks, what, began);
    }
    end_wait(ranks, began);
    return SGM_OK;
}

sgm_status sgm__ranks_wait(sgm__ranks *ranks, int32_t ticket, const char *what)
{
    return sgm__ranks_wait_for(ranks, ticket, what, ranks->options.timeout);
}

/* Tells the processor that the thread spins, which leaves more to the other thread of its core. */
static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Waits for memory that another process writes. Spins at first, if there is a processor for each rank,
 * since answers come within microseconds; then lets the MPI make progress between looks. */
sgm_status sgm__ranks_wait_until(sgm__ranks *ranks, bool (*has_come)(const void *user), const void *user,
                                 const char *what)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    if (has_come(user))
        return SGM_OK;
    double began = sgm__now(), spins = ranks->count <= sgm__processors() ? SPIN_SECONDS : 0;
    for (int look = 1; !has_come(user); look++) {
        bool done;
        if (look % LOOKS != 0) {
            pause_briefly();
            continue;
        }
        double waited = sgm__now() - began;
        if (waited < spins)
            sched_yield();
        else if (waited > ranks->options.timeout)
            return fail_waiting(ranks, what, ranks->options.timeout);
        else if (ranks->table->test(ranks->self, SGM_COMMUNICATOR_NO_WORK, REST_SECONDS, &done, message) !=
                 SGM_COMMUNICATOR_OK)
            return fail(ranks, what, message);
        ask_all(ranks, what, began);
    }
    end_wait(ranks, began);
    return SGM_OK;
}

sgm_status sgm__ranks_do(sgm__ranks *ranks, const sgm_communicator_work *work, const char *what)
{
    int32_t ticket;
    SGM_TRY(sgm__ranks_start(ranks, work, &ticket));
    return sgm__ranks_wait(ranks, ticket, what);
}

sgm_status sgm__ranks_send(sgm__ranks *ranks, void *data, size_t size, const char *what)
{
    return sgm__ranks_send_from(ranks, 0, data, size, what);
}

/* In pieces of SGM__MAXIMUM_SENT bytes, as counts of MPI have 32 bits. */
sgm_status sgm__ranks_send_from(sgm__ranks *ranks, int32_t from, void *data, size_t size, const char *what)
{
    for (size_t done = 0; done < size; done += SGM__MAXIMUM_SENT) {
        size_t count = size - done < SGM__MAXIMUM_SENT ? size - done : SGM__MAXIMUM_SENT;
        sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_BROADCAST,
                                      .type = SGM_COMMUNICATOR_BYTES,
                                      .data = (unsigned char *)data + done,
                                      .count = count,
                                      .root = from};
        SGM_TRY(sgm__ranks_do(ranks, &work, what));
    }
    return SGM_OK;
}
