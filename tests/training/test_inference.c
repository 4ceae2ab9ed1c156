/* Trainers and models that predict with parameters as constants, in float32 and in int8. */
#include "test.h"

#include <sigma/sigma.h>

#include <math.h>
#include <sys/stat.h>

#define EXAMPLES 300
#define FEATURES 48
#define CLASSES 4

/* Points around a centre for each class, far enough from each other that nearly all can be told apart. */
static void make_classes(sgm_tensor **features, sgm_tensor **labels)
{
    sgm_shape x = sgm_shape_of(EXAMPLES, FEATURES), y = sgm_shape_of(EXAMPLES, CLASSES);
    *features = sgm_tensor_create(SGM_FLOAT32, &x);
    *labels = sgm_tensor_create(SGM_FLOAT32, &y);
    float *numbers = sgm_tensor_data(*features);
    uint32_t state = 12345;
    for (int64_t i = 0; i < EXAMPLES; i++) {
        sgm_tensor_set(*labels, (const int64_t[]){i, i % CLASSES}, 1);
        for (int64_t k = 0; k < FEATURES; k++) {
            state = state * 1664525 + 1013904223;
            double noise = (double)(state >> 8) / (1 << 24) - 0.5;
            numbers[i * FEATURES + k] = (float)(3 * noise + (k % CLASSES == i % CLASSES ? 0.5 : 0));
        }
    }
}

static sgm_trainer *trainer_of(sgm_env *env, const char *network, sgm_tensor *features, sgm_tensor *labels)
{
    static const char *const fields[] = {"inputs", "targets"};
    sgm_dataset *dataset =
        sgm_dataset_create_from("points", fields, (sgm_tensor *const[]){features, labels}, 2);
    sgm_trainer *trainer = sgm_trainer_create(env, "inference");
    CHECK_OK(sgm_trainer_set_network(trainer, network));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 30)));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = 0.003)));
    sgm_dataset_free(dataset);
    return trainer;
}

#define NETWORK                                                                                              \
    "input(48) + dense(96, relu) + batch_norm + dense(64, tanh) + dense(4) + softmax_cross_entropy"

/* The mean cross entropy of predicted probabilities. */
static double loss_of(const sgm_tensor *predicted, const sgm_tensor *labels)
{
    double sum = 0;
    for (int64_t i = 0; i < EXAMPLES; i++)
        for (int64_t k = 0; k < CLASSES; k++) {
            const int64_t at[] = {i, k};
            if (sgm_tensor_get(labels, at) > 0)
                sum -= log(sgm_tensor_get(predicted, at));
        }
    return sum / EXAMPLES;
}

static double accuracy_of(const sgm_tensor *predicted, const sgm_tensor *labels)
{
    int64_t right = 0;
    for (int64_t i = 0; i < EXAMPLES; i++) {
        int64_t best = 0;
        for (int64_t k = 1; k < CLASSES; k++)
            if (sgm_tensor_get(predicted, (const int64_t[]){i, k}) >
                sgm_tensor_get(predicted, (const int64_t[]){i, best}))
                best = k;
        right += sgm_tensor_get(labels, (const int64_t[]){i, best}) > 0;
    }
    return (double)right / EXAMPLES;
}

static double largest_difference(const sgm_tensor *a, const sgm_tensor *b)
{
    double largest = 0;
    const float *x = sgm_tensor_const_data(a), *y = sgm_tensor_const_data(b);
    for (int64_t i = 0; i < sgm_shape_elements(sgm_tensor_shape(a)); i++)
        largest = fmax(largest, fabs((double)x[i] - (double)y[i]));
    return largest;
}

/* --- parameters are constants, and change --- */

/* The loss that the trainer measures by a program of states is that of its predictions by one of constants,
 * whenever it has gone on training. */
TEST(predictions_follow_training)
{
    sgm_env *env = sgm_env_create("inference", .seed = 3, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_trainer *trainer = trainer_of(env, NETWORK, x, y);
    static const char *const fields[] = {"inputs", "targets"};
    sgm_dataset *dataset = sgm_dataset_create_from("same", fields, (sgm_tensor *const[]){x, y}, 2);
    sgm_iterator *all = sgm_minibatches(dataset, .size = EXAMPLES, .no_shuffle = true);
    double before = 10;
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = NULL));
    for (int round = 0; round < 3; round++) {
        sgm_metrics metrics;
        CHECK_OK(sgm_trainer_run(trainer, .epochs = 2 * (round + 1)));
        CHECK_OK(sgm_trainer_evaluate(trainer, all, &metrics));
        for (int turn = 0; turn < 2; turn++) {
            sgm_tensor *predicted = sgm_trainer_predict(trainer, x, NULL);
            CHECK_OK(predicted);
            CHECK_NEAR(loss_of(predicted, y), metrics.loss, 1e-5);
            sgm_tensor_free(predicted);
        }
        CHECK(metrics.loss < before);
        before = metrics.loss;
    }
    sgm_iterator_free(all);
    sgm_dataset_free(dataset);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(a_parameter_that_is_set_counts_at_once)
{
    sgm_env *env = sgm_env_create("inference", .seed = 3, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_trainer *trainer = trainer_of(env, NETWORK, x, y);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = "int8"));
    sgm_tensor *before = sgm_trainer_predict(trainer, x, NULL);
    CHECK_OK(before);
    sgm_tensor *weights = sgm_trainer_get(trainer, "4-dense.weights");
    CHECK_OK(weights);
    memset(sgm_tensor_data(weights), 0, 64 * CLASSES * sizeof(float));
    CHECK_OK(sgm_trainer_set(trainer, "4-dense.weights", weights));
    sgm_tensor *after = sgm_trainer_predict(trainer, x, NULL);
    CHECK_NEAR(sgm_tensor_get(after, (const int64_t[]){7, 2}), 1.0 / CLASSES, 1e-6);
    CHECK(largest_difference(before, after) > 0.01);
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm_tensor_free(weights);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* --- models --- */

TEST(a_model_predicts_with_what_it_has_learnt_since)
{
    sgm_env *env = sgm_env_create("inference", .seed = 4, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_model *model =
        sgm_sequential(env, sgm_dense(.size = 96, .activation = "relu"), sgm_layer_create("batch_norm", NULL),
                       sgm_dense(.size = CLASSES), sgm_softmax_cross_entropy());
    double before = 10;
    for (int round = 0; round < 3; round++) {
        sgm_metrics metrics;
        CHECK_OK(sgm_model_train(model, x, y, .epochs = 2));
        sgm_tensor *predicted = sgm_model_predict(model, x);
        CHECK_OK(predicted);
        CHECK_OK(sgm_model_evaluate(model, x, y, &metrics));
        CHECK_NEAR(loss_of(predicted, y), metrics.loss, 1e-5);
        CHECK(metrics.loss < before);
        before = metrics.loss;
        sgm_tensor_free(predicted);
    }
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* --- int8 --- */

TEST(a_model_in_int8_is_nearly_as_good)
{
    sgm_env *env = sgm_env_create("inference", .seed = 5, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_model *model = sgm_sequential(env, sgm_dense(.size = 96, .activation = "relu"),
                                      sgm_dense(.size = 96, .activation = "relu"), sgm_dense(.size = CLASSES),
                                      sgm_softmax_cross_entropy());
    CHECK_ERROR(sgm_model_quantize(model, "int8"), "not trained yet");
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 20));
    sgm_tensor *exact = sgm_model_predict(model, x);
    CHECK(accuracy_of(exact, y) > 0.95);
    CHECK_ERROR(sgm_model_quantize(model, "int4"), "quantize is 'int4'; \"int8\" is the only way");
    CHECK_OK(sgm_model_quantize(model, "int8"));
    sgm_tensor *rounded = sgm_model_predict(model, x);
    CHECK_OK(rounded);
    double difference = largest_difference(exact, rounded);
    CHECK(difference > 1e-6 && difference < 0.1);
    CHECK_NEAR(accuracy_of(rounded, y), accuracy_of(exact, y), 0.011);
    sgm_metrics metrics;
    CHECK_OK(sgm_model_evaluate(model, x, y, &metrics));
    CHECK_NEAR(metrics.loss, loss_of(rounded, y), 1e-5);
    CHECK_OK(sgm_model_train(model, x, y, .epochs = 4)); /* in float32; then again in int8 */
    sgm_tensor *later = sgm_model_predict(model, x);
    CHECK(loss_of(later, y) < loss_of(rounded, y));
    CHECK_OK(sgm_model_quantize(model, NULL));
    sgm_tensor *back = sgm_model_predict(model, x);
    difference = largest_difference(back, later);
    CHECK(difference > 1e-6 && difference < 0.1);
    sgm_tensor_free(exact);
    sgm_tensor_free(rounded);
    sgm_tensor_free(later);
    sgm_tensor_free(back);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* The rows of a minibatch do not see each other, so an example alone gives what it gives among others. */
TEST(an_example_in_int8_does_not_depend_on_others)
{
    sgm_env *env = sgm_env_create("inference", .seed = 6, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_trainer *trainer =
        trainer_of(env, "input(48) + dense(96, relu) + dense(4) + softmax_cross_entropy", x, y);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = "int8"));
    sgm_tensor *all = sgm_trainer_predict(trainer, x, NULL), *one = sgm_tensor_slice(x, 0, 17, 18, 1);
    sgm_tensor *alone = sgm_trainer_predict(trainer, one, NULL);
    CHECK_OK(alone);
    for (int64_t k = 0; k < CLASSES; k++)
        CHECK_NEAR(sgm_tensor_get(alone, (const int64_t[]){0, k}),
                   sgm_tensor_get(all, (const int64_t[]){17, k}), 1e-6);
    sgm_tensor_free(all);
    sgm_tensor_free(one);
    sgm_tensor_free(alone);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

TEST(what_cannot_be_int8_says_why)
{
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_env *wide = sgm_env_create("inference", .precision = SGM_FLOAT64);
    sgm_trainer *trainer = trainer_of(wide, NETWORK, x, y);
    CHECK_ERROR(sgm_trainer_set_inference(trainer, .quantize = "int8"), "computes in float64: train it with");
    CHECK_OK(sgm_trainer_status(trainer));
    sgm_env_free(wide);
    sgm_env *env = sgm_env_create("inference");
    trainer = trainer_of(env, "input(48) + dense(20) + dense(4) + softmax_cross_entropy", x, y);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = "int8"));
    CHECK_ERROR(sgm_trainer_predict(trainer, x, NULL), "there is nothing to quantize");
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = NULL));
    sgm_tensor *predicted = sgm_trainer_predict(trainer, x, NULL);
    CHECK_OK(predicted);
    sgm_tensor_free(predicted);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* Parameters of mixed precision are float32, which become int8 as others do. */
TEST(int8_takes_the_place_of_bfloat16)
{
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_env *env = sgm_env_create("inference", .precision = SGM_BFLOAT16, .seed = 2);
    sgm_trainer *trainer = trainer_of(env, NETWORK, x, y);
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 2));
    sgm_tensor *exact = sgm_trainer_predict(trainer, x, NULL);
    CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = "int8"));
    sgm_tensor *rounded = sgm_trainer_predict(trainer, x, NULL);
    CHECK_OK(rounded);
    CHECK_NEAR(accuracy_of(rounded, y), accuracy_of(exact, y), 0.02);
    sgm_tensor_free(exact);
    sgm_tensor_free(rounded);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}

/* --- generators --- */

/* Shares behind each of some tokens. */
static void generate(sgm_trainer *trainer, double shares[8][11])
{
    sgm_generator *generator = sgm_generator_create(trainer);
    CHECK_OK(generator);
    for (int64_t t = 0; t < 8; t++) {
        const double *now;
        CHECK_OK(sgm_generator_read(generator, t * t % 11, &now));
        memcpy(shares[t], now, sizeof shares[t]);
    }
    sgm_generator_free(generator);
}

TEST(a_generator_reads_tokens_in_int8)
{
    static const char *const networks[] = {
        "input(8) + embedding(11, 64) + positions + transformer(4, causal) + dense(11, time_distributed) + "
        "softmax_cross_entropy",
        "input(8) + embedding(11, 64) + lstm(64) + gru(64) + dense(11, time_distributed) + "
        "softmax_cross_entropy"};
    for (int i = 0; i < 2; i++) {
        double exact[8][11], rounded[8][11], largest = 0;
        sgm_env *env = sgm_env_create("inference", .seed = 7, .handler = "cpu");
        sgm_trainer *trainer = sgm_trainer_create(env, "tokens");
        CHECK_OK(sgm_trainer_set_network(trainer, networks[i]));
        CHECK_OK(sgm_trainer_prepare(trainer));
        generate(trainer, exact);
        CHECK_OK(sgm_trainer_set_inference(trainer, .quantize = "int8"));
        generate(trainer, rounded);
        for (int t = 0; t < 8; t++)
            for (int k = 0; k < 11; k++)
                largest = fmax(largest, fabs(exact[t][k] - rounded[t][k]));
        CHECK(largest > 1e-7 && largest < 0.02);
        sgm_env_free(env);
    }
}

/* --- ONNX --- */

static int64_t size_of(const char *path)
{
    struct stat file;
    CHECK(stat(path, &file) == 0);
    return file.st_size;
}

TEST(an_exported_model_in_int8_is_read_again)
{
    static const char exact_path[] = "inference_float32.onnx", path[] = "inference_int8.onnx";
    sgm_env *env = sgm_env_create("inference", .seed = 8, .handler = "cpu");
    sgm_tensor *x, *y;
    make_classes(&x, &y);
    sgm_trainer *trainer = trainer_of(
        env, "input(48) + dense(256, relu) + dense(96, tanh) + dense(4) + softmax_cross_entropy", x, y);
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 4));
    sgm_status status = sgm_trainer_export_onnx(trainer, path, .quantize = "int8");
    if (status == SGM_ERROR_UNSUPPORTED && strstr(sgm_last_error(), "built without ONNX") != NULL) {
        sgm_env_free(env);
        SKIP("built without ONNX");
    }
    CHECK_OK(status);
    CHECK_OK(sgm_trainer_export_onnx(trainer, exact_path, .quantize = NULL));
    CHECK(size_of(path) < size_of(exact_path) / 3);
    sgm_onnx *model = sgm_onnx_load(path, .handler = "cpu");
    CHECK_OK(model);
    CHECK_OK(sgm_onnx_set(model, sgm_onnx_input_at(model, 0, NULL), x));
    CHECK_OK(sgm_onnx_run(model));
    sgm_tensor *read = sgm_onnx_get(model, sgm_onnx_output_at(model, 0));
    sgm_tensor *exact = sgm_trainer_predict(trainer, x, NULL);
    double difference = largest_difference(read, exact);
    CHECK(difference > 1e-6 && difference < 0.1);
    CHECK_NEAR(accuracy_of(read, y), accuracy_of(exact, y), 0.011);
    CHECK_ERROR(sgm_trainer_export_onnx(trainer, path, .quantize = "int4"), "quantize is 'int4'");
    remove(path);
    remove(exact_path);
    sgm_onnx_free(model);
    sgm_tensor_free(read);
    sgm_tensor_free(exact);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    sgm_env_free(env);
}
