/* The smallest problem that one layer cannot solve: either a or b, but not both.
 *
 *     xor        (a fraction of a second)
 *
 * Prints what the network thinks of each corner of the square, and of all places between them. */
#include <sigma/sigma.h>
#include <stdio.h>

#define SIDE 17

int main(void)
{
    sgm_env *env = sgm_env_create("xor", .seed = 3);
    sgm_trainer *trainer = sgm_trainer_create(env, "xor");
    sgm_dataset *corners = sgm_dataset_open("xor");
    sgm_trainer_set_network(trainer, "input(2) + dense(8, tanh) + dense(2) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(corners, .size = 4));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.05));
    sgm_status status = sgm_env_run(env, .epochs = 300);

    /* A map: '#' where a xor b is likely, from (0, 0) at the lower left to (1, 1) at the upper right. */
    sgm_shape shape = sgm_shape_of(SIDE * SIDE, 2);
    sgm_tensor *places = sgm_tensor_create(SGM_FLOAT32, &shape), *prediction = NULL;
    for (int64_t i = 0; i < SIDE * SIDE && places != NULL; i++) {
        int64_t across = i % SIDE, down = i / SIDE;
        sgm_tensor_set(places, (const int64_t[]){i, 0}, (double)across / (SIDE - 1));
        sgm_tensor_set(places, (const int64_t[]){i, 1}, 1 - (double)down / (SIDE - 1));
    }
    if (status == SGM_OK)
        prediction = sgm_trainer_predict(trainer, places, NULL);
    for (int64_t i = 0; i < SIDE * SIDE && prediction != NULL; i++) {
        double likely = sgm_tensor_get(prediction, (const int64_t[]){i, 1});
        printf("%c%c%s", " .:-=+*#%@"[(int)(9.99 * likely)], " .:-=+*#%@"[(int)(9.99 * likely)],
               i % SIDE == SIDE - 1 ? "\n" : "");
    }

    sgm_metrics metrics = {0};
    sgm_iterator *all = sgm_by_block(corners);
    if (status == SGM_OK)
        status = sgm_trainer_evaluate(trainer, all, &metrics);
    if (status == SGM_OK && prediction != NULL)
        printf("loss %.4f, %.0f of 4 corners are right\n", metrics.loss, 4 * metrics.accuracy);
    else
        fprintf(stderr, "xor: %s\n", sgm_last_error());
    sgm_iterator_free(all);
    sgm_tensor_free(prediction);
    sgm_tensor_free(places);
    sgm_env_free(env);
    sgm_dataset_free(corners);
    return status != SGM_OK || metrics.loss > 0.05;
}
