/* Starting commands of sigma as processes, and looking after them. */
#include "mcp/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_ARGUMENTS 15
/* Milliseconds that a job gets to end by itself, and between two looks at it. */
#define TIME_TO_END 1000
#define BETWEEN_LOOKS 20

bool mcp_job_runs(mcp_job *job)
{
    int status;
    if (job->process == 0)
        return false;
    pid_t ended = waitpid(job->process, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return true;
    if (ended > 0)
        job->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    job->process = 0;
    return false;
}

mcp_job *mcp_job_find(mcp_jobs *jobs, const char *name)
{
    for (size_t i = jobs->count; i-- > 0;)
        if (strcmp(jobs->items[i].name, name) == 0)
            return &jobs->items[i];
    return NULL;
}

static void forget(mcp_jobs *jobs, size_t index)
{
    sgm__free(jobs->items[index].name);
    close(jobs->items[index].output);
    memmove(&jobs->items[index], &jobs->items[index + 1], (--jobs->count - index) * sizeof *jobs->items);
}

/* Makes room for one more, in place of the oldest that is over. */
static sgm_status make_room(mcp_jobs *jobs)
{
    size_t running = 0, oldest = jobs->count;
    for (size_t i = jobs->count; i-- > 0;) {
        if (mcp_job_runs(&jobs->items[i]))
            running++;
        else
            oldest = i;
    }
    if (running >= MCP_MOST_RUNNING)
        return sgm_fail(SGM_ERROR_STATE, "%d replays run already: wait for one (replay_result), or stop one",
                        MCP_MOST_RUNNING);
    if (jobs->count == MCP_MOST_JOBS)
        forget(jobs, oldest);
    return SGM_OK;
}

/* A group of its own, so that Ctrl-C in the server's terminal does not reach it; no signal blocked, as the
 * server itself has some. Its standard output must not be the server's, which is the protocol. */
static int spawn(mcp_job *job, char *const *arguments)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, job->output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, job->output, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&job->process, "/proc/self/exe", &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

sgm_status mcp_job_start(mcp_jobs *jobs, const char *name, const char *const *arguments, mcp_job **made)
{
    SGM_TRY(make_room(jobs));
    char *words[MOST_ARGUMENTS + 2] = {sgm__strdup("sigma")};
    mcp_job job = {.output = -1, .began = sgm__now()};
    size_t count = 1;
    bool whole = words[0] != NULL && (job.name = sgm__strdup(name)) != NULL;
    for (; arguments[count - 1] != NULL && count <= MOST_ARGUMENTS; count++)
        whole &= (words[count] = sgm__strdup(arguments[count - 1])) != NULL;
    job.output = whole ? memfd_create("sigma-job", MFD_CLOEXEC) : -1;
    int error = !whole ? ENOMEM : job.output < 0 ? errno : spawn(&job, words);
    while (count > 0)
        sgm__free(words[--count]);
    if (error == 0) {
        *made = &jobs->items[jobs->count];
        jobs->items[jobs->count++] = job;
        return SGM_OK;
    }
    if (job.output >= 0)
        close(job.output);
    sgm__free(job.name);
    return sgm_fail(SGM_ERROR_STATE, "the replay cannot be started: %s", sgm__errno_text(error));
}

char *mcp_job_output(const mcp_job *job, size_t limit)
{
    struct stat info;
    off_t size = fstat(job->output, &info) == 0 ? info.st_size : 0;
    off_t start = size > (off_t)limit ? size - (off_t)limit : 0;
    char *text = sgm__alloc(limit + 1);
    ssize_t count = text != NULL ? pread(job->output, text, limit, start) : 0;
    if (text == NULL)
        return NULL;
    text[count > 0 ? count : 0] = '\0';
    return sgm__make_printable(text);
}

void mcp_job_stop(mcp_job *job)
{
    if (!mcp_job_runs(job))
        return;
    kill(-job->process, SIGTERM);
    for (int waited = 0; waited < TIME_TO_END && mcp_job_runs(job); waited += BETWEEN_LOOKS)
        poll(NULL, 0, BETWEEN_LOOKS);
}

/* All are told before any is waited for. */
void mcp_jobs_end(mcp_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (mcp_job_runs(&jobs->items[i]))
            kill(-jobs->items[i].process, SIGTERM);
    for (int waited = 0; waited < TIME_TO_END; waited += BETWEEN_LOOKS) {
        bool any = false;
        for (size_t i = 0; i < jobs->count; i++)
            any |= mcp_job_runs(&jobs->items[i]);
        if (!any)
            break;
        poll(NULL, 0, BETWEEN_LOOKS);
    }
    for (size_t i = 0; i < jobs->count; i++)
        if (mcp_job_runs(&jobs->items[i])) {
            kill(-jobs->items[i].process, SIGKILL);
            waitpid(jobs->items[i].process, NULL, 0);
        }
    while (jobs->count > 0)
        forget(jobs, jobs->count - 1);
}
