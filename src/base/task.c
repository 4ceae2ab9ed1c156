/* The table of what is going on. A task has a slot of its own until it ends; its number says which. What
 * changes often (done, total) is atomic, the rest is guarded by the table's lock. */
#include "base/base.h"
#include <sigma/task.h>

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define SLOTS 64
#define WATCHERS 16
#define TELL_SECONDS 0.1

typedef struct slot {
    _Atomic sgm_task task; /* 0: free */
    atomic_uint_fast64_t done, total;
    atomic_bool cancelled, can_cancel;
    /* of the thread that has the task */
    bool counted;
    double told;
    /* written once, before `task` is */
    uint64_t first; /* done at the first progress: what was there before does not count for the rate */
    sgm_task_info info;
    double began;
} slot;

typedef struct watcher {
    sgm_task_function function;
    void *user;
    bool ends_only; /* not told of progress */
} watcher;

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static slot slots[SLOTS];
static int64_t newest; /* number of tasks so far */

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static watcher watchers[WATCHERS];
static atomic_size_t watcher_count, progress_watchers;
static _Thread_local bool telling; /* this thread is in a watcher, and holds watch_lock */

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

static slot *slot_of(sgm_task task)
{
    slot *s = &slots[(uint64_t)task % SLOTS];
    return task > 0 && atomic_load(&s->task) == task ? s : NULL;
}

/* Under the table's lock. */
static void describe(const slot *s, sgm_task_info *info)
{
    *info = s->info;
    info->done = atomic_load(&s->done);
    info->total = atomic_load(&s->total);
    info->can_cancel = atomic_load(&s->can_cancel);
    info->seconds = sgm__now() - s->began;
    info->progress = info->total == 0            ? -1
                     : info->done >= info->total ? 1
                                                 : (double)info->done / (double)info->total;
    if (info->done > s->first && info->seconds > 0)
        info->rate = (double)(info->done - s->first) / info->seconds;
}

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

static bool is_watched(const atomic_size_t *by)
{
    return atomic_load_explicit(by, memory_order_relaxed) > 0 && !telling;
}

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

/* What a terminal could mistake is a '?'. */
static void copy_text(char *copy, size_t size, const char *text)
{
    snprintf(copy, size, "%s", text != NULL ? text : "");
    for (char *c = sgm__make_printable(copy); *c != '\0'; c++)
        if (*c == '\n' || *c == '\t')
            *c = '?';
}

/* The slots are tried from the one that was given longest ago on, so that numbers say the order. */
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

sgm_task sgm_task_begin(sgm_task_kind kind, const char *description, const char *unit)
{
    struct timespec wall;
    sgm_task task;
    clock_gettime(CLOCK_REALTIME, &wall);
    pthread_mutex_lock(&table_lock);
    slot *s = take_slot(&task);
    if (s != NULL) {
        s->info = (sgm_task_info){
            .task = task, .kind = kind, .began = (double)wall.tv_sec + (double)wall.tv_nsec * 1e-9};
        copy_text(s->info.description, sizeof s->info.description, description);
        copy_text(s->info.unit, sizeof s->info.unit, unit);
        s->began = sgm__now();
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

void sgm_task_can_cancel(sgm_task task)
{
    slot *s = slot_of(task);
    if (s != NULL)
        atomic_store(&s->can_cancel, true);
}

static void count_from(slot *s, uint64_t done)
{
    s->counted = true;
    pthread_mutex_lock(&table_lock);
    s->first = done;
    pthread_mutex_unlock(&table_lock);
}

bool sgm_task_progress(sgm_task task, uint64_t done, uint64_t total)
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

/* Those that run, oldest first. Under the table's lock. */
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

size_t sgm_tasks(sgm_task_info *infos, size_t room)
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

/* NULL: none. */
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
