/* A question to a training of another process, over the socket control.sock in its folder. Internal to the
 * command: `sigma ctl` and `sigma mcp` ask by it.
 *
 * The other end is src/control/control_socket.c: one line of JSON asks, one line of JSON answers. */
#ifndef SIGMA_CLI_RUNS_CTL_ASK_H
#define SIGMA_CLI_RUNS_CTL_ASK_H

#include "base/base.h"

typedef struct ctl_question {
    const char *folder; /* of the run, as messages name it */
    const char *reach;  /* another path of the same folder, which the socket is opened by; NULL: `folder` */
    const char *text;   /* the question, a line of JSON without its end */
    double seconds;     /* how long the answer may take */
    const char *limit;  /* what messages call these seconds, such as "--timeout" */
    /* Asked about ten times a second: whether nobody wants the answer any more. NULL: somebody does. */
    bool (*is_withdrawn)(void *user);
    void *user;
} ctl_question;

/* Sends the question and appends the answer to `line`, both without their line ends. Waits at most
 * `seconds` for the answer, plus GRACE_SECONDS in which the other side can say itself that the time is
 * over; fails sooner if the other process is stopped, or with SGM_ERROR_INTERRUPTED if the question is
 * withdrawn. The caller frees `line`. */
sgm_status ctl_ask(const ctl_question *question, sgm__text *line);

#endif
