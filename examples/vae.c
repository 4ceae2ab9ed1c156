/* A variational autoencoder (Kingma and Welling, 2014) of handwritten digits with two hidden numbers, and a
 * map of the plane that they span: what the network draws at each place.
 *
 *     vae [EPOCHS]        (150 epochs take some seconds)
 *
 * Two layers of our own: `latent` draws a place around the mean that the encoder gives, `divergence` is a
 * cost that pulls all places towards a normal distribution. Their gradients are derived automatically. */
#include <sigma/sigma.h>
#include <stdio.h>
#include <stdlib.h>

#define DECODER "dense(64, relu, name=d1) + dense(64, relu, name=d2) + dense(64, sigmoid, name=d3)"

static sgm_value half(sgm_graph *graph, sgm_value x, int64_t which)
{
    return sgm_slice(graph, x, 1, 2 * which, 2 * which + 2, 1);
}

/* mean + exp(logarithm of the variance / 2) * normal number, by Box and Muller; the mean when it is not
 * trained. */
static sgm_value latent(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    sgm_value mean = half(graph, inputs[0], 0), spread = half(graph, inputs[0], 1);
    if (!sgm_layer_is_training(call))
        return mean;
    sgm_shape shape = sgm_value_type(graph, mean).shape;
    sgm_value u = sgm_subtract(graph, sgm_number(graph, 1), sgm_layer_random(call, graph, &shape));
    sgm_value angle =
        sgm_multiply(graph, sgm_layer_random(call, graph, &shape), sgm_number(graph, 6.2831853));
    sgm_value radius = sgm_square_root(graph, sgm_multiply(graph, sgm_log(graph, u), sgm_number(graph, -2)));
    sgm_value normal = sgm_multiply(graph, radius, sgm_cos(graph, angle));
    sgm_value standard_deviation = sgm_exp(graph, sgm_multiply(graph, spread, sgm_number(graph, 0.5)));
    return sgm_add(graph, mean, sgm_multiply(graph, standard_deviation, normal));
}

/* Sum of (exp(v) + m^2 - 1 - v) / 2 for each example; it counts little beside the pixels. */
static sgm_value divergence(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)call, (void)count;
    sgm_value m = half(graph, inputs[0], 0), v = half(graph, inputs[0], 1);
    sgm_value sum = sgm_add(graph, sgm_exp(graph, v), sgm_square(graph, m));
    sum = sgm_subtract(graph, sum, sgm_add(graph, v, sgm_number(graph, 1)));
    return sgm_multiply(graph, sgm_reduce_sum(graph, sum, (const int32_t[]){1}, 1, false),
                        sgm_number(graph, 0.5 * 0.001));
}

static const sgm_layer_type types[] = {{.api = SGM_LAYER_API,
                                        .name = "latent",
                                        .doc = "a place around a mean",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = latent},
                                       {.api = SGM_LAYER_API,
                                        .flags = SGM_LAYER_COST,
                                        .name = "divergence",
                                        .doc = "from a normal one",
                                        .min_inputs = 1,
                                        .max_inputs = 1,
                                        .forward = divergence}};

int main(int argc, char **argv)
{
    sgm_register_layer(&types[0]);
    sgm_register_layer(&types[1]);
    sgm_env *env = sgm_env_create("vae", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "vae"), *painter = sgm_trainer_create(env, "painter");
    sgm_dataset *digits = sgm_dataset_open("digits");
    sgm_trainer_set_network(trainer, "code = input(64) + 2 * dense(64, relu) + dense(4);"
                                     "code + latent + " DECODER " + mean_squared(targets=inputs, name=error);"
                                     "code + divergence");
    sgm_trainer_set_network(painter, "input(2) + " DECODER);
    sgm_trainer_set_data(trainer, sgm_minibatches(digits, .size = 50));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.003, .schedule = {.kind = SGM_COSINE}));
    sgm_status status = sgm_trainer_run(trainer, .epochs = argc > 1 ? atoi(argv[1]) : 150);
    if (status == SGM_OK) /* the decoder alone */
        status = sgm_trainer_copy_parts(painter, trainer, .parts = SGM_PART_PARAMETERS, .states = "d*.*");

    sgm_shape shape = sgm_shape_of(45, 2);
    sgm_tensor *places = sgm_tensor_create(SGM_FLOAT32, &shape), *drawn = NULL;
    for (int64_t i = 0; i < 45 && places != NULL; i++) {
        int64_t across = i % 9 - 4, down = i / 9 - 2;
        sgm_tensor_set(places, (const int64_t[]){i, 0}, 0.45 * (double)across);
        sgm_tensor_set(places, (const int64_t[]){i, 1}, 0.8 * (double)down);
    }
    if (status == SGM_OK)
        drawn = sgm_trainer_predict(painter, places, NULL);
    for (int64_t line = 0; line < 5 * 8 && drawn != NULL; line++)
        for (int64_t x = 0; x < 9 * 8; x++) {
            double grey =
                sgm_tensor_get(drawn, (const int64_t[]){line / 8 * 9 + x / 8, line % 8 * 8 + x % 8});
            printf("%c%s", " .:-=+*#%@"[(int)(9.99 * grey)], x == 71 ? "\n" : "");
        }

    sgm_metrics metrics = {0};
    sgm_iterator *all = sgm_by_block(digits);
    if (drawn != NULL && (status = sgm_trainer_evaluate(trainer, all, &metrics)) == SGM_OK)
        printf("loss %.4f (0.073 if it draws the mean of all digits)\n", metrics.loss);
    else
        fprintf(stderr, "vae: %s\n", sgm_last_error());
    sgm_iterator_free(all);
    sgm_tensor_free(drawn);
    sgm_tensor_free(places);
    sgm_env_free(env);
    sgm_dataset_free(digits);
    return status != SGM_OK || metrics.loss > 0.055;
}
