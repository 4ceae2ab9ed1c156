/* Programs that run beside this process, by posix_spawn and without a shell. */
#include "base/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A number is a process's own until it is waited for, and only then another process may get it: so the group
 * is killed before. */
static void take_end(sgm__process *process)
{
    int state = 0;
    kill(-process->number, SIGKILL);
    while (waitpid(process->number, &state, 0) < 0 && errno == EINTR) {
    }
    process->number = 0;
    process->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    process->code = process->signal != 0 ? 128 + process->signal : WEXITSTATUS(state);
}

bool sgm__process_runs(sgm__process *process)
{
    siginfo_t info = {0};
    if (process->number == 0)
        return false;
    if (waitid(P_PID, (id_t)process->number, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
        return true;
    take_end(process);
    return false;
}

void sgm__process_ask_to_end(const sgm__process *process)
{
    if (process->number != 0)
        kill(-process->number, SIGTERM);
}

void sgm__process_kill(sgm__process *process)
{
    if (process->number != 0)
        take_end(process);
}

/* posix_spawnp changes neither words nor environment: what is const is so but for its type. */
static int spawn(const sgm__program *program, const posix_spawn_file_actions_t *files,
                 const posix_spawnattr_t *attributes, pid_t *number)
{
    char *const *words = (char *const *)(uintptr_t)program->words;
    return posix_spawnp(number, words[0], files, attributes, words,
                        program->environment != NULL ? program->environment : environ);
}

sgm_status sgm__process_start(sgm__process *process, const sgm__program *program)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    *process = (sgm__process){0};
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&files, program->output, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&files, program->output, STDERR_FILENO);
    if (error == 0)
        error = spawn(program, &files, &attributes, &process->number);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error == 0)
        return SGM_OK;
    process->number = 0;
    return sgm_fail(SGM_ERROR_FILE, "'%.200s' cannot be started: %s", program->words[0],
                    sgm__errno_text(error));
}
