/* Metrics against numbers that NumPy made by their definitions, and their edges. */
#include "test.h"

#include "golden/golden_metrics.h"
#include "metrics/metrics.h"
#include <sigma/sigma.h>

static sgm_tensor *tensor_of(sgm_dtype dtype, int64_t rows, int64_t columns, const double *values)
{
    sgm_shape shape = sgm_shape_of(rows, columns);
    sgm_tensor *tensor = sgm_tensor_create(dtype, &shape);
    CHECK_OK(tensor);
    CHECK_OK(sgm_tensor_write(tensor, values, (size_t)(rows * columns)));
    return tensor;
}

/* Free with sgm_registry_free. */
static sgm_registry *compute(const char *metrics, int64_t rows, int64_t columns, const double *outputs,
                             const double *targets)
{
    sgm_registry *results = sgm_registry_create();
    sgm_tensor *o = tensor_of(SGM_FLOAT64, rows, columns, outputs),
               *t = tensor_of(SGM_FLOAT32, rows, columns, targets);
    sgm_status status = sgm_metrics_compute(metrics, o, t, results);
    sgm_tensor_free(o);
    sgm_tensor_free(t);
    if (status == SGM_OK)
        return results;
    sgm_registry_free(results);
    return NULL;
}

static double number(sgm_registry *results, const char *name)
{
    double value;
    if (sgm_registry_get_number(results, name, &value) != SGM_OK)
        TEST_FAIL("no number %s: %s", name, sgm_last_error());
    return value;
}

static void check_numbers(sgm_registry *results, const golden_number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!test_near(number(results, numbers[i].name), numbers[i].value, 1e-12))
            TEST_FAIL("%s is %.17g, expected %.17g", numbers[i].name, number(results, numbers[i].name),
                      numbers[i].value);
}

static void check_tensor(sgm_registry *results, const char *name, const double *expected, size_t count)
{
    double values[64];
    sgm_content content;
    CHECK(count <= 64);
    CHECK_OK(sgm_registry_get(results, name, &content));
    CHECK_INT(content.kind, SGM_KIND_TENSOR);
    CHECK_OK(sgm_tensor_read(content.as.tensor, values, count));
    sgm_content_clear(&content);
    for (size_t i = 0; i < count; i++)
        if (!test_near(values[i], expected[i], 1e-12))
            TEST_FAIL("%s: number %zu is %.17g, expected %.17g", name, i, values[i], expected[i]);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define CHECK_NUMBERS(results, numbers) check_numbers(results, numbers, COUNT(numbers))
#define CHECK_TENSOR(results, name, expected) check_tensor(results, name, expected, COUNT(expected))
#define CHECK_CLASSES(results, name)                                                                         \
    do {                                                                                                     \
        CHECK_TENSOR(results, "confusion", name##_confusion);                                                \
        CHECK_TENSOR(results, "precision_per_class", name##_precision_per_class);                            \
        CHECK_TENSOR(results, "recall_per_class", name##_recall_per_class);                                  \
        CHECK_TENSOR(results, "f1_per_class", name##_f1_per_class);                                          \
        CHECK_TENSOR(results, "roc_auc_per_class", name##_roc_auc_per_class);                                \
        CHECK_NUMBERS(results, name##_numbers);                                                              \
    } while (0)

#define ALL_OF_CLASSES "confusion, f1, roc_auc top_k(1, 2, 3), perplexity"

TEST(classes_with_equal_outputs)
{
    sgm_registry *results = compute(ALL_OF_CLASSES, 60, 4, four_outputs, four_targets);
    CHECK_OK(results);
    CHECK_CLASSES(results, four);
    sgm_registry_free(results);
}

TEST(classes_without_examples_and_classes_without_anything)
{
    sgm_registry *results = compute(ALL_OF_CLASSES, 40, 5, rare_outputs, rare_targets);
    CHECK_OK(results);
    CHECK_CLASSES(results, rare);
    sgm_registry_free(results);
}

TEST(one_output)
{
    static const golden_number *between = &binary_numbers[COUNT(binary_numbers) - 2];
    sgm_registry *results =
        compute("confusion f1 roc_auc binary_accuracy(0.3, 0.7)", 50, 1, binary_outputs, binary_targets);
    CHECK_OK(results);
    CHECK_STR(between->name, "binary_accuracy_between");
    CHECK_NEAR(number(results, "binary_accuracy_bounds"), between->value, 1e-12);
    CHECK_OK(sgm_registry_set_own(results, "binary_accuracy_between", sgm_number_content(between->value)));
    sgm_tensor *o = tensor_of(SGM_FLOAT64, 50, 1, binary_outputs),
               *t = tensor_of(SGM_FLOAT64, 50, 1, binary_targets);
    CHECK_OK(sgm_metrics_compute("binary_accuracy perplexity", o, t, results));
    CHECK_CLASSES(results, binary);
    sgm_tensor_free(o);
    sgm_tensor_free(t);
    sgm_registry_free(results);
}

TEST(one_class_only)
{
    sgm_registry *results = compute(ALL_OF_CLASSES, 12, 3, single_outputs, single_targets);
    CHECK_OK(results);
    CHECK_CLASSES(results, single);
    CHECK(isnan(number(results, "roc_auc")));
    sgm_registry_free(results);
}

TEST(numbers_with_a_constant_column)
{
    sgm_registry *results = compute("regression", 30, 3, numbers_outputs, numbers_targets);
    CHECK_OK(results);
    for (size_t i = 0; i < COUNT(numbers_numbers); i++) /* targets come as float32 */
        CHECK_NEAR(number(results, numbers_numbers[i].name), numbers_numbers[i].value, 1e-5);
    sgm_registry_free(results);
}

/* By hand: the first target does not vary, the second one misses 20 once. */
TEST(each_of_several_targets_by_itself)
{
    static const double outputs[] = {1, 10, 3, 20}, targets[] = {2, 10, 2, 40};
    static const double absolute[] = {1, 10}, squared[] = {1, 14.142135623730951},
                        r_squared[] = {NAN, 1 - 400.0 / 450};
    sgm_registry *results = compute("regression", 2, 2, outputs, targets);
    CHECK_OK(results);
    CHECK_TENSOR(results, "mean_absolute_error_per_target", absolute);
    CHECK_TENSOR(results, "root_mean_squared_error_per_target", squared);
    CHECK_TENSOR(results, "r_squared_per_target", r_squared);
    sgm_registry_free(results);
    results = compute("regression", 4, 1, outputs, targets);
    CHECK(!sgm_registry_has(results, "r_squared_per_target"));
    sgm_registry_free(results);
}

TEST(constant_targets_have_no_r_squared)
{
    static const double outputs[] = {0.1, 0.2, 0.3, 0.1}, targets[] = {0.1, 0.1, 0.1, 0.1};
    sgm_registry *results = compute("regression", 4, 1, outputs, targets);
    CHECK_OK(results);
    CHECK(isnan(number(results, "r_squared")));
    CHECK_NEAR(number(results, "maximum_error"), 0.2, 1e-7);
    sgm_registry_free(results);
}

TEST(no_examples_no_numbers)
{
    sgm_shape shape = sgm_shape_of(0, 3);
    sgm_tensor *none = sgm_tensor_create(SGM_FLOAT32, &shape);
    sgm_registry *results = sgm_registry_create();
    static const char *const names[] = {"top_1",      "precision",   "f1",
                                        "f1_micro",   "f1_weighted", "roc_auc",
                                        "perplexity", "r_squared",   "mean_absolute_error"};
    CHECK_OK(sgm_metrics_compute("top_k confusion f1 roc_auc perplexity regression", none, none, results));
    for (size_t i = 0; i < COUNT(names); i++)
        CHECK(isnan(number(results, names[i])));
    sgm_tensor_free(none);
    sgm_registry_free(results);
}

TEST(targets_may_be_numbers_of_classes)
{
    static const double outputs[] = {0.5, 0.25, 0.25, 0.2, 0.7, 0.1, 0.3, 0.3, 0.4, 0.1, 0.2, 0.7};
    sgm_shape steps = sgm_shape_of(2, 2, 3), places = sgm_shape_of(2, 2);
    sgm_tensor *o = sgm_tensor_create(SGM_FLOAT32, &steps), *t = sgm_tensor_create(SGM_INT32, &places);
    sgm_registry *results = sgm_registry_create();
    CHECK_OK(sgm_tensor_write(o, outputs, 12));
    CHECK_OK(sgm_tensor_write(t, (const double[]){0, 1, 0, 2}, 4));
    CHECK_OK(sgm_metrics_compute("top_k(1)", o, t, results));
    CHECK_NEAR(number(results, "top_1"), 0.75, 0);
    CHECK_OK(sgm_tensor_write(t, (const double[]){0, 1, 0, 3}, 4));
    CHECK_INT(sgm_metrics_compute("top_k(1)", o, t, results), SGM_ERROR_ARGUMENT);
    CHECK(strstr(sgm_last_error(), "class 3 is out of range: there are 3 classes") != NULL);
    sgm_tensor *fractions = sgm_tensor_create(SGM_FLOAT32, &places);
    CHECK_OK(sgm_tensor_write(fractions, (const double[]){0, 1, 1.5, 2}, 4));
    CHECK_ERROR(sgm_metrics_compute("top_k(1)", o, fractions, results),
                "row 2 of the targets: 1.5 is no whole number");
    sgm_tensor_free(fractions);
    sgm_registry_free(results);
    sgm_tensor_free(o);
    sgm_tensor_free(t);
}

TEST(a_certain_mistake_is_infinitely_perplexing)
{
    static const double outputs[] = {1, 0, 0, 1}, targets[] = {0, 1, 0, 0}, logits[] = {3, -1, 0, 1};
    sgm_registry *results = compute("perplexity", 2, 2, outputs, targets);
    CHECK_OK(results);
    CHECK(isinf(number(results, "perplexity")));
    sgm_registry_free(results);
    CHECK_ERROR(compute("perplexity", 2, 2, logits, targets), "wants probabilities from 0 to 1");
}

/* The second example is padding. */
TEST(padding_does_not_count_for_perplexity)
{
    static const double outputs[] = {0.25, 0.75, 0.5, 0.5}, targets[] = {1, 0, 0, 0};
    sgm_registry *results = compute("perplexity", 2, 2, outputs, targets);
    CHECK_OK(results);
    CHECK_NEAR(number(results, "perplexity"), 4, 1e-12);
    sgm_registry_free(results);
}

/* 0: 2 right of 3 that are or were predicted; 1: 1 of 3; 2: 1 of 2; 3: never. */
TEST(intersection_over_union_of_classes)
{
    static const double outputs[] = {9, 0, 0, 0, 9, 0, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 0, 9, 0},
                        targets[] = {1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0};
    static const double more[] = {0, 5, 0, 0}, wanted[] = {0, 0, 1, 0};
    double all_outputs[24], all_targets[24];
    memcpy(all_outputs, outputs, sizeof outputs);
    memcpy(all_outputs + 20, more, sizeof more);
    memcpy(all_targets, targets, sizeof targets);
    memcpy(all_targets + 20, wanted, sizeof wanted);
    sgm_registry *results = compute("mean_iou", 6, 4, all_outputs, all_targets);
    CHECK_OK(results);
    CHECK_NEAR(number(results, "mean_iou"), (2. / 3 + 1. / 3 + 1. / 2) / 3, 1e-12);
    sgm_registry_free(results);
}

TEST(what_is_no_number_is_right_nowhere)
{
    static const double outputs[] = {NAN, NAN, NAN, 0.1, 0.2, 0.7}, targets[] = {1, 0, 0, 0, 0, 1};
    sgm_registry *results = compute("top_k(1, 3) roc_auc regression", 2, 3, outputs, targets);
    CHECK_OK(results);
    CHECK_NEAR(number(results, "top_1"), 0.5, 0);
    CHECK_NEAR(number(results, "top_3"), 1, 0); /* all three, whatever they are */
    CHECK(isnan(number(results, "roc_auc")));
    CHECK(isnan(number(results, "maximum_error")) && isnan(number(results, "r_squared")));
    sgm_registry_free(results);
}

TEST(the_worst_mistakes_come_first)
{
    static const double outputs[] = {0.6, 0.4, 0.9, 0.1, 0.2, 0.8, 0.3, 0.7},
                        targets[] = {0, 1, 0, 1, 0, 1, 1, 0},
                        expected[] = {1, 1, 0, 0.9, 3, 0, 1, 0.7, 0, 1, 0, 0.6},
                        one_output[] = {0.1, 0.9, 0.4}, one_target[] = {1, 0, 0},
                        one_expected[] = {0, 1, 0, 0.9, 1, 0, 1, 0.9};
    sgm_registry *results = compute("confusion", 4, 2, outputs, targets);
    CHECK_OK(results);
    CHECK_TENSOR(results, "worst_mistakes", expected);
    sgm_registry_free(results);
    results = compute("confusion", 3, 1, one_output, one_target);
    CHECK_OK(results);
    CHECK_TENSOR(results, "worst_mistakes", one_expected);
    sgm_registry_free(results);
}

/* 25 mistakes, of which the 10 worst are kept, in order. */
TEST(only_so_many_mistakes_are_kept)
{
    double outputs[50], targets[50];
    for (int i = 0; i < 25; i++) {
        outputs[2 * i] = 0.5 + 0.01 * (1 + i * 7 % 25);
        outputs[2 * i + 1] = 1 - outputs[2 * i];
        targets[2 * i] = 0;
        targets[2 * i + 1] = 1;
    }
    sgm_registry *results = compute("confusion", 25, 2, outputs, targets);
    sgm_content content;
    CHECK_OK(results);
    CHECK_OK(sgm_registry_get(results, "worst_mistakes", &content));
    CHECK_INT(sgm_tensor_shape(content.as.tensor)->dims[0], 10);
    for (int64_t i = 0; i < 10; i++)
        CHECK_NEAR(sgm_tensor_get(content.as.tensor, (const int64_t[]){i, 3}), 0.75 - 0.01 * (double)i,
                   1e-12);
    sgm_content_clear(&content);
    sgm_registry_free(results);
}

TEST(sequences_have_an_prediction_for_each_step)
{
    static const double outputs[] = {0.9, 0.1, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8},
                        targets[] = {1, 0, 1, 0, 0, 1, 0, 1};
    sgm_shape shape = sgm_shape_of(2, 2, 2);
    sgm_tensor *o = sgm_tensor_create_from(SGM_FLOAT64, &shape, outputs),
               *t = sgm_tensor_create_from(SGM_FLOAT64, &shape, targets);
    sgm_registry *results = sgm_registry_create();
    static const double expected[] = {1, 1, 0, 2};
    CHECK_OK(sgm_metrics_compute("top_k confusion", o, t, results));
    CHECK_NEAR(number(results, "top_1"), 0.75, 0);
    CHECK_TENSOR(results, "confusion", expected);
    sgm_tensor_free(o);
    sgm_tensor_free(t);
    sgm_registry_free(results);
}

TEST(mistakes_in_the_text_are_named)
{
    static const double some[] = {0.1, 0.9, 0.8, 0.2}, other[] = {1, 0, 0, 1};
    CHECK_ERROR(compute("confusoin", 2, 2, some, other),
                "column 1: unknown metric 'confusoin' (did you mean 'confusion'?)");
    CHECK_ERROR(compute("f1, top_k(0)", 2, 2, some, other),
                "column 11: top_k: tops: expected a whole number from 1 to");
    CHECK_ERROR(compute("top_k(3)", 2, 2, some, other), "3 largest of only 2 outputs are always right");
    CHECK_ERROR(compute("f1(2)", 2, 2, some, other), "column 4: f1 takes no arguments");
    CHECK_ERROR(compute("binary_accuracy", 2, 2, some, other), "binary_accuracy wants one output");
    CHECK_ERROR(compute("binary_accuracy(0.7, 0.3)", 4, 1, some, other), "must not be above the upper one");
    CHECK_ERROR(compute("top_k", 4, 1, some, other), "at least 2 classes");
    CHECK_ERROR(compute("cost", 4, 1, some, other), "trainer's pass");
    CHECK_ERROR(compute("", 4, 1, some, other), "expected the name of a metric");
    CHECK_ERROR(compute("top_k(1", 2, 2, some, other), "expected ',' with another argument, or ')'");
    CHECK_ERROR(compute("top_k(1,2,3,4,5,6,7,8,9)", 2, 2, some, other), "at most 8 numbers");
    sgm_tensor *a = tensor_of(SGM_FLOAT32, 2, 2, some), *b = tensor_of(SGM_FLOAT32, 4, 1, some);
    sgm_registry *results = sgm_registry_create();
    CHECK_ERROR(sgm_metrics_compute("f1", a, b, results), "got (2, 2) and (4, 1)");
    CHECK_ERROR(sgm_metrics_compute("f1", a, NULL, results), "expected tensors of outputs and targets");
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_registry_free(results);
}

TEST(a_confusion_matrix_as_text)
{
    static const double counts[] = {10, 0, 0, 1, 7, 122, 0, 0, 0};
    static const char *const names[] = {"red", "grün", "a name that is far too long for a row"};
    sgm_tensor *matrix = tensor_of(SGM_INT64, 3, 3, counts);
    char *text = sgm_confusion_text(matrix, NULL);
    CHECK_STR(text, "target \\ output    0    1    2  examples   recall\n"
                    "0                 10    .    .       10  100.0 %\n"
                    "1                  1    7  122      130    5.4 %\n"
                    "2                  .    .    .        0        -\n");
    sgm_string_free(text);
    text = sgm_confusion_text(matrix, names);
    CHECK(strstr(text, "\n1 grün                        1    7  122 ") != NULL);
    CHECK(strstr(text, "\n2 a name that is far too l    .    .    . ") != NULL);
    sgm_string_free(text);
    sgm_tensor_free(matrix);
    CHECK_ERROR(sgm_confusion_text(NULL, NULL), "as many rows as columns");
}

TEST(a_large_confusion_matrix_is_its_mistakes)
{
    double counts[40 * 40] = {0};
    for (int i = 0; i < 40; i++)
        counts[41 * i] = 100;
    counts[40 * 7 + 3] = 5;
    counts[40 * 39 + 1] = 12;
    sgm_tensor *matrix = tensor_of(SGM_INT64, 40, 40, counts);
    char *text = sgm_confusion_text(matrix, NULL);
    CHECK_STR(text, "39 predicted as 1: 12\n7 predicted as 3: 5\n");
    sgm_string_free(text);
    sgm_tensor_free(matrix);
}

/* --- what follows from the table --- */

TEST(each_metric_is_a_hook_with_help)
{
    size_t count;
    const char *const *names = sgm_metric_names(&count);
    char unknown[512] = "unknown metric 'magic'; there are ";
    CHECK(count >= 8);
    for (size_t i = 0; i < count; i++) {
        char text[64];
        size_t length = strlen(unknown);
        snprintf(unknown + length, sizeof unknown - length, "%s%s", i > 0 ? ", " : "", names[i]);
        snprintf(text, sizeof text, "%s(training)", names[i]);
        sgm_hook *hook = sgm_hook_parse(text);
        CHECK_OK(hook);
        CHECK_STR(sgm_hook_name(hook), names[i]);
        sgm_hook_free(hook);
        char *help = sgm_hook_help(names[i]);
        CHECK_OK(help);
        CHECK(strstr(help, sgm__metric_at(i)->doc) != NULL);
        sgm_string_free(help);
    }
    CHECK_ERROR(sgm_metric_with("magic", "training", NULL), unknown);
}

TEST(the_table_says_which_way_is_better)
{
    static const char *const below[] = {"training.loss",           "validation.cost",
                                        "validation.perplexity",   "validation.mean_absolute_error",
                                        "test.second_perplexity",  "shared.reconstruction_error",
                                        "validation.maximum_error"};
    static const char *const above[] = {"validation.accuracy",  "validation.top_3",   "validation.f1",
                                        "validation.r_squared", "validation.roc_auc", "loss.accuracy",
                                        "test.second_f1_macro", "shared.value"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (!sgm__is_better_below(below[i]))
            TEST_FAIL("%s is better when it is smaller", below[i]);
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        if (sgm__is_better_below(above[i]))
            TEST_FAIL("%s is better when it is larger", above[i]);
}

TEST(each_result_has_its_row)
{
    CHECK_STR(sgm__result_row("f1_macro")->name, "f1_macro");
    CHECK_INT(sgm__result_row("f1_per_class")->kind, SGM_KIND_TENSOR);
    CHECK_STR(sgm__result_row("outputs")->doc, "of the newest pass, examples first");
    CHECK(sgm__result_row("second_f1") == NULL);
    CHECK(sgm__result_row("top_7") == NULL);
}
