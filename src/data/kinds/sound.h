/* What is fitted to sounds, and what makes numbers of one. Internal to src/data.
 *
 * sound_file.c decodes a file, sound_resample.c brings it to another rate, log_mel.c makes a spectrogram of
 * it, sound.c is the kind (kind.h) that does all of that by a form. */
#ifndef SGM_DATA_KINDS_SOUND_H
#define SGM_DATA_KINDS_SOUND_H

#include "data/kinds/kind.h"

/* Sounds are brought to one rate and one length, and their numbers to mean 0 and deviation 1. */
typedef struct sgm__sound_form {
    int32_t rate;    /* samples a second */
    int32_t samples; /* of a sound: what is longer is cut, what is shorter is followed by silence */
    /* Of a log-mel spectrogram: bands, samples of a frame, samples from frame to frame; 0 mels: the inputs
     * are the samples themselves. */
    int32_t mels, window, hop;
    bool is_sequence; /* of a spectrogram: inputs are (frames, mels), and how many frames count is told */
    double mean, deviation;
} sgm__sound_form;

/* --- sound.c --- */
/* The numbers of a file before mean and deviation are taken out of them, (mels, frames) or samples. *count
 * becomes the number of samples before the silence that fills it up. */
sgm_status sgm__sound_read(const sgm__sound_form *form, const sgm_file *file, float *numbers, int64_t *count);

/* --- sound_file.c --- */
/* One channel, the mean of all of the file, with values of about -1 to 1; owned. */
typedef struct sgm__wave {
    float *samples;
    int64_t count;
    int32_t rate;
} sgm__wave;
void sgm__wave_free(sgm__wave *wave);

/* A file that is open. */
typedef struct sgm__sound_file sgm__sound_file;
/* WAV or FLAC; NULL and an error that names the file, or the package that is missing. */
sgm__sound_file *sgm__sound_open(const sgm_file *file);
void sgm__sound_close(sgm__sound_file *sound);
int32_t sgm__sound_rate(const sgm__sound_file *sound);
int64_t sgm__sound_count(const sgm__sound_file *sound); /* samples of a channel, as the file says */
/* Reads the first samples, `most` of them at most. */
sgm_status sgm__sound_decode(sgm__sound_file *sound, int64_t most, sgm__wave *wave);

/* --- sound_resample.c --- */
/* Replaces the samples by those of another rate, `most` of them at most. */
sgm_status sgm__wave_resample(sgm__wave *wave, int32_t rate, int64_t most);
/* How many samples of one rate decide the first `count` of another one. */
int64_t sgm__resample_needs(int32_t from, int32_t to, int64_t count);

/* --- log_mel.c --- */
/* The frames of a form's sounds. */
int32_t sgm__log_mel_frames(const sgm__sound_form *form);
/* Each band must have a frequency of the spectrum. */
sgm_status sgm__log_mel_check(const sgm__sound_form *form);
/* Writes (mels, frames) decibels of the form's samples. */
sgm_status sgm__log_mel(const sgm__sound_form *form, const float *samples, float *decibels);

#endif
