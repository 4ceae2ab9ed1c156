/* A question to a training of another process, over the socket control.sock in its folder. Internal to
 * ctl.c.
 *
 * The other end is src/control/control_socket.c: one line of JSON asks, one line of JSON answers. */
#ifndef SIGMA_CLI_CTL_ASK_H
#define SIGMA_CLI_CTL_ASK_H

#include "cli.h"

/* Sends the line `text` and appends the answer to `line`, both without their line ends. Waits at most
 * `seconds` for the answer, plus GRACE_SECONDS in which the other side can say itself that the time is
 * over; fails sooner if the other process is stopped. The caller frees `line`. */
sgm_status ctl_ask(const char *folder, const char *text, double seconds, sgm__text *line);

#endif
