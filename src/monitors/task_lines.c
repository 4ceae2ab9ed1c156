/* Draws the tasks of the process as lines on stderr; see task_lines.h.
 *
 * `show` is registered with sgm_task_watch, which calls it on the tasks' threads, one call at a time. So
 * `drawn` needs no lock. One task at a time has the line: the first that has taken SHOWN_AFTER seconds
 * keeps it until it ends. `show` must not wait for anything that waits for a task, hence no lock of a
 * trainer or monitor is taken here. */
#include "monitors/task_lines.h"

#include "parallel/collective/launcher.h"

#include <sigma/base.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOWN_AFTER 0.5 /* seconds; shorter tasks are not shown */
/* Characters of a description below which it is not shortened further to make room for numbers. */
#define MINIMUM_DESCRIPTION 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* open calls of sgm__task_lines_begin; guarded by `lock` */
/* Open calls of sgm__task_lines_hold(true). */
static atomic_int holders;
/* The task that has the line now; 0: none. Used within `show` only, of which one call runs at a time. */
static sgm_task drawn;

/* mpirun gives each process a terminal of its own, whose output may end up in a file, so several processes
 * count as having no terminal. */
bool sgm__is_terminal(int file)
{
    const char *kind = getenv("TERM");
    return isatty(file) && (kind == NULL || strcmp(kind, "dumb") != 0) && sgm__launched_processes() < 2;
}

static void clear(void)
{
    if (drawn == 0)
        return;
    fputs("\r\033[K", stderr);
    sgm__log_line_is_open(false);
    drawn = 0;
}

/* "4.2 MB" or "20 steps". In "10 of 20 steps" only the second number has the unit, hence `unit`; bytes
 * always have one, since their two units may differ. */
static void append_amount(sgm__text *line, const sgm_task_info *info, uint64_t amount, bool unit)
{
    char text[64];
    if (strcmp(info->unit, "bytes") == 0)
        sgm__text_append(line, "%s", sgm_bytes_text((double)amount, text, sizeof text));
    else
        sgm__text_append(line, "%s%s%s", sgm_count_text((int64_t)amount, text, sizeof text), unit ? " " : "",
                         unit ? info->unit : "");
}

static void append_rate(sgm__text *line, const sgm_task_info *info)
{
    char text[64];
    if (info->rate <= 0)
        return;
    if (strcmp(info->unit, "bytes") == 0)
        sgm__text_append(line, ", %s/s", sgm_bytes_text(info->rate, text, sizeof text));
    else
        sgm__text_append(line, ", %s", sgm_rate_text(info->rate, info->unit, text, sizeof text));
}

/* At most `maximum` characters, with "..." as the end of a text that is cut: "train-images-idx...". */
static void append_shortened(sgm__text *line, const char *text, size_t maximum)
{
    if (sgm__utf8_count(text) > maximum) {
        sgm__text_append_bytes(line, text, sgm__utf8_prefix(text, maximum - strlen("...")));
        text = "...";
    }
    sgm__text_append(line, "%s", text);
}

/* "downloading train-images-idx3-ubyte.gz: 4.2 MB of 9.9 MB (42 %), 3.1 MB/s, 0:02 left". `maximum` limits
 * the characters of the description. A task without a known total shows what is done only. */
static void append_running(sgm__text *line, const sgm_task_info *info, size_t maximum)
{
    char text[64];
    sgm__text_append(line, "%s ", sgm_task_kind_going(info->kind));
    append_shortened(line, info->description, maximum);
    if (info->done > 0) {
        bool of_many = info->progress >= 0;
        sgm__text_append(line, ": ");
        append_amount(line, info, info->done, !of_many);
        if (of_many) {
            sgm__text_append(line, " of ");
            append_amount(line, info, info->total, true);
            sgm__text_append(line, " (%d %%)", (int)(100 * info->progress));
        }
    }
    append_rate(line, info);
    if (info->rate > 0 && info->total > info->done)
        sgm__text_append(line, ", %s left",
                         sgm_clock_text((double)(info->total - info->done) / info->rate, text, sizeof text));
}

/* Writes the line at full length first to learn its width. If it is too wide, it is written again with a
 * shortened description, because the numbers at its end say more than the end of a name; what is still too
 * wide is cut. */
static void draw(const sgm_task_info *info)
{
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    sgm__text line = {0};
    append_running(&line, info, SIZE_MAX);
    size_t columns = line.failed ? 0 : sgm__utf8_count(line.data),
           length = sgm__utf8_count(info->description), excess = columns >= width ? columns - width + 1 : 0;
    if (excess > 0 && length >= excess + MINIMUM_DESCRIPTION) {
        sgm__text_free(&line);
        line = (sgm__text){0};
        append_running(&line, info, length - excess);
    }
    if (!line.failed) {
        fprintf(stderr, "\r\033[K%.*s", (int)sgm__utf8_prefix(line.data, width - 1), line.data);
        sgm__log_line_is_open(true);
        drawn = info->task;
    }
    sgm__text_free(&line);
}

/* The permanent line of a finished download: amount, duration and rate. */
static void leave_line(const sgm_task_info *info)
{
    sgm__text line = {0};
    char took[64];
    append_amount(&line, info, info->done, true);
    sgm__text_append(&line, " in %s", sgm_duration_text(info->seconds, took, sizeof took));
    append_rate(&line, info);
    if (!line.failed)
        fprintf(stderr, "downloaded %s: %s\n", info->description, line.data);
    sgm__text_free(&line);
}

/* The watching function, on the task's thread. Trainings have lines of their own (terminal.c) and are
 * ignored. A compilation without a unit cannot report progress, so it is shown without the delay. */
static void show(void *user, const sgm_task_info *info)
{
    (void)user;
    bool compiles = info->kind == SGM_TASK_COMPILE;
    bool at_once = compiles && info->unit[0] == '\0';
    if (info->kind == SGM_TASK_TRAIN || (info->seconds < SHOWN_AFTER && !at_once))
        return;
    if (info->status == SGM_TASK_RUNNING) {
        if ((drawn == 0 || drawn == info->task) && (compiles || atomic_load(&holders) == 0) &&
            sgm__is_terminal(STDERR_FILENO))
            draw(info);
        return;
    }
    if (drawn == info->task)
        clear();
    if (info->kind == SGM_TASK_DOWNLOAD && info->status == SGM_TASK_ENDED)
        leave_line(info);
}

/* The result of sgm_task_watch is ignored: with too many watchers (16), the program does without these
 * lines. */
void sgm__task_lines_begin(void)
{
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        sgm_task_watch(show, NULL);
    pthread_mutex_unlock(&lock);
}

void sgm__task_lines_end(void)
{
    pthread_mutex_lock(&lock);
    if (--users == 0)
        sgm_task_unwatch(show, NULL);
    pthread_mutex_unlock(&lock);
}

void sgm__task_lines_hold(bool hold)
{
    atomic_fetch_add(&holders, hold ? 1 : -1);
}
