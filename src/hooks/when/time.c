/* Scales of events (iteration, epoch, start, stop, pause, resume, reset), and the steps that count them:
 * "every 10 iterations", "after 3 epochs", "at start".
 *
 * A step says when; a count (sgm_time_count) says how far a holder has come, and the hook engine keeps one
 * for each attached hook (hooks_run.c), also in checkpoints. The events themselves are told by the
 * training loop. A step is data without a memory, so one may serve many holders. */
#include "hooks/when/criteria.h"
#include "text/phrase.h"

#include <math.h>
#include <stdio.h>

/* --- scales --- */

static const char *const scale_names[] = {
#define SCALE_NAME(name, text) text,
    SGM_TIME_SCALE_LIST(SCALE_NAME)
#undef SCALE_NAME
};

const char *sgm_time_scale_name(sgm_time_scale scale)
{
    return (size_t)scale < SGM_TIME_SCALE_COUNT ? scale_names[scale] : "unknown";
}

/* Exact names only; the error suggests the nearest and lists all. */
sgm_status sgm_time_scale_parse(const char *name, sgm_time_scale *scale)
{
    const char *wanted = name != NULL ? name : "";
    for (size_t i = 0; i < SGM_TIME_SCALE_COUNT; i++)
        if (strcmp(wanted, scale_names[i]) == 0) {
            *scale = (sgm_time_scale)i;
            return SGM_OK;
        }
    const char *near = sgm__nearest(wanted, scale_names, SGM_TIME_SCALE_COUNT);
    return sgm_fail(SGM_ERROR_NOT_FOUND,
                    "unknown time scale '%.40s'%s%s%s There are iteration, epoch, start, stop, pause, resume "
                    "and reset",
                    wanted, near != NULL ? "; did you mean '" : ".", near != NULL ? near : "",
                    near != NULL ? "'?" : "");
}

/* Events that follow no rhythm, as opposed to iterations and epochs. */
static bool is_lifecycle(sgm_time_scale scale)
{
    return scale != SGM_ITERATION && scale != SGM_EPOCH;
}

/* --- steps --- */

/* An interval of 0 counts as 1, so that a step of zeros is every iteration. */
static int64_t interval_of(const sgm_time_step *step)
{
    return step->interval > 0 ? step->interval : 1;
}

/* How often it is due in all; 0: for ever. */
static int64_t live_of(const sgm_time_step *step)
{
    return step->live > 0 ? step->live : 0;
}

sgm_time_step sgm_every(int64_t interval, sgm_time_scale scale)
{
    return (sgm_time_step){.scale = scale, .interval = interval > 0 ? interval : 1};
}

/* Once, at the count-th event: a step of that interval that lives for one time. */
sgm_time_step sgm_after(int64_t count, sgm_time_scale scale)
{
    return sgm_live(sgm_every(count, scale), 1);
}

/* Fewer than one time means for ever, as 0 does. */
sgm_time_step sgm_live(sgm_time_step step, int64_t times)
{
    step.live = times > 0 ? times : 0;
    return step;
}

bool sgm_time_step_equal(const sgm_time_step *a, const sgm_time_step *b)
{
    return a->scale == b->scale && interval_of(a) == interval_of(b) && live_of(a) == live_of(b);
}

/* Whether a hook with step b may require a hook with step a. Of one scale, all that is due at `b` must be
 * due at `a` too: interval_a divides interval_b, and with an end, b's last event comes while `a` still
 * lives, live_b * interval_b <= live_a * interval_a. An epoch step may also rest on an iteration step
 * without an end, of any interval: each epoch ends with an iteration, and the required hook then keeps its
 * own step. */
bool sgm_time_step_covers(const sgm_time_step *a, const sgm_time_step *b)
{
    if (a->scale != b->scale)
        return a->scale == SGM_ITERATION && b->scale == SGM_EPOCH && live_of(a) == 0;
    if (interval_of(b) % interval_of(a) != 0)
        return false;
    /* The last event of b must come while a still lives. */
    int64_t needed;
    if (live_of(a) == 0)
        return true;
    return live_of(b) > 0 && !__builtin_mul_overflow(live_of(b), interval_of(b) / interval_of(a), &needed) &&
           needed <= live_of(a);
}

/* --- counting --- */

bool sgm_time_count_is_dead(const sgm_time_step *step, const sgm_time_count *count)
{
    return live_of(step) > 0 && count->used >= live_of(step);
}

/* Counts down to the event that is due. A `left` beyond the interval comes from a checkpoint of a run with
 * a longer one, and begins anew. */
bool sgm_time_count_event(const sgm_time_step *step, sgm_time_count *count, sgm_time_scale scale)
{
    if (scale != step->scale || sgm_time_count_is_dead(step, count))
        return false;
    /* A count from a checkpoint may be one of a longer interval. */
    if (count->left <= 0 || count->left > interval_of(step))
        count->left = interval_of(step);
    if (--count->left > 0)
        return false;
    count->used++;
    return true;
}

/* --- steps as text --- */

void sgm__append_step(sgm__text *text, const sgm_time_step *step)
{
    char buffer[96];
    sgm__text_append(text, "%s", sgm_time_step_text(step, buffer, sizeof buffer));
}

/* "after" only for a life of one time, which sgm_time_step_parse makes of it again. */
char *sgm_time_step_text(const sgm_time_step *step, char *buffer, size_t size)
{
    const char *scale = sgm_time_scale_name(step->scale);
    long long interval = interval_of(step), live = live_of(step);
    char times[40] = "";
    if (live > 1)
        snprintf(times, sizeof times, ", %lld times", live);
    if (live == 1)
        snprintf(buffer, size, "after %lld %s%s", interval, scale, interval == 1 ? "" : "s");
    else if (interval > 1)
        snprintf(buffer, size, "every %lld %ss%s", interval, scale, times);
    else
        snprintf(buffer, size, "%s %s%s", is_lifecycle(step->scale) ? "at" : "every", scale, times);
    return buffer;
}

/* Singular and plural of each scale, one behind the other: word i is of scale i / 2. */
static const char *const scale_words[] = {
#define SCALE_WORDS(name, text) text, text "s",
    SGM_TIME_SCALE_LIST(SCALE_WORDS)
#undef SCALE_WORDS
};
#define SCALE_WORD_COUNT (sizeof scale_words / sizeof *scale_words)

/* Takes "epoch" or "epochs"; false: the token is no scale, and stays. */
bool sgm__phrase_scale(sgm__phrase *phrase, sgm_time_scale *scale)
{
    for (size_t i = 0; i < SCALE_WORD_COUNT; i++)
        if (sgm__phrase_take(phrase, scale_words[i])) {
            *scale = (sgm_time_scale)(i / 2);
            return true;
        }
    return false;
}

/* A scale or an error that lists them and suggests the nearest word. */
static sgm_status need_scale(sgm__phrase *phrase, sgm_time_scale *scale)
{
    if (sgm__phrase_scale(phrase, scale))
        return SGM_OK;
    return sgm__phrase_expected(phrase, "epochs, iterations or an event (start, stop, pause, resume, reset)",
                                scale_words, SCALE_WORD_COUNT);
}

bool sgm__phrase_is_step(const sgm__phrase *phrase)
{
    return sgm__phrase_is(phrase, "every") || sgm__phrase_is(phrase, "after") || sgm__phrase_is(phrase, "at");
}

/* Behind "at". A lifecycle event without a number is meant each time ("at start"), one with a number only
 * that time ("at epoch 5", "at stop 2"). */
static sgm_status parse_at(sgm__phrase *phrase, sgm_time_step *step)
{
    sgm_time_scale scale = SGM_EPOCH;
    int64_t count = 1;
    SGM_TRY(need_scale(phrase, &scale));
    if (is_lifecycle(scale) && phrase->kind != SGM__PHRASE_NUMBER) {
        *step = sgm_every(1, scale);
        return SGM_OK;
    }
    SGM_TRY(sgm__phrase_count(phrase, "the event", &count));
    *step = sgm_after(count, scale);
    return SGM_OK;
}

/* Behind a step without an end: ", 3 times", ", once". */
static sgm_status parse_live(sgm__phrase *phrase, sgm_time_step *step)
{
    int64_t live = 1;
    if (!sgm__phrase_take(phrase, ","))
        return SGM_OK;
    if (!sgm__phrase_take(phrase, "once")) {
        SGM_TRY(sgm__phrase_count(phrase, "times, or once", &live));
        if (!sgm__phrase_take(phrase, "times") && !sgm__phrase_take(phrase, "time"))
            return sgm__phrase_expected(phrase, "times", (const char *const[]){"times"}, 1);
    }
    *step = sgm_live(*step, live);
    return SGM_OK;
}

/* Reads a step as part of a longer text, up to the token behind it. */
sgm_status sgm__phrase_step(sgm__phrase *phrase, sgm_time_step *step)
{
    static const char *const words[] = {"every", "after", "at"};
    sgm_time_scale scale = SGM_EPOCH;
    int64_t count = 1;
    if (sgm__phrase_take(phrase, "at")) {
        SGM_TRY(parse_at(phrase, step));
        return step->live == 0 ? parse_live(phrase, step) : SGM_OK;
    }
    bool once = sgm__phrase_is(phrase, "after");
    if (!once && !sgm__phrase_is(phrase, "every"))
        return sgm__phrase_expected(phrase, "every, after or at", words, 3);
    sgm__phrase_next(phrase);
    if (once || phrase->kind == SGM__PHRASE_NUMBER)
        SGM_TRY(sgm__phrase_count(phrase, "events", &count));
    SGM_TRY(need_scale(phrase, &scale));
    *step = once ? sgm_after(count, scale) : sgm_every(count, scale);
    return once ? SGM_OK : parse_live(phrase, step);
}

/* The whole text must be a step; *step stays as it was on failure. */
sgm_status sgm_time_step_parse(const char *text, sgm_time_step *step)
{
    sgm__phrase phrase;
    sgm_time_step read;
    SGM_TRY(sgm__phrase_begin(&phrase, text));
    SGM_TRY(sgm__phrase_step(&phrase, &read));
    if (phrase.kind != SGM__PHRASE_END)
        return sgm__phrase_expected(&phrase, "nothing more", NULL, 0);
    *step = read;
    return SGM_OK;
}
