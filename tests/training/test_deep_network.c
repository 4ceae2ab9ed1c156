/* A network of very many layers is planned in a time that grows with their number, not with its square: with
 * the square, this test takes minutes. */
#include "test.h"

#include <sigma/sigma.h>

#define LAYERS 10000
#define RATE 0.125

static void check_parameters(sgm_trainer *trainer, double expected)
{
    for (int i = 1; i <= LAYERS; i += 999)
        for (int k = 0; k < 2; k++) {
            char name[32];
            snprintf(name, sizeof name, "%d-dense.%s", i, k == 0 ? "weights" : "biases");
            sgm_tensor *value = sgm_trainer_get(trainer, name);
            CHECK_OK(value);
            CHECK_NEAR(sgm_tensor_get(value, (const int64_t[]){0, 0}), k == 0 ? 1 + expected : expected, 0);
            sgm_tensor_free(value);
        }
}

/* Each layer has the weight 1 and the bias 0, so that all give x = 1. The cost (y - t)^2 with the target t =
 * 0.5 has the gradient 1 by each weight and by each bias. */
TEST(ten_thousand_layers_learn)
{
    const float x[] = {1}, target[] = {0.5f};
    sgm_shape shape = sgm_shape_of(1, 1);
    sgm_tensor *inputs = sgm_tensor_from(SGM_FLOAT32, &shape, x);
    sgm_tensor *targets = sgm_tensor_from(SGM_FLOAT32, &shape, target);
    sgm_env *env = sgm_env_create("deep", .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "deep");
    sgm_dataset *dataset = sgm_dataset_from("pair", (const char *const[]){"inputs", "targets"},
                                            (sgm_tensor *const[]){inputs, targets}, 2);
    CHECK_OK(sgm_trainer_network(trainer, "input(1) + 10000 * (dense(1)) + squared_difference"));
    CHECK_OK(sgm_trainer_data(trainer, sgm_minibatches(dataset, .size = 1)));
    CHECK_OK(sgm_trainer_optimiser(trainer, sgm_gradient_descent(.learning_rate = RATE)));
    CHECK_OK(sgm_trainer_initialiser(trainer, "*.weights", sgm_constant_value(.value = 1)));
    CHECK_OK(sgm_run(env, .iterations = 1));
    check_parameters(trainer, -RATE);
    sgm_env_free(env);
    sgm_dataset_free(dataset);
    sgm_tensor_free(inputs);
    sgm_tensor_free(targets);
}
