/* What tests of training share: a small problem made of sines (the one of golden/golden_mlp.py), and trainers
 * on it. */
#ifndef SIGMA_TEST_WAVES_H
#define SIGMA_TEST_WAVES_H

#include "test.h"

#include "train/train.h"
#include "trainer/trainer_struct.h"
#include <sigma/sigma.h>

#define WAVE_EXAMPLES 40
#define WAVE_MAXIMUM 4096 /* elements of a state that is compared */
#define WAVE_NETWORK "input(6) + dense(8, tanh) + dense(5, relu) + dense(3) + softmax_cross_entropy"

/* Rows 0: a vector. */
__attribute__((unused)) static sgm_tensor *wave(int64_t rows, int64_t columns, double phase, double size,
                                                sgm_dtype dtype)
{
    sgm_shape shape = rows > 0 ? sgm_shape_of(rows, columns) : sgm_shape_of(columns);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(tensor);
    double values[512];
    size_t count = (size_t)sgm_shape_elements(&shape);
    CHECK(count <= 512);
    for (size_t i = 0; i < count; i++)
        values[i] = size * sin(1.7 * (double)i + phase);
    CHECK_OK(sgm_tensor_write(tensor, values, count));
    return tensor;
}

__attribute__((unused)) static sgm_dataset *wave_dataset(void)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_shape shape = sgm_shape_of(WAVE_EXAMPLES, 3);
    sgm_tensor *tensors[2] = {wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32),
                              sgm_tensor_create(SGM_FLOAT32, &shape)};
    CHECK_OK(tensors[1]);
    for (int64_t i = 0; i < WAVE_EXAMPLES; i++)
        sgm_tensor_set(tensors[1], (const int64_t[]){i, i * 7 % 3}, 1);
    sgm_dataset *dataset = sgm_dataset_create_from("waves", fields, tensors, 2);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    CHECK_OK(dataset);
    return dataset;
}

typedef struct wave_options {
    const char *network;
    const char *handler; /* default reference */
    sgm_dtype precision;
    sgm_optimiser *optimiser; /* default: momentum as in the golden curve */
    bool shuffle;
    uint64_t seed;
    int64_t batch; /* default 10 */
} wave_options;

typedef struct wave_trainer {
    sgm_handler *handler;
    sgm_trainer *trainer;
} wave_trainer;

__attribute__((unused)) static wave_trainer make_wave_trainer(wave_options options)
{
    wave_trainer made = {
        .handler = sgm_handler_create(options.handler != NULL ? options.handler : "reference", .threads = 2)};
    CHECK_OK(made.handler);
    sgm__trainer_settings settings = {
        .seed = options.seed, .handler = made.handler, .precision = options.precision};
    made.trainer = sgm__trainer_create("waves", &settings);
    CHECK_OK(made.trainer);
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_set_network(made.trainer, options.network != NULL ? options.network : WAVE_NETWORK));
    CHECK_OK(sgm_trainer_set_data(made.trainer,
                                  sgm_minibatches(dataset, .size = options.batch > 0 ? options.batch : 10,
                                                  .seed = options.seed, .no_shuffle = !options.shuffle)));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_set_optimiser(
        made.trainer,
        options.optimiser != NULL ? options.optimiser : sgm_momentum(.learning_rate = 0.1, .momentum = 0.9)));
    return made;
}

/* Shuffled, with all examples in their order as "validation". */
__attribute__((unused)) static wave_trainer make_validated_trainer(uint64_t seed)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = seed, .shuffle = true});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation",
                                  sgm_minibatches(dataset, .size = 16, .no_shuffle = true)));
    sgm_dataset_free(dataset);
    return made;
}

__attribute__((unused)) static void free_wave_trainer(wave_trainer made)
{
    sgm__trainer_free(made.trainer);
    sgm_handler_free(made.handler);
}

/* The parameters that golden_mlp.py starts from. */
__attribute__((unused)) static void set_golden_parameters(sgm_trainer *trainer, sgm_dtype dtype)
{
    static const int64_t sizes[] = {6, 8, 5, 3};
    for (int i = 0; i < 3; i++) {
        char name[64];
        sgm_tensor *weights = wave(sizes[i], sizes[i + 1], i, 0.5, dtype);
        sgm_tensor *biases = wave(0, sizes[i + 1], 10 + i, 0.1, dtype);
        snprintf(name, sizeof name, "%d-dense.weights", i + 1);
        CHECK_OK(sgm_trainer_set(trainer, name, weights));
        snprintf(name, sizeof name, "%d-dense.biases", i + 1);
        CHECK_OK(sgm_trainer_set(trainer, name, biases));
        sgm_tensor_free(weights);
        sgm_tensor_free(biases);
    }
}

static void check_near_tensors(const sgm_tensor *a, const sgm_tensor *b, double tolerance)
{
    static double left[WAVE_MAXIMUM], right[WAVE_MAXIMUM];
    CHECK_OK(a);
    CHECK_OK(b);
    size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(a));
    CHECK(count <= WAVE_MAXIMUM);
    CHECK_OK(sgm_tensor_read(a, left, count));
    CHECK_OK(sgm_tensor_read(b, right, count));
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(left[i], right[i], tolerance);
}

/* Each state of a trainer is as a file has it, which has no others. */
__attribute__((unused)) static void check_wave_states(sgm_trainer *trainer, const char *path)
{
    const char *name;
    size_t compared = 0;
    sgm_bundle *bundle = sgm_bundle_load(path);
    CHECK_OK(bundle);
    for (; (name = sgm_session_state_at(trainer->learner.session, compared)) != NULL; compared++) {
        sgm_tensor *own = sgm_trainer_get(trainer, name);
        CHECK_OK(own);
        check_near_tensors(sgm_bundle_get(bundle, name), own, 1e-10);
        sgm_tensor_free(own);
    }
    CHECK_INT(sgm_bundle_count(bundle), compared);
    CHECK(compared >= 4);
    sgm_bundle_free(bundle);
}

/* Two checkpoints have the same states. */
__attribute__((unused)) static void check_near_bundles(const sgm_bundle *a, const sgm_bundle *b,
                                                       double tolerance)
{
    CHECK_INT(sgm_bundle_count(a), sgm_bundle_count(b));
    CHECK(sgm_bundle_count(a) >= 12);
    for (size_t i = 0; i < sgm_bundle_count(a); i++) {
        const char *name = sgm_bundle_name_at(a, i);
        check_near_tensors(sgm_bundle_get(a, name), sgm_bundle_get(b, name), tolerance);
    }
}

/* Loss of each iteration; the mean of an epoch so far tells it. */
typedef struct loss_curve {
    double losses[512];
    size_t count;
    double sum;
    int64_t examples;
} loss_curve;

__attribute__((unused)) static bool follow_losses(void *user, const sgm_training_progress *progress)
{
    loss_curve *curve = user;
    if (progress->kind == SGM_PROGRESS_EPOCH) {
        curve->sum = 0;
        curve->examples = 0;
    }
    if (progress->kind != SGM_PROGRESS_ITERATION || curve->count == 512)
        return true;
    double sum = progress->training.loss * (double)progress->training.examples;
    int64_t examples = progress->training.examples;
    curve->losses[curve->count++] = (sum - curve->sum) / (double)(examples - curve->examples);
    curve->sum = sum;
    curve->examples = examples;
    return true;
}

__attribute__((unused)) static void check_equal_losses(const loss_curve *a, const loss_curve *b,
                                                       double tolerance)
{
    CHECK_INT(b->count, a->count);
    for (size_t i = 0; i < a->count; i++)
        CHECK_NEAR(b->losses[i], a->losses[i], tolerance);
}

/* All states of `a` are those of `b`. */
__attribute__((unused)) static void check_equal_states(sgm_trainer *a, sgm_trainer *b, double tolerance)
{
    size_t compared = 0;
    const char *name;
    for (size_t i = 0; (name = sgm_session_state_at(a->learner.session, i)) != NULL; i++) {
        double first[512], second[512];
        sgm_tensor *left = sgm_trainer_get(a, name), *right = sgm_trainer_get(b, name);
        CHECK_OK(left);
        CHECK_OK(right);
        size_t count = (size_t)sgm_shape_elements(sgm_tensor_shape(left));
        CHECK(count <= 512);
        CHECK_OK(sgm_tensor_read(left, first, count));
        CHECK_OK(sgm_tensor_read(right, second, count));
        for (size_t k = 0; k < count; k++)
            if (!test_near(second[k], first[k], tolerance))
                TEST_FAIL("%s: element %zu is %.17g and %.17g", name, k, first[k], second[k]);
        sgm_tensor_free(left);
        sgm_tensor_free(right);
        compared++;
    }
    CHECK(compared >= 6);
}

#endif
