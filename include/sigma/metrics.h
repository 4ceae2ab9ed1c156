/* Metrics: how good the predictions of a network are, beyond loss and accuracy.
 *
 *     sgm_trainer_hook(t, sgm_f1_metric("validation"));
 *     sgm_trainer_hook(t, sgm_top_k_metric("validation", .tops = {1, 3}));
 *     sgm_trainer_hook(t, sgm_confusion_reporter("validation", sgm_every(10, SGM_EPOCH)));
 *     sgm_trainer_hook(t, sgm_rule_hook("every epoch if validation.f1 reaches maximum then save \"best\""));
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
#ifndef SIGMA_METRICS_H
#define SIGMA_METRICS_H

#include <sigma/data.h>
#include <sigma/hooks.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SGM_METRIC_PRIORITY (-2000)
#define SGM_MAX_TOPS 8

typedef struct sgm_metric_options {
    size_t struct_size;
    sgm_time_step when;         /* default: every epoch */
    int32_t tops[SGM_MAX_TOPS]; /* top_k: the k, ends at the first 0; default: 1 */
    double threshold;           /* one output: above it the prediction is 1; 0: the default, 0.5 */
    /* binary_accuracy: below `lower` the prediction is 0, above `upper` it is 1, in between it is wrong. Both
     * 0: there is only the threshold. */
    double lower, upper;
    const char *output;  /* default: the network's first */
    const char *targets; /* field of the data; default: that of the first cost */
    const char *name;    /* goes before results, "NAME_f1": for a second output */
    sgm_hook_failure failure;
} sgm_metric_options;

/* A metric by its name:
 *
 * top_k (top_1, top_3 ...): share of predictions whose target is among the k largest outputs; of equal
 * outputs the first are larger. At least 2 classes, k no more than there are.
 *
 * binary_accuracy (binary_accuracy, with bounds binary_accuracy_bounds): share of correct predictions of
 * networks with one output, see options.
 *
 * confusion (confusion, worst_mistakes): how often which class (row) was predicted as which (column), int64
 * (classes, classes). worst_mistakes, float64 (up to 10, 4): of the wrong predictions those with the largest
 * output, each with its place in the pass (with an iterator that does not shuffle, the example's number), the
 * target's class, the prediction, and the prediction's output (one output: that of class 0 is 1 minus it).
 *
 * f1 (precision, recall, f1; each also with _macro, _weighted and, a tensor, _per_class; f1_micro): precision
 * TP / (TP + FP), recall TP / (TP + FN), F1 2 TP / (2 TP + FP + FN) of a class (van Rijsbergen, Information
 * Retrieval, 1979); 0 where that is 0 / 0. A class without examples and without predictions is NaN. Macro is
 * the mean over classes that are not NaN, weighted the mean over examples, micro that of all counts together,
 * where all three are the accuracy. Without a suffix: with one output of class 1, else macro.
 *
 * roc_auc (roc_auc, roc_auc_per_class): the probability that an example of the class has a larger output than
 * one of another class, equal outputs counting half: area under the curve of true over false positives, by
 * ranks (Hanley and McNeil, 1982; Fawcett, 2006). An example is of a class if its target is above 0.5, so
 * several classes for one example are fine. NaN where one side has no examples; the mean over classes (one
 * against the rest) leaves these out.
 *
 * regression (mean_absolute_error, root_mean_squared_error, maximum_error: over all values; r_squared): R
 * squared is 1 - sum (target - output)^2 / sum (target - mean target)^2 for each column (the last dimension),
 * and the mean over columns; those with constant targets are left out, if all are, NaN.
 *
 * perplexity: exp of the mean of -sum(target * log(output)) over predictions; outputs must be probabilities,
 * and predictions whose targets are all 0 (padding) do not count. Infinite where a probability is 0. With one
 * output
 * -(target log(output) + (1 - target) log(1 - output)).
 *
 * cost: the mean loss (NAME.loss is the same, at the end of epochs only).
 *
 * Without examples all are NaN. */
SGM_API sgm_hook *sgm_metric_create(const char *metric, const char *data, const sgm_metric_options *options);
#define SGM_METRIC(metric, ...) SGM_METRIC_SIZED(metric, __VA_ARGS__, )
#define SGM_METRIC_SIZED(metric, data, ...)                                                                  \
    sgm_metric_create(metric, data, SGM_OPTIONS(sgm_metric_options, __VA_ARGS__))
#define sgm_top_k_metric(...) SGM_METRIC("top_k", __VA_ARGS__)
#define sgm_binary_accuracy_metric(...) SGM_METRIC("binary_accuracy", __VA_ARGS__)
#define sgm_confusion_metric(...) SGM_METRIC("confusion", __VA_ARGS__)
#define sgm_f1_metric(...) SGM_METRIC("f1", __VA_ARGS__)
#define sgm_roc_auc_metric(...) SGM_METRIC("roc_auc", __VA_ARGS__)
#define sgm_regression_metric(...) SGM_METRIC("regression", __VA_ARGS__)
#define sgm_perplexity_metric(...) SGM_METRIC("perplexity", __VA_ARGS__)
#define sgm_cost_metric(...) SGM_METRIC("cost", __VA_ARGS__)
SGM_API const char *const *sgm_metric_names(size_t *count);

/* Only the pass: for hooks of your own, which require it, and read NAME.outputs and NAME.targets. Of the
 * options it takes `when`, `output`, `targets` and `failure`; a second output is NAME.outputs_OUTPUT, other
 * targets are NAME.targets_TARGETS. */
#define sgm_predictions_hook(...) SGM_WITH_OPTIONS(sgm_predictions_create, sgm_metric_options, __VA_ARGS__)
SGM_API sgm_hook *sgm_predictions_create(const char *data, const sgm_metric_options *options);
/* For the invoke() of a foreground hook: leaves a number of its own as DATA.NAME, in the epoch's line of
 * metrics.jsonl, and on the terminal if it is a `headline`. */
SGM_API sgm_status sgm_hook_score(sgm_hook_call *call, const char *data, const char *name, double value,
                                  bool headline);

/* --- without hooks --- */
/* Computes metrics, "confusion f1 top_k(1, 3) binary_accuracy(0.3, 0.7)", from tensors of equal shape, into
 * `results`. */
SGM_API sgm_status sgm_metrics_compute(const char *metrics, sgm_tensor *outputs, sgm_tensor *targets,
                                       sgm_registry *results);
/* One pass over an iterator, which then stands where it stood before. NULL: what suits the network,
 * "confusion f1 roc_auc" for classes, else "regression". Also leaves loss, accuracy and examples. */
SGM_API sgm_status sgm_trainer_score(sgm_trainer *trainer, sgm_iterator *iterator, const char *metrics,
                                     sgm_registry *results);
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
    void *user;
    void (*release)(void *user); /* once, also when the constructor fails */
} sgm_score_report_options;
#define SGM_SCORE_REPORT(create, ...) SGM_SCORE_REPORT_SIZED(create, __VA_ARGS__, )
#define SGM_SCORE_REPORT_SIZED(create, data, when, ...)                                                      \
    create(data, when, SGM_OPTIONS(sgm_score_report_options, __VA_ARGS__))
/* "top1 = 0.947, top3 = 0.99" */
#define sgm_accuracy_reporter(...) SGM_SCORE_REPORT(sgm_accuracy_reporter_create, __VA_ARGS__)
SGM_API sgm_hook *sgm_accuracy_reporter_create(const char *data, sgm_time_step when,
                                               const sgm_score_report_options *options);
/* "accuracy = 0.947", of one output */
#define sgm_binary_accuracy_reporter(...) SGM_SCORE_REPORT(sgm_binary_accuracy_reporter_create, __VA_ARGS__)
SGM_API sgm_hook *sgm_binary_accuracy_reporter_create(const char *data, sgm_time_step when,
                                                      const sgm_score_report_options *options);
/* The confusion matrix as sgm_confusion_text gives it, a call of `report` for each line. */
#define sgm_confusion_reporter(...) SGM_SCORE_REPORT(sgm_confusion_reporter_create, __VA_ARGS__)
SGM_API sgm_hook *sgm_confusion_reporter_create(const char *data, sgm_time_step when,
                                                const sgm_score_report_options *options);

/* --- a function of values of the registry --- */
/* `content` is borrowed. NaN: this one does not count. */
typedef double (*sgm_metric_function)(void *user, const sgm_content *content);
typedef struct sgm_metric_processor_options {
    size_t struct_size;
    sgm_time_step when; /* default: every iteration */
    void *user;
    void (*release)(void *user); /* once, also when the constructor fails */
    bool background;
} sgm_metric_processor_options;
/* The mean of the function over all that matches identifiers (separated by spaces), with what is below a
 * registry that matches, as "shared.NAME"; without any nothing is left. Runs at priority -1000. */
#define sgm_metric_processor(...) SGM_METRIC_PROCESSOR(__VA_ARGS__, )
#define SGM_METRIC_PROCESSOR(identifiers, function, name, ...)                                               \
    sgm_metric_processor_create(identifiers, function, name,                                                 \
                                SGM_OPTIONS(sgm_metric_processor_options, __VA_ARGS__))
SGM_API sgm_hook *sgm_metric_processor_create(const char *identifiers, sgm_metric_function function,
                                              const char *name, const sgm_metric_processor_options *options);
/* Functions for it: of a tensor's elements, or of a number as one. */
SGM_API double sgm_metric_mean(void *user, const sgm_content *content);
SGM_API double sgm_metric_standard_deviation(void *user, const sgm_content *content);

#ifdef __cplusplus
}
#endif
#endif
