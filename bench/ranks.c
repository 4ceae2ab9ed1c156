/* What ranks cost and give: mpirun -n 2 build/release/bench/ranks [SIZES [BATCH [THREADS [BUCKET
 * [SECONDS]]]]]
 *
 * First what the connection does: sums of several sizes over all ranks, the least time of some. Then training
 * of dense layers (784-1024-1024-10, a minibatch of 100 for all ranks together): milliseconds of an
 * iteration, the middle and the least, what the workers compute of it, and how long this rank waits for
 * others. Without mpirun it is one rank; BUCKET -1: no operator at all.
 */
#include "training/ranks.h"
#include "base/base.h"
#include "measure.h"
#include "random_data.h"

#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST 65536

typedef struct stopwatch {
    double last, end, times[MOST];
    size_t count;
} stopwatch;

static bool watch(void *user, const sgm_training_progress *progress)
{
    stopwatch *clock = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    double moment = sgm__now();
    if (progress->iteration == 10)
        clock->end += moment;
    if (progress->iteration > 10 && clock->count < MOST)
        clock->times[clock->count++] = moment - clock->last;
    clock->last = moment;
    return progress->iteration < 10 || moment < clock->end;
}

/* "784-1024-10" as layers. */
static char *layers_of(const char *sizes, int64_t *inputs, int64_t *classes)
{
    sgm__text text = {0};
    int64_t size = 0;
    for (const char *at = sizes; at != NULL; at = strchr(at, '-') != NULL ? strchr(at, '-') + 1 : NULL) {
        size = strtoll(at, NULL, 10);
        if (at == sizes)
            *inputs = size;
        sgm__text_append(&text,
                         at == sizes               ? "input(%lld)"
                         : strchr(at, '-') == NULL ? " + dense(%lld) + softmax_cross_entropy"
                                                   : " + dense(%lld, relu)",
                         (long long)size);
    }
    *classes = size;
    return sgm__text_take(&text);
}

static void complain(void)
{
    fprintf(stderr, "ranks: %s\n", sgm_last_error());
    exit(1);
}

static void measure_sums(void)
{
    static const size_t sizes[] = {8, 4096, 65536, 1 << 20, 4 << 20, 16 << 20};
    const sgm__rank_options options = {.timeout = 60};
    sgm__ranks *ranks = sgm__ranks_open(&options);
    if (ranks == NULL)
        complain();
    float *data = sgm__calloc(sizes[5], 1);
    for (size_t i = 0; i < 6 && ranks->count > 1 && data != NULL; i++) {
        const sgm_communicator_work work = {
            .kind = SGM_COMMUNICATOR_SUM, .data = data, .count = sizes[i] / 4};
        double least = 1e9, began = sgm__now();
        for (int again = 0; again < 200 && (again < 3 || sgm__now() - began < 0.4 || again % 4 != 0);
             again++) {
            double start = sgm__now();
            if (sgm__ranks_do(ranks, &work, "a sum") != SGM_OK)
                complain();
            double took = sgm__now() - start;
            least = took < least ? took : least;
            double late = sgm__now() - began > 0.4; /* all stop at the same number */
            const sgm_communicator_work agree = {
                .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = &late, .count = 1};
            if (sgm__ranks_do(ranks, &agree, "a sum") != SGM_OK)
                complain();
            if (late > 0)
                break;
        }
        if (ranks->rank == 0)
            printf("  a sum of %9zu bytes over %d ranks: %10.3f ms\n", sizes[i], ranks->count, least * 1e3);
    }
    sgm__free(data);
    sgm__ranks_close(ranks);
}

int main(int argc, char **argv)
{
    static stopwatch clock;
    const char *sizes = argc > 1 ? argv[1] : "784-1024-1024-10";
    long long batch = argc > 2 ? atoll(argv[2]) : 100, bucket = argc > 4 ? atoll(argv[4]) : 0;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    int64_t inputs = 0, classes = 0;
    char *layers = layers_of(sizes, &inputs, &classes);
    clock.end = argc > 5 ? atof(argv[5]) : 3;
    measure_sums();
    sgm_env *env = sgm_env_create("bench", .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "bench");
    sgm_dataset *dataset = random_classes(4000, inputs, classes);
    sgm_trainer_network(trainer, layers);
    sgm_trainer_data(trainer, sgm_minibatches(dataset, .size = batch, .drop_last = true));
    sgm_trainer_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    if (bucket >= 0)
        sgm_trainer_operator(trainer, sgm_mpi_operator(.workers = 1, .bucket = bucket));
    sgm_trainer_on_progress(trainer, watch, &clock);
    sgm_status status = sgm_trainer_run(trainer, .iterations = 1000000);
    if (status != SGM_OK && status != SGM_ERROR_INTERRUPTED)
        complain();
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    qsort(clock.times, clock.count, sizeof(double), compare);
    double each = 1e3 / (double)(clock.count + 10);
    if ((ranks == NULL || ranks->rank == 0) && clock.count > 0)
        printf(
            "%s, batch %lld, %d rank%s of %d thread%s: %.3f ms, least %.3f; computing %.3f, waiting %.3f\n",
            sizes, batch, ranks != NULL ? ranks->count : 1, ranks != NULL && ranks->count > 1 ? "s" : "",
            threads, threads > 1 ? "s" : "", clock.times[clock.count / 2] * 1e3, clock.times[0] * 1e3,
            ranks != NULL ? ranks->computed * each : 0, ranks != NULL ? ranks->waited * each : 0);
    sgm_dataset_free(dataset);
    sgm_env_free(env);
    sgm__free(layers);
    return 0;
}
