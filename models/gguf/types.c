/* Types of tensors in files of GGUF, and numbers in them. Blocks of 32 numbers have a common scale. */
#include "gguf/gguf.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#define BLOCK 32

static float scale_of(const unsigned char *bytes)
{
    float scale;
    sgm_floats_from_halves(&scale, bytes, 1);
    return scale;
}

static void read_f32(const unsigned char *bytes, float *numbers, size_t count)
{
    memcpy(numbers, bytes, count * sizeof *numbers);
}

static void write_f32(const float *numbers, unsigned char *bytes, size_t count)
{
    memcpy(bytes, numbers, count * sizeof *numbers);
}

static void read_f16(const unsigned char *bytes, float *numbers, size_t count)
{
    sgm_floats_from_halves(numbers, bytes, count);
}

static void write_f16(const float *numbers, unsigned char *bytes, size_t count)
{
    sgm_halves_from_floats(bytes, numbers, count);
}

/* The upper half of a float32. */
static void read_bf16(const unsigned char *bytes, float *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)bytes[2 * i] << 16 | (uint32_t)bytes[2 * i + 1] << 24;
        memcpy(&numbers[i], &bits, sizeof bits);
    }
}

/* To nearest, ties to even; a NaN stays one. */
static void write_bf16(const float *numbers, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], sizeof bits);
        bits = isnan(numbers[i]) ? bits | 0x400000u : bits + 0x7fffu + (bits >> 16 & 1u);
        bytes[2 * i] = (unsigned char)(bits >> 16);
        bytes[2 * i + 1] = (unsigned char)(bits >> 24);
    }
}

/* A scale (float16), then 32 numbers of 8 bits. */
#define Q8_0_BYTES 34
static void read_q8_0(const unsigned char *bytes, float *numbers, size_t count)
{
    for (; count > 0; count -= BLOCK, bytes += Q8_0_BYTES, numbers += BLOCK) {
        const float scale = scale_of(bytes);
        for (size_t i = 0; i < BLOCK; i++)
            numbers[i] = (float)(signed char)bytes[2 + i] * scale;
    }
}

/* A NaN, which no byte stands for, is 0. */
static unsigned char to_byte(float number)
{
    return isnan(number) ? 0 : (unsigned char)(signed char)roundf(number);
}

/* As ggml rounds: the largest number is 127, halves go away from 0. Where none has an inverse, all are 0. */
static void write_q8_0(const float *numbers, unsigned char *bytes, size_t count)
{
    for (; count > 0; count -= BLOCK, bytes += Q8_0_BYTES, numbers += BLOCK) {
        float largest = 0;
        for (size_t i = 0; i < BLOCK; i++)
            largest = fmaxf(largest, fabsf(numbers[i]));
        const float scale = largest / 127, inverse = isfinite(1 / scale) ? 1 / scale : 0;
        sgm_halves_from_floats(bytes, &scale, 1);
        for (size_t i = 0; i < BLOCK; i++)
            bytes[2 + i] = to_byte(numbers[i] * inverse);
    }
}

/* A scale (float16), then 16 bytes: the lower halves are the first 16 numbers, the upper ones the others,
 * each from -8 to 7. */
static void read_q4_0(const unsigned char *bytes, float *numbers, size_t count)
{
    for (; count > 0; count -= BLOCK, bytes += 18, numbers += BLOCK) {
        const float scale = scale_of(bytes);
        for (size_t i = 0; i < BLOCK / 2; i++) {
            numbers[i] = (float)((bytes[2 + i] & 15) - 8) * scale;
            numbers[i + BLOCK / 2] = (float)((bytes[2 + i] >> 4) - 8) * scale;
        }
    }
}

/* Those without a size are known by their name alone, to be refused by it. */
static const sgm__gguf_type types[] = {
    {"F32", SGM__GGUF_F32, 1, 4, read_f32, write_f32},
    {"F16", SGM__GGUF_F16, 1, 2, read_f16, write_f16},
    {"BF16", SGM__GGUF_BF16, 1, 2, read_bf16, write_bf16},
    {"Q8_0", SGM__GGUF_Q8_0, BLOCK, Q8_0_BYTES, read_q8_0, write_q8_0},
    {"Q4_0", SGM__GGUF_Q4_0, BLOCK, 18, read_q4_0, NULL},
#define NAMED(name, number)                                                                                  \
    {                                                                                                        \
        name, number, 0, 0, NULL, NULL                                                                       \
    }
    NAMED("Q4_1", 3),
    NAMED("Q4_2", 4),
    NAMED("Q4_3", 5),
    NAMED("Q5_0", 6),
    NAMED("Q5_1", 7),
    NAMED("Q8_1", 9),
    NAMED("Q2_K", 10),
    NAMED("Q3_K", 11),
    NAMED("Q4_K", 12),
    NAMED("Q5_K", 13),
    NAMED("Q6_K", 14),
    NAMED("Q8_K", 15),
    NAMED("IQ2_XXS", 16),
    NAMED("IQ2_XS", 17),
    NAMED("IQ3_XXS", 18),
    NAMED("IQ1_S", 19),
    NAMED("IQ4_NL", 20),
    NAMED("IQ3_S", 21),
    NAMED("IQ2_S", 22),
    NAMED("IQ4_XS", 23),
    NAMED("I8", 24),
    NAMED("I16", 25),
    NAMED("I32", 26),
    NAMED("I64", 27),
    NAMED("F64", 28),
    NAMED("IQ1_M", 29),
    NAMED("Q4_0_4_4", 31),
    NAMED("Q4_0_4_8", 32),
    NAMED("Q4_0_8_8", 33),
    NAMED("TQ1_0", 34),
    NAMED("TQ2_0", 35),
    NAMED("IQ4_NL_4_4", 36),
    NAMED("IQ4_NL_4_8", 37),
    NAMED("IQ4_NL_8_8", 38),
    NAMED("MXFP4", 39),
    NAMED("NVFP4", 40),
    NAMED("Q1_0", 41),
#undef NAMED
};
#define TYPE_COUNT (sizeof types / sizeof *types)

const sgm__gguf_type *sgm__gguf_type_of(uint32_t number)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

const sgm__gguf_type *sgm__gguf_type_named(const char *name)
{
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcasecmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}
