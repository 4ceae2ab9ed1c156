/* Reports metrics of data as lines: accuracy_reporter, binary_accuracy_reporter, confusion_reporter.
 *
 * Nothing is computed here. Each reporter requires the metric that it reports (metric.c), reads the
 * results of the same event from the trainer's registry (DATA.top_3, DATA.confusion), and writes lines to
 * the function of its options or to the log. Other values are reported by report.c. Reporters run on the
 * training's thread. */
#include "base/log_sink.h"
#include "metrics/metrics.h"
#include "registry/pattern.h"

#include <stdio.h>

#define REPORT_PRIORITY (-100) /* behind metrics, which run at SGM_METRIC_PRIORITY */

/* The self of all three reporters. `options` is as given (its texts are the caller's and not used later);
 * what it names is copied into the other members, and `user` is released with self. */
typedef struct score_reporter {
    char *data;     /* as a part of identifiers */
    char **classes; /* names of classes, for the confusion matrix; class_count 0: none */
    size_t class_count;
    sgm_score_report_options options;
} score_reporter;

/* Metrics are the trainer's, so there is no worker to name in front as sgm__report does. */
static void say(const score_reporter *self, const sgm_hook_call *call, const char *line)
{
    if (self->options.report != NULL)
        self->options.report(self->options.user, line);
    else
        sgm__log_note(call->trainer, "%s", line);
}

/* The number DATA.NAME; it is there, since the required metric ran before. */
static sgm_status get_score(const score_reporter *self, sgm_hook_call *call, const char *name, double *value)
{
    char *identifier = sgm__format("%s.%s", self->data, name);
    sgm_status status = identifier != NULL ? sgm_hook_number(call, identifier, value) : SGM_ERROR_MEMORY;
    sgm__free(identifier);
    return status;
}

/* invoke(): "top1 = 0.947, top3 = 0.99". 32 characters are room for each of the at most SGM_MAX_TOPS
 * parts. */
static sgm_status report_tops(void *state, sgm_hook_call *call)
{
    const score_reporter *self = state;
    char line[SGM_MAX_TOPS * 32] = "", name[32];
    size_t length = 0;
    for (int i = 0; i < SGM_MAX_TOPS && self->options.tops[i] > 0; i++) {
        double value;
        snprintf(name, sizeof name, "top_%d", (int)self->options.tops[i]);
        SGM_TRY(get_score(self, call, name, &value));
        length += (size_t)snprintf(line + length, sizeof line - length, "%stop%d = %.4g", i > 0 ? ", " : "",
                                   (int)self->options.tops[i], value);
    }
    say(self, call, line);
    return SGM_OK;
}

/* invoke(). With bounds the metric leaves its result under another name, as it is another number. */
static sgm_status report_binary_accuracy(void *state, sgm_hook_call *call)
{
    const score_reporter *self = state;
    char line[64];
    double value;
    bool bounds = self->options.lower != 0 || self->options.upper != 0;
    SGM_TRY(get_score(self, call, bounds ? "binary_accuracy_bounds" : "binary_accuracy", &value));
    snprintf(line, sizeof line, "accuracy = %.4g", value);
    say(self, call, line);
    return SGM_OK;
}

/* The matrix as text, a call of `report` for each line: (classes, classes), rows are targets. A number of
 * names that does not fit the classes is an error here, where the number of classes is known for the first
 * time. */
static sgm_status report_matrix(const score_reporter *self, const sgm_hook_call *call,
                                const sgm_content *matrix)
{
    if (matrix->kind != SGM_KIND_TENSOR)
        return sgm_fail(SGM_ERROR_TYPE, "'%s.confusion' is %s, expected a tensor", self->data,
                        sgm_kind_name(matrix->kind));
    int64_t classes = sgm_tensor_shape(matrix->as.tensor)->dims[0];
    if (self->class_count > 0 && classes != (int64_t)self->class_count)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there are %lld classes, but names for %zu", (long long)classes,
                        self->class_count);
    char *text = sgm_confusion_text(matrix->as.tensor,
                                    self->class_count > 0 ? (const char *const *)self->classes : NULL);
    if (text == NULL)
        return sgm__last_failure();
    char *rest = text, *line;
    while ((line = strtok_r(rest, "\n", &rest)) != NULL)
        say(self, call, line);
    sgm_string_free(text);
    return SGM_OK;
}

/* invoke(). The content keeps the tensor while it is written. */
static sgm_status report_confusion(void *state, sgm_hook_call *call)
{
    const score_reporter *self = state;
    sgm_content matrix;
    char *identifier = sgm__format("%s.confusion", self->data);
    sgm_status status = identifier != NULL ? sgm_hook_get(call, identifier, &matrix) : SGM_ERROR_MEMORY;
    sgm__free(identifier);
    SGM_TRY(status);
    status = report_matrix(self, call, &matrix);
    sgm_content_clear(&matrix);
    return status;
}

/* The same names in the same order. */
static bool same_classes(const score_reporter *a, const score_reporter *b)
{
    if (a->class_count != b->class_count)
        return false;
    for (size_t i = 0; i < a->class_count; i++)
        if (strcmp(a->classes[i], b->classes[i]) != 0)
            return false;
    return true;
}

/* Numbers that the required metric has too (tops, threshold) are compared there: the engine compares
 * required hooks. What is left decides how the report looks, and where it goes. */
static bool is_equal(const void *a, const void *b)
{
    const score_reporter *left = a, *right = b;
    const sgm_score_report_options *one = &left->options, *other = &right->options;
    return strcmp(left->data, right->data) == 0 && one->lower == other->lower && one->upper == other->upper &&
           one->report == other->report && one->user == other->user && same_classes(left, right);
}

/* Also of a self that allocate() could not finish: missing parts are NULL. */
static void free_reporter(void *state)
{
    score_reporter *self = state;
    if (self->options.release != NULL)
        self->options.release(self->options.user);
    for (size_t i = 0; i < self->class_count; i++)
        sgm__free(self->classes[i]);
    sgm__free(self->classes);
    sgm__free(self->data);
    sgm__free(self);
}

/* Three types with one self: a type's name is the hook's name. None has a state, and none can be local, as
 * the metric that each requires is the trainer's. */
static const sgm_hook_type tops_type = {.api = SGM_HOOK_API,
                                        .name = "accuracy_reporter",
                                        .doc = "reports accuracies",
                                        .invoke = report_tops,
                                        .equal = is_equal,
                                        .free = free_reporter,
                                        .only_global = "it measures the trainer on a data set"},
                           binary_accuracy_type = {.api = SGM_HOOK_API,
                                                   .name = "binary_accuracy_reporter",
                                                   .doc = "reports the accuracy of one output",
                                                   .invoke = report_binary_accuracy,
                                                   .equal = is_equal,
                                                   .free = free_reporter,
                                                   .only_global = "it measures the trainer on a data set"},
                           confusion_type = {.api = SGM_HOOK_API,
                                             .name = "confusion_reporter",
                                             .doc = "reports confusion matrices",
                                             .invoke = report_confusion,
                                             .equal = is_equal,
                                             .free = free_reporter,
                                             .only_global = "it measures the trainer on a data set"};

/* After a failure free_reporter frees the names copied so far: class_count counts them. */
static sgm_status copy_classes(score_reporter *self, const char *const *classes)
{
    size_t count = 0;
    while (classes != NULL && classes[count] != NULL)
        count++;
    self->classes = sgm__calloc(count, sizeof *self->classes);
    if (self->classes == NULL)
        return SGM_ERROR_MEMORY;
    for (; self->class_count < count; self->class_count++)
        if ((self->classes[self->class_count] = sgm__strdup(classes[self->class_count])) == NULL)
            return SGM_ERROR_MEMORY;
    return SGM_OK;
}

/* The self with its copies; NULL: it failed, and `user` is released. `data` becomes the part of
 * identifiers that the trainer makes of the name of a data set ("test set" is test_set). */
static score_reporter *allocate(const char *data, const sgm_score_report_options *given)
{
    score_reporter *self = sgm__calloc(1, sizeof *self);
    if (self == NULL) {
        if (given->release != NULL)
            given->release(given->user);
        return NULL;
    }
    self->options = *given;
    self->data = sgm__identifier_part(data != NULL ? data : "");
    if (self->data != NULL && copy_classes(self, given->classes) == SGM_OK)
        return self;
    free_reporter(self);
    return NULL;
}

/* The common constructor: a reporter that requires the metric of this name, both at the same time step:
 * sgm__hooks_attach demands that a required hook is due whenever its dependent is. An interval of 0 means
 * 1 here: left at 0, the metric would take its own default, every epoch, and the two would differ. */
static sgm_hook *create(const sgm_hook_type *type, const char *metric, const char *data, sgm_time_step when,
                        const sgm_score_report_options *given)
{
    sgm_score_report_options options;
    if (sgm__options_read(&options, sizeof options, given, type->name) != SGM_OK)
        return NULL;
    if (type == &tops_type && options.tops[0] == 0)
        options.tops[0] = 1;
    score_reporter *self = allocate(data, &options);
    if (self == NULL)
        return NULL;
    sgm_metric_options wanted = {.struct_size = sizeof wanted,
                                 .when = when,
                                 .threshold = options.threshold,
                                 .lower = options.lower,
                                 .upper = options.upper};
    memcpy(wanted.tops, options.tops, sizeof wanted.tops);
    wanted.when.interval = when.interval > 0 ? when.interval : 1;
    sgm_hook *measures = sgm_metric_with(metric, data, &wanted);
    if (measures == NULL) {
        free_reporter(self);
        return NULL;
    }
    return sgm_hook_create(type, self, .when = wanted.when, .requires_hooks = {measures},
                           .priority = REPORT_PRIORITY);
}

/* The three constructors differ in the type and in the metric that it requires. */
sgm_hook *sgm_accuracy_reporter_with(const char *data, sgm_time_step when,
                                     const sgm_score_report_options *options)
{
    return create(&tops_type, "top_k", data, when, options);
}

sgm_hook *sgm_binary_accuracy_reporter_with(const char *data, sgm_time_step when,
                                            const sgm_score_report_options *options)
{
    return create(&binary_accuracy_type, "binary_accuracy", data, when, options);
}

sgm_hook *sgm_confusion_reporter_with(const char *data, sgm_time_step when,
                                      const sgm_score_report_options *options)
{
    return create(&confusion_type, "confusion", data, when, options);
}
