/* What runs beside a training: hooks, your own and ready-made, reporters, metrics, checkpoints, diagnostics.
 *
 * Hooks: code that runs at chosen moments of a training, on chosen values.
 *
 *     static sgm_status print_cost(void *self, sgm_hook_call *call)
 *     {
 *         double cost;
 *         if (sgm_hook_number(call, "optimiser.loss", &cost) == SGM_OK)
 *             printf("%lld: %g\n", (long long)call->iteration, cost);
 *         return SGM_OK;
 *     }
 *     static const sgm_hook_type printer = {.api = SGM_HOOK_API, .name = "printer", .invoke = print_cost};
 *     static const char *const wanted[] = {"optimiser.loss", NULL};
 *     sgm_trainer_add_hook(trainer, sgm_hook_create(&printer, NULL, .when = sgm_every(100, SGM_ITERATION),
 *                                                   .reads = wanted));
 *
 * Hooks due at one event run by priority, but after those that they require. A background hook runs on a
 * thread of its own with copies of just what it reads, and must not wait for its trainer: reading that one's
 * registry, or saving it, is SGM_ERROR_STATE there. Background hooks that depend on each other share one
 * thread and run in order.
 */
#ifndef SIGMA_HOOKS_H
#define SIGMA_HOOKS_H

#include <sigma/data.h>
#include <sigma/registry.h>
#include <sigma/rules.h>
#include <sigma/training.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of sgm_hook_type. */
#define SGM_HOOK_API 1

/* What a hook sees of the training while it runs; valid until it returns. */
typedef struct sgm_hook_call {
    sgm_registry *registry;   /* of the trainer; for a background hook a copy of what it reads */
    const char *trainer;      /* its name */
    sgm_time_scale scale;     /* of the event */
    int64_t epoch, iteration; /* epochs that have ended, iterations so far */
    bool background;          /* on a thread of its own, with copies */
    void *control;            /* for sgm_hook_request_stop and the like */
} sgm_hook_call;

/* A static table: it outlives its hooks. invoke(), copy() and the state functions of one hook are called by
 * one thread at a time. */
typedef struct sgm_hook_type {
    uint32_t api;           /* SGM_HOOK_API */
    const char *name, *doc; /* as messages have it; what it does, in a line */
    /* Does its work. A failure is treated as the option `failure` says. */
    sgm_status (*invoke)(void *self, sgm_hook_call *call);
    /* Whether two hooks of this type do the same: of equal hooks only one is attached. NULL: the same self.
     * Must not call the trainer. */
    bool (*equal)(const void *self, const void *other);
    /* What must survive a resume, as numbers. `numbers` NULL: only *count; else there is room for *count.
     * NULL functions: nothing. */
    sgm_status (*get_state)(void *self, double *numbers, size_t *count);
    sgm_status (*set_state)(void *self, const double *numbers, size_t count); /* takes what get_state gave */
    void (*free)(void *self); /* frees `self`, once; NULL: nothing to free */
    /* A self of its own for each worker that a local hook runs for; returns NULL on failure. NULL function:
     * all workers share one self, and their calls take turns. */
    void *(*copy)(const void *self);
    /* Why a hook of this type cannot be local, as the end of "hook 'save' cannot be local: "; NULL: it can.
     */
    const char *only_global;
    /* Whether what it is told to do can be done, as far as that is known before the first iteration; an error
     * ends the run before it begins. It changes and asks for nothing. NULL: nothing can be known. */
    sgm_status (*check)(void *self, sgm_hook_call *call);
} sgm_hook_type;

/* What becomes of a hook whose invoke() fails. */
typedef enum sgm_hook_failure {
    SGM_HOOK_DETACH, /* log what failed, and take the hook off (default) */
    SGM_HOOK_STOP,   /* stop the run with the hook's error */
    SGM_HOOK_GO_ON   /* log it, call again next time */
} sgm_hook_failure;

/* The most hooks that one can require in its options. */
#define SGM_MAX_REQUIRED_HOOKS 8
typedef struct sgm_hook_options {
    size_t struct_size;
    sgm_time_step when; /* default: every iteration */
    /* When it is due, it runs only if they hold; taken over. NULL: always, so see first whether they could be
     * made. */
    sgm_criteria *only_if;
    /* Identifiers, NULL at the end; copied; those of only_if come by themselves. In the second epoch that a
     * foreground hook is due in, the log warns of those that nothing matches. */
    const char *const *reads;
    /* They run before it and are attached with it; taken over. */
    sgm_hook *requires_hooks[SGM_MAX_REQUIRED_HOOKS];
    int32_t priority; /* smaller first; default 0 */
    bool background;  /* on a thread of its own */
    /* Seconds: a foreground hook that takes longer is moved to the background, with those that require it; so
     * it has to name all that it reads. 0: none. */
    double time_limit;
    sgm_hook_failure failure; /* what becomes of it when it fails */
    /* Runs once for each worker of an operator (operator.h), with what that worker has: its registry, its
     * `shared`, counts and criteria of its own. Without an operator there is one worker, the trainer. */
    bool local;
} SGM_BY_NAME sgm_hook_options;
/* Takes over `self` (freed by the type's function, once, also on failure), criteria and required hooks. */
#define sgm_hook_create(...) SGM_WITH_OPTIONS_2(sgm_hook_create_with, sgm_hook_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_hook_create_with(const sgm_hook_type *type, void *self,
                                       const sgm_hook_options *options);
/* One more hook that runs before `hook` and is attached with it; `required` is taken over, also on failure.
 * Refused: circles, and a hook that was attached before. */
SGM_API sgm_status sgm_hook_require(sgm_hook *hook, sgm_hook *required);
/* Makes a hook local, with those that it requires; before it is attached, and if its type can be. Returns the
 * hook; on failure NULL, and the hook is let go. */
SGM_API sgm_hook *sgm_hook_make_local(sgm_hook *hook);
SGM_API sgm_hook *sgm_hook_retain(sgm_hook *hook);
/* Gives back one reference; the last one frees the hook. NULL: nothing happens. */
SGM_API void sgm_hook_free(sgm_hook *hook);
/* The name of its type. */
SGM_API const char *sgm_hook_name(const sgm_hook *hook);
/* What it was created with; the hook's. */
SGM_API void *sgm_hook_self(sgm_hook *hook);
/* Its only_if, for sgm_criteria_toggle and sgm_criteria_hold; NULL: none. It belongs to the hook. */
SGM_API sgm_criteria *sgm_hook_criteria(sgm_hook *hook);

/* A number by identifier ("optimiser.loss"), for invoke(); one that is not there is SGM_ERROR_NOT_FOUND. */
SGM_API sgm_status sgm_hook_number(sgm_hook_call *call, const char *identifier, double *value);
/* A content by identifier, which the caller clears; one that is not there is SGM_ERROR_NOT_FOUND. */
SGM_API sgm_status sgm_hook_get(sgm_hook_call *call, const char *identifier, sgm_content *content);
/* The trainer, to evaluate, predict, or read its states in between two iterations; NULL in the background. */
SGM_API sgm_trainer *sgm_hook_trainer(const sgm_hook_call *call);
/* Where hooks leave results for one another and for whoever watches: "shared.NAME". */
SGM_API sgm_status sgm_hook_share(sgm_hook_call *call, const char *name, sgm_content content);
/* Stops the run. What a hook asks for by this and the next functions is done by the training's thread after
 * the current iteration; texts are copied. */
SGM_API sgm_status sgm_hook_request_stop(sgm_hook_call *call, const char *reason);
/* Pauses the run, as sgm_trainer_pause does. */
SGM_API sgm_status sgm_hook_request_pause(sgm_hook_call *call);
/* Goes back to before the first iteration, as sgm_trainer_reset does. */
SGM_API sgm_status sgm_hook_request_reset(sgm_hook_call *call);
/* Saves a checkpoint of this name in the run's folder. */
SGM_API sgm_status sgm_hook_request_save(sgm_hook_call *call, const char *name);
/* Sets what matches the identifier, as sgm_registry_resolve_set does. */
SGM_API sgm_status sgm_hook_request_set(sgm_hook_call *call, const char *identifier, sgm_content content);

/* ======== ready-made hooks ========
 *
 * Ready-made hooks, for sgm_trainer_add_hook(). A constructor returns NULL when it fails (sgm_last_error()).
 * With an operator, sgm_hook_make_local() lets one run for each worker, with sums, times and series of its
 * own; those that save, measure on a data set, modify or search the trainer refuse that.
 *
 *     sgm_trainer_add_hook(t, sgm_value_reporter("training.loss optimiser.*", sgm_every(1, SGM_EPOCH)));
 *     sgm_trainer_add_hook(t, sgm_early_stopper("validation.loss", 5, SGM_MINIMUM, sgm_every(1, SGM_EPOCH)));
 *     sgm_trainer_add_hook(t, sgm_save_hook(sgm_every(1, SGM_EPOCH), "best",
 *                         .only_if = sgm_extremum_criteria("validation.accuracy", SGM_MAXIMUM)));
 *     sgm_trainer_add_hook(t, sgm_rule_hook("if training.loss increases 3 times "
 *                                           "then set optimiser.learning_rate *= 0.5"));
 */

/* --- reporting --- */
/* Gets a line without its end. */
typedef void (*sgm_report_function)(void *user, const char *line);
typedef struct sgm_value_reporter_options {
    size_t struct_size;
    sgm_report_function report;  /* default: the log */
    void *user;                  /* passed to `report` */
    void (*release)(void *user); /* once, also when the constructor fails */
    bool with_time;              /* lines begin with "epoch 2, iteration 350: " */
    bool background;             /* on a thread of its own */
    sgm_criteria *only_if;       /* taken over */
} SGM_BY_NAME sgm_value_reporter_options;
/* Reports "optimiser.learning_rate = 0.01, training.loss = 0.25": all that match the identifiers (separated
 * by spaces). */
#define sgm_value_reporter(...)                                                                              \
    SGM_WITH_OPTIONS_2(sgm_value_reporter_with, sgm_value_reporter_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_value_reporter_with(const char *identifiers, sgm_time_step when,
                                          const sgm_value_reporter_options *options);

/* --- computing; before reporters --- */
typedef struct sgm_accumulator_options {
    size_t struct_size;
    const char *name;    /* of the result: "shared.NAME"; default: "training_loss_mean" or "..._sum" */
    sgm_time_step when;  /* default: every iteration */
    bool mean;           /* instead of the sum */
    int64_t reset_every; /* begins anew after so many values; 0: never */
    bool each_epoch;     /* begins anew in each epoch */
} SGM_BY_NAME sgm_accumulator_options;
/* Sum or mean of a value so far. While it has no value, nothing is added. */
#define sgm_accumulator(...) SGM_WITH_OPTIONS(sgm_accumulator_with, sgm_accumulator_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_accumulator_with(const char *identifier, const sgm_accumulator_options *options);

typedef struct sgm_running_time_options {
    size_t struct_size;
    int32_t span; /* the average is of so many times, without the most unusual ones; default 4, at most 64 */
} SGM_BY_NAME sgm_running_time_options;
/* Seconds between events of a scale: shared.time_SCALE_last, _average, _min and _max. They are taken from
 * `running_time` of the registry, which stands still in a pause, else from the clock. */
#define sgm_running_time(...) SGM_WITH_OPTIONS(sgm_running_time_with, sgm_running_time_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_running_time_with(sgm_time_scale scale, const sgm_running_time_options *options);

/* --- acting; after all others --- */
typedef struct sgm_stop_options {
    size_t struct_size;
    const char *reason;    /* default: the time step */
    sgm_criteria *only_if; /* taken over */
} SGM_BY_NAME sgm_stop_options;
/* Stops the run at its step. */
#define sgm_stop_hook(...) SGM_WITH_OPTIONS(sgm_stop_hook_with, sgm_stop_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_stop_hook_with(sgm_time_step when, const sgm_stop_options *options);
typedef struct sgm_early_stopper_options {
    size_t struct_size;
    bool keep_last; /* the weights stay those of the last check */
} SGM_BY_NAME sgm_early_stopper_options;
/* Stops when the value had no new extremum for `patience` checks in a row, and restores the weights
 * (parameters and their averages) of the best check. They are kept as a checkpoint best_weights-... in the
 * run's folder, or, without one, in a temporary folder. Position and optimiser stay those of the last check,
 * and so do results that were measured. With a time step within epochs, for a worker, and where several
 * processes train together, nothing is restored. */
#define sgm_early_stopper(...)                                                                               \
    SGM_WITH_OPTIONS_4(sgm_early_stopper_with, sgm_early_stopper_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_early_stopper_with(const char *identifier, int64_t patience, sgm_extremum extremum,
                                         sgm_time_step when, const sgm_early_stopper_options *options);

typedef struct sgm_save_options {
    size_t struct_size;
    sgm_criteria *only_if; /* taken over */
} SGM_BY_NAME sgm_save_options;
/* Saves under a name in which values may stand, as in "epoch-{epoch}" (sgm_registry_resolve_text). */
#define sgm_save_hook(...) SGM_WITH_OPTIONS_2(sgm_save_hook_with, sgm_save_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_save_hook_with(sgm_time_step when, const char *name, const sgm_save_options *options);

/* Does what a rule says (rules.h). `set` changes each value that matches, from its own value on. */
SGM_API sgm_hook *sgm_rule_hook(const char *text);

/* --- as text --- */
/* A ready-made hook, or a rule:
 *
 *     every 2 epochs value_reporter(training.loss optimiser.*rate, with_time=true) if epoch > 3
 *     early_stopper(validation.accuracy, patience=5)
 *     at epoch 3 save("epoch-{epoch}")
 *     after 10 iterations set optimiser.learning_rate *= 0.5
 *     local every 1 epoch accumulator(optimiser.loss, mean=true)
 *
 * `[local] [STEP] NAME(VALUE, ARGUMENT=VALUE, ...) [if CRITERIA]`: STEP is as in sgm_time_step_parse, without
 * it the hook's own; CRITERIA as in sgm_criteria_parse; `local`, also in front of a rule, does what
 * sgm_hook_make_local does. Several identifiers or numbers have spaces or commas between them. What begins
 * with `if`, or has an action behind the step, is a rule. Errors name column and argument, and the nearest
 * name. */
SGM_API sgm_hook *sgm_hook_parse(const char *text);
/* The names of what can be parsed, from 0; NULL past the last. */
SGM_API const char *sgm_hook_name_at(size_t index);

/* --- hooks of your own as text --- */
/* The version of sgm_hook_text_type. */
#define SGM_HOOK_TEXT_API 2
/* What a text gave: the values of the arguments, or their defaults. Valid during create(). */
typedef struct sgm_hook_arguments sgm_hook_arguments;
/* A number, an integer or a flag (0 or 1); NaN: there is none. */
SGM_API double sgm_hook_arguments_number(const sgm_hook_arguments *arguments, const char *name);
/* A text, or a list as it was written; NULL: there is none. */
SGM_API const char *sgm_hook_arguments_text(const sgm_hook_arguments *arguments, const char *name);
/* How a hook is written: a static table. create() makes it, by sgm_hook_create, from arguments that are
 * checked; on failure it returns NULL after sgm_fail. Its sgm_hook_type has the same name. */
typedef struct sgm_hook_text_type {
    uint32_t api;                /* SGM_HOOK_TEXT_API */
    const char *name, *doc;      /* as it is written; what it does, in a line */
    sgm_time_step when;          /* if the text has none; default: every epoch */
    const sgm_option *arguments; /* in the order in which they may come without names; at most 12 */
    size_t argument_count;       /* rows of `arguments` */
    sgm_hook *(*create)(const sgm_hook_arguments *arguments, sgm_time_step when); /* makes the hook */
    const char *example; /* a text, for who asks (`sigma info NAME`); NULL: none */
} sgm_hook_text_type;
/* Makes a hook known by its text. `type` must stay; any thread. */
SGM_API sgm_status sgm_register_hook(const sgm_hook_text_type *type);
/* How it is written, what it does, its arguments: lines; free with sgm_string_free. */
SGM_API char *sgm_hook_help(const char *name);

/* ======== metrics ========
 *
 * Metrics: how good the predictions of a network are, beyond loss and accuracy.
 *
 *     sgm_trainer_add_hook(t, sgm_metric("f1", "validation"));
 *     sgm_trainer_add_hook(t, sgm_metric("top_k", "validation", .tops = {1, 3}));
 *     sgm_trainer_add_hook(t, sgm_confusion_reporter("validation", sgm_every(10, SGM_EPOCH)));
 *     sgm_trainer_add_hook(t, sgm_rule_hook("if validation.f1 reaches maximum then save \"best\""));
 *
 * `validation` is the name of data of the trainer (sgm_trainer_add_data), or "training". All metrics of one
 * event share one pass over it: that which measures loss and accuracy at the end of an epoch, where there is
 * one. The pass leaves NAME.outputs and NAME.targets (tensors, examples first) and NAME.cost in the registry,
 * for hooks of your own too, so it takes memory of examples * (outputs + targets) until the next one; memory
 * of the same size again while that one runs. Results come as NAME.RESULT ("validation.f1") before hooks of
 * priorities above SGM_METRIC_PRIORITY run, so rules of the same event see them; numbers go to the line of
 * the epoch in metrics.jsonl, and the most important one of each metric to that on the terminal. Metrics need
 * their trainer, so they run in the foreground.
 *
 * Classes are the last dimension of the outputs; all other dimensions are predictions, one each. The
 * prediction, and the target, is the place of the largest value, the first of equal ones. With one output the
 * classes are 0 and 1, 1 above a threshold.
 */

/* The priority of hooks that measure: before all others, unless those have a smaller one. */
#define SGM_METRIC_PRIORITY (-2000)
/* The most numbers in `tops`. */
#define SGM_MAX_TOPS 8

typedef struct sgm_metric_options {
    size_t struct_size;
    sgm_time_step when;         /* default: every epoch */
    int32_t tops[SGM_MAX_TOPS]; /* top_k: the k, ends at the first 0; default: 1 */
    double threshold;           /* one output: above it the prediction is 1; 0: the default, 0.5 */
    /* binary_accuracy: below `lower` the prediction is 0, above `upper` it is 1, in between it is wrong. Both
     * 0: there is only the threshold. */
    double lower, upper;
    const char *output;       /* default: the network's first */
    const char *targets;      /* field of the data; default: that of the first cost */
    const char *name;         /* goes before results, "NAME_f1": for a second output */
    sgm_hook_failure failure; /* as in sgm_hook_options */
} SGM_BY_NAME sgm_metric_options;

/* A metric by its name, one of sgm_metric_names: "cost", "top_k", "binary_accuracy", "confusion", "f1",
 * "roc_auc", "regression", "mean_iou", "perplexity". The manual's chapter on
 * metrics has what each leaves, its formula and its source. Without examples all are NaN. */
SGM_API sgm_hook *sgm_metric_with(const char *metric, const char *data, const sgm_metric_options *options);
#define sgm_metric(metric, ...) SGM_WITH_OPTIONS_2(sgm_metric_with, sgm_metric_options, metric, __VA_ARGS__)
/* The names of all metrics, registered ones too, *count of them; they stay. */
SGM_API const char *const *sgm_metric_names(size_t *count);

/* The version of sgm_metric_type. */
#define SGM_METRIC_API 2
/* A metric of your own: one number of all predictions of a pass, left as DATA.NAME. A static table. */
typedef struct sgm_metric_type {
    uint32_t api;           /* SGM_METRIC_API */
    const char *name, *doc; /* of the metric; what it measures, in a line */
    sgm_extremum better;    /* whether the largest or the smallest value is the best */
    /* `outputs` are (examples, ...), float32 or float64; `targets` have the same shape, or, as numbers of
     * classes, one element where the outputs have a row. There is at least one example. Both are borrowed. */
    sgm_status (*compute)(const sgm_tensor *outputs, const sgm_tensor *targets, double *value);
    const char *formula; /* for who asks (`sigma info NAME`); NULL: not said */
} sgm_metric_type;
/* From then on the name can be used as those above, and as a hook's text, "NAME(validation)". `type` must
 * stay; any thread. */
SGM_API sgm_status sgm_register_metric(const sgm_metric_type *type);

/* Only the pass: for hooks of your own, which require it, and read NAME.outputs and NAME.targets. Of the
 * options it takes `when`, `output`, `targets` and `failure`; a second output is NAME.outputs_OUTPUT, other
 * targets are NAME.targets_TARGETS. */
#define sgm_predictions_hook(...) SGM_WITH_OPTIONS(sgm_predictions_hook_with, sgm_metric_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_predictions_hook_with(const char *data, const sgm_metric_options *options);
/* For the invoke() of a foreground hook: leaves a number of its own as DATA.NAME, in the epoch's line of
 * metrics.jsonl, and on the terminal if it is a `headline`. */
SGM_API sgm_status sgm_hook_add_score(sgm_hook_call *call, const char *data, const char *name, double value,
                                      bool headline);

/* --- without hooks --- */
/* Computes metrics, "confusion f1 top_k(1, 3) binary_accuracy(0.3, 0.7)", from tensors of equal shape, into
 * `results`. */
SGM_API sgm_status sgm_metrics_compute(const char *metrics, sgm_tensor *outputs, sgm_tensor *targets,
                                       sgm_registry *results);
/* One pass over an iterator, which then stands where it stood before. NULL: what suits the network,
 * "confusion f1 roc_auc" for classes, else "regression". Also leaves loss, accuracy and examples. */
SGM_API sgm_status sgm_trainer_evaluate_metrics(sgm_trainer *trainer, sgm_iterator *iterator,
                                                const char *metrics, sgm_registry *results);
/* A confusion matrix, or any matrix of counts, as lines of text; beyond 30 classes only the most frequent
 * mistakes. `classes`: names, NULL: numbers. Free with sgm_string_free. */
SGM_API char *sgm_confusion_text(const sgm_tensor *confusion, const char *const *classes);

/* --- reporting: hooks of priority -100, which attach the metrics that they report --- */
typedef struct sgm_score_report_options {
    size_t struct_size;
    int32_t tops[SGM_MAX_TOPS];     /* accuracy; default: 1 */
    double threshold, lower, upper; /* binary accuracy, as in sgm_metric_options */
    const char *const *classes;     /* confusion: names, NULL at the end; copied */
    sgm_report_function report;     /* default: the log */
    void *user;                     /* passed to `report` */
    void (*release)(void *user);    /* once, also when the constructor fails */
} SGM_BY_NAME sgm_score_report_options;
/* Reports shares of examples whose class is among the k likeliest: "top1 = 0.947, top3 = 0.99". */
#define sgm_accuracy_reporter(...)                                                                           \
    SGM_WITH_OPTIONS_2(sgm_accuracy_reporter_with, sgm_score_report_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_accuracy_reporter_with(const char *data, sgm_time_step when,
                                             const sgm_score_report_options *options);
/* Reports the accuracy of a network with one output: "accuracy = 0.947". */
#define sgm_binary_accuracy_reporter(...)                                                                    \
    SGM_WITH_OPTIONS_2(sgm_binary_accuracy_reporter_with, sgm_score_report_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_binary_accuracy_reporter_with(const char *data, sgm_time_step when,
                                                    const sgm_score_report_options *options);
/* The confusion matrix as sgm_confusion_text gives it, a call of `report` for each line. */
#define sgm_confusion_reporter(...)                                                                          \
    SGM_WITH_OPTIONS_2(sgm_confusion_reporter_with, sgm_score_report_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_confusion_reporter_with(const char *data, sgm_time_step when,
                                              const sgm_score_report_options *options);

/* --- a function of values of the registry --- */
/* `content` is borrowed. NaN: this one does not count. */
typedef double (*sgm_metric_function)(void *user, const sgm_content *content);
typedef struct sgm_metric_processor_options {
    size_t struct_size;
    sgm_time_step when;          /* default: every iteration */
    void *user;                  /* passed to the function */
    void (*release)(void *user); /* once, also when the constructor fails */
    bool background;             /* on a thread of its own */
} SGM_BY_NAME sgm_metric_processor_options;
/* The mean of the function over all that matches identifiers (separated by spaces), with what is below a
 * registry that matches, as "shared.NAME"; without any nothing is left. Runs at priority -1000. */
#define sgm_metric_processor(...)                                                                            \
    SGM_WITH_OPTIONS_3(sgm_metric_processor_with, sgm_metric_processor_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_metric_processor_with(const char *identifiers, sgm_metric_function function,
                                            const char *name, const sgm_metric_processor_options *options);
/* The mean of a tensor's elements, or the number itself: for sgm_metric_processor. */
SGM_API double sgm_metric_mean(void *user, const sgm_content *content);
/* The standard deviation of a tensor's elements as a population; 0 of a number. */
SGM_API double sgm_metric_standard_deviation(void *user, const sgm_content *content);

/* ======== checkpoints and diagnostics ========
 *
 * Ready-made hooks that keep checkpoints, and that show what happens inside a training.
 *
 *     sgm_trainer_add_hook(t, sgm_last_checkpoints(3, sgm_every(100, SGM_ITERATION)));
 *     sgm_time_step each_epoch = sgm_every(1, SGM_EPOCH);
 *     sgm_trainer_add_hook(t, sgm_best_checkpoints(3, "training.loss", SGM_MINIMUM, each_epoch));
 *     sgm_trainer_add_hook(t, sgm_nan_watch());
 *
 * As above, a constructor returns NULL when it fails (sgm_last_error()).
 */

/* --- checkpoints ---
 * Both keep `count` checkpoints in the run's folder beside the one that a resume goes on from, and write down
 * in NAME.json which these are: files that are not in there are neither replaced nor removed. An older file
 * goes when the new one is whole. Since the list lies beside the files, it is right after a crash, too. */
typedef struct sgm_checkpoints_options {
    size_t struct_size;
    const char *name;      /* files begin with it; default "last", or "best-" and the identifier */
    sgm_criteria *only_if; /* taken over */
} SGM_BY_NAME sgm_checkpoints_options;
/* Keeps the newest `count`: last-epoch3-iteration120.safetensors. */
#define sgm_last_checkpoints(...)                                                                            \
    SGM_WITH_OPTIONS_2(sgm_last_checkpoints_with, sgm_checkpoints_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_last_checkpoints_with(int64_t count, sgm_time_step when,
                                            const sgm_checkpoints_options *options);
/* Those with the largest or smallest values, of equal ones the earlier:
 * best-validation.loss-epoch3-iteration120-0.0423.safetensors. NaN is never among them. */
#define sgm_best_checkpoints(...)                                                                            \
    SGM_WITH_OPTIONS_4(sgm_best_checkpoints_with, sgm_checkpoints_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_best_checkpoints_with(int64_t count, const char *identifier, sgm_extremum extremum,
                                            sgm_time_step when, const sgm_checkpoints_options *options);

/* --- a loss or a parameter that is no number ---
 * Keeps the training as it was in memory every `every` iterations. When the loss or a state is NaN or
 * infinite, it goes back there, does the steps again up to the first bad one, and that one instruction by
 * instruction on the handler debug:NAME. The message names the first bad instruction, its layer and the files
 * that it leaves in the run's folder: nan-ITERATION.safetensors, a checkpoint from before this step, and
 * nan-ITERATION-batch.safetensors, its minibatch. Then the run fails with SGM_ERROR_NUMERIC, or pauses before
 * that step (the log has the message), so that values can be changed. Steps of several workers are not done
 * again: then it only tells what was bad. */
typedef struct sgm_nan_watch_options {
    size_t struct_size;
    int64_t every; /* iterations, at most 250; default 100 */
    bool pause;    /* pauses instead of failing */
} SGM_BY_NAME sgm_nan_watch_options;
/* Watches for a loss or a state that is no number: sgm_nan_watch(.pause = true). */
#define sgm_nan_watch(...) sgm_nan_watch_with(SGM_OPTIONS(sgm_nan_watch_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_nan_watch_with(const sgm_nan_watch_options *options);

/* --- weights, gradients, updates in numbers ---
 * For each tensor that matches the identifiers (separated by spaces; "network.layers.*.weights"), without its
 * values that are not finite: shared.PREFIX_mean, _standard_deviation (of the population), _minimum,
 * _maximum, _norm (L2), _zeros (share), _not_finite (number), and _histogram (float64 (bins): counts); PREFIX
 * is the identifier with '_' for dots. For optimiser.gradients.X and optimiser.updates.X also _ratio: the
 * norm over that of the parameter network.layers.X. A run with a folder gets a line for each tensor in its
 * histograms.jsonl. */
typedef struct sgm_statistics_options {
    size_t struct_size;
    /* Equal parts from minimum to maximum; the last includes maximum. Default 20, at most 1000. */
    int64_t bins;
    /* Values beyond count in the outer bins. Equal: the smallest and the largest value of the tensor, or 0.5
     * around it when all are equal. */
    double minimum, maximum;
    bool no_file;          /* no histograms.jsonl */
    sgm_criteria *only_if; /* taken over */
} SGM_BY_NAME sgm_statistics_options;
/* Leaves mean, deviation, norm, histogram and so on of each tensor that matches, as said above. */
#define sgm_statistics(...) SGM_WITH_OPTIONS_2(sgm_statistics_with, sgm_statistics_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_statistics_with(const char *identifiers, sgm_time_step when,
                                      const sgm_statistics_options *options);

/* --- how fast it goes ---
 * Over the newest `span` iterations: shared.time_throughput_examples and _iterations (a second of running
 * time), _waiting (share of it that went by until the data gave a minibatch) and _waited (how many iterations
 * waited for longer than a tenth of their time). Time spent in hooks and measuring counts as running. */
typedef struct sgm_throughput_options {
    size_t struct_size;
    int64_t span;  /* default 100, at most 10000 */
    int64_t every; /* iterations between two results; default 10 */
} SGM_BY_NAME sgm_throughput_options;
/* Leaves how fast it goes: sgm_throughput(.span = 1000). */
#define sgm_throughput(...) sgm_throughput_with(SGM_OPTIONS(sgm_throughput_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_throughput_with(const sgm_throughput_options *options);

/* --- values over time ---
 * For each number that matches the identifiers (separated by spaces) the newest `capacity` values, as
 * shared.PREFIX_series: float64 (n, 2), iteration and value, the oldest first; PREFIX as in statistics. What
 * was noted is part of checkpoints. */
typedef struct sgm_time_series_options {
    size_t struct_size;
    int64_t capacity; /* default 1000, at most 1000000 */
    const char *file; /* FILE.csv in the run's folder gets all values, too; NULL: none */
} SGM_BY_NAME sgm_time_series_options;
/* Leaves the newest values of each number that matches, as said above. */
#define sgm_time_series(...) SGM_WITH_OPTIONS_2(sgm_time_series_with, sgm_time_series_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_time_series_with(const char *identifiers, sgm_time_step when,
                                       const sgm_time_series_options *options);

/* --- more reporters; options as those of sgm_value_reporter, without background --- */
/* Reports where it stands, before all others: "epoch 2, iteration 350". */
#define sgm_progress_reporter(...)                                                                           \
    SGM_WITH_OPTIONS(sgm_progress_reporter_with, sgm_value_reporter_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_progress_reporter_with(sgm_time_step when, const sgm_value_reporter_options *options);
/* "12.4 iterations/s, on average 80.6 ms, last 81.2 ms": of the iterations or epochs of its step, by
 * sgm_running_time, which it requires. */
#define sgm_running_time_reporter(...)                                                                       \
    SGM_WITH_OPTIONS(sgm_running_time_reporter_with, sgm_value_reporter_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_running_time_reporter_with(sgm_time_step when,
                                                 const sgm_value_reporter_options *options);
/* Reports the mean of a number over the iterations since the last report: "optimiser.loss = 0.25 (mean of
 * 100)". */
#define sgm_mean_reporter(...)                                                                               \
    SGM_WITH_OPTIONS_2(sgm_mean_reporter_with, sgm_value_reporter_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_mean_reporter_with(const char *identifier, sgm_time_step when,
                                         const sgm_value_reporter_options *options);

/* --- changing values ---
 * At its step, makes of each number or float tensor that matches the identifier what the modifier makes of it
 * (taken over, also on failure). It counts from the next iteration on.
 *
 *     sgm_modifier *bounds = sgm_modifier_parse("clip(-1, 1)");
 *     sgm_modifier_hook("network.layers.*.weights", bounds, sgm_every(10, SGM_ITERATION)); */
SGM_API sgm_hook *sgm_modifier_hook(const char *identifier, sgm_modifier *modifier, sgm_time_step when);

/* --- what the network sees ---
 * Looks for an input for which the network gives a wanted output, with a copy of the network: gradient
 * descent (Adam) on the input from Gaussian noise, until the cost is below desired_cost. Results:
 * shared.NAME_input (the input, without a first dimension), shared.NAME_cost, shared.NAME_found (a boolean).
 * The network has one input and one target. */
typedef struct sgm_target_options {
    size_t struct_size;
    const char *name;    /* default "target_" and the class */
    sgm_tensor *targets; /* retained: wanted instead of one class; as many elements as an example's targets */
    double desired_cost; /* default 0.06 */
    double rate;         /* of the descent; default 0.05 */
    double standard_deviation; /* of the start; default 0.01 */
    int64_t steps;             /* of an attempt; default 1024 */
    int64_t attempts;          /* default 2; the best one counts if none succeeds */
} SGM_BY_NAME sgm_target_options;
/* Looks for an input for which the network says this class, as said above. */
#define sgm_target_maximiser(...)                                                                            \
    SGM_WITH_OPTIONS_2(sgm_target_maximiser_with, sgm_target_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_target_maximiser_with(int64_t wanted_class, sgm_time_step when,
                                            const sgm_target_options *options);
/* A tensor of rank 1 to 3 (with up to 4 channels, of which the mean counts) as lines of text, each value two
 * characters from ' ' (the smallest) to '@' (the largest); free with sgm_string_free. */
SGM_API char *sgm_tensor_art(const sgm_tensor *tensor);
/* Reports tensors as such text: shared.target_3_input. */
#define sgm_art_reporter(...)                                                                                \
    SGM_WITH_OPTIONS_2(sgm_art_reporter_with, sgm_value_reporter_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_art_reporter_with(const char *identifier, sgm_time_step when,
                                        const sgm_value_reporter_options *options);
/* Gets what the network gave at an iteration; `output` stays the trainer's. */
typedef void (*sgm_pass_function)(void *user, int64_t iteration, sgm_tensor *output);
/* In the background, with copies of the parameters: runs `network`, a notation whose layers are called as
 * the trainer's, on the fields of `block` (copied), and hands its first output to `receive`. */
SGM_API sgm_hook *sgm_network_pass_hook(const char *network, const sgm_block *block,
                                        sgm_pass_function receive, void *user, sgm_time_step when);

/* --- averaged parameters (optimiser option .average) ---
 * Exchanges the parameters and their moving averages, to the bit; the second call puts them back. While the
 * averages are in, they are what is predicted with, measured, got and saved as the parameters (checkpoints
 * say so), and training is refused. For good: swap, then sgm_trainer_copy_parts of the parameters to another
 * trainer. Not while several workers train. */
SGM_API sgm_status sgm_trainer_swap_averages(sgm_trainer *trainer);
/* Whether the averages are in. */
SGM_API bool sgm_trainer_has_swapped_averages(const sgm_trainer *trainer);
/* Saves NAME.safetensors in the run's folder at its step, with the averages in; training goes on without. */
SGM_API sgm_hook *sgm_averages_saver(const char *name, sgm_time_step when);

/* --- which learning rate? (Smith, 2015) ---
 * Trains from where the trainer stands with rates that rise geometrically, and then puts everything back as
 * it was: parameters, the optimiser state, random numbers, the place in the data. (A trainer that was not
 * prepared is prepared then.) Ends early when the smoothed loss is beyond `divergence` times the lowest one,
 * or a loss is no number. */
typedef struct sgm_rate_finder_options {
    size_t struct_size;
    double minimum, maximum; /* default 1e-7 and 10 */
    int64_t iterations;      /* default 100, at least 10, at most 100000 */
    double smoothing;  /* of the mean that fades: weight of the past; default 0.9, below 1; negative: none */
    double divergence; /* default 4 */
} SGM_BY_NAME sgm_rate_finder_options;
/* An iteration of the search for a learning rate. */
typedef struct sgm_rate_point {
    double rate, loss, smoothed; /* the learning rate, the loss of the minibatch, and its mean that fades */
} sgm_rate_point;
/* What the search has found. */
typedef struct sgm_rate_curve {
    sgm_rate_point *points; /* in the order of the iterations */
    size_t count;           /* how many */
    bool diverged;          /* it ended early */
    /* Where the smoothed loss falls fastest over the logarithm of the rate (the slope of a line through the
     * point and up to three on both sides), before its lowest point; NaN: it fell nowhere, or not clearly, by
     * less than a hundredth or than 1.5 times the noise. */
    double proposed;
    double lowest; /* rate at the lowest smoothed loss */
    double fall;   /* from the mean loss of the first tenth to the lowest smoothed one behind it */
    double noise;  /* standard deviation of losses of nearly the same rate, until about there */
} sgm_rate_curve;
/* NULL: it failed. The trainer has network, data, optimiser and no several workers, and does not run. */
#define sgm_trainer_find_learning_rate(...)                                                                  \
    SGM_WITH_OPTIONS(sgm_trainer_find_learning_rate_with, sgm_rate_finder_options, __VA_ARGS__)
SGM_API sgm_rate_curve *sgm_trainer_find_learning_rate_with(sgm_trainer *trainer,
                                                            const sgm_rate_finder_options *options);
SGM_API void sgm_rate_curve_free(sgm_rate_curve *curve);
/* A line of JSON for each point: iteration, rate, loss, smoothed. */
SGM_API sgm_status sgm_rate_curve_save(const sgm_rate_curve *curve, const char *path);
/* A plot in text, the logarithm of the rate to the right, `columns` by `rows` characters for the points (20
 * to 200, 5 to 100); free with sgm_string_free. */
SGM_API char *sgm_rate_curve_text(const sgm_rate_curve *curve, int32_t columns, int32_t rows);

#ifdef __cplusplus
}
#endif
#endif
