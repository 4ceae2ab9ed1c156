/* Metrics and their reporters as text: "top_k(validation, 1, 3)", "confusion_reporter(classes="cat dog")".
 *
 * Each row (sgm__hook_row, hooks/hook_text.h) lists a hook's arguments with types, defaults and help, and
 * a function that makes the hook from the values read. The rows of metrics are expanded from SGM__METRICS,
 * so a new metric has its text without a change here. What a metric takes besides is in
 * src/metrics/metrics_text.c, which also reads metrics without hooks, "confusion f1 top_k(1, 3)". */
#include "hooks/hook_text.h"
#include "metrics/metrics.h"

/* A metric's hook: the options of its own, and the arguments that all metrics have. The row has the name of
 * the metric. */
static sgm_hook *parse_metric(const sgm__call *call, sgm_time_step when)
{
    sgm_metric_options options = {.struct_size = sizeof options, .when = when};
    if (sgm__metric_read_options(call, &options) != SGM_OK)
        return NULL;
    options.output = sgm__call_text(call, "output");
    options.targets = sgm__call_text(call, "targets");
    options.name = sgm__call_text(call, "name");
    return sgm_metric_with(call->name, sgm__call_text(call, "data"), &options);
}

/* The arguments that several rows share. Order counts: it is the order without names. */
#define DATA_ARGUMENT                                                                                        \
    {                                                                                                        \
        "data", SGM_KIND_TEXT, .default_text = "validation", .doc = "data of the trainer, or training"       \
    }
/* What all metrics have: which output, which targets, and a name in front of the results. */
#define LAST_ARGUMENTS                                                                                       \
    {"output", SGM_KIND_TEXT, .doc = "a layer's name; if not given: the first output"},                      \
        {"targets", SGM_KIND_TEXT, .doc = "a field of the data; if not given: the first cost's"},            \
    {                                                                                                        \
        "name", SGM_KIND_TEXT, .doc = "goes before the results: NAME_f1"                                     \
    }
/* A row of a hook that measures data: `data` is the first argument of all of them, they run every epoch,
 * and none can be local, since the data sets are the trainer's. */
#define METRIC_ROW(row, text, words, function, ...)                                                          \
    const sgm__hook_row row = {.name = text,                                                                 \
                               .doc = words,                                                                 \
                               .example = text "(validation)",                                               \
                               .when = {SGM_EPOCH, 1, 0},                                                    \
                               .arguments = {DATA_ARGUMENT, __VA_ARGS__},                                    \
                               .create = function,                                                           \
                               .global = true};

/* By what a metric takes (second column of SGM__METRICS): its arguments. */
#define ARGUMENTS_NOTHING LAST_ARGUMENTS
#define ARGUMENTS_THRESHOLD SGM__THRESHOLD_ROW, LAST_ARGUMENTS
#define ARGUMENTS_TOPS SGM__TOPS_ROW, LAST_ARGUMENTS
#define ARGUMENTS_BOUNDS SGM__THRESHOLD_ROW, SGM__BOUND_ROWS, LAST_ARGUMENTS
/* A row for each metric of the table, sgm__NAME_row, which rows.c declares and lists in the same way. */
#define METRIC(id, takes, words) METRIC_ROW(sgm__##id##_row, #id, words, parse_metric, ARGUMENTS_##takes)
SGM__METRICS(METRIC)

/* --- metrics of programs --- */

/* The text of an added metric's hook. The row is added before the metric, since it can be refused for more
 * reasons: a hook of any kind may have the name. */
sgm_status sgm_register_metric(const sgm_metric_type *type)
{
    if (type == NULL || type->api != SGM_METRIC_API || type->name == NULL || type->doc == NULL ||
        type->compute == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a metric wants .api = SGM_METRIC_API, a name, a doc and a compute");
    const sgm__hook_row row = {.name = type->name,
                               .doc = type->doc,
                               .when = {SGM_EPOCH, 1, 0},
                               .arguments = {DATA_ARGUMENT, LAST_ARGUMENTS},
                               .create = parse_metric,
                               .global = true};
    bool is_new;
    SGM_TRY(sgm__hook_row_add(&row, type, &is_new));
    return is_new ? sgm__metric_add(type) : SGM_OK;
}

/* --- reporters --- */

/* The texts of options are copied by the constructors below; `call` may go afterwards. */
static sgm_hook *parse_accuracy_reporter(const sgm__call *call, sgm_time_step when)
{
    sgm_score_report_options options = {.struct_size = sizeof options};
    sgm_metric_options metric = {.struct_size = sizeof metric};
    if (sgm__metric_read_options(call, &metric) != SGM_OK)
        return NULL;
    memcpy(options.tops, metric.tops, sizeof options.tops);
    return sgm_accuracy_reporter_with(sgm__call_text(call, "data"), when, &options);
}

static sgm_hook *parse_binary_accuracy_reporter(const sgm__call *call, sgm_time_step when)
{
    sgm_metric_options metric = {.struct_size = sizeof metric};
    if (sgm__metric_read_options(call, &metric) != SGM_OK)
        return NULL;
    return sgm_binary_accuracy_reporter(sgm__call_text(call, "data"), when, .threshold = metric.threshold,
                                        .lower = metric.lower, .upper = metric.upper);
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
static sgm_hook *parse_confusion_reporter(const sgm__call *call, sgm_time_step when)
{
    const char *data = sgm__call_text(call, "data"), *names = sgm__call_text(call, "classes");
    if (names == NULL)
        return sgm_confusion_reporter(data, when, .classes = NULL);
    size_t maximum = strlen(names) / 2 + 1;
    char *copy = sgm__strdup(names);
    const char **classes = copy != NULL ? sgm__calloc(maximum + 1, sizeof *classes) : NULL;
    sgm_hook *hook = NULL;
    if (classes != NULL && split_classes(copy, classes, maximum) > 0)
        hook = sgm_confusion_reporter(data, when, .classes = classes);
    else if (classes != NULL)
        sgm__call_fail(call, "classes", "expected names, separated by spaces");
    sgm__free(classes);
    sgm__free(copy);
    return hook;
}

METRIC_ROW(sgm__accuracy_reporter_row, "accuracy_reporter", "logs \"top1 = 0.947, top3 = 0.99\"",
           parse_accuracy_reporter, SGM__TOPS_ROW)
METRIC_ROW(sgm__binary_accuracy_reporter_row, "binary_accuracy_reporter",
           "logs \"accuracy = 0.947\" of one output", parse_binary_accuracy_reporter, SGM__THRESHOLD_ROW,
           SGM__BOUND_ROWS)
METRIC_ROW(sgm__confusion_reporter_row, "confusion_reporter", "logs the confusion matrix",
           parse_confusion_reporter,
           {"classes", SGM_KIND_TEXT, .doc = "names in quotes, with spaces between: \"cat dog\""})

/* --- processors --- */

/* Texts choose from the functions that the library has; programs may give their own. */
static sgm_hook *parse_processor(const sgm__call *call, sgm_time_step when)
{
    static const sgm_metric_function functions[] = {sgm_metric_mean, sgm_metric_standard_deviation};
    return sgm_metric_processor(sgm__call_text(call, "values"), functions[sgm__call_choice(call, "function")],
                                sgm__call_text(call, "name"), .when = when,
                                .background = sgm__call_flag(call, "background"));
}

static const char *const functions[] = {"mean", "standard_deviation", NULL};
/* The only row here that may be local and in the background: it reads the registry, and measures no data. */
const sgm__hook_row sgm__metric_processor_row = {
    .name = "metric_processor",
    .example = "metric_processor(network.layers.*.weights, weights_mean)",
    .doc = "mean over all that matches of a function of its elements, as shared.NAME",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"values", SGM_KIND_TEXT, .identifier = true, .list = true, .required = true,
                   .doc = "network.layers.*.weights"},
                  {"name", SGM_KIND_TEXT, .required = true, .doc = "of the result"},
                  {"function", SGM_KIND_TEXT, .default_text = "mean", .choices = functions,
                   .doc = "mean or standard_deviation of elements"},
                  {"background", SGM_KIND_BOOLEAN, .doc = "on a thread of its own"}},
    .create = parse_processor,
};
