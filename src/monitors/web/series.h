/* A value over iterations: everything of the newest time, later only its extremes, in bounded memory.
 *
 * The newest points are kept as they came. When there are too many, the older half of them becomes buckets of
 * some points each, which keep the minimum, the maximum and the last value; when there are too many buckets,
 * each two become one. So no spike is ever lost, and what is kept is as fine as the room allows. Internal.
 *
 * Nothing here locks. */
#ifndef SGM_MONITORS_WEB_SERIES_H
#define SGM_MONITORS_WEB_SERIES_H

#include "base/base.h"

typedef struct sgm__series sgm__series;

/* One or several points, up to (and with) `iteration`. */
typedef struct sgm__series_bucket {
    int64_t iteration;
    double minimum, maximum; /* of the finite ones; NaN: there are none */
    double last;
    uint32_t count, bad; /* points; those that are no finite number */
} sgm__series_bucket;

/* Keeps at least the newest `most` / 2 points as they are, and takes at most 36 `most` bytes. */
sgm__series *sgm__series_create(size_t maximum);
void sgm__series_free(sgm__series *series);
/* An iteration that was there already: all from there on is forgotten, as the training has gone back. */
sgm_status sgm__series_append(sgm__series *series, int64_t iteration, double value);
/* Forgets everything from this iteration on. */
void sgm__series_cut(sgm__series *series, int64_t iteration);
uint64_t sgm__series_count(const sgm__series *series); /* points that were appended and not forgotten */
bool sgm__series_last(const sgm__series *series, int64_t *iteration, double *value); /* false: it is empty */
/* At most `room` buckets for iterations `from` to `to`, each of them as wide as the others if they have to be
 * made; besides, the neighbours of both ends, so that a line goes on over the edge: there is room for two
 * more. Returns how many. */
size_t sgm__series_reduce(const sgm__series *series, int64_t from, int64_t to, size_t room,
                          sgm__series_bucket *buckets);

/* What epoch and time it was at an iteration. */
typedef struct sgm__clock sgm__clock;
typedef struct sgm__clock_tick {
    int64_t iteration;
    double epoch, seconds;
} sgm__clock_tick;
/* Knows at least `most` / 2 moments exactly; between these, and with more of them, others are on a line. */
sgm__clock *sgm__clock_create(size_t maximum);
void sgm__clock_free(sgm__clock *clock);
/* As with a series an iteration that was there makes the clock forget. */
sgm_status sgm__clock_append(sgm__clock *clock, sgm__clock_tick tick);
sgm__clock_tick sgm__clock_at(const sgm__clock *clock, int64_t iteration);
/* The first iteration that is not before this epoch, or this second. */
typedef enum sgm__axis { SGM__AXIS_ITERATION, SGM__AXIS_EPOCH, SGM__AXIS_SECONDS } sgm__axis;
int64_t sgm__clock_find(const sgm__clock *clock, sgm__axis axis, double value);
double sgm__clock_tick_on(const sgm__clock_tick *tick, sgm__axis axis);

#endif
