/* Digits of 64 pixels squeezed through 8 numbers, and drawn again from these: what is lost?
 *
 *     autoencoder [EPOCHS]        (60 epochs take a second)
 *
 * The pictures are inputs and targets at once: two `input` layers may read the same field. Prints digits of
 * the test, above them as they were, below them as they came through. */
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN 6

static void draw(const sgm_tensor *tensor)
{
    const float *pictures = sgm_tensor_const_data(tensor);
    for (int64_t y = 0; y < 8; y++)
        for (int64_t i = 0; i < SHOWN; i++) {
            for (int64_t x = 0; x < 8; x++) {
                float grey = pictures[64 * i + 8 * y + x];
                int shade = grey < 0 ? 0 : grey > 1 ? 9 : (int)(9.99F * grey);
                printf("%c%c", " .:-=+*#%@"[shade], " .:-=+*#%@"[shade]);
            }
            printf(i + 1 < SHOWN ? "  " : "\n");
        }
}

int main(int argc, char **argv)
{
    sgm_env *env = sgm_env_create("autoencoder", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "autoencoder");
    sgm_dataset *training = sgm_dataset_open("digits"), *test = sgm_dataset_open("digits-test");
    sgm_trainer_set_network(trainer, "code = input(64) + dense(48, relu) + dense(8, name=code);"
                                     "code + dense(48, relu) + dense(64) + mean_squared(targets=inputs)");
    sgm_trainer_set_data(trainer, sgm_minibatches(training, .size = 32));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.003, .schedule = {.kind = SGM_COSINE}));
    sgm_status status = sgm_env_run(env, .epochs = argc > 1 ? atoi(argv[1]) : 60);

    const sgm_block *block = NULL;
    sgm_metrics metrics = {0};
    sgm_iterator *pictures = sgm_by_block(test);
    if (status == SGM_OK)
        status = sgm_trainer_evaluate(trainer, pictures, &metrics);
    if (status == SGM_OK)
        status = sgm_iterator_next(pictures, &block);
    if (status == SGM_OK) {
        sgm_tensor *before = sgm_block_field(block, "inputs");
        sgm_tensor *after = sgm_trainer_predict(trainer, before, NULL);
        draw(before);
        printf("\n");
        if (after != NULL)
            draw(after);
        printf("mean squared error of the test: %.4f (0.073 if it draws the mean of all digits)\n",
               metrics.loss);
        sgm_tensor_free(after);
    } else {
        fprintf(stderr, "autoencoder: %s\n", sgm_last_error());
    }
    sgm_iterator_free(pictures);
    sgm_env_free(env);
    sgm_dataset_free(training);
    sgm_dataset_free(test);
    return status != SGM_OK || metrics.loss > 0.025;
}
