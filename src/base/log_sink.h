/* What a sink of the logger is. Internal to the logger. */
#ifndef SGM_BASE_LOG_SINK_H
#define SGM_BASE_LOG_SINK_H

#include "base/base.h"
#include <limits.h>
#include <time.h>

#define SGM__LOG_MESSAGE 2048
/* Room for a line: time, level and source before the message, whose line breaks get spaces behind them. */
#define SGM__LOG_LINE (SGM__LOG_MESSAGE * 2 + 512)

typedef struct sgm__log_entry {
    sgm_log_level level;
    const char *source, *message;
    struct timespec time;
} sgm__log_entry;

/* First member of every sink. All functions are called under the logger's lock. */
struct sgm_log_sink {
    sgm_log_sink *next;
    sgm_log_level minimum;
    void (*write)(sgm_log_sink *self, const sgm__log_entry *entry);
    void (*close)(sgm_log_sink *self); /* frees the sink; NULL: it stays */
    bool ended;                        /* by its own function, while it was called */
    char trouble[320];                 /* filled in by `write`: what the other sinks are to be told */
};

/* log_file.c: makes a sink in `memory` of SGM__LOG_FILE_ROOM zeroed bytes, aligned for anything, or returns
 * the errno of why not. */
#define SGM__LOG_FILE_ROOM (PATH_MAX + sizeof(sgm_log_sink) + 64)
int sgm__log_file_open(void *memory, const char *path, const sgm_log_file_options *options);

/* Appends source and message to a line, ending it; what a terminal or a reader of the file could mistake
 * (control characters) is a '?'. Returns the new length. */
size_t sgm__log_end_line(char *line, size_t length, const sgm__log_entry *entry);

#endif
