/* The series and the clock of series.h.
 *
 * A series has two arrays: `old` has buckets, `fresh` has the newest points, all in the order of
 * iterations. When `fresh` is full, `settle` turns its older half into buckets of `stride` points; when
 * `old` is full, `halve` merges its buckets in pairs and doubles the stride. So appending takes constant
 * time on average, and memory is bounded by `maximum`. */
#include "monitors/web/series.h"

#include <math.h>

/* Smallest maximum of a series or clock, so that halves of it are never empty. */
#define MINIMUM_ROOM 16

/* A point as it was appended; the value may be NaN or infinite. */
typedef struct point {
    int64_t iteration;
    double value;
} point;

struct sgm__series {
    size_t maximum; /* of points in `fresh`; half as many buckets in `old` */
    point *fresh;   /* the newest points */
    size_t fresh_count, fresh_capacity;
    sgm__series_bucket *old; /* buckets of all points before `fresh` */
    size_t old_count, old_capacity;
    size_t stride;  /* points of a new bucket; a power of two */
    uint64_t count; /* points appended and not forgotten */
};

/* --- buckets --- */

static sgm__series_bucket bucket_of(const point *p)
{
    bool good = isfinite(p->value);
    return (sgm__series_bucket){.iteration = p->iteration,
                                .minimum = good ? p->value : NAN,
                                .maximum = good ? p->value : NAN,
                                .last = p->value,
                                .count = 1,
                                .bad = !good};
}

/* The smaller number; NaN stands for "none" and gives way to the other. */
static double lesser(double a, double b)
{
    return b < a || isnan(a) ? b : a;
}

static double greater(double a, double b)
{
    return b > a || isnan(a) ? b : a;
}

/* Adds the points of `later`, which come right behind those of `into`. */
static void merge(sgm__series_bucket *into, const sgm__series_bucket *later)
{
    into->iteration = later->iteration;
    into->minimum = lesser(into->minimum, later->minimum);
    into->maximum = greater(into->maximum, later->maximum);
    into->last = later->last;
    into->count += later->count;
    into->bad += later->bad;
}

/* Merges buckets in pairs. */
static void halve(sgm__series *series)
{
    size_t kept = 0;
    for (size_t i = 0; i < series->old_count; i += 2) {
        series->old[kept] = series->old[i];
        if (i + 1 < series->old_count)
            merge(&series->old[kept], &series->old[i + 1]);
        kept++;
    }
    series->old_count = kept;
    series->stride *= 2;
}

/* Turns the older half of the points into buckets. If `old` becomes full in between, the stride changes
 * for the rest, which is harmless: buckets may differ in size. Room for all of them is made first, so that
 * a failure changes nothing. */
static sgm_status settle(sgm__series *series)
{
    size_t half = series->fresh_count / 2, maximum = series->maximum / 2;
    size_t needed = series->old_count + (half - 1) / series->stride + 1;
    SGM_TRY(sgm__reserve(&series->old, &series->old_capacity, needed < maximum ? needed : maximum,
                         sizeof *series->old));
    for (size_t i = 0; i < half; i++) {
        sgm__series_bucket made = bucket_of(&series->fresh[i]);
        if (i % series->stride != 0) {
            merge(&series->old[series->old_count - 1], &made);
            continue;
        }
        if (series->old_count == maximum)
            halve(series);
        series->old[series->old_count++] = made;
    }
    series->fresh_count -= half;
    memmove(series->fresh, series->fresh + half, series->fresh_count * sizeof *series->fresh);
    return SGM_OK;
}

/* --- appending --- */

sgm__series *sgm__series_create(size_t maximum)
{
    sgm__series *series = sgm__calloc(1, sizeof *series);
    if (series == NULL)
        return NULL;
    series->maximum = maximum > MINIMUM_ROOM ? maximum : MINIMUM_ROOM;
    series->stride = 2;
    return series;
}

void sgm__series_free(sgm__series *series)
{
    if (series == NULL)
        return;
    sgm__free(series->fresh);
    sgm__free(series->old);
    sgm__free(series);
}

bool sgm__series_last(const sgm__series *series, int64_t *iteration, double *value)
{
    if (series->fresh_count > 0) {
        *iteration = series->fresh[series->fresh_count - 1].iteration;
        *value = series->fresh[series->fresh_count - 1].value;
    } else if (series->old_count > 0) {
        *iteration = series->old[series->old_count - 1].iteration;
        *value = series->old[series->old_count - 1].last;
    }
    return series->fresh_count > 0 || series->old_count > 0;
}

/* A bucket that reaches beyond `iteration` is forgotten as a whole, since its points cannot be separated. */
void sgm__series_cut(sgm__series *series, int64_t iteration)
{
    for (; series->fresh_count > 0 && series->fresh[series->fresh_count - 1].iteration >= iteration;
         series->count--)
        series->fresh_count--;
    if (series->fresh_count > 0)
        return;
    for (; series->old_count > 0 && series->old[series->old_count - 1].iteration >= iteration;
         series->old_count--)
        series->count -= series->old[series->old_count - 1].count;
}

sgm_status sgm__series_append(sgm__series *series, int64_t iteration, double value)
{
    int64_t last;
    double unused;
    if (sgm__series_last(series, &last, &unused) && iteration <= last)
        sgm__series_cut(series, iteration);
    if (series->fresh_count == series->maximum)
        SGM_TRY(settle(series));
    SGM_TRY(sgm__reserve(&series->fresh, &series->fresh_capacity, series->fresh_count + 1,
                         sizeof *series->fresh));
    series->fresh[series->fresh_count++] = (point){iteration, value};
    series->count++;
    return SGM_OK;
}

uint64_t sgm__series_count(const sgm__series *series)
{
    return series->count;
}

/* --- reducing --- */

/* Number of entries: buckets and then points. */
static size_t length_of(const sgm__series *series)
{
    return series->old_count + series->fresh_count;
}

/* Entry `index`, a bucket or a point as a bucket. */
static sgm__series_bucket entry(const sgm__series *series, size_t index)
{
    return index < series->old_count ? series->old[index]
                                     : bucket_of(&series->fresh[index - series->old_count]);
}

static int64_t iteration_of(const sgm__series *series, size_t index)
{
    return index < series->old_count ? series->old[index].iteration
                                     : series->fresh[index - series->old_count].iteration;
}

/* Index of the first entry that ends at this iteration or later; the number of entries if there is none. */
static size_t first_from(const sgm__series *series, int64_t iteration)
{
    size_t low = 0, high = length_of(series);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (iteration_of(series, middle) < iteration)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* merge for a single point, without making a bucket of it first. */
static void merge_point(sgm__series_bucket *into, const point *p)
{
    into->iteration = p->iteration;
    into->last = p->value;
    into->count++;
    if (!isfinite(p->value)) {
        into->bad++;
        return;
    }
    into->minimum = lesser(into->minimum, p->value);
    into->maximum = greater(into->maximum, p->value);
}

static void merge_entry(sgm__series_bucket *into, const sgm__series *series, size_t index)
{
    if (index < series->old_count)
        merge(into, &series->old[index]);
    else
        merge_point(into, &series->fresh[index - series->old_count]);
}

/* Merges entries first to end - 1 into at most `room` columns of equal width in iterations. A column
 * begins with the first entry that lies in it, and empty columns are left out. Rounding may put entries
 * behind the last column; they are merged into that one. */
static size_t fill_columns(const sgm__series *series, size_t first, size_t end, size_t room,
                           sgm__series_bucket *buckets)
{
    int64_t start = iteration_of(series, first);
    double width = ((double)iteration_of(series, end - 1) - (double)start + 1) / (double)room, edge = 0;
    size_t made = 0;
    for (size_t i = first; i < end; i++) {
        double place = (double)(iteration_of(series, i) - start);
        if (place < edge || made == room) {
            merge_entry(&buckets[made - 1], series, i);
            continue;
        }
        buckets[made++] = entry(series, i);
        edge = (floor(place / width) + 1) * width;
    }
    return made;
}

/* The neighbours of both ends come first and last; in between the entries themselves, if there is room, or
 * columns. */
size_t sgm__series_reduce(const sgm__series *series, int64_t from, int64_t to, size_t room,
                          sgm__series_bucket *buckets)
{
    size_t first = first_from(series, from), length = length_of(series), made = 0;
    size_t end = to < INT64_MAX ? first_from(series, to + 1) : length;
    if (first > 0)
        buckets[made++] = entry(series, first - 1);
    if (end > first && end - first <= room) {
        for (size_t i = first; i < end; i++)
            buckets[made++] = entry(series, i);
    } else if (end > first && room > 0) {
        made += fill_columns(series, first, end, room, buckets + made);
    }
    if (end >= first && end < length)
        buckets[made++] = entry(series, end);
    return made;
}

/* --- the clock --- */

/* Ticks in the order of iterations; epoch and seconds grow with them. */
struct sgm__clock {
    size_t maximum;
    sgm__clock_tick *ticks;
    size_t count, capacity;
};

sgm__clock *sgm__clock_create(size_t maximum)
{
    sgm__clock *clock = sgm__calloc(1, sizeof *clock);
    if (clock != NULL)
        clock->maximum = maximum > MINIMUM_ROOM ? maximum : MINIMUM_ROOM;
    return clock;
}

void sgm__clock_free(sgm__clock *clock)
{
    if (clock == NULL)
        return;
    sgm__free(clock->ticks);
    sgm__free(clock);
}

/* A full clock drops every second tick of its older half. In between, time is nearly linear, so little is
 * lost. */
sgm_status sgm__clock_append(sgm__clock *clock, sgm__clock_tick tick)
{
    while (clock->count > 0 && clock->ticks[clock->count - 1].iteration >= tick.iteration)
        clock->count--;
    if (clock->count == clock->maximum) {
        size_t kept = 0, half = clock->count / 2;
        for (size_t i = 0; i < clock->count; i++)
            if (i >= half || i % 2 == 0)
                clock->ticks[kept++] = clock->ticks[i];
        clock->count = kept;
    }
    SGM_TRY(sgm__reserve(&clock->ticks, &clock->capacity, clock->count + 1, sizeof *clock->ticks));
    clock->ticks[clock->count++] = tick;
    return SGM_OK;
}

double sgm__clock_tick_on(const sgm__clock_tick *tick, sgm__axis axis)
{
    return axis == SGM__AXIS_EPOCH     ? tick->epoch
           : axis == SGM__AXIS_SECONDS ? tick->seconds
                                       : (double)tick->iteration;
}

/* Index of the first tick whose position on the axis is not before `value`; the number of ticks if there
 * is none. */
static size_t find_tick(const sgm__clock *clock, sgm__axis axis, double value)
{
    size_t low = 0, high = clock->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sgm__clock_tick_on(&clock->ticks[middle], axis) < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Linear interpolation. */
static double between(double a, double b, double share)
{
    return a + (b - a) * share;
}

/* Interpolates epoch and seconds; before the first and behind the last tick their values are used. */
sgm__clock_tick sgm__clock_at(const sgm__clock *clock, int64_t iteration)
{
    size_t after = find_tick(clock, SGM__AXIS_ITERATION, (double)iteration);
    if (clock->count == 0)
        return (sgm__clock_tick){.iteration = iteration};
    if (after == clock->count)
        after--;
    sgm__clock_tick tick = clock->ticks[after];
    if (after > 0 && tick.iteration > iteration) {
        const sgm__clock_tick *before = &clock->ticks[after - 1];
        double share = (double)(iteration - before->iteration) / (double)(tick.iteration - before->iteration);
        tick.epoch = between(before->epoch, tick.epoch, share);
        tick.seconds = between(before->seconds, tick.seconds, share);
    }
    tick.iteration = iteration;
    return tick;
}

/* The inverse: interpolates the iteration and rounds up. Values beyond the range of int64_t are clamped,
 * as casting them would be undefined. */
int64_t sgm__clock_find(const sgm__clock *clock, sgm__axis axis, double value)
{
    if (axis == SGM__AXIS_ITERATION)
        return value <= -9e18 ? INT64_MIN : value >= 9e18 ? INT64_MAX : (int64_t)ceil(value);
    size_t after = find_tick(clock, axis, value);
    if (after == clock->count)
        return INT64_MAX;
    const sgm__clock_tick *tick = &clock->ticks[after], *before = tick - 1;
    if (after == 0)
        return tick->iteration;
    double low = sgm__clock_tick_on(before, axis), high = sgm__clock_tick_on(tick, axis);
    double share = high > low ? (value - low) / (high - low) : 1;
    return before->iteration + (int64_t)ceil(share * (double)(tick->iteration - before->iteration));
}
