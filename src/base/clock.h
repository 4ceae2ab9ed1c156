/* Declares waits that end at a time, measured by the monotonic clock, which nobody sets back; the time of
 * day; threads. Implemented in system.c. Internal. */
#ifndef SGM_BASE_CLOCK_H
#define SGM_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

/* Makes a condition whose pthread_cond_timedwait takes times of the monotonic clock, such as sgm__time_in
 * returns. */
void sgm__cond_init(pthread_cond_t *cond);
/* The time `seconds` (0 or more) from now. */
struct timespec sgm__time_in(double seconds);
/* Seconds since 1970, in whole microseconds, which are as many digits as a double has exactly. */
double sgm__wall_time(void);

/* Starts a thread in which all signals are blocked: the program's own threads receive them. Returns 0 or the
 * number of the error, as pthread_create does. */
int sgm__thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
