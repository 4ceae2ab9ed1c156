/* Programs that run beside this process: how they end, what reaches them, what is left of them. */
#include "base/process/process.h"
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct shell {
    sgm__process process;
    int output;
} shell;

static shell begin(const char *script)
{
    shell made = {.output = memfd_create("output", MFD_CLOEXEC)};
    const char *const words[] = {"sh", "-c", script, NULL};
    CHECK(made.output >= 0);
    CHECK_OK(sgm__process_start(&made.process, &(sgm__program){.words = words, .output = made.output}));
    CHECK(made.process.number > 0);
    return made;
}

static void wait_for(shell *one)
{
    for (int i = 0; i < 10000 && sgm__process_runs(&one->process); i++)
        usleep(1000);
    CHECK_INT(one->process.number, 0);
}

/* What it wrote, until the next call. */
static const char *written(const shell *one)
{
    static char text[1000];
    ssize_t count = pread(one->output, text, sizeof text - 1, 0);
    text[count > 0 ? count : 0] = '\0';
    return text;
}

/* Waits until it has written a line. */
static const char *line_of(const shell *one)
{
    for (int i = 0; i < 10000 && strchr(written(one), '\n') == NULL; i++)
        usleep(1000);
    return written(one);
}

TEST(a_program_ends_with_its_code_and_what_it_wrote)
{
    shell one = begin("echo told; echo wrong >&2; cat; exit 3");
    wait_for(&one);
    CHECK_INT(one.process.code, 3);
    CHECK_INT(one.process.signal, 0);
    CHECK_STR(written(&one), "told\nwrong\n");
    CHECK(!sgm__process_runs(&one.process));
    sgm__process_kill(&one.process); /* of what has ended nothing is killed */
    CHECK_INT(one.process.code, 3);
    close(one.output);
}

TEST(it_is_asked_to_end_and_killed)
{
    shell polite = begin("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done");
    line_of(&polite);
    sgm__process_ask_to_end(&polite.process);
    wait_for(&polite);
    CHECK_INT(polite.process.code, 4);
    CHECK(strstr(written(&polite), "bye\n") != NULL); /* the sleep in its group was asked, too */
    close(polite.output);

    shell deaf = begin("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    line_of(&deaf);
    sgm__process_ask_to_end(&deaf.process);
    usleep(50000);
    CHECK(sgm__process_runs(&deaf.process));
    sgm__process_kill(&deaf.process);
    CHECK_INT(deaf.process.number, 0);
    CHECK_INT(deaf.process.signal, SIGKILL);
    CHECK_INT(deaf.process.code, 128 + SIGKILL);
    close(deaf.output);
}

/* Killed processes are there until their parent, by now another one, has waited for them. */
static bool goes_away(pid_t number)
{
    for (int i = 0; i < 10000; i++) {
        char path[40], state = 'Z';
        snprintf(path, sizeof path, "/proc/%d/stat", (int)number);
        FILE *file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1 || state == 'Z') {
            if (file != NULL)
                fclose(file);
            return true;
        }
        fclose(file);
        usleep(1000);
    }
    return false;
}

TEST(what_it_has_started_ends_with_it)
{
    shell one = begin("sleep 60 & echo $!");
    int number = 0;
    wait_for(&one);
    CHECK_INT(sscanf(written(&one), "%d", &number), 1);
    CHECK(goes_away(number));
    close(one.output);
}

/* This process blocks and ignores signals, and has files that are no business of others. */
TEST(it_begins_as_if_nothing_were_set)
{
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    CHECK_INT(pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    shell one = begin("grep -E '^Sig(Blk|Ign)' /proc/self/status; ps -o pgid= -p $$");
    pid_t own = one.process.number;
    wait_for(&one);
    signal(SIGPIPE, handler);
    CHECK_INT(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    unsigned long long blocks, ignores;
    int group;
    CHECK_INT(sscanf(written(&one), "SigBlk: %llx SigIgn: %llx %d", &blocks, &ignores, &group), 3);
    CHECK(blocks == 0);
    CHECK((ignores >> (SIGPIPE - 1) & 1) == 0);
    CHECK_INT(group, own);
    close(one.output);
}

TEST(its_environment_may_be_another)
{
    int output = memfd_create("output", MFD_CLOEXEC);
    const char *const words[] = {"/bin/sh", "-c", "echo $COLOUR", NULL};
    char colour[] = "COLOUR=green", *environment[] = {colour, NULL};
    shell one = {.output = output};
    CHECK_OK(sgm__process_start(&one.process, &(sgm__program){words, environment, output}));
    wait_for(&one);
    CHECK_STR(written(&one), "green\n");
    close(output);
}

TEST(what_cannot_be_started_is_told)
{
    sgm__process process;
    const char *const words[] = {"/no/such/program", NULL};
    CHECK_INT(sgm__process_start(&process, &(sgm__program){.words = words, .output = STDOUT_FILENO}),
              SGM_ERROR_FILE);
    CHECK_STR(sgm_last_error(), "'/no/such/program' cannot be started: No such file or directory");
    CHECK(!sgm__process_runs(&process));
}
