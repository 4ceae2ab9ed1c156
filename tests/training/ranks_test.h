/* Tests with ranks: the test program starts itself under mpirun, with the name of what a rank does. */
#ifndef SIGMA_TEST_RANKS_H
#define SIGMA_TEST_RANKS_H

#include "base/folder.h"
#include "test.h"

#include "base/base.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANK_VARIABLE "SIGMA_TEST_RANK_PART"

/* What a rank does. */
#define RANK_PART(part)                                                                                      \
    static void rank_part_##part(void);                                                                      \
    __attribute__((constructor)) static void register_##part(void)                                           \
    {                                                                                                        \
        const char *wanted = getenv(RANK_VARIABLE);                                                          \
        if (wanted != NULL && strcmp(wanted, #part) == 0)                                                    \
            rank_part = rank_part_##part;                                                                    \
    }                                                                                                        \
    static void rank_part_##part(void)

static void (*rank_part)(void);

/* The only test that runs where a part is wanted. */
TEST(what_mpirun_starts)
{
    if (rank_part != NULL)
        rank_part();
}

__attribute__((unused)) static bool is_there(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "command -v %s >/dev/null 2>&1", command);
    return system(line) == 0;
}

/* Ends the test where ranks cannot be tested. */
__attribute__((unused)) static void need_ranks(void)
{
#ifdef SIGMA_THREAD_SANITIZER
    SKIP("the thread sanitizer knows nothing of what an MPI does");
#endif
    const char *folders = getenv("SIGMA_PLUGIN_PATH");
    char plugin[4096];
    snprintf(plugin, sizeof plugin, "%s/libsigma-mpi.so", folders != NULL ? folders : ".");
    if (!is_there("mpirun"))
        SKIP("there is no mpirun here (Debian: openmpi-bin)");
    if (!sgm__file_exists(plugin))
        SKIP("the plug-in mpi was not built (Debian: libopenmpi-dev)");
}

/* Starts `count` ranks in `folder`; what they say goes to the file "output" there. Returns mpirun's process.
 */
__attribute__((unused)) static pid_t start_ranks(int count, const char *part)
{
    char own[4096], number[16], path[128];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    CHECK(length > 0);
    own[length] = '\0';
    snprintf(number, sizeof number, "%d", count);
    snprintf(path, sizeof path, "%s/output", folder);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0)
        return child;
    if (freopen(path, "w", stdout) == NULL || freopen(path, "a", stderr) == NULL)
        _exit(9);
    setenv(RANK_VARIABLE, part, 1);
    setenv("SIGMA_TEST_FOLDER", folder, 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the MPI's own */
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    execlp("mpirun", "mpirun", "-n", number, "--oversubscribe", "--bind-to", "none", own,
           "what_mpirun_starts", (char *)NULL);
    _exit(9);
}

/* Its exit code, 128 and a signal's number, or -1 after `seconds`, when it is killed. */
__attribute__((unused)) static int wait_ranks(pid_t child, double seconds)
{
    double end = sgm__now() + seconds;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        if (sgm__now() > end) {
            kill(child, SIGTERM);
            usleep(300000);
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return -1;
        }
        usleep(5000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What the ranks have said; NULL-terminated, of the newest start. */
__attribute__((unused)) static const char *ranks_said(void)
{
    static char text[16384];
    char path[128];
    snprintf(path, sizeof path, "%s/output", folder);
    FILE *file = fopen(path, "r");
    size_t length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    text[length] = '\0';
    if (file != NULL)
        fclose(file);
    return text;
}

__attribute__((unused)) static void run_ranks(int count, const char *part)
{
    int code = wait_ranks(start_ranks(count, part), 60);
    if (code != 0)
        TEST_FAIL("%d ranks ended with %d: %s", count, code, ranks_said());
}

/* For a part: the test's folder. */
__attribute__((unused)) static const char *rank_path(const char *name)
{
    static char path[256];
    const char *place = getenv("SIGMA_TEST_FOLDER");
    snprintf(path, sizeof path, "%s/%s", place != NULL ? place : folder, name);
    return path;
}

/* The checkpoint there of what is trained as number `i`. */
__attribute__((unused)) static const char *rank_file(size_t i)
{
    char name[48];
    snprintf(name, sizeof name, "%zu.safetensors", i);
    return rank_path(name);
}

#endif
