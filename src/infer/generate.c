/* Going on with a sequence: each next token is drawn by the probabilities that the network gives, which is
 * sgm_probabilities_sample (src/data/read/sample.c), and read in turn. */
#include "infer/generator.h"
#include <sigma/text.h>

#include <math.h>

/* Replaces the probabilities after the newest step by those with the repetition penalty (Keskar et al.,
 * 2019): logits of tokens that were seen are divided by it where they are positive, and multiplied where
 * negative. */
static sgm_status penalise(sgm_generator *g, double penalty)
{
    double *values = g->probabilities, maximum = -INFINITY, sum = 0;
    SGM_TRY(sgm__generator_output(g, SGM__LOGITS));
    for (int64_t i = 0; i < g->vocabulary; i++) {
        if (g->seen[i])
            values[i] = values[i] > 0 ? values[i] / penalty : values[i] * penalty;
        maximum = fmax(maximum, values[i]);
    }
    for (int64_t i = 0; i < g->vocabulary; i++)
        sum += values[i] = exp(values[i] - maximum);
    for (int64_t i = 0; i < g->vocabulary; i++)
        values[i] /= sum;
    return SGM_OK;
}

/* Reads a token; g->probabilities are those of what follows then, with the repetition penalty. */
static sgm_status read_on(sgm_generator *g, int64_t token, const sgm_generation_options *o)
{
    const double *shares;
    bool penalty = o->repetition_penalty != 0 && o->repetition_penalty != 1;
    SGM_TRY(sgm_generator_read(g, token, penalty ? NULL : &shares));
    return penalty ? penalise(g, o->repetition_penalty) : SGM_OK;
}

static sgm_status check_generation(const sgm_generator *g, const sgm_generation_options *o)
{
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_generate wants a generator, got NULL");
    if (!(o->repetition_penalty >= 0) || !isfinite(o->repetition_penalty))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the repetition_penalty is above 0, not %g",
                        o->repetition_penalty);
    if (o->repetition_penalty != 0 && !g->logits)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a repetition_penalty wants logits, but the network's output is not the softmax of "
                        "some; leave it out, or end the network with softmax_cross_entropy");
    return SGM_OK;
}

/* Each token is drawn by seed and number (sgm_probabilities_sample), so the same seed gives the same tokens.
 * The last token is drawn but not read: a later call may read other tokens first. */
sgm_status sgm_generator_generate(sgm_generator *g, const int64_t *begin_tokens, size_t begin_count,
                                  int64_t *tokens, size_t count, const sgm_generation_options *given)
{
    sgm_generation_options o;
    SGM_TRY(sgm__options_read(&o, sizeof o, given, "sgm_generator_generate"));
    SGM_TRY(check_generation(g, &o));
    if (begin_tokens == NULL || begin_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "at least 1 token is wanted to begin with; there is none");
    SGM_TRY(sgm__generator_read_many(g, &begin_tokens, (int64_t)begin_count - 1));
    SGM_TRY(read_on(g, begin_tokens[begin_count - 1], &o));
    for (size_t i = 0; i < count; i++) {
        int64_t token =
            sgm_probabilities_sample(g->probabilities, g->vocabulary, o.seed, i,
                                     SGM_SAMPLING(.temperature = o.temperature, .top_k = o.top_k,
                                                  .top_p = o.top_p, .min_p = o.min_p, .greedy = o.greedy));
        if (token < 0)
            return sgm__last_failure();
        if (tokens != NULL)
            tokens[i] = token;
        if ((o.told != NULL && !o.told(o.user, token)) || i + 1 == count)
            break;
        SGM_TRY(read_on(g, token, &o));
    }
    return SGM_OK;
}
