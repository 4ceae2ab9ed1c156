/* What the parts of the page over a folder of runs share.
 *
 * runs.c has the routes; scan.c finds runs and notices changed files; metrics.c, with lines.h, and log.c read
 * a run's files; change.c renames and deletes, notes.c has what a person notes. All routes are slow ones,
 * which one thread of the server runs one after the other, so nothing here is locked. Files are opened
 * relative to open folders and never through links, because the folder may hold anything. Internal. */
#ifndef SGM_MONITORS_RUNS_RUNS_INTERNAL_H
#define SGM_MONITORS_RUNS_RUNS_INTERNAL_H

#include "monitors/http/http.h"
#include "monitors/runs/jobs.h"
#include "monitors/runs/lines.h"
#include "monitors/runs/runs.h"

#include <dirent.h>
#include <sys/stat.h>

/* The most runs that are kept. */
#define SGM__RUNS_MAXIMUM 20000
/* In a run's folder: what a person has written about it. */
#define SGM__RUNS_NOTES_FILE "notes.json"

/* What of a file's state is compared to notice a change. All zero: there was no file. */
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

/* One run: what its files have said so far. A run is identified by name, device and inode, so that a
 * folder that was replaced counts as another run. */
typedef struct sgm__run {
    char *name; /* "digits", or "letters/digits" for a folder in a folder */
    ino_t inode;
    dev_t device;
    bool seen; /* the current scan has found it */
    /* What the run does now; how it ended as its log says, which counts unless it is running. */
    sgm__run_state state, ended;
    char *reason;   /* why it failed or was stopped; NULL: no reason */
    double started; /* seconds since 1970 */
    /* Of each file, its state when it was last read. */
    sgm__run_mark version_mark, metrics_mark, configuration_mark, log_mark, notes_mark;
    /* Its files have another version, so that none of them is read; NULL: they have this one. */
    char *version_error;
    off_t read;         /* offset in metrics.jsonl up to which lines were read */
    bool reading;       /* it was too long for one scan: the next one reads on */
    int64_t lines, bad; /* lines read, and lines that are no JSON object */
    sgm__run_columns metrics;
    json_t *configuration;     /* flat object of config.yaml; NULL: none */
    char *configuration_error; /* NULL: none */
    bool began;                /* the first line of its journal was read */
    json_t *set;               /* of a branch: what it began with; NULL: the run is none */
    json_t *notes;             /* the object of notes.json; NULL: none */
} sgm__run;

/* The page's state. */
struct sgm__runs {
    char *path;
    int folder;       /* descriptor of `path` */
    const char *only; /* nothing but this folder in it is looked at, borrowed; NULL: all */
    sgm__runs_configuration configuration;
    sgm__run **runs; /* sorted by name between scans */
    size_t count, capacity;
    /* Grows with each visible change, so that pages ask for news only; runs beyond the limit. */
    int64_t revision, left_out;
    bool changed;              /* the current scan has found a change */
    const char *const *replay; /* the words of the command that replays; NULL: none does */
    sgm__jobs jobs;            /* the replays that were begun */
    sgm__http *http;
};

/* --- scan.c: which runs there are, and what their files say now --- */
/* Brings the list of runs, and what is known of each, up to date (scan.c). */
sgm_status sgm__runs_scan(sgm__runs *runs);
/* NULL, with an error: there is no such run. */
sgm__run *sgm__runs_find(const sgm__runs *runs, const char *name);
/* Opens a folder, or a regular file with its state, in an open folder; links are not followed. -1: there is
 * none. */
int sgm__runs_open_folder(int folder, const char *name);
int sgm__runs_open_file(int folder, const char *name, struct stat *info);
/* The entries of an open folder, from its beginning, whatever was read before; NULL with errno. The
 * descriptor stays the caller's. */
DIR *sgm__runs_entries(int folder);
/* Reads the last `limit` bytes of a file, with a 0 byte behind them; free with sgm__free. *text is NULL,
 * without an error, if there is no such file. */
sgm_status sgm__runs_read(int folder, const char *name, size_t limit, char **text, size_t *length);
/* The same of an open file that has `size` bytes; *length must be 0 before. */
sgm_status sgm__runs_read_end(int file, off_t size, size_t limit, char **text, size_t *length);
/* Whether a folder has a file that only runs have. */
bool sgm__runs_is_run(int folder);
/* Whether a process listens at the folder's control socket. */
bool sgm__runs_answers(int folder);
/* Replaces *text by a copy of `with`; NULL: by nothing. */
void sgm__runs_set_text(char **text, const char *with, size_t length);
void sgm__run_free(sgm__run *run);

/* --- branched.c --- */
/* Reads whether the run is a branch, once its journal has begun; true: it is. */
bool sgm__run_read_branched(sgm__run *run, int folder);
/* The configuration, new, with the values that a branch began with. */
json_t *sgm__run_configuration(const sgm__run *run);

/* --- runs.c --- */
/* Scans, then opens the folder of a run; the caller closes it. *run is valid until the next scan. -1: failed,
 * with an error. */
int sgm__runs_open_run(sgm__runs *runs, const char *name, const sgm__run **run);

/* A run as JSON, without its curves. Numbers of the newest line of metrics appear as "epochs", "iteration"
 * and "seconds". */
json_t *sgm__run_describe(const sgm__run *run);

/* --- metrics.c --- */
/* Whether the file is unchanged since the mark; then sets the mark to the state in `info`. */
bool sgm__run_is_same(sgm__run_mark *mark, const struct stat *info);
/* Reads what is new in metrics.jsonl; true: something was. */
bool sgm__run_read_metrics(sgm__run *run, int folder);
/* All metrics as {"epoch": [..], "loss": [..]}: an entry for each line, null where the line has no such
 * number. Of long files every n-th line and the last, about 20,000. */
sgm_status sgm__run_all_metrics(const sgm__run *run, int folder, json_t **columns);
/* The newest changes in journal.jsonl, as a list of objects. */
sgm_status sgm__run_changes(int folder, json_t **changes);
/* The newest lines of log.txt, oldest first, as texts; *cut: there are older ones. */
sgm_status sgm__run_log(int folder, json_t **lines, bool *cut);

/* --- log.c --- */
/* Finds out when the run began, how it ended and why. True: the log has changed. */
bool sgm__run_read_log(sgm__run *run, int folder);

/* --- change.c --- */
/* Each scans first. Deleting needs the name a second time as confirmation. A run that is running can be
 * neither renamed nor deleted. */
sgm_status sgm__runs_rename(sgm__runs *runs, const char *name, const char *to);
sgm_status sgm__runs_delete(sgm__runs *runs, const char *name, const char *confirmation);
/* A descriptor of the folder that holds the run, which the caller closes; *leaf is the run's name in that
 * folder. -1, with an error: it is gone. */
int sgm__runs_open_parent(const sgm__runs *runs, const char *name, const char **leaf);

/* --- notes.c --- */
/* Reads notes.json, if it has changed; true: it has. */
bool sgm__run_read_notes(sgm__run *run, int folder);
/* Adds "note", "tags", "starred" and "archived" to the object that describes the run. */
void sgm__run_describe_notes(const sgm__run *run, json_t *object);
/* Scans first. Sets those of these members that `wanted` has, and adds what they were to the object `before`,
 * so that the same call undoes it. Also of a run that is running. */
sgm_status sgm__runs_note(sgm__runs *runs, const char *name, json_t *wanted, json_t *before);

/* --- runs.c --- */
/* The table of the server, which tests walk. */
extern const sgm__http_route sgm__runs_routes[];
extern const size_t sgm__runs_route_count;

#endif
