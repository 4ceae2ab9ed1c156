/* How often an asker may change something: so many requests at once, and so many a second in the long run.
 * Internal. */
#ifndef SGM_CONTROL_RATE_H
#define SGM_CONTROL_RATE_H

#include "base/base.h"
#include <pthread.h>

#define SGM__RATE_BURST 20.0  /* requests that may come at once, or those of 4 seconds if that is more */
#define SGM__RATE_DEFAULT 5.0 /* a second, in the long run: of a token */
#define SGM__RATE_OWNER 100.0 /* the same on the socket, where the owner's scripts ask */

/* A token bucket; any thread. */
typedef struct sgm__rate {
    pthread_mutex_t lock;
    double per_second, burst, left, time; /* `left` as of `time`, a moment of sgm__now */
} sgm__rate;

/* `per_second` 0: SGM__RATE_DEFAULT; less than 0: without a limit. */
void sgm__rate_begin(sgm__rate *rate, double per_second);
void sgm__rate_end(sgm__rate *rate);
/* Counts a request. SGM_ERROR_LIMIT, with the limit and how long to wait: there were too many. `rate` NULL:
 * no limit. */
sgm_status sgm__rate_take(sgm__rate *rate);

#endif
