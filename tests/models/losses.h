/* A training whose losses are those that another library had on the same minibatches. */
#ifndef SIGMA_TEST_MODELS_LOSSES_H
#define SIGMA_TEST_MODELS_LOSSES_H

#include "test.h"

#include <sigma/sigma.h>

typedef struct losses {
    const char *name;
    const float *expected;
    int count;
    double sum; /* of all steps so far: progress has their mean */
} losses;

static bool compare_loss(void *user, const sgm_training_progress *progress)
{
    losses *l = user;
    if (progress->kind != SGM_PROGRESS_ITERATION)
        return true;
    double sum = progress->training.loss * (l->count + 1), loss = sum - l->sum;
    if (!test_near(loss, l->expected[l->count], 1e-4))
        TEST_FAIL("%s: the loss of step %d is %.9g, expected %.9g", l->name, l->count, loss,
                  (double)l->expected[l->count]);
    l->sum = sum;
    l->count++;
    return true;
}

/* An epoch of AdamW with minibatches of `batch` rows, in their order: `steps` losses, by transformers or
 * PyTorch. */
static void compare_losses_of(const char *name, sgm_trainer *trainer, sgm_dataset *data, int64_t batch,
                              double learning_rate, const float *expected, int steps)
{
    losses l = {.name = name, .expected = expected};
    CHECK_OK(data);
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(data, .size = batch, .no_shuffle = true)));
    CHECK_OK(
        sgm_trainer_set_optimiser(trainer, sgm_adamw(.learning_rate = learning_rate, .weight_decay = 0.01)));
    CHECK_OK(sgm_trainer_on_progress(trainer, compare_loss, &l));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 1));
    CHECK_INT(l.count, steps);
}

#endif
