/* Metrics as hooks: one kind that passes over the data, and one for each metric that computes from what
 * the pass left.
 *
 * What a metric computes is in src/metrics; the pass itself is src/train/trainer_pass.c, and results reach
 * the trainer's registry through src/train/trainer_pass.c. Reports as lines are metric_report.c, and
 * the texts of all these hooks ("f1(validation)") metric_rows.c.
 *
 * A metric's hook requires a predictions hook of the same data, output and targets. Equal hooks are
 * attached once, so all metrics of one event share one pass. It leaves DATA.outputs (examples, ...),
 * DATA.targets of the same shape, and DATA.cost in the registry; the metrics read them there by
 * identifier. Everything runs on the training's thread, in the foreground: a background hook has no
 * trainer to measure. */
#include "hooks/hooks.h"
#include "metrics/metrics.h"
#include "registry/pattern.h"
#include "train/measure.h"
#include "trainer/view.h"

#include <math.h>
#include <pthread.h>

/* --- the pass --- */

/* The self of a pass: which data ("training", or a name of validation data), which layer's output and
 * which field of targets; NULL: the first of the network. `each_epoch`: it runs at every epoch's end, so
 * the validation that the run makes anyway may gather the outputs, and no second pass is needed. */
typedef struct prediction {
    char *data, *output, *field;
    bool each_epoch;
} prediction;

/* The trainer of the call; none in the background, or in an engine that a program uses without a trainer. */
static sgm_status find_trainer(const sgm_hook_call *call, sgm_trainer **trainer)
{
    *trainer = sgm_hook_trainer(call);
    return *trainer != NULL ? SGM_OK
                            : sgm_fail(SGM_ERROR_UNSUPPORTED,
                                       "metrics need their trainer: attach them to one, in the foreground");
}

/* invoke() of the pass. Nothing is computed if the outputs of this iteration are there already. */
static sgm_status predict(void *state, sgm_hook_call *call)
{
    const prediction *self = state;
    sgm_trainer *trainer;
    SGM_TRY(find_trainer(call, &trainer));
    return sgm__trainer_pass_for_hooks(trainer, sgm__hook_of_call(call), self->data, self->output,
                                       self->field, self->each_epoch);
}

/* check() before the first iteration: a misspelt name of data ends the run at once, not after its first
 * epoch. */
static sgm_status check_has_data(void *state, sgm_hook_call *call)
{
    const prediction *self = state;
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    sgm_iterator *iterator;
    return trainer != NULL ? sgm__trainer_find_data(trainer, self->data, &iterator) : SGM_OK;
}

/* Equal texts, or both NULL. */
static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Without `each_epoch`, which follows from the time step that the engine compares. */
static bool equal_predictions(const void *a, const void *b)
{
    const prediction *left = a, *right = b;
    return strcmp(left->data, right->data) == 0 && same_text(left->output, right->output) &&
           same_text(left->field, right->field);
}

static void free_prediction(void *state)
{
    prediction *self = state;
    sgm__free(self->data);
    sgm__free(self->output);
    sgm__free(self->field);
    sgm__free(self);
}

/* Never local: a data set belongs to the trainer, and its workers have only parts of minibatches. */
static const sgm_hook_type prediction_type = {.api = SGM_HOOK_API,
                                              .name = "predictions",
                                              .doc = "outputs and targets of a pass over data",
                                              .invoke = predict,
                                              .equal = equal_predictions,
                                              .free = free_prediction,
                                              .only_global = "it measures the trainer on a data set",
                                              .check = check_has_data};

/* The options with their defaults: every epoch instead of sgm_time_step's every iteration, and the
 * threshold 0.5. So a metric of every iteration cannot be had by leaving `when` at 0: it takes
 * sgm_every(1, ...). */
static sgm_status read_options(const sgm_metric_options *given, sgm_metric_options *options, const char *what)
{
    SGM_TRY(sgm__options_read(options, sizeof *options, given, what));
    if (options->when.interval == 0 && options->when.scale == SGM_ITERATION)
        options->when.scale = SGM_EPOCH;
    if (options->threshold == 0)
        options->threshold = 0.5;
    return SGM_OK;
}

/* "validation.outputs", or "validation.outputs_OF" for an output that is not the first; free with
 * sgm__free. A metric reads by these identifiers; they also tell metrics of different data apart in
 * checkpoints, where a hook finds its state by what it reads. */
static char *identifier_of(const char *data, const char *base, const char *of)
{
    char *part = sgm__identifier_part(data), *name = sgm__passed_name(base, of);
    char *identifier = part != NULL && name != NULL ? sgm__format("%s.%s", part, name) : NULL;
    sgm__free(part);
    sgm__free(name);
    return identifier;
}

/* Only whether there is a name: which data sets a trainer has, is known when the hook is attached. */
static sgm_status check_data(const char *data, const char *what)
{
    if (data != NULL && data[0] != '\0')
        return SGM_OK;
    return sgm_fail(SGM_ERROR_ARGUMENT, "%s: expected the name of a trainer's data, such as \"validation\"",
                    what);
}

/* The same priority as metrics have: a required hook runs before the one that requires it anyway. */
sgm_hook *sgm_predictions_hook_with(const char *data, const sgm_metric_options *given)
{
    sgm_metric_options options;
    if (read_options(given, &options, "sgm_predictions_hook") != SGM_OK ||
        check_data(data, "predictions") != SGM_OK)
        return NULL;
    prediction *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    *self = (prediction){sgm__strdup(data), sgm__strdup(options.output), sgm__strdup(options.targets),
                         options.when.scale == SGM_EPOCH && options.when.interval <= 1};
    if (self->data == NULL || (options.output != NULL && self->output == NULL) ||
        (options.targets != NULL && self->field == NULL)) {
        free_prediction(self);
        return NULL;
    }
    return sgm_hook_create(&prediction_type, self, .when = options.when, .priority = SGM_METRIC_PRIORITY,
                           .failure = options.failure);
}

/* --- metrics --- */

/* The self of a metric. `options` are those that the compute() of its record reads; the texts in them are
 * the caller's and are not used after the creation. */
typedef struct metric {
    size_t index;                   /* of sgm__metric_at */
    char *data, *name;              /* name: goes before the results, "second_f1"; NULL: none */
    char *outputs, *targets, *cost; /* identifiers */
    sgm_metric_options options;     /* its texts are not kept */
} metric;

/* Where results of one call go: the `user` of leave(). */
typedef struct metric_target {
    const metric *self;
    const sgm_hook *hook;
    sgm_trainer *trainer;
} metric_target;

/* Leaves one result as DATA.RESULT, or DATA.NAME_RESULT, in the name of this hook: when the hook is taken
 * off, its results go too. */
static sgm_status leave(void *user, const char *name, const sgm_content *content, sgm__weight weight)
{
    const metric_target *to = user;
    if (to->self->name == NULL)
        return sgm__trainer_leave(to->trainer, to->hook, to->self->data, name, content, weight);
    char *longer = sgm__format("%s_%s", to->self->name, name);
    sgm_status status =
        longer != NULL ? sgm__trainer_leave(to->trainer, to->hook, to->self->data, longer, content, weight)
                       : SGM_ERROR_MEMORY;
    sgm__free(longer);
    return status;
}

/* The value of an identifier, which must be a tensor; the caller clears *content after success. */
static sgm_status get_tensor(sgm_hook_call *call, const char *identifier, sgm_content *content)
{
    SGM_TRY(sgm_hook_get(call, identifier, content));
    if (content->kind == SGM_KIND_TENSOR)
        return SGM_OK;
    sgm_status status =
        sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a tensor", identifier, sgm_kind_name(content->kind));
    sgm_content_clear(content);
    return status;
}

/* invoke() of all metrics: opens outputs and targets as rows of columns and calls the compute() of the
 * metric's record. sgm__predictions_close follows an opening that failed, too; the tensors of the registry
 * are retained by the contents, so that another hook may replace them meanwhile. */
static sgm_status measure(void *state, sgm_hook_call *call)
{
    const metric *self = state;
    metric_target target = {.self = self, .hook = sgm__hook_of_call(call)};
    const sgm__results results = {leave, &target};
    sgm_content outputs, targets;
    sgm__predictions predictions;
    SGM_TRY(find_trainer(call, &target.trainer));
    SGM_TRY(get_tensor(call, self->outputs, &outputs));
    sgm_status status = get_tensor(call, self->targets, &targets);
    if (status == SGM_OK) {
        status = sgm__predictions_open(&predictions, outputs.as.tensor, targets.as.tensor);
        if (status == SGM_OK)
            status = sgm_hook_number(call, self->cost, &predictions.cost);
        if (status == SGM_OK)
            status = sgm__metric_compute(sgm__metric_at(self->index), &predictions, &self->options, &results);
        sgm__predictions_close(&predictions);
        sgm_content_clear(&targets);
    }
    sgm_content_clear(&outputs);
    return status;
}

/* Output and targets are not compared here: the engine compares the identifiers that a hook reads, in
 * which both have a place. */
static bool equal_metrics(const void *a, const void *b)
{
    const metric *left = a, *right = b;
    const sgm_metric_options *one = &left->options, *other = &right->options;
    return strcmp(left->data, right->data) == 0 && same_text(left->name, right->name) &&
           memcmp(one->tops, other->tops, sizeof one->tops) == 0 && one->threshold == other->threshold &&
           one->lower == other->lower && one->upper == other->upper;
}

static void free_metric(void *state)
{
    metric *self = state;
    sgm__free(self->data);
    sgm__free(self->name);
    sgm__free(self->outputs);
    sgm__free(self->targets);
    sgm__free(self->cost);
    sgm__free(self);
}

/* One hook type for each metric, as the type's name is the hook's name; all share the functions above. */
#define METRIC_TYPE(id, takes, words)                                                                        \
    {.api = SGM_HOOK_API,                                                                                    \
     .name = #id,                                                                                            \
     .doc = "a metric of a pass over data",                                                                  \
     .invoke = measure,                                                                                      \
     .equal = equal_metrics,                                                                                 \
     .free = free_metric,                                                                                    \
     .only_global = "it measures the trainer on a data set"},
static const sgm_hook_type metric_types[] = {SGM__METRICS(METRIC_TYPE)};

/* The same for a metric that a program has added: made when its first hook is. */
static const sgm_hook_type *type_of(size_t index)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static sgm_hook_type added[SGM__ADDED_METRICS];
    if (index < SGM__METRIC_ROWS)
        return &metric_types[index];
    sgm_hook_type *type = &added[index - SGM__METRIC_ROWS];
    pthread_mutex_lock(&lock);
    if (type->name == NULL) {
        *type = metric_types[0];
        type->name = sgm__metric_at(index)->name;
    }
    pthread_mutex_unlock(&lock);
    return type;
}

/* NULL: no memory. The identifiers are made once, so that invoke() builds no text. */
static metric *allocate(size_t index, const char *data, const sgm_metric_options *options)
{
    metric *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->index = index;
    self->options = *options;
    self->data = sgm__strdup(data);
    self->name = sgm__strdup(options->name);
    self->outputs = identifier_of(data, "outputs", options->output);
    self->targets = identifier_of(data, "targets", options->targets);
    self->cost = identifier_of(data, "cost", NULL);
    if (self->data != NULL && (options->name == NULL || self->name != NULL) && self->outputs != NULL &&
        self->targets != NULL && self->cost != NULL)
        return self;
    free_metric(self);
    return NULL;
}

/* Everything is checked before the first hook is made. From sgm_hook_create on, the hook owns self and the
 * required hook, also when that fails. */
sgm_hook *sgm_metric_with(const char *name, const char *data, const sgm_metric_options *given)
{
    sgm_metric_options options;
    size_t index = sgm__metric_find(name != NULL ? name : "", name != NULL ? strlen(name) : 0);
    if (index == SIZE_MAX || read_options(given, &options, name) != SGM_OK ||
        check_data(data, name) != SGM_OK || sgm__metric_check(index, &options) != SGM_OK)
        return NULL;
    metric *self = allocate(index, data, &options);
    if (self == NULL)
        return NULL;
    sgm_hook *passes = sgm_predictions_hook_with(data, &options);
    if (passes == NULL) {
        free_metric(self);
        return NULL;
    }
    const char *const reads[] = {self->outputs, self->targets, self->cost, NULL};
    return sgm_hook_create(type_of(index), self, .when = options.when, .reads = reads,
                           .requires_hooks = {passes}, .priority = SGM_METRIC_PRIORITY,
                           .failure = options.failure);
}

/* For hooks of programs. "loss" and "accuracy" are refused: the trainer reports these of each validation,
 * and a score of the same name would replace them in the line of metrics.jsonl. */
sgm_status sgm_hook_add_score(sgm_hook_call *call, const char *data, const char *name, double value,
                              bool headline)
{
    sgm_trainer *trainer;
    SGM_TRY(find_trainer(call, &trainer));
    SGM_TRY(check_data(data, "sgm_hook_add_score"));
    if (name == NULL || strcmp(name, "loss") == 0 || strcmp(name, "accuracy") == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a score needs a name of its own, not '%s'",
                        name != NULL ? name : "");
    const sgm_content content = sgm_number_content(value);
    return sgm__trainer_leave(trainer, sgm__hook_of_call(call), data, name, &content,
                              headline ? SGM__HEADLINE : SGM__RECORDED);
}
