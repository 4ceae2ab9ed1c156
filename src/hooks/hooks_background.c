/* Background hooks: each group of hooks that depend on each other runs on a thread, on copies of what it
 * reads.
 *
 * A group that is due becomes a batch: its due entries, a registry with copies of what they read, and a call.
 * A bucket is a thread that runs one batch at a time. The training's thread fills a bucket
 * (sgm__buckets_fill, from hooks_run.c) and goes on at once. A group whose last batch still runs is left out
 * of this event, so nothing queues up behind a slow hook; how often that happened is counted in `skipped`.
 *
 * Buckets are guarded by hooks->lock. A bucket is taken from when `first` is set, and its thread begins
 * when `ready` is set; in between the training's thread copies values without the lock. `busy_buckets`
 * covers both, so sgm__hooks_wait waits for both. */
#include "base/clock.h"
#include "base/turn_lock.h"
#include "hooks/hooks_internal.h"

#include <stdio.h>

/* --- the threads --- */

/* The holder whose batches this thread runs; NULL on all threads but those of buckets. The trainer's lock
 * refuses such a thread (src/trainer/trainer_lock.c), as the trainer may be waiting for it. */
static _Thread_local const sgm__hooks *whose;

const sgm__hooks *sgm__hooks_of_background(void)
{
    return whose;
}

/* Whether the hook was taken off since the batch was collected. */
static bool is_cancelled(sgm__hooks *hooks, const sgm__hook_entry *entry)
{
    pthread_mutex_lock(&hooks->lock);
    bool cancelled = entry->cancelled;
    pthread_mutex_unlock(&hooks->lock);
    return cancelled;
}

/* Frees the bucket for its next batch; with the lock, which is released while hooks and values are freed.
 * `first` stays set until then, so nobody fills the bucket in between. */
static void end_batch(sgm__bucket *bucket)
{
    sgm__hooks *hooks = bucket->hooks;
    sgm__hook_entry *garbage = NULL, *next;
    for (sgm__hook_entry *entry = bucket->first; entry; entry = next) {
        next = entry->next;
        entry->next = NULL;
        entry->busy = false;
        sgm__hook_entry_drop(entry, &garbage);
    }
    pthread_mutex_unlock(&hooks->lock);
    sgm__hook_entries_free(garbage);
    sgm_registry_free(bucket->call.registry);
    pthread_mutex_lock(&hooks->lock);
    bucket->call.registry = NULL;
    bucket->first = NULL;
    bucket->ready = false;
    if (--hooks->busy_buckets == 0)
        pthread_cond_broadcast(&hooks->idle);
}

/* The thread of a bucket. A batch that is ready is run even when the holder is about to end. */
static void *run_bucket(void *argument)
{
    sgm__bucket *bucket = argument;
    sgm__hooks *hooks = bucket->hooks;
    whose = hooks;
    pthread_mutex_lock(&hooks->lock);
    for (;;) {
        while (!bucket->ready && !hooks->quit)
            pthread_cond_wait(&bucket->wake, &hooks->lock);
        if (!bucket->ready)
            break;
        pthread_mutex_unlock(&hooks->lock);
        for (sgm__hook_entry *entry = bucket->first; entry; entry = entry->next)
            if (!is_cancelled(hooks, entry))
                sgm__hook_entry_run(hooks, entry, bucket->call);
        pthread_mutex_lock(&hooks->lock);
        end_batch(bucket);
    }
    pthread_mutex_unlock(&hooks->lock);
    return NULL;
}

static sgm_status add_bucket(sgm__hooks *hooks)
{
    SGM_TRY(sgm__reserve(&hooks->buckets, &hooks->bucket_capacity, hooks->bucket_count + 1,
                         sizeof *hooks->buckets));
    sgm__bucket *bucket = sgm__calloc(1, sizeof *bucket);
    if (!bucket)
        return SGM_ERROR_MEMORY;
    bucket->hooks = hooks;
    pthread_cond_init(&bucket->wake, NULL);
    int error = sgm__thread_start(&bucket->thread, run_bucket, bucket);
    if (error) {
        pthread_cond_destroy(&bucket->wake);
        sgm__free(bucket);
        return sgm_fail(SGM_ERROR_STATE, "cannot start a thread for background hooks: %s",
                        sgm__errno_text(error));
    }
    hooks->buckets[hooks->bucket_count++] = bucket;
    return SGM_OK;
}

sgm_status sgm__buckets_reserve(sgm__hooks *hooks, size_t count)
{
    while (hooks->bucket_count < count)
        SGM_TRY(add_bucket(hooks));
    return SGM_OK;
}

/* Returns when no batch is being filled or run. Called by the training's thread, so no new batch comes
 * meanwhile. */
void sgm__hooks_wait(sgm__hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    while (hooks->busy_buckets > 0)
        pthread_cond_wait(&hooks->idle, &hooks->lock);
    pthread_mutex_unlock(&hooks->lock);
}

/* A background hook may wait for another trainer, whose lock's holder waits for that trainer's background
 * hooks: each of both threads then lets go of what the other one's hook waits for. The training may go on
 * meanwhile, but fills no bucket (`draining`): otherwise a hook that is always due would make this wait for
 * ever. */
void sgm__hooks_wait_giving_way(sgm__hooks *hooks)
{
    pthread_mutex_lock(&hooks->lock);
    hooks->draining++;
    while (hooks->busy_buckets > 0) {
        sgm__give_way_begin();
        while (hooks->busy_buckets > 0)
            pthread_cond_wait(&hooks->idle, &hooks->lock);
        pthread_mutex_unlock(&hooks->lock);
        sgm__give_way_end();
        pthread_mutex_lock(&hooks->lock);
    }
    hooks->draining--;
    pthread_mutex_unlock(&hooks->lock);
}

void sgm__buckets_end(sgm__hooks *hooks)
{
    sgm__hooks_wait(hooks);
    pthread_mutex_lock(&hooks->lock);
    hooks->quit = true;
    for (size_t i = 0; i < hooks->bucket_count; i++)
        pthread_cond_signal(&hooks->buckets[i]->wake);
    pthread_mutex_unlock(&hooks->lock);
    for (size_t i = 0; i < hooks->bucket_count; i++) {
        pthread_join(hooks->buckets[i]->thread, NULL);
        pthread_cond_destroy(&hooks->buckets[i]->wake);
        sgm__free(hooks->buckets[i]);
    }
    hooks->bucket_count = 0;
}

/* --- handing over; with the lock --- */

/* Whether an entry belongs to the next batch of a group. */
static bool is_due_in(const sgm__hook_entry *entry, size_t group)
{
    return entry->due && entry->background && entry->group == group;
}

/* A free bucket for a group; NULL: the group's last batch still runs, or all buckets run batches. There
 * are as many buckets as groups (sgm__buckets_reserve), so the second happens only while a finished batch is
 * being freed, or hooks that were taken off still run. */
static sgm__bucket *bucket_for(sgm__hooks *hooks, size_t group)
{
    for (size_t i = 0; i < hooks->count; i++)
        if (hooks->order[i]->background && hooks->order[i]->group == group && hooks->order[i]->busy)
            return NULL;
    for (size_t i = 0; i < hooks->bucket_count; i++)
        if (!hooks->buckets[i]->first)
            return hooks->buckets[i];
    return NULL;
}

/* The due hooks of a busy group do not run at this event. */
static void leave_out(sgm__hooks *hooks, size_t group)
{
    for (size_t i = 0; i < hooks->count; i++) {
        if (!is_due_in(hooks->order[i], group))
            continue;
        hooks->order[i]->due = false;
        hooks->skipped++;
    }
}

/* Moves the due entries of a group, in order of running, into the bucket's batch, with a reference each. */
static void collect(sgm__hooks *hooks, size_t group, sgm__bucket *bucket)
{
    sgm__hook_entry **last = &bucket->first;
    for (size_t i = 0; i < hooks->count; i++) {
        sgm__hook_entry *entry = hooks->order[i];
        if (!is_due_in(entry, group))
            continue;
        entry->due = false;
        entry->busy = true;
        entry->references++;
        entry->next = NULL;
        *last = entry;
        last = &entry->next;
    }
    hooks->busy_buckets++;
}

/* Copies what each hook of the batch reads from the trainer's registry into `target`. Without the lock,
 * since reading a registry may call functions of the trainer; the batch does not change meanwhile, as only
 * its bucket's owner touches it. */
static sgm_status copy_reads(sgm_registry *source, const sgm__bucket *bucket, sgm_registry *target)
{
    if (!target)
        return sgm_last_status();
    for (const sgm__hook_entry *entry = bucket->first; entry; entry = entry->next)
        for (size_t i = 0; i < entry->hook->read_count; i++)
            SGM_TRY(sgm__copy_matches(source, entry->hook->reads[i], target));
    return SGM_OK;
}

/* Makes the batch's call and its copy of values; true: the bucket may run. When a value cannot be copied,
 * each hook of the batch counts as failed, with the same message. */
static bool fill(sgm__hooks *hooks, const sgm_hook_call *call, sgm__bucket *bucket)
{
    sgm_registry *copy = sgm_registry_create();
    sgm_status status = copy_reads(call->registry, bucket, copy);
    bucket->call = *call;
    bucket->call.registry = copy;
    bucket->call.background = true;
    if (status == SGM_OK)
        return true;
    sgm__fail_within("copying what background hooks read");
    char message[1024];
    snprintf(message, sizeof message, "%s", sgm_last_error());
    for (sgm__hook_entry *entry = bucket->first; entry; entry = entry->next) {
        sgm_fail(status, "%s", message);
        sgm__hook_entry_failed(hooks, entry, status, &bucket->call);
    }
    return false;
}

/* Each round takes one group; `i = SIZE_MAX` begins again at the front of `order`, which may have changed
 * while the lock was released. */
void sgm__buckets_fill(sgm__hooks *hooks, const sgm_hook_call *call)
{
    for (size_t i = 0; i < hooks->count; i++) {
        if (!hooks->order[i]->due || !hooks->order[i]->background)
            continue;
        size_t group = hooks->order[i]->group;
        sgm__bucket *bucket = hooks->draining > 0 ? NULL : bucket_for(hooks, group);
        if (!bucket) {
            leave_out(hooks, group);
            continue;
        }
        collect(hooks, group, bucket);
        pthread_mutex_unlock(&hooks->lock);
        bool filled = fill(hooks, call, bucket);
        pthread_mutex_lock(&hooks->lock);
        bucket->ready = filled;
        if (filled)
            pthread_cond_signal(&bucket->wake);
        else
            end_batch(bucket);
        i = SIZE_MAX; /* begin again; collected entries are not due any more */
    }
}
