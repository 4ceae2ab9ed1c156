/* Fits a pipeline to sounds: their rate and length, and mean and deviation of their numbers. */
#include "data/files/files.h"
#include "data/kinds/sound.h"
#include <sigma/sound.h>

#include <math.h>

#define DEFAULT_MELS 64
#define DEFAULT_WINDOW 0.025 /* seconds */
#define DEFAULT_HOP 0.010
#define LONGEST 60 /* seconds, unless they are said */

/* The form, and of all numbers their count, mean and sum of squared distances from it. */
typedef struct learner {
    sgm__sound_form form;
    float *numbers; /* of one sound */
    size_t count;   /* of them */
    double total, mean, squares;
} learner;

/* Welford's method (1962), one number after the other, so that nothing is lost where the mean is large. */
static sgm_status learn(void *pointer, int32_t thread, const sgm_file *file)
{
    (void)thread;
    learner *self = pointer;
    int64_t samples;
    SGM_TRY(sgm__sound_read(&self->form, file, self->numbers, &samples));
    for (size_t i = 0; i < self->count; i++) {
        double number = (double)self->numbers[i], before = number - self->mean;
        self->total++;
        self->mean += before / self->total;
        self->squares += before * (number - self->mean);
    }
    return SGM_OK;
}

/* Numbers that do not vary have the deviation 1. */
static void set_normalisation(learner *self)
{
    double variance = self->squares / self->total;
    self->form.mean = self->mean;
    self->form.deviation = variance > 1e-12 ? sqrt(variance) : 1;
}

static sgm_status measure(const sgm_files *files, int64_t index, sgm__file_size *size)
{
    return files->kind->measure(sgm_files_path(files, index), size);
}

/* Without a rate all sounds must have one, those of all parts, since one network hears them all. */
static sgm_status find_rate(const sgm_files *files, sgm__sound_form *form)
{
    sgm__file_size first, size;
    SGM_TRY(measure(files, 0, &first));
    for (int64_t i = 1; i < sgm_files_count(files); i++) {
        SGM_TRY(measure(files, i, &size));
        if (size.numbers[1] != first.numbers[1])
            return sgm_fail(
                SGM_ERROR_SHAPE,
                "%s has %.0f samples a second, but %s has %.0f; a network takes sounds of one rate: say "
                "to which all are brought, such as rate: %.0f",
                sgm_files_path(files, i), size.numbers[1], sgm_files_path(files, 0), first.numbers[1],
                fmin(size.numbers[1], first.numbers[1]));
    }
    form->rate = (int32_t)first.numbers[1];
    return SGM_OK;
}

/* The length of the longest. */
static sgm_status find_seconds(const sgm_files *files, double *seconds)
{
    *seconds = 0;
    for (int64_t i = 0; i < sgm_files_count(files); i++) {
        sgm__file_size size;
        SGM_TRY(measure(files, i, &size));
        if (size.numbers[0] > LONGEST)
            return sgm_fail(
                SGM_ERROR_SHAPE,
                "%s lasts %.3g s, and shorter sounds would be followed by silence up to that: say to "
                "which length all are brought, such as seconds: 2",
                sgm_files_path(files, i), size.numbers[0]);
        *seconds = fmax(*seconds, size.numbers[0]);
    }
    return SGM_OK;
}

static sgm_status check_options(const sgm_sound_options *options)
{
    if (options->rate < 0 || !(options->seconds >= 0 && options->seconds <= 86400) || options->mels < 0 ||
        options->window < 0 || options->hop < 0)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "rate, seconds (a day at most), mels, window and hop above 0 were expected, or 0 for what "
            "is usual; %d, %g, %d, %d and %d came",
            (int)options->rate, options->seconds, (int)options->mels, (int)options->window,
            (int)options->hop);
    if ((unsigned)options->features > SGM_SOUND_WAVEFORM)
        return sgm_fail(SGM_ERROR_ARGUMENT, "features from 0 to %d were expected, %d came",
                        SGM_SOUND_WAVEFORM, (int)options->features);
    if (options->features == SGM_SOUND_WAVEFORM &&
        (options->mels != 0 || options->window != 0 || options->hop != 0))
        return sgm_fail(SGM_ERROR_ARGUMENT, "mels, window and hop are for log_mel, not for a waveform");
    return SGM_OK;
}

/* 0 becomes a share of a second. */
static int32_t samples_of(int32_t given, double seconds, int32_t rate)
{
    return given != 0 ? given : (int32_t)fmax(round(seconds * rate), 1);
}

/* All of a form but what is learnt of the sounds' numbers. */
static sgm_status begin(const sgm_files *files, const sgm_sound_options *options, sgm__sound_form *form)
{
    double seconds = options->seconds;
    *form =
        (sgm__sound_form){.rate = options->rate, .is_sequence = files->transcripts != NULL, .deviation = 1};
    if (form->rate == 0)
        SGM_TRY(find_rate(files, form));
    if (seconds == 0)
        SGM_TRY(find_seconds(files, &seconds));
    form->samples = (int32_t)fmin(ceil(seconds * form->rate - 1e-6), INT32_MAX);
    if (options->features == SGM_SOUND_LOG_MEL) {
        form->mels = options->mels != 0 ? options->mels : DEFAULT_MELS;
        form->window = samples_of(options->window, DEFAULT_WINDOW, form->rate);
        form->hop = samples_of(options->hop, DEFAULT_HOP, form->rate);
    }
    return sgm__sounds.check(form);
}

static sgm_status fit(learner *self, const sgm_files *files, const sgm_sound_options *options)
{
    const sgm__files_part part = {options->split, options->part, options->other_parts};
    SGM_TRY(check_options(options));
    SGM_TRY(sgm__files_check_fit(files, &sgm__sounds, &part, "sgm_sound_pipeline"));
    SGM_TRY(begin(files, options, &self->form));
    sgm_shape shape = sgm__sounds.shape(&self->form);
    self->count = (size_t)sgm_shape_elements(&shape);
    self->numbers = sgm__calloc(self->count, sizeof *self->numbers);
    if (self->numbers == NULL)
        return SGM_ERROR_MEMORY;
    /* On one thread: the sums are rounded, and depend on their order. */
    SGM_TRY(sgm__files_learn(files, &part, 1, learn, self));
    set_normalisation(self);
    return SGM_OK;
}

sgm_pipeline *sgm_sound_pipeline_with(const sgm_files *files, const sgm_sound_options *given)
{
    sgm_sound_options options;
    learner self = {0};
    if (sgm__options_read(&options, sizeof options, given, "sgm_sound_pipeline") != SGM_OK)
        return NULL;
    sgm_status status = fit(&self, files, &options);
    sgm__free(self.numbers);
    return status == SGM_OK ? sgm__files_pipeline(files, &self.form) : NULL;
}
