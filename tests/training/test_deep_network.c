/* Networks that are too large, or take a while to begin with, and one of very many layers: it is planned in a
 * time that grows with their number, not with its square. With the square, this test takes minutes. */
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
    sgm_tensor *inputs = sgm_tensor_create_from(SGM_FLOAT32, &shape, x);
    sgm_tensor *targets = sgm_tensor_create_from(SGM_FLOAT32, &shape, target);
    sgm_env *env = sgm_env_create("deep", .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "deep");
    sgm_dataset *dataset = sgm_dataset_create_from("pair", (const char *const[]){"inputs", "targets"},
                                                   (sgm_tensor *const[]){inputs, targets}, 2);
    CHECK_OK(sgm_trainer_set_network(trainer, "input(1) + 10000 * (dense(1)) + squared_difference"));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 1)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = RATE)));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.weights", sgm_constant_value(.value = 1)));
    CHECK_OK(sgm_env_run(env, .iterations = 1));
    check_parameters(trainer, -RATE);
    sgm_env_free(env);
    sgm_dataset_free(dataset);
    sgm_tensor_free(inputs);
    sgm_tensor_free(targets);
}

#define LARGE "input(1000000) + dense(100000000) + squared_difference"

TEST(a_network_that_no_memory_holds_fails_at_once)
{
    sgm_env *env = sgm_env_create("large", .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "large");
    CHECK_OK(sgm_trainer_set_network(trainer, LARGE));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01)));
    CHECK_ERROR(sgm_trainer_prepare(trainer),
                "parameters, which take 1200.0 TB with what the optimiser remembers");
    CHECK(strstr(sgm_last_error(), " of memory: take smaller layers, or another optimiser") != NULL);
    trainer = sgm_trainer_create(env, "predicts"); /* nothing of an optimiser, where there is none */
    CHECK_OK(sgm_trainer_set_network(trainer, LARGE));
    CHECK_ERROR(sgm_trainer_prepare(trainer), "parameters, which take 400.0 TB; this computer has");
    CHECK(strstr(sgm_last_error(), " of memory: take a smaller network") != NULL);
    sgm_env_free(env);
}

typedef struct watched {
    int ended;
    uint64_t total;
    char description[160];
} watched;

static void watch(void *user, const sgm_task_info *info)
{
    watched *seen = user;
    if (info->kind != SGM_TASK_PREPARE || strcmp(info->unit, "parameters") != 0)
        return;
    seen->ended += info->status == SGM_TASK_ENDED;
    seen->total = info->total > seen->total ? info->total : seen->total;
    strcpy(seen->description, info->description);
}

TEST(drawing_many_parameters_is_told)
{
    watched seen = {0};
    sgm_env *env = sgm_env_create("wide", .handler = "cpu");
    sgm_trainer *trainer = sgm_trainer_create(env, "wide");
    CHECK_OK(sgm_task_watch(watch, &seen));
    CHECK_OK(sgm_trainer_set_network(trainer, "input(1024) + dense(5000) + squared_difference"));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.weights", sgm_constant_value(.value = 1)));
    CHECK_OK(sgm_trainer_prepare(trainer));
    sgm_task_unwatch(watch, &seen);
    CHECK_INT(seen.ended, 1);
    CHECK_STR(seen.description, "1-dense.weights");
    CHECK(seen.total == 1024 * 5000);
    sgm_env_free(env);
}
