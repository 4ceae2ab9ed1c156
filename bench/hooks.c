/* What hooks cost an iteration: build/release/bench/hooks
 *
 * Nanoseconds of an iteration's event with 0, 1 and 10 hooks that are attached but not due, with hooks of
 * another scale, and with hooks that are due and do nothing; then microseconds of each ready-made hook when
 * it is due, on a network of 17,226 parameters. The minimum of several rounds, for neighbours only ever add.
 */
#include "train/train.h"
#include "trainer/trainer_struct.h"

#include <sigma/sigma.h>

#include <stdio.h>
#include <stdlib.h>

#define ITERATIONS 200000
#define ROUNDS 7

static int hook_numbers[1000];

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self;
    (void)call;
    return SGM_OK;
}

static const sgm_hook_type idle_type = {.api = SGM_HOOK_API, .name = "idle", .invoke = do_nothing};

static void check(bool good)
{
    if (good)
        return;
    fprintf(stderr, "hooks: %s\n", sgm_last_error());
    exit(1);
}

static double time_round(sgm__hooks *hooks)
{
    double start = sgm__now();
    for (int64_t i = 0; i < ITERATIONS; i++)
        check(sgm__hooks_event(hooks, SGM_ITERATION, 0, i) == SGM_OK);
    return (sgm__now() - start) / ITERATIONS * 1e9;
}

static void print_cost(int count, sgm_time_step when, const char *what)
{
    sgm_registry *registry = sgm_registry_create();
    sgm__hooks *hooks = sgm__hooks_create("bench", registry, NULL);
    check(hooks != NULL);
    for (int i = 0; i < count; i++) {
        sgm_hook *hook = sgm_hook_create(&idle_type, &hook_numbers[i], .when = when);
        check(hook && sgm__hooks_attach(hooks, hook, NULL) == SGM_OK);
        sgm_hook_free(hook);
    }
    double best = time_round(hooks);
    for (int i = 1; i < ROUNDS; i++) {
        double now = time_round(hooks);
        best = now < best ? now : best;
    }
    printf("%4d hooks %-18s %10.1f ns an iteration\n", count, what, best);
    sgm__hooks_free(hooks);
    sgm_registry_free(registry);
}

/* --- ready-made hooks --- */

#define READY_ITERATIONS 200

static sgm_trainer *make_trainer(sgm_handler *handler)
{
    static const char *const fields[] = {"inputs", "targets"};
    const sgm__trainer_settings settings = {.seed = 1, .handler = handler};
    sgm_shape shapes[2] = {sgm_shape_of(64, 64), sgm_shape_of(64, 10)};
    sgm_tensor *tensors[2] = {sgm_tensor_create(SGM_FLOAT32, &shapes[0]),
                              sgm_tensor_create(SGM_FLOAT32, &shapes[1])};
    sgm_trainer *trainer = sgm__trainer_create("bench", &settings);
    sgm_dataset *dataset = sgm_dataset_create_from("bench", fields, tensors, 2);
    check(trainer && dataset);
    sgm_trainer_set_network(
        trainer, "input(64) + dense(128, relu) + dense(64, relu) + dense(10) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 32));
    sgm_trainer_add_data(trainer, "validation", sgm_by_block(dataset));
    sgm_trainer_set_optimiser(trainer, sgm_adam());
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    sgm_dataset_free(dataset);
    return trainer;
}

static double time_events(sgm_trainer *trainer)
{
    double start = sgm__now();
    for (int64_t i = 0; i < READY_ITERATIONS; i++) {
        check(sgm__hooks_event(trainer->hooks, SGM_ITERATION, 1, trainer->position.iteration) == SGM_OK);
        sgm__command *request;
        while ((request = sgm__hooks_take_command(trainer->hooks)) != NULL)
            sgm__command_free(request);
    }
    return (sgm__now() - start) / READY_ITERATIONS * 1e6;
}

/* `text` NULL: no hook. */
static double time_ready(const char *text)
{
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1);
    check(handler != NULL);
    sgm_trainer *trainer = make_trainer(handler);
    check(sgm_trainer_run(trainer, .epochs = 2) == SGM_OK);
    if (text)
        check(sgm_trainer_add_hook(trainer, sgm_hook_parse(text)) == SGM_OK);
    trainer->progress.running_since = sgm__now();
    double best = time_events(trainer);
    for (int i = 1; i < ROUNDS; i++) {
        double now = time_events(trainer);
        best = now < best ? now : best;
    }
    sgm__trainer_free(trainer);
    sgm_handler_free(handler);
    return best;
}

static void print_ready(void)
{
    static const char *const texts[] = {
        "every iteration value_reporter(training.loss optimiser.learning_rate)",
        "every iteration progress_reporter",
        "every iteration accumulator(optimiser.loss)",
        "every iteration mean_reporter(optimiser.loss)",
        "every iteration running_time",
        "every iteration running_time_reporter",
        "every iteration throughput",
        "every iteration time_series(optimiser.loss)",
        "every iteration early_stopper(optimiser.loss, 1000000)",
        "every iteration stop() if optimiser.loss < 0",
        "every iteration if optimiser.loss > 1e9 then set optimiser.learning_rate *= 0.5",
        "every iteration modifier(optimiser.learning_rate, \"scale(0.5)\")",
        "every iteration statistics(network.layers.*.weights)",
        "every iteration nan_watch",
        "every iteration target_maximiser(3, steps=10, attempts=1)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        printf("%10.2f us  %s\n", time_ready(texts[i]), texts[i] + strlen("every iteration "));
}

int main(void)
{
    static const int counts[] = {0, 1, 10, 100};
    const sgm_time_step never = sgm_every(INT64_MAX, SGM_ITERATION);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        print_cost(counts[i], never, "not due");
    print_cost(10, sgm_every(1, SGM_EPOCH), "of another scale");
    print_cost(1, sgm_every(1, SGM_ITERATION), "due");
    print_cost(10, sgm_every(1, SGM_ITERATION), "due");
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    print_ready();
    return 0;
}
