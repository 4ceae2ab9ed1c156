/* A new operation, composed of others: its gradient and its kernels on all handlers are derived
 * automatically. */
#include <sigma/sigma.h>
#include <stdio.h>

/* x * tanh(log(1 + e^x)): mish (Misra, 2019) */
static sgm_value mish(sgm_graph *graph, const sgm_value *inputs, int32_t count,
                      const sgm_attributes *attributes)
{
    (void)count, (void)attributes;
    return sgm_multiply(graph, inputs[0], sgm_tanh(graph, sgm_softplus(graph, inputs[0])));
}

static const sgm_op mish_op = {.api = SGM_OP_API,
                               .flags = SGM_OP_ACTIVATION,
                               .name = "mish",
                               .doc = "x * tanh(softplus(x))",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .compose = mish};

int main(void)
{
    sgm_register_op(&mish_op);
    sgm_env *env = sgm_env_create("composed", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "iris");
    sgm_dataset *iris = sgm_dataset_open("iris");
    sgm_trainer_set_network(trainer, "input(4) + dense(16, mish) + dense(3) + softmax_cross_entropy");
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
        printf("mish on iris: accuracy %.1f %%\n", 100 * metrics.accuracy);
    else
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_dataset_free(iris);
    sgm_env_free(env);
    return status != SGM_OK || metrics.accuracy < 0.95;
}
