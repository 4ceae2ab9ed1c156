/* Sounds as a kind of files (kind.h): WAV and FLAC, of one rate and one length, as samples or as a log-mel
 * spectrogram. */
#include "data/kinds/sound.h"

#include <math.h>

#define LARGEST_RATE 768000
#define MAXIMUM_MELS 1024
#define MAXIMUM_NUMBERS (1 << 27) /* of a sound */
/* The network that is proposed halves spectrograms until they have fewer bands than this, */
#define MINIMUM_BANDS 8
/* and takes a quarter of the samples until there are fewer than this. */
#define MINIMUM_SAMPLES 64
#define MAXIMUM_CHANNELS 64

static bool is_log_mel(const sgm__sound_form *form)
{
    return form->mels > 0;
}

/* The length of the last axis. */
static int32_t steps_of(const sgm__sound_form *form)
{
    return is_log_mel(form) ? sgm__log_mel_frames(form) : form->samples;
}

static sgm_status check_spectrogram(const sgm__sound_form *form)
{
    if (form->mels > MAXIMUM_MELS || form->window < 2 || form->window > form->rate || form->hop < 1 ||
        form->hop > form->window || (int64_t)steps_of(form) * form->mels > MAXIMUM_NUMBERS)
        return sgm_fail(
            SGM_ERROR_ARGUMENT,
            "1 to %d mels, a window of 2 samples to one second and a hop of 1 sample to the window "
            "were expected, %d, %d and %d came, for %d samples at %d Hz",
            MAXIMUM_MELS, (int)form->mels, (int)form->window, (int)form->hop, (int)form->samples,
            (int)form->rate);
    return sgm__log_mel_check(form);
}

static sgm_status check(const void *pointer)
{
    const sgm__sound_form *form = pointer;
    if (form->rate < 1 || form->rate > LARGEST_RATE || form->samples < 1 || form->samples > MAXIMUM_NUMBERS)
        return sgm_fail(SGM_ERROR_ARGUMENT,
                        "sounds of 1 to %d samples, of 1 to %d in a second, were expected, %d of %d came",
                        MAXIMUM_NUMBERS, LARGEST_RATE, (int)form->samples, (int)form->rate);
    if (is_log_mel(form))
        SGM_TRY(check_spectrogram(form));
    else if (form->is_sequence)
        return sgm_fail(SGM_ERROR_ARGUMENT, "sounds with transcripts become a log_mel, not a waveform");
    return isfinite(form->mean) && form->deviation > 0 && isfinite(form->deviation)
               ? SGM_OK
               : sgm_fail(SGM_ERROR_FORMAT, "a mean and a deviation above 0 were expected");
}

static sgm_shape shape(const void *pointer)
{
    const sgm__sound_form *form = pointer;
    if (form->is_sequence)
        return sgm_shape_of(steps_of(form), form->mels);
    return is_log_mel(form) ? sgm_shape_of(1, form->mels, steps_of(form)) : sgm_shape_of(1, form->samples);
}

/* --- reading --- */

/* The samples of a form: decoded as far as they are needed, brought to its rate, cut or followed by silence.
 */
static sgm_status read_wave(const sgm__sound_form *form, const sgm_file *file, float *samples, int64_t *count)
{
    sgm__wave wave;
    sgm__sound_file *sound = sgm__sound_open(file);
    if (sound == NULL)
        return sgm_last_status();
    int64_t needed = sgm__resample_needs(sgm__sound_rate(sound), form->rate, form->samples);
    sgm_status status = sgm__sound_decode(sound, needed, &wave);
    if (status == SGM_OK)
        status = sgm__wave_resample(&wave, form->rate, form->samples);
    if (status == SGM_OK) {
        *count = wave.count < form->samples ? wave.count : form->samples;
        memcpy(samples, wave.samples, (size_t)*count * sizeof *samples);
        memset(samples + *count, 0, (size_t)(form->samples - *count) * sizeof *samples);
    }
    sgm__wave_free(&wave);
    sgm__sound_close(sound);
    return status;
}

sgm_status sgm__sound_read(const sgm__sound_form *form, const sgm_file *file, float *numbers, int64_t *count)
{
    if (!is_log_mel(form))
        return read_wave(form, file, numbers, count);
    float *samples = sgm__alloc((size_t)form->samples * sizeof *samples);
    sgm_status status = samples != NULL ? read_wave(form, file, samples, count) : SGM_ERROR_MEMORY;
    if (status == SGM_OK)
        status = sgm__log_mel(form, samples, numbers);
    sgm__free(samples);
    return status;
}

static float normalised(const sgm__sound_form *form, float number)
{
    return (float)(((double)number - form->mean) / form->deviation);
}

static sgm_status read_sound(const void *pointer, const sgm_file *file, sgm__bytes *memory, float *inputs)
{
    (void)memory;
    const sgm__sound_form *form = pointer;
    sgm_shape of = shape(form);
    int64_t numbers = sgm_shape_elements(&of), samples;
    SGM_TRY(sgm__sound_read(form, file, inputs, &samples));
    for (int64_t i = 0; i < numbers; i++)
        inputs[i] = normalised(form, inputs[i]);
    return SGM_OK;
}

/* Frames that are centred within the sound count. */
static sgm_status read_sequence(const void *pointer, const sgm_file *file, sgm__bytes *memory, float *inputs,
                                float *steps)
{
    const sgm__sound_form *form = pointer;
    size_t frames = (size_t)steps_of(form), mels = (size_t)form->mels;
    int64_t samples = 0;
    memory->length = 0;
    SGM_TRY(sgm__bytes_reserve(memory, frames * mels * sizeof(float)));
    float *bands = (float *)(void *)memory->data;
    SGM_TRY(sgm__sound_read(form, file, bands, &samples));
    for (size_t i = 0; i < frames * mels; i++)
        inputs[i] = normalised(form, bands[i % mels * frames + i / mels]);
    int64_t centred = 1 + samples / form->hop;
    *steps = (float)centred;
    return SGM_OK;
}

static void make_sequence(void *form)
{
    ((sgm__sound_form *)form)->is_sequence = true;
}

/* --- JSON: {"rate":16000,"samples":16000,"mels":64,"window":400,"hop":160,"mean":-40,"deviation":20}, of
 * samples without mels, window and hop --- */

static void put(const void *pointer, json_t *object, bool *failed)
{
    const sgm__sound_form *form = pointer;
    sgm__json_put(object, "rate", json_integer(form->rate), failed);
    sgm__json_put(object, "samples", json_integer(form->samples), failed);
    if (is_log_mel(form)) {
        sgm__json_put(object, "mels", json_integer(form->mels), failed);
        sgm__json_put(object, "window", json_integer(form->window), failed);
        sgm__json_put(object, "hop", json_integer(form->hop), failed);
    }
    sgm__json_put(object, "mean", json_real(form->mean), failed);
    sgm__json_put(object, "deviation", json_real(form->deviation), failed);
}

static sgm_status take(void *pointer, const json_t *object)
{
    sgm__sound_form *form = pointer;
    SGM_TRY(sgm__json_take_size(object, "rate", &form->rate));
    SGM_TRY(sgm__json_take_size(object, "samples", &form->samples));
    if (json_object_get(object, "mels") != NULL) {
        SGM_TRY(sgm__json_take_size(object, "mels", &form->mels));
        SGM_TRY(sgm__json_take_size(object, "window", &form->window));
        SGM_TRY(sgm__json_take_size(object, "hop", &form->hop));
    } else if (json_object_get(object, "window") != NULL || json_object_get(object, "hop") != NULL) {
        return sgm__json_fail_member("mels", "a whole number beside window and hop");
    }
    SGM_TRY(sgm__json_take_number(object, "mean", &form->mean));
    return sgm__json_take_number(object, "deviation", &form->deviation);
}

/* --- the network that is proposed --- */

static int32_t twice(int32_t channels)
{
    return channels < MAXIMUM_CHANNELS ? 2 * channels : MAXIMUM_CHANNELS;
}

/* As for pictures: each convolution sees half of the bands and of the frames. */
static void propose_for_bands(const sgm__sound_form *form, sgm__text *text)
{
    int32_t side = form->mels < steps_of(form) ? form->mels : steps_of(form), channels = 16;
    sgm__text_append(text, "input(1, %d, %d)", (int)form->mels, (int)steps_of(form));
    if (side < MINIMUM_BANDS)
        sgm__text_append(text, " + convolution(%d, 3, relu, same)", (int)channels);
    for (; side >= MINIMUM_BANDS; side /= 2, channels = twice(channels))
        sgm__text_append(text, " + convolution(%d, 3, relu, same) + max_pooling(2)", (int)channels);
    sgm__text_append(text, " + dense(64, relu)");
}

/* Convolutions of nine samples, of whose results the largest of four is kept. */
static void propose_for_samples(const sgm__sound_form *form, sgm__text *text)
{
    int32_t length = form->samples, channels = 16;
    sgm__text_append(text, "input(1, %d)", (int)length);
    if (length < MINIMUM_SAMPLES)
        sgm__text_append(text, " + convolution_1d(%d, 9, relu, same)", (int)channels);
    for (; length >= MINIMUM_SAMPLES; length /= 4, channels = twice(channels))
        sgm__text_append(text, " + convolution_1d(%d, 9, relu, same) + max_pooling_1d(4)", (int)channels);
    sgm__text_append(text, " + dense(64, relu)");
}

static void propose(const void *pointer, sgm__text *text)
{
    const sgm__sound_form *form = pointer;
    if (form->is_sequence)
        sgm__text_append(text, "input(%d, %d, lengths=lengths) + gru(64, bidirectional)", (int)steps_of(form),
                         (int)form->mels);
    else if (is_log_mel(form))
        propose_for_bands(form, text);
    else
        propose_for_samples(form, text);
}

/* --- sizes: seconds and rate --- */

static sgm_status measure(const char *path, sgm__file_size *size)
{
    const sgm_file file = {.name = path};
    sgm__sound_file *sound = sgm__sound_open(&file);
    if (sound == NULL)
        return sgm_last_status();
    int32_t rate = sgm__sound_rate(sound);
    *size = (sgm__file_size){{(double)sgm__sound_count(sound) / rate, rate}};
    sgm__sound_close(sound);
    return SGM_OK;
}

/* "1 s at 8000 Hz", or "0.5 to 2.25 s at 8000 to 44100 Hz" where they differ. */
static void tell(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    if (least->numbers[0] < most->numbers[0])
        sgm__text_append(text, "%.3g to ", least->numbers[0]);
    sgm__text_append(text, "%.3g s at ", most->numbers[0]);
    if (least->numbers[1] < most->numbers[1])
        sgm__text_append(text, "%.0f to ", least->numbers[1]);
    sgm__text_append(text, "%.0f Hz", most->numbers[1]);
}

static void advise(const sgm__file_size *least, const sgm__file_size *most, sgm__text *text)
{
    if (least->numbers[1] < most->numbers[1])
        sgm__text_append(text,
                         "rates differ: say to which all are brought, such as rate: %.0f in data.training",
                         least->numbers[1]);
    else
        sgm__text_append(text,
                         "lengths differ: shorter sounds are followed by silence up to the longest; seconds: "
                         "%.3g in data.training would cut them",
                         least->numbers[0]);
}

const sgm__file_kind sgm__sounds = {
    .name = "sounds",
    .names = &sgm__sound_names,
    .media_types = SGM__SOUND_TYPES,
    .form_size = sizeof(sgm__sound_form),
    .check = check,
    .shape = shape,
    .read = read_sound,
    .make_sequence = make_sequence,
    .read_sequence = read_sequence,
    .put = put,
    .take = take,
    .members = (const char *const[]){"rate", "samples", "mels", "window", "hop", "mean", "deviation", NULL},
    .network = propose,
    .measure = measure,
    .tell = tell,
    .advise = advise,
};
