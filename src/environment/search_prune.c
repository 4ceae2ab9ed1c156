/* Stops trials that others leave behind (pruning), by the median rule: Golovin et al., Google Vizier, 2017,
 * section 3.2, in the form that Optuna's MedianPruner has.
 *
 * A trial ends after an epoch if the best objective that it had so far is worse than the median of what the
 * trials that were trained to their end had after the same epoch. Pruned trials do not count: with them the
 * median would rise to what the better half of the better half had. Curves, the objectives epoch by epoch,
 * are kept by search_trial.c and saved by search_log.c. */
#include "environment/search.h"

#include <math.h>
#include <stdlib.h>

/* A trial of more epochs keeps no curve beyond them. */
#define LONGEST_CURVE 1000000

sgm_status sgm__search_curve_set(sgm__trial *trial, int64_t epoch, double objective)
{
    if (epoch < 1 || epoch > LONGEST_CURVE)
        return SGM_OK;
    SGM_TRY(sgm__reserve(&trial->curve, &trial->curve_capacity, (size_t)epoch, sizeof *trial->curve));
    while (trial->curve_length < (size_t)epoch)
        trial->curve[trial->curve_length++] = NAN;
    trial->curve[epoch - 1] = objective;
    return SGM_OK;
}

static double value_at(const sgm__trial *trial, int64_t epoch)
{
    return epoch <= (int64_t)trial->curve_length ? trial->curve[epoch - 1] : NAN;
}

static double best_until(const sgm_search *search, const sgm__trial *trial, int64_t epoch)
{
    double best = NAN;
    for (int64_t i = 1; i <= epoch; i++) {
        double value = value_at(trial, i);
        if (!isnan(value) && (isnan(best) || sgm__search_is_better(search, value, best)))
            best = value;
    }
    return best;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The median of what the trials that are done had after `epoch`; NaN: too few, or no memory, which only lets
 * the trial go on. */
static double median_at(const sgm_search *search, int64_t epoch)
{
    size_t count = 0;
    double *values = sgm__calloc(search->trial_count + 1, sizeof *values), median = NAN;
    for (size_t i = 0; values != NULL && i < search->trial_count; i++) {
        double value = value_at(&search->trials[i], epoch);
        if (search->trials[i].shown.state == SGM_TRIAL_DONE && !isnan(value))
            values[count++] = value;
    }
    if (values != NULL && count >= (size_t)search->options.prune_after_trials) {
        qsort(values, count, sizeof *values, ascending);
        median = (values[(count - 1) / 2] + values[count / 2]) / 2;
    }
    sgm__free(values);
    return median;
}

bool sgm__search_prunes(const sgm_search *search, const sgm__trial *trial, int64_t epoch)
{
    const sgm_search_options *o = &search->options;
    if (o->pruning == SGM_PRUNING_NONE || epoch < o->prune_after_epochs || isnan(value_at(trial, epoch)))
        return false;
    double best = best_until(search, trial, epoch), median = median_at(search, epoch);
    return !isnan(median) && sgm__search_is_better(search, median, best);
}
