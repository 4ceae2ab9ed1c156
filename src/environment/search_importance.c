/* How much each value of a search matters: functional analysis of variance over a random forest (fANOVA:
 * Hutter, Hoos and Leyton-Brown, An Efficient Approach for Assessing Hyperparameter Importance, 2014).
 *
 * A forest of regression trees (Breiman, Random Forests, 2001) learns from the trials which rank each
 * combination has. A tree divides the space of all combinations into boxes with a constant each. So it is
 * exact arithmetic to say what a tree predicts for one value averaged over all others, and which share of the
 * variance of its predictions this average has: boxes need only be added up. The shares are averaged over the
 * trees.
 *
 * Values are places in the unit interval (sgm__search_unit_of), the choices of a list in their order. */
#include "environment/search.h"

#include <math.h>
#include <stdlib.h>

#define TREES 64
#define DEEPEST 64
#define SMALLEST_LEAF 2
/* A tree learns from no more trials, drawn with replacement: more make the forest no surer. */
#define LARGEST_SAMPLE 500

/* A box of a tree: the trials in it have this mean rank. */
typedef struct box {
    double low[SGM_SEARCH_VALUES], high[SGM_SEARCH_VALUES], mean;
} box;

/* A value and the rank of a trial, for sorting; or a place and by how much a sum changes there. */
typedef struct point {
    double at, weight;
} point;

typedef struct forest {
    size_t values, trials; /* numbers of both */
    double *units;         /* trials x values */
    double *ranks;         /* by trial */
    sgm__random random;
    size_t *sample; /* the trials that a tree learns from */
    size_t sampled;
    point *points; /* room for a sample, or for two ends of each box */
    box *boxes;    /* of a tree; no more than are sampled */
    size_t box_count;
} forest;

/* --- the trials --- */

static bool is_equal(const sgm_trial *a, const sgm_trial *b)
{
    bool failed = a->state == SGM_TRIAL_FAILED;
    return failed == (b->state == SGM_TRIAL_FAILED) &&
           (failed || (a->rung == b->rung && a->objective == b->objective));
}

static bool has_ended(const sgm_trial *trial)
{
    return trial->state == SGM_TRIAL_FAILED || !isnan(trial->objective);
}

/* Ranks are the trials' places in the tables; equal ones have the mean of their places. */
static void read_trials(forest *f, const sgm_search *search, const sgm__ranked *list)
{
    for (size_t i = 0; i < search->trial_count; i++) {
        const sgm_trial *trial = &list[i].trial->shown;
        if (!has_ended(trial))
            continue;
        for (size_t k = 0; k < f->values; k++)
            f->units[f->trials * f->values + k] =
                sgm__search_unit_of(&search->options.values[k], &trial->values[k]);
        f->sample[f->trials] = i; /* until the first tree */
        f->ranks[f->trials] = (double)f->trials;
        f->trials++;
    }
    for (size_t i = 0, end; i < f->trials; i = end) {
        for (end = i + 1; end < f->trials &&
                          is_equal(&list[f->sample[i]].trial->shown, &list[f->sample[end]].trial->shown);)
            end++;
        for (size_t k = i; k < end; k++)
            f->ranks[k] = (double)(i + end - 1) / 2;
    }
}

/* --- a tree --- */

static int by_place(const void *left, const void *right)
{
    const point *a = left, *b = right;
    return (a->at > b->at) - (a->at < b->at);
}

static double unit(const forest *f, size_t sampled, size_t value)
{
    return f->units[f->sample[sampled] * f->values + value];
}

/* The best place to divide samples `begin` to `end` by one value: *gain is the larger, the smaller the
 * squared errors on both sides are together. False: there is no place with a smallest leaf on each side. */
static bool find_cut(forest *f, size_t begin, size_t end, size_t value, double *cut, double *gain)
{
    size_t count = end - begin;
    double sum = 0, left = 0;
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        f->points[i] = (point){unit(f, begin + i, value), f->ranks[f->sample[begin + i]]};
        sum += f->points[i].weight;
    }
    qsort(f->points, count, sizeof *f->points, by_place);
    for (size_t i = 1; i < count; i++) {
        left += f->points[i - 1].weight;
        double own = left * left / (double)i + (sum - left) * (sum - left) / (double)(count - i);
        if (i < SMALLEST_LEAF || count - i < SMALLEST_LEAF || f->points[i].at <= f->points[i - 1].at ||
            own <= *gain)
            continue;
        *gain = own;
        *cut = (f->points[i - 1].at + f->points[i].at) / 2;
        found = true;
    }
    return found;
}

/* Brings the samples below the cut to the front; returns where the others begin. */
static size_t divide(forest *f, size_t begin, size_t end, size_t value, double cut)
{
    size_t border = begin;
    for (size_t i = begin; i < end; i++) {
        size_t trial = f->sample[i];
        if (unit(f, i, value) >= cut)
            continue;
        f->sample[i] = f->sample[border];
        f->sample[border++] = trial;
    }
    return border;
}

/* Divides a box until its samples are few or equal. `b` is changed and put back. */
static void grow(forest *f, size_t begin, size_t end, box *b, int depth)
{
    double sum = 0, cut = 0, slack = 1e-9;
    size_t chosen = f->values;
    for (size_t i = begin; i < end; i++)
        sum += f->ranks[f->sample[i]];
    double gain = sum * sum / (double)(end - begin) * (1 + slack) + slack;
    for (size_t value = 0; value < f->values && depth < DEEPEST; value++)
        if (find_cut(f, begin, end, value, &cut, &gain))
            chosen = value;
    if (chosen == f->values) {
        b->mean = sum / (double)(end - begin);
        f->boxes[f->box_count++] = *b;
        return;
    }
    size_t border = divide(f, begin, end, chosen, cut);
    double low = b->low[chosen], high = b->high[chosen];
    b->high[chosen] = cut;
    grow(f, begin, border, b, depth + 1);
    b->high[chosen] = high;
    b->low[chosen] = cut;
    grow(f, border, end, b, depth + 1);
    b->low[chosen] = low;
}

static void grow_tree(forest *f)
{
    box whole = {.mean = 0};
    for (size_t i = 0; i < f->values; i++)
        whole.high[i] = 1;
    for (size_t i = 0; i < f->sampled; i++)
        f->sample[i] = (size_t)sgm__random_below(&f->random, f->trials);
    f->box_count = 0;
    grow(f, 0, f->sampled, &whole, 0);
}

/* --- its variance --- */

static double volume_of(const forest *f, const box *b)
{
    double volume = 1;
    for (size_t i = 0; i < f->values; i++)
        volume *= b->high[i] - b->low[i];
    return volume;
}

/* Mean and variance of the tree's predictions over the whole space. */
static double total_variance(const forest *f, double *mean)
{
    double squares = 0;
    *mean = 0;
    for (size_t i = 0; i < f->box_count; i++) {
        double volume = volume_of(f, &f->boxes[i]), own = f->boxes[i].mean;
        *mean += volume * own;
        squares += volume * own * own;
    }
    return squares - *mean * *mean;
}

/* The variance of the prediction averaged over all other values: a function of steps, which change where a
 * box begins or ends. */
static double variance_of(forest *f, size_t value, double mean)
{
    double level = 0, variance = 0;
    for (size_t i = 0; i < f->box_count; i++) {
        const box *b = &f->boxes[i];
        double weight = b->mean * volume_of(f, b) / (b->high[value] - b->low[value]);
        f->points[2 * i] = (point){b->low[value], weight};
        f->points[2 * i + 1] = (point){b->high[value], -weight};
    }
    qsort(f->points, 2 * f->box_count, sizeof *f->points, by_place);
    for (size_t i = 0; i + 1 < 2 * f->box_count; i++) {
        level += f->points[i].weight;
        variance += (f->points[i + 1].at - f->points[i].at) * (level - mean) * (level - mean);
    }
    return variance;
}

/* --- the forest --- */

static void measure(forest *f, double *shares)
{
    size_t trees = 0;
    for (size_t i = 0; i < f->values; i++)
        shares[i] = 0;
    for (int tree = 0; tree < TREES; tree++) {
        double mean, total;
        grow_tree(f);
        total = total_variance(f, &mean);
        if (f->box_count < 2 || !(total > 0))
            continue;
        trees++;
        for (size_t i = 0; i < f->values; i++)
            shares[i] += variance_of(f, i, mean) / total;
    }
    for (size_t i = 0; i < f->values && trees > 0; i++)
        shares[i] /= (double)trees;
}

static bool allocate(forest *f, const sgm_search *search)
{
    size_t trials = search->trial_count + 1;
    f->units = sgm__calloc(trials * f->values, sizeof *f->units);
    f->ranks = sgm__calloc(trials, sizeof *f->ranks);
    f->sample = sgm__calloc(trials, sizeof *f->sample);
    f->points = sgm__calloc(2 * trials, sizeof *f->points);
    f->boxes = sgm__calloc(trials < LARGEST_SAMPLE ? trials : LARGEST_SAMPLE, sizeof *f->boxes);
    return f->units != NULL && f->ranks != NULL && f->sample != NULL && f->points != NULL && f->boxes != NULL;
}

static sgm_status measure_search(forest *f, const sgm_search *search, double *shares)
{
    sgm__ranked *list = allocate(f, search) ? sgm__search_rank(search) : NULL;
    if (list == NULL)
        return SGM_ERROR_MEMORY;
    read_trials(f, search, list);
    sgm__free(list);
    f->sampled = f->trials < LARGEST_SAMPLE ? f->trials : LARGEST_SAMPLE;
    if (f->trials < SGM_SEARCH_IMPORTANCE_TRIALS)
        return sgm_fail(SGM_ERROR_STATE,
                        "how much each value matters can be told from %d trials on; %zu have ended",
                        SGM_SEARCH_IMPORTANCE_TRIALS, f->trials);
    measure(f, shares);
    return SGM_OK;
}

sgm_status sgm_search_importance(const sgm_search *search, double *shares, size_t count)
{
    if (search == NULL || shares == NULL || count < search->value_count)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sgm_search_importance: expected a search, and room for a number for each value");
    forest f = {.values = search->value_count, .random = sgm__random_make(search->options.seed, 0)};
    sgm_status status = measure_search(&f, search, shares);
    sgm__free(f.units);
    sgm__free(f.ranks);
    sgm__free(f.sample);
    sgm__free(f.points);
    sgm__free(f.boxes);
    return status;
}
