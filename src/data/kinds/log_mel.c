/* Log-mel spectrograms: how loud a sound is in each band of frequencies, from frame to frame; see sound.h.
 *
 * This is torchaudio.transforms.MelSpectrogram(rate, n_fft, window, hop, n_mels=mels, pad_mode="constant"),
 * and librosa.feature.melspectrogram(..., htk=True, norm=None), in decibels of power without a limit
 * (top_db=None):
 *
 * - a frame is centred at each hop, with zeros around the sound, under a periodic Hann window (of `window`
 *   samples in the middle of n_fft, the next power of two);
 * - its power spectrum is the square of the absolute values of its Fourier transform;
 * - the bands are triangles with their corners evenly spaced in mels, 2595 log10(1 + f / 700) (HTK), from 0
 * to half of the rate, with height 1;
 * - a number is 10 log10(max(power, 1e-10)). */
#include "data/kinds/sound.h"

#include <complex.h>
#include <math.h>

#define MINIMUM_POWER 1e-10
#define PI 3.14159265358979323846

/* What is computed once for a sound. */
typedef struct analysis {
    int32_t size;           /* of the transform */
    double *window;         /* size */
    double complex *turns;  /* size / 2: exp(-2 pi i k / size) */
    double complex *values; /* size: a frame, then its spectrum */
    double *power;          /* size / 2 + 1 */
    double *corners;        /* mels + 2, in numbers of frequencies */
} analysis;

static int32_t size_of(const sgm__sound_form *form)
{
    int32_t size = 2;
    while (size < form->window)
        size *= 2;
    return size;
}

int32_t sgm__log_mel_frames(const sgm__sound_form *form)
{
    return 1 + form->samples / form->hop;
}

/* --- bands --- */

/* Corner number `index` of 0 to mels + 1, in Hz. */
static double corner_of(const sgm__sound_form *form, int32_t index)
{
    double top = 2595 * log10(1 + form->rate / 2.0 / 700);
    return 700 * (pow(10, top * index / (form->mels + 1) / 2595) - 1);
}

sgm_status sgm__log_mel_check(const sgm__sound_form *form)
{
    double step = (double)form->rate / size_of(form); /* from frequency to frequency */
    for (int32_t band = 0; band < form->mels; band++)
        if (floor(corner_of(form, band) / step) + 1 >= corner_of(form, band + 2) / step)
            return sgm_fail(
                SGM_ERROR_ARGUMENT,
                "%d mels are too many for a window of %d samples at %d Hz: band %d lies between two "
                "frequencies; take fewer, or a longer window",
                (int)form->mels, (int)form->window, (int)form->rate, (int)band);
    return SGM_OK;
}

/* The power in one band: its triangle over the frequencies. */
static double band_power(const analysis *a, int32_t band)
{
    double left = a->corners[band], top = a->corners[band + 1], right = a->corners[band + 2], sum = 0;
    int32_t last = a->size / 2;
    for (int32_t k = (int32_t)floor(left) + 1; k <= last && k < right; k++)
        sum += a->power[k] * (k < top ? (k - left) / (top - left) : (right - k) / (right - top));
    return sum;
}

/* --- spectrum --- */

/* Puts values into the order of their reversed bits. */
static void reverse_bits(double complex *values, int32_t size)
{
    for (int32_t i = 1, j = 0; i < size; i++) {
        int32_t bit = size / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double complex value = values[i];
            values[i] = values[j];
            values[j] = value;
        }
    }
}

/* The Fourier transform in place (Cooley and Tukey, 1965). */
static void transform(const analysis *a)
{
    reverse_bits(a->values, a->size);
    for (int32_t half = 1; half < a->size; half *= 2)
        for (int32_t first = 0; first < a->size; first += 2 * half)
            for (int32_t k = 0; k < half; k++) {
                double complex *low = &a->values[first + k], *high = low + half;
                double complex turned = *high * a->turns[k * (a->size / 2 / half)];
                *high = *low - turned;
                *low += turned;
            }
}

/* The power spectrum of the frame around sample `middle`. */
static void measure(const analysis *a, const float *samples, int64_t count, int64_t middle)
{
    for (int32_t i = 0; i < a->size; i++) {
        int64_t at = middle - a->size / 2 + i;
        a->values[i] = at >= 0 && at < count ? (double)samples[at] * a->window[i] : 0;
    }
    transform(a);
    for (int32_t k = 0; k <= a->size / 2; k++)
        a->power[k] = creal(a->values[k]) * creal(a->values[k]) + cimag(a->values[k]) * cimag(a->values[k]);
}

/* --- both --- */

static void close_analysis(analysis *a)
{
    sgm__free(a->window);
    sgm__free(a->turns);
    sgm__free(a->values);
    sgm__free(a->power);
    sgm__free(a->corners);
}

static sgm_status open_analysis(analysis *a, const sgm__sound_form *form)
{
    size_t size = (size_t)size_of(form);
    *a = (analysis){.size = (int32_t)size,
                    .window = sgm__calloc(size, sizeof *a->window),
                    .turns = sgm__calloc(size / 2, sizeof *a->turns),
                    .values = sgm__calloc(size, sizeof *a->values),
                    .power = sgm__calloc(size / 2 + 1, sizeof *a->power),
                    .corners = sgm__calloc((size_t)form->mels + 2, sizeof *a->corners)};
    if (a->window == NULL || a->turns == NULL || a->values == NULL || a->power == NULL ||
        a->corners == NULL) {
        close_analysis(a);
        return SGM_ERROR_MEMORY;
    }
    double *window = a->window + ((int32_t)size - form->window) / 2;
    for (int32_t i = 0; i < form->window; i++)
        window[i] = 0.5 - 0.5 * cos(2 * PI * i / form->window);
    for (size_t k = 0; k < size / 2; k++)
        a->turns[k] = cexp(-2 * PI * (double)k / (double)size * I);
    for (int32_t i = 0; i < form->mels + 2; i++)
        a->corners[i] = corner_of(form, i) * (double)size / form->rate;
    return SGM_OK;
}

sgm_status sgm__log_mel(const sgm__sound_form *form, const float *samples, float *decibels)
{
    analysis a;
    int32_t frames = sgm__log_mel_frames(form);
    SGM_TRY(open_analysis(&a, form));
    for (int32_t frame = 0; frame < frames; frame++) {
        measure(&a, samples, form->samples, (int64_t)frame * form->hop);
        for (int32_t band = 0; band < form->mels; band++)
            decibels[(size_t)band * (size_t)frames + (size_t)frame] =
                (float)(10 * log10(fmax(band_power(&a, band), MINIMUM_POWER)));
    }
    close_analysis(&a);
    return SGM_OK;
}
