/* Operators: checking their options, and making and freeing workers with their handlers and replicas.
 *
 * An operator (sgm_operator) shares the work of one trainer out to workers of this process and, with ranks,
 * to those of other processes. Its constructors here are the public ones; sgm_trainer_set_operator
 * (operator_strategy.c) gives the operator to a trainer and has the workers made. What an iteration does with
 * workers is in operator_run.c, and their threads are in operator_peers.c.
 *
 * There are three kinds, by two flags: the gradient operator merges gradients in each iteration; the
 * parameter operator merges parameters every so often; the MPI operator has ranks, and merges gradients
 * unless `every` is given.
 *
 * A worker owns its handler and its replica. A replica is a trainer whose network, optimiser, modifiers and
 * frozen patterns are borrowed from its owner. */
#include "parallel/operator.h"
#include "base/clock.h"
#include "handlers/handler.h"
#include "parallel/collective/ranks.h"
#include "registry/option_check.h"
#include "registry/pattern.h"
#include "train/train.h"

#include <math.h>
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

/* Copies word `index` of `text`, counted from 0; after the last word comes the first again, so that "cpu
 * reference" gives four workers the handlers cpu, reference, cpu, reference. `text` has at least one word. */
static void copy_word(const char *text, int32_t index, char *word, size_t size)
{
    const char *first = text + strspn(text, " "), *at = first;
    for (; index > 0; index--) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
        if (*at == '\0')
            at = first;
    }
    size_t length = strcspn(at, " ");
    snprintf(word, size, "%.*s", (int)(length < size ? length : size - 1), at);
}

/* Checks the numbers by the table of settings, then combinations that no operator of this kind can do. The
 * reducer's own check needs the number of workers, so it comes last. */
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
    if (ranks && options->reducer != NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "ranks are averaged: reducers are for sgm_parameter_operator");
    if (ranks && options->bfloat16 && options->every != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "bfloat16 is for gradients; with every, there are none that travel");
    if (ranks && options->sharded && options->every != 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sharded divides the update that all ranks make of their gradients' sum; with every, "
                        "each has parameters of its own");
    if (gradients && !ranks && (options->reducer != NULL || options->every != 0))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "a gradient operator merges in each iteration, by the workers' shares of examples: "
                        "every and reducer are for sgm_parameter_operator");
    return options->reducer != NULL ? sgm__reducer_check(options->reducer, (size_t)options->workers) : SGM_OK;
}

/* Copies the options and allocates the workers, without handlers or replicas: these need the trainer's
 * settings (sgm__worker_create). Parameters are merged by their mean if no reducer is given. */
static sgm_status fill_in(sgm_operator *parallel, const sgm_operator_options *options)
{
    parallel->count = options->workers;
    parallel->threads = options->threads;
    parallel->every = options->every;
    parallel->workers = sgm__calloc((size_t)parallel->count, sizeof(sgm__worker));
    for (int32_t i = 0; parallel->workers != NULL && i < parallel->count; i++) {
        parallel->workers[i].parallel = parallel;
        parallel->workers[i].number = i;
        pthread_cond_init(&parallel->workers[i].wake, NULL);
    }
    if (options->handlers != NULL)
        parallel->handlers = sgm__strdup(options->handlers);
    if (parallel->workers == NULL || (options->handlers != NULL && parallel->handlers == NULL))
        return SGM_ERROR_MEMORY;
    if (parallel->reducer == NULL && !parallel->merges_gradients)
        parallel->reducer = sgm_average_reducer();
    if (parallel->reducer == NULL && !parallel->merges_gradients)
        return SGM_ERROR_MEMORY;
    return SGM_OK;
}

/* Joins the other processes; the defaults of options for ranks stand here. 4 MiB a bucket: smaller buckets
 * start their sums earlier, larger ones lose less time per message. */
static sgm_status open_ranks(sgm_operator *parallel, const sgm_operator_options *options)
{
    const sgm__rank_options own = {.timeout = options->timeout > 0 ? options->timeout : 60,
                                   .check_every = options->check_every > 0 ? options->check_every : 1000,
                                   .bucket_bytes = options->bucket > 0 ? options->bucket : 4 << 20,
                                   .narrow = options->bfloat16,
                                   .sharded = options->sharded};
    parallel->ranks = sgm__ranks_open(&own);
    return parallel->ranks != NULL ? SGM_OK : sgm__last_failure();
}

/* Half of three processors is one worker. */
static int32_t workers_of_share(double share)
{
    double workers = floor(share * sgm__processors());
    return workers < 1 ? 1 : workers > SGM__MAXIMUM_WORKERS ? SGM__MAXIMUM_WORKERS : (int32_t)workers;
}

/* Makes an operator. Without a number of workers there are as many as handlers are named; without both, one
 * with ranks and two without. The operator takes over options.reducer, also if this fails. */
static sgm_operator *create(const sgm_operator_options *given, bool gradients, bool ranks)
{
    sgm_operator_options options;
    sgm_status status = sgm__options_read(&options, sizeof options, given, "an operator");
    if (status != SGM_OK)
        return NULL;
    bool named = options.handlers != NULL && count_words(options.handlers) > 0;
    if (!named)
        options.handlers = NULL;
    if (options.workers == 0 && options.share > 0)
        options.workers = workers_of_share(options.share);
    if (options.workers == 0)
        options.workers = named ? count_words(options.handlers) : ranks ? 1 : 2;
    status = check_options(&options, gradients, ranks);
    sgm_operator *parallel = status == SGM_OK ? sgm__calloc(1, sizeof(sgm_operator)) : NULL;
    if (parallel == NULL) {
        sgm_reducer_free(options.reducer);
        return NULL;
    }
    pthread_mutex_init(&parallel->lock, NULL);
    pthread_mutex_init(&parallel->hook_lock, NULL);
    sgm__cond_init(&parallel->done);
    sgm__cond_init(&parallel->summed);
    parallel->merges_gradients = gradients;
    parallel->reducer = options.reducer;
    if (fill_in(parallel, &options) == SGM_OK && (!ranks || open_ranks(parallel, &options) == SGM_OK))
        return parallel;
    sgm_operator_free(parallel);
    return NULL;
}

sgm_operator *sgm_gradient_operator_with(const sgm_operator_options *options)
{
    return create(options, true, false);
}

sgm_operator *sgm_parameter_operator_with(const sgm_operator_options *options)
{
    return create(options, false, false);
}

/* Ranks merge gradients, unless `every` says after how many iterations parameters are averaged. */
sgm_operator *sgm_mpi_operator_with(const sgm_operator_options *options)
{
    return create(options, options == NULL || options->every == 0, true);
}

/* For the copy of a trainer, such as one that is branched off. The copy has no ranks, since the other
 * processes have no trainer that corresponds to the copy. */
sgm_operator *sgm__operator_copy(const sgm_operator *parallel)
{
    sgm_operator_options options = {.struct_size = sizeof options,
                                    .workers = parallel->count,
                                    .handlers = parallel->handlers,
                                    .threads = parallel->threads};
    if (!parallel->merges_gradients) {
        options.every = parallel->every;
        options.reducer = sgm__reducer_copy(parallel->reducer);
        if (options.reducer == NULL)
            return NULL;
    }
    return create(&options, parallel->merges_gradients, false);
}

/* --- replicas --- */

/* Called before each program of a replica, as the owner's parts may have been replaced between two
 * iterations. Only pointers are copied: the owner frees what they point to (free_replica). */
void sgm__replica_take_settings(sgm_trainer *replica)
{
    sgm__trainer_patterns *patterns = sgm__patterns_of(replica);
    sgm__trainer_progress *progress = sgm__progress_of(replica);
    sgm__learner *learner = sgm__learner_of(replica);
    const sgm_trainer *owner = sgm__sharing_of(replica)->owner;
    learner->network = sgm__learner_of(owner)->network;
    learner->optimiser = sgm__learner_of(owner)->optimiser;
    patterns->modifiers = sgm__patterns_of(owner)->modifiers;
    patterns->modifier_count = sgm__patterns_of(owner)->modifier_count;
    patterns->frozen = sgm__patterns_of(owner)->frozen;
    sgm__journal_of(replica)->folder = sgm__journal_of(owner)->folder;
    progress->epochs = sgm__progress_of(owner)->epochs;
    progress->batches = sgm__progress_of(owner)->batches;
}

/* Takes what is borrowed from the owner out of the replica, so that sgm__trainer_free does not free it. */
static void free_replica(sgm_trainer *replica)
{
    if (replica == NULL)
        return;
    sgm__learner_of(replica)->network = NULL;
    sgm__learner_of(replica)->optimiser = NULL;
    sgm__patterns_of(replica)->modifiers = NULL;
    sgm__patterns_of(replica)->modifier_count = 0;
    sgm__patterns_of(replica)->frozen = (sgm__frozen){0};
    sgm__trainer_free(replica);
}

/* The seed of a worker, by its number among the workers of all ranks: worker 0 has the trainer's own, so that
 * it draws what the trainer would draw alone; every other worker has a hash of the seed and its number. */
static uint64_t seed_of(const sgm_operator *parallel, const sgm_trainer *trainer, int32_t worker)
{
    const sgm__trainer_settings *settings = sgm__settings_of(trainer);
    int32_t number = sgm__worker_number(parallel, worker);
    return number == 0 ? settings->seed : sgm__hash(&number, sizeof number, settings->seed);
}

/* Makes a worker's handler: by its name in `handlers`, or the same as the trainer's. Without a number of
 * threads, the trainer's threads (or all processors) are divided evenly among the workers, and each has at
 * least one. */
static sgm_handler *create_handler(const sgm_operator *parallel, const sgm_trainer *trainer, int32_t worker)
{
    const sgm__trainer_settings *settings = sgm__settings_of(trainer);
    char name[128];
    int threads = parallel->threads, all = settings->handler->threads;
    if (parallel->handlers != NULL)
        copy_word(parallel->handlers, worker, name, sizeof name);
    else
        snprintf(name, sizeof name, "%s", sgm_handler_name(settings->handler));
    if (threads == 0)
        threads = (all > 0 ? all : sgm__processors()) / parallel->count;
    return sgm_handler_create(name, .threads = threads > 0 ? threads : 1);
}

/* If this fails, sgm_operator_free frees what was made of the worker. */
sgm_status sgm__worker_create(sgm_operator *parallel, sgm_trainer *trainer, int32_t number)
{
    sgm__worker *worker = &parallel->workers[number];
    worker->handler = create_handler(parallel, trainer, number);
    if (worker->handler == NULL)
        return sgm__fail_within("worker %d", number);
    sgm__trainer_settings settings = *sgm__settings_of(trainer);
    settings.handler = worker->handler;
    settings.seed = seed_of(parallel, trainer, number);
    worker->replica = sgm__trainer_create_replica(trainer, &settings);
    if (worker->replica == NULL)
        return SGM_ERROR_MEMORY;
    sgm__sharing_of(worker->replica)->worker = number;
    sgm__replica_take_settings(worker->replica);
    return SGM_OK;
}

static void free_worker(sgm__worker *worker)
{
    free_replica(worker->replica);
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

/* The workers' threads have ended before (sgm__operator_end). */
void sgm_operator_free(sgm_operator *parallel)
{
    if (parallel == NULL)
        return;
    for (int32_t i = 0; parallel->workers != NULL && i < parallel->count; i++)
        free_worker(&parallel->workers[i]);
    for (size_t i = 0; i < parallel->hook_count; i++) {
        sgm_hook_free(parallel->hooks[i].hook);
        for (int32_t k = 0; k < parallel->count; k++)
            sgm_hook_free(parallel->hooks[i].copies[k]);
    }
    sgm__operator_forget_names(parallel);
    sgm__free_update_parts(parallel);
    sgm__ranks_close(parallel->ranks);
    sgm_reducer_free(parallel->reducer);
    sgm__free(parallel->hooks);
    sgm__free(parallel->workers);
    sgm__free(parallel->handlers);
    pthread_cond_destroy(&parallel->done);
    pthread_cond_destroy(&parallel->summed);
    sgm__free(parallel->sum);
    pthread_mutex_destroy(&parallel->hook_lock);
    pthread_mutex_destroy(&parallel->lock);
    sgm__free(parallel);
}

/* Places of gradients in the old programs, and memory of the old sessions, mean nothing in the new ones, so
 * everything that was found by them is forgotten: programs, outputs, cuts, addends, and what the ranks know
 * of places. The workers' states come from the trainer again (sgm__operator_restart). */
sgm_status sgm__operator_new_sessions(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    sgm__forget_update_parts(parallel);
    sgm__ranks_forget(parallel->ranks);
    for (int32_t i = 0; i < parallel->count; i++) {
        sgm__worker *worker = &parallel->workers[i];
        sgm_session *session = sgm_session_create(worker->handler);
        if (session == NULL)
            return SGM_ERROR_MEMORY;
        sgm_session_free(sgm__learner_of(worker->replica)->session);
        sgm__learner_of(worker->replica)->session = session;
        sgm__trainer_drop_programs(worker->replica);
        worker->from = worker->cut = worker->reduces = NULL;
        worker->addend_count = 0;
    }
    sgm__operator_restart(trainer);
    return SGM_OK;
}

void sgm__operator_forget_programs(sgm_trainer *trainer)
{
    sgm_operator *parallel = sgm__sharing_of(trainer)->parallel;
    for (int32_t i = 0; i < parallel->count; i++)
        sgm__trainer_drop_programs(parallel->workers[i].replica);
}
