/* What the terminal monitor writes about a training. Internal to it. */
#ifndef SGM_MONITORS_TERMINAL_LINE_H
#define SGM_MONITORS_TERMINAL_LINE_H

#include "monitors/sparkline.h"
#include <sigma/training.h>

typedef struct sgm__terminal_look {
    size_t columns;               /* of the terminal; the line stays below */
    bool named, colour;           /* trainers have names; bold where it helps */
    const char *note;             /* before all else, "" for nothing: "paused" */
    const sgm__sparkline *losses; /* NULL: no curve */
} sgm__terminal_look;

/* Where the training is now; free with sgm__free. NULL: out of memory. */
char *sgm__terminal_line(const sgm_training_progress *progress, const sgm__terminal_look *look);
/* What came out of `epoch`; one that was not finished (STOP) says so. */
char *sgm__terminal_epoch(const sgm_training_progress *progress, int64_t epoch,
                          const sgm__terminal_look *look);

#endif
