/* Chooses the values of a trial by a tree-structured Parzen estimator (TPE: Bergstra, Bardenet, Bengio and
 * Kegl, Algorithms for Hyper-Parameter Optimization, 2011), with the defaults of Optuna's TPESampler
 * (Watanabe, Tree-Structured Parzen Estimator, 2023, compares them).
 *
 * The trials so far are divided into the best ones (a tenth, at most 25) and the others. For each value
 * alone, l is a density of what the best ones have and g of what the others have; of 24 numbers that are
 * drawn from l the one with the largest l / g is taken. A density is a mixture: a normal distribution, cut
 * off at the ends of the range, around each observation, and a wide one over the range, the prior, that
 * weighs as one observation. Choices have a histogram in its place. Ranges are mapped to the unit interval
 * first (sgm__search_unit_of): logarithmic ones by their logarithms.
 *
 * Trials that were pruned are behind those that were trained to the end, and trials that failed are last.
 * Trials that run belong to the others (the constant liar with the worst result: Ginsbourger et al., 2010),
 * so that trials side by side do not try the same place. */
#include "environment/search.h"

#include <math.h>
#include <stdlib.h>

#define CANDIDATES 24 /* drawn from l for each value */
#define MAXIMUM_BEST 25
#define NEWEST 25 /* so many newest observations have their full weight */
/* Suggestions for one trial after which it is drawn at random, as all of them were tried already. */
#define ATTEMPTS 16

/* --- estimators of numbers --- */

typedef struct kernel {
    double mean, deviation, weight;
    double log_scale; /* logarithm of the factor before the exponential */
} kernel;

/* A density on the unit interval: kernels around observations in the order of their means, and the prior. */
typedef struct parzen {
    kernel *kernels;
    size_t count;
} parzen;

static int by_mean(const void *left, const void *right)
{
    const kernel *a = left, *b = right;
    return (a->mean > b->mean) - (a->mean < b->mean);
}

/* The weight of observation `index` of `count`, oldest first: all 1, but those before the newest ones rise to
 * it from 1 / count. */
static double observation_weight(size_t index, size_t count)
{
    if (count < NEWEST || index + NEWEST >= count)
        return 1;
    size_t old = count - NEWEST;
    double first = 1 / (double)count;
    return old > 1 ? first + (1 - first) * (double)index / (double)(old - 1) : first;
}

/* The probability of a standard normal number below `z`. */
static double normal_below(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

/* A kernel is as wide as the larger distance to its neighbours, but, so that equal observations do not make
 * it a spike, no narrower than a part of the range. The outermost have one neighbour, and a single one has
 * the ends of the range. The prior, which is the last kernel, is as wide as the range. */
static double deviation_of(const parzen *p, size_t index)
{
    size_t observations = p->count - 1;
    double mean = p->kernels[index].mean;
    if (index == observations)
        return 1;
    double below = index > 0 ? mean - p->kernels[index - 1].mean : 0;
    double above = index + 1 < observations ? p->kernels[index + 1].mean - mean : 0;
    double narrowest = 1 / fmin(100, 1 + (double)p->count);
    return fmax(observations == 1 ? fmax(mean, 1 - mean) : fmax(below, above), narrowest);
}

/* Allocates the kernels; freed with sgm__free. */
static bool parzen_fill(parzen *p, const double *observations, size_t count)
{
    *p = (parzen){sgm__calloc(count + 1, sizeof *p->kernels), count + 1};
    if (p->kernels == NULL)
        return false;
    double sum = 1;
    for (size_t i = 0; i < count; i++) {
        p->kernels[i] = (kernel){.mean = observations[i], .weight = observation_weight(i, count)};
        sum += p->kernels[i].weight;
    }
    p->kernels[count] = (kernel){.mean = 0.5, .weight = 1};
    qsort(p->kernels, count, sizeof *p->kernels, by_mean);
    for (size_t i = 0; i < p->count; i++) {
        kernel *k = &p->kernels[i];
        k->deviation = deviation_of(p, i);
        k->weight /= sum;
        double inside = normal_below((1 - k->mean) / k->deviation) - normal_below(-k->mean / k->deviation);
        k->log_scale = log(k->weight / (k->deviation * inside * sqrt(2 * 3.14159265358979323846)));
    }
    return true;
}

/* The logarithm of a sum of exponentials, from the largest one on, so that none of them underflows alone. */
static double parzen_log_density(const parzen *p, double x)
{
    double largest = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < p->count; i++) {
            double z = (x - p->kernels[i].mean) / p->kernels[i].deviation;
            double term = p->kernels[i].log_scale - z * z / 2;
            largest = pass == 0 && term > largest ? term : largest;
            sum += pass == 1 ? exp(term - largest) : 0;
        }
    return sum > 0 ? largest + log(sum) : -INFINITY;
}

double sgm__parzen_log_density(const double *observations, size_t count, double x)
{
    parzen p;
    double density = parzen_fill(&p, observations, count) ? parzen_log_density(&p, x) : NAN;
    sgm__free(p.kernels);
    return density;
}

/* A number of the mixture: of a kernel by its weight, drawn until it is in the range. At least a third of
 * what is drawn is: no kernel is wider than the range, and all means are in it. */
static double parzen_draw(const parzen *p, sgm__random *random)
{
    double left = sgm__random_uniform(random), x;
    size_t index = 0;
    while (index + 1 < p->count && left >= p->kernels[index].weight)
        left -= p->kernels[index++].weight;
    do
        x = p->kernels[index].mean + p->kernels[index].deviation * sgm__random_normal(random);
    while (!(x >= 0 && x <= 1));
    return x;
}

/* --- what is modelled --- */

/* The trials that the estimators learn from, each list in the order of numbers; one array has both. */
typedef struct history {
    const sgm__trial **best, **others;
    size_t best_count, other_count;
} history;

static int by_number(const void *left, const void *right)
{
    const sgm__trial *const *a = left, *const *b = right;
    return (*a)->shown.number < (*b)->shown.number ? -1 : 1;
}

static bool has_ended(const sgm__trial *trial)
{
    return trial->shown.state == SGM_TRIAL_FAILED || !isnan(trial->shown.objective);
}

/* False: out of memory. Free `best` with sgm__free. The ranking has trials that run before those that failed;
 * that does not matter, as both are among the others. */
static bool divide(const sgm_search *search, const sgm__trial *trial, history *h)
{
    sgm__ranked *list = sgm__search_rank(search);
    size_t count = 0, ended = 0;
    *h = (history){.best = sgm__calloc(search->trial_count + 1, sizeof *h->best)};
    for (size_t i = 0; list != NULL && h->best != NULL && i < search->trial_count; i++) {
        const sgm__trial *other = list[i].trial;
        if (other == trial || other->open)
            continue;
        h->best[count++] = other;
        ended += has_ended(other);
    }
    size_t tenth = (ended + 9) / 10;
    h->best_count = tenth < MAXIMUM_BEST ? tenth : MAXIMUM_BEST;
    bool done = list != NULL && h->best != NULL;
    sgm__free(list);
    if (!done)
        return false;
    h->others = h->best + h->best_count;
    h->other_count = count - h->best_count;
    qsort(h->best, h->best_count, sizeof *h->best, by_number);
    qsort(h->others, h->other_count, sizeof *h->others, by_number);
    return true;
}

/* --- suggesting a number --- */

/* The density of a range's values, in the unit interval. */
static bool fill_from(parzen *p, const sgm_search_values *values, size_t index, const sgm__trial **trials,
                      size_t count)
{
    double *observations = sgm__calloc(count + 1, sizeof *observations);
    *p = (parzen){0};
    for (size_t i = 0; observations != NULL && i < count; i++)
        observations[i] = sgm__search_unit_of(values, &trials[i]->values[index]);
    bool filled = observations != NULL && parzen_fill(p, observations, count);
    sgm__free(observations);
    return filled;
}

static char *suggest_number(const sgm_search_values *values, size_t index, const history *h,
                            sgm__random *random)
{
    parzen l = {0}, g = {0};
    double best = NAN, best_score = -INFINITY;
    bool filled = fill_from(&l, values, index, h->best, h->best_count) &&
                  fill_from(&g, values, index, h->others, h->other_count);
    for (int i = 0; filled && i < CANDIDATES; i++) {
        const sgm_trial_value drawn = {.number = sgm__search_number_at(values, parzen_draw(&l, random))};
        double x = sgm__search_unit_of(values, &drawn); /* of the whole number */
        double score = parzen_log_density(&l, x) - parzen_log_density(&g, x);
        if (isnan(best) || score > best_score) {
            best = drawn.number;
            best_score = score;
        }
    }
    sgm__free(l.kernels);
    sgm__free(g.kernels);
    return filled ? sgm__search_number_text(values, best) : NULL;
}

/* --- suggesting a choice --- */

/* Adds the estimator's probabilities: each observation is a histogram of 1 for its choice and a little for
 * all, 1 / kernels, and the prior one of equal parts. */
static void fill_choices(double *probabilities, size_t choices, const sgm_search_values *values, size_t index,
                         const sgm__trial **trials, size_t count)
{
    double little = 1 / (double)(count + 1), row = 1 + (double)choices * little, sum = 1;
    for (size_t i = 0; i < count; i++)
        sum += observation_weight(i, count);
    double shared = 1 / (sum * (double)choices);
    for (size_t i = 0; i < count; i++) {
        double weight = observation_weight(i, count) / sum;
        probabilities[sgm__search_find_choice(values, trials[i]->values[index].text)] += weight / row;
        shared += weight * little / row;
    }
    for (size_t i = 0; i < choices; i++)
        probabilities[i] += shared;
}

static size_t draw_choice(const double *probabilities, size_t choices, sgm__random *random)
{
    double left = sgm__random_uniform(random);
    size_t index = 0;
    while (index + 1 < choices && left >= probabilities[index])
        left -= probabilities[index++];
    return index;
}

static char *suggest_choice(const sgm_search_values *values, size_t index, const history *h,
                            sgm__random *random)
{
    size_t choices = sgm__search_count_choices(values), best = 0;
    double *l = sgm__calloc(2 * choices + 2, sizeof *l), best_score = -INFINITY;
    if (l == NULL)
        return NULL;
    double *g = l + choices + 1;
    fill_choices(l, choices, values, index, h->best, h->best_count);
    fill_choices(g, choices, values, index, h->others, h->other_count);
    for (int i = 0; i < CANDIDATES; i++) {
        size_t choice = draw_choice(l, choices, random);
        double score = log(l[choice]) - log(g[choice]);
        if (score > best_score) {
            best = choice;
            best_score = score;
        }
    }
    sgm__free(l);
    return sgm__strdup(values->choices[best]);
}

/* --- a trial --- */

/* The random numbers are a function of seed, name of the value, trial and attempt. */
static sgm_status suggest(const sgm_search *search, sgm__trial *trial, const history *h, size_t attempt)
{
    for (size_t i = 0; i < search->value_count; i++) {
        const sgm_search_values *values = &search->options.values[i];
        sgm__random random = sgm__random_make(search->options.seed, sgm__hash_text(values->name));
        random.counter = ((uint64_t)trial->shown.number << 20 | attempt) << 20;
        char *text = values->choices != NULL ? suggest_choice(values, i, h, &random)
                                             : suggest_number(values, i, h, &random);
        SGM_TRY(sgm__search_set_value(search, trial, i, text));
    }
    return SGM_OK;
}

/* What was tried before teaches nothing: after some attempts the trial is drawn at random, and if nothing is
 * left there either, it repeats the last suggestion. */
static sgm_status suggest_new(const sgm_search *search, sgm__trial *trial, const history *h)
{
    sgm__search_points points = {0};
    bool found = false;
    for (size_t attempt = 0; attempt < ATTEMPTS && !found; attempt++) {
        SGM_TRY(suggest(search, trial, h, attempt));
        found = sgm__search_is_new(search, trial);
    }
    sgm_status status = found ? SGM_OK : sgm__search_draw(search, trial, &points, &found);
    sgm__free(points.used);
    return status;
}

sgm_status sgm__search_suggest(const sgm_search *search, sgm__trial *trial)
{
    history h;
    sgm_status status = divide(search, trial, &h) ? suggest_new(search, trial, &h) : SGM_ERROR_MEMORY;
    sgm__free(h.best);
    trial->open = false;
    if (status == SGM_OK)
        status = sgm__search_show_values(search, trial);
    trial->open = status != SGM_OK;
    return status;
}
