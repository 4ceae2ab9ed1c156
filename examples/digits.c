/* Learns to read handwritten digits; takes seconds. */
#include <sigma/sigma.h>
#include <stdio.h>

int main(void)
{
    sgm_env *env = sgm_env_create("digits");
    sgm_trainer *trainer = sgm_trainer_create(env, "digits");
    sgm_dataset *training = sgm_dataset_open("digits"), *test = sgm_dataset_open("digits-test");

    sgm_trainer_set_network(
        trainer, "input(8, 8) + dense(256, relu) + dropout(0.4) + dense(10) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(training, .size = 32));
    sgm_trainer_add_data(trainer, "validation", sgm_by_block(test));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.005, .schedule = {.kind = SGM_COSINE}));
    sgm_trainer_add_initialiser(trainer, "*.weights", sgm_he());
    sgm_env_add_monitor(env, sgm_terminal_monitor());

    /* The first failure of any call above is kept until here. */
    sgm_status status = sgm_env_run(env, .epochs = 60);
    if (status == SGM_OK) {
        sgm_metrics metrics;
        sgm_iterator *examples = sgm_by_block(test);
        status = sgm_trainer_evaluate(trainer, examples, &metrics);
        if (status == SGM_OK)
            printf("test accuracy: %.1f %%\n", 100 * metrics.accuracy);
        sgm_iterator_free(examples);
    }
    if (status != SGM_OK)
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_env_free(env);
    sgm_dataset_free(training);
    sgm_dataset_free(test);
    return status != SGM_OK;
}
