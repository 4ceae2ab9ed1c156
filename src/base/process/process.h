/* Programs that run beside this process: starting one, looking whether it has ended, ending it. Internal.
 *
 * A program has a process group of its own, so that Ctrl-C in the terminal reaches this process alone. No
 * signal is blocked or ignored in it, it has nothing to read, and no other file of this process. What it has
 * started in its group ends with it. An sgm__process is used by one thread at a time. */
#ifndef SGM_BASE_PROCESS_PROCESS_H
#define SGM_BASE_PROCESS_PROCESS_H

#include "base/base.h"

#include <sys/types.h>

/* What is started. */
typedef struct sgm__program {
    const char *const *words; /* the first is the program, which is looked for in PATH; NULL ends them */
    char *const *environment; /* as `environ`; NULL: that of this process */
    int output;               /* a descriptor, which gets all that it writes, as errors too */
} sgm__program;

typedef struct sgm__process {
    pid_t number; /* 0: it has ended */
    int code;     /* when it has ended: its exit code; 128 and the signal: a signal ended it */
    int signal;   /* which one; 0: none did */
} sgm__process;

/* Fails with "'PROGRAM' cannot be started: ...". */
sgm_status sgm__process_start(sgm__process *process, const sgm__program *program);
/* Whether it still runs. */
bool sgm__process_runs(sgm__process *process);
/* Asks it to end by itself (SIGTERM). */
void sgm__process_ask_to_end(const sgm__process *process);
/* Ends it, and waits until it has ended. */
void sgm__process_kill(sgm__process *process);

#endif
