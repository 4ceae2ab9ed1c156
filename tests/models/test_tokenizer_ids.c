/* Tokens of generated lines, against hashes of those that the library `tokenizers` makes:
 * tests/cross/make_tokenizers.py trained the tokenizers in data/ and has the same rule for lines. */
#include "models/lines.h"

#include <sigma/tokenizer.h>

#define FOLDER "tests/models/data/"
enum { LINES = 100000 };

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
    begin_lines();
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
