/* Decides which iterations a monitor reports: each one whose number is a multiple of `iterations`, or the
 * first one after `seconds` have passed.
 *
 * json_lines.c and tensorboard.c use this within their observers. sgm__pace_next is handed to
 * sgm__observer_next, so that the run calls the observer only for iterations that may be due, and each
 * other iteration costs it one comparison. Internal. */
#ifndef SGM_MONITORS_PACE_H
#define SGM_MONITORS_PACE_H

#include "base/base.h"

#include <math.h>

typedef struct sgm__pace {
    int64_t iterations; /* 0: no iterations are due by their number */
    double seconds;     /* 0: no iterations are due by time */
} sgm__pace;

/* Validates numbers that come from the program; `what` is the name of the options in the error message. */
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

/* Whether `iteration` is to be reported. *told is the time (sgm__now) of the last report by time, which
 * this function updates. A report by number does not move the clock, so the two paces do not disturb each
 * other. */
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

/* The smallest number of a later iteration that may be due. With a pace by time any iteration may be,
 * since only the clock decides. */
static inline int64_t sgm__pace_next(const sgm__pace *pace, int64_t iteration)
{
    if (pace->seconds > 0)
        return iteration + 1;
    return pace->iterations > 0 ? (iteration / pace->iterations + 1) * pace->iterations : INT64_MAX;
}

#endif
