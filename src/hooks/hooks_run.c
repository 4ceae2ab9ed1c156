/* Events: which hooks are due, running those of the foreground, and what follows when a hook fails.
 *
 * The training's thread calls sgm__hooks_event (src/loop/trainer_run.c) at the end of each iteration and
 * epoch, and at starts, stops, pauses and resets. An event counts the time step of each hook of its scale,
 * runs what is due in `order`, hands due background hooks to hooks_background.c, and takes off hooks whose
 * life is over. What hooks ask for is only queued (hooks_requests.c); the trainer carries that out after the
 * event.
 *
 * hooks->lock is released while a hook runs, so hooks may attach and detach others meanwhile. The
 * functions of a hook run under hook->turn, which serialises the trainers, workers and threads that share
 * it. */
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"

#include <stdio.h>

/* --- failures --- */

/* Takes off a hook that failed, and those that require it, directly or not: `order` has required entries
 * first, so one pass finds all. The names of the others are appended to `others` for the log. With the
 * lock. Taking one entry off may remove required ones with it, so the index is compared with `count` anew. */
static void take_off_failed(sgm__hooks *hooks, sgm__hook_entry *failed, sgm__text *others,
                            sgm__hook_entry **garbage)
{
    failed->cancelled = true;
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        for (size_t j = 0; j < entry->required_count && !entry->cancelled; j++) {
            if (!entry->required[j]->cancelled)
                continue;
            entry->cancelled = true;
            sgm__text_append(others, ", with '%s', which requires it", entry->hook->type->name);
        }
    }
    for (size_t i = hooks->count; i-- > 0;) { /* dependents first */
        if (i >= hooks->count || !hooks->order[i]->cancelled)
            continue;
        if (sgm__hook_entry_note_taken_off(hooks, hooks->order[i]) != SGM_OK)
            sgm__text_append(others, "; without memory, branches go without '%s'",
                             hooks->order[i]->hook->type->name);
        sgm__hook_entry_take_off(hooks, hooks->order[i], false, garbage);
    }
    sgm__hooks_arrange(hooks);
}

/* "rule#2"; without the number for the first of its name. */
static const char *name_of(const sgm__hook_entry *entry, char buffer[96])
{
    snprintf(buffer, 96, entry->ordinal > 1 ? "%.80s#%d" : "%.80s", entry->hook->type->name, entry->ordinal);
    return buffer;
}

/* The log tells of it after the lock is released. A hook that was detached meanwhile is only reported. */
static void detach_failed(sgm__hooks *hooks, sgm__hook_entry *entry, const char *message)
{
    sgm__text others = {0};
    char name[96];
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    if (entry->attached)
        take_off_failed(hooks, entry, &others, &garbage);
    pthread_mutex_unlock(&hooks->lock);
    sgm__log(SGM_LOG_ERROR, "hooks", "trainer '%s': hook '%s' failed and is taken off%s: %s", hooks->trainer,
             name_of(entry, name), others.data ? others.data : "", message);
    sgm__text_free(&others);
    sgm__hook_entries_free(garbage);
}

/* Keeps the first failure of a background hook that is to stop the run. A background hook cannot stop the
 * run itself, as the training's thread does not wait for it: ATTENTION makes the next event, of any scale,
 * report the failure (take_stop). */
static void keep_stop(sgm__hooks *hooks, sgm_status status, const char *message)
{
    char *text = sgm__strdup(message);
    pthread_mutex_lock(&hooks->lock);
    if (hooks->stop_status == SGM_OK) {
        hooks->stop_status = status;
        hooks->stop_text = text;
        text = NULL;
        atomic_fetch_or(&hooks->wanted, SGM__ATTENTION);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__free(text);
}

/* Reports a kept failure of a background hook once, as the thread's error; with the lock. */
static sgm_status take_stop(sgm__hooks *hooks)
{
    sgm_status status = hooks->stop_status;
    if (status == SGM_OK)
        return SGM_OK;
    sgm_fail(status, "%s", hooks->stop_text ? hooks->stop_text : sgm_status_text(status));
    sgm__free(hooks->stop_text);
    hooks->stop_text = NULL;
    hooks->stop_status = SGM_OK;
    atomic_fetch_and(&hooks->wanted, ~SGM__ATTENTION);
    return status;
}

/* The message gets the place in the training and the hook's text. A failure of SGM_HOOK_STOP goes back to
 * the caller in the foreground, and waits for the next event in the background. */
sgm_status sgm__hook_entry_failed(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_status status,
                                  const sgm_hook_call *call)
{
    const sgm_hook *hook = entry->hook;
    char message[1400], name[96];
    const char *newest = sgm_last_status() == status ? sgm_last_error() : "";
    snprintf(message, sizeof message, "%.900s (at epoch %lld, iteration %lld%s%.300s%s)",
             newest[0] ? newest : sgm_status_text(status), (long long)call->epoch, (long long)call->iteration,
             hook->text ? ": '" : "", hook->text ? hook->text : "", hook->text ? "'" : "");
    name_of(entry, name);
    if (hook->failure == SGM_HOOK_DETACH) {
        detach_failed(hooks, entry, message);
        return SGM_OK;
    }
    if (hook->failure == SGM_HOOK_GO_ON) {
        sgm__log(SGM_LOG_WARNING, "hooks", "trainer '%s': hook '%s' failed: %s", hooks->trainer, name,
                 message);
        return SGM_OK;
    }
    sgm__log(SGM_LOG_ERROR, "hooks", "trainer '%s': hook '%s' failed and stops the run: %s", hooks->trainer,
             name, message);
    sgm_fail(status, "hook '%s': %s", name, message);
    if (!call->background)
        return status;
    keep_stop(hooks, status, sgm_last_error());
    return SGM_OK;
}

/* --- running --- */

/* The sgm_lookup_function of criteria; `user` is the call. */
static sgm_status look_up(void *user, const char *identifier, double *value)
{
    return sgm_hook_number(user, identifier, value);
}

/* Whether the hook's condition holds now; with hook->turn. That a value is missing is logged once in the
 * life of the hook: metrics often have no value before the first epoch has ended. */
static sgm_status check_criteria(sgm_hook *hook, sgm_hook_call *call, bool *fires)
{
    const char *missing = NULL;
    SGM_TRY(sgm_criteria_check(hook->criteria, look_up, call, fires, &missing));
    if (missing && !hook->missing_logged) {
        hook->missing_logged = true;
        sgm__log(SGM_LOG_INFO, "hooks", "trainer '%s': hook '%s' waits for '%s', which has no value yet",
                 call->trainer, hook->type->name, missing);
    }
    return SGM_OK;
}

/* Warns of an identifier that matches nothing. An identifier whose entry exists but cannot be read just
 * now is no reason to warn. sgm_registry_resolve_one is called for its error, which names the nearest
 * identifiers. */
static void warn_of_missing(const sgm_hook *hook, const sgm_hook_call *call, const char *identifier)
{
    sgm_matches matches;
    sgm_content content;
    if (sgm_registry_resolve(call->registry, identifier, &matches) != SGM_OK)
        return; /* there is an entry, which has no value just now */
    size_t count = matches.count;
    sgm_matches_free(&matches);
    if (count > 0)
        return;
    if (sgm_registry_resolve_one(call->registry, identifier, &content) ==
        SGM_ERROR_NOT_FOUND) /* says what is near */
        sgm__log(SGM_LOG_WARNING, "hooks", "trainer '%s': hook '%s' reads what is not there so far: %s",
                 call->trainer, hook->type->name, sgm_last_error());
    else
        sgm_content_clear(&content);
}

/* Checks once, in the second epoch in which the hook is due, that all it reads exists: by then all entries
 * have come into being, so a name that nothing has is most likely misspelt. With hook->turn. Background
 * hooks are left out, as they see a copy that has only what was found. */
static void check_reads(sgm_hook *hook, const sgm_hook_call *call)
{
    if (!hook->has_run) {
        hook->has_run = true;
        hook->first_epoch = call->epoch;
    }
    if (call->background || call->epoch == hook->first_epoch)
        return;
    hook->reads_checked = true;
    for (size_t i = 0; i < hook->read_count; i++)
        warn_of_missing(hook, call, hook->reads[i]);
    sgm_clear_error();
}

/* One call of a hook: its criteria, then invoke(). Waiting for hook->turn gives up the trainer's lock
 * meanwhile (base/turn_lock.h), as another trainer that has the hook may be waiting for that. Between
 * sgm__busy_begin and sgm__busy_end this thread must not wait for one that may wait for it. Only calls of
 * invoke() count as runs, with the time since before the wait. */
sgm_status sgm__hook_entry_run(sgm__hooks *hooks, sgm__hook_entry *entry, sgm_hook_call call)
{
    sgm_hook *hook = entry->hook;
    sgm__hook_control control = {hooks, hook};
    sgm_status status = SGM_OK;
    bool fires = true;
    double start = sgm__now();
    call.control = &control;
    sgm__busy_begin();
    sgm__lock_giving_way(hook->turn);
    sgm_clear_error();
    if (!hook->reads_checked)
        check_reads(hook, &call);
    if (hook->criteria)
        status = check_criteria(hook, &call, &fires);
    if (status == SGM_OK && fires) {
        status = hook->type->invoke(hook->self, &call);
        atomic_fetch_add(&entry->runs, 1);
        atomic_fetch_add(&entry->nanoseconds, (long long)((sgm__now() - start) * 1e9));
    }
    pthread_mutex_unlock(hook->turn);
    sgm__busy_end();
    return status == SGM_OK ? SGM_OK : sgm__hook_entry_failed(hooks, entry, status, &call);
}

/* From now on the entry, and what requires it, runs in the background; the hook object keeps its option,
 * so a resume begins in the foreground. If no thread can be started the hook stays where it is. */
static void move_to_background(sgm__hooks *hooks, sgm__hook_entry *entry, double seconds)
{
    char took[32], limit[32];
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&hooks->lock);
    bool moves = entry->attached && !entry->background;
    if (moves)
        status = sgm__buckets_reserve(hooks, sgm__hooks_group_count(hooks) + 1);
    if (moves && status == SGM_OK) {
        entry->background = true;
        sgm__hooks_arrange(hooks);
    }
    pthread_mutex_unlock(&hooks->lock);
    if (!moves)
        return;
    sgm__log(SGM_LOG_WARNING, "hooks", "trainer '%s': hook '%s' took %s, its limit is %s: %s%s",
             hooks->trainer, entry->hook->type->name, sgm_duration_text(seconds, took, sizeof took),
             sgm_duration_text(entry->hook->time_limit, limit, sizeof limit),
             status == SGM_OK ? "from now on it runs in the background" : "it cannot be moved, ",
             status == SGM_OK ? "" : sgm_last_error());
}

/* Runs a foreground hook and moves it to the background when it took longer than its limit: the first call
 * that is too slow delays the training, later ones do not. */
static sgm_status run_in_time(sgm__hooks *hooks, sgm__hook_entry *entry, const sgm_hook_call *call)
{
    double limit = entry->hook->time_limit;
    if (limit <= 0)
        return sgm__hook_entry_run(hooks, entry, *call);
    double start = sgm__now();
    SGM_TRY(sgm__hook_entry_run(hooks, entry, *call));
    double seconds = sgm__now() - start;
    if (seconds > limit)
        move_to_background(hooks, entry, seconds);
    return SGM_OK;
}

/* Runs due foreground hooks in order; with the lock, which is released while a hook runs. `due` is cleared
 * before the call, so when hooks were attached or detached meanwhile the loop can begin again at the front
 * of the new order. */
static sgm_status run_foreground(sgm__hooks *hooks, const sgm_hook_call *call, sgm__hook_entry **garbage)
{
    sgm_status status = SGM_OK;
    int64_t version = hooks->version;
    for (size_t i = 0; i < hooks->count && status == SGM_OK; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        if (!entry->due || entry->background)
            continue;
        entry->due = false;
        entry->references++;
        pthread_mutex_unlock(&hooks->lock);
        status = run_in_time(hooks, entry, call);
        pthread_mutex_lock(&hooks->lock);
        sgm__hook_entry_drop(entry, garbage);
        if (version != hooks->version) {
            version = hooks->version;
            i = SIZE_MAX; /* the loop makes it 0 */
        }
    }
    return status;
}

/* Counts the event for each hook and marks those that are due; true: there are any. What a due hook
 * requires is marked too, even if its own step does not say so; going through `order` backwards reaches
 * what is required indirectly. A required hook of another scale keeps its own step: only an iteration hook
 * that an epoch hook requires can be that (sgm_time_step_covers). */
static bool count_event(sgm__hooks *hooks, sgm_time_scale scale)
{
    bool any = false;
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        const sgm_time_step *when = &entry->hook->when;
        entry->due = when->scale == scale && sgm_time_count_event(when, &entry->count, scale);
        any = any || entry->due;
    }
    for (size_t i = any ? hooks->count : 0; i-- > 0;) {
        sgm__hook_entry *entry = hooks->order[i];
        for (size_t j = 0; entry->due && j < entry->required_count; j++)
            if (entry->required[j]->hook->when.scale == scale)
                entry->required[j]->due = true;
    }
    return any;
}

/* Takes off hooks whose life is over. One that another hook requires stays, no longer chosen, and goes
 * with the last that requires it. */
static void end_event(sgm__hooks *hooks, sgm__hook_entry **garbage)
{
    bool changed = false;
    for (size_t i = hooks->count; i-- > 0;) {
        if (i >= hooks->count)
            continue; /* required entries went with their dependents, and the list is shorter */
        sgm__hook_entry *entry = hooks->order[i];
        entry->due = false;
        if (!sgm_time_count_is_dead(&entry->hook->when, &entry->count))
            continue;
        entry->chosen = false;
        if (!sgm__hook_entry_is_required(hooks, entry)) {
            sgm__hook_entry_take_off(hooks, entry, true, garbage);
            changed = true;
        }
    }
    if (changed)
        sgm__hooks_arrange(hooks);
}

/* Frees entries, whose hooks' free() may set the thread's error, and sets the error of the event again. */
static void free_keeping_error(sgm__hook_entry *garbage, sgm_status status)
{
    if (!garbage)
        return;
    char message[1024];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm__hook_entries_free(garbage);
    if (status != SGM_OK)
        sgm_fail(status, "%s", message);
}

/* The part of an event that needs the lock. A kept failure of a background hook stops the run before any
 * other hook is called. */
static sgm_status run_event(sgm__hooks *hooks, const sgm_hook_call *call)
{
    sgm__hook_entry *garbage = NULL;
    pthread_mutex_lock(&hooks->lock);
    hooks->had_event = true;
    sgm_status status = take_stop(hooks);
    if (status == SGM_OK && count_event(hooks, call->scale)) {
        status = run_foreground(hooks, call, &garbage);
        if (status == SGM_OK)
            sgm__buckets_fill(hooks, call);
        end_event(hooks, &garbage);
    }
    pthread_mutex_unlock(&hooks->lock);
    free_keeping_error(garbage, status);
    return status;
}

/* `wanted` is read without the lock: a hook that another thread attaches at this moment may miss this
 * event, not the next one. */
sgm_status sgm__hooks_event(sgm__hooks *hooks, sgm_time_scale scale, int64_t epoch, int64_t iteration)
{
    unsigned wanted = atomic_load_explicit(&hooks->wanted, memory_order_relaxed);
    if (!(wanted & (1u << scale | SGM__ATTENTION)))
        return SGM_OK;
    sgm_hook_call call = {.registry = hooks->registry,
                          .trainer = hooks->trainer,
                          .scale = scale,
                          .epoch = epoch,
                          .iteration = iteration};
    return run_event(hooks, &call);
}

/* --- asking --- */

/* Some values, gradients for example, are kept by a step only once somebody has asked for them. Resolving
 * each identifier before the first step counts as asking. The identifiers are copied first, as resolving
 * reads the trainer's registry, which must not happen under the holder's lock. */
void sgm__hooks_ask(sgm__hooks *hooks, sgm_registry *registry)
{
    sgm__text all = {0}; /* identifiers, each with its terminating 0 */
    pthread_mutex_lock(&hooks->lock);
    for (size_t i = 0; i < hooks->count; i++)
        for (size_t k = 0; k < hooks->order[i]->hook->read_count; k++) {
            const char *identifier = hooks->order[i]->hook->reads[k];
            sgm__text_append_bytes(&all, identifier, strlen(identifier) + 1);
        }
    pthread_mutex_unlock(&hooks->lock);
    for (size_t at = 0; !all.failed && at < all.length; at += strlen(all.data + at) + 1) {
        sgm_matches matches = {0};
        if (sgm_registry_resolve(registry, all.data + at, &matches) == SGM_OK)
            sgm_matches_free(&matches);
    }
    sgm__text_free(&all);
}
