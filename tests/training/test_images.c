/* A small convolutional network learns the digits that ship, in every precision. */
#include "test.h"

#include <sigma/sigma.h>

static double learn(sgm_dtype precision)
{
    sgm_env *env = sgm_env_create("images", .seed = 3, .precision = precision);
    sgm_trainer *trainer = sgm_trainer_create(env, "images");
    sgm_dataset *training = sgm_dataset_open("digits"), *test = sgm_dataset_open("digits-test");
    sgm_trainer_set_network(trainer, "input(8, 8) + convolution(12, 3, relu, same) + max_pooling(2) + "
                                     "convolution(24, 3, relu, same) + average_pooling(2) + dense(10) + "
                                     "softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(training, .size = 32));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01));
    CHECK_OK(sgm_env_run(env, .epochs = 4));
    sgm_metrics metrics;
    sgm_iterator *examples = sgm_by_block(test);
    CHECK_OK(sgm_trainer_evaluate(trainer, examples, &metrics));
    sgm_iterator_free(examples);
    sgm_env_free(env);
    sgm_dataset_free(training);
    sgm_dataset_free(test);
    return metrics.accuracy;
}

TEST(digits_are_learnt)
{
    CHECK(learn(SGM_FLOAT32) > 0.93);
    CHECK(learn(SGM_BFLOAT16) > 0.93);
}
