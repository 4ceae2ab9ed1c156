/* Operators: options, and the workers' handlers and scopes. */
#include "training/operator.h"
#include "base/clock.h"
#include "handlers/handler.h"
#include "registry/option_check.h"
#include "registry/pattern.h"
#include "training/hooks_internal.h"
#include "training/ranks.h"
#include "training/trainer_copy.h"

#include <stdio.h>

/* --- options --- */

static int32_t count_words(const char *text)
{
    int32_t count = 0;
    for (const char *at = text + strspn(text, " "); *at != '\0'; at += strspn(at, " ")) {
        at += strcspn(at, " ");
        count++;
    }
    return count;
}

/* Word `index` of `text`, again from the first after the last. */
static void copy_word(const char *text, int32_t index, char *word, size_t size)
{
    const char *at = text + strspn(text, " ");
    for (index %= count_words(text); index > 0; index--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t length = strcspn(at, " ");
    snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), at);
}

static sgm_status check_options(const sgm_operator_options *options, bool gradients, bool ranks)
{
    size_t count;
    const sgm_setting *rows = sgm_operator_settings(&count);
    for (size_t i = 0; i < count; i++)
        SGM_TRY(sgm__setting_check(&rows[i], options, "an operator"));
    if (!ranks && (options->timeout != 0 || options->check_every != 0 || options->bucket != 0 ||
                   options->bfloat16 || options->sharded))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "timeout, check_every, bucket, bfloat16 and sharded are for ranks: operator mpi, "
                        "sgm_mpi_operator");
    if (ranks && options->merger != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "ranks are averaged: mergers are for sgm_parameter_operator");
    if (ranks && options->bfloat16 && options->every != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "bfloat16 is for gradients; with every, there are none that travel");
    if (ranks && options->sharded && options->every != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sharded divides the update that all ranks make of their gradients' sum; with every, "
                        "each has parameters of its own");
    if (gradients && !ranks && (options->merger != NULL || options->every != 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a gradient operator merges in each iteration, by the workers' shares of records: "
                        "every and merger are for sgm_parameter_operator");
    return options->merger != NULL ? sgm__merger_check(options->merger, (size_t)options->workers) : SGM_OK;
}

static sgm_status fill_in(sgm_operator *team, const sgm_operator_options *options)
{
    team->count = options->workers;
    team->threads = options->threads;
    team->every = options->every;
    team->workers = sgm__calloc((size_t)team->count, sizeof(sgm__worker));
    if (options->handlers != NULL)
        team->handlers = sgm__strdup(options->handlers);
    if (team->workers == NULL || (options->handlers != NULL && team->handlers == NULL))
        return SGM_ERROR_MEMORY;
    if (team->merger == NULL && !team->merges_gradients)
        team->merger = sgm_average_merger();
    if (team->merger == NULL && !team->merges_gradients)
        return SGM_ERROR_MEMORY;
    for (int32_t i = 0; i < team->count; i++) {
        team->workers[i].team = team;
        team->workers[i].number = i;
        pthread_cond_init(&team->workers[i].wake, NULL);
    }
    return SGM_OK;
}

static sgm_status open_ranks(sgm_operator *team, const sgm_operator_options *options)
{
    const sgm__rank_options own = {.timeout = options->timeout > 0 ? options->timeout : 60,
                                   .check_every = options->check_every > 0 ? options->check_every : 1000,
                                   .bucket_bytes = options->bucket > 0 ? options->bucket : 4 << 20,
                                   .narrow = options->bfloat16,
                                   .sharded = options->sharded};
    team->ranks = sgm__ranks_open(&own);
    return team->ranks != NULL ? SGM_OK : sgm__last_failure();
}

static sgm_operator *create(const sgm_operator_options *given, bool gradients, bool ranks)
{
    sgm_operator_options options;
    sgm_status status = sgm__options_read(&options, sizeof options, given, "an operator");
    if (status != SGM_OK)
        return NULL;
    bool named = options.handlers != NULL && count_words(options.handlers) > 0;
    if (!named)
        options.handlers = NULL;
    if (options.workers == 0)
        options.workers = named ? count_words(options.handlers) : ranks ? 1 : 2;
    status = check_options(&options, gradients, ranks);
    sgm_operator *team = status == SGM_OK ? sgm__calloc(1, sizeof(sgm_operator)) : NULL;
    if (team == NULL) {
        sgm_merger_free(options.merger);
        return NULL;
    }
    pthread_mutex_init(&team->lock, NULL);
    pthread_mutex_init(&team->hook_lock, NULL);
    sgm__cond_init(&team->done);
    sgm__cond_init(&team->summed);
    team->merges_gradients = gradients;
    team->merger = options.merger;
    if (fill_in(team, &options) == SGM_OK && (!ranks || open_ranks(team, &options) == SGM_OK))
        return team;
    sgm_operator_free(team);
    return NULL;
}

sgm_operator *sgm_gradient_operator_create(const sgm_operator_options *options)
{
    return create(options, true, false);
}

sgm_operator *sgm_parameter_operator_create(const sgm_operator_options *options)
{
    return create(options, false, false);
}

sgm_operator *sgm_mpi_operator_create(const sgm_operator_options *options)
{
    return create(options, options == NULL || options->every == 0, true);
}

sgm_operator *sgm__operator_copy(const sgm_operator *team)
{
    sgm_operator_options options = {.struct_size = sizeof options,
                                    .workers = team->count,
                                    .handlers = team->handlers,
                                    .threads = team->threads};
    if (!team->merges_gradients) {
        options.every = team->every;
        options.merger = sgm__merger_copy(team->merger);
        if (options.merger == NULL)
            return NULL;
    }
    return create(&options, team->merges_gradients, false); /* another trainer's: of this process alone */
}

/* --- scopes --- */

void sgm__scope_borrow(sgm_trainer *scope)
{
    const sgm_trainer *owner = scope->owner;
    scope->network = owner->network;
    scope->optimiser = owner->optimiser;
    scope->modifiers = owner->modifiers;
    scope->modifier_count = owner->modifier_count;
    scope->frozen = owner->frozen;
    scope->frozen_count = owner->frozen_count;
    scope->folder = owner->folder;
    scope->epochs = owner->epochs;
    scope->batches = owner->batches;
}

static void free_scope(sgm_trainer *scope)
{
    if (scope == NULL)
        return;
    scope->network = NULL;
    scope->optimiser = NULL;
    scope->modifiers = NULL;
    scope->frozen = NULL;
    scope->modifier_count = scope->frozen_count = 0;
    sgm__trainer_free(scope);
}

/* Numbers that differ from worker to worker; the first has the trainer's, as if it were alone. */
static uint64_t seed_of(const sgm_operator *team, const sgm_trainer *trainer, int32_t worker)
{
    int32_t number = sgm__worker_number(team, worker);
    return number == 0 ? trainer->settings.seed : sgm__hash(&number, sizeof number, trainer->settings.seed);
}

static sgm_handler *create_handler(const sgm_operator *team, const sgm_trainer *trainer, int32_t worker)
{
    char name[128];
    int threads = team->threads, all = trainer->settings.handler->threads;
    if (team->handlers != NULL)
        copy_word(team->handlers, worker, name, sizeof name);
    else
        snprintf(name, sizeof name, "%s", sgm_handler_name(trainer->settings.handler));
    if (threads == 0)
        threads = (all > 0 ? all : sgm__processors()) / team->count;
    return sgm_handler_create(name, .threads = threads > 0 ? threads : 1);
}

sgm_status sgm__worker_create(sgm_operator *team, sgm_trainer *trainer, int32_t number)
{
    sgm__worker *worker = &team->workers[number];
    worker->handler = create_handler(team, trainer, number);
    if (worker->handler == NULL)
        return sgm__fail_within("worker %d", number);
    sgm__trainer_settings settings = trainer->settings;
    settings.handler = worker->handler;
    settings.seed = seed_of(team, trainer, number);
    worker->scope = sgm__trainer_create_scope(trainer, &settings);
    if (worker->scope == NULL)
        return SGM_ERROR_MEMORY;
    worker->scope->worker = number;
    sgm__scope_borrow(worker->scope);
    return SGM_OK;
}

static void free_worker(sgm__worker *worker)
{
    free_scope(worker->scope);
    sgm_registry_free(worker->results);
    sgm_handler_free(worker->handler);
    sgm__free(worker->outputs);
    sgm__free(worker->addends);
    sgm__free(worker->ends);
    sgm__free(worker->reductions);
    sgm__free(worker->reduced);
    sgm__text_free(&worker->name);
    pthread_cond_destroy(&worker->wake);
}

void sgm_operator_free(sgm_operator *team)
{
    if (team == NULL)
        return;
    for (int32_t i = 0; team->workers != NULL && i < team->count; i++)
        free_worker(&team->workers[i]);
    for (size_t i = 0; i < team->hook_count; i++) {
        sgm_hook_free(team->hooks[i].hook);
        for (int32_t k = 0; k < team->count; k++)
            sgm_hook_free(team->hooks[i].copies[k]);
    }
    sgm__operator_forget_names(team);
    sgm__free_update_parts(team);
    sgm__ranks_close(team->ranks);
    sgm_merger_free(team->merger);
    sgm__free(team->hooks);
    sgm__free(team->workers);
    sgm__free(team->handlers);
    pthread_cond_destroy(&team->done);
    pthread_cond_destroy(&team->summed);
    sgm__free(team->sum);
    pthread_mutex_destroy(&team->hook_lock);
    pthread_mutex_destroy(&team->lock);
    sgm__free(team);
}

sgm_status sgm__operator_new_sessions(sgm_trainer *trainer)
{
    sgm_operator *team = trainer->team;
    sgm__forget_update_parts(team);
    sgm__ranks_forget(team->ranks);
    for (int32_t i = 0; i < team->count; i++) {
        sgm__worker *worker = &team->workers[i];
        sgm_session *session = sgm_session_create(worker->handler);
        if (session == NULL)
            return SGM_ERROR_MEMORY;
        sgm_session_free(worker->scope->session);
        worker->scope->session = session;
        sgm__trainer_drop_programs(worker->scope);
        worker->from = worker->cut = worker->reduces = NULL;
        worker->addend_count = 0;
    }
    sgm__operator_restart(trainer);
    return SGM_OK;
}

void sgm__operator_forget_programs(sgm_trainer *trainer)
{
    for (int32_t i = 0; i < trainer->team->count; i++)
        sgm__trainer_drop_programs(trainer->team->workers[i].scope);
}
