/* Declares waits that end at a time, measured by the monotonic clock, which nobody sets back. Implemented in
 * system.c. Internal. */
#ifndef SGM_BASE_CLOCK_H
#define SGM_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

/* Makes a condition whose pthread_cond_timedwait takes times of the monotonic clock, such as sgm__time_in
 * returns. */
void sgm__cond_init(pthread_cond_t *cond);
/* The time `seconds` (0 or more) from now. */
struct timespec sgm__time_in(double seconds);

#endif
