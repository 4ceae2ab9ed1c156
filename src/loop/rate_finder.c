/* The learning rate finder. Smith, Cyclical learning rates for training neural networks, 2015. */
#include "data/dataset.h"
#include "train/snapshot.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

#define MAXIMUM_ITERATIONS 100000
#define SLOPE_REACH 3     /* points on each side of one whose slope is wanted */
#define CLEAR_FALL 1.5    /* times the noise: 3 in 1000 curves of 100 losses that only wander fall so far */
#define MINIMUM_FALL 0.01 /* of the first loss */

void sgm_rate_curve_free(sgm_rate_curve *curve)
{
    if (curve == NULL)
        return;
    sgm__free(curve->points);
    sgm__free(curve);
}

/* --- options --- */

static sgm_status read_options(const sgm_rate_finder_options *given, sgm_rate_finder_options *options)
{
    SGM_TRY(sgm__options_read(options, sizeof *options, given, "sgm_trainer_find_learning_rate"));
    if (options->minimum == 0)
        options->minimum = 1e-7;
    if (options->maximum == 0)
        options->maximum = 10;
    if (options->iterations == 0)
        options->iterations = 100;
    if (options->smoothing == 0)
        options->smoothing = 0.9;
    if (options->smoothing < 0)
        options->smoothing = 0;
    if (options->divergence == 0)
        options->divergence = 4;
    bool good = options->minimum > 0 && options->minimum < options->maximum && isfinite(options->maximum) &&
                options->iterations >= 10 && options->iterations <= MAXIMUM_ITERATIONS &&
                options->smoothing < 1 && options->divergence > 1;
    return good ? SGM_OK
                : sgm_fail(
                      SGM_ERROR_ARGUMENT,
                      "learning rate finder: expected 0 < minimum < maximum, 10 to %d iterations, smoothing "
                      "below 1 and divergence above 1; got %g, %g, %lld, %g and %g",
                      MAXIMUM_ITERATIONS, options->minimum, options->maximum, (long long)options->iterations,
                      options->smoothing, options->divergence);
}

/* --- training --- */

static sgm_status next_block(sgm_trainer *trainer, const sgm_block **block)
{
    SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    if (*block == NULL)
        SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    return *block != NULL ? SGM_OK : sgm_fail(SGM_ERROR_STATE, "the training data gives no minibatch");
}

static double rate_at(const sgm_rate_finder_options *options, int64_t iteration)
{
    double part = (double)iteration / (double)(options->iterations - 1);
    return options->minimum * pow(options->maximum / options->minimum, part);
}

/* A mean whose weights fade, without the pull of its first value (as in Adam). */
static void add_point(const sgm_rate_finder_options *options, sgm_rate_curve *curve, double rate, double loss,
                      double *mean)
{
    *mean = options->smoothing * *mean + (1 - options->smoothing) * loss;
    double smoothed = *mean / (1 - pow(options->smoothing, (double)(curve->count + 1)));
    curve->points[curve->count++] = (sgm_rate_point){rate, loss, smoothed};
}

static sgm_status raise_rate(sgm_trainer *trainer, const sgm_rate_finder_options *options,
                             sgm_rate_curve *curve)
{
    double mean = 0, best = INFINITY;
    for (int64_t i = 0; i < options->iterations && !curve->diverged; i++) {
        const sgm_block *block;
        double rate = rate_at(options, i);
        SGM_TRY(next_block(trainer, &block));
        sgm_status status = sgm__trainer_step(trainer, block, rate);
        if (status != SGM_OK && status != SGM_ERROR_NUMERIC)
            return sgm__iterator_fail(trainer->data.training, status);
        if (status == SGM_ERROR_NUMERIC || !isfinite(trainer->progress.newest_loss)) {
            curve->diverged = true;
            break;
        }
        add_point(options, curve, rate, trainer->progress.newest_loss, &mean);
        double smoothed = curve->points[curve->count - 1].smoothed;
        best = smoothed < best ? smoothed : best;
        curve->diverged = i > 0 && smoothed > options->divergence * best;
    }
    return curve->count > 0
               ? SGM_OK
               : sgm_fail(SGM_ERROR_NUMERIC, "the loss is no number at the lowest learning rate, %g, already",
                          options->minimum);
}

/* --- what the curve says --- */

/* Least squares, over the logarithm of the rate. */
static double slope_at(const sgm_rate_curve *curve, size_t at)
{
    size_t first = at > SLOPE_REACH ? at - SLOPE_REACH : 0;
    size_t last = at + SLOPE_REACH < curve->count ? at + SLOPE_REACH : curve->count - 1;
    double count = (double)(last - first + 1), x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = first; i <= last; i++) {
        x += log(curve->points[i].rate) / count;
        y += curve->points[i].smoothed / count;
    }
    for (size_t i = first; i <= last; i++) {
        double dx = log(curve->points[i].rate) - x;
        xx += dx * dx;
        xy += dx * (curve->points[i].smoothed - y);
    }
    return xx > 0 ? xy / xx : 0;
}

/* How far the losses of minibatches lie apart that have nearly the same rate: from the differences of
 * neighbours, in which a slope does not count; up to the lowest point, but at least of a quarter. */
static double noise_of(const sgm_rate_curve *curve, size_t lowest)
{
    size_t last = lowest > curve->count / 4 ? lowest : curve->count / 4;
    double squares = 0;
    for (size_t i = 1; i <= last; i++) {
        double difference = curve->points[i].loss - curve->points[i - 1].loss;
        squares += difference * difference / 2;
    }
    return last > 0 ? sqrt(squares / (double)last) : 0;
}

/* From the mean of the first tenth to the lowest point behind it: before, the smoothed loss is one of few. */
static double fall_of(const sgm_rate_curve *curve)
{
    size_t first = curve->count / 10;
    double begin = first > 0 ? 0 : curve->points[0].loss, lowest = INFINITY;
    for (size_t i = 0; i < first; i++)
        begin += curve->points[i].loss / (double)first;
    for (size_t i = first; i < curve->count; i++)
        lowest = fmin(lowest, curve->points[i].smoothed);
    return begin - lowest;
}

static void propose(sgm_rate_curve *curve)
{
    size_t lowest = 0;
    double steepest = 0;
    for (size_t i = 1; i < curve->count; i++)
        if (curve->points[i].smoothed < curve->points[lowest].smoothed)
            lowest = i;
    curve->lowest = curve->points[lowest].rate;
    curve->proposed = NAN;
    curve->fall = fall_of(curve);
    curve->noise = noise_of(curve, lowest);
    if (curve->fall <= CLEAR_FALL * curve->noise || curve->fall <= MINIMUM_FALL * fabs(curve->points[0].loss))
        return;
    for (size_t i = 0; i <= lowest; i++) {
        double slope = slope_at(curve, i);
        if (slope < steepest) {
            steepest = slope;
            curve->proposed = curve->points[i].rate;
        }
    }
}

/* --- together --- */

static sgm_status check_parts(const sgm_trainer *trainer)
{
    if (trainer->data.training == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no data yet: call sgm_trainer_set_data");
    if (trainer->learner.optimiser == NULL)
        return sgm_fail(SGM_ERROR_STATE, "has no optimiser yet: call sgm_trainer_set_optimiser");
    if (trainer->learner.averages_in)
        return sgm_fail(SGM_ERROR_STATE, "the averages are in place of the parameters: put them back first");
    if (trainer->sharing.strategy != NULL)
        return sgm_fail(SGM_ERROR_UNSUPPORTED,
                        "a learning rate is found with one worker: take the others away for it");
    return SGM_OK;
}

/* Whatever comes of it, the trainer is put back. */
static sgm_status explore(sgm_trainer *trainer, const sgm_rate_finder_options *options, sgm_rate_curve *curve)
{
    char message[512] = "";
    SGM_TRY(check_parts(trainer));
    SGM_TRY(sgm_trainer_prepare(trainer));
    sgm__snapshot *before = sgm__snapshot_take(trainer);
    if (before == NULL)
        return sgm_last_status();
    sgm_status status = raise_rate(trainer, options, curve);
    if (status != SGM_OK)
        snprintf(message, sizeof message, "%s", sgm_last_error());
    sgm_status restored = sgm__snapshot_restore(trainer, before);
    sgm__snapshot_free(before);
    return status != SGM_OK ? sgm_fail(status, "%s", message) : restored;
}

sgm_rate_curve *sgm_trainer_find_learning_rate_with(sgm_trainer *trainer,
                                                    const sgm_rate_finder_options *given)
{
    sgm_rate_finder_options options;
    if (sgm_trainer_status(trainer) != SGM_OK || read_options(given, &options) != SGM_OK ||
        sgm__trainer_reserve(trainer, false) != SGM_OK)
        return NULL;
    sgm_rate_curve *curve = sgm__calloc(1, sizeof *curve);
    if (curve != NULL)
        curve->points = sgm__calloc((size_t)options.iterations, sizeof(sgm_rate_point));
    sgm_status status = curve != NULL && curve->points != NULL ? SGM_OK : SGM_ERROR_MEMORY;
    sgm__trainer_lock(trainer);
    if (status == SGM_OK)
        status = explore(trainer, &options, curve);
    sgm__trainer_unlock(trainer);
    sgm__control_end(&trainer->control);
    if (status == SGM_OK) {
        propose(curve);
        return curve;
    }
    sgm__fail_within("learning rate finder, trainer '%s'", trainer->name);
    sgm_rate_curve_free(curve);
    return NULL;
}

/* --- showing it --- */

sgm_status sgm_rate_curve_save(const sgm_rate_curve *curve, const char *path)
{
    if (curve == NULL || path == NULL)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sgm_rate_curve_save: expected a curve and a path, got NULL");
    sgm__text text = {0};
    for (size_t i = 0; i < curve->count; i++) {
        const sgm_rate_point *point = &curve->points[i];
        sgm__text_append(&text, "{\"iteration\":%zu,\"rate\":%.9g,\"loss\":%.9g,\"smoothed\":%.9g}\n", i + 1,
                         point->rate, point->loss, point->smoothed);
    }
    sgm_status status = text.failed ? SGM_ERROR_MEMORY : sgm__file_write_atomic(path, text.data, text.length);
    sgm__text_free(&text);
    return status;
}

/* The last fifth may be the divergence, which would squeeze the rest: what is above the others is cut off. */
static void find_bounds(const sgm_rate_curve *curve, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < curve->count; i++) {
        double value = curve->points[i].smoothed;
        *low = value < *low ? value : *low;
        if (i * 5 <= curve->count * 4)
            *high = value > *high ? value : *high;
    }
    *high += (*high - *low) * 0.1;
    if (*high <= *low)
        *high = *low + 1;
}

char *sgm_rate_curve_text(const sgm_rate_curve *curve, int32_t columns, int32_t rows)
{
    if (curve == NULL || curve->count == 0 || columns < 20 || columns > 200 || rows < 5 || rows > 100) {
        sgm_fail(SGM_ERROR_ARGUMENT,
                 "sgm_rate_curve_text: expected a curve, 20 to 200 columns and 5 to 100 rows; got %d and %d",
                 (int)columns, (int)rows);
        return NULL;
    }
    char grid[100][201];
    double low, high;
    find_bounds(curve, &low, &high);
    double first = log(curve->points[0].rate), last = log(curve->points[curve->count - 1].rate);
    double width = last > first ? last - first : 1;
    for (int32_t row = 0; row < rows; row++) {
        memset(grid[row], ' ', (size_t)columns);
        grid[row][columns] = '\0';
    }
    for (size_t i = 0; i < curve->count; i++) {
        const sgm_rate_point *point = &curve->points[i];
        double height = (point->smoothed - low) / (high - low);
        int32_t row = rows - 1 - (int32_t)(height * (rows - 1) + 0.5);
        int32_t column = (int32_t)((log(point->rate) - first) / width * (columns - 1) + 0.5);
        grid[row < 0 ? 0 : row][column] = point->rate == curve->proposed ? 'O' : '*';
    }
    sgm__text text = {0};
    for (int32_t row = 0; row < rows; row++)
        sgm__text_append(&text, "%10.4g |%s\n", high - (high - low) * row / (rows - 1), grid[row]);
    sgm__text_append(&text, "%10s +", "loss");
    for (int32_t i = 0; i < columns; i++)
        sgm__text_append(&text, "-");
    sgm__text_append(&text, "\n%12s%-*.3g%.3g\n", "", (int)columns - 6, curve->points[0].rate,
                     curve->points[curve->count - 1].rate);
    return sgm__text_take(&text);
}
