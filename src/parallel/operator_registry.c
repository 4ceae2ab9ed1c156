/* What the registry shows of an operator: operator.every, operator.workers, operator.local.0.cost and the
 * like; and the table of an operator's settings (sgm_operator_settings), from which its options are checked
 * and the command reads texts.
 *
 * sgm_trainer_set_operator (operator_strategy.c) calls sgm__operator_publish once. Values are not copied into
 * the registry: entries are bound to functions, which read them when somebody looks, with the trainer's lock.
 * What ranks show is in collective/ranks_registry.c. */
#include "parallel/collective/ranks.h"
#include "parallel/operator.h"
#include "show/trainer_publish.h"

#include <stdio.h>

/* --- the operator --- */

static sgm_status get_every(const sgm__bound *bound, sgm_content *content)
{
    *content = sgm_integer_content(sgm__sharing_of(bound->trainer)->parallel->every);
    return SGM_OK;
}

/* A new number counts from the next iteration on: operator_run.c divides the iteration's number by it. */
static sgm_status set_every(const sgm__bound *bound, const sgm_content *content)
{
    sgm__sharing_of(bound->trainer)->parallel->every = content->as.integer;
    return SGM_OK;
}

static const sgm__access every_access = {.get = get_every, .set = set_every};

static sgm_status get_together(const sgm__bound *bound, sgm_content *content)
{
    *content = sgm_boolean_content(sgm__sharing_of(bound->trainer)->parallel->together);
    return SGM_OK;
}

static const sgm__access together_access = {.get = get_together};
static const sgm_option together_row = {.name = "together",
                                        .kind = SGM_KIND_BOOLEAN,
                                        .read_only = true,
                                        .doc =
                                            "gradients are summed between the workers' devices in this run"};
static const sgm_option workers_row = {
    .name = "workers", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "that train side by side"};
static const sgm_option merge_row = {.name = "merge",
                                     .kind = SGM_KIND_TEXT,
                                     .read_only = true,
                                     .doc = "what they merge: gradients or parameters"};
/* A row of the options struct sgm_operator_options. Row 0 is also the entry operator.every of the registry.
 */
#define OPERATOR(member, words, ...)                                                                         \
    {                                                                                                        \
        .option = {.name = #member, .doc = words, __VA_ARGS__}, SGM_MEMBER(sgm_operator_options, member)     \
    }

static const sgm_setting option_rows[] = {
    OPERATOR(every, "parameters: iterations from merge to merge; 0: at the end of each epoch",
             .kind = SGM_KIND_INTEGER, .minimum = 0, .maximum = 1e15, .live = true),
    OPERATOR(workers, "that train side by side; if not given: one for each name in handlers, else 2; mpi: 1",
             .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = SGM__MAXIMUM_WORKERS),
    OPERATOR(share, "of the processors: as many workers, where their number is not given",
             .kind = SGM_KIND_NUMBER, .minimum = 0, .maximum = 64),
    OPERATOR(handlers, "of the workers in turn, \"cpu reference\"; if not given: all have the run's",
             .kind = SGM_KIND_TEXT),
    OPERATOR(threads, "of each worker; if not given: the run's, divided by the workers",
             .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = 1024),
    OPERATOR(timeout, "mpi: how long a rank waits for another one before the run fails; if not given: 60",
             .kind = SGM_KIND_NUMBER, .unit = "seconds", .minimum = 1, .maximum = 1e6),
    OPERATOR(check_every,
             "mpi: iterations from one comparison of the ranks' states to the next; if not given: 1000",
             .kind = SGM_KIND_INTEGER, .minimum = 1, .maximum = 1e15),
    OPERATOR(bucket, "mpi: size of a bucket of gradients that are summed at once; if not given: 4 MiB",
             .kind = SGM_KIND_INTEGER, .unit = "bytes", .minimum = 1024, .maximum = 1 << 30),
    OPERATOR(bfloat16, "mpi: gradients are sent as bfloat16; rounding errors are added to the next ones",
             .kind = SGM_KIND_BOOLEAN),
    OPERATOR(sharded,
             "mpi: each rank updates a part of the parameters, and keeps the optimiser state of that part",
             .kind = SGM_KIND_BOOLEAN),
};

const sgm_setting *sgm_operator_settings(size_t *count)
{
    *count = sizeof option_rows / sizeof *option_rows;
    return option_rows;
}

/* --- each worker --- */

/* A number that the registry shows of each worker as operator.local.N.NAME, and the function that reads it.
 */
typedef struct worker_row {
    sgm_option option;
    double (*get)(const sgm__worker *worker);
} worker_row;

static double get_cost(const sgm__worker *worker)
{
    return sgm__progress_of(worker->replica)->newest_loss;
}

static double get_examples(const sgm__worker *worker)
{
    return (double)worker->examples;
}

static double get_iteration(const sgm__worker *worker)
{
    return (double)sgm__position_of(worker->replica)->iteration;
}

static double get_busy(const sgm__worker *worker)
{
    return worker->seconds;
}

static const worker_row rows[] = {
    {{.name = "cost", .kind = SGM_KIND_NUMBER, .read_only = true, .doc = "of the worker's newest examples"},
     get_cost},
    {{.name = "examples",
      .kind = SGM_KIND_INTEGER,
      .read_only = true,
      .doc = "the worker's in the newest iteration"},
     get_examples},
    {{.name = "iteration", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "iterations of the worker"},
     get_iteration},
    {{.name = "busy",
      .kind = SGM_KIND_NUMBER,
      .unit = "seconds",
      .read_only = true,
      .doc = "time spent computing in this run"},
     get_busy},
};

/* The entry is bound to the worker's replica; the worker is found by the replica's owner and number. */
static sgm_status get_number(const sgm__bound *bound, sgm_content *content)
{
    const worker_row *row = bound->row;
    const sgm_trainer *replica = bound->trainer;
    double value = row->get(&sgm__sharing_of(sgm__sharing_of(replica)->owner)
                                 ->parallel->workers[sgm__sharing_of(replica)->worker]);
    *content = row->option.kind == SGM_KIND_INTEGER ? sgm_integer_content((int64_t)value)
                                                    : sgm_number_content(value);
    return SGM_OK;
}

static const sgm__access number_access = {.get = get_number};

static sgm_status publish_rows(const sgm__worker *worker, sgm_registry *registry)
{
    char prefix[48];
    snprintf(prefix, sizeof prefix, "operator.local.%d.", worker->number);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        SGM_TRY(
            sgm__publish_value(worker->replica, registry, prefix, &rows[i].option, &number_access, &rows[i]));
    return SGM_OK;
}

static const sgm_option number_row = {
    .name = "worker", .kind = SGM_KIND_INTEGER, .read_only = true, .doc = "number of the worker, from 0"};

/* Makes the registry for the results of a worker's local hooks and shows it as operator.local.N.shared. It
 * gets no tag, so that the identifier shared.NAME still means the trainer's own result. */
static sgm_status publish_results(sgm__worker *worker, sgm_registry *registry)
{
    worker->results = sgm_registry_create();
    if (worker->results == NULL)
        return SGM_ERROR_MEMORY;
    sgm__hooks_of_worker(sgm__hooks_of(worker->replica), worker->number, worker->results);
    return sgm_registry_put(registry, "shared", worker->results);
}

/* Shows a worker twice: in the trainer's registry as operator.local.N, and its number in the replica's own
 * registry as "worker", which local hooks read. */
static sgm_status publish_worker(sgm__worker *worker, sgm_registry *list)
{
    char name[16];
    sgm_registry *local = sgm__registry_of(worker->replica), *registry = sgm_registry_create();
    if (registry == NULL)
        return SGM_ERROR_MEMORY;
    snprintf(name, sizeof name, "%d", worker->number);
    sgm_status status = publish_rows(worker, registry);
    if (status == SGM_OK)
        status = publish_results(worker, registry);
    if (status == SGM_OK)
        status = sgm_registry_put(list, name, registry);
    sgm_registry_free(registry);
    SGM_TRY(status);
    SGM_TRY(sgm_registry_define(local, &number_row));
    return sgm_registry_set_own(local, number_row.name, sgm_integer_content(worker->number));
}

/* `registry` becomes the trainer's "operator", `list` its child "local". A gradient operator has no `every`;
 * it shows instead whether the workers' devices sum among themselves. */
static sgm_status publish(sgm_trainer *trainer, sgm_registry *registry, sgm_registry *list)
{
    const sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    SGM_TRY(sgm_registry_add_tag(registry, "operator"));
    SGM_TRY(sgm_registry_define(registry, &workers_row));
    SGM_TRY(sgm_registry_define(registry, &merge_row));
    SGM_TRY(sgm_registry_set_own(registry, workers_row.name, sgm_integer_content(parallel->count)));
    SGM_TRY(sgm_registry_set_own(registry, merge_row.name,
                                 sgm_text_content(parallel->merges_gradients ? "gradients" : "parameters")));
    SGM_TRY(parallel->merges_gradients
                ? sgm__publish_value(trainer, registry, "operator.", &together_row, &together_access, NULL)
                : sgm__publish_value(trainer, registry, "operator.", &option_rows[0].option, &every_access,
                                     NULL));
    for (int32_t i = 0; i < parallel->count; i++)
        SGM_TRY(publish_worker(&parallel->workers[i], list));
    SGM_TRY(sgm__ranks_publish(trainer, registry));
    SGM_TRY(sgm_registry_put(registry, "local", list));
    return sgm_registry_put(sgm__registry_of(trainer), "operator", registry);
}

sgm_status sgm__operator_publish(sgm_trainer *trainer)
{
    sgm_registry *registry = sgm_registry_create(), *list = sgm_registry_create();
    sgm_status status =
        registry != NULL && list != NULL ? publish(trainer, registry, list) : SGM_ERROR_MEMORY;
    sgm_registry_free(list);
    sgm_registry_free(registry);
    return status;
}
