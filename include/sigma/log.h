/* Logging: one logger, any number of sinks, a level for each.
 *
 *     sgm_log_to_file("train.log", .level = SGM_LOG_INFO);    (beside warnings and errors on stderr)
 *     sgm_log_message(SGM_LOG_INFO, "my-hook", "the loss is %g", loss);
 *
 * A message goes to every sink whose level it reaches. There is one sink from the beginning: stderr, from
 * warnings on; the variable SIGMA_LOG (debug, info, warning, error, off) sets its level, SIGMA_LOG_FILE names
 * a file that gets all messages. Both are read at the first use of the logger.
 *
 * Any thread may log, and no two messages mix. A message that no sink wants costs a comparison; none needs
 * memory. What a sink's own function makes the library log is dropped. */
#ifndef SIGMA_LOG_H
#define SIGMA_LOG_H

#include <sigma/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sgm_log_level {
    SGM_LOG_DEBUG,
    SGM_LOG_INFO,
    SGM_LOG_WARNING,
    SGM_LOG_ERROR,
    SGM_LOG_NONE /* for a sink: nothing at all */
} sgm_log_level;
SGM_API const char *sgm_log_level_name(sgm_log_level level);                    /* "off" for NONE */
SGM_API sgm_status sgm_log_level_parse(const char *name, sgm_log_level *level); /* a name as above */
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

typedef struct sgm_log_sink sgm_log_sink;
/* One more sink; until sgm_log_end. NULL: out of memory, or no function. */
SGM_API sgm_log_sink *sgm_log_to(sgm_log_function log, void *user, sgm_log_level minimum);
typedef struct sgm_log_file_options {
    size_t struct_size;
    sgm_log_level level; /* the lowest; default SGM_LOG_DEBUG: all */
    int64_t bytes;       /* a file that would grow over this many is rotated; default 15,000,000; -1: never */
    int files; /* old ones kept: PATH.1 (the newest), PATH.2 ...; default 5; -1: none; at most 999 */
} sgm_log_file_options;
/* Appends to a file: "2026-11-21 10:07:40.123 [4711] warning data: ...", with the process's number. Several
 * processes and sinks may write to the same file, with the same options. A file that cannot be rotated grows
 * on, one that cannot be written is done without; either is told to the other sinks, once. NULL: the file
 * cannot be opened. */
#define sgm_log_to_file(...) SGM_WITH_OPTIONS(sgm_log_to_file_options, sgm_log_file_options, __VA_ARGS__)
SGM_API sgm_log_sink *sgm_log_to_file_options(const char *path, const sgm_log_file_options *options);
/* Another level; `sink` NULL: for the one that is there from the beginning. */
SGM_API void sgm_log_set_level(sgm_log_sink *sink, sgm_log_level minimum);
/* Ends and frees a sink; it gets nothing any more once this has returned. NULL: nothing happens. */
SGM_API void sgm_log_end(sgm_log_sink *sink);

#ifdef __cplusplus
}
#endif
#endif
