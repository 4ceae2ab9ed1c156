/* When something shall happen in a training: time steps, criteria that hold of its values, rules of both. */
#ifndef SIGMA_RULES_H
#define SIGMA_RULES_H

#include <sigma/base.h>
#include <sigma/registry.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ======== time steps ========
 *
 * Time in a training: scales of events, and steps that count them. */

/* All scales, determinate ones first, from short to long: the name (SGM_EPOCH for EPOCH), the text. */
#define SGM_TIME_SCALE_LIST(X)                                                                               \
    X(ITERATION, "iteration")                                                                                \
    X(EPOCH, "epoch")                                                                                        \
    X(START, "start")                                                                                        \
    X(STOP, "stop")                                                                                          \
    X(PAUSE, "pause")                                                                                        \
    X(RESUME, "resume")                                                                                      \
    X(RESET, "reset")
/* A scale of events. */
typedef enum sgm_time_scale {
#define SGM_TIME_SCALE_ENUM(name, text) SGM_##name,
    SGM_TIME_SCALE_LIST(SGM_TIME_SCALE_ENUM)
#undef SGM_TIME_SCALE_ENUM
        SGM_TIME_SCALE_COUNT /* how many scales there are */
} sgm_time_scale;
/* "iteration" and so on. */
SGM_API const char *sgm_time_scale_name(sgm_time_scale scale);
/* The scale of such a name; others are an error. */
SGM_API sgm_status sgm_time_scale_parse(const char *name, sgm_time_scale *scale);

/* When: every `interval` events of a scale, first at the interval-th; `live` times in all (0: for ever).
 * Events are counted from when the hook or the rule is attached; a resume goes on counting. */
typedef struct sgm_time_step {
    sgm_time_scale scale; /* whose events are counted */
    int64_t interval;     /* 0 counts as 1 */
    int64_t live;         /* times in all; 0: for ever */
} sgm_time_step;
/* A step that is due at every `interval`-th event of a scale. */
SGM_API sgm_time_step sgm_every(int64_t interval, sgm_time_scale scale);
/* A step that is due once, at the count-th event. */
SGM_API sgm_time_step sgm_after(int64_t count, sgm_time_scale scale);
/* A step that is due so many times in all, and otherwise as `step`. */
SGM_API sgm_time_step sgm_live(sgm_time_step step, int64_t times);
/* Whether scale, interval and times are the same. */
SGM_API bool sgm_time_step_equal(const sgm_time_step *a, const sgm_time_step *b);
/* Whether everything due at `b` is due at `a` too: `a` may be required by `b`. Same scale: b's interval is a
 * multiple of a's; an iteration step goes with an epoch step; lifecycle scales only with themselves; `a` must
 * live long enough. */
SGM_API bool sgm_time_step_covers(const sgm_time_step *a, const sgm_time_step *b);
/* "every 5 epochs", "after 3 iterations", "at start", as sgm_time_step_parse reads it; returns `buffer` (96
 * bytes are always enough). */
SGM_API char *sgm_time_step_text(const sgm_time_step *step, char *buffer, size_t size);
/* "every 5 epochs", "every epoch", "every 10 epochs, 3 times", "after 100 iterations", "at epoch 5" (the same
 * as "after 5 epochs"), "at stop" (at every stop); errors name the column. */
SGM_API sgm_status sgm_time_step_parse(const char *text, sgm_time_step *step);

/* A holder's count of a step: every holder (a hook in a worker) has its own. */
typedef struct sgm_time_count {
    int64_t left; /* events until due; 0: not begun */
    int64_t used; /* times it was due */
} sgm_time_count;
/* Counts one event of `scale`; true: due now. A step that has lived is never due again. */
SGM_API bool sgm_time_count_event(const sgm_time_step *step, sgm_time_count *count, sgm_time_scale scale);
/* Whether it was due as often as it lives. */
SGM_API bool sgm_time_count_is_dead(const sgm_time_step *step, const sgm_time_count *count);

/* ======== criteria ========
 *
 * Criteria: whether something holds of a training's values, check after check.
 *
 *     sgm_criteria *stalled = sgm_stalling_criteria("validation.accuracy", SGM_MAXIMUM, 5);
 *     sgm_criteria *good = sgm_threshold_criteria("training.loss", SGM_BELOW, 0.1, false);
 *     sgm_criteria *done = sgm_or_criteria(stalled, good);
 *
 * or as text: `validation.accuracy stalls 5 times or training.loss < 0.1`. Criteria are small trees with a
 * memory of earlier checks. They get values through a function, and know nothing of where these come from. A
 * value that is missing makes what asks for it neither true nor false: nothing fires (nor does its `not`), no
 * memory changes, and the check says what was missing. NaN is a value that satisfies nothing.
 *
 * Parts given to other criteria belong to them, also when the call fails; NULL is passed on, so a program may
 * check once. Criteria are used by one thread at a time, but for toggle and hold.
 */

/* Something that holds of values, or not. */
typedef struct sgm_criteria sgm_criteria;

/* How a value is compared with a number. */
typedef enum sgm_comparison {
    SGM_ABOVE,    /* > */
    SGM_AT_LEAST, /* >= */
    SGM_EQUAL_TO, /* == */
    SGM_AT_MOST,  /* <= */
    SGM_BELOW     /* < */
} sgm_comparison;
/* Which end of the values is meant. */
typedef enum sgm_extremum {
    SGM_MAXIMUM, /* the largest */
    SGM_MINIMUM  /* the smallest */
} sgm_extremum;

/* `x > 5`; with `edge` only when it becomes true, `x becomes > 5` (also at a first check that finds it true).
 */
SGM_API sgm_criteria *sgm_threshold_criteria(const char *identifier, sgm_comparison comparison, double value,
                                             bool edge);
/* `x reaches maximum`: on each value beyond all before; the first check always fires. */
SGM_API sgm_criteria *sgm_extremum_criteria(const char *identifier, sgm_extremum extremum);
/* `x increases`: above the check before; the first check does not fire. */
SGM_API sgm_criteria *sgm_increasing_criteria(const char *identifier);
/* `x decreases`: below the check before; the first check does not fire. */
SGM_API sgm_criteria *sgm_decreasing_criteria(const char *identifier);
/* `x reaches 0.98 from below`: once, when the value is there or beyond. SGM_MAXIMUM: from below, SGM_MINIMUM:
 * from above. */
SGM_API sgm_criteria *sgm_reaching_criteria(const char *identifier, sgm_extremum direction, double value);
/* `x stalls 5 times below maximum`: no new extremum for this many checks; then counts anew. */
SGM_API sgm_criteria *sgm_stalling_criteria(const char *identifier, sgm_extremum extremum, int64_t checks);
/* `... repeated 3 times in a row`: every time the part has fired this often, without a check in between at
 * which it did not if `in_a_row`. Repeating what repeats in the same way multiplies. */
SGM_API sgm_criteria *sgm_repeated_criteria(sgm_criteria *part, int64_t times, bool in_a_row);
/* `a and b`, from left to right and no further than needed: what is not reached is not checked, and its
 * memory stays. */
SGM_API sgm_criteria *sgm_and_criteria(sgm_criteria *first, sgm_criteria *second);
/* `a or b`, from left to right and no further than needed, as sgm_and_criteria. */
SGM_API sgm_criteria *sgm_or_criteria(sgm_criteria *first, sgm_criteria *second);
/* `not a`: fires when the part does not. */
SGM_API sgm_criteria *sgm_not_criteria(sgm_criteria *part);
/* `external "button"`: fires when someone outside lets it. At first it does not. The name has 1 to 255 bytes
 * of UTF-8 without control characters. */
SGM_API sgm_criteria *sgm_external_criteria(const char *name);
/* Turns all external parts of this name on for good, or off for good when they were on. SGM_ERROR_NOT_FOUND:
 * there are none. Any thread. */
SGM_API sgm_status sgm_criteria_toggle(sgm_criteria *criteria, const char *name);
/* Lets one more check of all external parts of this name fire, unless they were toggled.
 * SGM_ERROR_NOT_FOUND: there are none. Any thread. Of the criteria of hooks, sgm_trainer_press does it, which
 * the journal of the run has and a replay repeats. */
SGM_API sgm_status sgm_criteria_hold(sgm_criteria *criteria, const char *name);
/* The names of external parts, in the order of the text; some may come twice. NULL: past the last. */
SGM_API const char *sgm_criteria_external_at(const sgm_criteria *criteria, size_t index);

SGM_API void sgm_criteria_free(sgm_criteria *criteria);
/* A copy, what they remember included. */
SGM_API sgm_criteria *sgm_criteria_copy(const sgm_criteria *criteria);
/* Whether they are built alike, with the same numbers; not what they remember. */
SGM_API bool sgm_criteria_equal(const sgm_criteria *a, const sgm_criteria *b);
/* What they ask for, in the order of the text; some may come twice. NULL: past the last. */
SGM_API const char *sgm_criteria_identifier_at(const sgm_criteria *criteria, size_t index);

/* Gives the value of an identifier. SGM_ERROR_NOT_FOUND: it is missing; other failures end the check. */
typedef sgm_status (*sgm_lookup_function)(void *user, const char *identifier, double *value);
/* One check. `missing` (may be NULL) gets the first identifier that had no value, NULL if all had. */
SGM_API sgm_status sgm_criteria_check(sgm_criteria *criteria, sgm_lookup_function lookup, void *user,
                                      bool *fires, const char **missing);

/* What they remember, as numbers (some may be infinite), so that a resumed training goes on exactly.
 * `numbers` NULL: only *count; else *count is the room, and becomes how many there are. */
SGM_API sgm_status sgm_criteria_get_state(const sgm_criteria *criteria, double *numbers, size_t *count);
/* Has them remember what sgm_criteria_get_state gave, of criteria that are built alike. */
SGM_API sgm_status sgm_criteria_set_state(sgm_criteria *criteria, const double *numbers, size_t count);
/* Forgets all that was checked. */
SGM_API void sgm_criteria_reset(sgm_criteria *criteria);

/* `a.b > 1 and (c increases 3 times in a row or not d reaches 5)`; `not` binds before `repeated`, then `and`,
 * then `or`. Without a direction, `reaches 0.9` is from below and `stalls` is below the maximum, unless the
 * value should fall: that is so where the last part of the identifier is, or ends in, a metric's result that
 * should fall ("rmse", "second_rmse"), or, where no metric's result fits, contains "loss", "cost", "error" or
 * "perplexity". `step` says when the criteria are checked, so that `stalls 6 epochs` is 3 checks of a step
 * every 2 epochs; NULL: only `stalls 3 times`. Errors name the column. */
SGM_API sgm_criteria *sgm_criteria_parse(const char *text, const sgm_time_step *step);
/* As sgm_criteria_parse reads it; free with sgm_string_free. */
SGM_API char *sgm_criteria_text(const sgm_criteria *criteria, const sgm_time_step *step);

/* ======== rules ========
 *
 * Rules: what shall happen when something holds of a training, as a line of text.
 *
 *     if validation.accuracy stalls 5 epochs then stop
 *     every 1 epoch if validation.accuracy reaches maximum then save "best"
 *     if optimiser.loss increases 3 times then set optimiser.learning_rate *= 0.5 and save "before"
 *     after 10 epochs stop "long enough"
 *
 * A rule is a time step, criteria and actions: `[STEP] [if CRITERIA then] ACTION [and ACTION ...]`, with a
 * step, an `if`, or both. A step counts from when the rule is attached: attached after iteration 1000, "after
 * 10 iterations" is iteration 1010. STEP is as in sgm_time_step_parse, CRITERIA as in sgm_criteria_parse.
 * Without a step the unit of `stalls 100 iterations` says when the rule is checked, else every epoch. ACTION
 * is one of
 *
 *     stop | stop "REASON" | pause | reset | save "NAME" | set IDENTIFIER = NUMBER   (also +=, -=, *=, /=)
 *     set IDENTIFIER = "TEXT" | set IDENTIFIER = true | set IDENTIFIER = false
 *     set ... for 3 epochs | set ... for 100 iterations | restore "NAME" | notify "TEXT"
 *     freeze "PATTERN" | unfreeze "PATTERN"
 *     webhook "ADDRESS" | webhook "ADDRESS" "TEXT" | run "COMMAND" | branch "NAME" | branch "NAME" with
 * IDENTIFIER = VALUE   (with signs and values as of set)
 *
 * A value that is set for a time goes back at the end of the last epoch or iteration, before the hooks of
 * that event run, unless somebody else has set it meanwhile. If a rule sets it again before, it starts from
 * the value that it would go back to, and its time begins anew. A reset sets it back at once.
 *
 * `restore` takes parameters, their averages and what the optimiser remembers from a checkpoint of the run's
 * folder. Position, settings, and what hooks and rules remember stay: the training goes on, with other
 * minibatches, and does not repeat what it did. `notify` writes a warning into the log; values may stand in
 * it, as in "loss is {training.loss}" (sgm_registry_resolve_text).
 *
 * `branch` saves NAME.safetensors and begins a trainer NAME that goes on from there side by side with this
 * one, in a folder beside, to the same end, with a value that is set in it alone. It needs a trainer that its
 * environment runs (sgm_env_run). Branches begin none themselves. A name has 1 to 60 letters, digits, '-',
 * '_' and '.'.
 *
 * `run` starts a program beside the training, if the trainer allows it (sgm_trainer_allow_commands): the
 * first word of the command, found along PATH, with the others as its arguments. Words have spaces between
 * them, or within single quotes; no shell reads the command. The program's environment has SIGMA_TRAINER,
 * SIGMA_FOLDER, SIGMA_EPOCH, SIGMA_ITERATION and SIGMA_LOSS. What it writes goes to the log; if it takes too
 * long it is killed, and the log says so. A replay does not run it again.
 *
 * `webhook` sends a message to an address of the web that the trainer allows (sgm_trainer_allow_webhook), by
 * POST, as JSON: {"text", "trainer", "folder", "epoch", "iteration", "loss"}. The text is the second string,
 * with values in it as in that of `notify`, or else the moment. The training goes on meanwhile; what was
 * answered is in the log. Redirections are not followed. After 15 s it is given up. A replay sends nothing.
 *
 * `freeze` has the parameters whose names match a pattern ("1-dense.*") stay as they are, `unfreeze` has them
 * trained again, also as a part of what a wider pattern froze: both change optimiser.frozen, and nothing
 * where it is so already. A pattern that matches no parameter is an error before the run begins.
 *
 * A rule only says what is to be done; who holds it does it.
 */

/* A rule that was read. */
typedef struct sgm_rule sgm_rule;

/* What a rule does. */
typedef enum sgm_action_kind {
    SGM_ACTION_STOP,    /* text: the reason, NULL: none was given */
    SGM_ACTION_PAUSE,   /* pauses the training */
    SGM_ACTION_RESET,   /* goes back to before the first iteration */
    SGM_ACTION_SAVE,    /* text: the name; not empty, without '/', not beginning with '.' */
    SGM_ACTION_SET,     /* text: the identifier */
    SGM_ACTION_RESTORE, /* text: the name, as of SAVE */
    SGM_ACTION_NOTIFY,  /* text: what is told, with values in braces; not empty */
    SGM_ACTION_BRANCH,  /* text: the branch's name */
    SGM_ACTION_RUN,     /* text: the command */
    SGM_ACTION_WEBHOOK, /* text: the address; value_text: what is told, with values in braces, NULL: the
                           moment */
    SGM_ACTION_FREEZE,  /* text: a pattern of parameters */
    SGM_ACTION_UNFREEZE /* text: a pattern of parameters */
} sgm_action_kind;
/* How a rule sets a number. */
typedef enum sgm_assignment {
    SGM_SET_TO,    /* = */
    SGM_SET_PLUS,  /* += */
    SGM_SET_MINUS, /* -= */
    SGM_SET_TIMES, /* *= */
    SGM_SET_OVER   /* /=, by what is not 0 */
} sgm_assignment;
/* An action of a rule; the rule's, with its texts. */
typedef struct sgm_action {
    sgm_action_kind kind;      /* what is done */
    const char *text;          /* see sgm_action_kind; NULL: there is none */
    const char *identifier;    /* BRANCH: what is set in it, as the next five say; NULL: nothing */
    sgm_assignment assignment; /* SET, BRANCH */
    double number;             /* SET of a number: what stands behind the sign */
    sgm_kind
        value_kind; /* SET: of a number; of a text or a boolean only with `=`, and then not in `number` */
    const char *value_text;        /* SET of a text; WEBHOOK; else NULL */
    bool value_boolean;            /* SET of a boolean */
    int64_t duration;              /* SET: for so many epochs or iterations; 0: for good */
    sgm_time_scale duration_scale; /* SGM_EPOCH or SGM_ITERATION; of a duration of 0 SGM_ITERATION */
} sgm_action;

/* Errors name the column and the nearest word; NULL then. */
SGM_API sgm_rule *sgm_rule_parse(const char *text);
SGM_API void sgm_rule_free(sgm_rule *rule);
/* When it is due; the rule's own, as what the next two give: valid as long as it is. */
SGM_API const sgm_time_step *sgm_rule_step(const sgm_rule *rule);
/* What must hold for it to fire; the rule's. NULL: it fires whenever it is due. */
SGM_API sgm_criteria *sgm_rule_criteria(sgm_rule *rule);
/* What it does, *count actions in order; the rule's. */
SGM_API const sgm_action *sgm_rule_actions(const sgm_rule *rule, size_t *count);
/* The normal form, which reads back as an equal rule; free with sgm_string_free. */
SGM_API char *sgm_rule_text(const sgm_rule *rule);
/* The same step, criteria and actions; not what the criteria remember. */
SGM_API bool sgm_rule_equal(const sgm_rule *a, const sgm_rule *b);
/* What a number becomes by a SET of one. */
SGM_API double sgm_action_apply(const sgm_action *action, double before);

#ifdef __cplusplus
}
#endif
#endif
