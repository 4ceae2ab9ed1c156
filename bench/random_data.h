/* Data that mean nothing, for programs that measure steps. */
#ifndef SIGMA_BENCH_RANDOM_DATA_H
#define SIGMA_BENCH_RANDOM_DATA_H

#include "base/base.h"
#include <sigma/sigma.h>

/* Takes both, which may be NULL. NULL: an error says why. */
static inline sgm_dataset *paired(sgm_tensor *inputs, sgm_tensor *targets)
{
    sgm_dataset *data = NULL;
    if (inputs != NULL && targets != NULL)
        data = sgm_dataset_create_from("random", (const char *const[]){"inputs", "targets"},
                                       (sgm_tensor *const[]){inputs, targets}, 2);
    sgm_tensor_free(inputs);
    sgm_tensor_free(targets);
    return data;
}

/* Uniform numbers, and one class after the other as shares of all of them. */
static inline sgm_dataset *random_classes(int64_t examples, int64_t inputs, int64_t classes)
{
    sgm_shape input_shape = sgm_shape_of(examples, inputs), target_shape = sgm_shape_of(examples, classes);
    sgm_tensor *x = sgm_tensor_create(SGM_FLOAT32, &input_shape);
    sgm_tensor *y = sgm_tensor_create(SGM_FLOAT32, &target_shape);
    sgm__random random = sgm__random_make(1, 0);
    for (int64_t i = 0; x != NULL && i < examples * inputs; i++)
        ((float *)sgm_tensor_data(x))[i] = (float)sgm__random_uniform(&random);
    for (int64_t i = 0; y != NULL && i < examples; i++)
        ((float *)sgm_tensor_data(y))[i * classes + i % classes] = 1;
    return paired(x, y);
}

#endif
