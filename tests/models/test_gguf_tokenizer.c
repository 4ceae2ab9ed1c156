/* Tokenizers of files of GGUF (gguf_models.py): the tokens are those of the tokenizers that the files were
 * made of. */
#include "models/lines.h"
#include "models/tokenizers.h"

#include <inttypes.h>

#define GGUF "tests/models/gguf/tokenizer_"
enum { LINES = 20000 };

static sgm_pretrained_tokenizer *open_file(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, GGUF "%s.gguf", name);
    sgm_pretrained_tokenizer *tokenizer = sgm_pretrained_tokenizer_open(path);
    CHECK_OK(tokenizer);
    return tokenizer;
}

static void compare_line(const sgm_pretrained_tokenizer *own, const sgm_pretrained_tokenizer *other,
                         const char *line, size_t size, const char *name)
{
    sgm_tensor *ids = sgm_pretrained_tokenizer_encode(own, line, size);
    sgm_tensor *wanted = sgm_pretrained_tokenizer_encode(other, line, size);
    CHECK_OK(ids);
    CHECK_OK(wanted);
    const size_t count = count_of(ids);
    const int64_t *numbers = sgm_tensor_const_data(ids);
    if (count != count_of(wanted) ||
        memcmp(numbers, sgm_tensor_const_data(wanted), count * sizeof *numbers) != 0)
        TEST_FAIL("%s: other tokens of '%.*s'", name, (int)size, line);
    char *texts[] = {sgm_pretrained_tokenizer_decode(own, numbers, count, NULL),
                     sgm_pretrained_tokenizer_decode(other, numbers, count, NULL)};
    CHECK_STR(texts[0], texts[1]);
    sgm_string_free(texts[0]);
    sgm_string_free(texts[1]);
    sgm_tensor_free(ids);
    sgm_tensor_free(wanted);
}

TEST(byte_level_tokens_are_those_of_tokenizer_json)
{
    static const char *const names[] = {"gpt2", "llama3", "qwen"};
    static char line[LONGEST_LINE], file[40];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s.json", names[i]);
        sgm_pretrained_tokenizer *own = open_file(names[i]), *other = data_tokenizer(file);
        CHECK_INT(sgm_pretrained_tokenizer_count(own), sgm_pretrained_tokenizer_count(other));
        begin_lines();
        for (int number = 0; number < LINES; number++) {
            const size_t size = write_line(line);
            compare_line(own, other, line, size, names[i]);
        }
        sgm_pretrained_tokenizer_free(own);
        sgm_pretrained_tokenizer_free(other);
    }
}

/* Whether sentencepiece makes the same of a line: texts of added tokens are cut out here before, and a 0 ends
 * a text there. */
static bool is_plain(const char *line, size_t size)
{
    static const char *const texts[] = {"<s>", "</s>", "newword"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (memmem(line, size, texts[i], strlen(texts[i])) != NULL)
            return false;
    return memchr(line, 0, size) == NULL;
}

TEST(tokens_by_scores_are_those_of_sentencepiece)
{
    static char line[LONGEST_LINE];
    uint64_t expected = 0, hashed = 0xcbf29ce484222325u;
    FILE *file = fopen(GGUF "spm.txt", "r");
    CHECK(file != NULL && fscanf(file, "%" SCNx64, &expected) == 1);
    fclose(file);
    sgm_pretrained_tokenizer *tokenizer = open_file("spm");
    begin_lines();
    for (int number = 0; number < LINES; number++) {
        const size_t size = write_line(line);
        if (!is_plain(line, size))
            continue;
        sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, line, size);
        CHECK_OK(ids);
        const int64_t *list = sgm_tensor_const_data(ids);
        for (size_t i = 0; i < count_of(ids); i++)
            hashed = hash(hashed, &(uint32_t){(uint32_t)list[i]}, 4);
        hashed = hash(hashed, "\xff\xff\xff\xff", 4);
        sgm_tensor_free(ids);
    }
    if (hashed != expected)
        TEST_FAIL("the hash is %016" PRIx64 ", sentencepiece's is %016" PRIx64, hashed, expected);
    sgm_pretrained_tokenizer_free(tokenizer);
}

static void check_text(const sgm_pretrained_tokenizer *tokenizer, const char *text, const char *decoded)
{
    sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text));
    CHECK_OK(ids);
    char *back = sgm_pretrained_tokenizer_decode(tokenizer, sgm_tensor_const_data(ids), count_of(ids), NULL,
                                                 .skip_special = true);
    CHECK_STR(back, decoded);
    sgm_string_free(back);
    sgm_tensor_free(ids);
}

/* A text behind an added token begins anew, with a space, as llama.cpp and the library tokenizers have it. */
TEST(texts_come_back_without_special_tokens)
{
    sgm_pretrained_tokenizer *tokenizer = open_file("spm");
    check_text(tokenizer, "the  quick\nfox </s>newword \u4e2d", "the  quick\nfox newword  \u4e2d");
    sgm_pretrained_tokenizer_free(tokenizer);
    tokenizer = open_file("llama3");
    check_text(tokenizer, "<|end|>the  quick\nfox \u4e2d", "the  quick\nfox \u4e2d");
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(chats_are_written_by_the_template_of_the_file)
{
    sgm_pretrained_tokenizer *tokenizer = open_file("llama3");
    const sgm_chat_message message = {"user", " Hello "};
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), "llama-3");
    CHECK_INT(sgm_pretrained_tokenizer_end(tokenizer), 1);
    char *text = sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true);
    CHECK_STR(text, "<s><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>\n\n");
    sgm_string_free(text);
    sgm_pretrained_tokenizer_free(tokenizer);
    tokenizer = open_file("spm");
    CHECK(sgm_pretrained_tokenizer_chat_family(tokenizer) == NULL);
    CHECK(sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true) == NULL);
    CHECK(strstr(sgm_last_error(), "the model has no chat template") != NULL);
    sgm_pretrained_tokenizer_free(tokenizer);
}
