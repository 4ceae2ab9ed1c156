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

/* A number and its chance, which need not sum to 1 over all. */
typedef struct candidate {
    int64_t number;
    double chance;
} candidate;

/* Candidates, of which few are looked at: those that are left are a heap with the likeliest in front, and
 * those that were taken lie behind it, the first one last. So a vocabulary is not sorted for each token. */
typedef struct candidates {
    candidate *list;
    int64_t count, taken;
} candidates;

/* The likeliest is before the others; of equal ones the lowest number, so that the order is total. */
static bool is_before(const candidate *a, const candidate *b)
{
    return a->chance != b->chance ? a->chance > b->chance : a->number < b->number;
}

/* Brings the heap in order again below a place whose candidate may be too far in front. */
static void sink(candidate *heap, int64_t count, int64_t at)
{
    candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (is_before(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Candidate `index` from the likeliest on. */
static const candidate *candidate_at(candidates *c, int64_t index)
{
    for (; c->taken <= index; c->taken++) {
        int64_t last = c->count - 1 - c->taken;
        candidate first = c->list[0];
        c->list[0] = c->list[last];
        c->list[last] = first;
        sink(c->list, last, 0);
    }
    return &c->list[c->count - 1 - index];
}

static sgm_status fill(candidates *c, const double *probabilities, int64_t count)
{
    *c = (candidates){.list = sgm__calloc((size_t)count, sizeof *c->list), .count = count};
    if (c->list == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        c->list[i] = (candidate){i, probabilities[i]};
    for (int64_t i = count / 2; i-- > 0;)
        sink(c->list, count, i);
    return SGM_OK;
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

/* Sharpens the probabilities, which keeps their order; the likeliest then has the chance 1. They are divided
 * by the largest one before the power, so no power overflows. */
static void sharpen(candidates *c, double temperature)
{
    double power = temperature > 0 ? 1 / temperature : 1, maximum = c->list[0].chance;
    for (int64_t i = 0; i < c->count; i++)
        c->list[i].chance =
            power != 1 ? pow(c->list[i].chance / maximum, power) : c->list[i].chance / maximum;
}

/* How many of the candidates may be drawn; *sum becomes their sum. */
static int64_t keep(candidates *c, const sgm_sample_options *o, double *sum)
{
    bool all_may = o->top_k == 0 || o->top_k >= c->count, nucleus = o->top_p > 0 && o->top_p < 1;
    int64_t most = all_may ? c->count : o->top_k;
    double all = 0;
    for (int64_t i = 0; i < most; i++)
        all += all_may ? c->list[i].chance : candidate_at(c, i)->chance;
    *sum = all;
    if (!nucleus && o->min_p == 0)
        return most;
    *sum = 0;
    for (int64_t i = 0; i < most; i++) {
        double chance = candidate_at(c, i)->chance;
        if (chance < o->min_p)
            return i;
        *sum += chance;
        if (nucleus && *sum >= o->top_p * all)
            return i + 1;
    }
    return most;
}

/* Walks through the candidates until the drawn part of the sum is used up. Rounding may leave a rest behind
 * the last one, or hit one with the chance 0; both go to the nearest candidate before that has a chance. */
static int64_t draw_one(candidates *c, const sgm_sample_options *o, sgm__random random)
{
    double sum;
    int64_t kept = keep(c, o, &sum), i = 0;
    double left = sum * sgm__random_uniform(&random);
    while (i + 1 < kept && (left -= candidate_at(c, i)->chance) >= 0)
        i++;
    while (i > 0 && candidate_at(c, i)->chance == 0)
        i--;
    return candidate_at(c, i)->number;
}

/* Returns -1 on failure. */
int64_t sgm_probabilities_sample(const double *probabilities, int64_t count, uint64_t seed, uint64_t draw,
                                 const sgm_sample_options *given)
{
    sgm_sample_options o;
    candidates c;
    if (sgm__options_read(&o, sizeof o, given, "sgm_probabilities_sample") != SGM_OK ||
        check(probabilities, count, &o) != SGM_OK)
        return -1;
    int64_t likeliest = 0;
    for (int64_t i = 1; i < count && o.greedy; i++)
        likeliest = probabilities[i] > probabilities[likeliest] ? i : likeliest;
    if (o.greedy)
        return likeliest;
    if (fill(&c, probabilities, count) != SGM_OK)
        return -1;
    sharpen(&c, o.temperature);
    int64_t number = draw_one(&c, &o, sgm__random_make(seed, draw));
    sgm__free(c.list);
    return number;
}
