/* Criteria: whether something holds of a training's values, check after check.
 *
 *     sgm_criteria *stalled = sgm_criteria_stalls("validation.accuracy", SGM_MAXIMUM, 5);
 *     sgm_criteria *good = sgm_criteria_threshold("training.loss", SGM_BELOW, 0.1, false);
 *     sgm_criteria *done = sgm_criteria_or(stalled, good);
 *
 * or as text: `validation.accuracy stalls 5 times or training.loss < 0.1`. Criteria are small trees with a
 * memory of earlier checks. They get values through a function, and know nothing of where these come from. A
 * value that is missing makes what asks for it neither true nor false: nothing fires (nor does its `not`), no
 * memory changes, and the check says what was missing. NaN is a value that satisfies nothing.
 *
 * Parts given to other criteria belong to them, also when the call fails; NULL is passed on, so a program may
 * check once. Criteria are used by one thread at a time, but for toggle and hold.
 */
#ifndef SIGMA_CRITERIA_H
#define SIGMA_CRITERIA_H

#include <sigma/time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_criteria sgm_criteria;

typedef enum sgm_comparison {
    SGM_ABOVE,    /* > */
    SGM_AT_LEAST, /* >= */
    SGM_EQUAL_TO, /* == */
    SGM_AT_MOST,  /* <= */
    SGM_BELOW     /* < */
} sgm_comparison;
typedef enum sgm_extremum { SGM_MAXIMUM, SGM_MINIMUM } sgm_extremum;

/* `x > 5`; with `edge` only when it becomes true, `x becomes > 5` (also at a first check that finds it true).
 */
SGM_API sgm_criteria *sgm_criteria_threshold(const char *identifier, sgm_comparison comparison, double value,
                                             bool edge);
/* `x reaches maximum`: on each value beyond all before; the first check always fires. */
SGM_API sgm_criteria *sgm_criteria_extremum(const char *identifier, sgm_extremum extremum);
/* `x increases`, `x decreases`: against the check before; the first check does not fire. */
SGM_API sgm_criteria *sgm_criteria_increases(const char *identifier);
SGM_API sgm_criteria *sgm_criteria_decreases(const char *identifier);
/* `x reaches 0.98 from below`: once, when the value is there or beyond. SGM_MAXIMUM: from below, SGM_MINIMUM:
 * from above. */
SGM_API sgm_criteria *sgm_criteria_reaches(const char *identifier, sgm_extremum direction, double value);
/* `x stalls 5 times below maximum`: no new extremum for this many checks; then counts anew. */
SGM_API sgm_criteria *sgm_criteria_stalls(const char *identifier, sgm_extremum extremum, int64_t checks);
/* `... repeated 3 times in a row`: every time the part has fired this often, without a check in between at
 * which it did not if `in_a_row`. Repeating what repeats in the same way multiplies. */
SGM_API sgm_criteria *sgm_criteria_repeated(sgm_criteria *part, int64_t times, bool in_a_row);
/* From left to right, and no further than needed: what is not reached is not checked, and its memory stays.
 */
SGM_API sgm_criteria *sgm_criteria_and(sgm_criteria *first, sgm_criteria *second);
SGM_API sgm_criteria *sgm_criteria_or(sgm_criteria *first, sgm_criteria *second);
SGM_API sgm_criteria *sgm_criteria_not(sgm_criteria *part);
/* `external "button"`: fires when someone outside lets it. At first it does not. */
SGM_API sgm_criteria *sgm_criteria_external(const char *name);
/* Any thread. All external parts of this name: toggle turns them on for good, or off for good when they were
 * on; hold lets one more check fire, unless they were toggled. SGM_ERROR_NOT_FOUND: there are none. */
SGM_API sgm_status sgm_criteria_toggle(sgm_criteria *criteria, const char *name);
SGM_API sgm_status sgm_criteria_hold(sgm_criteria *criteria, const char *name);

SGM_API void sgm_criteria_free(sgm_criteria *criteria);
SGM_API sgm_criteria *sgm_criteria_copy(const sgm_criteria *criteria); /* memory included */
/* Whether they are built alike, with the same numbers; not what they remember. */
SGM_API bool sgm_criteria_equal(const sgm_criteria *a, const sgm_criteria *b);
/* What they ask for, in the order of the text; some may come twice. NULL: past the last. */
SGM_API const char *sgm_criteria_identifier(const sgm_criteria *criteria, size_t index);

/* Gives the value of an identifier. SGM_ERROR_NOT_FOUND: it is missing; other failures end the check. */
typedef sgm_status (*sgm_lookup_function)(void *user, const char *identifier, double *value);
/* One check. `missing` (may be NULL) gets the first identifier that had no value, NULL if all had. */
SGM_API sgm_status sgm_criteria_check(sgm_criteria *criteria, sgm_lookup_function lookup, void *user,
                                      bool *fires, const char **missing);

/* What they remember, as numbers (some may be infinite), so that a resumed training goes on exactly.
 * `numbers` NULL: only *count; else *count is the room, and becomes how many there are. */
SGM_API sgm_status sgm_criteria_get_state(const sgm_criteria *criteria, double *numbers, size_t *count);
SGM_API sgm_status sgm_criteria_set_state(sgm_criteria *criteria, const double *numbers, size_t count);
SGM_API void sgm_criteria_reset(sgm_criteria *criteria); /* to what they were before the first check */

/* `a.b > 1 and (c increases 3 times in a row or not d reaches 5)`; `not` binds before `repeated`, then `and`,
 * then `or`. Without a direction, `reaches 0.9` is from below and `stalls` is below the maximum, but for
 * identifiers whose last part contains "loss", "cost", "error" or "perplexity": those should fall. `step`
 * says when the criteria are checked, so that `stalls 6 epochs` is 3 checks of a step every 2 epochs; NULL:
 * only `stalls 3 times`. Errors name the column. */
SGM_API sgm_criteria *sgm_criteria_parse(const char *text, const sgm_time_step *step);
/* As sgm_criteria_parse reads it; free with sgm_string_free. */
SGM_API char *sgm_criteria_text(const sgm_criteria *criteria, const sgm_time_step *step);

#ifdef __cplusplus
}
#endif
#endif
