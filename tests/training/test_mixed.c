/* Mixed precision: bfloat16 in the layers learns what float32 does, since parameters, optimisers and costs
 * stay float32. */
#include "waves.h"

#include <unistd.h>

static sgm_dtype precisions[] = {SGM_FLOAT32, SGM_BFLOAT16};

/* --- curves --- */

typedef struct problem {
    const char *network, *training, *measured;
    double share; /* of `training` that is trained on; 1: all, and measured on `measured` */
    double learning_rate;
    int64_t batch, epochs;
    const char *mixed_handler; /* NULL: cpu */
    uint64_t seed;
} problem;

typedef struct outcome {
    loss_curve curve;
    sgm_metrics metrics;
} outcome;

static sgm_dataset *part_of(const char *name, double begin, double share)
{
    sgm_dataset *all = sgm_dataset_open(name);
    CHECK_OK(all);
    sgm_dataset *part = sgm_dataset_split_examples(all, begin, share);
    CHECK_OK(part);
    sgm_dataset_free(all);
    return part;
}

static void learn(const problem *p, const char *handler, sgm_dtype precision, outcome *result)
{
    sgm_env *env = sgm_env_create("mixed", .seed = p->seed + 1, .handler = handler, .precision = precision);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    bool apart = p->share < 1;
    sgm_dataset *training = part_of(p->training, 0, p->share);
    sgm_dataset *measured = part_of(p->measured, apart ? p->share : 0, apart ? 1 - p->share : 1);
    CHECK_OK(sgm_trainer_set_network(trainer, p->network));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_adam(.learning_rate = p->learning_rate)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(training, .size = p->batch, .seed = p->seed + 1)));
    CHECK_OK(sgm_trainer_on_progress(trainer, follow_losses, &result->curve));
    CHECK_OK(sgm_env_run(env, .epochs = p->epochs));
    sgm_iterator *iterator = sgm_minibatches(measured, .size = 100, .no_shuffle = true);
    CHECK_OK(sgm_trainer_evaluate(trainer, iterator, &result->metrics));
    sgm_iterator_free(iterator);
    sgm_dataset_free(training);
    sgm_dataset_free(measured);
    sgm_env_free(env);
}

/* Mean distance of two curves over `count` steps from `first`. */
static double distance(const loss_curve *a, const loss_curve *b, size_t first, size_t count)
{
    double sum = 0;
    for (size_t i = first; i < first + count; i++)
        sum += fabs(a->losses[i] - b->losses[i]);
    return sum / (double)count;
}

/* `noise`: of a step's loss, in the mean of all steps and in that of the last 50. */
static void check_noise(const problem *p, size_t steps, double noise, double accuracy)
{
    static outcome results[2];
    memset(results, 0, sizeof results);
    for (int i = 0; i < 2; i++)
        learn(p, i == 1 && p->mixed_handler != NULL ? p->mixed_handler : "cpu", precisions[i], &results[i]);
    const loss_curve *wide = &results[0].curve, *mixed = &results[1].curve;
    CHECK(mixed->count >= steps);
    CHECK_INT(mixed->count, wide->count);
    CHECK(distance(wide, mixed, 0, wide->count) < noise);
    CHECK(distance(wide, mixed, wide->count - 50, 50) < noise);
    CHECK(distance(wide, mixed, 0, wide->count) > 0); /* they are two precisions */
    CHECK_NEAR(results[1].metrics.accuracy, results[0].metrics.accuracy, accuracy);
    CHECK_NEAR(results[1].metrics.loss, results[0].metrics.loss, noise);
}

/* 30 flowers are measured: one of them may fall on the other side. */
TEST(iris_is_learnt_as_in_float32)
{
    check_noise(&(problem){"input(4) + dense(16, tanh) + dense(3) + softmax_cross_entropy", "iris", "iris",
                           0.8, 0.01, 10, 40, NULL, 0},
                400, 0.005, 1.01 / 30);
}

TEST(digits_are_learnt_as_in_float32)
{
    check_noise(&(problem){"input(8, 8) + dense(64, relu) + dropout(0.2) + dense(32, sigmoid) + dense(10) + "
                           "softmax_cross_entropy",
                           "digits", "digits-test", 1, 0.005, 32, 6, NULL, 0},
                250, 0.01, 0.0101);
}

/* Products by oneDNN, which sums in float32 as the other way does; three seeds. */
TEST(digits_are_learnt_with_onednn)
{
    sgm_handler *handler = sgm_handler_create("cpu", .dense = "onednn");
    if (handler == NULL && sgm_last_status() == SGM_ERROR_NOT_FOUND)
        SKIP("oneDNN is not installed");
    CHECK_OK(handler);
    bool narrow = strcmp(sgm_handler_support(handler, "matmul", SGM_BFLOAT16), "kernel") == 0;
    sgm_handler_free(handler);
    if (!narrow)
        SKIP("this oneDNN has no products of bfloat16 for this processor");
    for (uint64_t seed = 0; seed < 3; seed++)
        check_noise(&(problem){"input(8, 8) + dense(64, relu) + dense(32, tanh) + dense(10) + "
                               "softmax_cross_entropy",
                               "digits", "digits-test", 1, 0.005, 32, 6, "cpu(dense=onednn)", seed},
                    250, 0.01, 0.0101);
}

/* Products by our own tiles and blocks of bfloat16, with the instructions that are here. */
TEST(digits_are_learnt_with_own_tiles)
{
    static const char *const handlers[] = {"cpu(bfloat16=own)", "cpu(bfloat16=amx)"};
    for (int i = 0; i < 2; i++)
        check_noise(
            &(problem){"input(8, 8) + dense(64, relu) + dense(32, tanh) + dense(10) + softmax_cross_entropy",
                       "digits", "digits-test", 1, 0.005, 32, 6, handlers[i], 0},
            250, 0.01, 0.0101);
}

TEST(images_are_learnt_as_in_float32)
{
    check_noise(
        &(problem){"input(8, 8) + convolution(8, 3, relu) + max_pooling(2) + dense(32, relu) + dense(10) "
                   "+ softmax_cross_entropy",
                   "digits", "digits-test", 1, 0.005, 32, 3, NULL, 0},
        120, 0.02, 0.0201);
}

TEST(sequences_are_learnt_as_in_float32)
{
    check_noise(&(problem){"input(8, 8) + lstm(24) + dense(10) + softmax_cross_entropy", "digits",
                           "digits-test", 1, 0.005, 32, 3, NULL, 0},
                120, 0.02, 0.0201);
}

TEST(attention_learns_as_in_float32)
{
    check_noise(&(problem){"input(8, 8) + transformer(2, 16) + dense(10) + softmax_cross_entropy", "digits",
                           "digits-test", 1, 0.005, 32, 3, NULL, 0},
                120, 0.02, 0.0201);
}

TEST(handlers_agree)
{
    const problem p = {"input(4) + dense(8, tanh) + dense(3, softmax) + negative_log_likelihood",
                       "iris",
                       "iris",
                       0.8,
                       0.01,
                       10,
                       10,
                       NULL,
                       0};
    static outcome results[2];
    memset(results, 0, sizeof results);
    learn(&p, "cpu", SGM_BFLOAT16, &results[0]);
    learn(&p, "reference", SGM_BFLOAT16, &results[1]);
    CHECK_INT(results[0].curve.count, 120);
    CHECK(distance(&results[0].curve, &results[1].curve, 0, 120) < 0.005);
}

/* --- what stays float32 --- */

static void read_state(const sgm_trainer *trainer, const char *name, double *values, size_t count)
{
    sgm_tensor *tensor = sgm_session_get(trainer->learner.session, name);
    CHECK_OK(tensor);
    CHECK_INT(sgm_tensor_dtype(tensor), SGM_FLOAT32);
    CHECK_OK(sgm_tensor_read(tensor, values, count));
    sgm_tensor_free(tensor);
}

/* y = w x with w = 1 is to become y = 2 x, in steps of up to 0.0002: between 1 and the next bfloat16, 1.0078,
 * each of them would be lost. */
TEST(small_updates_add_up)
{
    static const char *const fields[] = {"inputs", "targets"};
    static const float x[] = {1}, y[] = {2};
    double first;
    sgm_shape shape = sgm_shape_of(1, 1);
    sgm_tensor *tensors[] = {sgm_tensor_create_from(SGM_FLOAT32, &shape, x),
                             sgm_tensor_create_from(SGM_FLOAT32, &shape, y)};
    sgm_dataset *dataset = sgm_dataset_create_from("line", fields, tensors, 2);
    sgm_env *env = sgm_env_create("small", .precision = SGM_BFLOAT16);
    sgm_trainer *trainer = sgm_trainer_create(env, "t");
    CHECK_OK(sgm_trainer_set_network(trainer, "input(1) + dense(1, no_bias) + mean_squared"));
    CHECK_OK(sgm_trainer_add_initialiser(trainer, "*.weights", sgm_initialiser_parse("constant(1)")));
    CHECK_OK(sgm_trainer_set_optimiser(trainer, sgm_gradient_descent(.learning_rate = 1e-4)));
    CHECK_OK(sgm_trainer_set_data(trainer, sgm_minibatches(dataset, .size = 1)));
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 1));
    read_state(trainer, "1-dense.weights", &first, 1);
    CHECK_NEAR(first, 1.0002, 1e-6);
    CHECK_OK(sgm_trainer_run(trainer, .epochs = 400));
    read_state(trainer, "1-dense.weights", &first, 1);
    CHECK_NEAR(first, 2 - pow(1 - 2e-4, 400), 5e-4); /* 1.0769 */
    sgm_dataset_free(dataset);
    sgm_tensor_free(tensors[0]);
    sgm_tensor_free(tensors[1]);
    sgm_env_free(env);
}

static const char *const names[] = {"1-dense.weights", "1-dense.biases",  "2-dense.weights",
                                    "2-dense.biases",  "3-dense.weights", "3-dense.biases"};
static const size_t sizes[] = {48, 8, 40, 5, 15, 3};

/* Gradients of the golden parameters: what a step with learning rate 1 takes from them. */
static void take_gradients(const char *handler, sgm_dtype precision, double gradients[6][48])
{
    wave_trainer made =
        make_wave_trainer((wave_options){.handler = handler,
                                         .precision = precision,
                                         .optimiser = sgm_gradient_descent(.learning_rate = 1),
                                         .batch = WAVE_EXAMPLES});
    CHECK_OK(sgm_trainer_prepare(made.trainer));
    set_golden_parameters(made.trainer, SGM_FLOAT32);
    double before[48];
    for (int i = 0; i < 6; i++)
        read_state(made.trainer, names[i], gradients[i], sizes[i]);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    for (int i = 0; i < 6; i++) {
        memcpy(before, gradients[i], sizeof before);
        read_state(made.trainer, names[i], gradients[i], sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            gradients[i][k] = before[k] - gradients[i][k];
    }
    free_wave_trainer(made);
}

/* Relative to the longest vector of a parameter. */
static void check_gradients(double wanted[6][48], double got[6][48], double tolerance)
{
    for (int i = 0; i < 6; i++) {
        double difference = 0, length = 0;
        for (size_t k = 0; k < sizes[i]; k++) {
            difference += (got[i][k] - wanted[i][k]) * (got[i][k] - wanted[i][k]);
            length += wanted[i][k] * wanted[i][k];
        }
        CHECK(length > 0);
        CHECK(sqrt(difference / length) < tolerance);
    }
}

TEST(gradients_are_those_of_float32)
{
    double wide[6][48], mixed[6][48], plain[6][48], watched[6][48];
    take_gradients("reference", SGM_FLOAT32, wide);
    take_gradients("cpu", SGM_BFLOAT16, mixed);
    take_gradients("reference", SGM_BFLOAT16, plain);
    take_gradients("debug:cpu", SGM_BFLOAT16, watched);
    check_gradients(wide, mixed, 0.02);
    check_gradients(wide, plain, 0.02);
    check_gradients(mixed, watched, 1e-6);
}

static double loss_of(const char *network)
{
    sgm_metrics metrics;
    wave_trainer made =
        make_wave_trainer((wave_options){.network = network, .handler = "cpu", .precision = SGM_BFLOAT16});
    sgm_dataset *dataset = wave_dataset();
    sgm_iterator *iterator = sgm_minibatches(dataset, .size = WAVE_EXAMPLES, .no_shuffle = true);
    CHECK_OK(sgm_trainer_evaluate(made.trainer, iterator, &metrics));
    sgm_iterator_free(iterator);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
    return metrics.loss;
}

/* Rounded probabilities would be off by up to 0.002. */
TEST(probabilities_are_not_rounded_before_their_logarithm)
{
    CHECK_NEAR(loss_of("input(6) + dense(3, softmax) + negative_log_likelihood"),
               loss_of("input(6) + dense(3) + softmax_cross_entropy"), 1e-6);
}

TEST(predictions_are_float32)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu", .precision = SGM_BFLOAT16});
    sgm_tensor *x = wave(4, 6, 0.3, 1, SGM_FLOAT32), *y = sgm_trainer_predict(made.trainer, x, NULL);
    CHECK_OK(y);
    CHECK_INT(sgm_tensor_dtype(y), SGM_FLOAT32);
    double values[12];
    CHECK_OK(sgm_tensor_read(y, values, 12));
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(values[3 * i] + values[3 * i + 1] + values[3 * i + 2], 1, 1e-6);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
    free_wave_trainer(made);
}

/* --- checkpoints --- */

#define FORGETFUL "input(6) + dense(8, tanh) + dropout(0.3) + dense(3) + softmax_cross_entropy"

static wave_trainer make_forgetful(sgm_dtype precision)
{
    return make_wave_trainer((wave_options){.network = FORGETFUL,
                                            .handler = "cpu",
                                            .precision = precision,
                                            .optimiser = sgm_adam(.learning_rate = 0.01, .average = 0.9),
                                            .shuffle = true,
                                            .seed = 7});
}

static void check_same_states(sgm_trainer *a, sgm_trainer *b)
{
    const char *name;
    size_t count = 0;
    for (; (name = sgm_session_state_at(a->learner.session, count)) != NULL; count++) {
        sgm_tensor *left = sgm_session_get(a->learner.session, name),
                   *right = sgm_session_get(b->learner.session, name);
        CHECK_OK(left);
        CHECK_OK(right);
        CHECK_INT(sgm_tensor_dtype(left), sgm_tensor_dtype(right));
        size_t bytes =
            (size_t)sgm_shape_elements(sgm_tensor_shape(left)) * sgm_dtype_size(sgm_tensor_dtype(left));
        CHECK(memcmp(sgm_tensor_const_data(left), sgm_tensor_const_data(right), bytes) == 0);
        sgm_tensor_free(left);
        sgm_tensor_free(right);
    }
    CHECK(count >= 16);
}

TEST(a_run_goes_on_to_the_same_bytes)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/sigma-mixed-%d", (int)getpid());
    wave_trainer whole = make_forgetful(SGM_BFLOAT16), first = make_forgetful(SGM_BFLOAT16),
                 second = make_forgetful(SGM_BFLOAT16);
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 8));
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_save(first.trainer, path));
    CHECK_OK(sgm_trainer_load(second.trainer, path));
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 8));
    check_same_states(whole.trainer, second.trainer);
    unlink(path);
    free_wave_trainer(whole);
    free_wave_trainer(first);
    free_wave_trainer(second);
}

TEST(checkpoints_are_good_for_both_precisions)
{
    char path[128];
    snprintf(path, sizeof path, "/tmp/sigma-either-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        wave_trainer from = make_forgetful(precisions[i]), to = make_forgetful(precisions[1 - i]);
        CHECK_OK(sgm_trainer_run(from.trainer, .epochs = 3));
        CHECK_OK(sgm_trainer_save(from.trainer, path));
        CHECK_OK(sgm_trainer_load(to.trainer, path));
        check_same_states(from.trainer, to.trainer);
        CHECK_OK(sgm_trainer_run(to.trainer, .epochs = 4));
        unlink(path);
        free_wave_trainer(from);
        free_wave_trainer(to);
    }
}

/* --- workers --- */

static void run_workers(int32_t workers, loss_curve *curve)
{
    wave_trainer made = make_wave_trainer((wave_options){.handler = "cpu", .precision = SGM_BFLOAT16});
    if (workers > 1)
        CHECK_OK(sgm_trainer_set_operator(made.trainer, sgm_gradient_operator(.workers = workers)));
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, curve));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 25));
    free_wave_trainer(made);
}

/* Each worker's gradient is rounded before they are added: near, not equal. */
TEST(two_workers_learn_what_one_does)
{
    static loss_curve one, two, again;
    run_workers(1, &one);
    run_workers(2, &two);
    run_workers(2, &again);
    CHECK_INT(two.count, 100);
    CHECK(distance(&one, &two, 0, 100) < 0.01);
    CHECK(distance(&two, &again, 0, 100) == 0);
}

/* --- what is said --- */

TEST(the_fall_back_says_it_is_one)
{
    /* On a processor that multiplies in bfloat16, too. */
    sgm_handler *handler = sgm_handler_create("cpu", .threads = 1, .bfloat16 = "float32"),
                *watcher = sgm_handler_create("debug:cpu", .bfloat16 = "float32");
    char *text = sgm_handler_describe(handler);
    CHECK(strstr(text, "products of bfloat16: through float32, as asked for\n") != NULL);
    CHECK(strstr(text, sgm_handler_bfloat16(handler)) != NULL);
    CHECK_STR(sgm_handler_bfloat16(watcher), sgm_handler_bfloat16(handler));
    CHECK_STR(sgm_handler_support(handler, "matmul", SGM_BFLOAT16), "through float32");
    CHECK_STR(sgm_handler_support(handler, "matmul", SGM_FLOAT32), "kernel");
    CHECK_STR(sgm_handler_support(handler, "softmax", SGM_BFLOAT16), "through float32");
    CHECK_STR(sgm_handler_support(handler, "add", SGM_BFLOAT16), "kernel");
    sgm_string_free(text);
    sgm_handler_free(handler);
    sgm_handler_free(watcher);
}
