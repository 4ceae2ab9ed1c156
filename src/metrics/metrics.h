/* Metrics: what each computes from outputs and targets, and what it leaves. Internal.
 *
 * A metric is a file of this folder, and a row of SGM__METRICS. Lists, messages, hooks and their texts, the
 * rows of results in registries, and which way a result is better (for searches, early stopping and best
 * checkpoints) all follow from these two. A metric `example` is the row X(example, NOTHING, "what it
 * measures, as DATA.example") and a file example.c that ends in
 *
 *     const sgm__metric_record sgm__metric_example = {
 *         .compute = compute,
 *         .results = {SGM__NUMBER("example", "what it tells", SGM_MINIMUM, SGM__HEADLINE)},
 *     };
 *
 * SGM_MINIMUM: smaller is better; SGM__HEADLINE: the terminal shows it (sgm__weight). compute() reads outputs
 * and targets with the functions below (numbers: regression.c; classes: sgm__class_of and sgm__target_of;
 * counts of them: sgm__confusion), and leaves each of the results with sgm__leave_number or
 * sgm__leave_tensor; NaN where the metric is not defined.
 */
#ifndef SGM_METRICS_METRICS_H
#define SGM_METRICS_METRICS_H

#include "text/call_text.h"
#include <sigma/hooks.h>

#include <math.h>

/* Outputs and targets as (rows, columns), row after row: the last dimension is columns (classes, or values
 * of a regression), all dimensions before it together are rows. A row is one prediction. */
typedef struct sgm__predictions {
    sgm_tensor *output_tensor, *target_tensor; /* contiguous, float32 or float64 */
    const void *outputs, *targets;
    bool wide_outputs, wide_targets; /* float64 */
    int64_t rows, columns;
    double cost; /* mean loss of the pass that made the outputs; NaN: unknown */
} sgm__predictions;

/* Element i of the rows, i = row * columns + column, as a double. */
static inline double sgm__output_at(const sgm__predictions *a, int64_t i)
{
    return a->wide_outputs ? ((const double *)a->outputs)[i] : (double)((const float *)a->outputs)[i];
}

static inline double sgm__target_at(const sgm__predictions *a, int64_t i)
{
    return a->wide_targets ? ((const double *)a->targets)[i] : (double)((const float *)a->targets)[i];
}

/* Equal shapes, rank 1 or more, or targets that are a number of a class for each row; retains or converts.
 * Close it also after a failure. */
sgm_status sgm__predictions_open(sgm__predictions *predictions, sgm_tensor *outputs, sgm_tensor *targets);
void sgm__predictions_close(sgm__predictions *predictions);
int64_t sgm__predictions_classes(const sgm__predictions *predictions); /* 2 for one column */
/* The class that a row predicts: the place of its largest output, the first of equal ones; of one column 1
 * above the threshold, else 0. */
int64_t sgm__class_of(const sgm__predictions *predictions, int64_t row, double threshold);
int64_t sgm__target_of(const sgm__predictions *predictions, int64_t row);
double sgm__share(int64_t part, int64_t all); /* NaN: of none */

/* --- results --- */
/* Where a number is shown. QUIET: in the registry only. RECORDED: in metrics.jsonl, too. HEADLINE: in both,
 * and in the terminal's line of the epoch. */
typedef enum sgm__weight { SGM__QUIET, SGM__RECORDED, SGM__HEADLINE } sgm__weight;
/* Where a compute() leaves its results: a trainer's registry (hooks_ready/metric.c) or any registry
 * (metrics_text.c). leave() borrows the content. */
typedef struct sgm__results {
    sgm_status (*leave)(void *user, const char *name, const sgm_content *content, sgm__weight weight);
    void *user;
} sgm__results;
/* Under a name of the metric's record, which has its weight. */
sgm_status sgm__leave_number(const sgm__results *results, const char *name, double value);
/* Takes the tensor; NULL: it failed. */
sgm_status sgm__leave_tensor(const sgm__results *results, const char *name, sgm_tensor *tensor);
sgm_status sgm__leave_numbers(const sgm__results *results, const char *name, const double *numbers,
                              int64_t count); /* as a tensor of float64 */

/* --- the table --- */
/* The options that a metric takes besides data, output and targets. In texts without hooks, "top_k(1, 3)",
 * tops and bounds are the numbers in parentheses. */
typedef enum sgm__metric_takes {
    SGM__TAKES_NOTHING,
    SGM__TAKES_THRESHOLD,
    SGM__TAKES_TOPS,
    SGM__TAKES_BOUNDS /* and a threshold */
} sgm__metric_takes;

/* Name, what it takes, and what it leaves, where DATA is the name of the data. */
#define SGM__METRICS(X)                                                                                      \
    X(cost, NOTHING, "mean loss, as DATA.cost")                                                              \
    X(top_k, TOPS, "share of predictions with the target among the k largest outputs, as DATA.top_K")        \
    X(binary_accuracy, BOUNDS, "share of correct predictions of one output")                                 \
    X(confusion, THRESHOLD, "how often which class was predicted as which, as DATA.confusion")               \
    X(f1, THRESHOLD, "DATA.precision, .recall and .f1")                                                      \
    X(roc_auc, NOTHING, "area under the curve of true over false positives, as DATA.roc_auc")                \
    X(regression, NOTHING,                                                                                   \
      "DATA.mean_absolute_error, .root_mean_squared_error, .maximum_error and .r_squared")                   \
    X(mean_iou, THRESHOLD,                                                                                   \
      "mean intersection over union of classes, as DATA.mean_iou; of masks: over pixels")                    \
    X(perplexity, NOTHING, "exp of the mean cross-entropy, as DATA.perplexity")

#define SGM__METRIC_RESULTS 16 /* of one metric, at most */
typedef struct sgm__result {
    sgm_option row;      /* as registries show it */
    sgm_extremum better; /* of a number: whether the largest or the smallest value is the best */
    sgm__weight weight;
} sgm__result;
#define SGM__NUMBER(text, words, way, matters)                                                               \
    {                                                                                                        \
        {.name = text, .kind = SGM_KIND_NUMBER, .read_only = true, .doc = words}, way, matters               \
    }
#define SGM__TENSOR(text, words)                                                                             \
    {                                                                                                        \
        {.name = text, .kind = SGM_KIND_TENSOR, .read_only = true, .doc = words}, SGM_MAXIMUM, SGM__QUIET    \
    }

typedef struct sgm__metric_record {
    sgm_status (*compute)(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results);
    sgm__result results[SGM__METRIC_RESULTS + 1]; /* a name of NULL ends them */
    const char *formula;
} sgm__metric_record;
#define SGM__METRIC_DECLARATION(name, takes, doc) extern const sgm__metric_record sgm__metric_##name;
SGM__METRICS(SGM__METRIC_DECLARATION)
#undef SGM__METRIC_DECLARATION

/* A row of SGM__METRICS, or a metric that a program has added. */
typedef struct sgm__metric {
    const char *name, *doc;
    sgm__metric_takes takes;
    const sgm__metric_record *record;
    const sgm_metric_type *added; /* computes in place of the record's compute(); NULL: a row */
} sgm__metric;
#define SGM__ADDED_METRICS 64 /* at most: as many as hooks, since each has the text of a hook, too */
#define SGM__COUNT_METRIC(name, takes, doc) +1
#define SGM__METRIC_ROWS ((size_t)(0 SGM__METRICS(SGM__COUNT_METRIC)))
/* Rows first, then those that were added. `index` must be one that sgm__metric_find gave. */
const sgm__metric *sgm__metric_at(size_t index);
/* Adds a metric, whose table stays; the name must be new. */
sgm_status sgm__metric_add(const sgm_metric_type *type);
sgm_status sgm__metric_compute(const sgm__metric *metric, const sgm__predictions *predictions,
                               const sgm_metric_options *options, const sgm__results *results);

/* SIZE_MAX: unknown, with an error that names the nearest. */
size_t sgm__metric_find(const char *name, size_t length);
sgm_status sgm__metric_check(size_t metric, const sgm_metric_options *options);
double sgm__threshold_of(const sgm_metric_options *options);
/* The row of a result for registries; NULL: it has none. */
const sgm_option *sgm__result_row(const char *name);
/* Whether a value is better when it is smaller: as the record says of a metric's result, also behind a name
 * of its own ("second_f1"); of other values by their name: what has loss, cost or error in it. */
bool sgm__is_better_below(const char *identifier);

/* --- confusion.c --- */
/* How often each class (row) was predicted as which (column): int64, (classes, classes). */
sgm_tensor *sgm__confusion(const sgm__predictions *predictions, const sgm_metric_options *options);

/* --- metrics_text.c --- */
/* The rows of what metrics take, for tables of arguments. 0.5 suits probabilities; a threshold is of networks
 * with one output only. Bounds have no defaults: without both, only the threshold counts. */
#define SGM__THRESHOLD_ROW                                                                                   \
    {                                                                                                        \
        "threshold", SGM_KIND_NUMBER, .default_value = 0.5,                                                  \
                                      .doc = "one output: above it the prediction is 1"                      \
    }
#define SGM__TOPS_ROW                                                                                        \
    {                                                                                                        \
        "tops", SGM_KIND_INTEGER, .list = true, .minimum = 1, .maximum = INT32_MAX, .default_text = "1",     \
                                  .doc = "among how many largest outputs: 1, 3"                              \
    }
#define SGM__BOUND_ROWS                                                                                      \
    {"lower", SGM_KIND_NUMBER, .default_value = NAN,                                                         \
     .doc = "below it the prediction is 0; in between it is wrong"},                                         \
    {                                                                                                        \
        "upper", SGM_KIND_NUMBER, .default_value = NAN, .doc = "above it the prediction is 1"                \
    }
/* Sets those options that the call has: threshold, tops, bounds. */
sgm_status sgm__metric_read_options(const sgm__call *call, sgm_metric_options *options);
/* Computes what a text names; `predictions` NULL: only reads it. */
sgm_status sgm__metrics_compute(const char *metrics, const sgm__predictions *predictions,
                                const sgm__results *results);
/* A leave() for a registry as `user`. */
sgm_status sgm__leave_in_registry(void *registry, const char *name, const sgm_content *content,
                                  sgm__weight weight);

#endif
