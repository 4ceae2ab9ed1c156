/* Tokens of generated lines, against hashes of those that the library `tokenizers` makes:
 * tests/cross/make_tokenizers.py trained the tokenizers in data/ and has the same rule for lines. */
#include "test.h"
#include "tokenizer/text/utf8.h"

#include <sigma/tokenizer.h>

#define FOLDER "tests/models/data/"
enum { LINES = 100000, LONGEST_LINE = 4096 };

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

static uint64_t state;

static uint32_t draw(uint32_t count)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32) % count;
}

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

static uint64_t hash(uint64_t hashed, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hashed = (hashed ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hashed;
}

static uint64_t hash_line(const sgm_pretrained_tokenizer *tokenizer, const char *line, size_t size,
                          uint64_t ids_hash, uint64_t *text_hash)
{
    sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, line, size);
    const int64_t *list;
    size_t count, text_size;
    char *text;

    CHECK_OK(ids);
    list = sgm_tensor_const_data(ids);
    count = (size_t)sgm_tensor_shape(ids)->dims[0];
    for (size_t i = 0; i < count; i++)
        ids_hash = hash(ids_hash, &(uint32_t){(uint32_t)list[i]}, 4);
    if (text_hash) {
        CHECK_OK(text = sgm_pretrained_tokenizer_decode(tokenizer, list, count, &text_size));
        *text_hash = hash(*text_hash, text, text_size);
        sgm_string_free(text);
    }
    sgm_tensor_free(ids);
    return hash(ids_hash, "\xff\xff\xff\xff", 4);
}

static void check_hashes(const char *expected)
{
    static char line[LONGEST_LINE];
    char path[128], name[64];
    uint64_t ids_hash = 0xcbf29ce484222325u, text_hash = ids_hash;
    int used;
    sgm_pretrained_tokenizer *tokenizer;

    CHECK_INT(sscanf(expected, "%63s%n", name, &used), 1);
    snprintf(path, sizeof path, FOLDER "%s", name);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(path));
    state = 1;
    for (int number = 1; number <= LINES; number++) {
        const size_t size = write_line(line);
        ids_hash = hash_line(tokenizer, line, size, ids_hash, number % 100 == 0 ? &text_hash : NULL);
        if (number % (LINES / 10) == 0) {
            expected += used;
            if (strtoull(expected, NULL, 16) != ids_hash)
                TEST_FAIL("%s: other tokens within the 10,000 lines before %d", name, number);
            used = 17;
        }
    }
    if (strtoull(expected + used, NULL, 16) != text_hash)
        TEST_FAIL("%s: another text", name);
    sgm_pretrained_tokenizer_free(tokenizer);
}

#define TEST_OF(kind)                                                                                        \
    TEST(kind)                                                                                               \
    {                                                                                                        \
        char expected[400];                                                                                  \
        FILE *file = fopen(FOLDER "hashes.txt", "r");                                                        \
        CHECK(file);                                                                                         \
        while (fgets(expected, sizeof expected, file))                                                       \
            if (strncmp(expected, #kind ".json ", strlen(#kind ".json ")) == 0) {                            \
                fclose(file);                                                                                \
                check_hashes(expected);                                                                      \
                return;                                                                                      \
            }                                                                                                \
        fclose(file);                                                                                        \
        TEST_FAIL("no hashes");                                                                              \
    }

TEST_OF(gpt2)
TEST_OF(llama3)
TEST_OF(qwen)
TEST_OF(o200k)
TEST_OF(roberta)
TEST_OF(llama2)
TEST_OF(metaspace_first)
TEST_OF(clip)
TEST_OF(bert)
TEST_OF(words)
TEST_OF(t5)
TEST_OF(xlmr)
