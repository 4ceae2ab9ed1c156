/* How metrics are told, and of what they are measured: reporters, texts, processors, several outputs. */
#include "by_name.h"
#include "hooks_test.h"

/* --- reports --- */

static char lines[2048];

static void note_line(void *user, const char *line)
{
    (void)user;
    seen_append(lines, sizeof lines, line);
    seen_append(lines, sizeof lines, "|");
}

TEST(reporters_bring_their_metrics)
{
    static const char *const names[] = {"a", "b", "c", NULL}, *const few[] = {"a", NULL};
    char expected[128];
    wave_trainer made = make_validated_trainer(3);
    lines[0] = 0;
    sgm_time_step at_the_end = sgm_every(3, SGM_EPOCH);
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_accuracy_reporter("validation", at_the_end, .tops = {1, 2}, .report = note_line)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 4));
    snprintf(expected, sizeof expected, "top1 = %.4g, top2 = %.4g |",
             number_of(made.trainer, "validation.top_1"), number_of(made.trainer, "validation.top_2"));
    CHECK_STR(lines, expected);
    lines[0] = 0;
    CHECK_OK(
        sgm_trainer_add_hook(made.trainer, sgm_confusion_reporter("validation", sgm_every(1, SGM_EPOCH),
                                                                  .report = note_line, .classes = names)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 5));
    CHECK(strncmp(lines, "target \\ output ", 16) == 0 && strstr(lines, "examples   recall | 0 a ") != NULL);
    seen_clear();
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_confusion_reporter("validation", sgm_every(1, SGM_EPOCH), .classes = few)));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 6));
    CHECK(strstr(seen_log, "there are 3 classes, but names for 1") != NULL);
    free_wave_trainer(made);
}

static void hook_from_text(sgm_trainer *trainer, const char *text)
{
    sgm_hook *hook = sgm_hook_parse(text);
    CHECK_OK(hook);
    CHECK_OK(sgm_trainer_add_hook(trainer, hook));
}

TEST(metrics_come_as_text)
{
    wave_trainer made = make_validated_trainer(3);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("top_k", "validation", .tops = {1, 2})));
    size_t count = sgm__hooks_count(made.trainer->hooks);
    hook_from_text(made.trainer, "every epoch top_k(validation, 1 2)");
    CHECK_INT(sgm__hooks_count(made.trainer->hooks), count);
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    count = sgm__hooks_count(made.trainer->hooks);
    hook_from_text(made.trainer, "f1"); /* of validation, every epoch */
    CHECK_INT(sgm__hooks_count(made.trainer->hooks), count);
    hook_from_text(made.trainer, "after 1 epoch roc_auc(training, name=own)");
    hook_from_text(made.trainer, "every 2 epochs confusion_reporter(validation, \"a b c\")");
    hook_from_text(made.trainer, "metric_processor(network.layers.*.weights, spread, standard_deviation)");
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 2));
    CHECK(number_of(made.trainer, "validation.top_2") > 0);
    CHECK(number_of(made.trainer, "training.own_roc_auc") > 0);
    CHECK(number_of(made.trainer, "shared.spread") > 0);
    free_wave_trainer(made);
    CHECK_ERROR(sgm_hook_parse("top_k(validation, 0)"),
                "tops: expected a whole number from 1 to 2147483647, not 0");
    CHECK_ERROR(sgm_hook_parse("binary_accuracy(validation, lower=2, upper=1)"),
                "must not be above the upper one");
}

/* --- processors --- */

static double largest(void *user, const sgm_content *content)
{
    (void)user;
    return content->kind == SGM_KIND_NUMBER && content->as.number < 100 ? content->as.number : NAN;
}

TEST(processors_average_over_matches)
{
    floor_of_test at = open_floor();
    sgm_registry *layers = sgm_registry_create(), *inner = sgm_registry_create();
    sgm_shape shape = sgm_shape_of(2, 2);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, (const float[]){1, 3, 5, 7});
    CHECK_OK(sgm_registry_put(at.registry, "layers", layers));
    CHECK_OK(sgm_registry_put(layers, "inner", inner));
    attach(&at, sgm_metric_processor("layers.*", largest, "of_layers"));
    attach(&at, sgm_metric_processor("layers.inner", sgm_metric_mean, "mean"));
    attach(&at, sgm_metric_processor("layers.inner.t gone", sgm_metric_standard_deviation,
                                     "standard_deviation", .background = true));
    CHECK(!attach(&at, sgm_metric_processor("layers.*", largest, "of_layers")));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK(isnan(shared_number(&at, "of_layers")));
    CHECK_OK(sgm_registry_set(layers, "a", sgm_number_content(2)));
    CHECK_OK(sgm_registry_set(layers, "b", sgm_number_content(1000)));
    CHECK_OK(sgm_registry_set(inner, "c", sgm_number_content(6)));
    CHECK_OK(sgm_registry_set(inner, "t", sgm_tensor_content(tensor)));
    iterate(&at, 1);
    sgm__hooks_wait(at.hooks);
    CHECK_NEAR(shared_number(&at, "of_layers"), 4, 0);
    CHECK_NEAR(shared_number(&at, "mean"), 5, 0);
    CHECK_NEAR(shared_number(&at, "standard_deviation"), sqrt(5), 1e-12);
    close_floor(&at);
    sgm_tensor_free(tensor);
    sgm_registry_free(layers);
    sgm_registry_free(inner);
    CHECK_ERROR(sgm_metric_processor("", largest, "x"), "needs identifiers");
    CHECK_ERROR(sgm_metric_processor("a", NULL, "x"), "needs a function");
}

/* --- numbers, several outputs, averages --- */

TEST(numbers_are_measured_too)
{
    wave_trainer made =
        make_wave_trainer((wave_options){.seed = 3, .network = "input(6) + dense(3) + mean_squared"});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(dataset)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("regression", "validation")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    double root = number_of(made.trainer, "validation.root_mean_squared_error");
    CHECK_NEAR(root * root, number_of(made.trainer, "validation.loss"), 1e-6);
    sgm_iterator *all = sgm_by_block(dataset);
    sgm_registry *results = sgm_registry_create();
    double value;
    CHECK_OK(sgm_trainer_evaluate_metrics(made.trainer, all, NULL, results));
    CHECK_OK(sgm_registry_get_number(results, "root_mean_squared_error", &value));
    CHECK_NEAR(value, root, 1e-12);
    CHECK_OK(sgm_registry_get_number(results, "examples", &value));
    CHECK_NEAR(value, 40, 0);
    CHECK(!sgm_registry_has(results, "accuracy"));
    CHECK_ERROR(sgm_trainer_evaluate_metrics(made.trainer, all, "f2", results), "unknown metric 'f2'");
    CHECK_ERROR(sgm_trainer_evaluate_metrics(made.trainer, NULL, NULL, results), "expected an iterator");
    sgm_registry_free(results);
    sgm_iterator_free(all);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
}

/* Inputs as in the waves; whether the first is above 0, and the sum of all. */
static sgm_dataset *two_targets(void)
{
    static const char *const fields[] = {"inputs", "signs", "sums"};
    sgm_shape shape = sgm_shape_of(WAVE_EXAMPLES, 1);
    sgm_tensor *tensors[3] = {wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32),
                              sgm_tensor_create(SGM_FLOAT32, &shape), sgm_tensor_create(SGM_FLOAT32, &shape)};
    for (int64_t i = 0; i < WAVE_EXAMPLES; i++) {
        double sum = 0;
        for (int64_t j = 0; j < 6; j++)
            sum += sgm_tensor_get(tensors[0], (const int64_t[]){i, j});
        sgm_tensor_set(tensors[1], (const int64_t[]){i, 0},
                       sgm_tensor_get(tensors[0], (const int64_t[]){i, 0}) > 0);
        sgm_tensor_set(tensors[2], (const int64_t[]){i, 0}, sum);
    }
    sgm_dataset *dataset = sgm_dataset_create_from("two", fields, tensors, 3);
    for (int i = 0; i < 3; i++)
        sgm_tensor_free(tensors[i]);
    CHECK_OK(dataset);
    return dataset;
}

TEST(a_second_output_has_metrics_of_its_own)
{
    wave_trainer made = make_wave_trainer((wave_options){.seed = 3});
    sgm_dataset *dataset = two_targets();
    CHECK_OK(sgm_trainer_set_network(made.trainer,
                                     "x = input(6) + dense(8, tanh);"
                                     "x + dense(1, name=sign) + binary_cross_entropy(targets=signs);"
                                     "x + dense(1, name=sum) + mean_squared(targets=sums)"));
    CHECK_OK(sgm_trainer_set_data(made.trainer, sgm_minibatches(dataset, .size = 8)));
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(dataset)));
    const char *sum = "sum";
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("f1", "validation")));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("regression", "validation", .output = sum,
                                                           .targets = "sums", .name = "second")));
    lines[0] = 0;
    CHECK_OK(sgm_trainer_add_hook(
        made.trainer, sgm_binary_accuracy_reporter("validation", sgm_every(1, SGM_EPOCH), .lower = 0.4,
                                                   .upper = 0.6, .report = note_line)));
    seen_clear();
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    CHECK_STR(seen_log, "");
    CHECK(number_of(made.trainer, "validation.f1") > 0);
    CHECK(strncmp(lines, "accuracy = ", 11) == 0);
    CHECK(number_of(made.trainer, "validation.binary_accuracy_bounds") <=
          number_of(made.trainer, "validation.f1_micro"));
    CHECK_NEAR(number_of(made.trainer, "validation.f1_micro"), number_of(made.trainer, "validation.accuracy"),
               1e-12);
    /* by hand, from the second output */
    sgm_tensor *inputs = wave(WAVE_EXAMPLES, 6, 0.3, 1, SGM_FLOAT32), *found = NULL;
    CHECK_OK(found = sgm_trainer_predict(made.trainer, inputs, sum));
    double squares = 0;
    for (int64_t i = 0; i < WAVE_EXAMPLES; i++) {
        double expected = 0;
        for (int64_t j = 0; j < 6; j++)
            expected += sgm_tensor_get(inputs, (const int64_t[]){i, j});
        expected -= sgm_tensor_get(found, (const int64_t[]){i, 0});
        squares += expected * expected / WAVE_EXAMPLES;
    }
    CHECK_NEAR(number_of(made.trainer, "validation.second_root_mean_squared_error"), sqrt(squares), 1e-5);
    sgm_tensor_free(inputs);
    sgm_tensor_free(found);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
}

/* What is measured are the averaged parameters, as in validation. */
TEST(averages_are_measured_where_there_are_any)
{
    wave_trainer made = make_wave_trainer(
        (wave_options){.seed = 3, .optimiser = sgm_momentum(.learning_rate = 0.1, .average = 0.95)});
    sgm_dataset *dataset = wave_dataset();
    CHECK_OK(sgm_trainer_add_data(made.trainer, "validation", sgm_by_block(dataset)));
    CHECK_OK(sgm_trainer_add_hook(made.trainer, sgm_metric("perplexity", "validation")));
    CHECK_OK(sgm_trainer_run(made.trainer, .epochs = 3));
    CHECK_NEAR(number_of(made.trainer, "validation.perplexity"),
               exp(number_of(made.trainer, "validation.loss")), 1e-5);
    sgm_dataset_free(dataset);
    free_wave_trainer(made);
}
