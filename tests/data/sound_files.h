/* Writes WAV files for tests: 16 bits, samples from -1 to 1. */
#ifndef SGM_TESTS_SOUND_FILES_H
#define SGM_TESTS_SOUND_FILES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SOUND_HEADER 44 /* bytes before the samples */

static inline void sound_put(unsigned char *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* The header of a file of `count` samples of each channel. */
static inline void sound_header(unsigned char header[SOUND_HEADER], int rate, int channels, int count)
{
    uint32_t bytes = (uint32_t)(count * channels * 2);
    memcpy(header, "RIFF\0\0\0\0WAVEfmt ", 16);
    sound_put(header + 4, 36 + bytes, 4);
    sound_put(header + 16, 16, 4);
    sound_put(header + 20, 1, 2); /* PCM */
    sound_put(header + 22, (uint32_t)channels, 2);
    sound_put(header + 24, (uint32_t)rate, 4);
    sound_put(header + 28, (uint32_t)(rate * channels * 2), 4);
    sound_put(header + 32, (uint32_t)(channels * 2), 2);
    sound_put(header + 34, 16, 2);
    memcpy(header + 36, "data", 4);
    sound_put(header + 40, bytes, 4);
}

/* 0, or -1 if the file cannot be written. Channels stand side by side. */
static inline int sound_write(const char *path, int rate, int channels, const double *samples, int count)
{
    unsigned char header[SOUND_HEADER], sample[2];
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return -1;
    sound_header(header, rate, channels, count);
    fwrite(header, 1, sizeof header, file);
    for (int i = 0; i < count * channels; i++) {
        sound_put(sample, (uint32_t)(int32_t)lrint(samples[i] * 32767), 2);
        fwrite(sample, 1, 2, file);
    }
    return fclose(file);
}

#endif
