/* What tests of encoders compare with numbers of transformers (fixtures.py): scores, and losses of a
 * training. */
#ifndef SIGMA_TEST_MODELS_COMPARE_ENCODERS_H
#define SIGMA_TEST_MODELS_COMPARE_ENCODERS_H

#include "models/folders.h"
#include "models/losses.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define TIME 12
#define STEPS 20

/* Rows of the scores that count: of texts, or of the steps within a text's length. */
static bool counts(const sgm_bundle *expected, const char *name, size_t row)
{
    const int64_t *lengths = sgm_tensor_const_data(sgm_bundle_get(expected, "lengths"));
    return strstr(name, "fill") == NULL || (int64_t)(row % TIME) < lengths[row / TIME];
}

/* Inputs are those of one file, scores those of another, which may be the same. Scores of classes and tokens
 * are compared as logarithms of shares, which the network gives. */
__attribute__((unused)) static void compare_scores(const char *name, sgm_trainer *trainer,
                                                   const sgm_bundle *expected, const sgm_bundle *scores)
{
    static const char *const fields[] = {"inputs", "lengths"};
    sgm_block *block = sgm_block_create(2);
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_block_add(block, fields[i],
                               sgm_tensor_cast(sgm_bundle_get(expected, fields[i]), SGM_FLOAT32)));
    sgm_tensor *given = sgm_trainer_predict_block(trainer, block, NULL);
    if (given == NULL)
        TEST_FAIL("%s: %s", name, sgm_last_error());
    const sgm_tensor *wanted = sgm_bundle_get(scores, "logits");
    const sgm_shape *shape = sgm_tensor_shape(wanted);
    size_t count = (size_t)sgm_shape_elements(shape), columns = (size_t)shape->dims[shape->rank - 1];
    CHECK(sgm_shape_equal(sgm_tensor_shape(given), shape));
    double *own = malloc(count * sizeof *own), *logits = malloc(count * sizeof *logits);
    CHECK_OK(sgm_tensor_read(given, own, count));
    CHECK_OK(sgm_tensor_read(wanted, logits, count));
    for (size_t row = 0; row < count / columns; row++) {
        double sum = 0;
        for (size_t i = 0; i < columns; i++)
            sum += exp(logits[row * columns + i]);
        for (size_t i = row * columns; i < (row + 1) * columns && counts(expected, name, row); i++) {
            bool shares = strstr(name, "embed") == NULL;
            double a = shares ? log(own[i]) : own[i], b = shares ? logits[i] - log(sum) : logits[i];
            if (!test_near(a, b, 1e-5))
                TEST_FAIL("%s: score %zu is %.9g, transformers has %.9g", name, i, a, b);
        }
    }
    free(own);
    free(logits);
    sgm_tensor_free(given);
    sgm_block_free(block);
}

/* (steps, 2, ...) as (steps * 2, ...). */
static sgm_tensor *rows_of(const sgm_bundle *expected, const char *name)
{
    sgm_tensor *tensor = sgm_bundle_get(expected, name);
    sgm_shape shape = *sgm_tensor_shape(tensor),
              rows = {.rank = shape.rank - 1, .dims = {2 * STEPS, shape.dims[2]}};
    if (rows.rank == 1)
        rows = sgm_shape_of(2 * STEPS);
    return sgm_tensor_reshape(tensor, &rows);
}

/* Of classes, a share of each. */
static sgm_tensor *targets_of(const sgm_bundle *expected)
{
    sgm_tensor *numbers = rows_of(expected, "targets");
    if (sgm_tensor_shape(numbers)->rank > 1)
        return numbers;
    sgm_shape shape = sgm_shape_of(2 * STEPS, 3);
    sgm_tensor *shares = sgm_tensor_create(SGM_FLOAT32, &shape);
    for (int64_t i = 0; i < 2 * STEPS; i++)
        sgm_tensor_set(shares, (int64_t[]){i, (int64_t)sgm_tensor_get(numbers, (int64_t[]){i})}, 1);
    sgm_tensor_free(numbers);
    return shares;
}

__attribute__((unused)) static void compare_training(const char *name, sgm_trainer *trainer,
                                                     const sgm_bundle *expected, const sgm_bundle *wanted)
{
    static const char *const fields[] = {"inputs", "lengths", "targets"};
    sgm_tensor *tensors[] = {rows_of(expected, "batches"), rows_of(expected, "batch_lengths"),
                             targets_of(expected)};
    sgm_dataset *data = sgm_dataset_create_from("batches", fields, tensors, 3);
    compare_losses_of(name, trainer, data, 2, 1e-3, sgm_tensor_const_data(sgm_bundle_get(wanted, "losses")),
                      STEPS);
    sgm_dataset_free(data);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
}

#endif
