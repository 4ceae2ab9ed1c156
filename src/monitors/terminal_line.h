/* Formats the two lines that the terminal monitor shows: the position in a training, and the result of an
 * epoch.
 *
 * Pure text: these functions neither print nor keep state. terminal.c calls them with its lock held and
 * prints what they return. Internal to it. */
#ifndef SGM_MONITORS_TERMINAL_LINE_H
#define SGM_MONITORS_TERMINAL_LINE_H

#include "monitors/sparkline.h"
#include <sigma/training.h>

/* How lines are to look; borrowed for the call. */
typedef struct sgm__terminal_look {
    size_t columns;               /* width of the terminal; the line is shorter by at least one column */
    bool named, colour;           /* show the trainer's name; use escape sequences for bold */
    const char *note;             /* shown in front, for example "paused"; "": none */
    const sgm__sparkline *losses; /* NULL: no curve */
} sgm__terminal_look;

/* The line about the current position of the training; the caller frees it with sgm__free. NULL: out of
 * memory. */
char *sgm__terminal_line(const sgm_training_progress *progress, const sgm__terminal_look *look);
/* The line about a finished epoch, numbered from 1; not cut to the terminal's width. With kind STOP the
 * epoch was left unfinished, and the line says after how many batches. Free with sgm__free; NULL: out of
 * memory. */
char *sgm__terminal_epoch(const sgm_training_progress *progress, int64_t epoch,
                          const sgm__terminal_look *look);

#endif
