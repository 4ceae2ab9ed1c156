/* A new layer: a gate, sigmoid(x W) * x. Only the forward pass is written. */
#include <sigma/sigma.h>
#include <stdio.h>

static sgm_value gate(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    int64_t size = sgm_value_type(graph, inputs[0]).shape.dims[1];
    sgm_shape shape = sgm_shape_of(size, size);
    sgm_value weights = sgm_layer_parameter(call, graph, "weights", &shape, size, size, true, "glorot");
    sgm_value open = sgm_sigmoid(graph, sgm_matmul(graph, inputs[0], weights));
    return sgm_multiply(graph, open, inputs[0]);
}

static const sgm_layer_type gate_layer = {.api = SGM_LAYER_API,
                                          .name = "gate",
                                          .doc = "sigmoid(x W) * x",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .forward = gate};

int main(void)
{
    sgm_register_layer(&gate_layer);
    sgm_env *env = sgm_env_create("custom_layer", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "iris");
    sgm_dataset *iris = sgm_dataset_open("iris");
    sgm_trainer_set_network(trainer, "input(4) + dense(16, tanh) + gate + dense(3) + softmax_cross_entropy");
    sgm_trainer_set_data(trainer, sgm_minibatches(iris, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.01));

    sgm_metrics metrics = {0};
    sgm_status status = sgm_env_run(env, .epochs = 40);
    if (status == SGM_OK) {
        sgm_iterator *all = sgm_by_block(iris);
        status = sgm_trainer_evaluate(trainer, all, &metrics);
        sgm_iterator_free(all);
    }
    if (status == SGM_OK)
        printf("a gate on iris: accuracy %.1f %%\n", 100 * metrics.accuracy);
    else
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_dataset_free(iris);
    sgm_env_free(env);
    return status != SGM_OK || metrics.accuracy < 0.95;
}
