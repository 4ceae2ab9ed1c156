/* What all other headers need: errors, options and memory; then logging, tasks, folders, and numbers as text.
 *
 * A function that can fail returns sgm_status; a constructor returns NULL. The message of the newest failure
 * on this thread is sgm_last_error(): what was expected, what came instead, and what to do.
 */
#ifndef SIGMA_BASE_H
#define SIGMA_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/* Before a declaration: the shared library exports the name. */
#define SGM_API __attribute__((visibility("default")))
/* Behind a declaration: the compiler checks the arguments from number `first` on against the format, which
 * is argument number `text`. */
#define SGM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define SGM_API
#define SGM_PRINTF(text, first)
#endif

/* Functions with options are macros, whose options come last and by name:
 *     sgm_csv_reader(source, .skip_rows = 1)
 * An option that is not given is zero, which means its default. The library copies the struct.
 *
 * The function beneath a macro has its name and _with: sgm_csv_reader_with(source, &options). It takes a
 * pointer to the struct; NULL means all defaults. A caller of this function (every C++ program) zeroes the
 * struct and sets struct_size to its sizeof. That tells the library which options the program was compiled
 * with, so that a newer library serves older programs; a struct_size of 0 is an error. */
#define SGM_WITH_OPTIONS(function, type, ...) SGM_WITH_OPTIONS_BEHIND(function, type, __VA_ARGS__, )
#define SGM_WITH_OPTIONS_BEHIND(function, type, a, ...) function(a, SGM_OPTIONS(type, __VA_ARGS__))
/* For functions with two, three or four arguments before the options. */
#define SGM_WITH_OPTIONS_2(function, type, ...) SGM_WITH_OPTIONS_BEHIND_2(function, type, __VA_ARGS__, )
#define SGM_WITH_OPTIONS_BEHIND_2(function, type, a, b, ...) function(a, b, SGM_OPTIONS(type, __VA_ARGS__))
/* As SGM_WITH_OPTIONS, behind three arguments. */
#define SGM_WITH_OPTIONS_3(function, type, ...) SGM_WITH_OPTIONS_BEHIND_3(function, type, __VA_ARGS__, )
#define SGM_WITH_OPTIONS_BEHIND_3(function, type, a, b, c, ...)                                              \
    function(a, b, c, SGM_OPTIONS(type, __VA_ARGS__))
/* As SGM_WITH_OPTIONS, behind four arguments. */
#define SGM_WITH_OPTIONS_4(function, type, ...) SGM_WITH_OPTIONS_BEHIND_4(function, type, __VA_ARGS__, )
#define SGM_WITH_OPTIONS_BEHIND_4(function, type, a, b, c, d, ...)                                           \
    function(a, b, c, d, SGM_OPTIONS(type, __VA_ARGS__))
/* The options' struct. An option without a name, as in sgm_minibatches(data, 64), would mean another option
 * in another version. As the first option it does not compile with gcc and clang; other compilers make
 * struct_size 0, and the function fails. After an option with a name gcc warns of it. */
#define SGM_OPTIONS(type, ...)                                                                               \
    (&(const type){.struct_size = SGM_OPTIONS_SIZE(type, #__VA_ARGS__ "."), __VA_ARGS__})
#if defined(__GNUC__) && !defined(__cplusplus)
/* What SGM_OPTIONS writes into struct_size: the sizeof of `type`, if `text`, the options as they were
 * written, begins with a name. */
#define SGM_OPTIONS_SIZE(type, text)                                                                         \
    (sizeof(type) +                                                                                          \
     0 * __extension__ sizeof(struct {                                                                       \
         int size;                                                                                           \
         _Static_assert(__builtin_strncmp(text, ".", 1) == 0 &&                                              \
                            (__builtin_strncmp(text, ".0", 2) < 0 || __builtin_strncmp(text, ".9", 2) > 0),  \
                        "options have names, as .name = value");                                             \
     }))
#else
#define SGM_OPTIONS_SIZE(type, text) ((text)[0] == '.' ? sizeof(type) : 0)
#endif

#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
/* Behind a struct: gcc warns where its members are initialised without their names. */
#define SGM_BY_NAME __attribute__((designated_init))
#else
#define SGM_BY_NAME
#endif

/* Of the header: the first number of 0.1.0; sgm_version() is that of the library. */
#define SGM_VERSION_MAJOR 0
/* The second number of the header's version. */
#define SGM_VERSION_MINOR 1
/* The third number of the header's version. */
#define SGM_VERSION_PATCH 0

/* All statuses: the name (SGM_OK for OK), the number, a short text. */
#define SGM_STATUS_LIST(X)                                                                                   \
    X(OK, 0, "ok")                                                                                           \
    X(ERROR_ARGUMENT, -1, "invalid argument")                                                                \
    X(ERROR_SHAPE, -2, "shapes do not fit")                                                                  \
    X(ERROR_TYPE, -3, "types do not fit")                                                                    \
    X(ERROR_MEMORY, -4, "out of memory")                                                                     \
    X(ERROR_FILE, -5, "file cannot be read or written")                                                      \
    X(ERROR_FORMAT, -6, "malformed data")                                                                    \
    X(ERROR_NOT_FOUND, -7, "not found")                                                                      \
    X(ERROR_UNSUPPORTED, -8, "not supported")                                                                \
    X(ERROR_NUMERIC, -9, "not a finite number")                                                              \
    X(ERROR_NETWORK, -10, "network transfer failed")                                                         \
    X(ERROR_STATE, -11, "not possible in the current state")                                                 \
    X(ERROR_INTERRUPTED, -12, "interrupted")                                                                 \
    X(ERROR_PERMISSION, -13, "not permitted")                                                                \
    X(ERROR_LIMIT, -14, "too often")

/* How a call went: SGM_OK, or what kind of failure; sgm_last_error() has the words. */
typedef enum sgm_status {
#define SGM_STATUS_ENUM(code, value, text) SGM_##code = (value),
    SGM_STATUS_LIST(SGM_STATUS_ENUM)
#undef SGM_STATUS_ENUM
} sgm_status;

/* A short text for a code; any thread. */
SGM_API const char *sgm_status_text(sgm_status status);
/* The message of the newest failure on this thread, "" if there was none; valid until the next failure here.
 */
SGM_API const char *sgm_last_error(void);
/* The status of the newest failure on this thread; SGM_OK if there was none. */
SGM_API sgm_status sgm_last_status(void);
/* Forgets the newest failure of this thread. */
SGM_API void sgm_clear_error(void);
/* Reports a failure from an extension (operation, reader, callback); returns `status`. */
SGM_API sgm_status sgm_fail(sgm_status status, const char *format, ...) SGM_PRINTF(2, 3);

/* The version of the library that runs, which may differ from the header's. */
SGM_API const char *sgm_version(void);

/* Memory: set once before the first other call. Functions follow realloc and free; `user` is passed through.
 */
typedef struct sgm_allocator {
    /* As realloc: `memory` NULL takes new memory; NULL: there is none. */
    void *(*reallocate)(void *user, void *memory, size_t size);
    void (*release)(void *user, void *memory); /* as free; `memory` may be NULL */
    void *user;                                /* is passed to both */
} sgm_allocator;
/* Takes memory from these functions from now on; NULL: from the C library's. */
SGM_API void sgm_set_allocator(const sgm_allocator *allocator);

/* ======== logging ========
 *
 * Logging: one logger, any number of sinks, a level for each.
 *
 *     sgm_log_add_file("train.log", .level = SGM_LOG_INFO);    (beside warnings and errors on stderr)
 *     sgm_log_message(SGM_LOG_INFO, "my-hook", "the loss is %g", loss);
 *
 * A message goes to every sink whose level it reaches. There is one sink from the beginning: stderr, from
 * warnings on, and what reporters say until a level is chosen; the variable SIGMA_LOG (debug, info, warning,
 * error, off) sets its level, SIGMA_LOG_FILE names a file that gets all messages. Both are read at the first
 * use of the logger.
 *
 * Any thread may log, and no two messages mix. A message that no sink wants costs a comparison; none needs
 * memory. What a sink's own function makes the library log is dropped. */

/* How important a message is; a sink has a lowest level. */
typedef enum sgm_log_level {
    SGM_LOG_DEBUG,   /* what helps to find a mistake */
    SGM_LOG_INFO,    /* what happens */
    SGM_LOG_WARNING, /* what may be wrong; the work goes on */
    SGM_LOG_ERROR,   /* what failed */
    SGM_LOG_NONE     /* for a sink: nothing at all */
} sgm_log_level;
/* "debug" and so on; "off" for SGM_LOG_NONE. */
SGM_API const char *sgm_log_level_name(sgm_log_level level);
/* The level of a name that sgm_log_level_name gives; others are an error. */
SGM_API sgm_status sgm_log_level_parse(const char *name, sgm_log_level *level);
SGM_API void sgm_log_message(sgm_log_level level, const char *source, const char *format,
                             ...) /* at most 2047 bytes */
    SGM_PRINTF(3, 4);

/* `source`: who says it. May be called from any thread, one call at a time; all others that log wait for it,
 * so it must not wait for them: not for a trainer's values, for one. Commands such as sgm_trainer_stop do not
 * wait. */
typedef void (*sgm_log_function)(void *user, sgm_log_level level, const char *source, const char *message);
/* Replaces the sink that is there from the beginning; `log` NULL: stderr. A line there is "10:07:40.123
 * warning data: ...", in colour on a terminal unless NO_COLOR is set. */
SGM_API void sgm_set_logger(sgm_log_function log, void *user, sgm_log_level minimum);

/* Where messages go: a function or a file. */
typedef struct sgm_log_sink sgm_log_sink;
/* One more sink; until sgm_log_remove_sink. NULL: out of memory, or no function. */
SGM_API sgm_log_sink *sgm_log_add_sink(sgm_log_function log, void *user, sgm_log_level minimum);
typedef struct sgm_log_file_options {
    size_t struct_size;
    sgm_log_level level; /* the lowest; default SGM_LOG_DEBUG: all */
    int64_t bytes;       /* a file that would grow over this many is rotated; default 15,000,000; -1: never */
    int files; /* old ones kept: PATH.1 (the newest), PATH.2 ...; default 5; -1: none; at most 999 */
} SGM_BY_NAME sgm_log_file_options;
/* Appends to a file: "2026-11-21 10:07:40.123 [4711] warning data: ...", with the process's number. Several
 * processes and sinks may write to the same file, with the same options. A file that cannot be rotated grows
 * on, one that cannot be written is done without; either is told to the other sinks, once. NULL: the file
 * cannot be opened. */
#define sgm_log_add_file(...) SGM_WITH_OPTIONS(sgm_log_add_file_with, sgm_log_file_options, __VA_ARGS__)
SGM_API sgm_log_sink *sgm_log_add_file_with(const char *path, const sgm_log_file_options *options);
/* Another level; `sink` NULL: for the one that is there from the beginning. */
SGM_API void sgm_log_set_level(sgm_log_sink *sink, sgm_log_level minimum);
/* Ends and frees a sink; it gets nothing any more once this has returned. NULL: nothing happens. */
SGM_API void sgm_log_remove_sink(sgm_log_sink *sink);

/* ======== tasks ========
 *
 * Tasks: what takes long, for everyone who wants to see it or to end it.
 *
 *     sgm_task task = sgm_task_begin(SGM_TASK_LOAD, "the recordings", "files");
 *     for (i = 0; i < count && sgm_task_set_progress(task, i, count); i++)
 *         ...
 *     sgm_task_end(task, status);
 *
 * The library tells of its own: downloads, extractions, preparing and training, kernels that a device's
 * compiler makes, checkpoints. They are in one table of the process; when it is full (64), or a task is 0,
 * nothing is told and the work goes on. Telling takes no memory, and some nanoseconds while nobody watches.
 * All functions may be called from any thread, for one task from one thread at a time. */

/* All kinds of tasks: the name (SGM_TASK_LOAD for LOAD), the noun, what it is called while it goes on. */
#define SGM_TASK_LIST(X)                                                                                     \
    X(DOWNLOAD, "download", "downloading")                                                                   \
    X(UNPACK, "unpack", "unpacking")                                                                         \
    X(EXTRACT, "extract", "extracting")                                                                      \
    X(PREPARE, "prepare", "preparing")                                                                       \
    X(COMPILE, "compile", "compiling")                                                                       \
    X(TRAIN, "train", "training")                                                                            \
    X(SEARCH, "search", "searching")                                                                         \
    X(LOAD, "load", "loading")                                                                               \
    X(SAVE, "save", "saving")
/* What a task does: SGM_TASK_LOAD and so on. */
typedef enum sgm_task_kind {
#define SGM_TASK_ENUM(name, noun, going) SGM_TASK_##name,
    SGM_TASK_LIST(SGM_TASK_ENUM)
#undef SGM_TASK_ENUM
        SGM_TASK_KIND_COUNT /* how many kinds there are */
} sgm_task_kind;
/* The noun for a kind: "download". */
SGM_API const char *sgm_task_kind_name(sgm_task_kind kind);
/* What a task of this kind is doing: "downloading". */
SGM_API const char *sgm_task_kind_going(sgm_task_kind kind);

/* Where a task stands. */
typedef enum sgm_task_status {
    SGM_TASK_RUNNING,  /* it goes on */
    SGM_TASK_ENDED,    /* to its end */
    SGM_TASK_FAILED,   /* with an error */
    SGM_TASK_CANCELLED /* somebody wanted it to end */
} sgm_task_status;
/* The number of a task, never twice the same in a process; 0: none. */
typedef int64_t sgm_task;
/* A task as it stands, for those who watch. */
typedef struct sgm_task_info {
    sgm_task task;          /* its number */
    sgm_task_kind kind;     /* what it does */
    sgm_task_status status; /* where it stands */
    char description[160];  /* "train-images-idx3-ubyte.gz" */
    char unit[16];          /* of done and total: "bytes", "iterations"; "": nothing is counted */
    uint64_t done, total;   /* total 0: unknown */
    double progress;        /* 0 to 1; negative: unknown */
    double rate;            /* units per second since it began, pauses left out; 0: unknown */
    double began;           /* seconds since 1970 */
    double seconds;         /* since then, pauses included */
    bool can_cancel;        /* sgm_task_cancel would be heard */
    bool paused;            /* it waits, as somebody wanted */
} sgm_task_info;

/* Tells of a task that begins now; texts are copied, `unit` may be NULL. 0: the table is full. */
SGM_API sgm_task sgm_task_begin(sgm_task_kind kind, const char *description, const char *unit);
/* The task looks at what sgm_task_set_progress returns. */
SGM_API void sgm_task_allow_cancel(sgm_task task);
/* `done` of `total` (0: unknown). False: it was cancelled, and the work should end. */
SGM_API bool sgm_task_set_progress(sgm_task task, uint64_t done, uint64_t total);
/* The work waits from now on, or goes on: what lies between counts for no rate. */
SGM_API void sgm_task_set_paused(sgm_task task, bool paused);
/* SGM_OK: ended, SGM_ERROR_INTERRUPTED: cancelled, another one: failed. */
SGM_API void sgm_task_end(sgm_task task, sgm_status status);

/* Those that are running, oldest first: copies up to `room` of them, and returns how many there are. */
SGM_API size_t sgm_task_list(sgm_task_info *infos, size_t room);
/* Asks a running task to end. SGM_ERROR_NOT_FOUND: it is not running any more; SGM_ERROR_UNSUPPORTED: it
 * cannot be. */
SGM_API sgm_status sgm_task_cancel(sgm_task task);
/* Told when a task begins, at most ten times a second about its progress, and when it has ended; on the
 * task's thread, one call at a time. Of what such a function begins itself nobody is told. All other tasks
 * wait for it, so it must not wait for them: not for a trainer's values, for one. */
typedef void (*sgm_task_function)(void *user, const sgm_task_info *info);
/* Has the function told of all tasks from now on; at most 16 functions are. */
SGM_API sgm_status sgm_task_watch(sgm_task_function function, void *user);
/* Ends telling; once this has returned the function is not called any more. */
SGM_API void sgm_task_unwatch(sgm_task_function function, void *user);

/* ======== folders of the user ========
 *
 * Where things of the user lie, as the XDG base directory specification says (relative values are ignored).
 */

/* A folder of the user's. */
typedef enum sgm_folder {
    SGM_FOLDER_DATA, /* data sets of the user: SIGMA_DATA_DIR, $XDG_DATA_HOME/sigma or ~/.local/share/sigma */
    SGM_FOLDER_CACHE, /* what was fetched: SIGMA_CACHE_DIR, $XDG_CACHE_HOME/sigma or ~/.cache/sigma */
    SGM_FOLDER_STATE  /* what the command remembers: SIGMA_STATE_DIR, $XDG_STATE_HOME/sigma or
                       * ~/.local/state/sigma */
} sgm_folder;
/* The path, whether there is such a folder or not; free with sgm_string_free. NULL: no home is known. */
SGM_API char *sgm_folder_path(sgm_folder folder);

/* ======== quantities as text ========
 *
 * Quantities for people to read, the same everywhere; each returns `buffer` (64 bytes are always enough). */

/* A duration: "1 h 2 min", "12.4 s", "3.1 ms". */
SGM_API char *sgm_duration_text(double seconds, char *buffer, size_t size);
/* A duration for what is drawn again and again: "0:12", "3:07", "1:02:03". */
SGM_API char *sgm_clock_text(double seconds, char *buffer, size_t size);
/* A rate: "12.4 examples/s", "3.5 epochs/min", in the shortest unit in which it is 1 or more. */
SGM_API char *sgm_rate_text(double per_second, const char *what, char *buffer, size_t size);
/* A number with separators: "12,345". */
SGM_API char *sgm_count_text(int64_t number, char *buffer, size_t size);
/* A number of bytes in powers of 1000: "812 bytes", "1.2 MB". */
SGM_API char *sgm_bytes_text(double bytes, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif
#endif
