/* Ranks: joining, starting works and waiting for them. */
#include "training/ranks.h"

#include "base/plugin.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define PACKAGES "Debian: libopenmpi-dev openmpi-bin, then build again"
#define ANSWER_SECONDS 1.0 /* that a rank has to say that it is there */
/* Of waiting for memory: */
#define LOOKS 64 /* between two glances at the clock */
#define SPIN_SECONDS 200e-6
#define REST_SECONDS 20e-6

/* --- alone --- */

static sgm_communicator_result open_alone(void **self, int32_t *rank, int32_t *size, double seconds,
                                          char *message)
{
    (void)seconds;
    (void)message;
    *self = NULL;
    *rank = 0;
    *size = 1;
    return SGM_COMMUNICATOR_OK;
}

static void close_alone(void *self)
{
    (void)self;
}

static const char *place_alone(void *self, int32_t rank)
{
    (void)self;
    (void)rank;
    return "this process";
}

/* All sums are there already. */
static sgm_communicator_result start_alone(void *self, const sgm_communicator_work *work, int32_t *ticket,
                                           char *message)
{
    (void)self;
    (void)work;
    (void)message;
    *ticket = 0;
    return SGM_COMMUNICATOR_OK;
}

static sgm_communicator_result test_alone(void *self, int32_t ticket, double seconds, bool *done,
                                          char *message)
{
    (void)self;
    (void)ticket;
    (void)seconds;
    (void)message;
    *done = true;
    return SGM_COMMUNICATOR_OK;
}

static sgm_communicator_result call_alone(void *self, double seconds, bool *silent, char *message)
{
    (void)self;
    (void)seconds;
    (void)message;
    silent[0] = false;
    return SGM_COMMUNICATOR_OK;
}

static const sgm_communicator alone = {.version = SGM_COMMUNICATOR_VERSION,
                                       .name = "one rank",
                                       .open = open_alone,
                                       .close = close_alone,
                                       .place = place_alone,
                                       .start = start_alone,
                                       .test = test_alone,
                                       .call = call_alone,
                                       .fail = close_alone};

/* --- joining --- */

/* Open MPI's mpirun, MPICH's and those like it; Slurm last, as it may have started an mpirun's helpers. */
int sgm__launched_processes(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"};
    const char *count = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && count == NULL; i++)
        count = getenv(sizes[i]);
    if (count == NULL && getenv("SLURM_PROCID") != NULL)
        count = getenv("SLURM_STEP_NUM_TASKS");
    return count != NULL ? atoi(count) : 0;
}

int sgm__launched_number(void)
{
    static const char *const numbers[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    const char *number = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && number == NULL; i++)
        number = getenv(numbers[i]);
    return number != NULL && sgm__launched_processes() > 1 ? atoi(number) : -1;
}

const char *sgm__launcher(void)
{
    bool mpirun = getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("MPI_LOCALNRANKS") != NULL;
    return getenv("SLURM_PROCID") != NULL && !mpirun ? "srun" : "mpirun";
}

static bool has_launcher(void)
{
    return sgm__launched_processes() > 0 || getenv("PMIX_RANK") != NULL;
}

static sgm_status join(sgm__ranks *ranks)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    const void *table = &alone;
    if (has_launcher())
        SGM_TRY(sgm__plugin_open("mpi", SGM_COMMUNICATOR_VERSION, PACKAGES, &table));
    ranks->table = table;
    if (ranks->table->open(&ranks->self, &ranks->rank, &ranks->count, ranks->options.timeout, message) !=
        SGM_COMMUNICATOR_OK)
        return sgm_fail(SGM_ERROR_STATE, "the ranks do not find each other: %s", message);
    if (ranks->count > 1 || sgm__launched_processes() < 2)
        return SGM_OK;
    ranks->table->close(ranks->self);
    return sgm_fail(
        SGM_ERROR_STATE,
        "%s has started %d processes, but each of them is alone for %s: its launcher has to speak "
        "with the processes (srun --mpi=pmix, or the mpirun of the same MPI)",
        sgm__launcher(), sgm__launched_processes(), ranks->table->name);
}

sgm__ranks *sgm__ranks_open(const sgm__rank_options *options)
{
    sgm__ranks *ranks = sgm__calloc(1, sizeof *ranks);
    if (ranks == NULL)
        return NULL;
    ranks->options = *options;
    pthread_mutex_init(&ranks->lock, NULL);
    bool joined = join(ranks) == SGM_OK;
    if (joined && sgm__ranks_know_others(ranks, options->sharded && ranks->rank == 0) == SGM_OK)
        return ranks;
    if (joined)
        ranks->table->close(ranks->self);
    pthread_mutex_destroy(&ranks->lock);
    sgm__free(ranks);
    return NULL;
}

void sgm__ranks_close(sgm__ranks *ranks)
{
    if (ranks == NULL)
        return;
    sgm__near_close(ranks->near);
    ranks->table->close(ranks->self);
    sgm__ranks_forget_wishes(ranks);
    sgm__free_aligned(ranks->flat);
    sgm__free(ranks->parts);
    sgm__free(ranks->places);
    sgm__free(ranks->buckets);
    sgm__free(ranks->shared);
    sgm__free(ranks->narrowed);
    sgm__free(ranks->lost);
    for (size_t i = 0; i < ranks->owner_count; i++)
        sgm__free(ranks->owners[i].parameter);
    sgm__free(ranks->owners);
    for (size_t i = 0; i < ranks->slot_count; i++)
        sgm__free(ranks->slots[i].state);
    sgm__free(ranks->slots);
    sgm_bundle_free(ranks->others);
    sgm__free(ranks->accounts);
    sgm__free(ranks->before);
    sgm__free(ranks->rows);
    sgm__text_free(&ranks->lines);
    pthread_mutex_destroy(&ranks->lock);
    sgm__free(ranks);
}

sgm__ranks *sgm__trainer_ranks(const sgm_trainer *trainer)
{
    const sgm_operator *team = trainer->team;
    return team != NULL ? team->ranks : NULL;
}

bool sgm__trainer_follows(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && ranks->rank > 0;
}

void sgm__ranks_describe(const sgm_trainer *trainer, char *text, size_t size)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    *text = '\0';
    if (ranks != NULL)
        snprintf(text, size, ", %d rank%s of %d worker%s%s", ranks->count, ranks->count > 1 ? "s" : "",
                 trainer->team->count, trainer->team->count > 1 ? "s" : "",
                 ranks->count > 1 && ranks->near != NULL ? " that share memory" : "");
}

/* --- works --- */

static sgm_status fail(sgm__ranks *ranks, const char *what, const char *message)
{
    sgm__ranks_fail(ranks);
    return sgm_fail(SGM_ERROR_STATE, "%s of rank %d (%s): %s", what, ranks->rank,
                    ranks->table->place(ranks->self, ranks->rank), message);
}

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
        return sgm_fail(SGM_ERROR_STATE, "the other ranks cannot be reached any more");
    if (ranks->table->start(ranks->self, work, ticket, message) != SGM_COMMUNICATOR_OK)
        return fail(ranks, "a message", message);
    ranks->bytes += work->count * sizes[work->type];
    return SGM_OK;
}

/* Names those who do not answer; *missing: how many. */
static sgm_status find_silent(sgm__ranks *ranks, const char *what, sgm__text *names, int32_t *missing)
{
    char message[SGM_COMMUNICATOR_MESSAGE] = "";
    bool *silent = sgm__calloc((size_t)ranks->count, sizeof *silent);
    *missing = 0;
    if (silent == NULL)
        return SGM_ERROR_MEMORY;
    bool asked = ranks->table->call(ranks->self, ANSWER_SECONDS, silent, message) == SGM_COMMUNICATOR_OK;
    for (int32_t i = 0; i < ranks->count && asked; i++)
        if (silent[i] && (*missing)++ < 8)
            sgm__text_append(names, "%srank %d (%s)", *missing > 1 ? ", " : "", i,
                             ranks->table->place(ranks->self, i));
    if (*missing > 8)
        sgm__text_append(names, ", ...");
    sgm__free(silent);
    return asked ? SGM_OK : fail(ranks, what, message);
}

static sgm_status fail_waiting(sgm__ranks *ranks, const char *what, double seconds)
{
    sgm__text names = {0};
    int32_t missing;
    SGM_TRY(find_silent(ranks, what, &names, &missing));
    sgm__ranks_fail(ranks);
    sgm_status status =
        missing > 0
            ? sgm_fail(
                  SGM_ERROR_STATE,
                  "rank %d has waited for %s for %g seconds (operator.timeout), and there is no answer from "
                  "%s: it has ended, is stopped, or takes longer than that",
                  ranks->rank, what, seconds, names.data)
            : sgm_fail(SGM_ERROR_STATE,
                       "rank %d has waited for %s for %g seconds (operator.timeout), though all ranks are "
                       "there: they do not do the same, or the network is slower than that",
                       ranks->rank, what, seconds);
    sgm__text_free(&names);
    return status;
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
    }
    ranks->waited += sgm__now() - began;
    return SGM_OK;
}

sgm_status sgm__ranks_wait(sgm__ranks *ranks, int32_t ticket, const char *what)
{
    return sgm__ranks_wait_for(ranks, ticket, what, ranks->options.timeout);
}

static void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Others may need the processor: after a moment, or at once where there are fewer than ranks, it is theirs.
 */
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
    }
    ranks->waited += sgm__now() - began;
    return SGM_OK;
}

sgm_status sgm__ranks_do(sgm__ranks *ranks, const sgm_communicator_work *work, const char *what)
{
    int32_t ticket;
    SGM_TRY(sgm__ranks_start(ranks, work, &ticket));
    return sgm__ranks_wait(ranks, ticket, what);
}
