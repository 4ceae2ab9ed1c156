/* Criteria as text: a recursive-descent reader with errors that name the column, and a writer whose text
 * reads back as an equal tree.
 *
 *   or       := and { "or" and }
 *   and      := repeated { "and" repeated }
 *   repeated := not { "repeated" COUNT "times" [ "in a row" ] }
 *   not      := "not" not | one
 *   one      := "(" or ")" | "external" STRING | IDENTIFIER comparison
 *
 * Tokens come from src/text/phrase.c. Rules (rule.c) and hooks (hook_text.c) read criteria as a part of
 * their own text with sgm__criteria_read; sgm_criteria_parse reads a text that is nothing else. The reader
 * only calls the constructors of criteria.c, which check values and sizes. */
#include "hooks/when/criteria.h"
#include "metrics/metrics.h"

#include <stdio.h>

/* Every part of a tree takes at most a negation and a bracket. */
#define DEEPEST_TEXT (2 * SGM__CRITERIA_DEEPEST + 2)

/* The place in the text, and the time step at which the criteria are checked, which `stalls 6 epochs`
 * needs. */
typedef struct reader {
    sgm__phrase *phrase;
    sgm_time_step *step;
    bool *step_known; /* false: the first unit of time fills in `step` */
} reader;

static sgm_status read_or(reader *r, sgm_criteria **criteria);

/* The direction when the text has none: losses, costs and errors should fall, other values rise. Reader
 * and writer must agree on it. */
static sgm_extremum default_extremum(const char *identifier)
{
    return sgm__is_better_below(identifier) ? SGM_MINIMUM : SGM_MAXIMUM;
}

/* --- reading --- */

/* Hands on what a constructor gave for the token at `at`; if that is NULL, puts the column before its
 * error. */
static sgm_status made(const reader *r, size_t at, sgm_criteria *made_criteria, sgm_criteria **criteria)
{
    *criteria = made_criteria;
    if (made_criteria != NULL)
        return SGM_OK;
    return sgm_last_status() == SGM_ERROR_MEMORY ? SGM_ERROR_MEMORY : sgm__phrase_within(r->phrase, at);
}

/* "3 times", then perhaps "in a row" */
static sgm_status read_times(reader *r, int64_t *times, bool *in_a_row)
{
    static const char *const words[] = {"times"};
    sgm__phrase *p = r->phrase;
    SGM_TRY(sgm__phrase_count(p, "times", times));
    if (!sgm__phrase_take(p, "times") && !sgm__phrase_take(p, "time"))
        return sgm__phrase_expected(p, "times", words, 1);
    *in_a_row = sgm__phrase_take(p, "in");
    if (*in_a_row && !(sgm__phrase_take(p, "a") && sgm__phrase_take(p, "row")))
        return sgm__phrase_expected(p, "'in a row'", (const char *const[]){"a", "row"}, 2);
    return SGM_OK;
}

/* `x > 5`, `x becomes > 5`. It is the last kind that is tried, so the error at its end lists all of them. */
static sgm_status read_comparison(reader *r, const char *identifier, size_t at, sgm_criteria **criteria)
{
    static const char *const signs[] = {">", ">=", "==", "<=", "<"};
    static const char *const words[] = {"becomes", "reaches", "increases", "decreases", "stalls"};
    bool edge = sgm__phrase_take(r->phrase, "becomes");
    double value = 0;
    for (int i = 0; i < 5; i++)
        if (sgm__phrase_take(r->phrase, signs[i])) {
            SGM_TRY(sgm__phrase_number(r->phrase, &value));
            return made(r, at, sgm_threshold_criteria(identifier, (sgm_comparison)i, value, edge), criteria);
        }
    if (edge)
        return sgm__phrase_expected(r->phrase, "'>', '>=', '==', '<=' or '<'", NULL, 0);
    return sgm__phrase_expected(
        r->phrase, "'>', '>=', '==', '<=', '<', becomes, reaches, increases, decreases or stalls", words, 5);
}

/* `x reaches maximum` is an extremum; `x reaches 0.98 [from below]` a value that is reached once. */
static sgm_status read_reaches(reader *r, const char *identifier, size_t at, sgm_criteria **criteria)
{
    static const char *const words[] = {"maximum", "minimum"}, *const directions[] = {"below", "above"};
    sgm__phrase *p = r->phrase;
    double value = 0;
    sgm_extremum direction = default_extremum(identifier);
    for (int i = 0; i < 2; i++)
        if (sgm__phrase_take(p, words[i]))
            return made(r, at, sgm_extremum_criteria(identifier, (sgm_extremum)i), criteria);
    if (p->kind != SGM__PHRASE_NUMBER)
        return sgm__phrase_expected(p, "maximum, minimum or a number", words, 2);
    SGM_TRY(sgm__phrase_number(p, &value));
    if (sgm__phrase_take(p, "from")) {
        direction = sgm__phrase_is(p, "above") ? SGM_MINIMUM : SGM_MAXIMUM;
        if (!sgm__phrase_take(p, "above") && !sgm__phrase_take(p, "below"))
            return sgm__phrase_expected(p, "below or above", directions, 2);
    }
    return made(r, at, sgm_reaching_criteria(identifier, direction, value), criteria);
}

/* The unit behind a count, `at`: turns *count from epochs or iterations into checks, of which there is one
 * every `interval` of them. A rule without a step of its own takes the first unit as its step. A unit that
 * is not the step's, or a count that is no multiple of the interval, has no exact number of checks, and is
 * an error. */
static sgm_status read_unit(reader *r, size_t at, int64_t *count)
{
    static const char *const words[] = {"epochs", "iterations", "times"};
    sgm__phrase *p = r->phrase;
    sgm_time_scale scale = SGM_EPOCH;
    if (sgm__phrase_take(p, "times") || sgm__phrase_take(p, "time"))
        return SGM_OK;
    sgm__phrase before = *p;
    if (!sgm__phrase_scale(p, &scale) || (scale != SGM_EPOCH && scale != SGM_ITERATION))
        return sgm__phrase_expected(&before, "epochs, iterations or times", words, 3);
    if (!*r->step_known) {
        *r->step = sgm_every(1, scale);
        *r->step_known = true;
    }
    if (scale != r->step->scale)
        return sgm__phrase_fail(p, before.at,
                                "this is not checked by %ss; give the number of checks: %lld times",
                                sgm_time_scale_name(scale), (long long)*count);
    int64_t interval = r->step->interval > 0 ? r->step->interval : 1;
    if (*count % interval != 0)
        return sgm__phrase_fail(p, at, "this is checked every %lld %ss; give a multiple of %lld, or times",
                                (long long)interval, sgm_time_scale_name(scale), (long long)interval);
    *count /= interval;
    return SGM_OK;
}

/* `x stalls 5 times [below maximum]`. */
static sgm_status read_stalls(reader *r, const char *identifier, size_t at, sgm_criteria **criteria)
{
    static const char *const words[] = {"maximum", "minimum"};
    sgm__phrase *p = r->phrase;
    size_t count_at = p->at;
    int64_t count = 1;
    sgm_extremum extremum = default_extremum(identifier);
    SGM_TRY(sgm__phrase_count(p, "epochs, iterations or times", &count));
    SGM_TRY(read_unit(r, count_at, &count));
    bool below = sgm__phrase_is(p, "below");
    if (sgm__phrase_take(p, "below") || sgm__phrase_take(p, "above")) {
        extremum = below ? SGM_MAXIMUM : SGM_MINIMUM;
        if (!sgm__phrase_take(p, words[extremum]))
            return sgm__phrase_expected(p, words[extremum], &words[extremum], 1);
    }
    return made(r, at, sgm_stalling_criteria(identifier, extremum, count), criteria);
}

/* "x increases", "x increases 3 times in a row" */
static sgm_status read_change(reader *r, size_t at, sgm_criteria *change, sgm_criteria **criteria)
{
    int64_t times = 1;
    bool in_a_row = false;
    SGM_TRY(made(r, at, change, criteria));
    if (r->phrase->kind != SGM__PHRASE_NUMBER)
        return SGM_OK;
    SGM_TRY(read_times(r, &times, &in_a_row));
    return made(r, at, sgm_repeated_criteria(*criteria, times, in_a_row), criteria);
}

/* What holds of the value of an identifier; the identifier has been read. */
static sgm_status read_of(reader *r, const char *identifier, size_t at, sgm_criteria **criteria)
{
    if (sgm__phrase_take(r->phrase, "reaches"))
        return read_reaches(r, identifier, at, criteria);
    if (sgm__phrase_take(r->phrase, "stalls"))
        return read_stalls(r, identifier, at, criteria);
    if (sgm__phrase_take(r->phrase, "increases"))
        return read_change(r, at, sgm_increasing_criteria(identifier), criteria);
    if (sgm__phrase_take(r->phrase, "decreases"))
        return read_change(r, at, sgm_decreasing_criteria(identifier), criteria);
    return read_comparison(r, identifier, at, criteria);
}

/* Behind "(". Brackets only group: the tree has no node for them. */
static sgm_status read_brackets(reader *r, sgm_criteria **criteria)
{
    SGM_TRY(read_or(r, criteria));
    if (!sgm__phrase_take(r->phrase, ")"))
        return sgm__phrase_expected(r->phrase, "')', and, or or repeated",
                                    (const char *const[]){"and", "or", "repeated"}, 3);
    return SGM_OK;
}

/* Behind `external`: a name in quotes. */
static sgm_status read_external(reader *r, size_t at, sgm_criteria **criteria)
{
    char *name = NULL;
    SGM_TRY(sgm__phrase_string(r->phrase, "a name in quotes", &name));
    sgm_status status = made(r, at, sgm_external_criteria(name), criteria);
    sgm__free(name);
    return status;
}

/* A bracket, an external criterion, or what holds of one value. */
static sgm_status read_one(reader *r, sgm_criteria **criteria)
{
    size_t at = r->phrase->at;
    char *identifier = NULL;
    if (sgm__phrase_take(r->phrase, "("))
        return read_brackets(r, criteria);
    if (sgm__phrase_take(r->phrase, "external"))
        return read_external(r, at, criteria);
    SGM_TRY(sgm__phrase_identifier(r->phrase, &identifier));
    sgm_status status = read_of(r, identifier, at, criteria);
    sgm__free(identifier);
    return status;
}

/* Counts the depth before it goes deeper: each bracket passes through here, too. */
static sgm_status read_not(reader *r, sgm_criteria **criteria)
{
    size_t at = r->phrase->at;
    if (r->phrase->depth >= DEEPEST_TEXT)
        return sgm__phrase_fail(r->phrase, at, "brackets and negations go at most %d deep", DEEPEST_TEXT);
    r->phrase->depth++;
    bool negated = sgm__phrase_take(r->phrase, "not");
    sgm_status status = negated ? read_not(r, criteria) : read_one(r, criteria);
    r->phrase->depth--;
    if (status == SGM_OK && negated)
        status = made(r, at, sgm_not_criteria(*criteria), criteria);
    return status;
}

/* `repeated` binds to what stands before it, also several times. */
static sgm_status read_repeated(reader *r, sgm_criteria **criteria)
{
    size_t at = r->phrase->at;
    int64_t times = 1;
    bool in_a_row = false;
    SGM_TRY(read_not(r, criteria));
    while (sgm__phrase_take(r->phrase, "repeated")) {
        SGM_TRY(read_times(r, &times, &in_a_row));
        SGM_TRY(made(r, at, sgm_repeated_criteria(*criteria, times, in_a_row), criteria));
    }
    return SGM_OK;
}

/* Parts with `word` between them. On failure *criteria is what was read so far, which sgm__criteria_read
 * frees; `join` frees its parts itself, and then *criteria is NULL. */
static sgm_status read_joined(reader *r, const char *word, sgm_status (*read_part)(reader *, sgm_criteria **),
                              sgm_criteria *(*join)(sgm_criteria *, sgm_criteria *), sgm_criteria **criteria)
{
    SGM_TRY(read_part(r, criteria));
    for (size_t at = r->phrase->at; sgm__phrase_take(r->phrase, word); at = r->phrase->at) {
        sgm_criteria *part = NULL;
        sgm_status status = read_part(r, &part);
        if (status != SGM_OK) {
            sgm_criteria_free(part);
            return status;
        }
        SGM_TRY(made(r, at, join(*criteria, part), criteria));
    }
    return SGM_OK;
}

static sgm_status read_and(reader *r, sgm_criteria **criteria)
{
    return read_joined(r, "and", read_repeated, sgm_and_criteria, criteria);
}

static sgm_status read_or(reader *r, sgm_criteria **criteria)
{
    return read_joined(r, "or", read_and, sgm_or_criteria, criteria);
}

/* On failure everything that was read is freed, and *criteria is NULL. */
sgm_status sgm__criteria_read(sgm__phrase *phrase, sgm_time_step *step, bool *step_known,
                              sgm_criteria **criteria)
{
    reader r = {phrase, step, step_known};
    *criteria = NULL;
    sgm_status status = read_or(&r, criteria);
    if (status != SGM_OK) {
        sgm_criteria_free(*criteria);
        *criteria = NULL;
    }
    return status;
}

/* Without a step no unit of time fits (criteria are not checked at starts), so only `times` can be used. */
sgm_criteria *sgm_criteria_parse(const char *text, const sgm_time_step *step)
{
    /* Without a step no unit of time fits. */
    sgm_time_step when = step != NULL ? *step : sgm_every(1, SGM_START);
    bool known = true;
    sgm__phrase phrase;
    sgm_criteria *criteria = NULL;
    if (sgm__phrase_begin(&phrase, text) != SGM_OK ||
        sgm__criteria_read(&phrase, &when, &known, &criteria) != SGM_OK)
        return NULL;
    if (phrase.kind == SGM__PHRASE_END)
        return criteria;
    sgm__phrase_expected(&phrase, "and, or, repeated or the end",
                         (const char *const[]){"and", "or", "repeated"}, 3);
    sgm_criteria_free(criteria);
    return NULL;
}

/* --- writing --- */

/* How tightly a node's text binds, 0 the least: a part is put in brackets when it binds less tightly than
 * its place asks for. `x increases 3 times` is a repetition with a text of its own, which binds like a
 * leaf. */
static int binding(const sgm_criteria *node)
{
    switch (node->kind) {
    case SGM__CRITERIA_OR:
        return 0;
    case SGM__CRITERIA_AND:
        return 1;
    case SGM__CRITERIA_REPEATED:
        return node->parts[0]->kind == SGM__CRITERIA_CHANGE ? 4 : 2;
    case SGM__CRITERIA_NOT:
        return 3;
    default:
        return 4;
    }
}

/* A part, in brackets if it has to be. */
static void append_within(sgm__text *text, const sgm_criteria *node, int minimum, const sgm_time_step *step)
{
    bool brackets = binding(node) < minimum;
    sgm__text_append(text, brackets ? "(" : "");
    sgm__append_criteria(text, node, step);
    sgm__text_append(text, brackets ? ")" : "");
}

/* Parts must bind more tightly than the node itself: an `and` in an `and` would read back flat. */
static void append_joined(sgm__text *text, const sgm_criteria *node, const char *word,
                          const sgm_time_step *step)
{
    for (size_t i = 0; i < node->part_count; i++) {
        sgm__text_append(text, "%s", i > 0 ? word : "");
        append_within(text, node->parts[i], binding(node) + 1, step);
    }
}

/* `x increases 3 times` and `(...) repeated 3 times in a row`. */
static void append_repeated(sgm__text *text, const sgm_criteria *node, const sgm_time_step *step)
{
    append_within(text, node->parts[0], 2, step);
    sgm__text_append(text, "%s %lld time%s%s",
                     node->parts[0]->kind == SGM__CRITERIA_CHANGE ? "" : " repeated", (long long)node->count,
                     node->count == 1 ? "" : "s", node->flag ? " in a row" : "");
}

/* In the unit of the step if there is one: checks times interval. A count that would be too large for the
 * reader is written in times. */
static void append_stalls(sgm__text *text, const sgm_criteria *node, const sgm_time_step *step)
{
    int64_t interval = step != NULL && step->interval > 0 ? step->interval : 1, count;
    bool in_time = step != NULL && (step->scale == SGM_EPOCH || step->scale == SGM_ITERATION) &&
                   !__builtin_mul_overflow(node->count, interval, &count) &&
                   count <= SGM__PHRASE_MAXIMUM_COUNT;
    if (!in_time)
        count = node->count;
    sgm__text_append(text, "%s stalls %lld %s%s", node->identifier, (long long)count,
                     in_time ? sgm_time_scale_name(step->scale) : "time", count == 1 ? "" : "s");
    if (node->extremum != default_extremum(node->identifier))
        sgm__text_append(text, node->extremum == SGM_MAXIMUM ? " below maximum" : " above minimum");
}

/* The direction only where it is not the default of the identifier. */
static void append_reaches(sgm__text *text, const sgm_criteria *node)
{
    sgm__text_append(text, "%s reaches ", node->identifier);
    sgm__append_number(text, node->value);
    if (node->extremum != default_extremum(node->identifier))
        sgm__text_append(text, node->extremum == SGM_MAXIMUM ? " from below" : " from above");
}

/* Signs are in the order of sgm_comparison, as in read_comparison. */
static void append_threshold(sgm__text *text, const sgm_criteria *node)
{
    static const char *const signs[] = {">", ">=", "==", "<=", "<"};
    sgm__text_append(text, "%s %s%s ", node->identifier, node->flag ? "becomes " : "",
                     signs[node->comparison]);
    sgm__append_number(text, node->value);
}

/* Writes what the reader reads: each case is the inverse of one read_... function. */
void sgm__append_criteria(sgm__text *text, const sgm_criteria *node, const sgm_time_step *step)
{
    switch (node->kind) {
    case SGM__CRITERIA_THRESHOLD:
        append_threshold(text, node);
        break;
    case SGM__CRITERIA_EXTREMUM:
        sgm__text_append(text, "%s reaches %s", node->identifier,
                         node->extremum == SGM_MAXIMUM ? "maximum" : "minimum");
        break;
    case SGM__CRITERIA_CHANGE:
        sgm__text_append(text, "%s %s", node->identifier,
                         node->extremum == SGM_MAXIMUM ? "increases" : "decreases");
        break;
    case SGM__CRITERIA_REACHES:
        append_reaches(text, node);
        break;
    case SGM__CRITERIA_STALLS:
        append_stalls(text, node, step);
        break;
    case SGM__CRITERIA_REPEATED:
        append_repeated(text, node, step);
        break;
    case SGM__CRITERIA_AND:
        append_joined(text, node, " and ", step);
        break;
    case SGM__CRITERIA_OR:
        append_joined(text, node, " or ", step);
        break;
    case SGM__CRITERIA_NOT:
        sgm__text_append(text, "not ");
        append_within(text, node->parts[0], 3, step);
        break;
    case SGM__CRITERIA_EXTERNAL:
        sgm__text_append(text, "external ");
        sgm__append_string(text, node->identifier);
        break;
    }
}

char *sgm_criteria_text(const sgm_criteria *criteria, const sgm_time_step *step)
{
    sgm__text text = {0};
    if (criteria == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there are no criteria to write");
        return NULL;
    }
    sgm__append_criteria(&text, criteria, step);
    return sgm__text_take(&text);
}
