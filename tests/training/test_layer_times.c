/* Time per layer: its sum is the whole, heavy layers show, and measuring changes nothing. */
#include "test.h"

#include "trainer/layer_times.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#include <sigma/sigma.h>

enum { EXAMPLES = 64, WIDTH = 512, FEW = 64, HEAVY = 1, LIGHT = 2, COST = 3, OTHERS = 4 };

static sgm_dataset *random_dataset(int width)
{
    static const char *const fields[] = {"inputs", "targets"};
    static float x[EXAMPLES * WIDTH], y[EXAMPLES * 2];
    for (int i = 0; i < EXAMPLES * width; i++)
        x[i] = (float)sin(1.7 * i);
    for (int i = 0; i < EXAMPLES * 2; i++)
        y[i] = (float)cos(2.3 * i);
    sgm_shape inputs = sgm_shape_of(EXAMPLES, width), targets = sgm_shape_of(EXAMPLES, 2);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &inputs, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &targets, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("random", fields, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

/* A dense layer with `width` / 2 times the products of the next one. */
static sgm_trainer *make(sgm_env *env, int width)
{
    char network[96];
    sgm_dataset *dataset = random_dataset(width);
    sgm_trainer *trainer = sgm_trainer_create(env, "timed");
    snprintf(network, sizeof network, "input(%d) + dense(%d, relu) + dense(2) + mean_squared", width, width);
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 32));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.001));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_status(trainer));
    return trainer;
}

static void want(sgm_trainer *trainer, int32_t steps)
{
    sgm__trainer_lock(trainer);
    sgm_status status = sgm__layer_times_want(trainer, steps);
    sgm__trainer_unlock(trainer);
    CHECK_OK(status);
}

static double sum_of(const sgm__layer_time *time)
{
    return time->seconds[SGM__FORWARD] + time->seconds[SGM__BACKWARD] + time->seconds[SGM__UPDATING];
}

static void check_times(const char *handler, int threads, int width)
{
    sgm_env *env = sgm_env_create("times", .handler = handler, .threads = threads, .seed = 1);
    sgm_trainer *trainer = make(env, width);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 10));
    CHECK(trainer->times == NULL);
    want(trainer, 5);
    want(trainer, 100); /* some are to be measured anyway */
    CHECK_INT(trainer->times->wanted, 5);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 20));
    const sgm__layer_times *times = trainer->times;
    CHECK_INT(times->wanted, 0);
    CHECK_INT(times->steps, 5);
    CHECK_INT(times->count, OTHERS);
    double sum = 0;
    for (int i = 0; i <= OTHERS; i++)
        sum += sum_of(&times->layers[i]);
    CHECK(times->seconds > 0);
    CHECK_NEAR(sum / times->seconds, 1, 1e-9);
    for (int k = 0; k < SGM__PHASE_COUNT; k++)
        CHECK(times->layers[HEAVY].seconds[k] > 0);
    CHECK(times->layers[LIGHT].seconds[SGM__UPDATING] > 0);
    CHECK_NEAR(times->layers[COST].seconds[SGM__UPDATING], 0, 0);
    bool heavy = false; /* on a busy computer a step of the light one may be held up */
    for (int i = 1; i <= 20 && !heavy; i++) {
        heavy = sum_of(&times->layers[HEAVY]) > sum_of(&times->layers[LIGHT]) &&
                sum_of(&times->layers[HEAVY]) > sum_of(&times->layers[COST]);
        if (!heavy) {
            want(trainer, 5);
            CHECK_OK(sgm_trainer_run(trainer, .iterations = 20 + 5 * i));
        }
    }
    CHECK(heavy);
    double before = times->seconds, steps = times->steps;
    want(trainer, 1); /* what was known counts half */
    CHECK_NEAR(times->steps, steps / 2, 0);
    CHECK_NEAR(times->seconds, before / 2, 0);
    sgm_env_free(env);
}

TEST(layers_share_the_time_of_a_step)
{
    check_times("cpu", 1, WIDTH);
}

TEST(with_threads_too)
{
    check_times("cpu", 2, WIDTH);
}

TEST(a_handler_that_cannot_measure_runs_step_by_step)
{
    check_times("reference", 1, FEW); /* it is slow */
}

static sgm_tensor *weights_after(bool timed)
{
    sgm_env *env = sgm_env_create("times", .threads = 2, .seed = 1);
    sgm_trainer *trainer = make(env, WIDTH);
    CHECK_OK(sgm_trainer_prepare(trainer));
    if (timed)
        want(trainer, 1000);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 20));
    sgm_tensor *weights = sgm_trainer_get(trainer, "1-dense.weights");
    CHECK_OK(weights);
    sgm_env_free(env);
    return weights;
}

TEST(measuring_changes_no_value)
{
    sgm_tensor *plain = weights_after(false), *timed = weights_after(true);
    CHECK_INT(
        memcmp(sgm_tensor_const_data(plain), sgm_tensor_const_data(timed), WIDTH * WIDTH * sizeof(float)), 0);
    sgm_tensor_free(plain);
    sgm_tensor_free(timed);
}

TEST(another_network_of_equally_many_layers_is_measured_anew)
{
    sgm_env *env = sgm_env_create("times", .threads = 1, .seed = 1);
    sgm_trainer *trainer = make(env, WIDTH);
    want(trainer, 5);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 10));
    CHECK_INT(trainer->times->steps, 5);
    sgm_trainer_set_network(trainer, "input(512) + dense(3, tanh, name=a) + dense(2, name=b) + mean_squared");
    CHECK_OK(sgm_trainer_status(trainer));
    want(trainer, 1);
    CHECK_NEAR(trainer->times->steps, 0, 0);
    CHECK_NEAR(trainer->times->seconds, 0, 0);
    for (size_t i = 0; i <= trainer->times->count; i++)
        CHECK_NEAR(sum_of(&trainer->times->layers[i]), 0, 0);
    CHECK_OK(sgm_trainer_run(trainer, .iterations = 12));
    CHECK_INT(trainer->times->steps, 1);
    sgm_env_free(env);
}

TEST(without_a_network_there_is_nothing_to_measure)
{
    sgm_env *env = sgm_env_create("times", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "none");
    CHECK_ERROR(sgm__layer_times_want(trainer, 5), "has no network yet");
    sgm_env_free(env);
}
