/* Metrics, hooks and datasets that a program gives a name: they are found by it, and bad tables are refused.
 */
#include "test.h"

#include "metrics/metrics.h"

#include <math.h>
#include <sigma/sigma.h>

/* --- a metric: the largest distance of an output to its target --- */

static sgm_status farthest(const sgm_tensor *outputs, const sgm_tensor *targets, double *value)
{
    double a[4], b[4];
    if (sgm_shape_elements(sgm_tensor_shape(outputs)) != 4)
        return sgm_fail(SGM_ERROR_SHAPE, "expected four outputs");
    SGM_TRY(sgm_tensor_read(outputs, a, 4));
    SGM_TRY(sgm_tensor_read(targets, b, 4));
    *value = 0;
    for (int i = 0; i < 4; i++)
        *value = fmax(*value, fabs(a[i] - b[i]));
    return SGM_OK;
}

static const sgm_metric_type farthest_type = {.api = SGM_METRIC_API,
                                              .name = "farthest",
                                              .doc = "largest distance, as DATA.farthest",
                                              .better = SGM_MINIMUM,
                                              .compute = farthest};

/* The metric's result of tensors with `rows` rows of two columns. */
static sgm_status compute(int64_t rows, const float *outputs, const float *targets, double *value)
{
    sgm_shape shape = sgm_shape_of(rows, 2);
    sgm_tensor *a = sgm_tensor_create_from(SGM_FLOAT32, &shape, outputs);
    sgm_tensor *b = sgm_tensor_create_from(SGM_FLOAT32, &shape, targets);
    sgm_registry *results = sgm_registry_create();
    sgm_status status = sgm_metrics_compute("farthest", a, b, results);
    if (status == SGM_OK)
        status = sgm_registry_get_number(results, "farthest", value);
    sgm_registry_free(results);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    return status;
}

TEST(a_metric_of_a_program_is_computed_by_its_name)
{
    static const float outputs[] = {1, 2, 3, 4}, targets[] = {1, 2.5F, 0.75F, 4};
    double value;
    CHECK_OK(sgm_register_metric(&farthest_type));
    CHECK_OK(sgm_register_metric(&farthest_type)); /* again: nothing */
    CHECK_OK(compute(2, outputs, targets, &value));
    CHECK(value == 2.25);
    CHECK_ERROR(compute(1, outputs, targets, &value), "farthest: expected four outputs");
    CHECK(sgm__is_better_below("validation.farthest"));
    sgm_hook *hook = sgm_hook_parse("every 2 epochs farthest(training, name=second)");
    CHECK_OK(hook);
    CHECK_STR(sgm_hook_name(hook), "farthest");
    sgm_hook_free(hook);
}

TEST(metrics_are_refused)
{
    static sgm_metric_type other;
    other = farthest_type;
    CHECK_ERROR(sgm_register_metric(&other), "there is a hook 'farthest' already");
    other.name = "f1";
    CHECK_ERROR(sgm_register_metric(&other), "there is a hook 'f1' already");
    other.api = SGM_METRIC_API + 1;
    CHECK_ERROR(sgm_register_metric(&other), "a metric wants .api = SGM_METRIC_API");
    CHECK_ERROR(sgm_register_metric(NULL), "a metric wants");
}

/* --- a hook --- */

static sgm_status do_nothing(void *self, sgm_hook_call *call)
{
    (void)self, (void)call;
    return SGM_OK;
}

static const sgm_hook_type nudge_type = {.api = SGM_HOOK_API, .name = "nudge", .invoke = do_nothing};
static double factor_seen;
static char word_seen[16];

static sgm_hook *nudge_create(const sgm_hook_arguments *arguments, sgm_time_step when)
{
    factor_seen = sgm_hook_arguments_number(arguments, "factor");
    snprintf(word_seen, sizeof word_seen, "%s", sgm_hook_arguments_text(arguments, "word"));
    if (factor_seen == 13) {
        sgm_fail(SGM_ERROR_ARGUMENT, "13 is not for nudges");
        return NULL;
    }
    return sgm_hook_create(&nudge_type, NULL, .when = when);
}

static const sgm_option nudge_arguments[] = {
    {.name = "factor",
     .kind = SGM_KIND_NUMBER,
     .default_value = 2,
     .minimum = 0,
     .maximum = 100,
     .doc = "of it"},
    {.name = "word", .kind = SGM_KIND_TEXT, .default_text = "softly", .doc = "how"}};
static const sgm_hook_text_type nudge = {.api = SGM_HOOK_TEXT_API,
                                         .name = "nudge",
                                         .doc = "does nothing",
                                         .arguments = nudge_arguments,
                                         .argument_count = 2,
                                         .create = nudge_create};

TEST(a_hook_of_a_program_is_read_as_text)
{
    CHECK_OK(sgm_register_hook(&nudge));
    CHECK_OK(sgm_register_hook(&nudge));
    sgm_hook *hook = sgm_hook_parse("nudge(7)");
    CHECK_OK(hook);
    CHECK(factor_seen == 7);
    CHECK_STR(word_seen, "softly");
    sgm_hook_free(hook);
    CHECK_ERROR(sgm_hook_parse("nudge(700)"), "factor");
    CHECK_ERROR(sgm_hook_parse("nudge(13)"), "column 1: 13 is not for nudges");
    CHECK_ERROR(sgm_hook_parse("nudg(7)"), "did you mean 'nudge'?");
    char *help = sgm_hook_help("nudge");
    CHECK_OK(help);
    CHECK(strstr(help, "[every epoch] nudge(factor=2, word=softly)") != NULL);
    sgm_string_free(help);
}

TEST(hooks_are_refused)
{
    static sgm_hook_text_type other;
    other = nudge;
    CHECK_ERROR(sgm_register_hook(&other), "there is a hook 'nudge' already");
    other.argument_count = 13;
    CHECK_ERROR(sgm_register_hook(&other), "the hook 'nudge' has 13 arguments, of at most 12");
    other.create = NULL;
    CHECK_ERROR(sgm_register_hook(&other), "a hook's text wants .api = SGM_HOOK_TEXT_API");
}

/* --- a dataset --- */

static sgm_dataset *open_ramp(const char *argument)
{
    static const char *const fields[] = {"inputs"};
    static const float values[] = {0, 1, 2, 3};
    sgm_shape shape = sgm_shape_of(argument != NULL ? 2 : 4, 1);
    sgm_tensor *tensor = sgm_tensor_create_from(SGM_FLOAT32, &shape, values);
    sgm_dataset *dataset = sgm_dataset_create_from("ramp", fields, &tensor, 1);
    sgm_tensor_free(tensor);
    return dataset;
}

static const sgm_dataset_type ramp = {.api = SGM_DATASET_API, .name = "ramp", .open = open_ramp};

TEST(a_dataset_of_a_program_is_opened_by_its_name)
{
    size_t before, after;
    sgm_dataset_names(&before);
    CHECK_OK(sgm_register_dataset(&ramp));
    CHECK_OK(sgm_register_dataset(&ramp));
    const char *const *names = sgm_dataset_names(&after);
    CHECK_INT(after, before + 1);
    CHECK_STR(names[before], "ramp");
    sgm_dataset *whole = sgm_dataset_open("ramp"), *half = sgm_dataset_open("ramp:half");
    CHECK_OK(whole);
    CHECK_OK(half);
    sgm_dataset_free(whole);
    sgm_dataset_free(half);
    CHECK_ERROR(sgm_dataset_open("rampe"), "did you mean \"ramp\"?");
    CHECK_ERROR(sgm_dataset_open("iris:5"), "there is no dataset \"iris:5\"");
}

TEST(datasets_are_refused)
{
    static sgm_dataset_type other;
    other = ramp;
    CHECK_ERROR(sgm_register_dataset(&other), "there is a dataset 'ramp' already");
    other.name = "text";
    CHECK_ERROR(sgm_register_dataset(&other), "a dataset cannot be called 'text'");
    other.name = "a:b";
    CHECK_ERROR(sgm_register_dataset(&other), "a name has no colon, dot or slash");
    other.open = NULL;
    CHECK_ERROR(sgm_register_dataset(&other), "a dataset wants .api = SGM_DATASET_API");
}
