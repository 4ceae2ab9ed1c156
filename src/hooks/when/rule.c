/* Rules as text: a time step, criteria, actions.
 *
 *   rule   := step [ "if" criteria "then" ] actions | "if" criteria "then" actions
 *   action := "stop" [STRING] | "pause" | "reset" | "save" STRING | "restore" STRING | "notify" STRING
 *           | "run" STRING | "webhook" STRING [ STRING ] | "freeze" STRING | "unfreeze" STRING
 *           | "branch" STRING [ "with" IDENTIFIER sign value ]
 *           | "set" IDENTIFIER sign value [ "for" COUNT ( "epochs" | "iterations" ) ]
 *
 * Here a rule is only read, written and compared. What makes it happen is a hook, hooks_ready/rule_hook.c,
 * whose step and criteria are the rule's and whose invoke() asks for the actions. Steps are read by
 * time.c, criteria by criteria_text.c, tokens by src/text/phrase.c. */
#include "base/characters.h"
#include "hooks/when/criteria.h"
#include "registry/pattern.h"
#include "text/command_words.h"
#include "text/web_address.h"
#include <sigma/rules.h>

#define MAXIMUM_ACTIONS 16 /* a rule is written on one line by a person */

/* Actions point into `texts` and `values`, which belong to the rule: identifier, name or reason, and a
 * text to set. */
struct sgm_rule {
    sgm_time_step step;
    sgm_criteria *criteria;
    sgm_action actions[MAXIMUM_ACTIONS];
    /* what the actions' texts point to; of a branch's value, the identifier */
    char *texts[MAXIMUM_ACTIONS], *values[MAXIMUM_ACTIONS], *identifiers[MAXIMUM_ACTIONS];
    size_t count;
};

/* By sgm_assignment. */
static const char *const assignment_signs[] = {"=", "+=", "-=", "*=", "/="};
#define ASSIGNMENT_COUNT (sizeof assignment_signs / sizeof *assignment_signs)

/* --- reading --- */

/* What one action is read into: its place in the rule, and the texts there that are the rule's. */
typedef struct reading {
    sgm_action *action;
    char **text, **value, **identifier;
} reading;

static sgm_status read_nothing(sgm__phrase *phrase, const reading *r)
{
    (void)phrase;
    (void)r;
    return SGM_OK;
}

static sgm_status read_reason(sgm__phrase *phrase, const reading *r)
{
    return phrase->kind == SGM__PHRASE_STRING ? sgm__phrase_string(phrase, "a reason in quotes", r->text)
                                              : SGM_OK;
}

/* The name becomes part of a file's, in the folder of the run and nowhere else. */
static sgm_status read_name(sgm__phrase *phrase, const reading *r)
{
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "a name in quotes", r->text));
    const char *name = *r->text;
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL)
        return sgm__phrase_fail(
            &before, before.at,
            "the name of a checkpoint is not empty, has no '/', and does not begin with '.'");
    return SGM_OK;
}

/* Whether it matches a parameter is known only where there is a network. */
static sgm_status read_pattern(sgm__phrase *phrase, const reading *r)
{
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "a pattern of parameters in quotes", r->text));
    return sgm__pattern_check(*r->text) == SGM_OK ? SGM_OK : sgm__phrase_within(&before, before.at);
}

static sgm_status read_text(sgm__phrase *phrase, char **text)
{
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "what to tell, in quotes", text));
    return **text != '\0' ? SGM_OK : sgm__phrase_fail(&before, before.at, "nothing is told");
}

static sgm_status read_notice(sgm__phrase *phrase, const reading *r)
{
    return read_text(phrase, r->text);
}

/* The words are read again when the command runs. */
static sgm_status read_command(sgm__phrase *phrase, const reading *r)
{
    char **words = NULL;
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "a command in quotes", r->text));
    sgm_status status = sgm__command_words(*r->text, &words);
    sgm__command_words_free(words);
    return status == SGM_OK || status == SGM_ERROR_MEMORY ? status : sgm__phrase_within(&before, before.at);
}

/* An address, and what is told, if it is not the rule itself. */
static sgm_status read_webhook(sgm__phrase *phrase, const reading *r)
{
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "an address in quotes", r->text));
    if (sgm__web_address_check(*r->text) != SGM_OK)
        return sgm__phrase_within(&before, before.at);
    if (phrase->kind != SGM__PHRASE_STRING)
        return SGM_OK;
    sgm_status status = read_text(phrase, r->value);
    r->action->value_text = *r->value;
    return status;
}

/* The value of `set`: a number, or, only behind `=`, a text in quotes, true or false. *text keeps the
 * text. */
static sgm_status read_value(sgm__phrase *phrase, sgm_action *action, char **text)
{
    static const char *const words[] = {"true", "false"};
    action->value_kind = SGM_KIND_NUMBER;
    if (action->assignment != SGM_SET_TO)
        return sgm__phrase_number(phrase, &action->number);
    if (phrase->kind == SGM__PHRASE_STRING) {
        action->value_kind = SGM_KIND_TEXT;
        SGM_TRY(sgm__phrase_string(phrase, "a text in quotes", text));
        action->value_text = *text;
        return SGM_OK;
    }
    bool is_true = sgm__phrase_take(phrase, words[0]);
    if (is_true || sgm__phrase_take(phrase, words[1])) {
        action->value_kind = SGM_KIND_BOOLEAN;
        action->value_boolean = is_true;
        return SGM_OK;
    }
    return phrase->kind == SGM__PHRASE_WORD
               ? sgm__phrase_expected(phrase, "a number, a text in quotes, true or false", words, 2)
               : sgm__phrase_number(phrase, &action->number);
}

/* For how long a value is set; without "for" it is for good. */
static sgm_status read_duration(sgm__phrase *phrase, sgm_action *action)
{
    if (!sgm__phrase_take(phrase, "for"))
        return SGM_OK;
    SGM_TRY(sgm__phrase_count(phrase, "epochs or iterations", &action->duration));
    sgm__phrase before = *phrase;
    if (sgm__phrase_scale(phrase, &action->duration_scale) && action->duration_scale <= SGM_EPOCH)
        return SGM_OK;
    return sgm__phrase_expected(&before, "epochs or iterations",
                                (const char *const[]){"epochs", "iterations"}, 2);
}

/* IDENTIFIER, sign, value. A division by 0 would make every value infinite, so it is refused here. */
static sgm_status read_assignment(sgm__phrase *phrase, sgm_action *action, char **identifier, char **value)
{
    size_t sign = 0;
    SGM_TRY(sgm__phrase_identifier(phrase, identifier));
    while (sign < ASSIGNMENT_COUNT && !sgm__phrase_take(phrase, assignment_signs[sign]))
        sign++;
    if (sign == ASSIGNMENT_COUNT)
        return sgm__phrase_expected(phrase, "'=', '+=', '-=', '*=' or '/='", NULL, 0);
    action->assignment = (sgm_assignment)sign;
    sgm__phrase before = *phrase;
    SGM_TRY(read_value(phrase, action, value));
    if (action->assignment == SGM_SET_OVER && action->number == 0)
        return sgm__phrase_fail(&before, before.at, "nothing is divided by 0");
    return SGM_OK;
}

/* The name becomes a part of identifiers, and of the name of a folder. */
static sgm_status read_branch(sgm__phrase *phrase, const reading *r)
{
    sgm__phrase before = *phrase;
    SGM_TRY(sgm__phrase_string(phrase, "the branch's name in quotes", r->text));
    if (!sgm__is_plain_name(*r->text))
        return sgm__phrase_fail(&before, before.at,
                                "the name of a branch has 1 to %d letters, digits, '-', '_' and '.', and "
                                "begins with a letter, a digit or '_'",
                                SGM__PLAIN_NAME_LONGEST);
    if (!sgm__phrase_take(phrase, "with"))
        return SGM_OK;
    sgm_status status = read_assignment(phrase, r->action, r->identifier, r->value);
    r->action->identifier = *r->identifier;
    return status;
}

static sgm_status read_set(sgm__phrase *phrase, const reading *r)
{
    SGM_TRY(read_assignment(phrase, r->action, r->text, r->value));
    return read_duration(phrase, r->action);
}

/* Actions: the word, and what stands behind it. By sgm_action_kind. */
static const struct action_row {
    const char *word;
    sgm_status (*read)(sgm__phrase *phrase, const reading *r);
} action_rows[] = {
    [SGM_ACTION_STOP] = {"stop", read_reason},      [SGM_ACTION_PAUSE] = {"pause", read_nothing},
    [SGM_ACTION_RESET] = {"reset", read_nothing},   [SGM_ACTION_SAVE] = {"save", read_name},
    [SGM_ACTION_SET] = {"set", read_set},           [SGM_ACTION_RESTORE] = {"restore", read_name},
    [SGM_ACTION_NOTIFY] = {"notify", read_notice},  [SGM_ACTION_BRANCH] = {"branch", read_branch},
    [SGM_ACTION_RUN] = {"run", read_command},       [SGM_ACTION_WEBHOOK] = {"webhook", read_webhook},
    [SGM_ACTION_FREEZE] = {"freeze", read_pattern}, [SGM_ACTION_UNFREEZE] = {"unfreeze", read_pattern},
};
#define ACTION_COUNT (sizeof action_rows / sizeof *action_rows)

/* Fails as no action stands here, with a list of all: "column 7: expected `before`an action (stop, ...)".
 * `other`: a word that would do as well; NULL: none. */
static sgm_status fail_action(const sgm__phrase *phrase, const char *before, const char *other)
{
    const char *words[ACTION_COUNT + 1];
    sgm__text list = {0};
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        words[i] = action_rows[i].word;
        sgm__text_append(&list, "%s%s", i == 0 ? "" : i + 1 < ACTION_COUNT ? ", " : " or ", words[i]);
    }
    words[ACTION_COUNT] = other;
    char *all = sgm__text_take(&list);
    char *what = all != NULL ? sgm__format("%san action (%s)", before, all) : NULL;
    sgm_status status =
        what != NULL ? sgm__phrase_expected(phrase, what, words, ACTION_COUNT + (other != NULL ? 1 : 0))
                     : SGM_ERROR_MEMORY;
    sgm__free(what);
    sgm__free(all);
    return status;
}

/* One action into the next place of the rule, which counts it at once: whatever fails behind,
 * sgm_rule_free frees the texts. */
static sgm_status read_action(sgm__phrase *phrase, sgm_rule *rule)
{
    size_t kind = 0, place = rule->count;
    if (place == MAXIMUM_ACTIONS)
        return sgm__phrase_fail(phrase, phrase->at, "a rule has at most %d actions", MAXIMUM_ACTIONS);
    while (kind < ACTION_COUNT && !sgm__phrase_take(phrase, action_rows[kind].word))
        kind++;
    if (kind == ACTION_COUNT)
        return fail_action(phrase, "", NULL);
    const reading r = {&rule->actions[place], &rule->texts[place], &rule->values[place],
                       &rule->identifiers[place]};
    rule->count++;
    r.action->kind = (sgm_action_kind)kind;
    sgm_status status = action_rows[kind].read(phrase, &r);
    r.action->text = *r.text;
    return status;
}

bool sgm__phrase_take_action(sgm__phrase *phrase)
{
    for (size_t i = 0; i < ACTION_COUNT; i++)
        if (sgm__phrase_take(phrase, action_rows[i].word))
            return true;
    return false;
}

/* The rest of the text: actions with `and` between them. */
static sgm_status read_actions(sgm__phrase *phrase, sgm_rule *rule)
{
    do
        SGM_TRY(read_action(phrase, rule));
    while (sgm__phrase_take(phrase, "and"));
    if (phrase->kind != SGM__PHRASE_END)
        return sgm__phrase_expected(phrase, "'and' with another action, or the end",
                                    (const char *const[]){"and"}, 1);
    return SGM_OK;
}

/* The step, if there is one, before `if`, since criteria may be in its units. Without a step a unit in the
 * criteria gives one, and else it is every epoch. The words that would fit are listed for the error's
 * suggestion. */
static sgm_status read_rule(sgm__phrase *phrase, sgm_rule *rule)
{
    static const char *const beginnings[] = {"if", "every", "after", "at"};
    static const char *const after_criteria[] = {"then", "and", "or", "repeated"};
    bool has_step = sgm__phrase_is_step(phrase), step_known = has_step;
    rule->step = sgm_every(1, SGM_EPOCH);
    if (has_step)
        SGM_TRY(sgm__phrase_step(phrase, &rule->step));
    if (sgm__phrase_take(phrase, "if")) {
        SGM_TRY(sgm__criteria_read(phrase, &rule->step, &step_known, &rule->criteria));
        if (!sgm__phrase_take(phrase, "then"))
            return sgm__phrase_expected(phrase, "then, and, or, or repeated", after_criteria, 4);
    } else if (!has_step) {
        return sgm__phrase_expected(phrase, "if, every, after or at", beginnings, 4);
    } else {
        sgm__phrase action = *phrase;
        if (!sgm__phrase_take_action(&action))
            return fail_action(phrase, "if, or ", "if");
    }
    return read_actions(phrase, rule);
}

/* NULL with an error that names the column. */
sgm_rule *sgm_rule_parse(const char *text)
{
    sgm__phrase phrase;
    if (sgm__phrase_begin(&phrase, text) != SGM_OK)
        return NULL;
    sgm_rule *rule = sgm__calloc(1, sizeof *rule);
    if (rule == NULL || read_rule(&phrase, rule) == SGM_OK)
        return rule;
    sgm_rule_free(rule);
    return NULL;
}

/* Also of a rule that could not be read to the end: `count` covers the action at which it failed. */
void sgm_rule_free(sgm_rule *rule)
{
    if (rule == NULL)
        return;
    for (size_t i = 0; i < rule->count; i++) {
        sgm__free(rule->texts[i]);
        sgm__free(rule->values[i]);
        sgm__free(rule->identifiers[i]);
    }
    sgm_criteria_free(rule->criteria);
    sgm__free(rule);
}

/* --- what it says --- */

const sgm_time_step *sgm_rule_step(const sgm_rule *rule)
{
    return &rule->step;
}

sgm_criteria *sgm_rule_criteria(sgm_rule *rule)
{
    return rule->criteria;
}

const sgm_action *sgm_rule_actions(const sgm_rule *rule, size_t *count)
{
    *count = rule->count;
    return rule->actions;
}

/* Equal texts, or both NULL. */
static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Members that an action does not use are 0 in both. */
static bool same_action(const sgm_action *a, const sgm_action *b)
{
    return a->kind == b->kind && same_text(a->text, b->text) && same_text(a->identifier, b->identifier) &&
           a->assignment == b->assignment && a->number == b->number && a->value_kind == b->value_kind &&
           same_text(a->value_text, b->value_text) && a->value_boolean == b->value_boolean &&
           a->duration == b->duration && a->duration_scale == b->duration_scale;
}

/* The hooks of two equal rules do the same, so the engine attaches only one. */
bool sgm_rule_equal(const sgm_rule *a, const sgm_rule *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    bool equal = a->count == b->count && sgm_time_step_equal(&a->step, &b->step) &&
                 sgm_criteria_equal(a->criteria, b->criteria);
    for (size_t i = 0; equal && i < a->count; i++)
        equal = same_action(&a->actions[i], &b->actions[i]);
    return equal;
}

/* The number behind the action, from the one before it; a `set` of a text or a boolean has none. */
double sgm_action_apply(const sgm_action *action, double before)
{
    switch (action->assignment) {
    case SGM_SET_PLUS:
        return before + action->number;
    case SGM_SET_MINUS:
        return before - action->number;
    case SGM_SET_TIMES:
        return before * action->number;
    case SGM_SET_OVER:
        return before / action->number;
    case SGM_SET_TO:
        break;
    }
    return action->number;
}

/* --- writing --- */

/* Numbers are written so that they read back exactly (sgm__append_number). */
static void append_assignment(sgm__text *text, const char *identifier, const sgm_action *action)
{
    sgm__text_append(text, "%s %s ", identifier, assignment_signs[action->assignment]);
    if (action->value_kind == SGM_KIND_TEXT)
        sgm__append_string(text, action->value_text);
    else if (action->value_kind == SGM_KIND_BOOLEAN)
        sgm__text_append(text, "%s", action->value_boolean ? "true" : "false");
    else
        sgm__append_number(text, action->number);
}

static void append_action(sgm__text *text, const sgm_action *action)
{
    sgm__text_append(text, "%s", action_rows[action->kind].word);
    if (action->text == NULL)
        return;
    sgm__text_append(text, " ");
    if (action->kind != SGM_ACTION_SET) {
        sgm__append_string(text, action->text);
        if (action->kind == SGM_ACTION_WEBHOOK && action->value_text != NULL) {
            sgm__text_append(text, " ");
            sgm__append_string(text, action->value_text);
        }
        sgm__text_append(text, "%s", action->identifier != NULL ? " with " : "");
        if (action->identifier != NULL)
            append_assignment(text, action->identifier, action);
        return;
    }
    append_assignment(text, action->text, action);
    if (action->duration > 0)
        sgm__text_append(text, " for %lld %s%s", (long long)action->duration,
                         sgm_time_scale_name(action->duration_scale), action->duration > 1 ? "s" : "");
}

/* The normal form: the step is always written, also where the text had none. */
char *sgm_rule_text(const sgm_rule *rule)
{
    sgm__text text = {0};
    if (rule == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "there is no rule to write");
        return NULL;
    }
    sgm__append_step(&text, &rule->step);
    if (rule->criteria != NULL) {
        sgm__text_append(&text, " if ");
        sgm__append_criteria(&text, rule->criteria, &rule->step);
        sgm__text_append(&text, " then");
    }
    for (size_t i = 0; i < rule->count; i++) {
        sgm__text_append(&text, i > 0 ? " and " : " ");
        append_action(&text, &rule->actions[i]);
    }
    return sgm__text_take(&text);
}
