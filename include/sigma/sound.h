/* Sounds: WAV and FLAC files as inputs of a network. Folders of them, examples and single files are those of
 * sigma/files.h. libsndfile (Debian: libsndfile1) decodes them; it is loaded when the first sound is read.
 *
 *     sgm_files *tones = sgm_files_open("tones", "sounds");
 *     sgm_pipeline *pipeline = sgm_sound_pipeline(tones, .rate = 16000, .seconds = 1);
 *
 * Channels are mixed to one, their mean, which is brought to one rate by a windowed sinc (that of
 * torchaudio.functional.resample) and to one length: cut, or followed by silence. Inputs are a log-mel
 * spectrogram in decibels, (1, mels, frames), or the samples, (1, samples). Both are brought to mean 0 and
 * standard deviation 1 of all numbers of the sounds that the pipeline was fitted to: (x - mean) / deviation.
 *
 * A frame is centred at each hop, with zeros around the sound, under a periodic Hann window; its power
 * spectrum, of the next power of two as size, is added up in bands that are triangles between corners evenly
 * spaced in mels, 2595 log10(1 + Hz / 700) (HTK's), from 0 to half of the rate, and becomes
 * 10 log10(max(power, 1e-10)). There are 1 + samples / hop frames. This is MelSpectrogram of torchaudio with
 * pad_mode="constant", and melspectrogram of librosa with htk=True and norm=None. */
#ifndef SIGMA_SOUND_H
#define SIGMA_SOUND_H

#include <sigma/files.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What inputs are. */
typedef enum sgm_sound_features {
    SGM_SOUND_LOG_MEL, /* a spectrogram */
    SGM_SOUND_WAVEFORM /* the samples */
} sgm_sound_features;

typedef struct sgm_sound_options {
    size_t struct_size;
    int32_t rate;   /* samples a second; default: of all sounds, which must have one rate then */
    double seconds; /* of a sound; default: of the longest, which must not be above a minute then */
    sgm_sound_features features; /* a spectrogram or the samples */
    int32_t mels;                /* bands of a spectrogram; default: 64 */
    int32_t window;              /* samples of a frame; default: those of 25 ms */
    int32_t hop;                 /* samples from frame to frame; default: those of 10 ms */
    /* Mean and deviation are of one part of the sounds, or with `other_parts` of all others, so that a
     * network that is measured on the rest has learnt nothing of it. NULL: of all. */
    const sgm_split *split;
    int32_t part;     /* of the split, from 0 */
    bool other_parts; /* all but that part */
} SGM_BY_NAME sgm_sound_options;
/* Fits a pipeline, for which all sounds of the part are read once. The caller frees it; it does not need the
 * list any more. At least two classes are expected. */
#define sgm_sound_pipeline(...) SGM_WITH_OPTIONS(sgm_sound_pipeline_with, sgm_sound_options, __VA_ARGS__)
SGM_API sgm_pipeline *sgm_sound_pipeline_with(const sgm_files *files, const sgm_sound_options *options);

#ifdef __cplusplus
}
#endif
#endif
