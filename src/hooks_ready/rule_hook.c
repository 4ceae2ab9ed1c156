/* Rules as hooks: "if training.loss increases 3 times then set optimiser.learning_rate *= 0.5".
 *
 * The text is read by src/hooks/when/rule.c into a time step, criteria and actions. The engine counts the
 * step and checks the criteria, as for any hook; what is left for invoke() are the actions. Each of them
 * is a command, which the training's thread carries out after all hooks of the event
 * (src/runs/trainer_commands.c), so a rule may run anywhere, and no action sees half of another's effect. */
#include "base/base.h"
#include "hooks/hook_text.h"
#include "journal/temporary.h"
#include "registry/option_check.h"
#include "registry/registry_internal.h"
#include "runs/branch_beside.h"
#include "runs/checkpoints.h"
#include "runs/rules/rule_command.h"
#include "runs/rules/rule_webhook.h"
#include "trainer/view.h"
#include <math.h>
#include <sigma/hooks.h>

#define RULE_NAME "rule"
#define RULE_PRIORITY 8000 /* after all that measures; before saving (9000) and stopping (10000) */

/* The new value of an entry that takes a text or a boolean. Only the kind is compared here; which texts an
 * entry accepts, its row in the registry says. */
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

/* The new value of a match in the kind that the entry has: numbers are computed from the value before
 * (`*=`, `+=`), and rounded for an entry of integers. A result that is infinite or NaN is refused, as it
 * would spoil the training silently; integers stop at 2^53, beyond which a double has gaps. */
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

/* Asks to set one match. One that is in force for a time is computed from the value that it goes back to: a
 * rule that fires twice in that time does not halve it twice. */
static sgm_status set_match(const sgm_action *action, sgm_hook_call *call, sgm_match *match)
{
    sgm_content content;
    if (action->duration > 0)
        SGM_TRY(sgm__temporary_base(sgm_hook_trainer(call), match->identifier, &match->content));
    SGM_TRY(new_content(action, match, &content));
    return sgm__hook_request_set_for(call, match->identifier, content,
                                     (sgm__command_period){action->duration_scale, action->duration});
}

/* All that matches. Without any match the lookup by the plain identifier fails with a message that names the
 * nearest one. */
static sgm_status find_matches(sgm_registry *registry, const char *identifier, sgm_matches *matches)
{
    SGM_TRY(sgm_registry_resolve(registry, identifier, matches));
    if (matches->count > 0)
        return SGM_OK;
    sgm_content content = {0};
    sgm_status status = sgm_registry_resolve_one(registry, identifier, &content);
    sgm_content_clear(&content);
    if (status != SGM_OK)
        sgm_matches_free(matches);
    return status;
}

/* Asks to set all that matches. Each match starts from its own value. */
static sgm_status set_all(const sgm_action *action, sgm_hook_call *call)
{
    sgm_matches matches;
    SGM_TRY(find_matches(call->registry, action->text, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = set_match(action, call, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* Without a reason of its own the rule's text is the reason. */
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

/* Takes parameters and what the optimiser remembers from a checkpoint, and nothing else: with its position,
 * random numbers and rules as well the training would do the same again, and come here again, for ever. */
static sgm_status load_weights(void *name, sgm_trainer *trainer)
{
    char *path;
    SGM_TRY(sgm__checkpoint_path(trainer, name, false, &path));
    sgm_status status =
        sgm_trainer_load_parts(trainer, path, .parts = SGM_PART_PARAMETERS | SGM_PART_OPTIMISER);
    if (status == SGM_OK)
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "a rule has restored the weights of '%s'", path);
    sgm__free(path);
    return status;
}

/* The request has a copy of the name, as the rule may be taken off before it is carried out. */
static sgm_status restore(const sgm_action *action, sgm_hook_call *call)
{
    char *name = sgm__strdup(action->text);
    return name ? sgm__hook_request_act(call, load_weights, name, sgm__free) : SGM_ERROR_MEMORY;
}

/* Where several processes train together, the hooks of all of them come here at once; one tells. */
static sgm_status notify(const sgm_action *action, sgm_hook_call *call)
{
    char worker[32];
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (trainer && sgm__trainer_follows(trainer))
        return SGM_OK;
    char *text = sgm_registry_resolve_text(call->registry, action->text);
    if (!text)
        return sgm__fail_within("the text '%s'", action->text);
    sgm__log(SGM_LOG_WARNING, call->trainer, "notify: %s%s",
             sgm__hook_worker_text(call, worker, sizeof worker), text);
    sgm_string_free(text);
    return SGM_OK;
}

/* A branch that is asked for; all texts are its own. */
typedef struct branch_order {
    sgm__branch_request request;
    char *name, *reason, **identifiers, **values;
} branch_order;

static void free_branch(void *order)
{
    branch_order *o = order;
    for (size_t i = 0; i < o->request.count; i++) {
        sgm__free(o->identifiers[i]);
        sgm__free(o->values[i]);
    }
    sgm__free(o->identifiers);
    sgm__free(o->values);
    sgm__free(o->name);
    sgm__free(o->reason);
    sgm__free(o);
}

static sgm_status begin_branch(void *order, sgm_trainer *trainer)
{
    branch_order *o = order;
    o->request.identifiers = (const char *const *)o->identifiers;
    o->request.values = (const char *const *)o->values;
    return sgm__branch_begin(trainer, &o->request);
}

/* Notes one value that the branch gets, computed from the value that this training has. */
static sgm_status add_value(const sgm_action *action, const sgm_match *match, branch_order *order)
{
    sgm_content content;
    size_t i = order->request.count++;
    SGM_TRY(new_content(action, match, &content));
    order->identifiers[i] = sgm__strdup(match->identifier);
    order->values[i] = sgm__content_text(&content);
    return order->identifiers[i] && order->values[i] ? SGM_OK : SGM_ERROR_MEMORY;
}

static sgm_status add_values(const sgm_action *action, sgm_hook_call *call, branch_order *order)
{
    sgm_matches matches;
    SGM_TRY(find_matches(call->registry, action->identifier, &matches));
    order->identifiers = sgm__calloc(matches.count + 1, sizeof *order->identifiers);
    order->values = sgm__calloc(matches.count + 1, sizeof *order->values);
    sgm_status status = order->identifiers && order->values ? SGM_OK : SGM_ERROR_MEMORY;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = add_value(action, &matches.items[i], order);
    sgm_matches_free(&matches);
    return status;
}

/* The state that the branch begins with is that behind all hooks of the event, as of a `save`. */
static sgm_status branch(const sgm_action *action, sgm_hook_call *call)
{
    branch_order *order = sgm__calloc(1, sizeof *order);
    if (!order || !(order->name = sgm__strdup(action->text))) {
        sgm__free(order);
        return SGM_ERROR_MEMORY;
    }
    order->request.name = order->name;
    order->reason = sgm__strdup(sgm__hook_source(sgm__hook_of_call(call)));
    order->request.who = RULE_NAME;
    order->request.reason = order->reason;
    sgm_status status = action->identifier ? add_values(action, call, order) : SGM_OK;
    if (status == SGM_OK)
        return sgm__hook_request_act(call, begin_branch, order, free_branch);
    free_branch(order);
    return status;
}

static sgm_status start_command(void *command, sgm_trainer *trainer)
{
    return sgm__rule_command_start(trainer, command);
}

/* After all hooks of the event, and what was asked for before: a checkpoint of a `save` is there. */
static sgm_status run(const sgm_action *action, sgm_hook_call *call)
{
    char *command = sgm__strdup(action->text);
    return command ? sgm__hook_request_act(call, start_command, command, sgm__free) : SGM_ERROR_MEMORY;
}

/* A message that is to be sent; both texts are its own, that of what is told may be NULL. */
typedef struct webhook_order {
    char *address, *text;
} webhook_order;

static void free_order(void *order)
{
    sgm__free(((webhook_order *)order)->address);
    sgm__free(((webhook_order *)order)->text);
    sgm__free(order);
}

static sgm_status send_message(void *order, sgm_trainer *trainer)
{
    const webhook_order *o = order;
    return sgm__rule_webhook_send(trainer, o->address, o->text);
}

/* The values in the text are those of this moment. */
static sgm_status webhook(const sgm_action *action, sgm_hook_call *call)
{
    char *text = NULL;
    if (action->value_text && !(text = sgm_registry_resolve_text(call->registry, action->value_text)))
        return sgm__fail_within("the text '%s'", action->value_text);
    webhook_order *order = sgm__calloc(1, sizeof *order);
    if (order) {
        order->address = sgm__strdup(action->text);
        order->text = text ? sgm__strdup(text) : NULL;
    }
    bool whole = order && order->address && (order->text || !text);
    sgm_string_free(text);
    if (whole)
        return sgm__hook_request_act(call, send_message, order, free_order);
    if (order)
        free_order(order);
    return SGM_ERROR_MEMORY;
}

static sgm_status change_frozen(const sgm_action *action, sgm_hook_call *call)
{
    return sgm__hook_request_freeze(call, action->text, action->kind == SGM_ACTION_FREEZE);
}

/* One action as a request. Names of checkpoints are taken as they are written, without values in braces. */
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
    case SGM_ACTION_RESTORE:
        return restore(action, call);
    case SGM_ACTION_NOTIFY:
        return notify(action, call);
    case SGM_ACTION_BRANCH:
        return branch(action, call);
    case SGM_ACTION_RUN:
        return run(action, call);
    case SGM_ACTION_WEBHOOK:
        return webhook(action, call);
    case SGM_ACTION_FREEZE:
    case SGM_ACTION_UNFREEZE:
        return change_frozen(action, call);
    }
    return sgm_fail(SGM_ERROR_UNSUPPORTED, "unknown action %d", (int)action->kind);
}

/* invoke(): the actions in their order. The first one that fails ends it; what was asked for before
 * stands. */
static sgm_status act_by_rule(void *rule, sgm_hook_call *call)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (act(&actions[i], call, rule) != SGM_OK)
            return sgm__fail_within("action %zu of the rule", i + 1);
    return SGM_OK;
}

/* The row that describes an entry (kind, bounds, read-only), found by the registry that holds the last
 * part of the identifier; NULL: the entry has no row. */
static const sgm_option *row_of(sgm_registry *root, const char *identifier)
{
    const char *dot = strrchr(identifier, '.');
    if (!dot)
        return sgm_registry_option(root, identifier);
    char *parent = sgm__strndup(identifier, (size_t)(dot - identifier));
    sgm_content content;
    if (!parent || sgm_registry_resolve_one(root, parent, &content) != SGM_OK) {
        sgm__free(parent);
        return NULL;
    }
    const sgm_option *row =
        content.kind == SGM_KIND_REGISTRY ? sgm_registry_option(content.as.registry, dot + 1) : NULL;
    sgm_content_clear(&content);
    sgm__free(parent);
    return row;
}

/* Whether an entry would accept the new value. With `+=` and its like the value depends on what the entry
 * holds when the rule fires, so only the kind can be judged beforehand. */
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

/* Without a match there is an error only if the entry would have to exist before the first iteration. */
static sgm_status check_set(const sgm_action *action, const char *identifier, sgm_hook_call *call)
{
    sgm_matches matches;
    SGM_TRY(sgm_registry_resolve(call->registry, identifier, &matches));
    sgm_status status = SGM_OK;
    if (matches.count == 0 && sgm__hooks_is_known_early(sgm_hook_trainer(call), identifier)) {
        sgm_content content = {0};
        status = sgm_registry_resolve_one(call->registry, identifier, &content); /* says what is near */
        sgm_content_clear(&content);
    }
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = check_match(action, call->registry, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* What one process loads the others would not have. */
static sgm_status check_restore(sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    return trainer && sgm__trainer_has_ranks(trainer)
               ? sgm_fail(SGM_ERROR_UNSUPPORTED,
                          "a rule restores no checkpoint where several processes train together")
               : SGM_OK;
}

static sgm_status check_branch(const sgm_action *action, sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    if (trainer)
        SGM_TRY(sgm__branch_check(trainer));
    return action->identifier ? check_set(action, action->identifier, call) : SGM_OK;
}

static sgm_status check_freeze(const sgm_action *action, sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    return trainer ? sgm__trainer_check_freeze(trainer, action->text, action->kind == SGM_ACTION_FREEZE)
                   : SGM_OK;
}

static sgm_status check_action(const sgm_action *action, sgm_hook_call *call)
{
    switch (action->kind) {
    case SGM_ACTION_SET:
        return check_set(action, action->text, call);
    case SGM_ACTION_RESTORE:
        return check_restore(call);
    case SGM_ACTION_NOTIFY:
        return sgm__hook_check_braces(action->text, call);
    case SGM_ACTION_WEBHOOK:
        return action->value_text ? sgm__hook_check_braces(action->value_text, call) : SGM_OK;
    case SGM_ACTION_BRANCH:
        return check_branch(action, call);
    case SGM_ACTION_FREEZE:
    case SGM_ACTION_UNFREEZE:
        return check_freeze(action, call);
    default:
        return SGM_OK;
    }
}

/* check() before the run: a rule that sets an entry which does not exist, is read-only, or refuses the
 * value must not be found out hours later, when it fires. */
static sgm_status check_rule(void *rule, sgm_hook_call *call)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(check_action(&actions[i], call));
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

/* A rule may be local: then each worker counts and checks with its own values, `set` changes the worker's
 * own values, and the other requests reach the trainer. What criteria remember, the engine puts into
 * checkpoints. */
static const sgm_hook_type rule_type = {.api = SGM_HOOK_API,
                                        .name = RULE_NAME,
                                        .doc = "does what a rule says",
                                        .invoke = act_by_rule,
                                        .equal = equal_rules,
                                        .free = free_rule,
                                        .check = check_rule},
                           global_rule_type = {.api = SGM_HOOK_API,
                                               .name = RULE_NAME,
                                               .doc = "does what a rule says",
                                               .invoke = act_by_rule,
                                               .equal = equal_rules,
                                               .free = free_rule,
                                               .check = check_rule,
                                               .only_global =
                                                   "what it restores, runs, branches off, freezes, or sets "
                                                   "for a time, is the trainer's, with all workers"};

/* Whether an action is for the trainer as a whole, and not for one worker. */
static bool is_global(const sgm_action *action)
{
    switch (action->kind) {
    case SGM_ACTION_RESTORE:
    case SGM_ACTION_BRANCH:
    case SGM_ACTION_RUN:
    case SGM_ACTION_WEBHOOK:
    case SGM_ACTION_FREEZE:
    case SGM_ACTION_UNFREEZE:
        return true;
    default:
        return action->kind == SGM_ACTION_SET && action->duration > 0;
    }
}

/* The type of the rule's hook. */
static const sgm_hook_type *type_of(const sgm_rule *rule)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (is_global(&actions[i]))
            return &global_rule_type;
    return &rule_type;
}

static bool runs_commands(const sgm_rule *rule)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (actions[i].kind == SGM_ACTION_RUN)
            return true;
    return false;
}

static sgm_status add_webhooks(sgm_hook *hook, const sgm_rule *rule)
{
    size_t count;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    for (size_t i = 0; i < count; i++)
        if (actions[i].kind == SGM_ACTION_WEBHOOK)
            SGM_TRY(sgm__hook_add_webhook(hook, actions[i].text));
    return SGM_OK;
}

/* The identifiers that the rule sets, NULL at the end: what the hook reads. In the background these are
 * copied, as new values are computed from the old ones. The texts are the rule's; free the list with
 * sgm__free. */
static const char **set_by(const sgm_rule *rule)
{
    size_t count, sets = 0;
    const sgm_action *actions = sgm_rule_actions(rule, &count);
    const char **identifiers = sgm__calloc(count + 1, sizeof *identifiers);
    for (size_t i = 0; identifiers && i < count; i++)
        if (actions[i].kind == SGM_ACTION_SET || actions[i].identifier)
            identifiers[sets++] = actions[i].identifier ? actions[i].identifier : actions[i].text;
    return identifiers;
}

/* The criteria are copied for the hook: those of the rule only serve to compare and to write it. */
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
    sgm_hook *hook = sgm_hook_create(type_of(rule), rule, .when = *sgm_rule_step(rule), .only_if = own,
                                     .reads = reads, .priority = RULE_PRIORITY);
    sgm__free(reads);
    if (hook && runs_commands(rule))
        sgm__hook_set_runs_commands(hook);
    if (hook && (add_webhooks(hook, rule) != SGM_OK || sgm__hook_set_text(hook, text) != SGM_OK)) {
        sgm_hook_free(hook);
        return NULL;
    }
    return hook;
}
