/* The line of a task that takes long, on a terminal and elsewhere. */
#include "test.h"

#include "monitors/task_lines.h"
#include <fcntl.h>
#include <sigma/base.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static char output[65536];
static const char *long_name = "long.gz"; /* of the task that takes long */

static void pause_for(double seconds) /* less than one */
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* A short task, one that is long, and a training beside it, which others show. */
static void work(sgm_task_kind kind, sgm_status outcome)
{
    sgm_task first = sgm_task_begin(SGM_TASK_DOWNLOAD, "short.gz", "bytes");
    sgm_task_set_progress(first, 1000, 2000);
    sgm_task_end(first, SGM_OK);
    sgm_task task = sgm_task_begin(kind, long_name, kind == SGM_TASK_COMPILE ? "steps" : "bytes");
    sgm_task other = sgm_task_begin(SGM_TASK_TRAIN, "other", NULL);
    sgm_task_set_progress(task, 100000, 2000000);
    pause_for(0.55);
    sgm_task_set_progress(other, 1, 2);
    sgm_task_set_progress(task, 1500000, 2000000);
    sgm__log(SGM_LOG_WARNING, "data", "a message meanwhile");
    pause_for(0.11);
    sgm_task_set_progress(task, 2000000, 2000000);
    sgm_task_end(other, SGM_OK);
    sgm_task_end(task, outcome);
}

/* Runs `work` with stderr in `target`, which is closed; reads the rest from `source`. */
static void watch(int target, int source, sgm_task_kind kind, sgm_status outcome)
{
    fflush(stderr);
    int old = dup(STDERR_FILENO);
    dup2(target, STDERR_FILENO);
    sgm_set_logger(NULL, NULL, SGM_LOG_WARNING);
    sgm__task_lines_begin();
    sgm__task_lines_begin();
    sgm__task_lines_end();
    work(kind, outcome);
    sgm__task_lines_end();
    sgm_set_logger(NULL, NULL, SGM_LOG_NONE);
    dup2(old, STDERR_FILENO);
    close(old);
    close(target);
    memset(output, 0, sizeof output);
    size_t length = 0;
    ssize_t got;
    while ((got = read(source, output + length, sizeof output - 1 - length)) > 0)
        length += (size_t)got;
    close(source);
}

static void watch_terminal(unsigned short width, sgm_task_kind kind, sgm_status outcome)
{
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    struct winsize size = {.ws_col = width, .ws_row = 24};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        SKIP("no pseudo-terminals here");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0);
    CHECK_INT(ioctl(slave, TIOCSWINSZ, &size), 0);
    watch(slave, master, kind, outcome);
}

static bool has(const char *part)
{
    return strstr(output, part) != NULL;
}

TEST(a_long_download_is_drawn_on_a_terminal_and_leaves_a_line)
{
    watch_terminal(100, SGM_TASK_DOWNLOAD, SGM_OK);
    CHECK(has("\r\033[Kdownloading long.gz: 1.5 MB of 2.0 MB (75 %), 2."));
    CHECK(has("\r\033[K") && has(" warning data: a message meanwhile\r\n"));
    char *message = strstr(output, " warning data");
    CHECK(message != NULL && message > output + 18 && memcmp(message - 16, "\r\033[K", 4) == 0);
    CHECK(has("\r\033[Kdownloaded long.gz: 2.0 MB in "));
    CHECK(!has("short.gz") && !has("other"));
}

TEST(other_tasks_leave_none_and_lines_fit_the_terminal)
{
    watch_terminal(30, SGM_TASK_EXTRACT, SGM_OK);
    CHECK(has("\r\033[Kextracting long.gz: 1.5 MB of\r"));
    CHECK(!has("extracted") && strcmp(output + strlen(output) - 4, "\r\033[K") == 0);
}

TEST(a_name_is_shortened_rather_than_numbers)
{
    long_name = "the_longest_name_that_anybody_ever_gave_to_a_file.gz";
    watch_terminal(70, SGM_TASK_EXTRACT, SGM_OK);
    long_name = "long.gz";
    CHECK(has("\r\033[Kextracting the_longest_"));
    CHECK(has("...: 1.5 MB of 2.0 MB (75 %), ") && has(" left\r"));
    CHECK(!has("ever_gave_to_a_file"));
}

TEST(lines_are_cut_between_characters)
{
    long_name = "ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ";
    watch_terminal(30, SGM_TASK_EXTRACT, SGM_OK); /* 11 columns for a verb, 18 for characters */
    CHECK(has("\r\033[Kextracting ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ\r"));
    watch_terminal(75, SGM_TASK_EXTRACT, SGM_OK);
    long_name = "long.gz";
    CHECK(has("\r\033[Kextracting ÄÄÄÄÄÄÄÄÄ"));
    CHECK(has("Ä...: 1.5 MB of 2.0 MB (75 %"));
}

TEST(a_pipe_gets_one_line_for_a_long_download)
{
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    watch(ends[1], ends[0], SGM_TASK_DOWNLOAD, SGM_OK);
    CHECK(has("downloaded long.gz: 2.0 MB in ") && has(" warning data: a message meanwhile\n"));
    CHECK(!has("\033") && !has("downloading"));
}

TEST(nothing_is_drawn_over_a_training_and_failures_leave_no_line)
{
    sgm__task_lines_hold(true);
    watch_terminal(100, SGM_TASK_DOWNLOAD, SGM_ERROR_NETWORK);
    sgm__task_lines_hold(false);
    CHECK(!has("long.gz") && has("a message meanwhile"));
}

TEST(what_is_compiled_is_drawn_over_a_training_that_waits_for_it)
{
    sgm__task_lines_hold(true);
    watch_terminal(100, SGM_TASK_COMPILE, SGM_OK);
    sgm__task_lines_hold(false);
    CHECK(has("\r\033[Kcompiling long.gz: 1,500,000 of 2,000,000 steps (75 %), "));
    CHECK(strcmp(output + strlen(output) - 4, "\r\033[K") == 0);
}
