/* Finds digits in scenes: where, and which ones, in one look (one stage, as of YOLO: Redmon et al., 2016):
 * detection [EPOCHS]        (6 epochs take some seconds)
 * A scene of 24 x 24 pixels has two digits and noise. For each cell of a grid of 6 x 6 the network says which
 * of ten digits has its middle there, or that none has: class 10. */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 24, CELLS = 36, NONE = 10, TRAINING = 2500, SCENES = 2700 };
static float scenes[SCENES][SIDE][SIDE], truth[SCENES][CELLS];

static const char network[] =
    "input(24, 24) + convolution(16, 3, same, no_bias) + batch_norm + activation(relu) + max_pooling(2)"
    " + convolution(32, 3, same, no_bias) + batch_norm + activation(relu) + max_pooling(2)"
    " + convolution(48, 5, same, no_bias) + batch_norm + activation(relu)"
    " + convolution(11, 1) + cells + softmax_cross_entropy(classes)";

/* A layer of our own: (batch, classes, 6, 6) becomes (batch, 36, classes), as the cost of classes has it. */
static sgm_value cells(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_shape shape = sgm_shape_of(sgm_layer_batch(call), NONE + 1, CELLS);
    return sgm_transpose(graph, sgm_reshape(graph, inputs[0], &shape));
}

static const sgm_layer_type cells_layer = {.api = SGM_LAYER_API,
                                           .name = "cells",
                                           .doc = "a grid as steps",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .forward = cells};

static void paint(int64_t scene, const float *pictures, const float *classes)
{
    for (int i = 0; i < SIDE * SIDE; i++)
        scenes[scene][i / SIDE][i % SIDE] = 0.2F * (float)rand() / (float)RAND_MAX;
    for (int i = 0; i < CELLS; i++)
        truth[scene][i] = NONE;
    for (int n = 0; n < 2; n++) {
        int top = rand() % (SIDE - 8), left = rand() % (SIDE - 8), digit = rand() % 1500, class = 0;
        float *cell = &truth[scene][(top + 4) / 4 * 6 + (left + 4) / 4];
        while (classes[10 * digit + class] != 1)
            class ++;
        *cell = (float)class;
        for (int p = 0; p < 64; p++) {
            float *pixel = &scenes[scene][top + p / 8][left + p % 8];
            *pixel = fmaxf(*pixel, pictures[64 * digit + p]);
        }
    }
}

int main(int argc, char **argv)
{
    sgm_register_layer(&cells_layer);
    sgm_dataset *digits = sgm_dataset_open("digits");
    const sgm_block *block = NULL;
    if (digits == NULL || sgm_dataset_fetch_block(digits, 0, &block) != SGM_OK)
        return fprintf(stderr, "detection: %s\n", sgm_last_error()), 1;
    for (int64_t i = 0; i < SCENES; i++)
        paint(i, sgm_tensor_const_data(sgm_block_field(block, "inputs")),
              sgm_tensor_const_data(sgm_block_field(block, "targets")));
    sgm_dataset_release_block(digits, block);
    sgm_dataset_free(digits);
    sgm_shape pictures = sgm_shape_of(TRAINING, SIDE, SIDE), predictions = sgm_shape_of(TRAINING, CELLS);
    sgm_shape others = sgm_shape_of(SCENES - TRAINING, SIDE, SIDE);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &pictures, scenes),
                             sgm_tensor_create_from(SGM_FLOAT32, &predictions, truth),
                             sgm_tensor_create_from(SGM_FLOAT32, &others, scenes[TRAINING]), NULL};
    sgm_dataset *data =
        sgm_dataset_create_from("scenes", (const char *const[]){"inputs", "targets"}, tensors, 2);
    sgm_env *env = sgm_env_create("detection", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "detection");
    sgm_trainer_set_network(trainer, network);
    sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = 25));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01, .schedule = {.kind = SGM_COSINE}));
    if (sgm_env_run(env, .epochs = argc > 1 ? atoi(argv[1]) : 6) == SGM_OK)
        tensors[3] = sgm_trainer_predict(trainer, tensors[2], NULL);
    const sgm_tensor *prediction = tensors[3];

    for (int i = 0; i < SIDE * SIDE && prediction != NULL; i++)
        printf("%c%s", " .:-=+*#%@"[(int)(9.99F * scenes[TRAINING][i / SIDE][i % SIDE])],
               i % SIDE == SIDE - 1 ? "\n" : " ");
    double right = 0, seen = 0;
    for (int64_t i = 0; i < (SCENES - TRAINING) * CELLS && prediction != NULL; i++) {
        const float *chances = (const float *)sgm_tensor_const_data(prediction) + i * (NONE + 1);
        int said = 0, class = (int)truth[TRAINING + i / CELLS][i % CELLS];
        for (int k = 1; k <= NONE; k++)
            said = chances[k] > chances[said] ? k : said;
        seen += said != NONE || class != NONE;
        right += said != NONE && said == class;
        if (i < CELLS && said != NONE)
            printf("it sees a %d around line %d, column %d\n", said, (int)i / 6 * 4 + 2, (int)i % 6 * 4 + 2);
    }
    if (prediction != NULL)
        printf("%.0f %% of the digits in 200 new scenes are found in their cell\n", 100 * right / seen);
    else
        fprintf(stderr, "detection: %s\n", sgm_last_error());
    sgm_env_free(env);
    sgm_dataset_free(data);
    for (int i = 0; i < 4; i++)
        sgm_tensor_free(tensors[i]);
    return prediction == NULL || right < 0.6 * seen;
}
