/* Lines of mixed scripts, signs and broken bytes, by a rule that tests/cross/make_tokenizers.py has, too; and
 * the hash that is made of their tokens there. */
#ifndef SIGMA_TEST_MODELS_LINES_H
#define SIGMA_TEST_MODELS_LINES_H

#include "test.h"
#include "tokenizer/text/utf8.h"

#include <string.h>

enum { LONGEST_LINE = 4096 };

static const struct {
    uint32_t first, count;
} ranges[] = {{0x20, 95},    {0x61, 26},    {0x61, 26},     {0x61, 26},     {0x30, 10},    {0x20, 1},
              {0x20, 1},     {0xa0, 96},    {0x100, 256},   {0x300, 112},   {0x370, 144},  {0x400, 256},
              {0x590, 112},  {0x600, 256},  {0x900, 128},   {0xe00, 128},   {0x1100, 256}, {0x2000, 112},
              {0x2190, 112}, {0x3000, 256}, {0x4e00, 2000}, {0xac00, 2000}, {0xff00, 240}, {0x1f300, 256},
              {0x1f600, 80}, {0x0, 32},     {0x1d400, 200}, {0x20000, 200}, {0x1f1e6, 26}, {0x200b, 5},
              {0xfe00, 16},  {0x2ea, 20}};
static const char *const words[] = {
    "the",    " the",    " of",         "Don't",        "'re",        "2026",  "  ",
    "\n\n",   " \t",     "e\u0301",     "\u1e9b\u0323", "\u2581",     "<s>",   "</s>",
    "[MASK]", "<|end|>", " new token ", "newword",      "hello",      "HELLO", "\U0001f469\u200d\U0001f4bb",
    "\u0130", "\u00df",  "\ufb01",      "...",          "don\u2019t", "##a",   "\r\n",
    "x1y2",   "<0x0A>",  "un",          "ing"};

static uint64_t line_state;

/* The first line comes next. */
static void begin_lines(void)
{
    line_state = 1;
}

static uint32_t draw(uint32_t count)
{
    line_state = line_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(line_state >> 32) % count;
}

/* Writes the next line, of at most LONGEST_LINE bytes, and returns its size. */
static size_t write_line(char *out)
{
    size_t size = 0;
    for (uint32_t parts = draw(24); parts > 0; parts--) {
        const uint32_t kind = draw(16);
        if (kind < 4) {
            const char *word = words[draw(sizeof words / sizeof *words)];
            memcpy(out + size, word, strlen(word));
            size += strlen(word);
        } else if (kind == 4) {
            out[size++] = (char)draw(256);
        } else {
            const uint32_t range = draw(sizeof ranges / sizeof *ranges);
            for (uint32_t left = draw(4) + 1; left > 0; left--)
                size += sgm__utf8_put(ranges[range].first + draw(ranges[range].count), out + size);
        }
    }
    return size;
}

/* FNV-1a. */
static uint64_t hash(uint64_t hashed, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hashed = (hashed ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hashed;
}

#endif
