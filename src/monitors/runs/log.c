/* Finds out from a run's log.txt when it began, how it ended, and why.
 *
 * A run's state is not kept anywhere else: a run that is killed writes nothing more. So the last line
 * about a beginning or an end decides: "training begins" without an end means that the run has failed.
 * Only the end of the log is read. Logs have the lines of all trainers of the process, so the lines of
 * this run's trainer must be told apart. */
#include "journal/run_lines.h"
#include "monitors/runs/runs_internal.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Bytes from the end of the log that are searched first. */
#define DEFAULT_END ((size_t)64 << 10)
/* Bytes that are searched if the usual end has no line about a beginning or an end. */
#define LONGEST_END ((size_t)16 << 20)
#define BEGINS ": training begins after "

/* The time at the beginning of a line, local time as the log writes it, as seconds since 1970; -1: there
 * is none. */
static double time_of(const char *line)
{
    struct tm parts = {.tm_isdst = -1};
    if (sscanf(line, "%d-%d-%d %d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour,
               &parts.tm_min, &parts.tm_sec) != 6)
        return -1;
    parts.tm_year -= 1900;
    parts.tm_mon--;
    return (double)mktime(&parts);
}

/* --- whose lines --- */

/* A part of the log's text; `start` NULL: none. */
typedef struct piece {
    const char *start;
    size_t length;
} piece;

/* The name of the trainer in the line that has `mark` (": training ..."): it lies between the line's
 * fourth space and the mark. */
static piece trainer_of(const char *text, const char *mark)
{
    const char *line = memrchr(text, '\n', (size_t)(mark - text));
    const char *start = line != NULL ? line + 1 : text;
    for (int spaces = 0; spaces < 4 && start < mark; start++)
        spaces += *start == ' ';
    return (piece){start, (size_t)(mark - start)};
}

static bool is_same(piece a, piece b)
{
    return a.length == b.length && memcmp(a.start, b.start, a.length) == 0;
}

/* Whether a folder is that of the trainer: a run of several trainers has a folder of each name, and a
 * branch has one that ends in "-NAME". */
static bool is_named_after(const char *folder, piece trainer)
{
    size_t length = strlen(folder);
    if (trainer.length == 0 || trainer.length > length)
        return false;
    const char *end = folder + length - trainer.length;
    return memcmp(end, trainer.start, trainer.length) == 0 && (end == folder || end[-1] == '-');
}

/* Which trainer's lines count: the one that the folder is named after, or else the first that begins.
 * `start` NULL, if none begins in this text: all lines count. */
static piece owner_of(const sgm__run *run, const char *text, size_t length)
{
    const char *slash = strrchr(run->name, '/'), *folder = slash != NULL ? slash + 1 : run->name;
    piece first = {0};
    for (const char *at = text;
         (at = memmem(at, (size_t)(text + length - at), BEGINS, sizeof BEGINS - 1)) != NULL; at++) {
        piece trainer = trainer_of(text, at);
        if (is_named_after(folder, trainer))
            return trainer;
        if (first.start == NULL)
            first = trainer;
    }
    return first;
}

/* --- how it ended --- */

static bool has(const char *line, size_t length, const char *part)
{
    return memmem(line, length, part, strlen(part)) != NULL;
}

/* Sets `ended` and `reason` by the last line of the owner that tells of a beginning or an end. Returns
 * false if there is none. */
static bool judge(sgm__run *run, const char *text, size_t length)
{
    static const struct {
        const char *mark;
        sgm__run_state state;
    } marks[] = {{BEGINS, SGM__RUN_FAILED},
                 {": training ended after ", SGM__RUN_FINISHED},
                 {": training failed after ", SGM__RUN_FAILED}};
    const char *newest = NULL;
    piece owner = owner_of(run, text, length);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (const char *at = text;
             (at = memmem(at, (size_t)(text + length - at), marks[i].mark, strlen(marks[i].mark))) != NULL;
             at++) {
            bool counts = owner.start == NULL || is_same(trainer_of(text, at), owner);
            if (!counts || (newest != NULL && at < newest))
                continue;
            newest = at;
            run->ended = marks[i].state;
        }
    sgm__runs_set_text(&run->reason, NULL, 0);
    if (newest == NULL)
        return false;
    size_t line = strcspn(newest, "\n");
    if (run->ended == SGM__RUN_FINISHED &&
        (has(newest, line, ", stopped by ") || has(newest, line, ", interrupted")))
        run->ended = SGM__RUN_STOPPED;
    if (run->ended != SGM__RUN_FINISHED && strncmp(newest, BEGINS, sizeof BEGINS - 1) != 0)
        sgm__runs_set_text(&run->reason, newest + 2, line - 2);
    return true;
}

/* Judges by the last `limit` bytes. */
static bool judge_end(sgm__run *run, int file, off_t size, size_t limit)
{
    char *text = NULL;
    size_t length = 0;
    bool told = sgm__runs_read_end(file, size, limit, &text, &length) == SGM_OK && judge(run, text, length);
    sgm__free(text);
    return told;
}

/* Without a log, the run counts as finished, and began when its folder was last changed. */
bool sgm__run_read_log(sgm__run *run, int folder)
{
    struct stat info = {0}, own;
    char head[64] = "";
    int file = sgm__runs_open_file(folder, SGM__LOG_FILE, &info);
    bool same = sgm__run_is_same(&run->log_mark, &info);
    if (!same) {
        run->ended = SGM__RUN_FINISHED;
        run->started = -1;
    }
    if (file >= 0 && !same) {
        if (pread(file, head, sizeof head - 1, 0) > 0)
            run->started = time_of(head);
        if (!judge_end(run, file, info.st_size, DEFAULT_END) && info.st_size > (off_t)DEFAULT_END)
            judge_end(run, file, info.st_size, LONGEST_END);
    }
    if (file >= 0)
        close(file);
    if (run->started < 0 && fstat(folder, &own) == 0)
        run->started = (double)own.st_mtim.tv_sec;
    return !same;
}
