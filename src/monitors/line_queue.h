/* A queue of lines for a reader that may be slow or may not read at all, such as a pipe or a terminal.
 *
 * A training must not wait for the reader. So a push never blocks: a thread of the queue writes the lines,
 * and a line is refused when SGM__LINE_QUEUE_BYTES wait already. Used by json_lines.c for all targets that
 * are not regular files. Internal. */
#ifndef SGM_MONITORS_LINE_QUEUE_H
#define SGM_MONITORS_LINE_QUEUE_H

#include "base/base.h"

/* Limit of the bytes that wait; a line that is longer may wait if it is alone. */
#define SGM__LINE_QUEUE_BYTES ((size_t)1 << 20)

typedef struct sgm__line_queue sgm__line_queue;

/* Starts the writing thread. The descriptor remains the caller's and must stay open until
 * sgm__line_queue_end. NULL: failed, sgm_last_error() says why. */
sgm__line_queue *sgm__line_queue_start(int descriptor);
/* Copies the line, which ends in a newline. Returns false when there is no room or no memory. After a
 * write error lines are accepted and forgotten. Any thread may call this. */
bool sgm__line_queue_push(sgm__line_queue *queue, const char *line, size_t length);
/* The errno of the write that failed, after which nothing more is written; 0: none has failed. */
int sgm__line_queue_error(sgm__line_queue *queue);
/* Writes the waiting lines as long as somebody reads them, and frees the queue. Returns how many lines
 * were not written. *error is the errno of a failed write; it is 0 also where lines were left because
 * nobody read them. */
size_t sgm__line_queue_end(sgm__line_queue *queue, int *error);

#endif
