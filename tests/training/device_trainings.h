/* The small trainings that devices are tested with: images of digits, three kinds of networks. */
#ifndef SIGMA_TEST_DEVICE_TRAININGS_H
#define SIGMA_TEST_DEVICE_TRAININGS_H

#include <sigma/sigma.h>

#define DEVICE_SEED 7
#define DEVICE_BATCH 30 /* of 1797 images: an epoch ends in a smaller one */

static const char device_dense[] =
    "input(8, 8) + dense(64, relu) + dropout(0.2) + dense(32, tanh) + dense(10) + "
    "softmax_cross_entropy";
static const char device_convolution[] =
    "input(8, 8) + convolution(8, 3, relu) + batch_norm + max_pooling(2) + "
    "dense(10) + softmax_cross_entropy";
static const char device_recurrent[] = "input(8, 8) + gru(16) + attention(heads=2) + layer_norm + flatten + "
                                       "dense(10) + softmax_cross_entropy";

static inline sgm_status set_device_training(sgm_trainer *trainer, const char *network)
{
    sgm_dataset *digits = sgm_dataset_open("digits");
    sgm_status status = sgm_trainer_set_network(trainer, network);
    if (status == SGM_OK)
        status = sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.002));
    if (status == SGM_OK)
        status = sgm_trainer_set_data(trainer, sgm_minibatches(digits, .size = DEVICE_BATCH, .seed = 3));
    sgm_dataset_free(digits);
    return status;
}

#endif
