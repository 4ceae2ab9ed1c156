/* Joining and leaving: the processes that a launcher (mpirun, srun) has started become ranks of one training.
 *
 * sgm__ranks_open is called when an MPI operator is made (parallel/operator.c). It loads the plug-in
 * libsigma-mpi, whose table of functions (communicator.h) carries all messages; no other file of the library
 * knows MPI. A process that no launcher has started is a single rank, for which the table `alone` stands in,
 * so that the same program also runs by itself. What ranks do together is in the other files of this folder;
 * ranks.h lists them. */
#include "parallel/collective/ranks.h"

#include "base/plugin.h"

#include <stdio.h>
#include <stdlib.h>

#define PACKAGES "Debian: libopenmpi-dev openmpi-bin, then build again"

/* --- the communicator of a single rank: nothing is carried --- */

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

/* Every work is complete at once: the sum over one rank, and what it broadcasts to itself, are in place. */
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

/* Each launcher tells in variables of the environment how many processes it has started: Open MPI's mpirun,
 * MPICH's and those that are built on it, and Slurm's srun. Slurm's variables are read last, as they are also
 * set where srun has only started the helpers of an mpirun. */
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

/* The order is that of sgm__launched_processes. A number counts only where there are several processes: srun
 * sets SLURM_PROCID for a single one, too. */
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

/* Whether a launcher has started this process. PMIX_RANK alone is enough: a launcher need not tell the number
 * of processes in the environment. */
static bool has_launcher(void)
{
    return sgm__launched_processes() > 0 || getenv("PMIX_RANK") != NULL;
}

/* Opens the communicator, which waits for all ranks up to operator.timeout. If the launcher has started
 * several processes and each of them is alone, MPI and launcher do not understand each other (srun without
 * --mpi=pmix, say); each process would train the whole of the data, so that is an error. */
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

/* Where optimiser states are sharded, rank 0 begins with an empty `others`: it knows that no other rank has a
 * state yet. */
static sgm_status know_others(sgm__ranks *ranks)
{
    bool knows = ranks->options.sharded && ranks->rank == 0;
    ranks->others = knows ? sgm_bundle_create() : NULL;
    return ranks->others != NULL || !knows ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm__ranks *sgm__ranks_open(const sgm__rank_options *options)
{
    sgm__ranks *ranks = sgm__calloc(1, sizeof *ranks);
    if (ranks == NULL)
        return NULL;
    ranks->options = *options;
    pthread_mutex_init(&ranks->lock, NULL);
    bool joined = join(ranks) == SGM_OK;
    if (joined)
        ranks->silent_since = sgm__calloc((size_t)ranks->count, sizeof *ranks->silent_since);
    if (joined && ranks->silent_since != NULL && know_others(ranks) == SGM_OK)
        return ranks;
    if (joined)
        ranks->table->close(ranks->self);
    sgm__free(ranks->silent_since);
    pthread_mutex_destroy(&ranks->lock);
    sgm__free(ranks);
    return NULL;
}

void sgm__ranks_close(sgm__ranks *ranks)
{
    if (ranks == NULL)
        return;
    sgm__intra_node_close(ranks->node);
    ranks->table->close(ranks->self);
    sgm__ranks_forget_commands(ranks);
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
    sgm__free(ranks->coming);
    sgm__free(ranks->silent_since);
    sgm__free(ranks->rows);
    sgm__text_free(&ranks->lines);
    pthread_mutex_destroy(&ranks->lock);
    sgm__free(ranks);
}

bool sgm__ranks_follow(const sgm_trainer *trainer)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    return ranks != NULL && ranks->rank > 0;
}

void sgm__ranks_describe(const sgm_trainer *trainer, char *text, size_t size)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    *text = '\0';
    if (ranks != NULL)
        snprintf(text, size, ", %d rank%s of %d worker%s%s", ranks->count, ranks->count > 1 ? "s" : "",
                 parallel->count, parallel->count > 1 ? "s" : "",
                 ranks->count > 1 && ranks->node != NULL ? " that share memory" : "");
}
