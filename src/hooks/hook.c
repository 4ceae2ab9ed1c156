/* Hook objects: making one from a type, a self and options; comparing two; the state that a reset goes back
 * to.
 *
 * A hook is a reference-counted value that knows no trainer and no event. hooks.c attaches it to a
 * trainer, hooks_run.c and hooks_background.c call it, hooks_state.c keeps its numbers in checkpoints;
 * hook_text.c and hooks_ready/ make hooks from texts. What a hook is made with (time step, reads, options,
 * required hooks) does not change once it is attached, so it is read without a lock. Its self, its
 * criteria and the flags beside them change when it runs: these are guarded by hook->turn. */
#include "hooks/hooks_internal.h"

#include <math.h>

/* Frees a hook whose last reference is gone. A worker's copy that uses the self of its origin does not
 * free that self: the origin does. */
static void free_parts(sgm_hook *hook)
{
    for (size_t i = 0; i < hook->required_count; i++)
        sgm_hook_free(hook->required[i]);
    sgm__free(hook->required);
    for (size_t i = 0; i < hook->read_count; i++)
        sgm__free(hook->reads[i]);
    sgm__free(hook->reads);
    sgm_criteria_free(hook->criteria);
    sgm__free(hook->text);
    for (size_t i = 0; hook->webhooks && hook->webhooks[i]; i++)
        sgm__free(hook->webhooks[i]);
    sgm__free(hook->webhooks);
    sgm__free(hook->first_state);
    if (hook->type && hook->type->free && !hook->origin)
        hook->type->free(hook->self);
    sgm_hook_free(hook->origin);
    pthread_mutex_destroy(&hook->lock);
    sgm__free(hook);
}

sgm_hook *sgm_hook_retain(sgm_hook *hook)
{
    if (hook)
        atomic_fetch_add_explicit(&hook->references, 1, memory_order_relaxed);
    return hook;
}

void sgm_hook_free(sgm_hook *hook)
{
    if (hook && atomic_fetch_sub_explicit(&hook->references, 1, memory_order_acq_rel) == 1)
        free_parts(hook);
}

const char *sgm_hook_name(const sgm_hook *hook)
{
    return hook ? hook->type->name : "";
}

void *sgm_hook_self(sgm_hook *hook)
{
    return hook ? hook->self : NULL;
}

sgm_criteria *sgm_hook_criteria(sgm_hook *hook)
{
    return hook ? hook->criteria : NULL;
}

/* The type is a table in the program or in a plugin, which may have been compiled for another version. */
static sgm_status check_type(const sgm_hook_type *type)
{
    if (!type)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a hook needs a type, but got NULL");
    if (type->api != SGM_HOOK_API)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "type of a hook: api is %u, expected SGM_HOOK_API (%d); compile it for this version",
                        (unsigned)type->api, SGM_HOOK_API);
    if (!type->name || !type->name[0] || !type->invoke)
        return sgm_fail(SGM_ERROR_ARGUMENT, "type of a hook: it needs a name and invoke()");
    return SGM_OK;
}

/* `!(x >= 0)` also refuses a time limit of NaN. */
static sgm_status check_options(const char *name, const sgm_hook_options *options)
{
    const sgm_time_step *when = &options->when;
    if ((int)when->scale < 0 || when->scale >= SGM_TIME_SCALE_COUNT || when->interval < 0 || when->live < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "hook '%s': .when is no time step; make one with sgm_every() or sgm_after()", name);
    if (!(options->time_limit >= 0) || isinf(options->time_limit))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "hook '%s': .time_limit is %g, expected seconds, or 0 for no limit", name,
                        options->time_limit);
    if ((int)options->failure < 0 || options->failure > SGM_HOOK_GO_ON)
        return sgm_fail(SGM_ERROR_ARGUMENT, "hook '%s': .failure is %d, expected one of sgm_hook_failure",
                        name, (int)options->failure);
    return SGM_OK;
}

/* Whether the list of what the hook reads has this identifier. */
static bool has_read(const sgm_hook *hook, const char *identifier)
{
    for (size_t i = 0; i < hook->read_count; i++)
        if (strcmp(hook->reads[i], identifier) == 0)
            return true;
    return false;
}

/* Adds a copy of an identifier unless it is in the list; the caller has reserved its place in hook->reads. */
static sgm_status add_read(sgm_hook *hook, const char *identifier)
{
    if (!identifier[0])
        return sgm_fail(SGM_ERROR_ARGUMENT, "hook '%s': identifier %zu of .reads is empty", hook->type->name,
                        hook->read_count);
    if (has_read(hook, identifier))
        return SGM_OK;
    char *copy = sgm__strdup(identifier);
    if (!copy)
        return SGM_ERROR_MEMORY;
    hook->reads[hook->read_count++] = copy;
    return SGM_OK;
}

/* Collects what the hook reads: the identifiers that its options list, then those that its criteria
 * compare. Background hooks get copies of exactly these values (hook_snapshot.c). */
static sgm_status copy_reads(sgm_hook *hook, const char *const *reads)
{
    size_t given = 0, asked = 0;
    while (reads && reads[given])
        given++;
    while (hook->criteria && sgm_criteria_identifier_at(hook->criteria, asked))
        asked++;
    hook->reads = sgm__calloc(given + asked, sizeof *hook->reads);
    if (!hook->reads)
        return SGM_ERROR_MEMORY;
    for (size_t i = 0; i < given; i++)
        SGM_TRY(add_read(hook, reads[i]));
    for (size_t i = 0; i < asked; i++)
        SGM_TRY(add_read(hook, sgm_criteria_identifier_at(hook->criteria, i)));
    return SGM_OK;
}

/* The condition `if` of a text stands in front of the criteria that create() gave. What the condition
 * compares is read by the hook, too. */
sgm_status sgm__hook_add_condition(sgm_hook *hook, sgm_criteria *condition)
{
    sgm_criteria *both = hook->criteria ? sgm_and_criteria(condition, hook->criteria) : condition;
    hook->criteria = both; /* on failure sgm_and_criteria has freed both */
    if (!both)
        return sgm__last_failure();
    size_t asked = 0;
    while (sgm_criteria_identifier_at(both, asked))
        asked++;
    char **reads = sgm__realloc(hook->reads, (hook->read_count + asked + 1) * sizeof *reads);
    if (!reads)
        return SGM_ERROR_MEMORY;
    hook->reads = reads;
    for (size_t i = 0; i < asked; i++)
        SGM_TRY(add_read(hook, sgm_criteria_identifier_at(both, i)));
    return SGM_OK;
}

sgm_status sgm__hook_set_text(sgm_hook *hook, const char *text)
{
    char *copy = sgm__strdup(text);
    if (!copy)
        return SGM_ERROR_MEMORY;
    sgm__free(hook->text);
    hook->text = copy;
    return SGM_OK;
}

void sgm__hook_set_runs_commands(sgm_hook *hook)
{
    hook->runs_commands = true;
}

bool sgm__hook_runs_commands(const sgm_hook *hook)
{
    bool runs = hook->runs_commands;
    for (size_t i = 0; i < hook->required_count && !runs; i++)
        runs = sgm__hook_runs_commands(hook->required[i]);
    return runs;
}

sgm_status sgm__hook_add_webhook(sgm_hook *hook, const char *address)
{
    size_t count = 0;
    while (hook->webhooks && hook->webhooks[count])
        count++;
    char **list = sgm__calloc(count + 2, sizeof *list);
    char *copy = list ? sgm__strdup(address) : NULL;
    if (!copy) {
        sgm__free(list);
        return SGM_ERROR_MEMORY;
    }
    if (count > 0)
        memcpy(list, hook->webhooks, count * sizeof *list);
    list[count] = copy;
    sgm__free(hook->webhooks);
    hook->webhooks = list;
    return SGM_OK;
}

const char *sgm__hook_refused_webhook(const sgm_hook *hook,
                                      bool (*is_allowed)(const void *user, const char *address),
                                      const void *user)
{
    for (size_t i = 0; hook->webhooks && hook->webhooks[i]; i++)
        if (!is_allowed(user, hook->webhooks[i]))
            return hook->webhooks[i];
    for (size_t i = 0; i < hook->required_count; i++) {
        const char *refused = sgm__hook_refused_webhook(hook->required[i], is_allowed, user);
        if (refused)
            return refused;
    }
    return NULL;
}

const char *sgm__hook_source(const sgm_hook *hook)
{
    return hook->text;
}

/* The lock is recursive: if the function of a hook saves or copies the trainer, the hook's own state is
 * written while the function runs, on the same thread (sgm__hooks_get_state). */
sgm_hook *sgm__hook_allocate(void)
{
    sgm_hook *hook = sgm__calloc(1, sizeof *hook);
    if (!hook)
        return NULL;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&hook->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    hook->turn = &hook->lock;
    atomic_init(&hook->references, 1);
    return hook;
}

/* Takes over the options but for required hooks. An interval of 0 in the options means 1. */
static sgm_status fill_in(sgm_hook *hook, const sgm_hook_options *options)
{
    SGM_TRY(check_options(hook->type->name, options));
    if (options->local)
        SGM_TRY(sgm__hook_check_local(hook));
    hook->when = options->when;
    if (hook->when.interval == 0)
        hook->when.interval = 1;
    hook->priority = options->priority;
    hook->background = options->background;
    hook->local = options->local;
    hook->time_limit = options->time_limit;
    hook->failure = options->failure;
    return copy_reads(hook, options->reads);
}

/* Takes over self, criteria and required hooks on every path. Criteria and self are put into the hook
 * first, so that free_parts frees them if anything fails afterwards; without a hook they are freed here.
 * Required hooks that were not handed to sgm_hook_require, which frees on failure, are let go one by one. */
sgm_hook *sgm_hook_create_with(const sgm_hook_type *type, void *self, const sgm_hook_options *given)
{
    sgm_hook_options options;
    sgm_status status = sgm__options_read(&options, sizeof options, given, "sgm_hook_create");
    if (status == SGM_OK)
        status = check_type(type);
    sgm_hook *hook = status == SGM_OK ? sgm__hook_allocate() : NULL;
    if (hook) {
        hook->type = type;
        hook->self = self;
        hook->criteria = options.only_if;
        status = fill_in(hook, &options);
    } else {
        sgm_criteria_free(options.only_if);
        if (type && type->free)
            type->free(self);
    }
    for (size_t i = 0; i < SGM_MAX_REQUIRED_HOOKS; i++) {
        if (!options.requires_hooks[i])
            continue;
        if (hook && status == SGM_OK)
            status = sgm_hook_require(hook, options.requires_hooks[i]);
        else
            sgm_hook_free(options.requires_hooks[i]);
    }
    if (hook && status != SGM_OK) {
        free_parts(hook);
        hook = NULL;
    }
    return hook;
}

/* Whether `hook` is `wanted` or requires it, directly or through others. */
static bool depends_on(const sgm_hook *hook, const sgm_hook *wanted)
{
    if (hook == wanted)
        return true;
    for (size_t i = 0; i < hook->required_count; i++)
        if (depends_on(hook->required[i], wanted))
            return true;
    return false;
}

/* Refuses circles here, when the dependency is made, so that the functions that walk along `required` need
 * no guard against an endless recursion. */
static sgm_status check_required(const sgm_hook *hook, const sgm_hook *required)
{
    if (!hook)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a hook that requires another is NULL");
    if (!required)
        return sgm_fail(SGM_ERROR_ARGUMENT, "hook '%s': a required hook is NULL", hook->type->name);
    if (depends_on(required, hook))
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "hook '%s' cannot require '%s', which itself requires '%s': break the circle",
                        hook->type->name, required->type->name, hook->type->name);
    if (atomic_load(&hook->was_attached))
        return sgm_fail(SGM_ERROR_STATE,
                        "hook '%s' is attached already: tell it what it requires before that",
                        hook->type->name);
    return SGM_OK;
}

sgm_status sgm_hook_require(sgm_hook *hook, sgm_hook *required)
{
    sgm_status status = check_required(hook, required);
    if (status == SGM_OK)
        status = sgm__reserve(&hook->required, &hook->required_capacity, hook->required_count + 1,
                              sizeof *hook->required);
    if (status == SGM_OK)
        hook->required[hook->required_count++] = required;
    else
        sgm_hook_free(required);
    return status;
}

/* --- the first state --- */

/* Copies the numbers of get_state into first_state, once in the life of the hook; with hook->turn held. A
 * type without both state functions has nothing to go back to. */
static sgm_status note_state(sgm_hook *hook)
{
    size_t count = 0;
    if (!hook->type->get_state || !hook->type->set_state || hook->first_state)
        return SGM_OK;
    SGM_TRY(hook->type->get_state(hook->self, NULL, &count));
    double *numbers = sgm__calloc(count + 1, sizeof *numbers);
    if (!numbers)
        return SGM_ERROR_MEMORY;
    sgm_status status = hook->type->get_state(hook->self, numbers, &count);
    hook->first_state = numbers;
    hook->first_count = count;
    return status;
}

/* Runs before the hook is attached for the first time, when it cannot have run. A hook that was attached
 * before, to this trainer or to another one, has its first state already. */
sgm_status sgm__hook_remember_first(sgm_hook *hook)
{
    for (size_t i = 0; i < hook->required_count; i++)
        SGM_TRY(sgm__hook_remember_first(hook->required[i]));
    if (atomic_load(&hook->was_attached))
        return SGM_OK;
    pthread_mutex_lock(hook->turn);
    sgm_status status = note_state(hook);
    pthread_mutex_unlock(hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", hook->type->name);
}

/* Criteria forget what they saw, and the self takes the numbers that it had before its first run. A type
 * without state functions keeps its self as it is. */
sgm_status sgm__hook_restart(sgm_hook *hook)
{
    sgm_status status = SGM_OK;
    pthread_mutex_lock(hook->turn);
    hook->missing_logged = false;
    if (hook->criteria)
        sgm_criteria_reset(hook->criteria);
    if (hook->first_state)
        status = hook->type->set_state(hook->self, hook->first_state, hook->first_count);
    pthread_mutex_unlock(hook->turn);
    return status == SGM_OK ? SGM_OK : sgm__fail_within("state of hook '%s'", hook->type->name);
}

static bool equal_criteria(const sgm_criteria *a, const sgm_criteria *b)
{
    return a && b ? sgm_criteria_equal(a, b) : a == b;
}

/* The text is not compared: "every 1 epoch" and "every epoch" make equal hooks. */
static bool equal_options(const sgm_hook *a, const sgm_hook *b)
{
    if (!sgm_time_step_equal(&a->when, &b->when) || a->priority != b->priority ||
        a->background != b->background || a->local != b->local || a->time_limit != b->time_limit ||
        a->failure != b->failure || a->read_count != b->read_count ||
        a->required_count != b->required_count || !equal_criteria(a->criteria, b->criteria))
        return false;
    for (size_t i = 0; i < a->read_count; i++)
        if (strcmp(a->reads[i], b->reads[i]) != 0)
            return false;
    return true;
}

/* Whether attaching `b` beside `a` would do the same work twice. Types without equal() count as equal only
 * with the same self. */
bool sgm__hook_equal(const sgm_hook *a, const sgm_hook *b)
{
    if (a == b)
        return true;
    if (a->type != b->type || !equal_options(a, b))
        return false;
    if (a->type->equal ? !a->type->equal(a->self, b->self) : a->self != b->self)
        return false;
    for (size_t i = 0; i < a->required_count; i++)
        if (!sgm__hook_equal(a->required[i], b->required[i]))
            return false;
    return true;
}

/* Mixes both halves of a hash into 32 bits: a double, as which a checkpoint keeps the number, holds
 * integers exactly only up to 2^53. */
static uint32_t fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* The hashes by which a checkpoint finds a hook again in another process, where addresses say nothing.
 * Criteria count by the identifiers they read, not by their thresholds: these may have been edited between
 * two runs. */
sgm__hook_identity sgm__hook_identify(const sgm_hook *hook)
{
    const int64_t numbers[] = {(int64_t)hook->when.scale, hook->when.interval, hook->when.live,
                               hook->priority, hook->background | hook->local << 1};
    uint64_t hash = sgm__hash(numbers, sizeof numbers, sgm__hash_text(hook->type->name));
    for (size_t i = 0; i < hook->read_count; i++)
        hash = sgm__hash(hook->reads[i], strlen(hook->reads[i]), hash);
    return (sgm__hook_identity){fold(hash), hook->text ? fold(sgm__hash_text(hook->text)) : 0};
}
