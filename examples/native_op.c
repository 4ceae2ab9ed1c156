/* A new native operation: a formula for one element, a type rule, and a gradient that is recorded, not
 * computed. */
#include <math.h>
#include <sigma/sigma.h>
#include <stdio.h>

/* Same type and shape as the input. */
static sgm_status infer(const sgm_type *inputs, int32_t count, const sgm_attributes *attributes,
                        sgm_type *result)
{
    (void)count, (void)attributes;
    if (!sgm_dtype_is_float(inputs[0].dtype))
        return sgm_fail(SGM_ERROR_TYPE, "wants floats, got %s", sgm_dtype_name(inputs[0].dtype));
    *result = inputs[0];
    return SGM_OK;
}

/* asinh, which the library lacks: almost linear around 0, a logarithm far out */
static double formula(const double *inputs, const sgm_attributes *attributes)
{
    (void)attributes;
    return asinh(inputs[0]);
}

/* 1 / sqrt(1 + x^2) */
static void gradient(sgm_graph *graph, const sgm_gradient_call *call, sgm_value *gradients)
{
    sgm_value square = sgm_square(graph, call->inputs[0]);
    sgm_value root = sgm_square_root(graph, sgm_add(graph, square, sgm_number(graph, 1)));
    gradients[0] = sgm_divide(graph, call->gradient, root);
}

static const sgm_op asinh_op = {.api = SGM_OP_API,
                                .flags = SGM_OP_ELEMENTWISE | SGM_OP_ACTIVATION,
                                .name = "asinh",
                                .doc = "inverse hyperbolic sine",
                                .min_inputs = 1,
                                .max_inputs = 1,
                                .infer = infer,
                                .gradient = gradient,
                                .scalar = formula};

int main(void)
{
    sgm_register_op(&asinh_op);
    sgm_env *env = sgm_env_create("native", .seed = 1);
    sgm_trainer *trainer = sgm_trainer_create(env, "iris");
    sgm_dataset *iris = sgm_dataset_open("iris");
    sgm_trainer_set_network(trainer, "input(4) + dense(16, asinh) + dense(3) + softmax_cross_entropy");
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
        printf("asinh on iris: accuracy %.1f %%\n", 100 * metrics.accuracy);
    else
        fprintf(stderr, "%s\n", sgm_last_error());
    sgm_dataset_free(iris);
    sgm_env_free(env);
    return status != SGM_OK || metrics.accuracy < 0.95;
}
