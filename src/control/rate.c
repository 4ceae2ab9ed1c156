/* Token buckets of askers: see rate.h. */
#include "control/rate.h"
#include "base/clock.h"

#include <math.h>

void sgm__rate_begin(sgm__rate *rate, double per_second)
{
    pthread_mutex_init(&rate->lock, NULL);
    rate->per_second = per_second == 0 ? SGM__RATE_DEFAULT : per_second;
    rate->burst = fmax(SGM__RATE_BURST, 4 * rate->per_second);
    rate->left = rate->burst;
    rate->time = sgm__now();
}

void sgm__rate_end(sgm__rate *rate)
{
    pthread_mutex_destroy(&rate->lock);
}

sgm_status sgm__rate_take(sgm__rate *rate)
{
    if (rate == NULL || rate->per_second < 0)
        return SGM_OK;
    pthread_mutex_lock(&rate->lock);
    double now = sgm__now();
    rate->left = fmin(rate->burst, rate->left + (now - rate->time) * rate->per_second);
    rate->time = now;
    double missing = 1 - rate->left;
    if (missing <= 0)
        rate->left -= 1;
    pthread_mutex_unlock(&rate->lock);
    return missing <= 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_LIMIT,
                          "too many changes: at most %.0f at once and %g a second; wait %.1f seconds",
                          rate->burst, rate->per_second, ceil(missing / rate->per_second * 10) / 10);
}
