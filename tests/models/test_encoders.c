/* Encoders against what transformers computes with them (fixtures.py): vectors of texts, classes, masked
 * tokens, for texts of different lengths; losses of a training; and the way back. */
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

/* Scores of classes and tokens are compared as logarithms of shares, which the network gives. */
static void compare_scores(const char *name, sgm_trainer *trainer, const sgm_bundle *expected)
{
    static const char *const fields[] = {"inputs", "lengths"};
    sgm_block *block = sgm_block_create(2);
    for (int i = 0; i < 2; i++)
        CHECK_OK(sgm_block_add(block, fields[i],
                               sgm_tensor_cast(sgm_bundle_get(expected, fields[i]), SGM_FLOAT32)));
    sgm_tensor *given = sgm_trainer_predict_block(trainer, block, NULL);
    if (given == NULL)
        TEST_FAIL("%s: %s", name, sgm_last_error());
    const sgm_tensor *wanted = sgm_bundle_get(expected, "logits");
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

static void compare_training(const char *name, sgm_trainer *trainer, const sgm_bundle *expected)
{
    static const char *const fields[] = {"inputs", "lengths", "targets"};
    sgm_tensor *tensors[] = {rows_of(expected, "batches"), rows_of(expected, "batch_lengths"),
                             targets_of(expected)};
    sgm_dataset *data = sgm_dataset_create_from("batches", fields, tensors, 3);
    compare_losses_of(name, trainer, data, 2, 1e-3, sgm_tensor_const_data(sgm_bundle_get(expected, "losses")),
                      STEPS);
    sgm_dataset_free(data);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
}

TEST(encoders_compute_what_transformers_computes)
{
    static const char *const names[] = {"bert_embed",      "bert_fill",          "bert_classify",
                                        "roberta_fill",    "roberta_classify",   "distilbert_embed",
                                        "distilbert_fill", "distilbert_classify"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[300];
        snprintf(path, sizeof path, FIXTURES "%s/expected.safetensors", names[i]);
        sgm_bundle *expected = sgm_bundle_load(path);
        CHECK_OK(expected);
        *strrchr(path, '/') = '\0';
        sgm_env *env = sgm_env_create("encoders");
        sgm_model *model = sgm_model_import(env, path, .context = TIME);
        CHECK_OK(model);
        sgm_trainer *trainer = sgm_model_trainer(model);
        compare_scores(names[i], trainer, expected);
        if (strstr(names[i], "embed") == NULL)
            compare_training(names[i], trainer, expected);
        sgm_env_free(env);
        sgm_bundle_free(expected);
    }
}

/* A model with a head makes vectors without it; the length is 1 where sentence-transformers says so. */
TEST(the_task_chooses_the_head)
{
    const char *folder = copy_of("bert_classify");
    sgm_pretrained *model = sgm_pretrained_open(folder, .task = "embed");
    CHECK_OK(model);
    CHECK_STR(sgm_pretrained_describe(model)->task, "embed");
    CHECK(strstr(sgm_pretrained_network(model), "global_average_pooling(steps)") != NULL);
    CHECK(strstr(sgm_pretrained_network(model), "unit_norm") == NULL);
    sgm_pretrained_free(model);
    const char modules[] = "[{\"type\": \"sentence_transformers.models.Normalize\"}]";
    write_file(folder, "modules.json", modules, strlen(modules));
    model = sgm_pretrained_open(folder, .task = "embed");
    CHECK(strstr(sgm_pretrained_network(model), "global_average_pooling(steps) + unit_norm") != NULL);
    sgm_pretrained_free(model);
    CHECK(sgm_pretrained_open(folder, .task = "fill") == NULL);
    CHECK(strstr(sgm_last_error(), "has no tensor 'cls.predictions.transform.dense.weight'") != NULL);
}
