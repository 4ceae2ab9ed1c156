/* Which iterations are worth telling: each so many, or the first after so long. Internal. */
#ifndef SGM_MONITORS_PACE_H
#define SGM_MONITORS_PACE_H

#include "base/base.h"

#include <math.h>

typedef struct sgm__pace {
    int64_t iterations; /* 0: not by their number */
    double seconds;     /* 0: not by time */
} sgm__pace;

static inline sgm_status sgm__pace_check(const sgm__pace *pace, const char *what)
{
    if (pace->iterations < 0)
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: every_iterations: expected 0 or more, got %lld", what,
                        (long long)pace->iterations);
    if (!(pace->seconds >= 0) || isinf(pace->seconds))
        return sgm_fail(SGM_ERROR_ARGUMENT, "%s: every_seconds: expected 0 or more, got %g", what,
                        pace->seconds);
    return SGM_OK;
}

/* `told`: when one was told last, which is kept up to date. */
static inline bool sgm__pace_is_due(const sgm__pace *pace, int64_t iteration, double *told)
{
    if (pace->iterations > 0 && iteration % pace->iterations == 0)
        return true;
    if (!(pace->seconds > 0))
        return false;
    double now = sgm__now();
    if (now - *told < pace->seconds)
        return false;
    *told = now;
    return true;
}

/* The next that may be due. */
static inline int64_t sgm__pace_next(const sgm__pace *pace, int64_t iteration)
{
    if (pace->seconds > 0)
        return iteration + 1;
    return pace->iterations > 0 ? (iteration / pace->iterations + 1) * pace->iterations : INT64_MAX;
}

#endif
