/* Metrics and their reporters as text: "top_k(validation, 1, 3)", "confusion_reporter(classes="cat dog")".
 *
 * Each row (sgm__hook_row, hooks/hook_text.h) lists a hook's arguments with types, defaults and help, and
 * a function that makes the hook from the values read. The rows of metrics are expanded from SGM__METRICS,
 * so a new metric has its text without a change here, if it takes one of the four kinds of options below.
 * The same metrics without hooks, "confusion f1 top_k(1, 3)", are read by src/metrics/metrics_text.c. */
#include "hooks/hook_text.h"
#include "metrics/metrics.h"

#include <math.h>

/* Whole numbers from 1, a list of which top_k and its reporter want. The reader of arguments has checked
 * that they are finite numbers, no more; false: the error names the argument's column. */
static bool read_tops(const sgm__hook_text *call, int32_t tops[SGM_MAX_TOPS])
{
    size_t count;
    const double *numbers = sgm__hook_numbers_of(call, "tops", &count);
    if (count > SGM_MAX_TOPS) {
        sgm__hook_text_fail(call, "tops", "at most %d numbers", SGM_MAX_TOPS);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!(numbers[i] >= 1 && numbers[i] <= INT32_MAX && numbers[i] == floor(numbers[i]))) {
            sgm__hook_text_fail(call, "tops", "expected whole numbers from 1, got %g", numbers[i]);
            return false;
        }
        tops[i] = (int32_t)numbers[i];
    }
    return true;
}

/* A number that was not given is 0 in options, which means their default there. */
static double number_or_zero(const sgm__hook_text *call, const char *name)
{
    return sgm__hook_has(call, name) ? sgm__hook_number_of(call, name) : 0;
}

/* A metric's hook with the arguments that all metrics have. The row has the name of the metric. */
static sgm_hook *create(const sgm__hook_text *call, sgm_metric_options *options)
{
    options->struct_size = sizeof *options;
    options->when = call->when;
    options->output = sgm__hook_text_of(call, "output");
    options->targets = sgm__hook_text_of(call, "targets");
    options->name = sgm__hook_text_of(call, "name");
    return sgm_metric_create(call->row->name, sgm__hook_text_of(call, "data"), options);
}

/* The four functions below make a metric of one kind of options each; a threshold of 0 is the default,
 * 0.5. */
static sgm_hook *parse_plain(const sgm__hook_text *call)
{
    sgm_metric_options options = {.threshold = 0};
    return create(call, &options);
}

static sgm_hook *parse_classes(const sgm__hook_text *call)
{
    sgm_metric_options options = {.threshold = number_or_zero(call, "threshold")};
    return create(call, &options);
}

static sgm_hook *parse_tops(const sgm__hook_text *call)
{
    sgm_metric_options options = {.threshold = 0};
    return read_tops(call, options.tops) ? create(call, &options) : NULL;
}

static sgm_hook *parse_binary_accuracy(const sgm__hook_text *call)
{
    sgm_metric_options options = {.threshold = number_or_zero(call, "threshold"),
                                  .lower = number_or_zero(call, "lower"),
                                  .upper = number_or_zero(call, "upper")};
    return create(call, &options);
}

/* The arguments that several rows share. Order counts: it is the order without names. */
#define DATA_ARGUMENT                                                                                        \
    {                                                                                                        \
        "data", SGM__ARGUMENT_WORD, .default_value = "validation", .doc = "data of the trainer, or training" \
    }
/* 0.5 suits probabilities; "threshold" is of networks with one output only. */
#define THRESHOLD_ARGUMENT                                                                                   \
    {                                                                                                        \
        "threshold", SGM__ARGUMENT_NUMBER, .default_value = "0.5",                                           \
                                           .doc = "one output: above it the prediction is 1"                 \
    }
#define TOPS_ARGUMENT                                                                                        \
    {                                                                                                        \
        "tops", SGM__ARGUMENT_NUMBERS, .default_value = "1", .doc = "among how many largest outputs: 1, 3"   \
    }
/* Without a default: both absent means that only the threshold counts. */
#define BOUND_ARGUMENTS                                                                                      \
    {"lower", SGM__ARGUMENT_NUMBER, .doc = "below it the prediction is 0; in between it is wrong"},          \
    {                                                                                                        \
        "upper", SGM__ARGUMENT_NUMBER, .doc = "above it the prediction is 1"                                 \
    }
/* What all metrics have: which output, which targets, and a name in front of the results. */
#define LAST_ARGUMENTS                                                                                       \
    {"output", SGM__ARGUMENT_WORD, .doc = "a layer's name; if not given: the first output"},                 \
        {"targets", SGM__ARGUMENT_WORD, .doc = "a field of the data; if not given: the first cost's"},       \
    {                                                                                                        \
        "name", SGM__ARGUMENT_WORD, .doc = "goes before the results: NAME_f1"                                \
    }
/* A row of a hook that measures data: `data` is the first argument of all of them, they run every epoch,
 * and none can be local, since the data sets are the trainer's. */
#define METRIC_ROW(row, text, words, function, ...)                                                          \
    const sgm__hook_row row = {.name = text,                                                                 \
                               .doc = words,                                                                 \
                               .when = {SGM_EPOCH, 1, 0},                                                    \
                               .arguments = {DATA_ARGUMENT, __VA_ARGS__},                                    \
                               .create = function,                                                           \
                               .global = true};

/* By what a metric takes (second column of SGM__METRICS): the function that makes its hook, and the
 * arguments that are its own. */
#define PARSE_NOTHING parse_plain
#define PARSE_THRESHOLD parse_classes
#define PARSE_TOPS parse_tops
#define PARSE_BOUNDS parse_binary_accuracy
#define ARGUMENTS_NOTHING LAST_ARGUMENTS
#define ARGUMENTS_THRESHOLD THRESHOLD_ARGUMENT, LAST_ARGUMENTS
#define ARGUMENTS_TOPS TOPS_ARGUMENT, LAST_ARGUMENTS
#define ARGUMENTS_BOUNDS THRESHOLD_ARGUMENT, BOUND_ARGUMENTS, LAST_ARGUMENTS
/* A row for each metric of the table, sgm__NAME_row, which rows.c declares and lists in the same way. */
#define METRIC(id, takes, words) METRIC_ROW(sgm__##id##_row, #id, words, PARSE_##takes, ARGUMENTS_##takes)
SGM__METRICS(METRIC)

/* --- reporters --- */

/* The texts of options are copied by the constructors below; `call` may go afterwards. */
static sgm_hook *parse_accuracy_reporter(const sgm__hook_text *call)
{
    sgm_score_report_options options = {.struct_size = sizeof options};
    return read_tops(call, options.tops)
               ? sgm_accuracy_reporter_with(sgm__hook_text_of(call, "data"), call->when, &options)
               : NULL;
}

static sgm_hook *parse_binary_accuracy_reporter(const sgm__hook_text *call)
{
    return sgm_binary_accuracy_reporter(
        sgm__hook_text_of(call, "data"), call->when, .threshold = number_or_zero(call, "threshold"),
        .lower = number_or_zero(call, "lower"), .upper = number_or_zero(call, "upper"));
}

/* Cuts `text` at its spaces into at most `maximum` names, which point into it. */
static size_t split_classes(char *text, const char **classes, size_t maximum)
{
    size_t count = 0;
    char *rest = text, *word;
    while (count < maximum && (word = strtok_r(rest, " ", &rest)) != NULL)
        classes[count++] = word;
    return count;
}

/* The names come as one text in quotes. Half of its length plus one is enough, since names and spaces take
 * turns; the list has one place more for the NULL at its end. */
static sgm_hook *parse_confusion_reporter(const sgm__hook_text *call)
{
    const char *data = sgm__hook_text_of(call, "data"), *names = sgm__hook_text_of(call, "classes");
    if (names == NULL)
        return sgm_confusion_reporter(data, call->when, .classes = NULL);
    size_t maximum = strlen(names) / 2 + 1;
    char *copy = sgm__strdup(names);
    const char **classes = copy != NULL ? sgm__calloc(maximum + 1, sizeof *classes) : NULL;
    sgm_hook *hook = NULL;
    if (classes != NULL && split_classes(copy, classes, maximum) > 0)
        hook = sgm_confusion_reporter(data, call->when, .classes = classes);
    else if (classes != NULL)
        sgm__hook_text_fail(call, "classes", "expected names, separated by spaces");
    sgm__free(classes);
    sgm__free(copy);
    return hook;
}

METRIC_ROW(sgm__accuracy_reporter_row, "accuracy_reporter", "logs \"top1 = 0.947, top3 = 0.99\"",
           parse_accuracy_reporter, TOPS_ARGUMENT)
METRIC_ROW(sgm__binary_accuracy_reporter_row, "binary_accuracy_reporter",
           "logs \"accuracy = 0.947\" of one output", parse_binary_accuracy_reporter, THRESHOLD_ARGUMENT,
           BOUND_ARGUMENTS)
METRIC_ROW(sgm__confusion_reporter_row, "confusion_reporter", "logs the confusion matrix",
           parse_confusion_reporter,
           {"classes", SGM__ARGUMENT_WORD, .doc = "names in quotes, with spaces between: \"cat dog\""})

/* --- processors --- */

/* Texts choose from the functions that the library has; programs may give their own. */
static sgm_hook *parse_processor(const sgm__hook_text *call)
{
    static const sgm_metric_function functions[] = {sgm_metric_mean, sgm_metric_standard_deviation};
    return sgm_metric_processor(sgm__hook_text_of(call, "values"),
                                functions[sgm__hook_choice_of(call, "function")],
                                sgm__hook_text_of(call, "name"), .when = call->when,
                                .background = sgm__hook_flag_of(call, "background"));
}

static const char *const functions[] = {"mean", "standard_deviation", NULL};
/* The only row here that may be local and in the background: it reads the registry, and measures no data. */
const sgm__hook_row sgm__metric_processor_row = {
    .name = "metric_processor",
    .doc = "mean over all that matches of a function of its elements, as shared.NAME",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"values", SGM__ARGUMENT_IDENTIFIERS, .needed = true, .doc = "network.layers.*.weights"},
                  {"name", SGM__ARGUMENT_WORD, .needed = true, .doc = "of the result"},
                  {"function", SGM__ARGUMENT_CHOICE, .default_value = "mean", .choices = functions,
                   .doc = "mean or standard_deviation of elements"},
                  {"background", SGM__ARGUMENT_FLAG, .default_value = "false",
                   .doc = "on a thread of its own"}},
    .create = parse_processor,
};
