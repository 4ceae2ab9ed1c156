/* Replays as processes: starting them, looking after them, ending them. */
#include "monitors/runs/jobs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAXIMUM_WORDS 15
#define LONGEST_OUTPUT 4000
/* Milliseconds that a job has to end by itself, and between two looks at it. */
#define TIME_TO_END 1000
#define BETWEEN_LOOKS 20

bool sgm__job_runs(sgm__job *job)
{
    return sgm__process_runs(&job->process);
}

size_t sgm__jobs_look(sgm__jobs *jobs)
{
    size_t running = 0;
    for (size_t i = 0; i < jobs->count; i++)
        running += sgm__job_runs(&jobs->items[i]);
    return running;
}

sgm__job *sgm__job_find(sgm__jobs *jobs, const char *name)
{
    for (size_t i = jobs->count; i-- > 0;)
        if (strcmp(jobs->items[i].name, name) == 0)
            return &jobs->items[i];
    return NULL;
}

/* --- starting --- */

static void free_job(sgm__job *job)
{
    sgm__free(job->run);
    sgm__free(job->name);
    if (job->output >= 0)
        close(job->output);
}

static void forget(sgm__jobs *jobs, size_t index)
{
    free_job(&jobs->items[index]);
    memmove(&jobs->items[index], &jobs->items[index + 1], (--jobs->count - index) * sizeof *jobs->items);
}

/* Makes room for one more, in place of the oldest that is over. */
static sgm_status make_room(sgm__jobs *jobs)
{
    size_t oldest = 0;
    if (sgm__jobs_look(jobs) >= SGM__MAXIMUM_RUNNING)
        return sgm_fail(SGM_ERROR_STATE, "%d replays train already; wait for one, or stop it",
                        SGM__MAXIMUM_RUNNING);
    if (jobs->count < SGM__MAXIMUM_JOBS)
        return SGM_OK;
    while (sgm__job_runs(&jobs->items[oldest]))
        oldest++;
    forget(jobs, oldest);
    return SGM_OK;
}

static sgm_status start_words(sgm__job *job, const sgm__job_order *order)
{
    const char *words[MAXIMUM_WORDS + 1] = {NULL};
    char until[24];
    size_t count = 0;
    for (; order->command[count] != NULL; count++)
        words[count] = order->command[count];
    words[count++] = order->folder;
    words[count++] = "--quiet";
    words[count++] = "--no-keys";
    if (order->into != NULL) {
        words[count++] = "--into";
        words[count++] = order->into;
    }
    if (order->check)
        words[count++] = "--check";
    if (order->inexact)
        words[count++] = "--inexact";
    if (order->until > 0) {
        snprintf(until, sizeof until, "%lld", (long long)order->until);
        words[count++] = "--until";
        words[count++] = until;
    }
    if (order->without != NULL) {
        words[count++] = "--without";
        words[count++] = order->without;
    }
    return sgm__process_start(&job->process, &(sgm__program){.words = words, .output = job->output});
}

static sgm_status start(sgm__job *job, const sgm__job_order *order)
{
    if (job->run == NULL || job->name == NULL)
        return SGM_ERROR_MEMORY;
    job->output = memfd_create("output of a replay", MFD_CLOEXEC);
    return job->output >= 0 ? start_words(job, order)
                            : sgm_fail(SGM_ERROR_FILE, "the output of a replay cannot be kept: %s",
                                       sgm__errno_text(errno));
}

sgm_status sgm__job_start(sgm__jobs *jobs, const sgm__job_order *order, sgm__job **job)
{
    SGM_TRY(make_room(jobs));
    *job = &jobs->items[jobs->count];
    **job = (sgm__job){
        .run = sgm__strdup(order->run), .name = sgm__strdup(order->name), .output = -1, .began = sgm__now()};
    sgm_status status = start(*job, order);
    if (status == SGM_OK)
        jobs->count++;
    else
        free_job(*job);
    return status;
}

/* --- what it wrote --- */

char *sgm__job_output(const sgm__job *job)
{
    off_t size = lseek(job->output, 0, SEEK_END);
    off_t start = size > LONGEST_OUTPUT ? size - LONGEST_OUTPUT : 0;
    char *text = sgm__alloc(LONGEST_OUTPUT + 1);
    ssize_t count = text != NULL ? pread(job->output, text, LONGEST_OUTPUT, start) : 0;
    if (text == NULL)
        return NULL;
    while (count > 0 && (text[count - 1] == '\n' || text[count - 1] == ' '))
        count--;
    text[count > 0 ? count : 0] = '\0';
    return sgm__make_printable(text);
}

/* --- ending --- */

void sgm__job_stop(sgm__job *job)
{
    sgm__process_ask_to_end(&job->process);
    for (int waited = 0; sgm__job_runs(job) && waited < TIME_TO_END; waited += BETWEEN_LOOKS)
        poll(NULL, 0, BETWEEN_LOOKS);
}

/* All are told before any is waited for. */
void sgm__jobs_end(sgm__jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        sgm__process_ask_to_end(&jobs->items[i].process);
    for (int waited = 0; sgm__jobs_look(jobs) > 0 && waited < TIME_TO_END; waited += BETWEEN_LOOKS)
        poll(NULL, 0, BETWEEN_LOOKS);
    while (jobs->count > 0) {
        sgm__process_kill(&jobs->items[jobs->count - 1].process);
        forget(jobs, jobs->count - 1);
    }
}
