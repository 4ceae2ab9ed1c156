/* Pictures in other sizes against Pillow, byte for byte (resize_pillow.py). */
#include "data/read/reader.h"
#include "resize_pillow.h"
#include "test.h"

#include <stdlib.h>

/* Bytes of a linear congruential generator. */
static unsigned char *draw(size_t count)
{
    uint32_t state = 1;
    unsigned char *bytes = malloc(count);
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525U + 1013904223U;
        bytes[i] = (unsigned char)(state >> 24);
    }
    return bytes;
}

/* FNV-1a. */
static uint32_t hash_of(const unsigned char *bytes, size_t count)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * 16777619U;
    return hash;
}

TEST(pictures_are_scaled_as_pillow_does)
{
    for (size_t i = 0; i < sizeof pillow_results / sizeof *pillow_results; i++) {
        const int32_t channels = pillow_results[i].channels, *size = pillow_results[i].size,
                      *wanted = pillow_results[i].wanted;
        unsigned char *drawn = draw((size_t)size[0] * (size_t)size[1] * (size_t)channels);
        size_t count = (size_t)wanted[0] * (size_t)wanted[1] * (size_t)channels;
        unsigned char *scaled = malloc(count);
        sgm__image image = {drawn, size[0], size[1], channels};
        CHECK_OK(sgm__image_resize(pillow_results[i].filter, &image, wanted[0], wanted[1], scaled));
        if (hash_of(scaled, count) != pillow_results[i].hash)
            TEST_FAIL("%s, %d channels: %d x %d to %d x %d has other bytes than Pillow's",
                      sgm__image_filter_name(pillow_results[i].filter), (int)channels, (int)size[0],
                      (int)size[1], (int)wanted[0], (int)wanted[1]);
        free(scaled);
        free(drawn);
    }
}
