/* Rules as hooks: the engine counts their step and checks their criteria; what is left are the actions. */
#include "base/base.h"
#include "hooks/hooks.h"
#include "registry/option_check.h"
#include "trainer/view.h"
#include <math.h>
#include <sigma/hooks.h>

#define RULE_PRIORITY 8000

/* A text or a boolean, for an entry of that kind; what it may be the registry knows. */
static sgm_status new_word(const sgm_action *action, const sgm_match *match, sgm_content *content)
{
    *content = action->value_kind == SGM_KIND_TEXT ? sgm_text_content(action->value_text)
                                                   : sgm_boolean_content(action->value_boolean);
    if (match->content.kind == action->value_kind)
        return SGM_OK;
    return sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, and the rule sets it to %s %s", match->identifier,
                    sgm_kind_name(match->content.kind), sgm_kind_name(action->value_kind),
                    action->value_kind == SGM_KIND_TEXT ? action->value_text
                    : action->value_boolean             ? "true"
                                                        : "false");
}

/* The new value in the kind that the entry has. */
static sgm_status new_content(const sgm_action *action, const sgm_match *match, sgm_content *content)
{
    double before;
    if (action->value_kind != SGM_KIND_NUMBER)
        return new_word(action, match, content);
    if (match->content.kind == SGM_KIND_NUMBER)
        before = match->content.as.number;
    else if (match->content.kind == SGM_KIND_INTEGER)
        before = (double)match->content.as.integer;
    else
        return sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a number to set", match->identifier,
                        sgm_kind_name(match->content.kind));
    double after = sgm_action_apply(action, before);
    if (!isfinite(after))
        return sgm_fail(SGM_ERROR_NUMERIC, "'%s' is %g and would become %g", match->identifier, before,
                        after);
    if (match->content.kind == SGM_KIND_NUMBER) {
        *content = sgm_number_content(after);
        return SGM_OK;
    }
    if (fabs(after) > 9007199254740992.0)
        return sgm_fail(SGM_ERROR_NUMERIC, "'%s' is %g and would become %g, which is no integer any more",
                        match->identifier, before, after);
    *content = sgm_integer_content((int64_t)llround(after));
    return SGM_OK;
}

/* Each match starts from its own value. */
static sgm_status set_all(const sgm_action *action, sgm_hook_call *call)
{
    sgm_matches matches;
    SGM_TRY(sgm_resolve(call->registry, action->text, &matches));
    sgm_status status = SGM_OK;
    if (matches.count == 0) { /* says what is near */
        sgm_content content = {0};
        status = sgm_resolve_one(call->registry, action->text, &content);
        sgm_content_clear(&content);
    }
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++) {
        sgm_content content;
        status = new_content(action, &matches.items[i], &content);
        if (status == SGM_OK)
            status = sgm_hook_request_set(call, matches.items[i].identifier, content);
    }
    sgm_matches_free(&matches);
    return status;
}

static sgm_status stop(const sgm_action *action, sgm_hook_call *call, const sgm_rule *rule)
{
    if (action->text)
        return sgm_hook_request_stop(call, action->text);
    char *text = sgm_rule_text(rule);
    if (!text)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm_hook_request_stop(call, text);
    sgm_string_free(text);
    return status;
}

static sgm_status act(const sgm_action *action, sgm_hook_call *call, const sgm_rule *rule)
{
    switch (action->kind) {
    case SGM_ACTION_STOP:
        return stop(action, call, rule);
    case SGM_ACTION_PAUSE:
        return sgm_hook_request_pause(call);
    case SGM_ACTION_RESET:
        return sgm_hook_request_reset(call);
    case SGM_ACTION_SAVE:
        return sgm_hook_request_save(call, action->text);
    case SGM_ACTION_SET:
        return set_all(action, call);
    }
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "unknown action %d", (int)action->kind);
}

static sgm_status act_by_rule(void *rule, sgm_hook_call *call)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (act(&actions[i], call, rule) != SGM_OK)
            return sgm__fail_within("action %zu of the rule", i + 1);
    return SGM_OK;
}

/* The row of a match is that of its registry's last name; NULL: it has none. */
static const sgm_option *row_of(sgm_registry *root, const char *identifier)
{
    const char *dot = strrchr(identifier, '.');
    if (!dot)
        return sgm_registry_option(root, identifier);
    char *parent = sgm__strndup(identifier, (size_t)(dot - identifier));
    sgm_content content;
    if (!parent || sgm_resolve_one(root, parent, &content) != SGM_OK) {
        sgm__free(parent);
        return NULL;
    }
    const sgm_option *row =
        content.kind == SGM_KIND_REGISTRY ? sgm_registry_option(content.as.registry, dot + 1) : NULL;
    sgm_content_clear(&content);
    sgm__free(parent);
    return row;
}

/* A value that depends on what there is then may still be anything. */
static sgm_status check_match(const sgm_action *action, sgm_registry *root, const sgm_match *match)
{
    sgm_content content;
    const sgm_option *row = row_of(root, match->identifier);
    if (row && row->read_only)
        return sgm_fail(SGM_ERROR_STATE, "'%s' is read-only", match->identifier);
    sgm_status status = new_content(action, match, &content);
    if (action->assignment != SGM_SET_TO)
        return status == SGM_ERROR_TYPE ? status : SGM_OK;
    return status == SGM_OK && row ? sgm__option_check(row, match->identifier, &content) : status;
}

static sgm_status check_set(const sgm_action *action, sgm_hook_call *call)
{
    sgm_matches matches;
    SGM_TRY(sgm_resolve(call->registry, action->text, &matches));
    sgm_status status = SGM_OK;
    if (matches.count == 0 && sgm__hooks_is_known_early(sgm_hook_trainer(call), action->text)) {
        sgm_content content = {0};
        status = sgm_resolve_one(call->registry, action->text, &content); /* says what is near */
        sgm_content_clear(&content);
    }
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = check_match(action, call->registry, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

static sgm_status check_rule(void *rule, sgm_hook_call *call)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (actions[i].kind == SGM_ACTION_SET)
            SGM_TRY(check_set(&actions[i], call));
    return SGM_OK;
}

static bool equal_rules(const void *a, const void *b)
{
    return sgm_rule_equal(a, b);
}

static void free_rule(void *rule)
{
    sgm_rule_free(rule);
}

static const sgm_hook_type rule_type = {.api = SGM_HOOK_API,
                                        .name = "rule",
                                        .doc = "does what a rule says",
                                        .invoke = act_by_rule,
                                        .equal = equal_rules,
                                        .free = free_rule,
                                        .check = check_rule};

/* What it sets, NULL at the end: sgm__free. */
static const char **set_by(const sgm_rule *rule)
{
    size_t count, sets = 0;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    const char **identifiers = sgm__calloc(count + 1, sizeof *identifiers);
    for (size_t i = 0; identifiers && i < count; i++)
        if (actions[i].kind == SGM_ACTION_SET)
            identifiers[sets++] = actions[i].text;
    return identifiers;
}

sgm_hook *sgm_rule_hook(const char *text)
{
    sgm_rule *rule = sgm_rule_parse(text);
    if (!rule)
        return NULL;
    const char **reads = set_by(rule);
    sgm_criteria *criteria = sgm_rule_criteria(rule), *own = criteria ? sgm_criteria_copy(criteria) : NULL;
    if (!reads || (criteria && !own)) {
        sgm__free(reads);
        sgm_criteria_free(own);
        sgm_rule_free(rule);
        return NULL;
    }
    sgm_hook *hook = sgm_hook_create(&rule_type, rule, .when = *sgm_rule_step(rule), .only_if = own,
                                     .reads = reads, .priority = RULE_PRIORITY);
    sgm__free(reads);
    if (hook && sgm__hook_set_text(hook, text) != SGM_OK) {
        sgm_hook_free(hook);
        return NULL;
    }
    return hook;
}
