/* What ranks cost and give: mpirun -n 2 build/release/bench/ranks [SIZES [BATCH [THREADS [BUCKET [SECONDS
 * [LATENCY BANDWIDTH]]]]]]
 *
 * First what the connection does: sums of several sizes over all ranks, the minimum time of some. Then
 * training of dense layers (784-1024-1024-10, a minibatch of 100 for all ranks together), one_node ones first
 * as they are, then with gradients summed in one piece and in pieces of BUCKET bytes: milliseconds of an
 * iteration, the middle and the minimum, what the workers compute of it, and how long this rank waits for
 * others. Last what the model of the manual (chapter 24) says of both, with the connection's LATENCY in
 * seconds and BANDWIDTH in bytes a second, or as it was measured. Without mpirun it is one rank; BUCKET -1:
 * no operator at all.
 */
#include "parallel/collective/ranks.h"
#include "base/base.h"
#include "handlers/session.h"
#include "random_data.h"
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WARM_UP_STEPS 10

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

/* A sum of b bytes takes latency + b / bandwidth. */
typedef struct connection {
    double latency, bandwidth;
} connection;

/* The minimum time of some sums; all ranks stop at the same one. */
static double time_sum(sgm__ranks *ranks, float *data, size_t bytes)
{
    const sgm_communicator_work work = {
        .kind = SGM_COMMUNICATOR_SUM, .data = data, .count = bytes / sizeof *data};
    double minimum = 1e9, began = sgm__now(), late = 0;
    for (int again = 0; again < 200 && late == 0; again++) {
        double start = sgm__now();
        if (sgm__ranks_do(ranks, &work, "a sum") != SGM_OK)
            complain();
        double took = sgm__now() - start;
        minimum = took < minimum ? took : minimum;
        late = again >= 3 && sgm__now() - began > 0.4;
        const sgm_communicator_work agree = {
            .kind = SGM_COMMUNICATOR_SUM, .type = SGM_COMMUNICATOR_FLOAT64, .data = &late, .count = 1};
        if (sgm__ranks_do(ranks, &agree, "a sum") != SGM_OK)
            complain();
    }
    return minimum;
}

static connection measure_sums(void)
{
    static const size_t sizes[] = {8, 4096, 65536, 1 << 20, 4 << 20, 16 << 20};
    enum { COUNT = sizeof sizes / sizeof *sizes, LARGE = COUNT - 2 };
    const sgm__rank_options options = {.timeout = 60};
    double times[COUNT] = {0};
    sgm__ranks *ranks = sgm__ranks_open(&options);
    float *data = sgm__calloc(sizes[COUNT - 1], 1);
    if (ranks == NULL || data == NULL)
        complain();
    for (size_t i = 0; i < COUNT && ranks->count > 1; i++) {
        times[i] = time_sum(ranks, data, sizes[i]);
        if (ranks->rank == 0)
            printf("  a sum of %9zu bytes over %d ranks: %10.3f ms\n", sizes[i], ranks->count,
                   times[i] * 1e3);
    }
    sgm__free(data);
    sgm__ranks_close(ranks);
    return (connection){times[0], (double)sizes[LARGE] / (times[LARGE] - times[0])};
}

/* --- training --- */

#define MAXIMUM_PIECES 256

/* Seconds of an iteration, and what the model wants to know of it. */
typedef struct outcome {
    double middle, minimum, computing, waiting;
    int32_t rank, ranks;
    bool operated, one_node; /* there was an operator; no gradients travelled */
    size_t pieces;
    double ready[MAXIMUM_PIECES]; /* as shares of the pass */
    double bytes[MAXIMUM_PIECES];
} outcome;

/* Seconds of the steps before each of the ends, as shares of all. */
static void time_steps(sgm_session *session, sgm_program *program, const int32_t *ends, outcome *result)
{
    enum { TIMES = 20 };
    int32_t count = program->plan->step_count;
    sgm__step_time *times = sgm__calloc((size_t)count, sizeof *times);
    double *sums = sgm__calloc((size_t)count, sizeof *sums), all = 0;
    for (int again = 0; again < TIMES; again++) {
        if (times == NULL || sums == NULL || sgm__session_run_timed(session, program, times) != SGM_OK)
            complain();
        for (int32_t i = 0; i < count; i++)
            sums[i] += times[i].seconds;
    }
    for (int32_t i = 0; i < count; i++) {
        all += sums[i];
        for (size_t k = 0; k < result->pieces; k++)
            result->ready[k] += i < ends[k] ? sums[i] : 0;
    }
    for (size_t k = 0; k < result->pieces; k++)
        result->ready[k] /= all;
    sgm__free(times);
    sgm__free(sums);
}

static void look_at_pieces(const sgm_trainer *trainer, outcome *result)
{
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    const sgm__worker *worker = &sgm__sharing_of(trainer)->parallel->workers[0];
    if (worker->end_count == 0 || worker->end_count > MAXIMUM_PIECES)
        return;
    result->pieces = worker->end_count;
    for (size_t k = 0; k < result->pieces; k++)
        result->bytes[k] = (double)ranks->buckets[k].bytes;
    time_steps(sgm__learner_of(worker->replica)->session, worker->program, worker->ends, result);
}

static outcome train(const char *sizes, long long batch, int threads, long long bucket, bool messages,
                     double seconds)
{
    static double times[MAXIMUM_STEPS];
    steps timed = {.warm_up = WARM_UP_STEPS, .minimum = 1, .seconds = seconds, .times = times};
    outcome result = {.ranks = 1};
    int64_t inputs = 0, classes = 0;
    char *layers = layers_of(sizes, &inputs, &classes);
    sgm_dataset *dataset = random_classes(batch > 1000 ? 4 * batch : 4000, inputs, classes);
    sgm_env *env = sgm_env_create("bench", .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "bench");
    sgm_trainer_set_network(trainer, layers);
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = batch, .drop_last = true));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    if (bucket >= 0)
        sgm_trainer_set_operator(trainer, sgm_mpi_operator(.workers = 1, .bucket = bucket));
    if (sgm__trainer_ranks(trainer) != NULL)
        sgm__trainer_ranks(trainer)->options.messages = messages;
    sgm_trainer_on_progress(trainer, note_step, &timed);
    sgm_status status = sgm_trainer_run(trainer, .iterations = 1000000);
    if ((status != SGM_OK && status != SGM_ERROR_INTERRUPTED) || timed.count == 0)
        complain();
    const sgm__ranks *ranks = sgm__trainer_ranks(trainer);
    result.middle = median(times, timed.count);
    result.minimum = times[0];
    if (ranks != NULL) {
        result.computing = ranks->computed / (double)(timed.count + WARM_UP_STEPS);
        result.waiting = ranks->waited / (double)(timed.count + WARM_UP_STEPS);
        result.rank = ranks->rank;
        result.ranks = ranks->count;
        result.operated = true;
        result.one_node = ranks->node != NULL;
        look_at_pieces(trainer, &result);
    }
    sgm_env_free(env);
    sgm_dataset_free(dataset);
    sgm__free(layers);
    return result;
}

static void print(const char *sizes, long long batch, int threads, const outcome *one)
{
    char how[32] = "one_node";
    size_t pieces = one->pieces > 0 ? one->pieces : 1;
    if (!one->one_node)
        snprintf(how, sizeof how, "%zu bucket%s", pieces, pieces > 1 ? "s" : "");
    if (!one->operated)
        snprintf(how, sizeof how, "no operator");
    if (one->rank == 0)
        printf("%s, batch %lld, %d rank%s of %d thread%s, %s: %.3f ms, minimum %.3f; computing %.3f, "
               "waiting %.3f\n",
               sizes, batch, one->ranks, one->ranks > 1 ? "s" : "", threads, threads > 1 ? "s" : "", how,
               one->middle * 1e3, one->minimum * 1e3, one->computing * 1e3, one->waiting * 1e3);
}

/* --- the model --- */

static double time_of(const connection *link, double bytes)
{
    return link->latency + bytes / link->bandwidth;
}

/* The seconds that a rank waits after its pass for the sums of the pieces, one after the other. */
static double time_after(const outcome *pieces, double computing, const connection *link)
{
    double end = 0;
    for (size_t k = 0; k < pieces->pieces; k++) {
        double ready = pieces->ready[k] * computing;
        end = (end > ready ? end : ready) + time_of(link, pieces->bytes[k]);
    }
    return end > computing ? end - computing : 0;
}

static void compare_with_model(const outcome *whole, const outcome *pieces, const connection *link)
{
    double bytes = 0, other = whole->middle - whole->computing - whole->waiting;
    for (size_t k = 0; k < pieces->pieces; k++)
        bytes += pieces->bytes[k];
    double sum = time_of(link, bytes), after = time_after(pieces, whole->computing, link);
    double rest = whole->computing + other;
    printf(
        "model: %.3f ms in one bucket (measured: %+.0f %%), %.3f ms in %zu (measured: %+.0f %%); of %.3f ms "
        "that can be hidden, %.0f %% were\n",
        (rest + sum) * 1e3, (whole->middle / (rest + sum) - 1) * 100, (rest + after) * 1e3, pieces->pieces,
        (pieces->middle / (rest + after) - 1) * 100, (sum - after) * 1e3,
        (whole->middle - pieces->middle) / (sum - after) * 100);
}

/* The plug-in that was built with this program. */
static void find_plugins(void)
{
    char path[4096], folder[4096 + 16];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < 2 && strrchr(path, '/') != NULL; i++)
        *strrchr(path, '/') = '\0';
    snprintf(folder, sizeof folder, "%s/plugins", path);
    setenv("SIGMA_PLUGIN_PATH", folder, 0);
}

int main(int argc, char **argv)
{
    const char *sizes = argc > 1 ? argv[1] : "784-1024-1024-10";
    long long batch = argc > 2 ? atoll(argv[2]) : 100, bucket = argc > 4 ? atoll(argv[4]) : 0;
    int threads = argc > 3 ? atoi(argv[3]) : 1;
    double seconds = argc > 5 ? atof(argv[5]) : 3;
    find_plugins();
    connection link = measure_sums();
    long long one_bucket = bucket < 0 ? bucket : 1 << 30;
    outcome whole = train(sizes, batch, threads, one_bucket, false, seconds);
    print(sizes, batch, threads, &whole);
    if (whole.ranks < 2)
        return 0;
    if (whole.one_node) {
        whole = train(sizes, batch, threads, one_bucket, true, seconds);
        print(sizes, batch, threads, &whole);
    }
    outcome pieces = train(sizes, batch, threads, bucket, true, seconds);
    print(sizes, batch, threads, &pieces);
    double n = whole.ranks;
    if (argc > 7)
        link = (connection){2 * (n - 1) * atof(argv[6]), atof(argv[7]) * n / (2 * (n - 1))};
    if (whole.rank == 0 && pieces.pieces > 1)
        compare_with_model(&whole, &pieces, &link);
    return 0;
}
