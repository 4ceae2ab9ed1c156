/* Keeps the table of tasks that are going on in the process: downloads, preparations, trainings,
 * compilations.
 *
 * A task occupies one of 64 static slots from sgm_task_begin to sgm_task_end. Its number is never used twice,
 * and number modulo 64 is its slot: so finding it is one comparison, and a number whose task has ended finds
 * nothing. Members that change often (done, total) are atomic, everything else in a slot is guarded by
 * `table_lock`. Watchers (monitors, functions of the program) are called on the task's own thread under
 * `watch_lock`, never under `table_lock`, so that a watcher may call sgm_task_list. Nothing here allocates,
 * and with a full table the work goes on untold. */
#include "base/base.h"
#include "base/clock.h"
#include <sigma/base.h>

#include <stdatomic.h>
#include <stdio.h>

#define SLOTS 64 /* tasks at a time */
#define WATCHERS 16
#define TELL_SECONDS 0.1 /* at least this long between two reports of one task's progress */

/* One running task. Members are set before `task` is, and a slot is free again as soon as `task` is 0. */
typedef struct slot {
    _Atomic sgm_task task; /* the number; 0: free */
    atomic_uint_fast64_t done, total;
    atomic_bool cancelled, can_cancel;
    /* Used by the task's thread alone: whether progress was ever counted, and when watchers were last told.
     */
    bool counted;
    double told;
    /* Written before `task` is, and `first` once more at the first progress: the amount that was done before
     * the task began (a resumed download), which must not count for the rate. */
    uint64_t first;
    sgm_task_info info;
    double began; /* monotonic seconds; info.began is the time of day */
    /* Seconds of pauses that have ended; since when info.paused is true. Guarded by table_lock. */
    double waited, paused_since;
} slot;

typedef struct watcher {
    sgm_task_function function;
    void *user;
    bool ends_only; /* called at the beginning and the end, not for progress */
} watcher;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static slot slots[SLOTS];
static int64_t newest; /* the number that was given last; guarded by table_lock */

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static watcher watchers[WATCHERS];
static atomic_size_t watcher_count, progress_watchers;
/* This thread is inside a watcher, and holds watch_lock: tasks that a watcher begins are not told to anybody,
 * and the watcher may add and remove watchers without locking again. */
static _Thread_local bool telling;

/* --- names --- */

static const char *const names[] = {
#define TASK_NOUN(name, noun, going) noun,
    SGM_TASK_LIST(TASK_NOUN)
#undef TASK_NOUN
};
static const char *const going_names[] = {
#define TASK_GOING(name, noun, going) going,
    SGM_TASK_LIST(TASK_GOING)
#undef TASK_GOING
};

const char *sgm_task_kind_name(sgm_task_kind kind)
{
    return (size_t)kind < SGM_TASK_KIND_COUNT ? names[kind] : "unknown";
}

const char *sgm_task_kind_going(sgm_task_kind kind)
{
    return (size_t)kind < SGM_TASK_KIND_COUNT ? going_names[kind] : "unknown";
}

/* --- telling --- */

/* NULL: the task has ended, or is 0 because the table was full. */
static slot *slot_of(sgm_task task)
{
    slot *s = &slots[(uint64_t)task % SLOTS];
    return task > 0 && atomic_load(&s->task) == task ? s : NULL;
}

/* Copies what is known of a task, with progress and rate computed from one look at the counters. Called under
 * table_lock. */
static void describe(const slot *s, sgm_task_info *info)
{
    *info = s->info;
    info->done = atomic_load(&s->done);
    info->total = atomic_load(&s->total);
    info->can_cancel = atomic_load(&s->can_cancel);
    double now = sgm__now(), waited = s->waited + (s->info.paused ? now - s->paused_since : 0);
    info->seconds = now - s->began;
    info->progress = info->total == 0            ? -1
                     : info->done >= info->total ? 1
                                                 : (double)info->done / (double)info->total;
    if (info->done > s->first && info->seconds > waited)
        info->rate = (double)(info->done - s->first) / (info->seconds - waited);
}

/* Holds watch_lock while functions run: that makes it one call at a time, over all tasks of the process. */
static void call_watchers(const sgm_task_info *info, bool is_progress)
{
    pthread_mutex_lock(&watch_lock);
    telling = true;
    for (size_t i = 0; i < WATCHERS; i++)
        if (watchers[i].function != NULL && !(is_progress && watchers[i].ends_only))
            watchers[i].function(watchers[i].user, info);
    telling = false;
    pthread_mutex_unlock(&watch_lock);
}

/* `by` is one of the two numbers of watchers. A watcher that is added just now may miss this event, so no
 * ordering is needed. */
static bool is_watched(const atomic_size_t *by)
{
    return atomic_load_explicit(by, memory_order_relaxed) > 0 && !telling;
}

/* Describes the task under table_lock, and calls watchers after it is released. Called on the task's thread.
 */
static void tell(slot *s, bool is_progress)
{
    sgm_task_info info;
    pthread_mutex_lock(&table_lock);
    describe(s, &info);
    pthread_mutex_unlock(&table_lock);
    s->told = sgm__now();
    call_watchers(&info, is_progress);
}

/* --- tasks --- */

/* Line ends and tabs become '?' as well: descriptions are shown on one line of a terminal. */
static void copy_text(char *copy, size_t size, const char *text)
{
    snprintf(copy, size, "%s", text != NULL ? text : "");
    for (char *c = sgm__make_printable(copy); *c != '\0'; c++)
        if (*c == '\n' || *c == '\t')
            *c = '?';
}

/* Numbers go on until one falls on a free slot: skipped numbers are never used, and a later task always has
 * the larger number, so that sorting by number is sorting by age. NULL after a whole round: the table is
 * full. Called under table_lock. */
static slot *take_slot(sgm_task *task)
{
    for (int i = 0; i < SLOTS; i++) {
        *task = ++newest;
        slot *s = &slots[(uint64_t)*task % SLOTS];
        if (atomic_load(&s->task) == 0)
            return s;
    }
    return NULL;
}

/* The store to `task` comes last: it makes the slot visible to slot_of, which takes no lock. */
sgm_task sgm_task_begin(sgm_task_kind kind, const char *description, const char *unit)
{
    sgm_task task;
    double began = sgm__wall_time();
    pthread_mutex_lock(&table_lock);
    slot *s = take_slot(&task);
    if (s != NULL) {
        s->info = (sgm_task_info){.task = task, .kind = kind, .began = began};
        copy_text(s->info.description, sizeof s->info.description, description);
        copy_text(s->info.unit, sizeof s->info.unit, unit);
        s->began = sgm__now();
        s->waited = 0;
        s->first = 0;
        s->told = 0;
        s->counted = false;
        atomic_store(&s->done, 0);
        atomic_store(&s->total, 0);
        atomic_store(&s->cancelled, false);
        atomic_store(&s->can_cancel, false);
        atomic_store(&s->task, task);
    }
    pthread_mutex_unlock(&table_lock);
    if (s != NULL && is_watched(&watcher_count))
        tell(s, false);
    return s != NULL ? task : 0;
}

void sgm_task_allow_cancel(sgm_task task)
{
    slot *s = slot_of(task);
    if (s != NULL)
        atomic_store(&s->can_cancel, true);
}

/* Takes the first count as the beginning for the rate; sgm_task_list reads it on other threads, hence the
 * lock.
 */
static void count_from(slot *s, uint64_t done)
{
    s->counted = true;
    pthread_mutex_lock(&table_lock);
    s->first = done;
    pthread_mutex_unlock(&table_lock);
}

/* Called in inner loops: without watchers it costs two stores and two loads, and no look at the clock. */
bool sgm_task_set_progress(sgm_task task, uint64_t done, uint64_t total)
{
    slot *s = slot_of(task);
    if (s == NULL)
        return true;
    if (!s->counted)
        count_from(s, done);
    atomic_store_explicit(&s->done, done, memory_order_relaxed);
    atomic_store_explicit(&s->total, total, memory_order_relaxed);
    if (is_watched(&progress_watchers) && sgm__now() - s->told >= TELL_SECONDS)
        tell(s, true);
    return !atomic_load_explicit(&s->cancelled, memory_order_relaxed);
}

void sgm_task_set_paused(sgm_task task, bool paused)
{
    slot *s = slot_of(task);
    if (s == NULL || s->info.paused == paused)
        return;
    double now = sgm__now();
    pthread_mutex_lock(&table_lock);
    if (paused)
        s->paused_since = now;
    else
        s->waited += now - s->paused_since;
    s->info.paused = paused;
    pthread_mutex_unlock(&table_lock);
}

/* Describes the task a last time before its slot becomes free, as another thread may take the slot at once.
 */
void sgm_task_end(sgm_task task, sgm_status status)
{
    sgm_task_info info;
    slot *s = slot_of(task);
    if (s == NULL)
        return;
    pthread_mutex_lock(&table_lock);
    describe(s, &info);
    atomic_store(&s->task, 0);
    pthread_mutex_unlock(&table_lock);
    info.status = status == SGM_OK                  ? SGM_TASK_ENDED
                  : status == SGM_ERROR_INTERRUPTED ? SGM_TASK_CANCELLED
                                                    : SGM_TASK_FAILED;
    if (is_watched(&watcher_count))
        call_watchers(&info, false);
}

/* --- looking --- */

/* Collects the slots in use, sorted by number, that is by age (insertion sort). Called under table_lock. */
static size_t running(const slot *found[SLOTS])
{
    size_t count = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        sgm_task task = atomic_load(&slots[i].task);
        size_t place = count;
        if (task == 0)
            continue;
        for (; place > 0 && found[place - 1]->info.task > task; place--)
            found[place] = found[place - 1];
        found[place] = &slots[i];
        count++;
    }
    return count;
}

size_t sgm_task_list(sgm_task_info *infos, size_t room)
{
    const slot *found[SLOTS];
    pthread_mutex_lock(&table_lock);
    size_t count = running(found);
    for (size_t i = 0; i < count && i < room; i++)
        describe(found[i], &infos[i]);
    pthread_mutex_unlock(&table_lock);
    return count;
}

sgm_status sgm_task_cancel(sgm_task task)
{
    sgm_status status = SGM_OK;
    pthread_mutex_lock(&table_lock);
    slot *s = slot_of(task);
    if (s == NULL)
        status = sgm_fail(SGM_ERROR_NOT_FOUND, "task %lld is not running", (long long)task);
    else if (!atomic_load(&s->can_cancel))
        status = sgm_fail(SGM_ERROR_UNSUPPORTED, "%s '%s' cannot be cancelled",
                          sgm_task_kind_going(s->info.kind), s->info.description);
    else
        atomic_store(&s->cancelled, true);
    pthread_mutex_unlock(&table_lock);
    return status;
}

/* Adding and removing watchers waits for a call under way, so that an unwatched function is not called any
 * more once sgm_task_unwatch has returned. Inside a watcher this thread has the lock already. */
static void lock_watchers(void)
{
    if (!telling)
        pthread_mutex_lock(&watch_lock);
}

static void unlock_watchers(void)
{
    if (!telling)
        pthread_mutex_unlock(&watch_lock);
}

/* The watcher with this function and user; `function` NULL finds a free place. NULL: there is none. Called
 * under watch_lock. */
static watcher *find_watcher(sgm_task_function function, void *user)
{
    for (size_t i = 0; i < WATCHERS; i++)
        if (watchers[i].function == function && (function == NULL || watchers[i].user == user))
            return &watchers[i];
    return NULL;
}

static sgm_status add_watcher(watcher wanted)
{
    lock_watchers();
    watcher *place = find_watcher(NULL, NULL);
    if (place != NULL) {
        *place = wanted;
        atomic_fetch_add(&watcher_count, 1);
        atomic_fetch_add(&progress_watchers, !wanted.ends_only);
    }
    unlock_watchers();
    return place != NULL ? SGM_OK
                         : sgm_fail(SGM_ERROR_STATE, "%d functions watch the tasks already", WATCHERS);
}

sgm_status sgm_task_watch(sgm_task_function function, void *user)
{
    if (function == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_task_watch: expected a function, got NULL");
    return add_watcher((watcher){.function = function, .user = user});
}

sgm_status sgm__task_watch_ends(sgm_task_function function, void *user)
{
    return add_watcher((watcher){.function = function, .user = user, .ends_only = true});
}

void sgm_task_unwatch(sgm_task_function function, void *user)
{
    lock_watchers();
    watcher *place = function != NULL ? find_watcher(function, user) : NULL;
    if (place != NULL) {
        atomic_fetch_sub(&watcher_count, 1);
        atomic_fetch_sub(&progress_watchers, !place->ends_only);
        *place = (watcher){0};
    }
    unlock_watchers();
}
