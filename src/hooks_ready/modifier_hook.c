/* Changes values of a trainer at a time step, by a modifier such as clip(-1, 1) or max_norm(3).
 *
 * Modifiers that are part of the optimiser's step are recorded into its program (src/optim/modifier.c);
 * here the same modifier is applied to a value as it lies in the registry, every so many events. It is
 * recorded into a small graph of its own and run on the trainer's handler, so each modifier has one
 * definition. New values are asked for (sgm_hook_request_set) and set by the training's thread after all
 * hooks of the event: the next iteration sees them. `set` of rules (rule_hook.c) changes numbers by
 * arithmetic only. */
#include "hooks/hook_text.h"
#include "optim/modifier.h"
#include "trainer/view.h"

#include <sigma/hooks.h>

#define MODIFIER_PRIORITY 8000 /* as rules that set */

typedef struct modifier_hook {
    char *identifier;        /* of the values, may have wildcards */
    sgm__modifier_rule rule; /* with the pattern "*": it fits the input "value" of the graph */
} modifier_hook;

/* Records what the modifier makes of a value with this type and shape, compiles it, and runs it once. A
 * modifier that changes type or shape is refused, as the entry could not take the result. *result may be
 * set after a failure, too; modify() frees it then. */
static sgm_status run_graph(const modifier_hook *self, sgm_session *session, sgm_graph *graph,
                            const sgm_tensor *value, sgm_tensor **result)
{
    sgm_value input = sgm_input_value(graph, "value", sgm_tensor_dtype(value), sgm_tensor_shape(value));
    sgm_graph_add_output(graph, "result", sgm__modifiers_record(&self->rule, 1, graph, "value", input));
    SGM_TRY(sgm_graph_status(graph));
    sgm_program *program = sgm_session_prepare(session, graph);
    if (!program)
        return sgm_last_status();
    sgm_type type = sgm_program_output_type(program, "result");
    if (type.dtype != sgm_tensor_dtype(value) || !sgm_shape_equal(&type.shape, sgm_tensor_shape(value)))
        return sgm_fail(SGM_ERROR_SHAPE, "the modifier gives another type or shape than that of the value");
    SGM_TRY(sgm_session_feed(session, program, "value", value));
    SGM_TRY(sgm_session_run(session, program));
    *result = sgm_tensor_create(type.dtype, &type.shape);
    return *result ? sgm_session_read(session, program, "result", *result) : SGM_ERROR_MEMORY;
}

/* The value modified, as a new tensor of the caller's. Session and graph live for one value: a modifier
 * runs seldom, and values have different shapes. */
static sgm_status modify(const modifier_hook *self, sgm_handler *handler, const sgm_tensor *value,
                         sgm_tensor **result)
{
    sgm_session *session = sgm_session_create(handler);
    sgm_graph *graph = session ? sgm_graph_create() : NULL;
    sgm_status status = graph ? run_graph(self, session, graph, value, result) : sgm_last_status();
    sgm_graph_free(graph);
    sgm_session_free(session);
    if (status != SGM_OK) {
        sgm_tensor_free(*result);
        *result = NULL;
    }
    return status;
}

/* The request retains the result, so that this reference can be dropped. */
static sgm_status modify_tensor(const modifier_hook *self, sgm_hook_call *call, const sgm_match *match)
{
    sgm_tensor *result = NULL;
    sgm_handler *handler = sgm__trainer_look(sgm_hook_trainer(call)).handler;
    sgm_status status = modify(self, handler, match->content.as.tensor, &result);
    if (status == SGM_OK)
        status = sgm_hook_request_set(call, match->identifier, sgm_tensor_content(result));
    sgm_tensor_free(result);
    return status;
}

/* A number goes the same way as a scalar of float64. */
static sgm_status modify_number(const modifier_hook *self, sgm_hook_call *call, const sgm_match *match)
{
    sgm_shape scalar = sgm_scalar_shape();
    double number = match->content.as.number;
    sgm_tensor *value = sgm_tensor_create_from(SGM_FLOAT64, &scalar, &number), *result = NULL;
    sgm_status status = value
                            ? modify(self, sgm__trainer_look(sgm_hook_trainer(call)).handler, value, &result)
                            : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm_tensor_read(result, &number, 1);
    if (status == SGM_OK)
        status = sgm_hook_request_set(call, match->identifier, sgm_number_content(number));
    sgm_tensor_free(value);
    sgm_tensor_free(result);
    return status;
}

/* Integers are refused like texts: the result of a modifier is rarely whole. Tensors must be of floats. */
static sgm_status modify_match(const modifier_hook *self, sgm_hook_call *call, const sgm_match *match)
{
    if (match->content.kind == SGM_KIND_NUMBER)
        return modify_number(self, call, match);
    if (match->content.kind == SGM_KIND_TENSOR &&
        sgm_dtype_is_float(sgm_tensor_dtype(match->content.as.tensor)))
        return modify_tensor(self, call, match);
    return sgm_fail(SGM_ERROR_TYPE, "'%s' is %s, expected a number or a tensor of floats", match->identifier,
                    sgm_kind_name(match->content.kind));
}

/* invoke(). The matches are resolved before the first value is asked to change, so no match sees another's
 * new value. */
static sgm_status apply(void *state, sgm_hook_call *call)
{
    const modifier_hook *self = state;
    sgm_matches matches;
    if (!sgm_hook_trainer(call))
        return sgm_fail(SGM_ERROR_STATE, "values are modified in the foreground of a trainer");
    SGM_TRY(sgm_registry_resolve(call->registry, self->identifier, &matches));
    sgm_status status = SGM_OK;
    for (size_t i = 0; i < matches.count && status == SGM_OK; i++)
        status = modify_match(self, call, &matches.items[i]);
    sgm_matches_free(&matches);
    return status;
}

/* Modifiers are equal if they compute the same with the same numbers. */
static bool is_equal(const void *a, const void *b)
{
    const modifier_hook *one = a, *other = b;
    return strcmp(one->identifier, other->identifier) == 0 &&
           sgm__modifier_equal(one->rule.modifier, other->rule.modifier);
}

/* The pattern of the rule was allocated here; the modifier was taken over. */
static void free_hook(void *state)
{
    modifier_hook *self = state;
    sgm_modifier_free(self->rule.modifier);
    sgm__free(self->rule.pattern);
    sgm__free(self->identifier);
    sgm__free(self);
}

/* Without state: what was changed is in the values. */
static const sgm_hook_type modifier_type = {
    .api = SGM_HOOK_API,
    .name = "modifier",
    .doc = "changes values by a modifier",
    .invoke = apply,
    .equal = is_equal,
    .free = free_hook,
    .only_global = "it changes values of the trainer, which would be changed once for each worker"};

/* Takes over `modifier` on every way out. NULL instead of a modifier means that its constructor failed,
 * with an error that stands. */
sgm_hook *sgm_modifier_hook(const char *identifier, sgm_modifier *modifier, sgm_time_step when)
{
    if (!modifier)
        return NULL;
    modifier_hook *self = identifier && identifier[0] ? sgm__calloc(1, sizeof *self) : NULL;
    if (!self) {
        if (!identifier || !identifier[0])
            sgm_fail(SGM_ERROR_ARGUMENT, "a modifier's hook: expected an identifier, got none");
        sgm_modifier_free(modifier);
        return NULL;
    }
    self->rule.modifier = modifier;
    self->rule.pattern = sgm__strdup("*");
    self->identifier = sgm__strdup(identifier);
    if (self->rule.pattern && self->identifier) {
        const char *const reads[] = {self->identifier, NULL};
        return sgm_hook_create(&modifier_type, self, .when = when, .reads = reads,
                               .priority = MODIFIER_PRIORITY);
    }
    free_hook(self);
    return NULL;
}

/* --- as text --- */

/* The modifier's own error is copied before it is put behind the column of the argument: both lie in the
 * error buffer of the thread. */
static sgm_hook *parse_modifier(const sgm__call *call, sgm_time_step when)
{
    sgm_modifier *modifier = sgm_modifier_parse(sgm__call_text(call, "by"));
    if (!modifier) {
        char *why = sgm__strdup(sgm_last_error());
        sgm__call_fail(call, "by", "%s", why ? why : "no memory");
        sgm__free(why);
        return NULL;
    }
    return sgm_modifier_hook(sgm__call_text(call, "value"), modifier, when);
}

/* The modifier is a text in quotes of its own grammar (sgm_modifier_parse), as it has parentheses and
 * commas. */
const sgm__hook_row sgm__modifier_row = {
    .name = "modifier",
    .example = "every 10 iterations modifier(network.layers.*.weights, \"clip(-1, 1)\")",
    .doc = "changes numbers and tensors by name, from the next iteration on",
    .when = {SGM_ITERATION, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true,
                   .doc = "network.layers.*.weights"},
                  {"by", SGM_KIND_TEXT, .required = true,
                   .doc = "\"clip(-1, 1)\", \"scale(0.99)\" or \"max_norm(3)\""}},
    .create = parse_modifier,
    .global = true,
};
