/* Commands of sigma that the server started, each a process of its own: replays. They end with the server.
 * Used by one thread. Internal to `sigma mcp`. */
#ifndef SIGMA_CLI_MCP_JOBS_H
#define SIGMA_CLI_MCP_JOBS_H

#include "base/base.h"
#include <sys/types.h>

#define MCP_MOST_JOBS 32   /* that are known */
#define MCP_MOST_RUNNING 2 /* that run at once */

typedef struct mcp_job {
    char *name;    /* of the run that it makes */
    pid_t process; /* 0: it is over */
    int output;    /* what it printed: descriptor of a file in memory */
    int code;      /* the exit code, when it is over; 128 and more: ended by a signal */
    double began;  /* a time of sgm__now */
} mcp_job;
typedef struct mcp_jobs {
    mcp_job items[MCP_MOST_JOBS];
    size_t count;
} mcp_jobs;

/* Starts `sigma` with these arguments, the first of which is the name of the subcommand; NULL ends them.
 * *job: valid until the next job begins. */
sgm_status mcp_job_start(mcp_jobs *jobs, const char *name, const char *const *arguments, mcp_job **job);
/* NULL: no job makes a run of this name. */
mcp_job *mcp_job_find(mcp_jobs *jobs, const char *name);
/* Whether it still runs. */
bool mcp_job_runs(mcp_job *job);
/* The end of what it printed, at most `limit` bytes, printable; sgm__free. */
char *mcp_job_output(const mcp_job *job, size_t limit);
/* Ends the job, and waits for its end for a moment. */
void mcp_job_stop(mcp_job *job);
void mcp_jobs_end(mcp_jobs *jobs);

#endif
