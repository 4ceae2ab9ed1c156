/* Rules: what shall happen when something holds of a training, as a line of text.
 *
 *     if validation.accuracy stalls 5 epochs then stop
 *     every 1 epoch if validation.accuracy reaches maximum then save "best"
 *     if optimiser.loss increases 3 times then set optimiser.learning_rate *= 0.5 and save "before"
 *     after 10 epochs stop "long enough"
 *
 * A rule is a time step, criteria and actions: `[STEP] [if CRITERIA then] ACTION [and ACTION ...]`, with a
 * step, an `if`, or both. STEP is as in sgm_time_step_parse, CRITERIA as in sgm_criteria_parse. Without a
 * step the unit of `stalls 100 iterations` says when the rule is checked, else every epoch. ACTION is one of
 *
 *     stop | stop "REASON" | pause | reset | save "NAME" | set IDENTIFIER = NUMBER   (also +=, -=, *=, /=)
 *     set IDENTIFIER = "TEXT" | set IDENTIFIER = true | set IDENTIFIER = false
 *
 * A rule only says what is to be done; who holds it does it.
 */
#ifndef SIGMA_RULE_H
#define SIGMA_RULE_H

#include <sigma/criteria.h>
#include <sigma/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sgm_rule sgm_rule;

typedef enum sgm_action_kind {
    SGM_ACTION_STOP, /* text: the reason, NULL: none was given */
    SGM_ACTION_PAUSE,
    SGM_ACTION_RESET,
    SGM_ACTION_SAVE, /* text: the name; not empty, without '/', not beginning with '.' */
    SGM_ACTION_SET   /* text: the identifier */
} sgm_action_kind;
typedef enum sgm_assignment {
    SGM_SET_TO,    /* = */
    SGM_SET_PLUS,  /* += */
    SGM_SET_MINUS, /* -= */
    SGM_SET_TIMES, /* *= */
    SGM_SET_OVER   /* /=, by what is not 0 */
} sgm_assignment;
typedef struct sgm_action {
    sgm_action_kind kind;
    const char *text;
    sgm_assignment assignment; /* SET only */
    double number;
    sgm_kind
        value_kind; /* SET: of a number; of a text or a boolean only with `=`, and then not in `number` */
    const char *value_text;
    bool value_boolean;
} sgm_action;

/* Errors name the column and the nearest word; NULL then. */
SGM_API sgm_rule *sgm_rule_parse(const char *text);
SGM_API void sgm_rule_free(sgm_rule *rule);
/* The rule's own: valid as long as it is. */
SGM_API const sgm_time_step *sgm_rule_step(const sgm_rule *rule);
SGM_API sgm_criteria *sgm_rule_criteria(sgm_rule *rule); /* NULL: it fires whenever it is due */
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
