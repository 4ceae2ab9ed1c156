/* Texts, pairs and tokens, against what the library `tokenizers` makes (tests/cross/make_encodings.py);
 * decoding one by one; files of before tokenizer.json, whose tokens are those of a tokenizer.json with the
 * same vocabulary. */
#include "models/tokenizers.h"
#include "tokenizer/text/utf8.h"

#include <pthread.h>

static void check_decoding(const sgm_pretrained_tokenizer *tokenizer, const sgm_tensor *ids,
                           const json_t *expected)
{
    const int64_t *list = sgm_tensor_const_data(ids);
    size_t size;
    char *whole, *plain;
    CHECK_OK(whole = sgm_pretrained_tokenizer_decode(tokenizer, list, count_of(ids), &size));
    CHECK_OK(plain =
                 sgm_pretrained_tokenizer_decode(tokenizer, list, count_of(ids), NULL, .skip_special = true));
    CHECK_STR(whole, text_in(expected, "whole"));
    CHECK_INT(size, strlen(whole));
    CHECK_STR(plain, text_in(expected, "plain"));
    sgm_string_free(whole);
    sgm_string_free(plain);
}

static void check_encoding(const json_t *expected, bool ids_alone)
{
    sgm_pretrained_tokenizer *tokenizer = data_tokenizer(text_in(expected, "file"));
    const char *text = text_in(expected, "text"), *pair = text_in(expected, "pair");
    sgm_tensor *ids, *segments = NULL;
    CHECK_OK(ids = sgm_pretrained_tokenizer_encode(
                 tokenizer, text, strlen(text), .pair = pair, .pair_size = pair ? strlen(pair) : 0,
                 .no_special = !json_is_true(json_object_get(expected, "special")),
                 .longest = json_integer_value(json_object_get(expected, "longest")), .segments = &segments));
    CHECK(segments);
    if (!is_equal(ids, json_object_get(expected, "ids")) ||
        !is_equal(segments, json_object_get(expected, "segments"))) {
        char *shown = json_dumps(expected, 0);
        TEST_FAIL("other tokens than %s", shown);
    }
    if (!ids_alone)
        check_decoding(tokenizer, ids, expected);
    sgm_tensor_free(ids);
    sgm_tensor_free(segments);
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(pairs_limits_and_special_tokens_are_those_of_the_library)
{
    json_t *cases = data_json("encodings.json");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_encoding(json_array_get(cases, i), true);
    json_decref(cases);
}

TEST(tokens_become_the_texts_of_the_library)
{
    json_t *cases = data_json("encodings.json");
    for (size_t i = 0; i < json_array_size(cases); i++)
        check_encoding(json_array_get(cases, i), false);
    json_decref(cases);
}

/* A tokenizer of data/ with other values under keys such as "model.byte_fallback". */
static sgm_pretrained_tokenizer *variant(const json_t *expected)
{
    json_t *root = data_json(text_in(expected, "file")), *value;
    sgm_pretrained_tokenizer *tokenizer;
    const char *folder = new_folder(), *key;
    json_object_foreach(json_object_get(expected, "changes"), key, value)
    {
        const bool is_inner = strncmp(key, "model.", 6) == 0;
        json_object_set(is_inner ? json_object_get(root, "model") : root, key + (is_inner ? 6 : 0), value);
    }
    write_json(folder, "tokenizer.json", root);
    json_decref(root);
    CHECK_OK(tokenizer = sgm_pretrained_tokenizer_open(folder));
    return tokenizer;
}

TEST(rare_steps_are_those_of_the_library)
{
    json_t *cases = data_json("variants.json");
    CHECK(json_array_size(cases) > 50);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *expected = json_array_get(cases, i);
        const char *text = text_in(expected, "text");
        sgm_pretrained_tokenizer *tokenizer = variant(expected);
        sgm_tensor *ids;
        char *whole;
        CHECK_OK(ids = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text)));
        if (!is_equal(ids, json_object_get(expected, "ids"))) {
            char *shown = json_dumps(expected, 0);
            TEST_FAIL("other tokens than %s", shown);
        }
        CHECK_OK(whole = sgm_pretrained_tokenizer_decode(tokenizer, sgm_tensor_const_data(ids), count_of(ids),
                                                         NULL));
        CHECK_STR(whole, text_in(expected, "whole"));
        sgm_string_free(whole);
        sgm_tensor_free(ids);
        sgm_pretrained_tokenizer_free(tokenizer);
    }
    json_decref(cases);
}

TEST(what_cannot_be_encoded_is_refused)
{
    sgm_pretrained_tokenizer *bert = data_tokenizer("bert.json");
    CHECK_ERROR(
        sgm_pretrained_tokenizer_encode(bert, "a", 1, .longest = 1),
        "longest is 1, but the model's template alone has 2 tokens; give at least as many, or .no_special");
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(bert, "a", 1, .longest = -1), "a longest count of 0 or more");
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(bert, NULL, 1), "a text where its size is over 0");
    CHECK_ERROR(sgm_pretrained_tokenizer_encode(NULL, "a", 1), "encoding needs a tokenizer");
    CHECK_ERROR(sgm_pretrained_tokenizer_decode(bert, NULL, 1, NULL), "tokens where their count is over 0");
    CHECK_ERROR(sgm_pretrained_stream_create(NULL), "a stream needs a tokenizer");
    sgm_pretrained_tokenizer_free(bert);
}

TEST(tokens_have_names_and_numbers)
{
    sgm_pretrained_tokenizer *bert = data_tokenizer("bert.json"), *gpt2 = data_tokenizer("gpt2.json"),
                             *t5 = data_tokenizer("t5.json");
    static const int64_t unknown[] = {-5, 999999, INT64_MAX};
    char *text;
    CHECK_STR(sgm_pretrained_tokenizer_kind(bert), "WordPiece");
    CHECK_STR(sgm_pretrained_tokenizer_kind(gpt2), "byte pairs");
    CHECK_STR(sgm_pretrained_tokenizer_kind(t5), "unigram");
    CHECK_INT(sgm_pretrained_tokenizer_count(bert), 268);
    CHECK_INT(sgm_pretrained_tokenizer_id(bert, "[SEP]"), 3);
    CHECK_INT(sgm_pretrained_tokenizer_id(bert, "no such token"), -1);
    CHECK_STR(sgm_pretrained_tokenizer_token(bert, 4), "[MASK]");
    CHECK(sgm_pretrained_tokenizer_token(bert, 268) == NULL);
    CHECK(sgm_pretrained_tokenizer_token(bert, -1) == NULL);
    for (int64_t id = 0; id < sgm_pretrained_tokenizer_count(gpt2); id++)
        CHECK_INT(sgm_pretrained_tokenizer_id(gpt2, sgm_pretrained_tokenizer_token(gpt2, id)), id);
    CHECK_OK(text = sgm_pretrained_tokenizer_decode(bert, unknown, 3, NULL));
    CHECK_STR(text, ""); /* numbers that no token has */
    sgm_string_free(text);
    sgm_pretrained_tokenizer_free(bert);
    sgm_pretrained_tokenizer_free(gpt2);
    sgm_pretrained_tokenizer_free(t5);
}

/* --- one by one --- */
/* What a stream tells of tokens, all in all; each part must be valid by itself. */
static char *streamed(sgm_pretrained_stream *stream, const int64_t *ids, size_t count)
{
    static char text[1 << 16];
    size_t size = 0;
    for (size_t i = 0; i <= count; i++) {
        const char *part =
            i < count ? sgm_pretrained_stream_next(stream, ids[i]) : sgm_pretrained_stream_end(stream);
        CHECK_OK(part);
        CHECK(sgm__utf8_is_valid(part, strlen(part)));
        CHECK(i == count || !strstr(part, SGM__REPLACEMENT));
        CHECK(size + strlen(part) < sizeof text);
        memcpy(text + size, part, strlen(part) + 1);
        size += strlen(part);
    }
    return text;
}

static void check_stream(const char *name, const char *text)
{
    sgm_pretrained_tokenizer *tokenizer = data_tokenizer(name);
    for (int skip = 0; skip < 2; skip++) {
        sgm_pretrained_stream *stream = sgm_pretrained_stream_create(tokenizer, .skip_special = skip);
        sgm_tensor *ids = sgm_pretrained_tokenizer_encode(tokenizer, text, strlen(text));
        char *whole;
        CHECK_OK(stream);
        CHECK_OK(ids);
        CHECK_OK(whole = sgm_pretrained_tokenizer_decode(tokenizer, sgm_tensor_const_data(ids), count_of(ids),
                                                         NULL, .skip_special = skip));
        for (int again = 0; again < 2; again++) /* the end begins anew */
            CHECK_STR(streamed(stream, sgm_tensor_const_data(ids), count_of(ids)), whole);
        sgm_string_free(whole);
        sgm_tensor_free(ids);
        sgm_pretrained_stream_free(stream);
    }
    sgm_pretrained_tokenizer_free(tokenizer);
}

TEST(streams_tell_whole_characters_that_are_the_text)
{
    static const char *const names[] = {"bert.json", "gpt2.json",  "llama2.json", "llama3.json",
                                        "t5.json",   "o200k.json", "words.json",  "xlmr.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        check_stream(names[i], "The quick brown fox, don't you see?");
        check_stream(
            names[i],
            "  w\u00f6rld \U0001f469\u200d\U0001f4bb </s>\U0001f600 [MASK] \u4e2d\u6587 <|end|>  end \n\n");
        check_stream(names[i], "");
    }
}

TEST(characters_that_never_end_are_told_at_the_end)
{
    sgm_pretrained_tokenizer *gpt2 = data_tokenizer("gpt2.json");
    sgm_pretrained_stream *stream = sgm_pretrained_stream_create(gpt2);
    const int64_t begin = sgm_pretrained_tokenizer_id(gpt2, "\u00f0"); /* byte 0xf0 */
    CHECK(begin >= 0);
    CHECK_STR(sgm_pretrained_stream_next(stream, sgm_pretrained_tokenizer_id(gpt2, "a")), "a");
    CHECK_STR(sgm_pretrained_stream_next(stream, begin), "");
    CHECK_STR(sgm_pretrained_stream_end(stream), SGM__REPLACEMENT);
    CHECK_STR(sgm_pretrained_stream_end(stream), "");
    sgm_pretrained_stream_free(stream);
    sgm_pretrained_stream_free(NULL);
    sgm_pretrained_tokenizer_free(gpt2);
    sgm_pretrained_tokenizer_free(NULL);
}

/* Bytes of a run that is no text become U+FFFD each, also those that were told as letters before. */
TEST(streams_stay_valid_where_a_text_changes)
{
    static const char *const tokens[] = {"<0x73>", "<0xF9>", "<0xA1>", "un", "<0x0A>", "<0xF0>", "un"};
    static const char *const told[] = {
        "s", "", "", SGM__REPLACEMENT SGM__REPLACEMENT "un", "\n", "", SGM__REPLACEMENT "un"};
    sgm_pretrained_tokenizer *llama2 = data_tokenizer("llama2.json");
    sgm_pretrained_stream *stream = sgm_pretrained_stream_create(llama2);
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
        CHECK_STR(sgm_pretrained_stream_next(stream, sgm_pretrained_tokenizer_id(llama2, tokens[i])),
                  told[i]);
    CHECK_STR(sgm_pretrained_stream_end(stream), "");
    sgm_pretrained_stream_free(stream);
    sgm_pretrained_tokenizer_free(llama2);
}

/* --- threads --- */
static void *encode_all(void *tokenizers)
{
    sgm_pretrained_tokenizer *const *list = tokenizers;
    json_t *cases = data_json("encodings.json");
    const char *previous = "";
    long wrong = 0;
    for (size_t i = 0, which = 0; i < json_array_size(cases); i++) {
        const json_t *expected = json_array_get(cases, i);
        const char *text = text_in(expected, "text"), *pair = text_in(expected, "pair");
        sgm_tensor *ids;
        if (*previous && strcmp(text_in(expected, "file"), previous) != 0)
            which++;
        previous = text_in(expected, "file");
        ids = sgm_pretrained_tokenizer_encode(
            list[which], text, strlen(text), .pair = pair, .pair_size = pair ? strlen(pair) : 0,
            .no_special = !json_is_true(json_object_get(expected, "special")),
            .longest = json_integer_value(json_object_get(expected, "longest")));
        wrong += !ids || !is_equal(ids, json_object_get(expected, "ids"));
        sgm_tensor_free(ids);
    }
    json_decref(cases);
    return (void *)(intptr_t)wrong;
}

TEST(threads_share_a_tokenizer)
{
    sgm_pretrained_tokenizer *list[] = {data_tokenizer("bert.json"), data_tokenizer("roberta.json"),
                                        data_tokenizer("llama2.json"), data_tokenizer("gpt2.json")};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, encode_all, list) == 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        CHECK_INT((intptr_t)wrong, 0);
    }
    for (int i = 0; i < 4; i++)
        sgm_pretrained_tokenizer_free(list[i]);
}

/* --- files of before tokenizer.json --- */
static void check_same_tokens(const char *name, const char *path, const char *const *texts, size_t count)
{
    sgm_pretrained_tokenizer *known = data_tokenizer(name), *other;
    CHECK_OK(other = sgm_pretrained_tokenizer_open(path));
    CHECK_INT(sgm_pretrained_tokenizer_count(other), sgm_pretrained_tokenizer_count(known));
    for (size_t i = 0; i < count; i++) {
        const char *pair = i % 2 ? texts[0] : NULL;
        const size_t pair_size = pair ? strlen(pair) : 0;
        sgm_tensor *a = sgm_pretrained_tokenizer_encode(known, texts[i], strlen(texts[i]), .pair = pair,
                                                        .pair_size = pair_size);
        sgm_tensor *b = sgm_pretrained_tokenizer_encode(other, texts[i], strlen(texts[i]), .pair = pair,
                                                        .pair_size = pair_size);
        char *text, *other_text;
        CHECK_INT(count_of(b), count_of(a));
        CHECK(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b), count_of(a) * sizeof(int64_t)) == 0);
        text = sgm_pretrained_tokenizer_decode(known, sgm_tensor_const_data(a), count_of(a), NULL,
                                               .skip_special = true);
        other_text = sgm_pretrained_tokenizer_decode(other, sgm_tensor_const_data(b), count_of(b), NULL,
                                                     .skip_special = true);
        CHECK_STR(other_text, text);
        sgm_string_free(text);
        sgm_string_free(other_text);
        sgm_tensor_free(a);
        sgm_tensor_free(b);
    }
    sgm_pretrained_tokenizer_free(known);
    sgm_pretrained_tokenizer_free(other);
}

static const char *const texts[] = {"The quick [MASK] brown fox don't jump.",
                                    "H\u00e9llo W\u00d6RLD, 2026!\r\n  unhappy",
                                    "\u4e2d\u6587 [SEP]x\U0001f600", "</s> newword  running \t"};

/* Writes a tokenizer's vocabulary as BERT's files have it: a token on each line. */
static void write_vocabulary(const json_t *vocabulary, const char *folder)
{
    const char *tokens[1000] = {NULL}, *token;
    char text[1 << 14];
    size_t size = 0;
    json_t *id;
    json_object_foreach((json_t *)(uintptr_t)vocabulary, token, id) tokens[json_integer_value(id)] = token;
    for (size_t i = 0; tokens[i]; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s\n", tokens[i]);
    write_file(folder, "vocab.txt", text, size);
}

TEST(bert_has_a_vocabulary_of_lines)
{
    json_t *root = data_json("bert.json");
    const char *folder = new_folder();
    char path[300];
    sgm_pretrained_tokenizer *cased;
    sgm_tensor *ids;
    write_vocabulary(json_object_get(json_object_get(root, "model"), "vocab"), folder);
    check_same_tokens("bert.json", folder, texts, sizeof texts / sizeof *texts);
    snprintf(path, sizeof path, "%s/vocab.txt", folder);
    check_same_tokens("bert.json", path, texts, 1);
    static const char settings[] =
        "{\"do_lower_case\": false, \"model_max_length\": 1000000000000000019884624838656}";
    write_file(folder, "tokenizer_config.json", settings, sizeof settings - 1);
    CHECK_OK(cased = sgm_pretrained_tokenizer_open(folder));
    CHECK_OK(ids = sgm_pretrained_tokenizer_encode(cased, "The the", 7, .no_special = true));
    CHECK(((const int64_t *)sgm_tensor_const_data(ids))[0] != sgm_pretrained_tokenizer_id(cased, "the"));
    sgm_tensor_free(ids);
    sgm_pretrained_tokenizer_free(cased);
    json_decref(root);
}

TEST(gpt2_has_two_files)
{
    json_t *root = data_json("gpt2.json"), *model = json_object_get(root, "model"), *merge;
    const json_t *merges = json_object_get(model, "merges");
    const char *folder = new_folder();
    char text[1 << 14], path[300];
    size_t size = (size_t)snprintf(text, sizeof text, "#version: 0.2\n"), i;
    json_array_foreach((json_t *)(uintptr_t)merges, i, merge) size += (size_t)snprintf(
        text + size, sizeof text - size, "%s %s\n", json_string_value(json_array_get(merge, 0)),
        json_string_value(json_array_get(merge, 1)));
    write_json(folder, "vocab.json", json_object_get(model, "vocab"));
    write_file(folder, "merges.txt", text, size);
    check_same_tokens("gpt2.json", folder, texts, sizeof texts / sizeof *texts);
    snprintf(path, sizeof path, "%s/vocab.json", folder);
    check_same_tokens("gpt2.json", path, texts, sizeof texts / sizeof *texts);
    json_decref(root);
}
