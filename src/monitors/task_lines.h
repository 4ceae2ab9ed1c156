/* Shows long tasks (downloads, compilation, reading) as a line on stderr.
 *
 * A task is what include/sigma/base.h describes. task_lines.c watches all tasks of the process between the
 * first sgm__task_lines_begin and the last sgm__task_lines_end. The terminal monitor and the command
 * (cli/main.c) call both. Internal to the monitors and the command. */
#ifndef SGM_MONITORS_TASK_LINES_H
#define SGM_MONITORS_TASK_LINES_H

#include "base/base.h"

/* Whether lines on a file descriptor can be redrawn: it is a terminal, TERM is not "dumb", and the process
 * is not one of several that a launcher has started. */
bool sgm__is_terminal(int file);
/* Calls nest. While at least one is open, a task that takes longer than half a second has a redrawn line
 * on stderr if that is a terminal, which is cleared when the task ends. A download that took as long also
 * leaves a permanent line, on any stderr. */
void sgm__task_lines_begin(void);
void sgm__task_lines_end(void);
/* While at least one hold is in force (a training draws its own line), only compilation is shown. */
void sgm__task_lines_hold(bool hold);

#endif
