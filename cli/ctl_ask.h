/* A question to a training of another process, over the socket in its folder. Internal. */
#ifndef SIGMA_CLI_CTL_ASK_H
#define SIGMA_CLI_CTL_ASK_H

#include "cli.h"

/* Sends the line `text`, and appends the one that comes back to `line`, both without their ends. Waits for so
 * many seconds, and a moment for the other side to say first that this was not enough; fails sooner where the
 * other process is stopped. */
sgm_status ctl_ask(const char *folder, const char *text, double seconds, sgm__text *line);

#endif
