/* The mathematics of metrics, and their table. Internal. */
#ifndef SGM_METRICS_METRICS_H
#define SGM_METRICS_METRICS_H

#include "base/base.h"
#include <sigma/metrics.h>

/* Outputs and targets as rows of columns; a row is a prediction. */
typedef struct sgm__predictions {
    sgm_tensor *output_tensor, *target_tensor; /* contiguous, float32 or float64 */
    const void *outputs, *targets;
    bool wide_outputs, wide_targets; /* float64 */
    int64_t rows, columns;
    double cost; /* NaN: unknown */
} sgm__predictions;

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

/* --- metric_math.c --- */
typedef struct sgm__mistake {
    int64_t row, target, prediction;
    double output; /* of the prediction */
} sgm__mistake;
#define SGM__MAXIMUM_MISTAKES 10

int64_t sgm__predictions_classes(const sgm__predictions *predictions); /* 2 for one column */
double sgm__top_k(const sgm__predictions *predictions, int64_t k);
double sgm__binary_accuracy(const sgm__predictions *predictions, double lower, double upper);
/* `counts`: classes * classes, zero. */
void sgm__confusion(const sgm__predictions *predictions, double threshold, int64_t *counts);
/* The worst ones first; returns how many. */
size_t sgm__worst_mistakes(const sgm__predictions *predictions, double threshold,
                           sgm__mistake mistakes[SGM__MAXIMUM_MISTAKES]);
typedef struct sgm__class_score {
    double precision, recall, f1; /* NaN: neither examples nor predictions */
    int64_t examples;
} sgm__class_score;
sgm__class_score sgm__class_score_of(const int64_t *counts, int64_t classes, int64_t class);
/* Of one column; NaN: one side has no examples. */
sgm_status sgm__roc_auc(const sgm__predictions *predictions, int64_t column, double *area);
typedef struct sgm__errors {
    double mean_absolute, root_mean_squared, maximum, r_squared;
} sgm__errors;
sgm__errors sgm__regression(const sgm__predictions *predictions);
sgm_status sgm__perplexity(const sgm__predictions *predictions, double *perplexity);

/* --- metrics.c --- */
/* How much a number matters: to those who ask, to metrics.jsonl, to the terminal. */
typedef enum sgm__weight { SGM__QUIET, SGM__RECORDED, SGM__HEADLINE } sgm__weight;
typedef struct sgm__results {
    sgm_status (*leave)(void *user, const char *name, const sgm_content *content, sgm__weight weight);
    void *user;
} sgm__results;

typedef enum sgm__metric_takes { SGM__TAKES_NOTHING, SGM__TAKES_TOPS, SGM__TAKES_BOUNDS } sgm__metric_takes;
typedef struct sgm__metric {
    const char *name, *doc;
    sgm__metric_takes takes; /* options of its own, the numbers in the text's parentheses */
    sgm_status (*compute)(const sgm__predictions *predictions, const sgm_metric_options *options,
                          const sgm__results *results);
} sgm__metric;
#define SGM__METRIC_COUNT 8
extern const sgm__metric sgm__metrics[SGM__METRIC_COUNT];
/* SIZE_MAX: unknown, with an error that names the nearest. */
size_t sgm__metric_find(const char *name, size_t length);
sgm_status sgm__metric_check(size_t metric, const sgm_metric_options *options);
/* The row of a result for registries; NULL: it has none. */
const sgm_option *sgm__result_row(const char *name);
/* Computes what a text names; `predictions` NULL: only reads it (metrics_text.c). */
sgm_status sgm__metrics_compute(const char *metrics, const sgm__predictions *predictions,
                                const sgm__results *results);
/* A leave() for a registry as `user`. */
sgm_status sgm__leave_in_registry(void *registry, const char *name, const sgm_content *content,
                                  sgm__weight weight);

#endif
