/* Lines for someone who may read slowly, or not at all: a pipe, a terminal. Whoever has a line to tell never
 * waits; a thread writes them, and what finds no room is refused. Internal. */
#ifndef SGM_MONITORS_LINE_QUEUE_H
#define SGM_MONITORS_LINE_QUEUE_H

#include "base/base.h"

#define SGM__LINE_QUEUE_BYTES ((size_t)1 << 20) /* that wait; one line may always wait alone */

typedef struct sgm__line_queue sgm__line_queue;

/* The descriptor stays open until the end. NULL: an error says why. */
sgm__line_queue *sgm__line_queue_start(int descriptor);
/* Copies the line, which ends in a newline. False: there is no room. Any thread. */
bool sgm__line_queue_push(sgm__line_queue *queue, const char *line, size_t length);
/* 0, or the errno for which no more is written; what is pushed from then on is forgotten. */
int sgm__line_queue_error(sgm__line_queue *queue);
/* Writes what is left as long as somebody reads it, and frees the queue. How many lines were left, and the
 * error, 0 where nobody has read them. */
size_t sgm__line_queue_end(sgm__line_queue *queue, int *error);

#endif
