/* A line for what takes long, on stderr. Internal to the monitors and the command. */
#ifndef SGM_MONITORS_TASK_LINES_H
#define SGM_MONITORS_TASK_LINES_H

#include "base/base.h"

/* Whether lines on a file can be drawn again: it is a terminal, and not a dumb one. */
bool sgm__is_terminal(int file);
/* From the first begin to the last end: tasks that take longer than half a second have a line on a terminal,
 * which is drawn again and again and goes when they end; downloads that took as long leave one, also
 * elsewhere. */
void sgm__task_lines_begin(void);
void sgm__task_lines_end(void);
/* While a training is drawn, only that, and what compiles. */
void sgm__task_lines_hold(bool hold);

#endif
