/* Stops a run when a value stalls, and restores the weights of the best check (early_stopper).
 *
 * Two hooks work together. early_stopper runs when the value had no new extremum for some checks, which is
 * for the engine to find out (criteria `stalls`); it asks to stop. best_weights, which it requires, runs at
 * each new extremum, and saves the weights as a checkpoint: so a run that was killed goes on with the best
 * weights of its beginning. Both ask only; the training's thread acts after all hooks of the event, before it
 * saves the epoch's checkpoint, which thus has the weights that were restored.
 *
 * Weights are restored by checks at the end of epochs only: within an epoch a file for each new extremum
 * would take longer than the training. A worker's hook, and a process that trains together with others, only
 * stops: what one of them loads the others would not have. */
#include "hooks/hook_text.h"
#include "hooks/when/criteria.h"
#include "metrics/metrics.h"
#include "runs/checkpoints.h"
#include "trainer/view.h"

#define STOP_PRIORITY 10000 /* behind everything else */
#define BEST_PRIORITY 9000  /* as saving: after what measures, before what stops */

/* The self of early_stopper. */
typedef struct stopper {
    char *reason;
    char *weights; /* name of the checkpoint; NULL: nothing is restored */
} stopper;

/* --- best_weights: its self is the checkpoint's name --- */

static bool equal_texts(const void *a, const void *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static sgm_status save_weights(void *name, sgm_trainer *trainer)
{
    char *path;
    SGM_TRY(sgm__checkpoint_path(trainer, name, true, &path));
    sgm_status status =
        sgm_trainer_save_parts(trainer, path, .parts = SGM_PART_NETWORK | SGM_PART_PARAMETERS);
    sgm__free(path);
    return status;
}

/* NULL: the hook has no trainer whose weights it could save or restore. */
static const sgm_trainer *trainer_of(const sgm_hook_call *call)
{
    const sgm_trainer *trainer = sgm_hook_trainer(call);
    return trainer && !sgm__trainer_is_replica(trainer) ? trainer : NULL;
}

/* The request has a copy of the name, as the hook may be taken off before it is carried out. */
static sgm_status request(sgm_hook_call *call, sgm__action_function act, const char *name)
{
    char *copy = sgm__strdup(name);
    return copy ? sgm__hook_request_act(call, act, copy, sgm__free) : SGM_ERROR_MEMORY;
}

static sgm_status keep_best(void *name, sgm_hook_call *call)
{
    return trainer_of(call) ? request(call, save_weights, name) : SGM_OK;
}

static const sgm_hook_type best_type = {.api = SGM_HOOK_API,
                                        .name = "best_weights",
                                        .doc = "keeps the weights that an early_stopper restores",
                                        .invoke = keep_best,
                                        .equal = equal_texts,
                                        .free = sgm__free};

/* --- early_stopper --- */

static sgm_status restore_weights(void *name, sgm_trainer *trainer)
{
    char *path;
    SGM_TRY(sgm__checkpoint_path(trainer, name, false, &path));
    sgm_status status = SGM_OK;
    if (sgm__trainer_has_ranks(trainer))
        sgm__log(
            SGM_LOG_WARNING, sgm_trainer_name(trainer),
            "early_stopper restores no weights where several processes train together; the best ones are "
            "in '%s'",
            path);
    else
        status = sgm_trainer_load_parts(trainer, path, .parts = SGM_PART_PARAMETERS);
    if (status == SGM_OK && !sgm__trainer_has_ranks(trainer))
        sgm__log(SGM_LOG_INFO, sgm_trainer_name(trainer), "early_stopper has restored the weights of '%s'",
                 path);
    sgm__free(path);
    return status;
}

static sgm_status stop(void *state, sgm_hook_call *call)
{
    const stopper *self = state;
    if (self->weights && trainer_of(call))
        SGM_TRY(request(call, restore_weights, self->weights));
    return sgm_hook_request_stop(call, self->reason);
}

static bool is_equal(const void *a, const void *b)
{
    const stopper *left = a, *right = b;
    return equal_texts(left->reason, right->reason) && equal_texts(left->weights, right->weights);
}

static void free_stopper(void *state)
{
    stopper *self = state;
    if (self)
        sgm__free(self->reason);
    if (self)
        sgm__free(self->weights);
    sgm__free(self);
}

static const sgm_hook_type stopper_type = {.api = SGM_HOOK_API,
                                           .name = "early_stopper",
                                           .doc = "stops the run when a value stalls",
                                           .invoke = stop,
                                           .equal = is_equal,
                                           .free = free_stopper};

/* "best_weights-validation.loss-minimum-every_2_epochs": one for each way to look for the best, with '_' for
 * characters that no file should have in its name. */
static char *name_weights(const char *identifier, const char *extremum, const sgm_time_step *when)
{
    char text[64];
    char *name = sgm__format("best_weights-%s-%s-%s", identifier, extremum,
                             sgm_time_step_text(when, text, sizeof text));
    for (char *c = name; c && *c; c++)
        if (strchr("/*<>, \t", *c))
            *c = '_';
    return name;
}

/* The reason is made beforehand, since it depends on nothing that the training does. */
static stopper *create_stopper(const char *identifier, int64_t patience, const char *extremum,
                               const sgm_time_step *when, bool restores)
{
    stopper *self = sgm__calloc(1, sizeof *self);
    if (!self)
        return NULL;
    self->reason = sgm__format("%s has had no new %s for %lld check%s", identifier, extremum,
                               (long long)patience, patience == 1 ? "" : "s");
    self->weights = restores ? name_weights(identifier, extremum, when) : NULL;
    if (self->reason && (self->weights || !restores))
        return self;
    free_stopper(self);
    return NULL;
}

/* Makes the hook require one that keeps the best weights. Takes `hook` over; NULL on failure. */
static sgm_hook *require_best(sgm_hook *hook, const char *name, const char *identifier, sgm_extremum extremum,
                              sgm_time_step when)
{
    sgm_criteria *new_best = sgm_extremum_criteria(identifier, extremum);
    char *copy = sgm__strdup(name);
    sgm_hook *best = NULL;
    if (new_best && copy)
        best =
            sgm_hook_create(&best_type, copy, .when = when, .only_if = new_best, .priority = BEST_PRIORITY);
    else {
        sgm_criteria_free(new_best);
        sgm__free(copy);
    }
    if (best && sgm_hook_require(hook, best) == SGM_OK)
        return hook;
    sgm_hook_free(hook);
    return NULL;
}

sgm_hook *sgm_early_stopper_with(const char *identifier, int64_t patience, sgm_extremum extremum,
                                 sgm_time_step when, const sgm_early_stopper_options *given)
{
    sgm_early_stopper_options options;
    if (sgm__options_read(&options, sizeof options, given, "sgm_early_stopper") != SGM_OK)
        return NULL;
    sgm_criteria *stalls = sgm_stalling_criteria(identifier, extremum, patience);
    if (!stalls)
        return NULL;
    stopper *self = create_stopper(identifier, patience, extremum == SGM_MAXIMUM ? "maximum" : "minimum",
                                   &when, when.scale == SGM_EPOCH && !options.keep_last);
    if (!self) {
        sgm_criteria_free(stalls);
        return NULL;
    }
    const char *weights = self->weights; /* stays, as long as the hook does */
    sgm_hook *hook =
        sgm_hook_create(&stopper_type, self, .when = when, .only_if = stalls, .priority = STOP_PRIORITY);
    return hook && weights ? require_best(hook, weights, identifier, extremum, when) : hook;
}

/* --- as text --- */

static const char *const extrema[] = {"maximum", "minimum", NULL};

/* Without `extremum` the name of the value tells which way is better (sgm__is_better_below). */
static sgm_hook *parse_early_stopper(const sgm__call *call, sgm_time_step when)
{
    const char *identifier = sgm__call_text(call, "value");
    bool falls = sgm__call_has(call, "extremum") ? sgm__call_choice(call, "extremum") == 1
                                                 : sgm__is_better_below(identifier);
    return sgm_early_stopper(identifier, sgm__call_integer(call, "patience"),
                             falls ? SGM_MINIMUM : SGM_MAXIMUM, when,
                             .keep_last = sgm__call_flag(call, "keep_last"));
}

/* A check is an event of the step, so patience counts epochs by default. */
const sgm__hook_row sgm__early_stopper_row = {
    .name = "early_stopper",
    .example = "early_stopper(validation.loss, patience=10)",
    .doc = "stops the run when a value has had no new extremum for some checks in a row, and restores the "
           "weights of the best one",
    .when = {SGM_EPOCH, 1, 0},
    .arguments = {{"value", SGM_KIND_TEXT, .identifier = true, .required = true, .doc = "what is watched"},
                  {"patience", SGM__KIND_COUNT, .default_value = 5, .doc = "checks without a new extremum"},
                  {"extremum", SGM_KIND_TEXT, .choices = extrema,
                   .doc = "if not given: the minimum of losses, costs and errors, else the maximum"},
                  {"keep_last", SGM_KIND_BOOLEAN,
                   .doc = "the weights stay those of the last check; so it is in any case within epochs"}},
    .create = parse_early_stopper,
};
