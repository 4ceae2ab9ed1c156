/* Drawing one of several numbers by their probabilities, as text generation does with the probabilities of
 * tokens.
 *
 * The probabilities are raised to 1 / temperature, all but the top_k likeliest are dropped, then all behind
 * the first whose sum reaches top_p (nucleus sampling, Holtzman et al., 2019), then all that are less likely
 * than min_p times the likeliest (Nguyen et al., 2024), and one of the rest is drawn. The draw is a function
 * of seed and number of the draw, so generated text can be repeated. Nothing is kept between two calls;
 * src/infer/generator.c calls sgm_probabilities_sample for each token. */
#include "base/base.h"
#include <sigma/text.h>

#include <math.h>
#include <stdlib.h>

/* A number and its chance, which need not sum to 1 over all. */
typedef struct candidate {
    int64_t number;
    double chance;
} candidate;

/* The likeliest first; of equal ones the lowest number, so the order is total and every C library sorts
 * alike. */
static int compare(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->chance != y->chance)
        return x->chance > y->chance ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* 0 for an option means its default; probabilities must be finite, not negative, and not all 0. */
static sgm_status check(const double *probabilities, int64_t count, const sgm_sample_options *o)
{
    double sum = 0;
    if (probabilities == NULL || count < 1)
        return sgm_fail(SGM_ERROR_ARGUMENT, "the probabilities of at least 1 number are wanted");
    if (!(o->temperature >= 0) || !isfinite(o->temperature))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the temperature is above 0, not %g", o->temperature);
    if (o->top_k < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "top_k is at least 1, not %lld", (long long)o->top_k);
    if (!(o->top_p >= 0 && o->top_p <= 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "top_p is above 0 and at most 1, not %g", o->top_p);
    if (!(o->min_p >= 0 && o->min_p <= 1))
        return sgm_fail(SGM_ERROR_ARGUMENT, "min_p is from 0 to 1, not %g", o->min_p);
    for (int64_t i = 0; i < count; i++) {
        if (!(probabilities[i] >= 0) || !isfinite(probabilities[i]))
            return sgm_fail(SGM_ERROR_NUMERIC,
                            "the chance of number %lld is %g; it must be finite and not below 0",
                            (long long)i, probabilities[i]);
        sum += probabilities[i];
    }
    if (!(sum > 0))
        return sgm_fail(SGM_ERROR_NUMERIC, "none of %lld numbers has a chance", (long long)count);
    return SGM_OK;
}

/* Sharpens the sorted probabilities and returns how many of them may be drawn; *sum becomes their sum.
 * Probabilities are divided by the largest one before the power, so no power overflows. */
static int64_t prepare(candidate *list, int64_t count, const sgm_sample_options *o, double *sum)
{
    double power = o->temperature > 0 ? 1 / o->temperature : 1, maximum = list[0].chance, all = 0;
    int64_t kept = o->greedy ? 1 : o->top_k > 0 && o->top_k < count ? o->top_k : count;
    for (int64_t i = 0; i < kept; i++)
        all += list[i].chance = pow(list[i].chance / maximum, power);
    double wanted = o->top_p > 0 ? o->top_p * all : all;
    *sum = 0;
    for (int64_t i = 0; i < kept; i++) {
        if (list[i].chance < o->min_p) /* the likeliest has the chance 1 by now */
            return i;
        *sum += list[i].chance;
        if (*sum >= wanted && o->top_p > 0 && o->top_p < 1)
            kept = i + 1;
    }
    return kept;
}

/* Walks through the candidates until the drawn part of the sum is used up. Rounding may leave a rest behind
 * the last one, or hit one with the chance 0; both go to the nearest candidate before that has a chance.
 * Returns -1 on failure. */
int64_t sgm_probabilities_sample(const double *probabilities, int64_t count, uint64_t seed, uint64_t draw,
                                 const sgm_sample_options *given)
{
    sgm_sample_options o;
    if (sgm__options_read(&o, sizeof o, given, "sgm_probabilities_sample") != SGM_OK ||
        check(probabilities, count, &o) != SGM_OK)
        return -1;
    candidate *list = sgm__calloc((size_t)count, sizeof *list);
    if (list == NULL)
        return -1;
    for (int64_t i = 0; i < count; i++)
        list[i] = (candidate){i, probabilities[i]};
    qsort(list, (size_t)count, sizeof *list, compare);
    double sum;
    int64_t kept = prepare(list, count, &o, &sum), i = 0;
    sgm__random random = sgm__random_make(seed, draw);
    double left = sum * sgm__random_uniform(&random);
    while (i + 1 < kept && (left -= list[i].chance) >= 0)
        i++;
    while (i > 0 && list[i].chance == 0)
        i--;
    int64_t number = list[i].number;
    sgm__free(list);
    return number;
}
