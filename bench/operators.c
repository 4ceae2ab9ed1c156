/* What workers give: build/release/bench/operators
 *
 * Milliseconds of an iteration of 784-1024-1024-10 and of 4-12-3 with one worker and with two, which share
 * the same number of threads: the middle of all and the least, for neighbours only ever add. An iteration of
 * two workers that merge parameters trains on two minibatches.
 */
#include "base/base.h"
#include "measure.h"

#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define EPOCHS 15
#define MOST 8192

typedef struct stopwatch {
    double last, times[MOST];
    size_t count;
} stopwatch;

static bool watch(void *user, const sgm_training_progress *progress)
{
    stopwatch *clock = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    double now = sgm__now();
    if (clock->last > 0 && progress->epoch > 0 && clock->count < MOST)
        clock->times[clock->count++] = now - clock->last;
    clock->last = now;
    return true;
}

static sgm_dataset *make_data(int64_t records, int64_t inputs, int64_t classes)
{
    static const char *const sections[] = {"inputs", "targets"};
    sgm_shape shapes[2] = {sgm_shape_of(records, inputs), sgm_shape_of(records, classes)};
    sgm_tensor *values[2] = {sgm_tensor_create(SGM_FLOAT32, &shapes[0]),
                             sgm_tensor_create(SGM_FLOAT32, &shapes[1])};
    for (int64_t i = 0; i < records; i++) {
        for (int64_t k = 0; k < inputs; k++)
            sgm_tensor_set(values[0], (const int64_t[]){i, k}, (double)((i * 31 + k * 17) % 97) / 97);
        sgm_tensor_set(values[1], (const int64_t[]){i, i % classes}, 1);
    }
    sgm_dataset *dataset = sgm_dataset_from("bench", sections, values, 2);
    sgm_tensor_free(values[0]);
    sgm_tensor_free(values[1]);
    return dataset;
}

typedef struct network {
    const char *text;
    int64_t inputs, classes, records, batch;
} network;

static void measure(const network *wanted, const char *what, int threads, sgm_operator *workers)
{
    static stopwatch clock;
    clock = (stopwatch){0};
    sgm_env *env = sgm_env_create("bench", .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "bench");
    sgm_dataset *dataset = make_data(wanted->records, wanted->inputs, wanted->classes);
    sgm_trainer_network(trainer, wanted->text);
    sgm_trainer_data(trainer, sgm_minibatches(dataset, .size = wanted->batch));
    sgm_trainer_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    if (workers != NULL)
        sgm_trainer_operator(trainer, workers);
    sgm_trainer_on_progress(trainer, watch, &clock);
    if (sgm_trainer_run(trainer, .epochs = EPOCHS) != SGM_OK) {
        fprintf(stderr, "operators: %s\n", sgm_last_error());
        exit(1);
    }
    qsort(clock.times, clock.count, sizeof(double), compare);
    printf("  %-46s %9.4f ms, least %9.4f ms\n", what, clock.times[clock.count / 2] * 1e3,
           clock.times[0] * 1e3);
    sgm_dataset_free(dataset);
    sgm_env_free(env);
}

int main(void)
{
    static const network networks[] = {
        {"input(784) + dense(1024, relu) + dense(1024, relu) + dense(10) + softmax_cross_entropy", 784, 10,
         2000, 100},
        {"input(4) + dense(12, relu) + dense(3) + softmax_cross_entropy", 4, 3, 4000, 10},
    };
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        const network *one = &networks[i];
        printf("%s, batch %lld\n", one->text, (long long)one->batch);
        measure(one, "alone, 1 thread", 1, NULL);
        measure(one, "alone, 2 threads", 2, NULL);
        measure(one, "gradients, 2 workers of 1 thread", 2, sgm_gradient_operator(.workers = 2));
        measure(one, "parameters, 2 workers of 1 thread, every 10", 2,
                sgm_parameter_operator(.workers = 2, .every = 10));
    }
    return 0;
}
