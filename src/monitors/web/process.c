/* The part `process`: what concerns the whole process: log messages, tasks, load of the system, and what the
 * run was started with.
 *
 * Messages and tasks come in on the threads that cause them (keep_message, keep_task), which must not be
 * held up: they go into rings under `lock`, and the monitor's thread (`tick`) pushes them to pages. Routes
 * read the same rings. A page that has missed some fetches them with /api/log. Load is read from /proc
 * every two seconds. */
#include "base/clock.h"
#include "monitors/terms.h"
#include "monitors/web/web_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Messages that are kept, and that an answer has if nothing else is asked for. */
#define KEPT_MESSAGES 5000
#define DEFAULT_MESSAGES 500
/* Messages that one tick pushes at most; a page that misses some sees a gap in the numbers and fetches
 * them. */
#define MAXIMUM_PUSHED 100
/* Tasks that have ended and are kept; tasks that run and are shown. */
#define KEPT_TASKS 32
#define MAXIMUM_TASKS 64
/* Ticks (tenths of a second) between two looks at running tasks, and at the system. */
#define TASK_TICKS 5
#define SYSTEM_TICKS 20

/* A log message. */
typedef struct message {
    uint64_t number; /* from 1 */
    double time;     /* seconds since 1970 */
    sgm_log_level level;
    char source[100];
    char *text;
} message;

/* Load of the system and of this process. Memory in bytes. */
typedef struct load {
    /* Shares of all processors, 0 to 1; NaN: not known yet. */
    double cpu, process_cpu;
    double memory, memory_total, process_memory;
    double averages[3];
    double threads;
} load;

/* The part's state. The lock is held for no longer than a copy or a message takes, as threads that log
 * wait for it. */
typedef struct process {
    sgm_log_sink *sink;
    pthread_mutex_t lock; /* guards the members up to `load` */
    message messages[KEPT_MESSAGES];
    uint64_t newest; /* number of the newest message, at messages[newest % KEPT_MESSAGES] */
    /* Rings of tasks that have ended or begun, and how many there were in all. */
    sgm_task_info ended[KEPT_TASKS], begun[KEPT_TASKS];
    uint64_t ended_count, begun_count;
    load load;
    /* From here on the ticker's own: numbers up to which things were pushed. */
    uint64_t ticks, pushed, ended_pushed, begun_pushed;
    sgm_task_info shown[MAXIMUM_TASKS]; /* running tasks as pages know them */
    size_t shown_count;
    /* At the last look: processor times of the system (in ticks of the kernel), of this process (in
     * seconds), and sgm__now(). */
    double busy, idle, own, measured;
} process;

/* --- messages --- */

/* The log's function, on the thread that logs; all other threads that log wait meanwhile. Memory is
 * allocated and freed outside of the lock. */
static void keep_message(void *user, sgm_log_level level, const char *source, const char *text)
{
    process *self = user;
    char *copy = sgm__strdup(text);
    if (copy == NULL)
        return;
    pthread_mutex_lock(&self->lock);
    message *place = &self->messages[++self->newest % KEPT_MESSAGES];
    char *old = place->text;
    *place = (message){.number = self->newest, .time = sgm__wall_time(), .level = level, .text = copy};
    snprintf(place->source, sizeof place->source, "%s", source);
    pthread_mutex_unlock(&self->lock);
    sgm__free(old);
}

static void append_message(sgm__text *text, const message *m)
{
    sgm__text_append(text, "{\"number\":%llu,\"time\":%.3f", (unsigned long long)m->number, m->time);
    sgm__web_append_named(text, "level", sgm_log_level_name(m->level));
    sgm__web_append_named(text, "source", m->source);
    sgm__web_append_named(text, "message", m->text);
    sgm__text_append(text, "}");
}

/* With the lock. NULL: the message was overwritten, or its text had no memory. */
static const message *message_at(const process *self, uint64_t number)
{
    const message *m = &self->messages[number % KEPT_MESSAGES];
    return m->number == number && m->text != NULL ? m : NULL;
}

/* What a request for messages asks for: at least `level`, with `search` in text or source (any case),
 * numbers above `after`, at most `limit` of the newest. */
typedef struct log_query {
    sgm_log_level level;
    const char *search;
    uint64_t after;
    size_t limit;
} log_query;

static bool is_wanted(const message *m, const log_query *query)
{
    return m->level >= query->level && (query->search == NULL || strcasestr(m->text, query->search) != NULL ||
                                        strcasestr(m->source, query->search) != NULL);
}

static sgm_status read_count(const sgm__http_request *request, const char *name, int64_t maximum,
                             int64_t *count)
{
    const char *text = sgm__http_query(request, name, 0);
    if (text != NULL && (!sgm__parse_int64(text, count) || *count < 0 || *count > maximum))
        return sgm_fail(SGM_ERROR_ARGUMENT, "'%s': expected a number from 0 to %lld, got '%.40s'", name,
                        (long long)maximum, text);
    return SGM_OK;
}

static sgm_status read_log_query(const sgm__http_request *request, log_query *query)
{
    int64_t after = 0, limit = DEFAULT_MESSAGES;
    const char *level = sgm__http_query(request, "level", 0);
    *query = (log_query){.level = SGM_LOG_DEBUG, .search = sgm__http_query(request, "search", 0)};
    if (level != NULL)
        SGM_TRY(sgm_log_level_parse(level, &query->level));
    SGM_TRY(read_count(request, "after", INT64_MAX, &after));
    SGM_TRY(read_count(request, "limit", KEPT_MESSAGES, &limit));
    if (query->search != NULL && query->search[0] == '\0')
        query->search = NULL;
    query->after = (uint64_t)after;
    query->limit = (size_t)limit;
    return SGM_OK;
}

/* Appends a message to `text` (NULL: to nothing) if the query wants it. Returns false if it is not kept
 * any more. The lock is held for one message only, because threads that log wait for it. */
static bool append_kept(sgm__text *text, process *self, uint64_t number, const log_query *query, bool *wanted)
{
    pthread_mutex_lock(&self->lock);
    const message *m = message_at(self, number);
    *wanted = m != NULL && is_wanted(m, query);
    if (*wanted && text != NULL)
        append_message(text, m);
    pthread_mutex_unlock(&self->lock);
    return m != NULL;
}

/* Number of the newest message, 0: none. */
static uint64_t newest_number(process *self)
{
    pthread_mutex_lock(&self->lock);
    uint64_t newest = self->newest;
    pthread_mutex_unlock(&self->lock);
    return newest;
}

/* Goes back from the newest message to find the first that the answer gives: the newest `limit` are
 * wanted, but in the order of time. */
static uint64_t oldest_wanted(process *self, const log_query *query, uint64_t newest)
{
    size_t found = 0;
    uint64_t number = newest + 1;
    bool wanted;
    while (number > query->after + 1 && found < query->limit &&
           append_kept(NULL, self, number - 1, query, &wanted)) {
        number--;
        found += wanted;
    }
    return number;
}

/* GET /api/log. A comma is written before it is known whether the message is wanted; if not, the text is
 * cut back to its length before. */
static sgm_status get_log(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    process *self = sgm__web_state(user, SGM__WEB_process);
    log_query query;
    sgm__text text = {0};
    SGM_TRY(read_log_query(request, &query));
    uint64_t newest = newest_number(self);
    sgm__text_append(&text, "{\"messages\":[");
    for (uint64_t number = oldest_wanted(self, &query, newest); number <= newest; number++) {
        bool wanted;
        size_t length = text.length;
        sgm__web_separate(&text);
        append_kept(&text, self, number, &query, &wanted);
        if (!wanted)
            text.length = length;
    }
    sgm__text_append(&text, "],\"newest\":%llu}", (unsigned long long)newest);
    return sgm__web_answer(answer, &text);
}

/* Pushes the messages since the last tick. */
static void show_messages(sgm__web *web, process *self)
{
    uint64_t newest = newest_number(self);
    if (newest - self->pushed > MAXIMUM_PUSHED)
        self->pushed = newest - MAXIMUM_PUSHED;
    while (self->pushed < newest) {
        sgm__text text = {0};
        pthread_mutex_lock(&self->lock);
        const message *m = message_at(self, ++self->pushed);
        if (m != NULL)
            append_message(&text, m);
        pthread_mutex_unlock(&self->lock);
        if (text.length > 0)
            sgm__web_push_text(web, "log", &text);
    }
}

/* --- tasks --- */

/* The watcher of tasks, on the task's thread, at its beginning and its end. */
static void keep_task(void *user, const sgm_task_info *info)
{
    process *self = user;
    pthread_mutex_lock(&self->lock);
    if (info->status == SGM_TASK_RUNNING)
        self->begun[self->begun_count++ % KEPT_TASKS] = *info;
    else
        self->ended[self->ended_count++ % KEPT_TASKS] = *info;
    pthread_mutex_unlock(&self->lock);
}

static void append_task(sgm__text *text, const sgm_task_info *info)
{
    static const char *const statuses[] = {"running", "ended", "failed", "cancelled"};
    sgm__text_append(text, "{\"task\":%lld", (long long)info->task);
    sgm__web_append_named(text, "kind", sgm_task_kind_name(info->kind));
    sgm__web_append_named(text, "going", sgm_task_kind_going(info->kind));
    sgm__web_append_named(text, "description", info->description);
    sgm__web_append_named(text, "unit", info->unit);
    sgm__web_append_member(text, "done", (double)info->done);
    sgm__web_append_member(text, "total", (double)info->total);
    sgm__text_append(text, ",\"progress\":");
    sgm__web_append_number(text, info->progress >= 0 ? info->progress : NAN);
    sgm__web_append_member(text, "rate", info->rate);
    sgm__web_append_member(text, "seconds", info->seconds);
    sgm__web_append_named(text, "status", statuses[info->status]);
    sgm__text_append(text, ",\"can_cancel\":%s,\"paused\":%s}", info->can_cancel ? "true" : "false",
                     info->paused ? "true" : "false");
}

static size_t running_tasks(sgm_task_info *infos)
{
    size_t count = sgm_task_list(infos, MAXIMUM_TASKS);
    return count < MAXIMUM_TASKS ? count : MAXIMUM_TASKS;
}

/* GET /api/tasks: tasks that have ended, oldest first, then running ones. */
static sgm_status get_tasks(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    process *self = sgm__web_state(user, SGM__WEB_process);
    sgm_task_info infos[MAXIMUM_TASKS];
    sgm__text text = {0};
    (void)request;
    sgm__text_append(&text, "{\"tasks\":[");
    pthread_mutex_lock(&self->lock);
    uint64_t count = self->ended_count;
    for (uint64_t i = count > KEPT_TASKS ? count - KEPT_TASKS : 0; i < count; i++) {
        sgm__web_separate(&text);
        append_task(&text, &self->ended[i % KEPT_TASKS]);
    }
    pthread_mutex_unlock(&self->lock);
    size_t running = running_tasks(infos);
    for (size_t i = 0; i < running; i++) {
        sgm__web_separate(&text);
        append_task(&text, &infos[i]);
    }
    sgm__text_append(&text, "]}");
    return sgm__web_answer(answer, &text);
}

/* POST /api/task-cancel {"task": NUMBER}. */
static sgm_status cancel_task(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    (void)user, (void)answer;
    sgm__terms terms = {0};
    json_t *body = sgm__http_object(request);
    const json_t *number = json_object_get(body, "task");
    if (body == NULL)
        return sgm__last_failure();
    sgm_status status = sgm__monitor_terms(request, body, &terms);
    if (status == SGM_OK)
        status = json_is_integer(number)
                     ? sgm_task_cancel(json_integer_value(number))
                     : sgm_fail(SGM_ERROR_ARGUMENT, "expected the number of a 'task' in the request");
    if (status == SGM_OK)
        sgm__terms_log("tasks", &terms, "task %lld was cancelled", json_integer_value(number));
    sgm__free(terms.who);
    return status;
}

static void push_task(sgm__web *web, const sgm_task_info *info)
{
    sgm__text text = {0};
    append_task(&text, info);
    sgm__web_push_text(web, "task", &text);
}

/* Pushes what is new in one of the two rings. A short task may have begun and ended between two ticks;
 * both are pushed. */
static void show_ends(sgm__web *web, process *self, const sgm_task_info *kept, const uint64_t *count,
                      uint64_t *pushed)
{
    for (;;) {
        sgm_task_info info;
        pthread_mutex_lock(&self->lock);
        if (*count - *pushed > KEPT_TASKS)
            *pushed = *count - KEPT_TASKS;
        bool any = *pushed < *count;
        if (any)
            info = kept[(*pushed)++ % KEPT_TASKS];
        pthread_mutex_unlock(&self->lock);
        if (!any)
            return;
        push_task(web, &info);
    }
}

/* Whether pages have this state of a running task. */
static bool is_shown(const process *self, const sgm_task_info *info)
{
    for (size_t i = 0; i < self->shown_count; i++)
        if (self->shown[i].task == info->task)
            return self->shown[i].done == info->done && self->shown[i].total == info->total &&
                   self->shown[i].can_cancel == info->can_cancel && self->shown[i].paused == info->paused;
    return false;
}

static void show_running(sgm__web *web, process *self)
{
    sgm_task_info infos[MAXIMUM_TASKS];
    size_t count = running_tasks(infos);
    for (size_t i = 0; i < count; i++)
        if (!is_shown(self, &infos[i]))
            push_task(web, &infos[i]);
    memcpy(self->shown, infos, count * sizeof *infos);
    self->shown_count = count;
}

/* --- the system --- */

/* The text of a file of /proc, whose size is not known in advance and which has no 0 byte. NULL: it cannot be
 * read. Free it with free. */
static char *file_text(const char *path)
{
    char *text = NULL;
    size_t room = 0;
    FILE *file = fopen(path, "re");
    bool good = file != NULL && getdelim(&text, &room, '\0', file) > 0;
    if (file != NULL)
        fclose(file);
    if (good)
        return text;
    free(text);
    return NULL;
}

/* The number behind a word; 0: the word is not there. */
static double number_after(const char *text, const char *word)
{
    const char *place = text != NULL ? strstr(text, word) : NULL;
    return place != NULL ? strtod(place + strlen(word), NULL) : 0;
}

/* Shares of the processors' time since the last look. /proc/stat gives user, nice, system, idle, iowait,
 * irq, softirq and steal; waiting for disks counts as idle. */
static void measure_processors(process *self, load *now)
{
    char *text = file_text("/proc/stat");
    double fields[8] = {0}, busy = 0, idle;
    char *end = text != NULL && strncmp(text, "cpu ", 4) == 0 ? text + 4 : NULL;
    for (size_t i = 0; end != NULL && i < 8; i++)
        fields[i] = strtod(end, &end);
    free(text);
    idle = fields[3] + fields[4];
    for (size_t i = 0; i < 8; i++)
        busy += i == 3 || i == 4 ? 0 : fields[i];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double own = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    double time = sgm__now(), all = busy - self->busy + idle - self->idle;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bool again =
        self->measured > 0; /* shares are at most 1: rounding of the kernel's ticks may exceed that */
    now->cpu = again && all > 0 ? fmin((busy - self->busy) / all, 1) : NAN;
    now->process_cpu = again && time > self->measured && processors > 0
                           ? fmin((own - self->own) / (time - self->measured) / (double)processors, 1)
                           : NAN;
    self->busy = busy;
    self->idle = idle;
    self->own = own;
    self->measured = time;
}

/* /proc gives kB, that is 1024 bytes. Memory in use is what is not available. */
static void measure_memory(load *now)
{
    char *system = file_text("/proc/meminfo"), *own = file_text("/proc/self/status");
    now->memory_total = number_after(system, "MemTotal:") * 1024;
    now->memory = now->memory_total - number_after(system, "MemAvailable:") * 1024;
    now->process_memory = number_after(own, "VmRSS:") * 1024;
    now->threads = number_after(own, "Threads:");
    free(system);
    free(own);
}

static void measure(process *self)
{
    load now = {0};
    measure_processors(self, &now);
    measure_memory(&now);
    if (getloadavg(now.averages, 3) < 3)
        memset(now.averages, 0, sizeof now.averages);
    pthread_mutex_lock(&self->lock);
    self->load = now;
    pthread_mutex_unlock(&self->lock);
}

static void append_load(sgm__text *text, process *self)
{
    pthread_mutex_lock(&self->lock);
    load now = self->load;
    pthread_mutex_unlock(&self->lock);
    sgm__text_append(text, "{\"cpu\":");
    sgm__web_append_number(text, now.cpu);
    sgm__text_append(text, ",\"process_cpu\":");
    sgm__web_append_number(text, now.process_cpu);
    sgm__web_append_member(text, "memory", now.memory);
    sgm__web_append_member(text, "memory_total", now.memory_total);
    sgm__web_append_member(text, "process_memory", now.process_memory);
    sgm__web_append_member(text, "threads", now.threads);
    sgm__web_append_member(text, "processors", sgm__processors());
    sgm__web_append_numbers(text, "load", now.averages, sizeof *now.averages, 3);
    sgm__text_append(text, "}");
}

static sgm_status get_system(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    sgm__text text = {0};
    (void)request;
    append_load(&text, sgm__web_state(user, SGM__WEB_process));
    return sgm__web_answer(answer, &text);
}

/* --- what the run was started with --- */

/* The command line as a member "command", from /proc/self/cmdline, whose arguments end in a 0 byte each. */
static void append_command(sgm__text *text)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *file = fopen("/proc/self/cmdline", "re");
    bool any = file != NULL && getdelim(&bytes, &length, '\0', file) > 0;
    sgm__text_append(text, ",\"command\":[");
    for (; any; any = getdelim(&bytes, &length, '\0', file) > 0) {
        sgm__web_separate(text);
        sgm__web_append_text(text, bytes);
    }
    sgm__text_append(text, "]");
    free(bytes);
    if (file != NULL)
        fclose(file);
}

/* GET /api/configuration. The seed is a text, because a double, which JavaScript uses for all numbers,
 * does not hold all 64 bits. */
static sgm_status get_configuration(void *user, const sgm__http_request *request, sgm__http_answer *answer)
{
    const sgm__web *web = user;
    sgm__text text = {0};
    (void)request;
    sgm__text_append(&text, "{\"text\":");
    sgm__web_append_text(&text, web->options.configuration);
    sgm__web_append_named(&text, "name", web->host.name);
    sgm__web_append_named(&text, "handler", web->host.handler);
    sgm__web_append_named(&text, "precision", sgm_dtype_name(web->host.precision));
    sgm__web_append_member(&text, "threads", web->host.threads > 0 ? web->host.threads : sgm__processors());
    sgm__text_append(&text, ",\"seed\":\"%llu\"", (unsigned long long)web->host.seed);
    sgm__web_append_named(&text, "version", sgm_version());
    append_command(&text);
    sgm__text_append(&text, "}");
    return sgm__web_answer(answer, &text);
}

/* --- the part --- */

/* The load is measured also when nobody listens, since shares need a look before. */
static void tick(sgm__web *web, void *state)
{
    process *self = state;
    bool listens = sgm__web_listeners(web) > 0;
    if (self->ticks % SYSTEM_TICKS == 0)
        measure(self);
    if (listens) {
        show_messages(web, self);
        show_ends(web, self, self->begun, &self->begun_count, &self->begun_pushed);
        show_ends(web, self, self->ended, &self->ended_count, &self->ended_pushed);
        if (self->ticks % TASK_TICKS == 0)
            show_running(web, self);
        if (self->ticks % SYSTEM_TICKS == 0) {
            sgm__text text = {0};
            append_load(&text, self);
            sgm__web_push_text(web, "system", &text);
        }
    }
    self->ticks++;
}

/* Ends the calls of keep_message and keep_task before the state goes. */
static void release(void *state)
{
    process *self = state;
    sgm_task_unwatch(keep_task, self);
    sgm_log_remove_sink(self->sink);
    for (size_t i = 0; i < KEPT_MESSAGES; i++)
        sgm__free(self->messages[i].text);
    pthread_mutex_destroy(&self->lock);
    sgm__free(self);
}

/* *state is set before anything can fail, so that the monitor frees it with `release`. */
static sgm_status create(sgm__web *web, void **state)
{
    (void)web;
    process *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return SGM_ERROR_MEMORY;
    pthread_mutex_init(&self->lock, NULL);
    *state = self;
    self->load.cpu = self->load.process_cpu = NAN;
    self->sink = sgm_log_add_sink(keep_message, self, SGM_LOG_DEBUG);
    if (self->sink == NULL)
        return sgm__last_failure();
    return sgm__task_watch_ends(keep_task, self);
}

static const sgm__http_route routes[] = {
    {"GET", "/api/log", .act = get_log, .quick = true},
    {"GET", "/api/tasks", .act = get_tasks, .quick = true},
    {"POST", "/api/task-cancel", .act = cancel_task, .quick = true, .role = SGM__ROLE_STEER},
    {"GET", "/api/system", .act = get_system, .quick = true},
    {"GET", "/api/configuration", .act = get_configuration, .quick = true},
};

const sgm__web_part sgm__web_process = {.routes = routes,
                                        .route_count = sizeof routes / sizeof *routes,
                                        .create = create,
                                        .free = release,
                                        .tick = tick};
