/* A value over iterations in bounded memory: the newest points exactly, older ones as extremes.
 *
 * The newest points are kept as they came. When there are too many, the older half of them becomes buckets
 * of some points each, which keep minimum, maximum and last value; when there are too many buckets,
 * neighbours are merged in pairs. So no spike is ever lost, and the resolution is as fine as the memory
 * allows. The clock at the end maps iterations to epochs and seconds. recording.c makes one series for
 * each recorded value; nothing here takes a lock. Internal. */
#ifndef SGM_MONITORS_WEB_SERIES_H
#define SGM_MONITORS_WEB_SERIES_H

#include "base/base.h"

typedef struct sgm__series sgm__series;

/* One or several consecutive points; the last of them is at `iteration`. */
typedef struct sgm__series_bucket {
    int64_t iteration;
    double minimum, maximum; /* of the finite values; NaN: there are none */
    double last;
    uint32_t count, bad; /* points in all; points that are not finite */
} sgm__series_bucket;

/* Keeps at least the newest `maximum` / 2 points exactly, and takes at most 36 * `maximum` bytes. */
sgm__series *sgm__series_create(size_t maximum);
void sgm__series_free(sgm__series *series);
/* Appends a point. An iteration that is not behind the last one means that the training has gone back:
 * everything from there on is forgotten first. */
sgm_status sgm__series_append(sgm__series *series, int64_t iteration, double value);
/* Forgets all points from this iteration on. */
void sgm__series_cut(sgm__series *series, int64_t iteration);
/* Number of points that were appended and not forgotten. */
uint64_t sgm__series_count(const sgm__series *series);
/* The newest point; false: the series is empty. */
bool sgm__series_last(const sgm__series *series, int64_t *iteration, double *value);
/* Describes iterations `from` to `to` by at most `room` buckets, of equal width if points have to be
 * merged; besides, the neighbours of both ends, so that a drawn line continues over the edges. `buckets`
 * has space for room + 2; returns how many were written. */
size_t sgm__series_reduce(const sgm__series *series, int64_t from, int64_t to, size_t room,
                          sgm__series_bucket *buckets);

/* Which epoch and which second it was at an iteration. */
typedef struct sgm__clock sgm__clock;
typedef struct sgm__clock_tick {
    int64_t iteration;
    double epoch, seconds;
} sgm__clock_tick;
/* Knows at least the newest `maximum` / 2 moments exactly; others are interpolated. */
sgm__clock *sgm__clock_create(size_t maximum);
void sgm__clock_free(sgm__clock *clock);
/* As with a series, an iteration that is not behind the last one makes the clock forget. */
sgm_status sgm__clock_append(sgm__clock *clock, sgm__clock_tick tick);
sgm__clock_tick sgm__clock_at(const sgm__clock *clock, int64_t iteration);
typedef enum sgm__axis { SGM__AXIS_ITERATION, SGM__AXIS_EPOCH, SGM__AXIS_SECONDS } sgm__axis;
/* The first iteration that is not before this value on the axis; INT64_MAX: none is. */
int64_t sgm__clock_find(const sgm__clock *clock, sgm__axis axis, double value);
/* The position of a tick on an axis. */
double sgm__clock_tick_on(const sgm__clock_tick *tick, sgm__axis axis);

#endif
