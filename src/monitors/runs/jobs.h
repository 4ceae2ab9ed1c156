/* Replays that a server begins for those who ask. Internal to the page over runs and to `sigma mcp`.
 *
 * A replay is a training, so a process of its own does it: a command of sigma, with the folder of the run and
 * a new one. From then on the new folder is a run like all others. What the process writes is kept in memory,
 * since a replay that is refused leaves no folder behind. Jobs end with their server. Used by one thread. */
#ifndef SGM_MONITORS_RUNS_JOBS_H
#define SGM_MONITORS_RUNS_JOBS_H

#include "base/process/process.h"

#define SGM__MAXIMUM_JOBS 64   /* that are known; of those that are over the oldest are forgotten */
#define SGM__MAXIMUM_RUNNING 2 /* at once: each has threads of its own */

typedef struct sgm__job {
    char *run, *name; /* names of the run, and of the one that it makes */
    sgm__process process;
    int output;   /* descriptor of a file in memory */
    double began; /* a time of sgm__now */
} sgm__job;
typedef struct sgm__jobs {
    sgm__job items[SGM__MAXIMUM_JOBS]; /* the oldest first */
    size_t count;
} sgm__jobs;

/* What is replayed, and how; as the options of sigma replay. */
typedef struct sgm__job_order {
    const char *const *command; /* its first words, such as `sigma replay`, at most 3 and then NULL */
    const char *run, *name;     /* as in sgm__job */
    const char *folder, *into;  /* paths; into NULL: none is made */
    const char *without;        /* numbers, "5,12"; NULL: nothing is left out */
    int64_t until;              /* 0: the end of the run */
    bool inexact, check;
} sgm__job_order;

/* Fails if too many run. *job: until the next one begins. */
sgm_status sgm__job_start(sgm__jobs *jobs, const sgm__job_order *order, sgm__job **job);
/* The newest that makes a run of this name; NULL: there is none. */
sgm__job *sgm__job_find(sgm__jobs *jobs, const char *name);
/* Whether it still runs. */
bool sgm__job_runs(sgm__job *job);
/* Looks which have ended, so that the system forgets them; returns how many run. */
size_t sgm__jobs_look(sgm__jobs *jobs);
/* The end of what it wrote, printable, without the line end behind it; sgm__free. */
char *sgm__job_output(const sgm__job *job);
/* Asks it to end, which a training does with a checkpoint, and waits for that for a moment. */
void sgm__job_stop(sgm__job *job);
/* Ends and forgets all. */
void sgm__jobs_end(sgm__jobs *jobs);

#endif
