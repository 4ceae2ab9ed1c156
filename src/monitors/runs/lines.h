/* Reads lines of numbers, as metrics.jsonl has them, without making a tree of each. Internal.
 *
 * A run of a million epochs has 200 MB of them. A line is what metrics are: one flat JSON object whose names
 * are plain and whose values are numbers. Every other line goes to jansson, so what counts as JSON is the
 * same. */
#ifndef SGM_MONITORS_RUNS_LINES_H
#define SGM_MONITORS_RUNS_LINES_H

#include "base/base.h"

#include <sys/types.h>

/* Metrics of one run; further ones are left out. */
#define SGM__RUNS_MAXIMUM_METRICS 256

typedef struct sgm__run_column {
    char *name;
    size_t length;                   /* of the name */
    double newest, minimum, maximum; /* of the lines that have it */
} sgm__run_column;

/* The metrics of a run, in the order of their first lines. All 0: none yet. */
typedef struct sgm__run_columns {
    sgm__run_column *columns;
    size_t count, capacity;
    size_t next; /* where the next name is looked for first, as lines have them in the same order */
} sgm__run_columns;

void sgm__run_columns_free(sgm__run_columns *columns);
/* The column of this name, a new one at the end if there is none; `is_new` is told so. NULL: there are
 * SGM__RUNS_MAXIMUM_METRICS others, or memory is lacking. Valid until the next call. */
sgm__run_column *sgm__run_column_of(sgm__run_columns *columns, const char *name, size_t length, bool *is_new);
/* The column of this name; NULL: there is none. */
const sgm__run_column *sgm__run_column_named(const sgm__run_columns *columns, const char *name);

/* One number of a line; `name` has `length` bytes and no 0 behind them. */
typedef void sgm__run_number_function(void *user, const char *name, size_t length, double value);
/* Tells each member of the line that is a number. The line has `length` bytes without its end, and at least
 * SGM__RUN_LINE_PADDING readable bytes behind them; it is written to meanwhile. False, and nothing was told:
 * it is no JSON object. */
#define SGM__RUN_LINE_PADDING 16
bool sgm__run_line_numbers(char *line, size_t length, sgm__run_number_function *number, void *user);

/* One complete line that begins at `offset` of the file, as sgm__run_line_numbers wants it. `line` NULL: what
 * was there is no line, as it has no end for megabytes. */
typedef void sgm__run_line_function(void *user, char *line, size_t length, off_t offset);
/* Tells each complete line of an open file that begins between two offsets, in their order; empty ones are
 * left out. *next, which may be `from`, becomes the offset behind the last of them, also after a failure. */
sgm_status sgm__run_each_line(int file, off_t from, off_t to, sgm__run_line_function *line, void *user,
                              off_t *next);

#endif
