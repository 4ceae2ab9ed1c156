/* Two networks against each other (Goodfellow et al., 2014): one draws digits out of random numbers, the
 * other tells them from real ones, and each learns from the other: gan [EPOCHS]  (300 take some seconds)
 *
 * Both are one network here. `stack` puts drawn and real digits into one minibatch; `against` lets values
 * through and turns gradients round: so the painter makes the loss larger while the critic makes it smaller.
 */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define PAINTER "dense(96, relu, name=p1) + dense(96, relu, name=p2) + dense(64, sigmoid, name=p3)"

enum { DIGITS = 1500, DRAWN = 45 };
static float numbers[(DIGITS + DRAWN) * 16];

/* 2 x - x, where 2 x counts as a constant: its value is x, its gradient -1. */
static sgm_value against(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call, (void)count;
    sgm_value twice = sgm_stop_gradient(graph, sgm_multiply(graph, inputs[0], sgm_number(graph, 2)));
    return sgm_subtract(graph, twice, inputs[0]);
}

static sgm_value stack(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call;
    return sgm_concatenate(graph, inputs, count, 0);
}

/* log(1 + e^y) of drawn ones, the first half, log(1 + e^-y) of real ones */
static sgm_value judge(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call, (void)count;
    int64_t half = sgm_value_type(graph, inputs[0]).shape.dims[0] / 2;
    sgm_value drawn = sgm_slice(graph, inputs[0], 0, 0, half, 1);
    sgm_value real = sgm_slice(graph, inputs[0], 0, half, 2 * half, 1);
    return sgm_mean(graph,
                    sgm_add(graph, sgm_softplus(graph, drawn), sgm_softplus(graph, sgm_negate(graph, real))));
}

static const sgm_layer_type types[] = {{.api = SGM_LAYER_API,
                                        .name = "against",
                                        .doc = "turns gradients round",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = against},
                                       {.api = SGM_LAYER_API,
                                        .flags = SGM_LAYER_JOIN,
                                        .name = "stack",
                                        .doc = "one minibatch of two",
                                        .min_inputs = 2,
                                        .max_inputs = 2,
                                        .forward = stack},
                                       {.api = SGM_LAYER_API,
                                        .flags = SGM_LAYER_COST,
                                        .name = "judge",
                                        .doc = "tells drawn from real",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = judge}};

int main(int argc, char **argv)
{
    for (int i = 0; i < 3; i++)
        sgm_register_layer(&types[i]);
    for (int i = 0; i < (DIGITS + DRAWN) * 16; i++)
        numbers[i] = 2 * (float)rand() / (float)RAND_MAX - 1;
    sgm_env *env = sgm_env_create("gan", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "gan"), *painter = sgm_trainer_create(env, "painter");
    sgm_dataset *digits = sgm_dataset_open("digits");
    const sgm_block *block = NULL;
    if (digits == NULL || sgm_dataset_fetch_block(digits, 0, &block) != SGM_OK)
        return fprintf(stderr, "gan: %s\n", sgm_last_error()), 1;
    sgm_shape all = sgm_shape_of(DIGITS, 16), some = sgm_shape_of(DRAWN, 16);
    sgm_tensor *real = sgm_block_field(block, "inputs"),
               *noise = sgm_tensor_create_from(SGM_FLOAT32, &all, numbers),
               *fresh = sgm_tensor_create_from(SGM_FLOAT32, &some, numbers + DIGITS * 16);
    sgm_dataset *pairs = sgm_dataset_create_from("pairs", (const char *const[]){"inputs", "noise"},
                                                 (sgm_tensor *const[]){real, noise}, 2);
    sgm_trainer_set_network(trainer,
                            "drawn = input(16, name=noise) + " PAINTER " + against; real = input(64);"
                            "stack(drawn, real) + dropout(0.3) + dense(128, leaky_relu) + dropout(0.4)"
                            " + dense(64, leaky_relu) + dropout(0.4) + dense(1) + judge");
    sgm_trainer_set_network(painter, "input(16) + " PAINTER);
    sgm_trainer_set_data(trainer, sgm_minibatches(pairs, .size = 50));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.001, .beta1 = 0.5));
    sgm_tensor *drawn = NULL;
    if (sgm_trainer_run(trainer, .epochs = argc > 1 ? atoi(argv[1]) : 300) == SGM_OK &&
        sgm_trainer_copy_parts(painter, trainer, .parts = SGM_PART_PARAMETERS, .states = "p*.*") == SGM_OK)
        drawn = sgm_trainer_predict(painter, fresh, NULL);
    const float *pixels = drawn != NULL ? sgm_tensor_const_data(drawn) : NULL,
                *old = sgm_tensor_const_data(real);
    float sum = drawn != NULL ? 0 : 1;
    for (int64_t i = 0; i < DRAWN * 64 && drawn != NULL; i++) /* nine in a row */
        printf("%c%s",
               " .:-=+*#%@"[(int)(9.99F * pixels[(i / 576 * 9 + i % 72 / 8) * 64 + i / 72 % 8 * 8 + i % 8])],
               i % 72 == 71 ? "\n" : "");
    for (int64_t i = 0; i < DRAWN && drawn != NULL; i++) {
        float nearest = 1;
        for (int64_t k = 0; k < DIGITS; k++) {
            float difference = 0;
            for (int64_t p = 0; p < 64; p++)
                difference += powf(pixels[64 * i + p] - old[64 * k + p], 2) / 64;
            nearest = fminf(nearest, difference);
        }
        sum += nearest / DRAWN;
    }
    fprintf(drawn ? stdout : stderr, "%s %.3f\n",
            drawn ? "squared difference from the most similar real digit:" : sgm_last_error(), sum);
    sgm_env_free(env);
    sgm_tensor_free(drawn), sgm_tensor_free(fresh), sgm_tensor_free(noise);
    sgm_dataset_release_block(digits, block);
    sgm_dataset_free(digits), sgm_dataset_free(pairs);
    return sum > 0.05F;
}
