/* Brings samples to another rate by a windowed sinc; see sound.h.
 *
 * This is torchaudio.functional.resample with its defaults (Smith, Digital Audio Resampling, 2002): the
 * sample at time t is the sum over samples x_k at times t_k, as far as |u| < 6 where u = (t_k - t) b,
 *
 *     x_k sin(pi u) / (pi u) cos(pi u / 12)^2 b / from,   b = 0.99 min(from, to)
 *
 * so that frequencies above half of the lower rate are taken away. Samples outside are 0. */
#include "data/kinds/sound.h"

#include <math.h>

#define WIDTH 6 /* zero crossings on each side */
#define ROLL_OFF 0.99
#define PI 3.14159265358979323846

static double base_of(int32_t from, int32_t to)
{
    return ROLL_OFF * (from < to ? from : to);
}

int64_t sgm__resample_needs(int32_t from, int32_t to, int64_t count)
{
    double reach = WIDTH / base_of(from, to) * from;
    return (int64_t)ceil((double)count / to * from + reach) + 1;
}

/* The sum for one time, in seconds. */
static double sample_at(const sgm__wave *wave, double time, double base)
{
    double reach = WIDTH / base, sum = 0;
    int64_t first = (int64_t)ceil((time - reach) * wave->rate),
            last = (int64_t)floor((time + reach) * wave->rate);
    first = first > 0 ? first : 0;
    last = last < wave->count ? last : wave->count - 1;
    for (int64_t k = first; k <= last; k++) {
        double u = ((double)k / wave->rate - time) * base, window = cos(PI * u / (2 * WIDTH));
        double sinc = u == 0 ? 1 : sin(PI * u) / (PI * u);
        sum += (double)wave->samples[k] * sinc * window * window;
    }
    return sum * base / wave->rate;
}

sgm_status sgm__wave_resample(sgm__wave *wave, int32_t rate, int64_t most)
{
    if (wave->rate == rate)
        return SGM_OK;
    double base = base_of(wave->rate, rate);
    int64_t count = (int64_t)ceil((double)wave->count * rate / wave->rate);
    count = count < most ? count : most;
    float *samples = sgm__calloc((size_t)count, sizeof *samples);
    if (samples == NULL)
        return SGM_ERROR_MEMORY;
    for (int64_t i = 0; i < count; i++)
        samples[i] = (float)sample_at(wave, (double)i / rate, base);
    sgm__free(wave->samples);
    *wave = (sgm__wave){.samples = samples, .count = count, .rate = rate};
    return SGM_OK;
}
