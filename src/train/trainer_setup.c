/* A trainer's birth and death, and the parts that a program gives to it: network, data, optimiser, rules for
 * parameters, observers, hooks.
 *
 * This file only puts parts in place. What is computed from them is in trainer_program.c (recording) and
 * trainer_step.c (steps); running is in src/loop; the environment (src/environment/env.c) creates trainers
 * and frees them; parallel/operator.c creates replicas.
 *
 * Rules for all setters. (1) A setter takes over the object that it is given, also when it fails: it frees
 * the object then. (2) A setter runs between sgm__trainer_open and sgm__trainer_close: with the trainer's
 * lock, and not if the trainer has failed before; its failure becomes the trainer's, so that a program may
 * check once, at sgm_trainer_run. (3) Whatever changes what would be recorded forgets the trainer's programs,
 * which the next iteration records anew; parts may be changed between two iterations of a run. */
#include "data/dataset.h"
#include "handlers/session.h"
#include "journal/change_record.h"
#include "journal/changes.h"
#include "journal/planned.h"
#include "journal/temporary.h"
#include "registry/pattern.h"
#include "show/show.h"
#include "text/web_address.h"
#include "train/train.h"
#include "trainer/frozen.h"
#include "trainer/layer_times.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#define MAXIMUM_COMMAND_SECONDS 86400

/* Makes a trainer, or a replica if `owner` is given. A replica has a name, session, graph, registry and hooks
 * of its own, but no record of changes: those are its owner's. The loss is NaN before the first step, and the
 * best loss infinite, so that any loss is smaller. The registry is filled before the hooks are made, since
 * hooks keep pointers to both.
 *
 * sgm__trainer_free accepts a trainer that was made in part. */
static sgm_trainer *create(const char *name, const sgm__trainer_settings *settings, sgm_trainer *owner)
{
    sgm_trainer *trainer = sgm__calloc(1, sizeof(sgm_trainer));
    if (trainer == NULL)
        return NULL;
    trainer->settings = *settings;
    trainer->sharing.owner = owner != NULL ? owner : trainer;
    trainer->position.best_loss = INFINITY;
    trainer->progress.newest_loss = NAN;
    trainer->journal.changed_by = "program";
    sgm__turn_lock_init(&trainer->control.turn);
    pthread_mutex_init(&trainer->results.hook_results_lock, NULL);
    sgm__control_init(&trainer->control);
    trainer->name = sgm__strdup(name);
    trainer->learner.graph = sgm_graph_create();
    trainer->learner.session = sgm_session_create(settings->handler);
    trainer->registry = sgm_registry_create();
    trainer->journal.changes = owner == NULL ? sgm__change_record_create() : NULL;
    bool has_record = trainer->journal.changes != NULL || owner != NULL;
    if (trainer->registry != NULL && has_record && sgm__trainer_publish(trainer) == SGM_OK)
        trainer->hooks = sgm__hooks_create(name, trainer->registry, trainer);
    if (trainer->name != NULL && trainer->learner.graph != NULL && trainer->learner.session != NULL &&
        trainer->hooks != NULL)
        return trainer;
    sgm__trainer_free(trainer);
    return NULL;
}

sgm_trainer *sgm__trainer_create(const char *name, const sgm__trainer_settings *settings)
{
    return create(name, settings, NULL);
}

sgm_trainer *sgm__trainer_create_replica(sgm_trainer *owner, const sgm__trainer_settings *settings)
{
    return create(owner->name, settings, owner);
}

/* The order matters. Hooks go first, as background hooks may still be computing on threads of their own, with
 * the registry and the trainer's parts; then the strategy with its replicas, whose sessions may read states
 * in the memory of the trainer's; then the registry, whose entries are bound to the data and settings that
 * follow. A replica's network, optimiser and patterns belong to its owner: parallel/operator.c sets them to
 * NULL before it calls this. */
void sgm__trainer_free(sgm_trainer *trainer)
{
    if (trainer == NULL)
        return;
    sgm__hooks_free(trainer->hooks);
    if (trainer->sharing.strategy != NULL)
        trainer->sharing.strategy->free(trainer);
    sgm_registry_free(trainer->registry);
    for (size_t i = 0; i < trainer->data.validation_count; i++) {
        sgm__free(trainer->data.validation[i].name);
        sgm_iterator_free(trainer->data.validation[i].iterator);
    }
    for (size_t i = 0; i < trainer->patterns.rule_count; i++) {
        sgm__free(trainer->patterns.rules[i].pattern);
        sgm_initialiser_free(trainer->patterns.rules[i].initialiser);
    }
    for (size_t i = 0; i < trainer->patterns.modifier_count; i++) {
        sgm__free(trainer->patterns.modifiers[i].pattern);
        sgm_modifier_free(trainer->patterns.modifiers[i].modifier);
    }
    sgm__frozen_clear(&trainer->patterns.frozen);
    sgm_iterator_free(trainer->data.training);
    sgm_pipeline_free(trainer->data.pipeline);
    sgm_network_free(trainer->learner.network);
    sgm_optimiser_free(trainer->learner.optimiser);
    sgm_session_free(trainer->learner.session);
    sgm_graph_free(trainer->learner.graph);
    sgm__free(trainer->data.validation);
    sgm__free(trainer->patterns.rules);
    sgm__free(trainer->patterns.modifiers);
    for (size_t i = 0; i < trainer->webhooks.count; i++)
        sgm__free(trainer->webhooks.allowed[i]);
    sgm__free(trainer->webhooks.allowed);
    sgm__free(trainer->observers.items);
    sgm__free(trainer->data.metrics);
    sgm__trainer_free_results(trainer);
    sgm__free(trainer->learner.trained);
    sgm__free(trainer->learner.programs);
    sgm__free(trainer->learner.stale);
    sgm__layer_times_free(trainer->times);
    sgm__free(trainer->progress.resumed_end.by);
    sgm__free(trainer->progress.ended_by);
    sgm__turn_lock_destroy(&trainer->control.turn);
    sgm__control_destroy(&trainer->control);
    if (trainer->control.place.release != NULL)
        trainer->control.place.release(&trainer->control.place);
    sgm__settings_forget(trainer);
    sgm__temporary_forget(trainer);
    sgm__plan_forget(trainer);
    sgm__change_record_free(trainer->journal.changes);
    json_decref(trainer->journal.branched);
    sgm__trainer_unpublish_network(trainer);
    sgm__free(trainer->name);
    sgm__free(trainer);
}

/* --- parts --- */

sgm_status sgm__trainer_end_network(sgm_trainer *trainer)
{
    SGM_TRY(sgm__trainer_collect(trainer));
    sgm__trainer_forget_programs(trainer);
    sgm__layer_times_forget(trainer);
    return SGM_OK;
}

sgm_status sgm__trainer_begin_network(sgm_trainer *trainer)
{
    trainer->learner.recording = (sgm_recording){0};
    if (trainer->sharing.strategy != NULL)
        trainer->sharing.strategy->recorded(trainer);
    sgm__trainer_restart_workers(trainer);
    return sgm__trainer_publish_network(trainer);
}

/* Puts the network in place of the old one. States stay in the session: a layer of the new network that has
 * the name of an old one continues with its parameters. */
static sgm_status set_network(sgm_trainer *trainer, sgm_network *network)
{
    if (network == NULL)
        return sgm__trainer_missing("network");
    sgm_status status = sgm__trainer_end_network(trainer);
    if (status != SGM_OK) {
        sgm_network_free(network);
        return status;
    }
    sgm_network_free(trainer->learner.network);
    trainer->learner.network = network;
    return sgm__trainer_begin_network(trainer);
}

sgm_status sgm_trainer_adopt_network(sgm_trainer *trainer, sgm_network *network)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        return sgm__trainer_close(trainer, set_network(trainer, network));
    sgm_network_free(network);
    return status;
}

sgm_status sgm_trainer_set_network(sgm_trainer *trainer, const char *notation)
{
    SGM_TRY(sgm_trainer_status(trainer));
    sgm_network *network = sgm_network_parse(notation);
    if (network == NULL) {
        sgm__fail_within("network");
        return sgm__trainer_keep(trainer, sgm_last_status());
    }
    return sgm_trainer_adopt_network(trainer, network);
}

char *sgm_trainer_network(sgm_trainer *trainer)
{
    if (sgm__trainer_open(trainer) != SGM_OK)
        return NULL;
    char *text = trainer->learner.network != NULL ? sgm_network_text(trainer->learner.network) : NULL;
    sgm__trainer_unlock(trainer);
    return text;
}

static sgm_status adapt(sgm_trainer *trainer, sgm_layer *adapter)
{
    sgm_status status = trainer->learner.network != NULL ? sgm__trainer_end_network(trainer)
                                                         : sgm__trainer_missing("network to adapt");
    if (status != SGM_OK) {
        sgm_layer_free(adapter);
        return status;
    }
    SGM_TRY(sgm_network_adapt(trainer->learner.network, adapter));
    return sgm__trainer_begin_network(trainer);
}

sgm_status sgm_trainer_adapt(sgm_trainer *trainer, sgm_layer *adapter)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        return sgm__trainer_close(trainer, adapt(trainer, adapter));
    sgm_layer_free(adapter);
    return status;
}

/* Replaces the training data. The position stays; sgm__trainer_place_data sets the new iterator to it when a
 * run begins. */
static sgm_status set_training(sgm_trainer *trainer, sgm_iterator *iterator)
{
    if (iterator == NULL)
        return sgm__trainer_missing("data");
    sgm_iterator_free(trainer->data.training);
    trainer->data.training = iterator;
    return sgm__trainer_publish_training(trainer);
}

sgm_status sgm_trainer_set_data(sgm_trainer *trainer, sgm_iterator *iterator)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        return sgm__trainer_close(trainer, set_training(trainer, iterator));
    sgm_iterator_free(iterator);
    return status;
}

/* Adds data to validate on. Augmented data are refused: what is measured would depend on random changes of
 * the examples. `metrics` and `validation` have the same order and length. The registry borrows `copy`, which
 * lives as long as the trainer. If this fails, nothing was added, and the caller still owns the iterator. */
static sgm_status add_iterator(sgm_trainer *trainer, const char *name, sgm_iterator *iterator)
{
    if (iterator == NULL || name == NULL)
        return sgm__trainer_missing("data, or no name for it");
    for (size_t i = 0; i < trainer->data.validation_count; i++)
        if (strcmp(trainer->data.validation[i].name, name) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is data '%s' already; choose another name", name);
    if (sgm__iterator_augments(iterator))
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "data '%s': its examples would be augmented, and what is measured would not be the data; "
            "leave .augment out",
            name);
    size_t count = trainer->data.validation_count + 1;
    SGM_TRY(sgm__reserve(&trainer->data.validation, &trainer->data.validation_capacity, count,
                         sizeof(sgm__named_iterator)));
    sgm_named_metrics *metrics = sgm__realloc(trainer->data.metrics, count * sizeof(sgm_named_metrics));
    if (metrics == NULL)
        return SGM_ERROR_MEMORY;
    trainer->data.metrics = metrics;
    char *copy = sgm__strdup(name);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    sgm_status status = sgm__trainer_publish_validation(trainer, copy, iterator);
    if (status != SGM_OK) {
        sgm__free(copy);
        return status;
    }
    metrics[count - 1] = (sgm_named_metrics){.name = copy};
    trainer->data.validation[count - 1] = (sgm__named_iterator){copy, iterator};
    trainer->data.validation_count = count;
    return SGM_OK;
}

sgm_status sgm_trainer_add_data(sgm_trainer *trainer, const char *name, sgm_iterator *iterator)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_close(trainer, add_iterator(trainer, name, iterator));
    if (status != SGM_OK)
        sgm_iterator_free(iterator);
    return status;
}

/* Optimiser states of the old optimiser stay in the session. States that the new one names alike are
 * continued. */
static sgm_status set_optimiser(sgm_trainer *trainer, sgm_optimiser *optimiser)
{
    if (optimiser == NULL)
        return sgm__trainer_missing("optimiser");
    sgm__trainer_forget_programs(trainer);
    sgm_optimiser_free(trainer->learner.optimiser);
    trainer->learner.optimiser = optimiser;
    return SGM_OK;
}

sgm_status sgm_trainer_set_optimiser(sgm_trainer *trainer, sgm_optimiser *optimiser)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        return sgm__trainer_close(trainer, set_optimiser(trainer, optimiser));
    sgm_optimiser_free(optimiser);
    return status;
}

/* Programs of other kinds must not be found again. A failure changes nothing, so the trainer does not keep
 * it. */
static sgm_status set_inference(sgm_trainer *trainer, const sgm_inference_options *options)
{
    bool int8;
    SGM_TRY(sgm__quantize_read(options->quantize, &int8));
    if (int8 && trainer->settings.precision == SGM_FLOAT64)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "int8 takes the place of float32, but the network computes in float64: train it with "
                        "precision float32, or leave int8 out");
    if (int8 && trainer->sharing.strategy != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED, "int8 is for a trainer alone, and this one has an operator");
    trainer->settings.inference = SGM__INFERENCE_CONSTANTS | (int8 ? SGM__INFERENCE_INT8 : 0);
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

sgm_status sgm_trainer_set_inference_with(sgm_trainer *trainer, const sgm_inference_options *given)
{
    sgm_inference_options options;
    SGM_TRY(sgm__options_read(&options, sizeof options, given, "sgm_trainer_set_inference"));
    SGM_TRY(sgm__trainer_open(trainer));
    sgm_status status = set_inference(trainer, &options);
    sgm__trainer_unlock(trainer);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("trainer '%s'", trainer->name);
}

/* A rule says which initialiser draws the first values of parameters whose names match the pattern. Two rules
 * with equal patterns would contradict each other. Rules count for states that are defined later, so no
 * program is forgotten. */
static sgm_status add_rule(sgm_trainer *trainer, const char *pattern, sgm_initialiser *initialiser)
{
    if (initialiser == NULL || pattern == NULL)
        return sgm__trainer_missing("initialiser, or no pattern for it");
    SGM_TRY(sgm__pattern_check(pattern));
    for (size_t i = 0; i < trainer->patterns.rule_count; i++)
        if (strcmp(trainer->patterns.rules[i].pattern, pattern) == 0)
            return sgm_fail(SGM_ERROR_ARGUMENT, "there is an initialiser for '%s' already", pattern);
    SGM_TRY(sgm__reserve(&trainer->patterns.rules, &trainer->patterns.rule_capacity,
                         trainer->patterns.rule_count + 1, sizeof(sgm__initialiser_rule)));
    char *copy = sgm__strdup(pattern);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    trainer->patterns.rules[trainer->patterns.rule_count++] = (sgm__initialiser_rule){copy, initialiser};
    return SGM_OK;
}

sgm_status sgm_trainer_add_initialiser(sgm_trainer *trainer, const char *pattern,
                                       sgm_initialiser *initialiser)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_close(trainer, add_rule(trainer, pattern, initialiser));
    if (status != SGM_OK)
        sgm_initialiser_free(initialiser);
    return status;
}

/* A modifier changes a parameter whose name matches the pattern after each update, as part of the recorded
 * update (src/optim/modifier.c). */
static sgm_status add_modifier(sgm_trainer *trainer, const char *pattern, sgm_modifier *modifier)
{
    if (modifier == NULL || pattern == NULL)
        return sgm__trainer_missing("modifier, or no pattern for it");
    SGM_TRY(sgm__pattern_check(pattern));
    SGM_TRY(sgm__reserve(&trainer->patterns.modifiers, &trainer->patterns.modifier_capacity,
                         trainer->patterns.modifier_count + 1, sizeof(sgm__modifier_rule)));
    char *copy = sgm__strdup(pattern);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    trainer->patterns.modifiers[trainer->patterns.modifier_count++] = (sgm__modifier_rule){copy, modifier};
    sgm__trainer_forget_programs(trainer);
    return SGM_OK;
}

sgm_status sgm_trainer_add_modifier(sgm_trainer *trainer, const char *pattern, sgm_modifier *modifier)
{
    sgm_status status = sgm__trainer_open(trainer);
    if (status == SGM_OK)
        status = sgm__trainer_close(trainer, add_modifier(trainer, pattern, modifier));
    if (status != SGM_OK)
        sgm_modifier_free(modifier);
    return status;
}

/* Takes the list over in the place of the trainer's. */
static void replace_frozen(sgm_trainer *trainer, sgm__frozen frozen)
{
    sgm__frozen_clear(&trainer->patterns.frozen);
    trainer->patterns.frozen = frozen;
    sgm__trainer_forget_programs(trainer);
}

/* A frozen parameter gets neither a gradient nor an update. The pattern is compared with names when a program
 * is recorded (sgm__trainer_is_frozen). */
static sgm_status add_frozen(sgm_trainer *trainer, const char *pattern)
{
    sgm__frozen changed = {0};
    SGM_TRY(sgm__pattern_check(pattern));
    sgm_status status = sgm__frozen_put(trainer, pattern, true, &changed);
    if (status == SGM_OK)
        replace_frozen(trainer, changed);
    else
        sgm__frozen_clear(&changed);
    return status;
}

sgm_status sgm_trainer_freeze(sgm_trainer *trainer, const char *pattern)
{
    SGM_TRY(sgm__trainer_open(trainer));
    return sgm__trainer_close(trainer, add_frozen(trainer, pattern));
}

static sgm_status remove_frozen(sgm_trainer *trainer, const char *pattern)
{
    sgm__frozen changed = {0};
    SGM_TRY(sgm__pattern_check(pattern));
    sgm_status status = sgm__frozen_put(trainer, pattern, false, &changed);
    if (status == SGM_OK && sgm__frozen_equal(&changed, &trainer->patterns.frozen))
        status = sgm_fail(SGM_ERROR_NOT_FOUND, "'%s' was not frozen", pattern);
    if (status == SGM_OK)
        replace_frozen(trainer, changed);
    else
        sgm__frozen_clear(&changed);
    return status;
}

/* That a pattern was not frozen is returned, but is no failure of the trainer: the lock is released without
 * sgm__trainer_close. */
sgm_status sgm_trainer_unfreeze(sgm_trainer *trainer, const char *pattern)
{
    SGM_TRY(sgm__trainer_open(trainer));
    sgm_status status = remove_frozen(trainer, pattern);
    sgm__trainer_unlock(trainer);
    return status;
}

/* next_told is the iteration before which no observer wants to be called (src/loop/trainer_run.c); 0 has it
 * computed again at the next iteration. */
static sgm_status add_observer(sgm_trainer *trainer, sgm__observer observer)
{
    if (observer.function == NULL)
        return sgm__trainer_missing("function to tell of its progress");
    SGM_TRY(sgm__reserve(&trainer->observers.items, &trainer->observers.capacity,
                         trainer->observers.count + 1, sizeof(sgm__observer)));
    trainer->observers.items[trainer->observers.count++] = observer;
    trainer->observers.next_told = 0;
    return SGM_OK;
}

/* As sgm_trainer_on_progress, for monitors: a failure is only returned, and a trainer that has failed accepts
 * observers, too. */
sgm_status sgm__trainer_add_observer(sgm_trainer *trainer, sgm_training_function function, void *user)
{
    sgm__trainer_lock(trainer);
    sgm_status status = add_observer(trainer, (sgm__observer){.function = function, .user = user});
    sgm__trainer_unlock(trainer);
    return status;
}

/* Of a trainer that does not run. */
void sgm__trainer_remove_observer(sgm_trainer *trainer, sgm_training_function function, const void *user)
{
    size_t kept = 0;
    sgm__trainer_lock(trainer);
    for (size_t i = 0; i < trainer->observers.count; i++)
        if (trainer->observers.items[i].function != function || trainer->observers.items[i].user != user)
            trainer->observers.items[kept++] = trainer->observers.items[i];
    trainer->observers.count = kept;
    trainer->observers.next_told = 0;
    sgm__trainer_unlock(trainer);
}

sgm_status sgm_trainer_on_progress(sgm_trainer *trainer, sgm_training_function function, void *user)
{
    SGM_TRY(sgm__trainer_open(trainer));
    return sgm__trainer_close(trainer,
                              add_observer(trainer, (sgm__observer){.function = function, .user = user}));
}

sgm_status sgm_trainer_allow_commands(sgm_trainer *trainer, double seconds)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    if (!(seconds >= 0 && seconds <= MAXIMUM_COMMAND_SECONDS))
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_trainer_allow_commands: expected 0 to %d seconds, got %g",
                        MAXIMUM_COMMAND_SECONDS, seconds);
    if (sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' runs: commands are allowed before", trainer->name);
    trainer->settings.command_seconds = seconds;
    return SGM_OK;
}

sgm_status sgm_trainer_allow_webhook(sgm_trainer *trainer, const char *address)
{
    if (trainer == NULL)
        return sgm__fail_null("the trainer is NULL");
    SGM_TRY(sgm__web_address_check(address));
    if (sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        return sgm_fail(SGM_ERROR_STATE, "trainer '%s' runs: webhooks are allowed before", trainer->name);
    sgm__trainer_webhooks *webhooks = &trainer->webhooks;
    SGM_TRY(sgm__reserve(&webhooks->allowed, &webhooks->capacity, webhooks->count + 1, sizeof(char *)));
    char *copy = sgm__strdup(address);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    webhooks->allowed[webhooks->count++] = copy;
    return SGM_OK;
}

/* The list of hooks has a lock of its own, so this does not wait for the trainer's: a hook can be added in
 * the middle of a long step. While the trainer runs, the values that the hook reads are read once at once, so
 * that values which are kept only for readers (gradients, updates) exist when the hook is first due. The list
 * retains the hook; the caller's reference is dropped. */
sgm_status sgm_trainer_add_hook(sgm_trainer *trainer, sgm_hook *hook)
{
    sgm_status status = sgm_trainer_status(trainer);
    bool attached;
    if (status == SGM_OK && hook == NULL)
        return sgm__trainer_keep(trainer, sgm__trainer_missing("hook"));
    if (status == SGM_OK)
        status = sgm__trainer_keep(
            trainer, sgm__trainer_attach_as(trainer, hook, SGM__ATTACHED_AS_SETUP, &attached, NULL));
    if (status == SGM_OK && sgm_trainer_get_state(trainer) != SGM_TRAINER_IDLE)
        sgm__hooks_ask(trainer->hooks, trainer->registry);
    sgm_hook_free(hook);
    return status;
}
