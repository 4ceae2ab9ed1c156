/* What workers give: build/release/bench/operators
 *
 * Milliseconds of an iteration of 784-1024-1024-10 and of 4-12-3 with one worker and with two, which share
 * the same number of threads: the middle of all and the minimum, for neighbours only ever add. An iteration
 * of two workers that merge parameters trains on two minibatches.
 */
#include "random_data.h"
#include "steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EPOCHS 15

typedef struct network {
    const char *text;
    int64_t inputs, classes, examples, batch;
} network;

static void measure(const network *wanted, const char *what, int threads, sgm_operator *workers)
{
    static double times[MAXIMUM_STEPS];
    steps timed = {.warm_up = wanted->examples / wanted->batch, .seconds = INFINITY, .times = times};
    sgm_env *env = sgm_env_create("bench", .threads = threads);
    sgm_trainer *trainer = sgm_trainer_create(env, "bench");
    sgm_dataset *dataset = random_classes(wanted->examples, wanted->inputs, wanted->classes);
    sgm_trainer_set_network(trainer, wanted->text);
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = wanted->batch));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.01));
    if (workers != NULL)
        sgm_trainer_set_operator(trainer, workers);
    sgm_trainer_on_progress(trainer, note_step, &timed);
    if (sgm_trainer_run(trainer, .epochs = EPOCHS) != SGM_OK) {
        fprintf(stderr, "operators: %s\n", sgm_last_error());
        exit(1);
    }
    double middle = median(times, timed.count);
    printf("  %-46s %9.4f ms, minimum %9.4f ms\n", what, middle * 1e3, times[0] * 1e3);
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
