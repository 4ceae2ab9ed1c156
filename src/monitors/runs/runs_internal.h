/* What the parts of the page over a folder of runs share. One thread of the server is in here at a time. */
#ifndef SGM_MONITORS_RUNS_RUNS_INTERNAL_H
#define SGM_MONITORS_RUNS_RUNS_INTERNAL_H

#include "monitors/http/http.h"
#include "monitors/runs/runs.h"

#include <dirent.h>
#include <sys/stat.h>

#define SGM__RUNS_MAXIMUM 20000
#define SGM__RUNS_MAXIMUM_METRICS 256 /* of a run */
#define SGM__RUNS_HIDDEN_FILE ".sigma-runs.json"

/* By which a file that has changed is known. */
typedef struct sgm__run_mark {
    ino_t inode;
    off_t size;
    struct timespec changed;
} sgm__run_mark;

typedef enum sgm__run_state {
    SGM__RUN_FINISHED,
    SGM__RUN_STOPPED,
    SGM__RUN_FAILED,
    SGM__RUN_RUNNING
} sgm__run_state;

typedef struct sgm__run {
    char *name; /* "digits", or "letters/digits" of a folder in a folder */
    ino_t inode;
    dev_t device;
    bool seen;                   /* by the newest scan */
    sgm__run_state state, ended; /* ended: as its log says */
    char *reason;                /* why it failed or was stopped; or NULL */
    double started;              /* seconds since 1970 */
    sgm__run_mark version_mark, metrics_mark, configuration_mark, log_mark;
    char *version_error; /* its files are of another version, so nothing of them is read; or NULL */
    off_t read;          /* of its metrics, to the end of a line */
    int64_t lines, bad;
    json_t *newest, *minimum, *maximum; /* numbers by name */
    json_t *configuration;              /* NULL: there is none */
    char *configuration_error;          /* or NULL */
} sgm__run;

struct sgm__runs {
    char *path;
    int folder;
    json_t *(*configuration)(const char *text, size_t length);
    sgm__run **runs; /* by name */
    size_t count, capacity;
    json_t *hidden; /* {NAME: true} */
    int64_t revision, left_out;
    bool changed; /* by the scan that goes on */
    sgm__http *http;
};

/* --- scan.c: which runs there are, and what their files say now --- */
sgm_status sgm__runs_scan(sgm__runs *runs);
/* NULL: there is none, which is an error. */
sgm__run *sgm__runs_find(const sgm__runs *runs, const char *name);
/* A folder or regular file; links are not followed. -1: there is none. */
int sgm__runs_open_folder(int folder, const char *name);
int sgm__runs_open_file(int folder, const char *name, struct stat *info);
/* What is in an open folder, from its beginning; NULL: errno says why. */
DIR *sgm__runs_entries(int folder);
/* The last `limit` bytes of a file of a run, with a 0 byte behind; NULL without an error: there is none. */
sgm_status sgm__runs_read(int folder, const char *name, size_t limit, char **text, size_t *length);
/* The same of an open file of this size; *length: 0 before. */
sgm_status sgm__runs_read_end(int file, off_t size, size_t limit, char **text, size_t *length);
bool sgm__runs_is_run(int folder);                                     /* it has a file that only runs have */
bool sgm__runs_answers(int folder);                                    /* its control socket */
void sgm__runs_set_text(char **text, const char *with, size_t length); /* NULL: to nothing */
void sgm__run_free(sgm__run *run);

/* --- metrics.c --- */
/* Whether the file is as it was; takes over what it is now. */
bool sgm__run_is_same(sgm__run_mark *mark, const struct stat *info);
/* What is new in metrics.jsonl. True: something was. */
bool sgm__run_read_metrics(sgm__run *run, int folder);
/* {"epoch": [..], "loss": [..]}: each line, null where it says nothing; no more than some 20,000. */
sgm_status sgm__run_columns(int folder, json_t **columns);
/* The newest lines of changes.jsonl. */
sgm_status sgm__run_changes(int folder, json_t **changes);
/* The newest lines of log.txt, oldest first; those that are no UTF-8 with '?' for what is none. */
sgm_status sgm__run_log(int folder, json_t **lines, bool *cut);

/* --- log.c --- */
/* When the run began, how it ended, and why. True: the log is another one than it was. */
bool sgm__run_read_log(sgm__run *run, int folder);

/* --- change.c --- */
sgm_status sgm__runs_rename(sgm__runs *runs, const char *name, const char *to);
sgm_status sgm__runs_delete(sgm__runs *runs, const char *name, const char *confirmation);
sgm_status sgm__runs_hide(sgm__runs *runs, const char *name, bool hidden);
/* A folder that holds the run, and the run's name in it. -1: an error says why. */
int sgm__runs_open_parent(const sgm__runs *runs, const char *name, const char **leaf);
json_t *sgm__runs_read_hidden(int folder); /* never NULL but for want of memory */

#endif
