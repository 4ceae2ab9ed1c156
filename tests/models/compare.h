/* What tests of models compare with numbers of transformers (fixtures.py): scores, and losses of a training.
 */
#ifndef SIGMA_TEST_MODELS_COMPARE_H
#define SIGMA_TEST_MODELS_COMPARE_H

#include "models/folders.h"
#include "models/losses.h"

#include <math.h>
#include <sigma/models.h>
#include <sigma/sigma.h>

#define TIME 12
#define STEPS 20

__attribute__((unused)) static char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, FIXTURES "%s", name);
    return path;
}

__attribute__((unused)) static sgm_bundle *bundle_of(const char *name, const char *file)
{
    char path[250];
    snprintf(path, sizeof path, "%s/%s.safetensors", path_of(name), file);
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    return bundle;
}

__attribute__((unused)) static sgm_bundle *expected_of(const char *name)
{
    return bundle_of(name, "expected");
}

/* Logarithms of probabilities from logits (rows, tokens), in their place. */
static void log_softmax(double *logits, size_t rows, size_t tokens)
{
    for (size_t r = 0; r < rows; r++) {
        double sum = 0;
        for (size_t i = 0; i < tokens; i++)
            sum += exp(logits[r * tokens + i]);
        for (size_t i = 0; i < tokens; i++)
            logits[r * tokens + i] -= log(sum);
    }
}

static double *numbers_of(const sgm_tensor *tensor, size_t *count)
{
    *count = (size_t)sgm_shape_elements(sgm_tensor_shape(tensor));
    double *numbers = malloc(*count * sizeof *numbers);
    CHECK_OK(sgm_tensor_read(tensor, numbers, *count));
    return numbers;
}

/* A language model gives probabilities; their logarithms are the logits less a number for each row. */
__attribute__((unused)) static void compare_scores(const char *name, sgm_model *model, sgm_tensor *inputs,
                                                   const sgm_bundle *expected)
{
    size_t count, wanted;
    sgm_tensor *probabilities = sgm_model_predict(model, inputs);
    CHECK_OK(probabilities);
    double *own = numbers_of(probabilities, &count),
           *logits = numbers_of(sgm_bundle_get(expected, "logits"), &wanted);
    CHECK_INT(count, wanted);
    log_softmax(logits, 2 * TIME, count / (2 * TIME));
    for (size_t i = 0; i < count; i++)
        if (!test_near(log(own[i]), logits[i], 1e-5))
            TEST_FAIL("%s: score %zu is %.9g, transformers has %.9g", name, i, log(own[i]), logits[i]);
    free(own);
    free(logits);
    sgm_tensor_free(probabilities);
}

/* A training of one epoch on minibatches of two rows; inputs and targets are (rows, TIME). */
__attribute__((unused)) static void compare_losses(const char *name, sgm_trainer *trainer, sgm_tensor *inputs,
                                                   sgm_tensor *targets, const float *expected)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_dataset *data = sgm_dataset_create_from("batches", fields, (sgm_tensor *[]){inputs, targets}, 2);
    compare_losses_of(name, trainer, data, 2, 1e-3, expected, STEPS);
    sgm_dataset_free(data);
}

/* The same minibatches, in the same order. */
__attribute__((unused)) static void compare_training(const char *name, sgm_trainer *trainer,
                                                     sgm_tensor *batches, const sgm_bundle *expected)
{
    sgm_shape rows = sgm_shape_of(2 * STEPS, TIME + 1);
    sgm_tensor *all = sgm_tensor_reshape(batches, &rows);
    sgm_tensor *parts[] = {sgm_tensor_slice(all, 1, 0, TIME, 1), sgm_tensor_slice(all, 1, 1, TIME + 1, 1)};
    compare_losses(name, trainer, parts[0], parts[1],
                   sgm_tensor_const_data(sgm_bundle_get(expected, "losses")));
    sgm_tensor_free(parts[0]);
    sgm_tensor_free(parts[1]);
    sgm_tensor_free(all);
}

#endif
