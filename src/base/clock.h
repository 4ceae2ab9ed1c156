/* Waits that end at a time: by a clock that nobody sets back. Internal. */
#ifndef SGM_BASE_CLOCK_H
#define SGM_BASE_CLOCK_H

#include <pthread.h>
#include <time.h>

/* A condition for pthread_cond_timedwait until sgm__time_in(seconds). */
void sgm__cond_init(pthread_cond_t *cond);
struct timespec sgm__time_in(double seconds);

#endif
