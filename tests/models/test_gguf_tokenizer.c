/* Tokenizers of files of GGUF (gguf_models.py): the tokens are those of the tokenizers that the files were
 * made of. */
#include "models/folders.h"
#include "models/gguf_files.h"
#include "models/lines.h"
#include "models/tokenizers.h"
#include "tokenizer/gguf/tokens.h"

#include <inttypes.h>

enum { LINES = 20000 };

static sgm_pretrained_tokenizer *open_tokenizer(const char *name)
{
    char path[100];
    snprintf(path, sizeof path, GGUF "tokenizer_%s.gguf", name);
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

static void compare_lines(const sgm_pretrained_tokenizer *own, const sgm_pretrained_tokenizer *other,
                          const char *name)
{
    static char line[LONGEST_LINE];
    CHECK_INT(sgm_pretrained_tokenizer_count(own), sgm_pretrained_tokenizer_count(other));
    begin_lines();
    for (int number = 0; number < LINES; number++) {
        const size_t size = write_line(line);
        compare_line(own, other, line, size, name);
    }
}

TEST(byte_level_tokens_are_those_of_tokenizer_json)
{
    static const char *const names[] = {"gpt2", "llama3", "qwen"};
    static char file[40];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s.json", names[i]);
        sgm_pretrained_tokenizer *own = open_tokenizer(names[i]), *other = data_tokenizer(file);
        compare_lines(own, other, names[i]);
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
    FILE *file = fopen(GGUF "tokenizer_spm.txt", "r");
    CHECK(file != NULL && fscanf(file, "%" SCNx64, &expected) == 1);
    fclose(file);
    sgm_pretrained_tokenizer *tokenizer = open_tokenizer("spm");
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
    sgm_pretrained_tokenizer *tokenizer = open_tokenizer("spm");
    check_text(tokenizer, "the  quick\nfox </s>newword \u4e2d", "the  quick\nfox newword  \u4e2d");
    sgm_pretrained_tokenizer_free(tokenizer);
    tokenizer = open_tokenizer("llama3");
    check_text(tokenizer, "<|end|>the  quick\nfox \u4e2d", "the  quick\nfox \u4e2d");
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(chats_are_written_by_the_template_of_the_file)
{
    sgm_pretrained_tokenizer *tokenizer = open_tokenizer("llama3");
    const sgm_chat_message message = {"user", " Hello "};
    CHECK_STR(sgm_pretrained_tokenizer_chat_family(tokenizer), "llama-3");
    CHECK_INT(sgm_pretrained_tokenizer_end(tokenizer), 1);
    char *text = sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true);
    CHECK_STR(text, "<s><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>\n\n");
    sgm_string_free(text);
    sgm_pretrained_tokenizer_free(tokenizer);
    tokenizer = open_tokenizer("spm");
    CHECK(sgm_pretrained_tokenizer_chat_family(tokenizer) == NULL);
    CHECK(sgm_pretrained_tokenizer_chat(tokenizer, &message, 1, true) == NULL);
    CHECK(strstr(sgm_last_error(), "the model has no chat template") != NULL);
    sgm_pretrained_tokenizer_free(tokenizer);
}

/* --- writing --- */

/* Adds the tokenizer of a file to metadata, for a model that has vectors for `count` tokens. */
static sgm_status put_file(sgm__gguf_draft *draft, const char *json, uint32_t count)
{
    const char *folder = new_folder();
    size_t size;
    char *text = read_file("tests/models", json, &size);
    write_file(folder, "tokenizer.json", text, size);
    free(text);
    return sgm__gguf_put_tokenizer(draft, folder, NULL, count);
}

/* Spaces before the first piece of a text alone, and not behind added tokens, as no file can say. */
TEST(spaces_before_the_first_piece_alone_are_refused)
{
    const char *folder = new_folder();
    sgm__gguf_draft draft = {0};
    size_t size;
    char *text = read_file("tests/models/gguf", "tokenizer_spm.json", &size);
    write_file(folder, "tokenizer.json", text, size);
    free(text);
    CHECK_OK(sgm__gguf_put_tokenizer(&draft, folder, NULL, 450));
    replace(folder, "tokenizer.json", "{\"type\": \"Prepend\", \"prepend\": \"\u2581\"}, ", "");
    replace(folder, "tokenizer.json", "\"pre_tokenizer\": null",
            "\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"prepend_scheme\": "
            "\"first\", \"split\": false}");
    CHECK_ERROR(sgm__gguf_put_tokenizer(&draft, folder, NULL, 450),
                "it does more to a text than SentencePiece's files say");
    sgm__gguf_draft_free(&draft);
}

/* A file without tensors, with the tokenizer of a file. */
static const char *export_tokenizer(const char *json, uint32_t count)
{
    static char path[100];
    sgm__gguf_draft draft = {0};
    CHECK_OK(put_file(&draft, json, count));
    snprintf(path, sizeof path, "%s/new.gguf", new_folder());
    CHECK_OK(sgm__gguf_write(path, &draft, NULL, 0, NULL, NULL));
    sgm__gguf_draft_free(&draft);
    return path;
}

TEST(tokenizers_are_written_as_the_package_writes_them)
{
    static const char *const names[] = {"gpt2", "llama3", "qwen"};
    static const char *const keys[] = {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens",
                                       "tokenizer.ggml.token_type", "tokenizer.ggml.merges"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char json[40], name[40];
        snprintf(json, sizeof json, "data/%s.json", names[i]);
        snprintf(name, sizeof name, "tokenizer_%s", names[i]);
        sgm__gguf *other = open_file(file_of(name));
        const uint32_t count = (uint32_t)sgm__gguf_find(other, "tokenizer.ggml.tokens")->count;
        sgm__gguf *own = open_file(export_tokenizer(json, count));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            compare_values(own, other, keys[k]);
        sgm__gguf_close(own);
        sgm__gguf_close(other);
    }
}

/* Scores are others than sentencepiece's, in the same order. */
TEST(tokenizers_with_scores_come_back)
{
    const char *path = export_tokenizer("gguf/tokenizer_spm.json", 450);
    sgm__gguf *own = open_file(path), *other = open_file(GGUF "tokenizer_spm.gguf");
    compare_values(own, other, "tokenizer.ggml.token");
    compare_values(own, other, "tokenizer.ggml.unk");
    sgm__gguf_close(own);
    sgm__gguf_close(other);
    sgm_pretrained_tokenizer *written = sgm_pretrained_tokenizer_open(path),
                             *original = open_tokenizer("spm");
    CHECK_OK(written);
    compare_lines(written, original, "tokenizer_spm.json");
    sgm_pretrained_tokenizer_free(written);
    sgm_pretrained_tokenizer_free(original);
}

static void refuse(const char *json, uint32_t count, const char *message)
{
    sgm__gguf_draft draft = {0};
    CHECK_ERROR(put_file(&draft, json, count), message);
    CHECK_ERROR(put_file(&draft, json, count), "cannot be written into a file of GGUF");
    sgm__gguf_draft_free(&draft);
}

TEST(tokenizers_that_llama_cpp_would_read_as_others_are_refused)
{
    refuse("data/bert.json", 100000, "none of byte-level pairs, nor of SentencePiece's pairs");
    refuse("data/t5.json", 100000, "none of byte-level pairs, nor of SentencePiece's pairs");
    refuse("data/gpt2.json", 10, "it has more tokens than the model has vectors");
    refuse("data/o200k.json", 100000, "it splits texts as none of gpt-2");
    refuse("data/metaspace_first.json", 100000, "it does more to a text than SentencePiece's files say");
    refuse("data/llama2.json", 100000,
           "there are tokens that it does not put together, though a third one consists of them");
    refuse("data/clip.json", 100000, "'sigma export --hf' writes the model with its tokenizer as it is");
}
