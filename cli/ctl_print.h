/* What `sigma ctl` prints of an answer. Internal to the files of ctl. */
#ifndef SIGMA_CLI_CTL_PRINT_H
#define SIGMA_CLI_CTL_PRINT_H

#include "config/arguments.h"

/* Prints an answer: its members line by line, or an error to stderr; with `as_json` as it came. Returns the
 * exit code that its "ok" means. */
int ctl_print_answer(const sgm__text *line, bool as_json);

#endif
