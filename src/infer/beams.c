/* Beam search: instead of drawing tokens, the likeliest texts so far are kept, and each is gone on with.
 *
 * At each step all beams together have beams * vocabulary continuations, each with the sum of the logarithms
 * of its tokens' probabilities. The best that do not end are the beams of the next step; those that end, and
 * are among the best so many as there are beams, are finished texts, of which as many are kept, by their sum
 * divided by length^length_penalty. The search is over when even the best beam, as it is now, is no better
 * than the worst of these, or at the greatest length. So does transformers (early_stopping=False). A beam is
 * a sequence of the generator; when other ones go on, rows of its states change places. */
#include "infer/generate.h"

#include <math.h>

#define NEVER (-1e9) /* a score below all others */

/* A text behind the beginning. */
typedef struct beam {
    int64_t *tokens; /* room for the greatest length */
    size_t length;
    double score; /* sum of logarithms; of a finished one divided by the penalty */
} beam;

/* One way to go on: a beam, and its next token. */
typedef struct candidate {
    double score;
    int64_t beam, token;
} candidate;

typedef struct search {
    sgm_generator *generator;
    const sgm_generation_options *options;
    int64_t beams;
    size_t length, longest;   /* tokens behind the beginning: so far, at most */
    beam *running, *next;     /* now, and in the next step */
    beam *finished;           /* the best first */
    int64_t finished_count;   /* up to `beams` */
    candidate *best;          /* of a step, the best first */
    int64_t best_count, most; /* of `best`: how many there are, and at most */
    int64_t *parents;         /* of each beam: which one it goes on with */
    const int64_t **tokens;   /* what each beam reads next */
} search;

static beam *make_beams(const search *s)
{
    beam *beams = sgm__calloc((size_t)s->beams, sizeof *beams);
    bool failed = beams == NULL;
    for (int64_t i = 0; i < s->beams && !failed; i++) {
        beams[i] = (beam){.tokens = sgm__calloc(s->longest, sizeof(int64_t)), .score = i > 0 ? NEVER : 0};
        failed = beams[i].tokens == NULL;
    }
    return beams;
}

static void free_beams(const search *s, beam *beams)
{
    for (int64_t i = 0; i < s->beams && beams != NULL; i++)
        sgm__free(beams[i].tokens);
    sgm__free(beams);
}

static bool are_made(const search *s, const beam *beams)
{
    return beams != NULL && beams[s->beams - 1].tokens != NULL;
}

/* All but the first beam have a score below all others at first, as they are the same text. */
static sgm_status begin(search *s)
{
    size_t ways = 1 + (s->options->end_count > 1 ? s->options->end_count : 1);
    s->most = (int64_t)ways * s->beams;
    s->running = make_beams(s);
    s->next = make_beams(s);
    s->finished = make_beams(s);
    s->best = sgm__calloc((size_t)s->most, sizeof *s->best);
    s->parents = sgm__calloc((size_t)s->beams, sizeof *s->parents);
    s->tokens = sgm__calloc((size_t)s->beams, sizeof *s->tokens);
    return are_made(s, s->running) && are_made(s, s->next) && are_made(s, s->finished) && s->best != NULL &&
                   s->parents != NULL && s->tokens != NULL
               ? SGM_OK
               : SGM_ERROR_MEMORY;
}

static void end(search *s)
{
    free_beams(s, s->running);
    free_beams(s, s->next);
    free_beams(s, s->finished);
    sgm__free(s->best);
    sgm__free(s->parents);
    sgm__free(s->tokens);
}

/* Puts a candidate among the best, if it is one; of equal ones that came first stays in front. */
static void offer(search *s, candidate new)
{
    int64_t at = s->best_count;
    if (at == s->most && new.score <= s->best[at - 1].score)
        return;
    if (at < s->most)
        s->best_count++;
    else
        at--;
    for (; at > 0 && s->best[at - 1].score < new.score; at--)
        s->best[at] = s->best[at - 1];
    s->best[at] = new;
}

/* The best continuations of all beams. A repetition penalty multiplies logarithms of probabilities, which are
 * negative. */
static sgm_status look_for_best(search *s)
{
    const sgm_generator *g = s->generator;
    double penalty = sgm__is_penalised(s->options) ? s->options->repetition_penalty : 1;
    s->best_count = 0;
    for (int64_t b = 0; b < s->beams; b++)
        for (int64_t i = 0; i < g->vocabulary; i++) {
            int64_t at = b * g->vocabulary + i;
            if (!(g->probabilities[at] >= 0) || !isfinite(g->probabilities[at]))
                return sgm_fail(SGM_ERROR_NUMERIC, "the network's probability of number %lld is %g",
                                (long long)i, g->probabilities[at]);
            double chance = log(g->probabilities[at]) * (g->seen[at] ? penalty : 1);
            offer(s, (candidate){s->running[b].score + chance, b, i});
        }
    return SGM_OK;
}

/* `to` becomes the candidate's text. */
static void follow(const search *s, const candidate *c, double score, beam *to)
{
    memcpy(to->tokens, s->running[c->beam].tokens, s->length * sizeof *to->tokens);
    to->tokens[s->length] = c->token;
    to->length = s->length + 1;
    to->score = score;
}

/* Keeps a text that has ended, unless as many better ones are finished. */
static void finish(search *s, const candidate *c)
{
    double score = c->score / pow((double)(s->length + 1), sgm__length_penalty(s->options));
    int64_t at = s->finished_count;
    if (at == s->beams && score <= s->finished[at - 1].score)
        return;
    at = at < s->beams ? s->finished_count++ : at - 1;
    beam made = s->finished[at];
    follow(s, c, score, &made);
    for (; at > 0 && s->finished[at - 1].score < score; at--)
        s->finished[at] = s->finished[at - 1];
    s->finished[at] = made;
}

/* Sorts the best continuations into finished texts and beams that go on. False: no beam goes on. */
static bool choose(search *s)
{
    int64_t going_on = 0;
    bool last = s->length + 1 == s->longest;
    for (int64_t i = 0; i < s->best_count; i++) {
        const candidate *c = &s->best[i];
        if (last || sgm__is_end(s->options, c->token)) {
            if (i < s->beams)
                finish(s, c);
        } else if (going_on < s->beams) {
            follow(s, c, c->score, &s->next[going_on]);
            s->parents[going_on++] = c->beam;
        }
    }
    beam *now = s->next;
    s->next = s->running;
    s->running = now;
    s->length++;
    return going_on == s->beams;
}

/* Whether the best beam may become better than the worst finished text. */
static bool may_improve(const search *s)
{
    double best = s->running[0].score / pow((double)s->length, sgm__length_penalty(s->options));
    return s->finished_count < s->beams || best > s->finished[s->beams - 1].score;
}

/* All beams read the beginning; then step by step what each goes on with. */
static sgm_status run(search *s, const sgm_continuation *given)
{
    sgm_generator *g = s->generator;
    for (int64_t i = 0; i < s->beams; i++)
        s->tokens[i] = given->begin;
    SGM_TRY(sgm__generator_read_many(g, s->tokens, (int64_t)given->begin_count - 1));
    for (int64_t i = 0; i < s->beams; i++)
        s->tokens[i] = given->begin + given->begin_count - 1;
    for (;;) {
        SGM_TRY(sgm__generator_read_many(g, s->tokens, 1));
        SGM_TRY(sgm__generator_output(g, SGM__PROBABILITIES));
        SGM_TRY(look_for_best(s));
        if (!choose(s) || !may_improve(s))
            return SGM_OK;
        SGM_TRY(sgm__generator_take_rows(g, s->parents));
        for (int64_t i = 0; i < s->beams; i++)
            s->tokens[i] = &s->running[i].tokens[s->length - 1];
    }
}

sgm_status sgm__beams_generate(sgm_generator *g, sgm_continuation *given, const sgm_generation_options *o)
{
    search s = {.generator = g, .options = o, .beams = o->beams, .longest = given->count};
    given->count = 0;
    if (s.longest == 0)
        return SGM_OK;
    sgm_status status = begin(&s);
    if (status == SGM_OK)
        status = run(&s, given);
    const beam *best = s.finished;
    for (size_t i = 0; status == SGM_OK && i < best->length; i++) {
        if (given->tokens != NULL)
            given->tokens[i] = best->tokens[i];
        given->count++;
        if (o->told != NULL && !o->told(given->user, best->tokens[i]))
            break;
    }
    end(&s);
    return status;
}
