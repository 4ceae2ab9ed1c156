/* Training on devices: the losses of the cpu, the same weights and masks for the same seed, the same bits
 * twice. */
#include "../handlers/devices.h"
#include "device_trainings.h"
#include "waves.h"

#define STEPS 200
#define FEW_STEPS 60 /* on the stand-in for a GPU, which takes longer for each than a GPU for all */

/* Losses of each step, and the weights in the end. */
static void learn(const char *network, const char *handler, int64_t steps, loss_curve *curve,
                  sgm_tensor **weights)
{
    sgm_env *env = sgm_env_create("device", .seed = DEVICE_SEED, .handler = handler);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    memset(curve, 0, sizeof *curve);
    CHECK_OK(set_device_training(trainer, network));
    CHECK_OK(sgm_trainer_on_progress(trainer, follow_losses, curve));
    CHECK_OK(sgm_env_run(env, .iterations = steps));
    if (weights != NULL)
        CHECK_OK(*weights = sgm_trainer_get(trainer, "1-dense.weights"));
    sgm_env_free(env);
}

static void need(const char *handler)
{
    if (!is_here(handler))
        SKIP(sgm_last_error());
}

static void check_followed(const char *handler, const char *network)
{
    static loss_curve expected, curve;
    bool stands_in = strcmp(handler, "cuda") == 0 && getenv("SIGMA_TEST_CUDA") == NULL;
    size_t steps = stands_in ? FEW_STEPS : STEPS;
    need(handler);
    learn(network, "cpu", (int64_t)steps, &expected, NULL);
    learn(network, handler, (int64_t)steps, &curve, NULL);
    CHECK_INT(curve.count, steps);
    CHECK_INT(expected.count, steps);
    CHECK(expected.losses[steps - 1] < expected.losses[0] * (stands_in ? 0.8 : 0.5));
    for (size_t i = 0; i < steps; i++)
        if (!test_near(curve.losses[i], expected.losses[i], 1e-4))
            TEST_FAIL("%s: the loss of step %zu is %.7g, that of cpu %.7g", handler, i + 1, curve.losses[i],
                      expected.losses[i]);
}

TEST(opencl_dense)
{
    check_followed("opencl", device_dense);
}

TEST(opencl_convolution)
{
    check_followed("opencl", device_convolution);
}

TEST(opencl_recurrent_and_attention)
{
    check_followed("opencl", device_recurrent);
}

TEST(cuda_dense)
{
    check_followed("cuda", device_dense);
}

TEST(cuda_convolution)
{
    check_followed("cuda", device_convolution);
}

TEST(cuda_recurrent_and_attention)
{
    check_followed("cuda", device_recurrent);
}

/* Masks of dropout decide the first loss, and so do the weights that it began with. */
static void check_bits(const char *handler)
{
    static loss_curve first, second, other;
    sgm_tensor *a = NULL, *b = NULL;
    need(handler);
    learn(device_dense, handler, 30, &first, &a);
    learn(device_dense, handler, 30, &second, &b);
    learn(device_dense, "cpu", 1, &other, NULL);
    CHECK_NEAR(first.losses[0], other.losses[0], 1e-6);
    CHECK_INT(memcmp(first.losses, second.losses, 30 * sizeof first.losses[0]), 0);
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(a)) * sizeof(float);
    CHECK_INT(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), bytes), 0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
}

TEST(opencl_gives_the_same_bits_twice)
{
    check_bits("opencl");
}

TEST(cuda_gives_the_same_bits_twice)
{
    check_bits("cuda");
}

/* Losses of workers that train together, each on its handler. */
static void learn_together(const char *handlers, loss_curve *curve)
{
    sgm_env *env = sgm_env_create("devices", .seed = 7);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    sgm_dataset *digits = sgm_dataset_open("digits");
    memset(curve, 0, sizeof *curve);
    CHECK_OK(sgm_trainer_set_network(trainer,
                                     "input(8, 8) + dense(32, relu) + dense(10) + softmax_cross_entropy"));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.002)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(digits, .size = 32, .seed = 3)));
    CHECK_OK(sgm_trainer_set_operator(trainer, sgm_gradient_operator(.handlers = handlers)));
    CHECK_OK(sgm_trainer_on_progress(trainer, follow_losses, curve));
    CHECK_OK(sgm_env_run(env, .iterations = 40));
    sgm_dataset_free(digits);
    sgm_env_free(env);
}

TEST(two_gpus_train_as_two_processors_do)
{
    static loss_curve expected, curve;
    need("cuda(device=1)");
    learn_together("cpu cpu", &expected);
    learn_together("cuda(device=0) cuda(device=1)", &curve);
    CHECK_INT(curve.count, expected.count);
    CHECK(expected.count > 0);
    for (size_t i = 0; i < expected.count; i++)
        CHECK_NEAR(curve.losses[i], expected.losses[i], 1e-4);
}

/* Two iterations of a trainer that has validation data; the loss of the second. */
static sgm_status learn_a_little(double *loss)
{
    static loss_curve curve;
    sgm_env *env = sgm_env_create("device", .seed = DEVICE_SEED, .handler = "cuda");
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    sgm_dataset *digits = sgm_dataset_open("digits");
    memset(&curve, 0, sizeof curve);
    set_device_training(trainer, device_dense);
    sgm_trainer_add_data(trainer, "validation", sgm_by_block(digits));
    sgm_trainer_on_progress(trainer, follow_losses, &curve);
    sgm_status status = sgm_env_run(env, .iterations = 2);
    *loss = curve.losses[1];
    sgm_dataset_free(digits);
    sgm_env_free(env);
    return status;
}

/* Each time the device gives memory once more, and then no more. */
TEST(a_training_that_finds_no_memory_says_so_and_leaves_nothing)
{
    need("cuda");
    if (getenv("SIGMA_TEST_CUDA") != NULL)
        SKIP("the stand-in for CUDA is wanted");
    double expected, loss;
    int opening = 0, states = 0, programs = 0, n = 0;
    char number[16];
    sgm_status status;
    CHECK_OK(learn_a_little(&expected));
    do {
        snprintf(number, sizeof number, "%d", ++n);
        setenv("SIGMA_FAKE_CUDA_FAIL_AT", number, 1);
        status = learn_a_little(&loss);
        unsetenv("SIGMA_FAKE_CUDA_FAIL_AT");
        const char *told = sgm_last_error();
        if (status == SGM_OK)
            break;
        bool opens = strstr(told, "page-locked memory") != NULL;
        bool of_state = strstr(told, "state '") != NULL && strstr(told, "is used up") != NULL;
        bool of_program = strstr(told, "a program with") != NULL && strstr(told, "is used up") != NULL;
        if (status != SGM_ERROR_MEMORY || opens + of_state + of_program != 1)
            TEST_FAIL("allocation %d: status %d, %s", n, (int)status, told);
        opening += opens;
        states += of_state;
        programs += of_program;
    } while (n < 1000);
    CHECK_OK(status);
    CHECK_NEAR(loss, expected, 0);
    CHECK_INT(opening, 1);
    CHECK(states >= 12); /* weights and biases of three layers, what Adam remembers of each */
    CHECK(programs >= 6);
    CHECK_OK(learn_a_little(&loss));
    CHECK_NEAR(loss, expected, 0);
}
