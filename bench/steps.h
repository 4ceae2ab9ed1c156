/* How long a trainer's iterations take, for programs that measure them. */
#ifndef SIGMA_BENCH_STEPS_H
#define SIGMA_BENCH_STEPS_H

#include "measure.h"
#include <sigma/sigma.h>

#define MAXIMUM_STEPS 200000

typedef struct steps {
    int64_t warm_up; /* iterations that do not count */
    size_t minimum;  /* of those that do */
    double seconds;  /* from the warm-up on; then the run is stopped */
    double *times;   /* MAXIMUM_STEPS of them */
    size_t count;
    double began, before;
} steps;

/* A trainer's on_progress. */
static inline bool note_step(void *user, const sgm_training_progress *progress)
{
    steps *s = user;
    double moment = now();
    if (progress->kind == SGM_PROGRESS_ITERATION && progress->iteration > s->warm_up &&
        s->count < MAXIMUM_STEPS)
        s->times[s->count++] = moment - s->before;
    if (progress->iteration == s->warm_up)
        s->began = moment;
    s->before = now();
    return progress->iteration <= s->warm_up || s->count < s->minimum ||
           (s->count < MAXIMUM_STEPS && moment - s->began < s->seconds);
}

#endif
