/* Going on with texts: each next token is drawn by the probabilities that the network gives, which is
 * sgm_probabilities_sample (src/data/read/sample.c), and read in turn.
 *
 * Several texts begin at place 0 together and are read side by side, a step of each at a time, so they are at
 * the same place whatever their lengths are: while one still reads what it begins with, another may draw. A
 * text that has ended reads on with another one's tokens, which nobody looks at. */
#include "infer/generate.h"
#include <sigma/text.h>

#include <math.h>

/* A text that is gone on with. */
typedef struct text {
    const sgm_continuation *given;
    size_t read, drawn; /* tokens of its beginning; tokens behind it */
    int64_t next;       /* what was drawn last */
    bool ended;
} text;

/* Texts that are read side by side. */
typedef struct group {
    sgm_generator *generator;
    const sgm_generation_options *options;
    text *texts;
    int64_t count;
    const int64_t **tokens; /* of each sequence of the generator, what is read next */
} group;

/* Replaces logits of a sequence by the probabilities with the repetition penalty (Keskar et al., 2019):
 * logits of tokens that were seen are divided by it where they are positive, and multiplied where negative.
 */
static void penalise(const sgm_generator *g, int64_t sequence, double penalty)
{
    double *values = g->probabilities + sequence * g->vocabulary, maximum = -INFINITY, sum = 0;
    const bool *seen = g->seen + sequence * g->vocabulary;
    for (int64_t i = 0; i < g->vocabulary; i++) {
        if (seen[i])
            values[i] = values[i] > 0 ? values[i] / penalty : values[i] * penalty;
        maximum = fmax(maximum, values[i]);
    }
    for (int64_t i = 0; i < g->vocabulary; i++)
        sum += values[i] = exp(values[i] - maximum);
    for (int64_t i = 0; i < g->vocabulary; i++)
        values[i] /= sum;
}

/* Draws the next token of a text. Each is drawn by seed and number, so the same seed gives the same tokens.
 */
static sgm_status draw(const group *all, int64_t index)
{
    const sgm_generator *g = all->generator;
    const sgm_generation_options *o = all->options;
    text *t = &all->texts[index];
    if (sgm__is_penalised(o))
        penalise(g, index, o->repetition_penalty);
    t->next = sgm_probabilities_sample(
        g->probabilities + index * g->vocabulary, g->vocabulary, o->seed + t->given->seed, t->drawn,
        SGM_SAMPLING(.temperature = o->temperature, .top_k = o->top_k, .top_p = o->top_p, .min_p = o->min_p,
                     .greedy = o->greedy));
    if (t->next < 0)
        return sgm__last_failure();
    if (t->given->tokens != NULL)
        t->given->tokens[t->drawn] = t->next;
    t->drawn++;
    t->ended = t->drawn == t->given->count || sgm__is_end(o, t->next);
    if (o->told != NULL && !o->told(t->given->user, t->next))
        t->ended = true;
    return SGM_OK;
}

/* How many tokens all texts that go on can read before one of them draws. */
static size_t count_known(const group *all)
{
    size_t least = SIZE_MAX;
    for (int64_t i = 0; i < all->count; i++) {
        const text *t = &all->texts[i];
        size_t known = t->read < t->given->begin_count ? t->given->begin_count - t->read - 1 : 0;
        least = !t->ended && known < least ? known : least;
    }
    return least;
}

/* Reads so many tokens of each text: of what it begins with, or one that was drawn. */
static sgm_status read_together(const group *all, size_t count)
{
    const int64_t *any = NULL;
    for (int64_t i = 0; i < all->count; i++) {
        text *t = &all->texts[i];
        bool begins = t->read < t->given->begin_count;
        all->tokens[i] = t->ended ? NULL : begins ? t->given->begin + t->read : &t->next;
        any = any == NULL ? all->tokens[i] : any;
        t->read += begins && !t->ended ? count : 0;
    }
    for (int64_t i = 0; i < all->generator->sequences; i++)
        if (i >= all->count || all->tokens[i] == NULL)
            all->tokens[i] = any;
    return sgm__generator_read_many(all->generator, all->tokens, (int64_t)count);
}

/* Draws a token of each text that has read all of its beginning. */
static sgm_status draw_together(const group *all)
{
    bool there = false;
    for (int64_t i = 0; i < all->count; i++) {
        text *t = &all->texts[i];
        if (t->ended || t->read < t->given->begin_count)
            continue;
        t->ended = t->given->count == 0;
        if (t->ended)
            continue;
        if (!there)
            SGM_TRY(sgm__generator_output(
                all->generator, sgm__is_penalised(all->options) ? SGM__LOGITS : SGM__PROBABILITIES));
        there = true;
        SGM_TRY(draw(all, i));
    }
    return SGM_OK;
}

/* Until all texts have ended. The last token is drawn but not read. */
static sgm_status go_on(const group *all)
{
    for (size_t known; (known = count_known(all)) != SIZE_MAX;) {
        if (known > 0)
            SGM_TRY(read_together(all, known));
        SGM_TRY(read_together(all, 1));
        SGM_TRY(draw_together(all));
    }
    return SGM_OK;
}

/* Goes on with `count` texts, as many as there are sequences at most, from where the generator is. */
static sgm_status go_on_drawing(sgm_generator *g, sgm_continuation *given, int64_t count,
                                const sgm_generation_options *options)
{
    group all = {.generator = g,
                 .options = options,
                 .texts = sgm__calloc((size_t)count, sizeof *all.texts),
                 .count = count,
                 .tokens = sgm__calloc((size_t)g->sequences, sizeof *all.tokens)};
    sgm_status status = all.texts != NULL && all.tokens != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < count && status == SGM_OK; i++)
        all.texts[i].given = &given[i];
    if (status == SGM_OK)
        status = go_on(&all);
    for (int64_t i = 0; i < count && all.texts != NULL; i++)
        given[i].count = all.texts[i].drawn;
    sgm__free(all.texts);
    sgm__free(all.tokens);
    return status;
}

/* The same, by beams with one text. */
static sgm_status go_on_with(sgm_generator *g, sgm_continuation *given, int64_t count,
                             const sgm_generation_options *options)
{
    g->proceed = options->proceed;
    g->proceed_user = options->user;
    sgm_status status =
        options->beams > 1 ? sgm__beams_generate(g, given, options) : go_on_drawing(g, given, count, options);
    g->proceed = NULL;
    return status;
}

/* Beams take the likeliest: what changes how tokens are drawn is a mistake. */
static sgm_status check_beams(const sgm_generator *g, const sgm_generation_options *o)
{
    if (o->beams != g->sequences)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "%lld beams want a generator of as many sequences (.sequences), this one has %lld",
                        (long long)o->beams, (long long)g->sequences);
    if (!isfinite(o->length_penalty))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the length_penalty is a finite number, not %g",
                        o->length_penalty);
    if (o->temperature != 0 || o->top_k != 0 || o->top_p != 0 || o->min_p != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "beams are the likeliest texts, of which nothing is drawn: leave out temperature, "
                        "top_k, top_p and min_p");
    if ((int64_t)o->end_count >= g->vocabulary)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%zu of %lld tokens end a text; beams want one that goes on",
                        o->end_count, (long long)g->vocabulary);
    return SGM_OK;
}

static sgm_status check_options(const sgm_generator *g, const sgm_generation_options *o)
{
    if (!(o->repetition_penalty >= 0) || !isfinite(o->repetition_penalty))
        return sgm_fail(SGM_ERROR_ARGUMENT, "the repetition_penalty is above 0, not %g",
                        o->repetition_penalty);
    if (o->end_count > 0 && o->ends == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%zu tokens that end a text are wanted, got NULL", o->end_count);
    SGM_TRY(sgm__generator_check(g, o->ends, o->end_count));
    if (o->beams < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "there is at least 1 beam, not %lld", (long long)o->beams);
    if (o->beams > 1)
        return check_beams(g, o);
    if (sgm__is_penalised(o) && !g->logits)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a repetition_penalty wants logits, but the network's output is not the softmax of "
                        "some; leave it out, or end the network with softmax_cross_entropy");
    return SGM_OK;
}

static sgm_status check_beginning(const sgm_generator *g, const sgm_continuation *given)
{
    if (given->begin == NULL || given->begin_count == 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "at least 1 token is wanted to begin with; there is none");
    return sgm__generator_check(g, given->begin, given->begin_count);
}

sgm_status sgm_generator_generate(sgm_generator *g, const int64_t *begin_tokens, size_t begin_count,
                                  int64_t *tokens, size_t count, const sgm_generation_options *given)
{
    sgm_generation_options o;
    SGM_TRY(sgm__options_read(&o, sizeof o, given, "sgm_generator_generate"));
    if (g == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_generator_generate wants a generator, got NULL");
    if (o.beams < 2)
        SGM_TRY(sgm__generator_is_single(g, "sgm_generator_generate"));
    SGM_TRY(check_options(g, &o));
    sgm_continuation only = {
        .begin = begin_tokens, .begin_count = begin_count, .tokens = tokens, .count = count, .user = o.user};
    SGM_TRY(check_beginning(g, &only));
    if (o.beams > 1)
        SGM_TRY(sgm_generator_reset(g));
    sgm_status status = go_on_with(g, &only, 1, &o);
    for (size_t i = only.count; i < count && tokens != NULL; i++)
        tokens[i] = -1;
    return status;
}

sgm_status sgm_generator_generate_all(sgm_generator *g, sgm_continuation *texts, size_t count,
                                      const sgm_generation_options *given)
{
    sgm_generation_options o;
    SGM_TRY(sgm__options_read(&o, sizeof o, given, "sgm_generator_generate_all"));
    if (g == NULL || (texts == NULL && count > 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sgm_generator_generate_all wants a generator and texts, got NULL");
    SGM_TRY(check_options(g, &o));
    size_t at_once = o.beams > 1 ? 1 : (size_t)g->sequences;
    for (size_t i = 0; i < count; i++)
        if (check_beginning(g, &texts[i]) != SGM_OK)
            return sgm__fail_within("text %zu", i);
    for (size_t i = 0; i < count; i += at_once) {
        size_t together = count - i < at_once ? count - i : at_once;
        SGM_TRY(sgm_generator_reset(g));
        SGM_TRY(go_on_with(g, texts + i, (int64_t)together, &o));
    }
    return SGM_OK;
}
