/* Models: networks from layers and data from tensors. */
#include "test.h"

#include <sigma/sigma.h>

#define EXAMPLES 8

/* Two features; the label is their sum, or which of them is larger as one of two classes. */
static sgm_tensor *features(void)
{
    static const float values[EXAMPLES * 2] = {0, 1,    1,    0,    0.5f, 0.25f, 0.25f, 0.75f,
                                               1, 0.5f, 0.1f, 0.9f, 0.8f, 0.3f,  0.2f,  0.6f};
    sgm_shape shape = sgm_shape_of(EXAMPLES, 2);
    return sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
}

static sgm_tensor *labels(bool classes)
{
    sgm_tensor *x = features();
    sgm_shape shape = classes ? sgm_shape_of(EXAMPLES, 2) : sgm_shape_of(EXAMPLES);
    sgm_tensor *result = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < EXAMPLES; i++) {
        double a = sgm_tensor_get(x, (const int64_t[]){i, 0}), b = sgm_tensor_get(x, (const int64_t[]){i, 1});
        if (classes)
            sgm_tensor_set(result, (const int64_t[]){i, a < b}, 1);
        else
            sgm_tensor_set(result, &i, a + b);
    }
    sgm_tensor_free(x);
    return result;
}

TEST(input_and_cost_are_added)
{
    sgm_env *env = sgm_env_create("models", .handler = "reference");
    sgm_tensor *x = features(), *y = labels(false);
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 1));
    CHECK_OK(model);
    CHECK(sgm_model_trainer(model) == NULL);
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 200, .batch = 4,
                             .optimiser = sgm_momentum(.learning_rate = 0.1)));
    sgm_tensor *output = sgm_model_predict(model, x);
    CHECK_OK(output);
    CHECK_INT(sgm_tensor_shape(output)->rank, 2);
    CHECK_INT(sgm_tensor_shape(output)->dims[0], EXAMPLES);
    CHECK_NEAR(sgm_tensor_get(output, (const int64_t[]){4, 0}), 1.5, 1e-3);
    sgm_metrics metrics;
    CHECK_OK(sgm_model_evaluate(model, x, y, &metrics));
    CHECK_INT(metrics.examples, EXAMPLES);
    CHECK_NEAR(metrics.loss, 0, 1e-5);
    CHECK(isnan(metrics.accuracy));
    CHECK_STR(sgm_trainer_name(sgm_model_trainer(model)), "model");
    sgm_tensor_free(output);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(training_again_goes_on)
{
    sgm_env *env = sgm_env_create("models", .handler = "reference");
    sgm_tensor *x = features(), *y = labels(true);
    sgm_model *model =
        sgm_sequential(env, sgm_input(.shape = {2}), sgm_dense(.size = 4, .activation = "tanh"),
                       sgm_dense(.size = 2), sgm_softmax_cross_entropy());
    CHECK_OK(model);
    sgm_metrics first, second;
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 5, .optimiser = sgm_adam(.learning_rate = 0.05)));
    CHECK_OK(sgm_model_evaluate(model, x, y, &first));
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 100));
    CHECK_OK(sgm_model_evaluate(model, x, y, &second));
    CHECK(second.loss < first.loss / 2);
    CHECK_NEAR(second.accuracy, 1, 0);
    CHECK_ERROR(sgm_model_train(model, x, y, .epochs = 1, .optimiser = sgm_adam(.learning_rate = 0.05)),
                "only the first training");
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 1)); /* the refusal has changed nothing */
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(failures_name_what_was_wrong)
{
    sgm_env *env = sgm_env_create("models", .handler = "reference");
    sgm_tensor *x = features(), *y = labels(false);
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 1));
    CHECK(sgm_model_predict(model, x) == NULL);
    CHECK(strstr(sgm_last_error(), "not trained yet"));
    CHECK_OK(sgm_env_status(env));
    CHECK_ERROR(sgm_model_train(model, x, NULL, .epochs = 1), "models: labels: expected a tensor");
    CHECK_ERROR(sgm_model_train(model, x, y, .epochs = 1), "models: labels"); /* the first failure stays */
    CHECK_ERROR(sgm_model_train(NULL, x, y, .epochs = 1), "");
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(a_failed_layer_fails_the_model)
{
    sgm_env *env = sgm_env_create("models");
    CHECK(sgm_sequential(env, sgm_dense(.size = 3), sgm_dense(.size = 2, .activation = "rellu")) == NULL);
    CHECK(strstr(sgm_env_error(env), "did you mean 'relu'"));
    sgm_env_free(env);
    CHECK_ERROR(sgm_sequential(NULL, sgm_dense(.size = 3)), "an environment");
}

TEST(two_models_in_an_environment)
{
    sgm_env *env = sgm_env_create("models", .handler = "reference");
    sgm_tensor *x = features(), *y = labels(false);
    sgm_model *one = sgm_sequential(env, sgm_dense(.size = 1)),
              *two = sgm_sequential(env, sgm_dense(.size = 1));
    CHECK_OK(sgm_model_train(one, x, y, .epochs = 1));
    CHECK_OK(sgm_model_train(two, x, y, .epochs = 1));
    CHECK_STR(sgm_trainer_name(sgm_model_trainer(two)), "model-2");
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(a_trainer_becomes_a_model)
{
    sgm_env *env = sgm_env_create("models", .handler = "reference"), *other = sgm_env_create("others");
    sgm_tensor *x = features(), *y = labels(false);
    sgm_trainer *trainer = sgm_trainer_create(env, "mine");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(2) + dense(1) + mean_squared"));
    CHECK_ERROR(sgm_model_of(other, trainer), "the trainer 'mine' is of another environment");
    sgm_model *model = sgm_model_of(env, trainer);
    CHECK_OK(model);
    CHECK(sgm_model_trainer(model) == trainer);
    CHECK_ERROR(sgm_model_of(env, trainer), "or of a model already");
    sgm_tensor *before = sgm_model_predict(model, x);
    CHECK_OK(before);
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 200, .batch = 4,
                             .optimiser = sgm_momentum(.learning_rate = 0.1)));
    sgm_tensor *after = sgm_model_predict(model, x);
    CHECK_NEAR(sgm_tensor_get(after, (const int64_t[]){4, 0}), 1.5, 1e-3);
    CHECK(fabs(sgm_tensor_get(before, (const int64_t[]){4, 0}) - 1.5) > 1e-3);
    CHECK_ERROR(sgm_model_train(model, x, y, .epochs = 1, .optimiser = sgm_adam(.learning_rate = 0.05)),
                "only the first training");
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
    sgm_env_free(other);
}
