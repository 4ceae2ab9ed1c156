/* Tasks as lines on stderr. */
#include "monitors/task_lines.h"

#include "parallel/collective/launcher.h"

#include <sigma/task.h>
#include <sigma/units.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOWN_AFTER 0.5 /* seconds */
#define MINIMUM_DESCRIPTION 12

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users; /* guarded by `lock` */
static atomic_int holders;
static sgm_task
    drawn; /* the one that has a line now; used in calls of `show` only, of which there is one at a time */

/* mpirun gives each process a terminal of its own, whose lines may come to lie in a file. */
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

/* Of the two in "10 of 20 steps" the second one alone has the unit. */
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

/* "train-images-idx...", of so many bytes at most. */
static void append_shortened(sgm__text *line, const char *text, size_t maximum)
{
    size_t length = strlen(text);
    if (length > maximum) {
        for (length = maximum - strlen("..."); length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80;)
            length--; /* no part of a character */
        sgm__text_append_bytes(line, text, length);
        text = "...";
    }
    sgm__text_append(line, "%s", text);
}

/* "downloading train-images-idx3-ubyte.gz: 4.2 MB of 9.9 MB (42 %), 3.1 MB/s, 0:02 left", with so many bytes
 * of the description at most. */
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

static void draw(const sgm_task_info *info)
{
    struct winsize size;
    size_t width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    sgm__text line = {0};
    append_running(&line, info, SIZE_MAX);
    size_t length = strlen(info->description), excess = line.length >= width ? line.length - width + 1 : 0;
    if (excess > 0 && length >= excess + MINIMUM_DESCRIPTION) { /* numbers say more than the end of a name */
        sgm__text_free(&line);
        line = (sgm__text){0};
        append_running(&line, info, length - excess);
    }
    if (!line.failed) {
        fprintf(stderr, "\r\033[K%.*s", (int)(line.length < width ? line.length : width - 1), line.data);
        sgm__log_line_is_open(true);
        drawn = info->task;
    }
    sgm__text_free(&line);
}

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

/* A line belongs to one task until that ends, so that several do not fight for it. While a training is drawn,
 * it waits for what is compiled, and for nothing else. */
static void show(void *user, const sgm_task_info *info)
{
    (void)user;
    bool compiles = info->kind == SGM_TASK_COMPILE;
    bool at_once = compiles && info->unit[0] == '\0'; /* it takes long, and cannot say how far it is */
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

void sgm__task_lines_begin(void)
{
    pthread_mutex_lock(&lock);
    if (users++ == 0)
        sgm_task_watch(show, NULL); /* where too many watch already, the lines are done without */
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
