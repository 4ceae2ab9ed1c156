/* The trainer: exact resume, accumulation, freezing, averages, dynamic networks, failures. */
#include "trainer/trainer_struct.h"
#include "waves.h"

#include <stdlib.h>
#include <unistd.h>

#define DROPOUT_NETWORK                                                                                      \
    "input(6) + dense(8, tanh) + dropout(0.3) + dense(5, relu) + dense(3) + softmax_cross_entropy"

static const char *const parameter_names[] = {"1-dense.weights", "1-dense.biases", "3-dense.weights",
                                              "4-dense.weights"};

static void make_folder(char *folder)
{
    strcpy(folder, "/tmp/sigma-test-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

static wave_trainer resumable(sgm_optimiser *optimiser)
{
    return make_wave_trainer((wave_options){.network = DROPOUT_NETWORK,
                                            .handler = "cpu",
                                            .shuffle = true,
                                            .seed = 7,
                                            .batch = 7,
                                            .optimiser = optimiser});
}

static sgm_optimiser *rich_optimiser(void)
{
    return sgm_adam(.learning_rate = 0.01, .accumulate = 2, .average = 0.9, .clip_norm = 1,
                    .schedule = {.kind = SGM_COSINE, .warm_up = 0.5});
}

static void check_same_bytes(sgm_trainer *a, sgm_trainer *b, const char *name)
{
    sgm_tensor *x = sgm_trainer_get(a, name), *y = sgm_trainer_get(b, name);
    CHECK_OK(x);
    CHECK_OK(y);
    size_t bytes = (size_t)sgm_shape_elements(sgm_tensor_shape(x)) * sgm_dtype_size(sgm_tensor_dtype(x));
    if (memcmp(sgm_tensor_const_data(x), sgm_tensor_const_data(y), bytes) != 0)
        TEST_FAIL("%s differs", name);
    sgm_tensor_free(x);
    sgm_tensor_free(y);
}

/* Stops after `iterations`, goes on in a new trainer to the end of the third epoch. */
static void check_resume(int64_t iterations, sgm_trainer *whole)
{
    char folder[64];
    make_folder(folder);
    wave_trainer first = resumable(rich_optimiser());
    sgm_run_options options = {
        .struct_size = sizeof options, .epochs = 3, .iterations = iterations, .folder = folder};
    CHECK_OK(sgm_trainer_run_with(first.trainer, &options));
    free_wave_trainer(first);
    wave_trainer second = resumable(rich_optimiser());
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 3, .folder = folder, .resume = true));
    for (size_t i = 0; i < sizeof parameter_names / sizeof *parameter_names; i++)
        check_same_bytes(whole, second.trainer, parameter_names[i]);
    check_same_bytes(whole, second.trainer, "average.1-dense.weights");
    check_same_bytes(whole, second.trainer, "optimiser.momentum.1-dense.weights");
    free_wave_trainer(second);
    remove_folder(folder);
}

TEST(resume_is_exact_at_every_iteration)
{
    wave_trainer whole = resumable(rich_optimiser());
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 3));
    for (int64_t iterations = 1; iterations <= 18; iterations++) /* 6 minibatches an epoch */
        check_resume(iterations, whole.trainer);
    free_wave_trainer(whole);
}

TEST(a_folder_with_a_run_is_not_overwritten)
{
    char folder[64];
    make_folder(folder);
    wave_trainer first = resumable(NULL), second = resumable(NULL);
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 1, .folder = folder));
    CHECK_ERROR(sgm_trainer_run(second.trainer, .epochs = 1, .folder = folder), "holds a run already");
    free_wave_trainer(first);
    free_wave_trainer(second);
    remove_folder(folder);
}

static double value_of(sgm_trainer *trainer, const char *state, int64_t number)
{
    sgm_tensor *tensor = sgm_trainer_get(trainer, state);
    CHECK_OK(tensor);
    sgm_shape all = sgm_shape_of(-1);
    sgm_tensor *flat = sgm_tensor_reshape(tensor, &all);
    double value = sgm_tensor_get(flat, &number);
    sgm_tensor_free(flat);
    sgm_tensor_free(tensor);
    return value;
}

TEST(accumulating_minibatches_is_one_larger_minibatch)
{
    wave_trainer large = make_wave_trainer((wave_options){.precision = SGM_FLOAT64, .batch = 20});
    wave_trainer small =
        make_wave_trainer((wave_options){.precision = SGM_FLOAT64,
                                         .batch = 10,
                                         .optimiser = sgm_momentum(.learning_rate = 0.1, .accumulate = 2)});
    CHECK_OK(sgm_trainer_run(large.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(small.trainer, .epochs = 3));
    for (int64_t i = 0; i < 40; i++)
        CHECK_NEAR(value_of(small.trainer, "1-dense.weights", i),
                   value_of(large.trainer, "1-dense.weights", i), 1e-12);
    free_wave_trainer(large);
    free_wave_trainer(small);
}

TEST(frozen_parameters_stay)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_freeze(made.trainer, "1-*.weights"));
    double frozen = value_of(made.trainer, "1-dense.weights", 3),
           trained = value_of(made.trainer, "2-dense.weights", 3);
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    CHECK(value_of(made.trainer, "1-dense.weights", 3) == frozen);
    CHECK(value_of(made.trainer, "2-dense.weights", 3) != trained);
    CHECK_OK(sgm_trainer_unfreeze(made.trainer, "1-*.weights"));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(value_of(made.trainer, "1-dense.weights", 3) != frozen);
    CHECK_ERROR(sgm_trainer_unfreeze(made.trainer, "nothing"), "was not frozen");
    free_wave_trainer(made);
}

TEST(the_maximum_specific_initialiser_counts)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "*.weights", sgm_constant_value(.value = 1)));
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "2-dense.weights", sgm_constant_value(.value = 2)));
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "2-*.*", sgm_constant_value(.value = 3)));
    CHECK_NEAR(value_of(made.trainer, "1-dense.weights", 0), 1, 0);
    CHECK_NEAR(value_of(made.trainer, "2-dense.weights", 0), 2, 0);
    CHECK_NEAR(value_of(made.trainer, "2-dense.biases", 0), 3, 0);
    CHECK_ERROR(sgm_trainer_add_initialiser(made.trainer, "*.weights", sgm_he()), "for '*.weights' already");
    free_wave_trainer(made);
    /* as many characters: the first part that has more of them decides, whatever was given first */
    static const char *const patterns[2][2] = {{"*.weights", "2-dense*.*"}, {"2-dense*.*", "*.weights"}};
    for (int i = 0; i < 2; i++) {
        made = make_wave_trainer((wave_options){0});
        for (int k = 0; k < 2; k++)
            CHECK_OK(sgm_trainer_add_initialiser(
                made.trainer, patterns[i][k], sgm_constant_value(.value = patterns[i][k][0] == '2' ? 5 : 4)));
        CHECK_NEAR(value_of(made.trainer, "2-dense.weights", 0), 5, 0);
        free_wave_trainer(made);
    }
}

TEST(the_average_follows_its_formula)
{
    wave_trainer made = make_wave_trainer((wave_options){
        .precision = SGM_FLOAT64, .optimiser = sgm_gradient_descent(.learning_rate = 0.1, .average = 0.75)});
    double average = value_of(made.trainer, "1-dense.weights", 5);
    for (int64_t i = 1; i <= 4; i++) {
        CHECK_OK(sgm_trainer_run(made.trainer, .iterations = i));
        average = 0.75 * average + 0.25 * value_of(made.trainer, "1-dense.weights", 5);
        CHECK_NEAR(value_of(made.trainer, "average.1-dense.weights", 5), average, 1e-14);
    }
    free_wave_trainer(made);
}

static bool stop_at_three(void *user, const sgm_training_progress *progress)
{
    (void)user;
    return progress->iteration < 3;
}

TEST(an_observer_stops_the_run_after_the_step)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_on_progress(made.trainer, stop_at_three, NULL));
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 5), SGM_ERROR_INTERRUPTED);
    CHECK_INT(made.trainer->position.iteration, 3);
    free_wave_trainer(made);
}

TEST(failures_stay_and_name_the_trainer)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_set_network(made.trainer, "input(6) + desne(3)"),
                "trainer 'waves': network: column 12");
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), "did you mean 'dense'");
    free_wave_trainer(made);
}

TEST(what_only_looks_may_fail_and_training_goes_on)
{
    sgm_metrics metrics;
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_ERROR(sgm_trainer_evaluate(made.trainer, NULL, &metrics),
                "sgm_trainer_evaluate: expected an iterator, got NULL");
    CHECK_ERROR(sgm_trainer_predict(made.trainer, NULL, NULL), "expected a tensor of inputs, got NULL");
    CHECK_ERROR(sgm_trainer_predict_block(made.trainer, NULL, NULL), "expected a block, got NULL");
    CHECK_ERROR(sgm_trainer_load(made.trainer, "nowhere.safetensors"), "nowhere.safetensors");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 1));
    free_wave_trainer(made);
}

static void keep_message(void *user, sgm_log_level level, const char *component, const char *message)
{
    (void)component;
    if (level == SGM_LOG_WARNING)
        snprintf(user, 200, "%s", message);
}

TEST(resuming_with_another_optimiser_is_told)
{
    char folder[64], message[200] = "";
    make_folder(folder);
    wave_trainer first = resumable(NULL);
    CHECK_OK(sgm_trainer_run(first.trainer, .epochs = 1, .folder = folder));
    free_wave_trainer(first);
    sgm_set_logger(keep_message, message, SGM_LOG_WARNING);
    for (int i = 0; i < 2; i++) {
        wave_trainer second = resumable(i == 0 ? NULL : sgm_nesterov(.learning_rate = 0.01));
        CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 2 + i, .folder = folder, .resume = true));
        CHECK(i == 1 || message[0] == '\0');
        free_wave_trainer(second);
    }
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    CHECK(strstr(message, "training goes on with nesterov"));
    remove_folder(folder);
}

TEST(patterns_without_a_parameter_are_mistakes)
{
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_freeze(made.trainer, "1-dense.wieghts"));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1),
                "freezing '1-dense.wieghts' matches no parameter of the network (did you mean "
                "'1-dense.weights'?); there are 1-dense.weights,");
    free_wave_trainer(made);
    made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_initialiser(made.trainer, "*.bias", sgm_he()));
    CHECK_ERROR(sgm_trainer_prepare(made.trainer), "the initialiser for '*.bias' matches no parameter");
    free_wave_trainer(made);
}

TEST(a_loss_that_is_no_number_ends_the_run)
{
    char folder[64], path[128];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/checkpoint.safetensors", folder);
    wave_trainer made =
        make_wave_trainer((wave_options){.network = "input(6) + dense(3) + mean_squared",
                                         .optimiser = sgm_gradient_descent(.learning_rate = 1e30)});
    CHECK_INT(sgm_trainer_run(made.trainer, .epochs = 9, .folder = folder), SGM_ERROR_NUMERIC);
    CHECK(strstr(sgm_last_error(), "lower the learning rate (1e+30 now)") != NULL);
    CHECK(strstr(sgm_last_error(), "in epoch 1") != NULL);
    CHECK(access(path, F_OK) != 0);
    free_wave_trainer(made);
    remove_folder(folder);
}

static bool run_another(void *user, const sgm_training_progress *progress)
{
    if (progress->kind == SGM_PROGRESS_EPOCH) {
        wave_trainer other = resumable(NULL);
        CHECK_ERROR(sgm_trainer_run(other.trainer, .epochs = 1, .folder = user, .resume = true),
                    "another run writes into");
        free_wave_trainer(other);
    }
    return true;
}

TEST(a_folder_takes_one_run_at_a_time)
{
    char folder[64];
    make_folder(folder);
    wave_trainer made = resumable(NULL);
    CHECK_OK(sgm_trainer_on_progress(made.trainer, run_another, folder));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2, .folder = folder));
    free_wave_trainer(made);
    remove_folder(folder);
}

TEST(a_network_without_a_cost_cannot_be_trained)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = "input(6) + dense(3)"});
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), "has no cost");
    free_wave_trainer(made);
}

TEST(a_checkpoint_of_another_network_changes_nothing)
{
    char folder[64], path[128];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/other.safetensors", folder);
    wave_trainer other = make_wave_trainer(
        (wave_options){.network = "input(6) + dense(4) + dense(3) + softmax_cross_entropy"});
    CHECK_OK(sgm_trainer_save(other.trainer, path));
    wave_trainer made = make_wave_trainer((wave_options){0});
    double before = value_of(made.trainer, "1-dense.weights", 0);
    CHECK_ERROR(sgm_trainer_load(made.trainer, path), "is of the network");
    CHECK(value_of(made.trainer, "1-dense.weights", 0) == before);
    free_wave_trainer(other);
    free_wave_trainer(made);
    remove_folder(folder);
}

TEST(predictions_are_probabilities_and_survive_a_checkpoint)
{
    char folder[64], path[128];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    sgm_tensor *inputs = wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32);
    sgm_tensor *before = sgm_trainer_predict(made.trainer, inputs, NULL);
    CHECK_OK(before);
    double values[3 * WAVE_EXAMPLES], again[3 * WAVE_EXAMPLES];
    CHECK_OK(sgm_tensor_read(before, values, 3 * WAVE_EXAMPLES));
    for (int i = 0; i < WAVE_EXAMPLES; i++)
        CHECK_NEAR(values[3 * i] + values[3 * i + 1] + values[3 * i + 2], 1, 1e-6);
    CHECK_OK(sgm_trainer_save(made.trainer, path));
    sgm__trainer_settings settings = {.seed = 1, .handler = made.handler, .precision = SGM_FLOAT32};
    sgm_trainer *loaded = sgm__trainer_create("loaded", &settings);
    CHECK_OK(sgm_trainer_load(loaded, path));
    sgm_tensor *after = sgm_trainer_predict(loaded, inputs, NULL);
    CHECK_OK(after);
    CHECK_OK(sgm_tensor_read(after, again, 3 * WAVE_EXAMPLES));
    CHECK_INT(memcmp(values, again, sizeof values), 0);
    CHECK_ERROR(sgm_trainer_predict(loaded, inputs, "nothing"), "the network has no output 'nothing'");
    sgm_tensor_free(before);
    sgm_tensor_free(after);
    sgm_tensor_free(inputs);
    sgm__trainer_free(loaded);
    free_wave_trainer(made);
    remove_folder(folder);
}

/* --- define by run --- */

static double largest_norm(sgm_trainer *trainer, int64_t rows, int64_t columns)
{
    double largest = 0;
    for (int64_t k = 0; k < columns; k++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            double value = value_of(trainer, "1-dense.weights", i * columns + k);
            sum += value * value;
        }
        largest = fmax(largest, sqrt(sum));
    }
    return largest;
}

static sgm_value set_to_one(void *user, sgm_graph *graph, sgm_value parameter)
{
    ++*(int *)user;
    return sgm_filled_like(graph, parameter, 1);
}

TEST(modifiers_act_after_each_update)
{
    wave_trainer made = make_wave_trainer((wave_options){.precision = SGM_FLOAT64});
    int recorded = 0;
    CHECK_OK(sgm_trainer_add_modifier(made.trainer, "1-*.weights", sgm_modifier_parse("max_norm(0.25)")));
    CHECK_OK(sgm_trainer_add_modifier(made.trainer, "2-*.weights", sgm_modifier_parse("scale(0)")));
    CHECK_OK(sgm_trainer_add_modifier(made.trainer, "*.biases",
                                      sgm_modifier_parse("clip(-0.001, maximum=0.001)")));
    CHECK_OK(
        sgm_trainer_add_modifier(made.trainer, "3-*.weights", sgm_modifier_create(set_to_one, &recorded)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK_NEAR(largest_norm(made.trainer, 6, 8), 0.25, 1e-12);
    CHECK(value_of(made.trainer, "2-dense.weights", 5) == 0);
    CHECK_NEAR(fabs(value_of(made.trainer, "3-dense.biases", 0)), 0.001, 1e-15);
    CHECK(value_of(made.trainer, "3-dense.weights", 2) == 1);
    CHECK(recorded > 0);
    free_wave_trainer(made);
}

TEST(modifiers_are_checked)
{
    CHECK_ERROR(sgm_modifier_parse("clipp(0, 1)"), "did you mean 'clip'?");
    CHECK_ERROR(sgm_modifier_parse("clip(1)"), "clip needs maximum: what larger numbers become");
    CHECK_ERROR(sgm_modifier_parse("clip(1, -1)"), "must be below");
    CHECK_ERROR(sgm_modifier_parse("max_norm(0)"), "must be above 0");
    CHECK_ERROR(sgm_modifier_parse("scale(2, 3)"), "column 10: scale takes at most 1 argument");
    CHECK_ERROR(sgm_modifier_parse(NULL), "got NULL");
    CHECK_ERROR(sgm_modifier_create(NULL, NULL), "wants a function");
    wave_trainer made = make_wave_trainer((wave_options){0});
    CHECK_OK(sgm_trainer_add_modifier(made.trainer, "7-*", sgm_modifier_parse("scale(1)")));
    CHECK_ERROR(sgm_trainer_run(made.trainer, .epochs = 1), "the modifier for '7-*' matches no parameter");
    free_wave_trainer(made);
}

/* Evaluation goes through the whole iterator; the run goes on where it was. */
TEST(evaluating_the_training_data_in_between_does_not_change_training)
{
    wave_trainer plain = resumable(NULL), asked = resumable(NULL);
    CHECK_OK(sgm_trainer_run(plain.trainer, .iterations = 3));
    CHECK_OK(sgm_trainer_run(asked.trainer, .iterations = 3));
    sgm_metrics metrics;
    CHECK_OK(sgm_trainer_evaluate(asked.trainer, asked.trainer->data.training, &metrics));
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_run(asked.trainer, .epochs = 2));
    check_same_bytes(plain.trainer, asked.trainer, "1-dense.weights");
    free_wave_trainer(plain);
    free_wave_trainer(asked);
}

TEST(data_may_come_after_the_checkpoint)
{
    char folder[64], path[96];
    make_folder(folder);
    snprintf(path, sizeof path, "%s/c.safetensors", folder);
    wave_trainer whole = resumable(NULL), first = resumable(NULL), second = resumable(NULL);
    CHECK_OK(sgm_trainer_run(whole.trainer, .epochs = 2));
    CHECK_OK(sgm_trainer_run(first.trainer, .iterations = 8));
    CHECK_OK(sgm_trainer_save(first.trainer, path));
    CHECK_OK(sgm_trainer_load(second.trainer, path));
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_set_data(second.trainer, sgm_minibatches(dataset, .size = 7, .seed = 7)));
    sgm_dataset_free(dataset);
    CHECK_OK(sgm_trainer_run(second.trainer, .epochs = 2));
    check_same_bytes(whole.trainer, second.trainer, "1-dense.weights");
    free_wave_trainer(whole);
    free_wave_trainer(first);
    free_wave_trainer(second);
    remove_folder(folder);
}

static sgm_value switching(sgm_layer_call *call, sgm_graph *graph, const sgm_value *inputs, int32_t count)
{
    (void)count;
    bool odd = sgm_layer_iteration(call) % 4 >= 2 && sgm_layer_flag(call, "alternate");
    return odd ? sgm_relu(graph, inputs[0]) : sgm_tanh(graph, inputs[0]);
}

static const sgm_option switching_arguments[] = {
    {.name = "alternate", .kind = SGM_KIND_BOOLEAN, .doc = "relu at the second two of four iterations"}};
static const sgm_layer_type switching_layer = {.api = SGM_LAYER_API,
                                               .flags = SGM_LAYER_DYNAMIC,
                                               .name = "switching",
                                               .doc = "tanh or relu",
                                               .arguments = switching_arguments,
                                               .argument_count = 1,
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .forward = switching};

/* Then nothing is left to compare the next recording with. */
static bool forget_programs(void *trainer, const sgm_training_progress *progress)
{
    (void)progress;
    sgm__trainer_forget_programs(trainer);
    return true;
}

static double train_switching(const char *network, bool forgets)
{
    wave_trainer made = make_wave_trainer((wave_options){.network = network, .precision = SGM_FLOAT64});
    if (forgets)
        CHECK_OK(sgm_trainer_on_progress(made.trainer, forget_programs, made.trainer));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    double value = value_of(made.trainer, "1-dense.weights", 7);
    free_wave_trainer(made);
    return value;
}

/* A prediction examples another graph, in which nobody asks for targets. */
TEST(predicting_in_between_does_not_change_training)
{
    wave_trainer plain = make_wave_trainer((wave_options){.seed = 3}),
                 asked = make_wave_trainer((wave_options){.seed = 3});
    sgm_shape shape = sgm_shape_of(2, 6);
    sgm_tensor *inputs = sgm_tensor_create(SGM_FLOAT32, &shape);
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 1));
    CHECK_OK(sgm_trainer_run(asked.trainer, .epochs = 1));
    sgm_tensor *outputs = sgm_trainer_predict(asked.trainer, inputs, NULL);
    CHECK_OK(outputs);
    CHECK_OK(sgm_trainer_run(plain.trainer, .epochs = 3));
    CHECK_OK(sgm_trainer_run(asked.trainer, .epochs = 3));
    check_same_bytes(plain.trainer, asked.trainer, "1-dense.weights");
    sgm_tensor_free(inputs);
    sgm_tensor_free(outputs);
    free_wave_trainer(plain);
    free_wave_trainer(asked);
}

TEST(a_dynamic_layer_records_what_it_likes)
{
    static const char alternate[] =
        "input(6) + dense(8) + switching(alternate=true) + dense(3) + softmax_cross_entropy";
    CHECK_OK(sgm_register_layer(&switching_layer));
    double fixed =
        train_switching("input(6) + dense(8) + activation(tanh) + dense(3) + softmax_cross_entropy", false);
    double dynamic =
        train_switching("input(6) + dense(8) + switching + dense(3) + softmax_cross_entropy", false);
    double alternating = train_switching(alternate, false);
    CHECK_NEAR(dynamic, fixed, 0);
    CHECK(alternating != fixed);
    CHECK_NEAR(alternating, train_switching(alternate, true), 0);
}

TEST(networks_with_several_inputs_and_costs_train)
{
    static const char *const fields[] = {"left", "right", "targets", "sums"};
    sgm_tensor *tensors[] = {wave(20, 3, 0, 1, SGM_FLOAT32), wave(20, 2, 1, 1, SGM_FLOAT32),
                             wave(20, 2, 2, 1, SGM_FLOAT32), wave(20, 1, 3, 1, SGM_FLOAT32)};
    sgm_dataset *dataset = sgm_dataset_create_from("pairs", fields, tensors, 4);
    wave_trainer made = make_wave_trainer((wave_options){
        .network = "a = input(3, name=left) + dense(4, tanh); b = input(2, name=right) + dense(4, tanh);"
                   "both = add(a, b); both + dense(2) + mean_squared;"
                   "both + dense(1) + squared_difference(targets=sums, importance=0.1)"});
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 5)));
    loss_curve curve = {0};
    CHECK_OK(sgm_trainer_on_progress(made.trainer, follow_losses, &curve));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 30));
    CHECK(curve.losses[curve.count - 1] < 0.5 * curve.losses[0]);
    sgm_dataset_free(dataset);
    for (int i = 0; i < 4; i++)
        sgm_tensor_free(tensors[i]);
    free_wave_trainer(made);
}
