/* Says what a sink of the logger is: the interface between log.c, which keeps the list of sinks, and
 * log_file.c; programs use sgm_log_add_sink and sgm_log_add_file. And notes, which the default sink shows
 * though their level is below its own. Internal. */
#ifndef SGM_BASE_LOG_SINK_H
#define SGM_BASE_LOG_SINK_H

#include "base/base.h"
#include <limits.h>
#include <time.h>

#define SGM__LOG_MESSAGE 2048 /* bytes of a message with its terminating 0; longer ones end in "..." */
/* Bytes of a whole line: time, level and source before the message, whose line breaks get four spaces behind
 * them. A message of many line breaks may still exceed this; sgm__log_end_line stops at the end. */
#define SGM__LOG_LINE (SGM__LOG_MESSAGE * 2 + 512)

/* One message on its way to the sinks; the texts stay the caller's. */
typedef struct sgm__log_entry {
    sgm_log_level level;
    bool note;
    const char *source, *message;
    struct timespec time;
} sgm__log_entry;

/* First member of every sink. All functions are called under the logger's lock. */
struct sgm_log_sink {
    sgm_log_sink *next;
    sgm_log_level minimum;
    bool notes; /* it also takes what sgm__log_note says, below its level */
    void (*write)(sgm_log_sink *self, const sgm__log_entry *entry);
    void (*close)(sgm_log_sink *self); /* frees the sink; NULL: the sink is static and stays */
    bool ended;        /* takes no more messages; freed as soon as no loop over the list is under way */
    char trouble[320]; /* filled in by `write`: a report for the other sinks; "": none */
};

/* Logs at the level info what somebody should read, though nothing is wrong: the lines of reporters, since
 * they were asked for, and names that are called otherwise. The standard error shows it as long as nobody has
 * chosen a level. */
void sgm__log_note(const char *source, const char *format, ...) SGM_PRINTF(2, 3);

/* log_file.c: makes a sink in `memory` of SGM__LOG_FILE_ROOM zeroed bytes, aligned for any type. Returns 0,
 * or the errno value of the failure. The memory is the caller's choice, because the sink of SIGMA_LOG_FILE
 * must not be allocated. The sink's `close` frees it with sgm__free. */
#define SGM__LOG_FILE_ROOM (PATH_MAX + sizeof(sgm_log_sink) + 64)
int sgm__log_file_open(void *memory, const char *path, const sgm_log_file_options *options);

/* Appends source, message and a line end at line[length]; `line` has SGM__LOG_LINE bytes. Control characters,
 * which could steer a terminal or fake a line of the file, become '?'. Returns the new length. */
size_t sgm__log_end_line(char *line, size_t length, const sgm__log_entry *entry);

#endif
