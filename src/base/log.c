/* This is the logger: it takes messages from any thread and passes each to every sink whose level the message
 * reaches.
 *
 * A sink is a struct of functions (log_sink.h): stderr or a function of the program, which this file has, or
 * a file, in log_file.c. The list of sinks, and every call of a sink, is guarded by one mutex, so that no two
 * messages mix. `minimum_level` repeats the lowest level of all sinks as an atomic number: a message that no
 * sink wants costs one comparison and takes no lock. Logging needs no memory, so that running out of memory
 * can be logged. The list always ends in default_sink, which is never freed. */
#include "base/log_sink.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* --- levels --- */

static const char *const level_names[] = {"debug", "info", "warning", "error", "off"};
#define LEVEL_COUNT (sizeof level_names / sizeof *level_names)

const char *sgm_log_level_name(sgm_log_level level)
{
    return (size_t)level < LEVEL_COUNT ? level_names[level] : "unknown";
}

/* Fails without a message: the environment's level is read where the thread's error must not change. */
static bool find_level(const char *name, sgm_log_level *level)
{
    for (size_t i = 0; name != NULL && i < LEVEL_COUNT; i++)
        if (strcmp(name, level_names[i]) == 0) {
            *level = (sgm_log_level)i;
            return true;
        }
    return false;
}

sgm_status sgm_log_level_parse(const char *name, sgm_log_level *level)
{
    if (find_level(name, level))
        return SGM_OK;
    const char *near = name != NULL ? sgm__nearest(name, level_names, LEVEL_COUNT) : NULL;
    return sgm_fail(SGM_ERROR_ARGUMENT,
                    "unknown log level '%.40s'%s%s%s there are debug, info, warning, error and off",
                    name != NULL ? name : "", near != NULL ? " (did you mean '" : ";",
                    near != NULL ? near : "", near != NULL ? "'?);" : "");
}

/* --- lines --- */

/* Every sink writes its own beginning of the line (time, level) and calls this for the rest. A line break
 * inside a message gets four spaces behind it, so that every line of a log file that begins with a date
 * begins a message. */
size_t sgm__log_end_line(char *line, size_t length, const sgm__log_entry *entry)
{
    const size_t maximum = SGM__LOG_LINE - 6; /* a line break with its spaces, or the end */
    int source =
        entry->source[0] != '\0' ? snprintf(line + length, SGM__LOG_LINE / 4, "%.200s: ", entry->source) : 0;
    length += source > 0 ? (size_t)source : 0;
    for (const char *c = entry->message; *c != '\0' && length < maximum; c++) {
        if (*c == '\n') {
            memcpy(line + length, "\n    ", 5);
            length += 5;
        } else {
            line[length++] = (unsigned char)*c < 0x20 || *c == 0x7f ? (*c == '\t' ? ' ' : '?') : *c;
        }
    }
    line[length++] = '\n';
    return length;
}

/* --- stderr --- */

static atomic_bool line_is_open; /* see sgm__log_line_is_open */

void sgm__log_line_is_open(bool open)
{
    atomic_store(&line_is_open, open);
}

/* NO_COLOR (https://no-color.org) and TERM=dumb switch colours off. */
static bool wants_colour(void)
{
    const char *none = getenv("NO_COLOR"), *kind = getenv("TERM");
    return (none == NULL || none[0] == '\0') && (kind == NULL || strcmp(kind, "dumb") != 0);
}

/* Erases an unfinished line (a progress bar) first: carriage return, then "clear to the end of the line". The
 * parts of the line are one fwrite, as other processes may write to the same terminal. */
static void write_to_stderr(sgm_log_sink *self, const sgm__log_entry *entry)
{
    static const char *const colours[] = {"\033[2m", "\033[32m", "\033[33m", "\033[1;31m"};
    (void)self;
    char line[SGM__LOG_LINE];
    bool terminal = isatty(STDERR_FILENO), colour = terminal && wants_colour();
    struct tm local;
    localtime_r(&entry->time.tv_sec, &local);
    int length = snprintf(line, sizeof line, "%s%s%02d:%02d:%02d.%03d%s %s%s%s ",
                          terminal && atomic_load(&line_is_open) ? "\r\033[K" : "", colour ? "\033[2m" : "",
                          local.tm_hour, local.tm_min, local.tm_sec, (int)(entry->time.tv_nsec / 1000000),
                          colour ? "\033[0m" : "", colour ? colours[entry->level] : "",
                          level_names[entry->level], colour ? "\033[0m" : "");
    fwrite(line, 1, sgm__log_end_line(line, (size_t)length, entry), stderr);
}

/* --- functions --- */

/* A sink that calls a function of the program. The default sink is one too, whose function is NULL while it
 * writes to stderr. */
typedef struct function_sink {
    sgm_log_sink base;
    sgm_log_function function;
    void *user;
} function_sink;

static void call_function(sgm_log_sink *sink, const sgm__log_entry *entry)
{
    const function_sink *self = (const function_sink *)sink;
    self->function(self->user, entry->level, entry->source, entry->message);
}

static void free_sink(sgm_log_sink *sink)
{
    sgm__free(sink);
}

/* --- the sinks --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static function_sink default_sink = {
    .base = {.minimum = SGM_LOG_WARNING, .notes = true, .write = write_to_stderr}};
static sgm_log_sink *sinks = &default_sink.base;
/* The lowest level that a sink takes; written under `mutex`, read without it. */
static atomic_int minimum_level;
/* Set while this thread calls sinks, and thereby holds `mutex`. Messages that a sink's function logs
 * meanwhile are dropped (else a failing sink would log about its failure for ever), and lock_sinks does not
 * lock again, so that a sink's function may add, change and end sinks. */
static _Thread_local bool logging;

static void lock_sinks(void)
{
    if (!logging)
        pthread_mutex_lock(&mutex);
}

static void unlock_sinks(void)
{
    if (!logging)
        pthread_mutex_unlock(&mutex);
}

static void update_minimum_level(void)
{
    sgm_log_level minimum = SGM_LOG_NONE;
    for (const sgm_log_sink *sink = sinks; sink != NULL; sink = sink->next)
        if (!sink->ended && sink->minimum < minimum)
            minimum = sink->minimum;
    atomic_store(&minimum_level, (int)minimum);
}

static void add_sink(sgm_log_sink *sink)
{
    sink->next = sinks;
    sinks = sink;
    update_minimum_level();
}

static void write_to_all(const sgm__log_entry *entry)
{
    for (sgm_log_sink *sink = sinks; sink != NULL; sink = sink->next)
        if (!sink->ended && (entry->level >= sink->minimum || (entry->note && sink->notes)))
            sink->write(sink, entry);
}

/* Passes on what sinks could not do (such as a full disk) as a warning to all sinks, the one in trouble
 * included. A sink reports each kind of trouble only once, so this ends. */
static void tell_troubles(const sgm__log_entry *entry)
{
    for (sgm_log_sink *sink = sinks; sink != NULL; sink = sink->next) {
        if (sink->trouble[0] == '\0')
            continue;
        char message[sizeof sink->trouble];
        memcpy(message, sink->trouble, sizeof message);
        sink->trouble[0] = '\0';
        write_to_all(&(sgm__log_entry){
            .level = SGM_LOG_WARNING, .source = "log", .message = message, .time = entry->time});
    }
}

/* Unlinks and closes the sinks that have ended. Called only when no loop over the list is under way, since a
 * sink's function may end any sink, its own included, amid write_to_all. */
static void remove_ended(void)
{
    for (sgm_log_sink **place = &sinks; *place != NULL;) {
        sgm_log_sink *sink = *place;
        if (sink->ended) {
            *place = sink->next;
            sink->close(sink);
        } else {
            place = &sink->next;
        }
    }
    update_minimum_level();
}

/* The one place that calls sinks. `logging` is set while the mutex is held, and tells every function here
 * that this thread has it. */
static void deliver(sgm_log_level level, bool note, const char *source, const char *message)
{
    sgm__log_entry entry = {
        .level = level, .note = note, .source = source != NULL ? source : "", .message = message};
    clock_gettime(CLOCK_REALTIME, &entry.time);
    pthread_mutex_lock(&mutex);
    logging = true;
    write_to_all(&entry);
    tell_troubles(&entry);
    remove_ended();
    logging = false;
    pthread_mutex_unlock(&mutex);
}

/* --- what the user's environment says; without memory and without touching the thread's newest error --- */

static pthread_once_t configured = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    lock_sinks();
}

static void after_fork(void)
{
    unlock_sinks();
}

/* The sink lies in static memory: this runs at the first message, which may be about memory that has run out,
 * and the program's allocator may not be set at all. */
static void open_users_file(const char *path)
{
    static max_align_t memory[(SGM__LOG_FILE_ROOM + sizeof(max_align_t) - 1) / sizeof(max_align_t)];
    char message[SGM__LOG_MESSAGE];
    int error = sgm__log_file_open(memory, path, &(sgm_log_file_options){.level = SGM_LOG_DEBUG});
    if (error == 0) {
        add_sink((sgm_log_sink *)memory);
        return;
    }
    snprintf(message, sizeof message, "SIGMA_LOG_FILE: '%.1000s' cannot be opened: %s", path,
             sgm__errno_text(error));
    deliver(SGM_LOG_WARNING, false, "log", message);
}

/* Called once, before the first use of the logger. The handlers around fork take the lock in the parent and
 * give it back in both processes: a child that was forked while another thread logged would otherwise inherit
 * a mutex that nobody unlocks. */
static void configure(void)
{
    const char *level = getenv("SIGMA_LOG"), *path = getenv("SIGMA_LOG_FILE");
    char message[160];
    pthread_atfork(before_fork, after_fork, after_fork);
    bool chosen = level != NULL && level[0] != '\0';
    bool wrong = chosen && !find_level(level, &default_sink.base.minimum);
    default_sink.base.notes &= !chosen || wrong;
    update_minimum_level();
    if (wrong) {
        snprintf(message, sizeof message, "SIGMA_LOG is '%.40s'; expected debug, info, warning, error or off",
                 level);
        deliver(SGM_LOG_WARNING, false, "log", message);
    }
    if (path != NULL && path[0] != '\0')
        open_users_file(path);
}

/* --- for everyone --- */

/* Neither touches the thread's newest error nor needs memory: messages are logged amid the handling of
 * failures. */
static void say(sgm_log_level level, bool note, const char *source, const char *format, va_list arguments)
    SGM_PRINTF(4, 0);
static void say(sgm_log_level level, bool note, const char *source, const char *format, va_list arguments)
{
    if (logging || level < SGM_LOG_DEBUG || level >= SGM_LOG_NONE)
        return;
    pthread_once(&configured, configure);
    if (!note && (int)level < atomic_load_explicit(&minimum_level, memory_order_relaxed))
        return;
    char message[SGM__LOG_MESSAGE];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0)
        return;
    if ((size_t)length >= sizeof message)
        memcpy(message + sizeof message - 4, "...", 4);
    deliver(level, note, source, sgm__make_printable(message));
}

void sgm__vlog(sgm_log_level level, const char *source, const char *format, va_list arguments)
{
    say(level, false, source, format, arguments);
}

void sgm__log_note(const char *source, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(SGM_LOG_INFO, true, source, format, arguments);
    va_end(arguments);
}

void sgm_log_message(sgm_log_level level, const char *source, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    sgm__vlog(level, source, format, arguments);
    va_end(arguments);
}

/* Changes the default sink in place: it stays at the end of the list, whatever it does. */
void sgm_set_logger(sgm_log_function log, void *user, sgm_log_level minimum)
{
    pthread_once(&configured, configure);
    lock_sinks();
    default_sink.base.write = log != NULL ? call_function : write_to_stderr;
    default_sink.base.minimum = minimum;
    default_sink.base.notes = false;
    default_sink.function = log;
    default_sink.user = user;
    update_minimum_level();
    unlock_sinks();
}

sgm_log_sink *sgm_log_add_sink(sgm_log_function log, void *user, sgm_log_level minimum)
{
    pthread_once(&configured, configure);
    if (log == NULL) {
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_log_add_sink: expected a function, got NULL");
        return NULL;
    }
    function_sink *self = sgm__calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;
    self->base = (sgm_log_sink){.minimum = minimum, .write = call_function, .close = free_sink};
    self->function = log;
    self->user = user;
    lock_sinks();
    add_sink(&self->base);
    unlock_sinks();
    return &self->base;
}

static bool file_options_are_good(const char *path, const sgm_log_file_options *options)
{
    if (path == NULL || path[0] == '\0')
        sgm_fail(SGM_ERROR_ARGUMENT, "sgm_log_add_file: expected a path, got none");
    else if (options->bytes < -1 || options->files < -1 || options->files > 999)
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_log_add_file: expected at least -1 bytes and -1 to 999 old files, got %lld and %d",
                 (long long)options->bytes, options->files);
    else
        return true;
    return false;
}

sgm_log_sink *sgm_log_add_file_with(const char *path, const sgm_log_file_options *given)
{
    sgm_log_file_options options;
    pthread_once(&configured, configure);
    if (sgm__options_read(&options, sizeof options, given, "sgm_log_add_file") != SGM_OK ||
        !file_options_are_good(path, &options))
        return NULL;
    sgm_log_sink *sink = sgm__calloc(1, SGM__LOG_FILE_ROOM);
    if (sink == NULL)
        return NULL;
    int error = sgm__log_file_open(sink, path, &options);
    if (error != 0) {
        sgm__free(sink);
        sgm_fail(SGM_ERROR_FILE, "the log file '%s' cannot be opened: %s", path, sgm__errno_text(error));
        return NULL;
    }
    lock_sinks();
    add_sink(sink);
    unlock_sinks();
    return sink;
}

void sgm_log_set_level(sgm_log_sink *sink, sgm_log_level minimum)
{
    pthread_once(&configured, configure);
    lock_sinks();
    if (sink == NULL)
        sink = &default_sink.base;
    sink->minimum = minimum;
    sink->notes = false;
    update_minimum_level();
    unlock_sinks();
}

/* A sink that ends while this thread is inside a sink's function is only marked: deliver() removes it after
 * its loop. From any other thread the sink is closed before this returns, because the lock waits for a
 * delivery that is under way. */
void sgm_log_remove_sink(sgm_log_sink *sink)
{
    if (sink == NULL || sink->close == NULL)
        return;
    lock_sinks();
    sink->ended = true;
    if (!logging)
        remove_ended();
    unlock_sinks();
}
