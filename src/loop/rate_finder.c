/* The learning rate finder: a training whose learning rate rises from minibatch to minibatch, and the rate
 * that the curve of losses proposes (Smith, Cyclical learning rates for training neural networks, 2015).
 *
 * sgm_trainer_find_learning_rate trains for `iterations` steps at rates minimum (maximum / minimum)^(i /
 * (iterations - 1)), and sets the trainer back to where it was (train/snapshot.h), whatever comes of it. The
 * proposed rate is that at which the smoothed loss falls most steeply over the logarithm of the rate, before
 * its lowest point; NAN if the loss does not fall clearly. It is no hook and changes no setting: the caller
 * decides what to do with the curve, which sgm_rate_curve_save and sgm_rate_curve_text show.
 *
 * The trainer counts as running meanwhile, so that no run can begin. */
#include "data/dataset.h"
#include "train/snapshot.h"
#include "train/train.h"
#include "trainer/trainer_lock.h"
#include "trainer/trainer_struct.h"

#include <math.h>
#include <sigma/hooks.h>
#include <stdio.h>

#define MAXIMUM_ITERATIONS 100000
#define SLOPE_REACH 3     /* points on each side of a point, from which its slope is computed */
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

/* In an options struct 0 means the default, so that no smoothing is said by a negative number. From 10
 * iterations on there are enough points for a slope. */
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

/* The next minibatch; behind the last one of an epoch comes the first of the next. */
static sgm_status next_minibatch(sgm_trainer *trainer, const sgm_block **block)
{
    SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    if (*block == NULL) {
        SGM_TRY(sgm__trainer_forget_memories(trainer));
        SGM_TRY(sgm_iterator_next(trainer->data.training, block));
    }
    return *block != NULL ? SGM_OK : sgm_fail(SGM_ERROR_STATE, "the training data gives no minibatch");
}

/* The rate of iteration i: equal steps of its logarithm, from minimum to maximum, both included. */
static double rate_at(const sgm_rate_finder_options *options, int64_t iteration)
{
    double part = (double)iteration / (double)(options->iterations - 1);
    return options->minimum * pow(options->maximum / options->minimum, part);
}

/* Adds a loss to the curve. The smoothed loss is an exponential moving average m = s m + (1 - s) loss,
 * divided by 1 - s^n, which removes the pull of its start at 0 (the bias correction of Adam, Kingma and Ba,
 * 2014). */
static void add_point(const sgm_rate_finder_options *options, sgm_rate_curve *curve, double rate, double loss,
                      double *mean)
{
    *mean = options->smoothing * *mean + (1 - options->smoothing) * loss;
    double smoothed = *mean / (1 - pow(options->smoothing, (double)(curve->count + 1)));
    curve->points[curve->count++] = (sgm_rate_point){rate, loss, smoothed};
}

/* Trains at rising rates until the smoothed loss is `divergence` times the smallest one so far, or a value is
 * not finite; such a last step gives no point. Fails if not even the first step gives a loss. */
static sgm_status raise_rate(sgm_trainer *trainer, const sgm_rate_finder_options *options,
                             sgm_rate_curve *curve)
{
    double mean = 0, best = INFINITY;
    for (int64_t i = 0; i < options->iterations && !curve->diverged; i++) {
        const sgm_block *block;
        double rate = rate_at(options, i);
        SGM_TRY(next_minibatch(trainer, &block));
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

/* The slope of the smoothed loss over the logarithm of the rate at a point: least squares through the points
 * within SLOPE_REACH. */
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

/* The standard deviation of losses of minibatches at nearly the same rate. It is estimated from differences
 * of neighbouring losses, whose variance is twice that of a loss and to which a slope adds little. Points
 * behind the lowest one, where the loss diverges, are left out, but at least a quarter of the curve counts.
 */
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

/* How far the loss falls: from the mean loss of the first tenth of the points to the lowest smoothed loss
 * behind them. The smoothed loss of the first tenth itself is a mean of too few losses to be compared with.
 */
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

/* Fills in what the curve says: the rate of the lowest smoothed loss, fall and noise, and the proposed rate
 * if the fall is clear of the noise. The first points of a curve without a trend also have some steepest
 * slope, hence the test. The first tenth is not proposed from: a first loss that happens to be high makes the
 * smoothed loss fall most steeply there, at rates that change nothing. */
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
    for (size_t i = curve->count / 10; i <= lowest; i++) {
        double slope = slope_at(curve, i);
        if (slope < steepest) {
            steepest = slope;
            curve->proposed = curve->points[i].rate;
        }
    }
}

/* --- together --- */

/* With the averages in place of the parameters, the steps would train the averages. */
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

/* Raises the rate and sets the trainer back, also after a failure, whose message is kept meanwhile. */
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

/* The range of losses of the plot. The last fifth of the points may be the divergence, which would squeeze
 * the rest: it does not count for the upper bound, and points above that are drawn at the upper edge. */
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

/* Draws the smoothed losses over the logarithm of the rate, one character for each point: "O" is the proposed
 * rate. The caller frees the text. */
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
