/* A trainer that can run. */
#ifndef SIGMA_ENVIRONMENT_TEST_H
#define SIGMA_ENVIRONMENT_TEST_H

#include "test.h"

#include <sigma/sigma.h>

/* y = 2 x + 1, 40 examples: 4 minibatches an epoch. */
__attribute__((unused)) static sgm_dataset *line_dataset(void)
{
    static const char *const fields[] = {"inputs", "targets"};
    float x[40], y[40];
    for (int i = 0; i < 40; i++) {
        x[i] = (float)i / 40;
        y[i] = 2 * x[i] + 1;
    }
    sgm_shape shape = sgm_shape_of(40, 1);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("line", fields, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

/* Three inputs, one target that is a function of them. */
__attribute__((unused)) static sgm_dataset *sine_dataset(int64_t examples)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_shape inputs = sgm_shape_of(examples, 3), targets = sgm_shape_of(examples, 1);
    float x[64 * 3], y[64];
    CHECK(examples <= 64);
    for (int64_t i = 0; i < examples * 3; i++)
        x[i] = (float)sin(1.3 * (double)i + 0.2);
    for (int64_t i = 0; i < examples; i++)
        y[i] = x[3 * i] * x[3 * i + 1] - x[3 * i + 2];
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &inputs, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &targets, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("sines", fields, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    return dataset;
}

__attribute__((unused)) static sgm_trainer *give_parts(sgm_trainer *trainer)
{
    sgm_dataset *dataset = line_dataset();
    sgm_trainer_set_network(trainer, "input(1) + dense(1) + mean_squared");
    sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 10));
    sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 0.1));
    sgm_dataset_free(dataset);
    return sgm_trainer_status(trainer) == SGM_OK ? trainer : NULL;
}

__attribute__((unused)) static sgm_trainer *line_trainer(sgm_env *env, const char *name)
{
    return give_parts(sgm_trainer_create(env, name));
}

#endif
