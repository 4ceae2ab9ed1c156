/* The key class_weights: weights that make rare classes count as much as frequent ones, as an argument of the
 * network's cost.
 *
 * A class weighs N / (K n): N examples in all, K classes, n of the class; after King and Zeng, "Logistic
 * Regression in Rare Events Data", 2001. Once the weights stand in the network, config.yaml has them there,
 * and a run that goes on keeps them. */
#include "config/config_checks.h"
#include "config/experiment.h"

#define COST "softmax_cross_entropy"

/* Adds the examples of each class in a block of one-hot targets. */
static sgm_status count_classes(const sgm_block *block, int64_t **counts, int64_t *classes)
{
    sgm_tensor *targets = sgm_block_field(block, "targets");
    const sgm_shape *shape = targets != NULL ? sgm_tensor_shape(targets) : NULL;
    if (shape == NULL)
        return sgm_last_status();
    if (shape->rank != 2 || shape->dims[1] < 2)
        return sgm_fail(SGM_ERROR_ARGUMENT, "targets are no classes, so there is nothing to balance");
    *classes = shape->dims[1];
    if (*counts == NULL)
        *counts = sgm__calloc((size_t)*classes, sizeof **counts);
    double *row = *counts != NULL ? sgm__calloc((size_t)(block->count * *classes), sizeof *row) : NULL;
    if (row == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_tensor_read(targets, row, (size_t)(block->count * *classes));
    for (int64_t i = 0; status == SGM_OK && i < block->count * *classes; i++)
        (*counts)[i % *classes] += row[i] > 0.5;
    sgm__free(row);
    return status;
}

static sgm_status count_all(sgm_dataset *dataset, int64_t **counts, int64_t *classes)
{
    const sgm_block *block = NULL;
    for (int64_t i = 0;; i++) {
        SGM_TRY(sgm_dataset_fetch_block(dataset, i, &block));
        if (block == NULL)
            return SGM_OK;
        sgm_status status = count_classes(block, counts, classes);
        sgm_dataset_release_block(dataset, block);
        SGM_TRY(status);
    }
}

/* The network with "class_weights=(0.7, 1.8)" in its cost; NULL without memory. A class without examples
 * keeps the weight 1: it is in no gradient. */
static char *with_weights(const char *network, const char *cost, const int64_t *counts, int64_t classes)
{
    sgm__text text = {0};
    int64_t sum = 0;
    for (int64_t i = 0; i < classes; i++)
        sum += counts[i];
    sgm__text_append(&text, "class_weights=(");
    for (int64_t i = 0; i < classes; i++)
        sgm__text_append(&text, "%s%.6g", i > 0 ? ", " : "",
                         counts[i] > 0 ? (double)sum / ((double)classes * (double)counts[i]) : 1.0);
    sgm__text_append(&text, ")");
    char *made = text.failed ? NULL : network_with_argument(network, cost, text.data);
    sgm__text_free(&text);
    return made;
}

static sgm_status balance(config *c, sgm_dataset *training)
{
    const char *cost = strstr(c->network, COST);
    int64_t *counts = NULL, classes = 0;
    if (cost == NULL || cost != network_find_cost(c->network))
        return sgm_fail(SGM_ERROR_ARGUMENT, "expected a network with one " COST ", which takes the weights");
    if (strstr(cost, "class_weights") != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "the network's " COST " has class_weights already; remove one of them");
    sgm_status status = count_all(training, &counts, &classes);
    char *network =
        status == SGM_OK && counts != NULL ? with_weights(c->network, cost, counts, classes) : NULL;
    sgm__free(counts);
    SGM_TRY(status);
    if (network == NULL)
        return SGM_ERROR_MEMORY;
    sgm__free(c->network);
    c->network = network;
    sgm__free(c->class_weights);
    c->class_weights = NULL;
    return SGM_OK;
}

sgm_status experiment_balance(config *c, sgm_dataset *training)
{
    if (c->class_weights == NULL)
        return SGM_OK;
    return balance(c, training) == SGM_OK ? SGM_OK : sgm__fail_within("class_weights");
}
