/* What the registry shows of ranks: operator.rank, operator.intra_node, and for each rank
 * operator.ranks.3.waiting and the like.
 *
 * Each rank keeps its own account (seconds of computing and waiting, bytes, examples). In a meeting, about
 * once a second, all ranks exchange their accounts (sgm__ranks_account), so that each can show those of all;
 * rates are differences of the two newest ones. The numbers are guarded by ranks->lock and read without the
 * trainer's lock, since they are most wanted while a step waits for a rank that does not come. */
#include "parallel/collective/ranks.h"
#include "show/trainer_publish.h"

#include <stdio.h>

/* Reads a number of a rank from the accounts. Called with ranks->lock. */
typedef double (*rank_number)(const sgm__ranks *ranks, int32_t rank);

/* An entry of the registry: one number of one rank. ranks->rows has KINDS of them for each rank. */
typedef struct sgm__rank_row {
    sgm_option option;
    rank_number get;
    int32_t rank;
} sgm__rank_row;

/* Examples per second between the two newest accounts of the rank. */
static double get_rate(const sgm__ranks *ranks, int32_t rank)
{
    const sgm__rank_account *now = &ranks->accounts[rank], *before = &ranks->before[rank];
    double seconds = now->moment - before->moment;
    return seconds > 0 ? (now->examples - before->examples) / seconds : 0;
}

static double get_computing(const sgm__ranks *ranks, int32_t rank)
{
    return ranks->accounts[rank].computed;
}

static double get_waiting(const sgm__ranks *ranks, int32_t rank)
{
    return ranks->accounts[rank].waited;
}

static double get_traffic(const sgm__ranks *ranks, int32_t rank)
{
    return ranks->accounts[rank].bytes;
}

/* Counts up to the present moment, so that the number grows while this rank waits. */
static double get_silent(const sgm__ranks *ranks, int32_t rank)
{
    double since = ranks->silent_since[rank];
    return since > 0 ? sgm__now() - since : 0;
}

static const sgm__rank_row kinds[] = {
    {.option = {.name = "rate",
                .kind = SGM_KIND_NUMBER,
                .unit = "examples/s",
                .read_only = true,
                .doc = "examples of the rank a second, since it told before"},
     .get = get_rate},
    {.option = {.name = "computing",
                .kind = SGM_KIND_NUMBER,
                .unit = "seconds",
                .read_only = true,
                .doc = "time that the rank's workers have computed in this run"},
     .get = get_computing},
    {.option = {.name = "waiting",
                .kind = SGM_KIND_NUMBER,
                .unit = "seconds",
                .read_only = true,
                .doc = "time that the rank has waited for others in this run; the slowest waits least"},
     .get = get_waiting},
    {.option = {.name = "traffic",
                .kind = SGM_KIND_NUMBER,
                .unit = "bytes",
                .read_only = true,
                .doc = "that the rank has had summed or sent in this run"},
     .get = get_traffic},
    {.option = {.name = "silent",
                .kind = SGM_KIND_NUMBER,
                .unit = "seconds",
                .read_only = true,
                .doc = "since which the rank has not answered, while this one waits for it; 0: it answers"},
     .get = get_silent},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static sgm_status get_number(const sgm__bound *bound, sgm_content *content)
{
    const sgm__rank_row *row = bound->row;
    sgm__ranks *ranks = sgm__trainer_ranks(bound->trainer);
    pthread_mutex_lock(&ranks->lock);
    *content = sgm_number_content(row->get(ranks, row->rank));
    pthread_mutex_unlock(&ranks->lock);
    return SGM_OK;
}

/* `guarded`: the registry calls these functions without the trainer's lock; get_number takes ranks->lock. */
static const sgm__access number_access = {.get = get_number, .guarded = true};

/* Copies the rows in `kinds` for one rank and binds entries of the registry to the copies, which live as long
 * as the ranks. */
static sgm_status publish_rank(sgm_trainer *trainer, sgm_registry *list, int32_t rank)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    char name[16], prefix[48];
    sgm_registry *registry = sgm_registry_create();
    sgm_status status = registry != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    snprintf(name, sizeof name, "%d", rank);
    snprintf(prefix, sizeof prefix, "operator.ranks.%d.", rank);
    for (size_t i = 0; i < KINDS && status == SGM_OK; i++) {
        sgm__rank_row *row = &ranks->rows[(size_t)rank * KINDS + i];
        *row = kinds[i];
        row->rank = rank;
        const sgm_option *option = sgm__trainer_keep_row(trainer, &row->option);
        status = option != NULL ? sgm__publish_value(trainer, registry, prefix, option, &number_access, row)
                                : SGM_ERROR_MEMORY;
    }
    if (status == SGM_OK)
        status = sgm_registry_put(list, name, registry);
    sgm_registry_free(registry);
    return status;
}

static const sgm_option rank_row = {
    .name = "rank", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "number of this process, from 0"};

static const sgm_option intra_node_row = {.name = "intra_node",
                                          .kind = SGM_KIND_BOOLEAN,
                                          .read_only = true,
                                          .doc =
                                              "whether gradients are read where they lie, and do not travel"};

static sgm_status get_intra_node(const sgm__bound *bound, sgm_content *content)
{
    *content = sgm_boolean_content(sgm__trainer_ranks(bound->trainer)->node != NULL);
    return SGM_OK;
}

static const sgm__access intra_node_access = {.get = get_intra_node};

static sgm_status publish(sgm_trainer *trainer, sgm_registry *registry, sgm_registry *list)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    SGM_TRY(sgm__publish_value(trainer, registry, "operator.", &intra_node_row, &intra_node_access, NULL));
    SGM_TRY(sgm_registry_define(registry, &rank_row));
    SGM_TRY(sgm_registry_set_own(registry, rank_row.name, sgm_integer_content(ranks->rank)));
    for (int32_t i = 0; i < ranks->count; i++)
        SGM_TRY(publish_rank(trainer, list, i));
    return sgm_registry_put(registry, "ranks", list);
}

/* Called once for a trainer. The arrays are freed by sgm__ranks_close, also if this fails half-way. */
sgm_status sgm__ranks_publish(sgm_trainer *trainer, sgm_registry *registry)
{
    sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    if (ranks == NULL)
        return SGM_OK;
    size_t count = (size_t)ranks->count;
    ranks->rows = sgm__calloc(count * KINDS, sizeof *ranks->rows);
    ranks->accounts = sgm__calloc(count, sizeof *ranks->accounts);
    ranks->before = sgm__calloc(count, sizeof *ranks->before);
    ranks->coming = sgm__calloc(count, sizeof *ranks->coming);
    sgm_registry *list = sgm_registry_create();
    bool made = ranks->rows != NULL && ranks->accounts != NULL && ranks->before != NULL &&
                ranks->coming != NULL && list != NULL;
    sgm_status status = made ? publish(trainer, registry, list) : SGM_ERROR_MEMORY;
    sgm_registry_free(list);
    return status;
}

/* Readers hold the same lock, so they see all accounts of a run or none. */
void sgm__ranks_forget_accounts(sgm__ranks *ranks)
{
    pthread_mutex_lock(&ranks->lock);
    memset(ranks->accounts, 0, (size_t)ranks->count * sizeof *ranks->accounts);
    pthread_mutex_unlock(&ranks->lock);
}

/* Gathers the accounts of all ranks. They arrive in `coming`, without the lock, which must not be held while
 * this rank waits for others; the lock is taken only to copy them to where readers look. */
sgm_status sgm__ranks_account(sgm__ranks *ranks)
{
    size_t bytes = (size_t)ranks->count * sizeof *ranks->coming;
    ranks->told = sgm__now();
    ranks->coming[ranks->rank] = (sgm__rank_account){.moment = ranks->told - ranks->began,
                                                     .computed = ranks->computed,
                                                     .waited = ranks->waited,
                                                     .bytes = (double)ranks->bytes,
                                                     .examples = (double)ranks->examples};
    const sgm_communicator_work work = {.kind = SGM_COMMUNICATOR_GATHER,
                                        .type = SGM_COMMUNICATOR_FLOAT64,
                                        .data = ranks->coming,
                                        .count = sizeof *ranks->coming / sizeof(double)};
    SGM_TRY(sgm__ranks_do(ranks, &work, "the accounts"));
    pthread_mutex_lock(&ranks->lock);
    memcpy(ranks->before, ranks->accounts, bytes);
    memcpy(ranks->accounts, ranks->coming, bytes);
    pthread_mutex_unlock(&ranks->lock);
    return SGM_OK;
}
