/* What the terminal monitor writes, to a file and to a terminal. */
#include "test.h"

#include "monitors/monitor.h"
#include "monitors/terminal_line.h"
#include <fcntl.h>
#include <sigma/environment.h>
#include <sys/ioctl.h>
#include <unistd.h>

static char output[65536];
static size_t together = 1; /* trainers */
static bool slow;           /* the first iterations are drawn each */

static void tell(sgm_monitor *monitor, sgm_training_progress progress)
{
    progress.trainer = progress.trainer != NULL ? progress.trainer : "first";
    progress.epochs = 3;
    progress.batches = 10;
    progress.rate = 12345.4;
    CHECK(monitor->progress(monitor, &progress));
}

static void train(sgm_monitor *monitor)
{
    sgm_named_metrics validation = {"validation", {0.5, 0.961, 30}};
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_START});
    for (int64_t epoch = 0; epoch < 2; epoch++) {
        for (int64_t batch = 1; batch <= 10; batch++) {
            if (slow && epoch == 0 && batch <= 4)
                usleep(110000);
            tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_ITERATION,
                                                  .epoch = epoch,
                                                  .batch = batch,
                                                  .training = {0.25, NAN, 10},
                                                  .seconds_left = 72});
        }
        tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_EPOCH,
                                              .epoch = epoch + 1,
                                              .training = {0.125, 0.5, 10},
                                              .validation = &validation,
                                              .validation_count = 1,
                                              .seconds = 83});
    }
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_STOP, .epoch = 2});
}

static void (*shown)(sgm_monitor *monitor) = train;

/* Runs `shown` with stdout in `target`, which is closed; read the rest from `source`. */
static void watch(int target, int source)
{
    fflush(stdout);
    int old = dup(STDOUT_FILENO);
    dup2(target, STDOUT_FILENO);
    sgm_monitor *monitor = sgm_terminal_monitor();
    if (monitor != NULL && together > 1)
        monitor->expect(monitor, together);
    if (monitor != NULL)
        shown(monitor);
    sgm_monitor_free(monitor);
    fflush(stdout);
    dup2(old, STDOUT_FILENO);
    close(old);
    memset(output, 0, sizeof output);
    close(target);
    size_t length = 0;
    ssize_t got;
    while ((got = read(source, output + length, sizeof output - 1 - length)) > 0)
        length += (size_t)got;
    close(source);
    CHECK(monitor != NULL);
    CHECK(length > 0);
}

static void watch_file(void)
{
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    watch(ends[1], ends[0]);
}

static void watch_terminal(unsigned short width)
{
    setenv("TERM", "xterm", 1);
    struct winsize size = {.ws_col = width, .ws_row = 24};
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        SKIP("no pseudo-terminals here");
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0);
    CHECK_INT(ioctl(slave, TIOCSWINSZ, &size), 0);
    watch(slave, master);
}

TEST(plain_lines_in_a_file)
{
    unsetenv("NO_COLOR");
    watch_file();
    CHECK_STR(output, "epoch 1/3 loss 0.1250 accuracy 50.0 %, validation loss 0.5000 accuracy 96.1 %, "
                      "12,345 examples/s 1:23\n"
                      "epoch 2/3 loss 0.1250 accuracy 50.0 %, validation loss 0.5000 accuracy 96.1 %, "
                      "12,345 examples/s 1:23\n");
}

static void pause_by_rule(sgm_monitor *monitor)
{
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_START});
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_PAUSE, .reason = "rule (then pause)"});
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_RESUME});
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_PAUSE});
    tell(monitor, (sgm_training_progress){.kind = SGM_PROGRESS_STOP});
}

/* Else a training that a rule pauses would stand still without a word. */
TEST(a_pause_that_a_hook_wanted_is_told)
{
    shown = pause_by_rule;
    watch_file();
    CHECK_STR(output, "paused by rule (then pause)\n");
    watch_terminal(120);
    CHECK(strstr(output, "paused by rule (then pause)\r\n"));
    shown = train;
}

TEST(drawn_again_on_a_terminal)
{
    unsetenv("NO_COLOR");
    watch_terminal(120);
    CHECK(strstr(output, "epoch 1/3 [==>                 ] loss 0.2500 12,345 examples/s 1:12 left"));
    CHECK(strstr(output, "\r\033[K"));
    CHECK(strstr(output, "\033[1mepoch 2/3\033[0m loss 0.1250"));
}

TEST(a_curve_of_the_loss_where_there_is_room)
{
    setenv("LC_ALL", "C.UTF-8", 1);
    slow = true;
    watch_terminal(120);
    CHECK(strstr(output, "1:12 left ▁▁▁\r\033[K"));
    watch_terminal(61); /* the examples per second make room for it */
    CHECK(strstr(output, "] loss 0.2500 1:12 left ▁▁▁\r\033[K"));
    watch_terminal(38);
    CHECK(strstr(output, "epoch 1/3 loss 0.2500 1:12 left\r\033[K"));
    CHECK(!strstr(output, "▁"));
    setenv("LC_ALL", "C", 1); /* bars would be signs that mean nothing */
    watch_terminal(120);
    CHECK(!strstr(output, "▁"));
    slow = false;
    unsetenv("LC_ALL");
}

TEST(lines_of_trainers_side_by_side_are_named)
{
    together = 2;
    watch_file();
    CHECK(strncmp(output, "first: epoch 1/3 loss", 21) == 0);
    CHECK(strstr(output, "\nfirst: epoch 2/3 loss"));
    watch_terminal(120);
    together = 1;
    CHECK(strstr(output, "\r\033[Kfirst: epoch 1/3 [==> ") ||
          strstr(output, "first: epoch 1/3 [==> ") == output);
}

TEST(no_colour_when_it_is_not_wanted)
{
    setenv("NO_COLOR", "1", 1);
    watch_terminal(120);
    CHECK(strstr(output, "epoch 2/3 loss 0.1250"));
    CHECK(!strstr(output, "\033[1m"));
    setenv("NO_COLOR", "", 1); /* empty is as if it were not there */
    watch_terminal(120);
    CHECK(strstr(output, "\033[1m"));
    unsetenv("NO_COLOR");
}

TEST(no_line_wider_than_the_terminal)
{
    unsetenv("NO_COLOR");
    watch_terminal(30);
    char *end = strstr(output, "\r\033[K");
    CHECK(end != NULL);
    CHECK(end - output <= 29);
}

TEST(names_are_cut_between_characters)
{
    sgm__terminal_look look = {.named = true, .note = ""};
    const sgm_training_progress progress = {.trainer = "größer", .epochs = 3, .training = {.accuracy = NAN}};
    const char *const wanted[] = {"grö", "größ", "größer: epoch 1/3"};
    for (size_t i = 0; i < 3; i++) {
        look.columns = (size_t[]){4, 5, 18}[i];
        char *line = sgm__terminal_line(&progress, &look);
        CHECK_STR(line, wanted[i]);
        sgm__free(line);
    }
}

TEST(the_bar_leaves_room_for_the_numbers)
{
    unsetenv("NO_COLOR");
    watch_terminal(61);
    CHECK(strstr(output, "epoch 1/3 [>       ] loss 0.2500 12,345 examples/s 1:12 left\r"));
    watch_terminal(53);
    CHECK(strstr(output, "epoch 1/3 loss 0.2500 12,345 examples/s 1:12 left\r"));
}

static int freed;

static bool ignore(sgm_monitor *self, const sgm_training_progress *progress)
{
    return self != NULL && progress != NULL;
}

static void count_free(sgm_monitor *self)
{
    freed++;
    free(self);
}

TEST(an_environment_takes_its_monitors)
{
    sgm_env *env = sgm_env_create("monitors", .handler = "reference");
    CHECK_OK(env);
    sgm_monitor *monitor = calloc(1, sizeof *monitor);
    *monitor = (sgm_monitor){.progress = ignore, .free = count_free};
    freed = 0;
    CHECK_OK(sgm_env_add_monitor(env, monitor));
    sgm_monitor_free(monitor); /* belongs to the environment: nothing happens */
    CHECK_INT(freed, 0);
    CHECK_ERROR(sgm_env_add_monitor(env, monitor), "belongs to an environment already");
    sgm_env_free(env);
    CHECK_INT(freed, 1);
}
