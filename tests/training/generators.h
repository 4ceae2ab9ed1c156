/* Tokens to read, and what a trainer predicts behind them by all steps at once. TIME and TOKENS are the
 * network's, defined before. */
#ifndef TESTS_TRAINING_GENERATORS_H
#define TESTS_TRAINING_GENERATORS_H

#include "test.h"

#include <sigma/sigma.h>

static inline int64_t token_at(int64_t i)
{
    return (i * i + 3 * i + 1) % TOKENS;
}

/* Behind tokens `first` to `first + count` - 1, read at once. */
static inline void predict(sgm_trainer *trainer, int64_t first, int64_t count, bool one_hot,
                           double expected[TOKENS])
{
    sgm_shape shape = one_hot ? sgm_shape_of(1, TIME, TOKENS) : sgm_shape_of(1, TIME);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t t = 0; t < count; t++)
        if (one_hot)
            sgm_tensor_set(inputs, (const int64_t[]){0, t, token_at(first + t)}, 1);
        else
            sgm_tensor_set(inputs, (const int64_t[]){0, t}, (double)token_at(first + t));
    sgm_tensor *all = sgm_trainer_predict(trainer, inputs, NULL);
    CHECK_OK(all);
    for (int64_t k = 0; k < TOKENS; k++)
        expected[k] = sgm_tensor_get(all, (const int64_t[]){0, count - 1, k});
    sgm_tensor_free(all);
    sgm_tensor_free(inputs);
}

#endif
