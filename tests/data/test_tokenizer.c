/* Tokenizers: any bytes come back, what is learnt, files that are wrong; windows of tokens. */
#include "base/base.h"
#include "test.h"

#include <sigma/data.h>
#include <sigma/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char song[] =
    "row, row, row your boat, gently down the stream.\nmerrily, merrily, merrily, merrily, "
    "life is but a dream.\n";

static void check_back(const sgm_tokenizer *tokenizer, const void *text, size_t size)
{
    size_t length = 0;
    sgm_tensor *tokens = sgm_tokenizer_encode(tokenizer, text, size);
    CHECK_OK(tokens);
    char *back = sgm_tokenizer_decode(tokenizer, sgm_tensor_const_data(tokens),
                                      (size_t)sgm_tensor_shape(tokens)->dims[0], &length);
    CHECK_OK(back);
    CHECK_INT(length, size);
    CHECK_INT(memcmp(back, text, size), 0);
    sgm_string_free(back);
    sgm_tensor_free(tokens);
}

static int64_t count_of(const sgm_tokenizer *tokenizer, const char *text)
{
    sgm_tensor *tokens = sgm_tokenizer_encode(tokenizer, text, strlen(text));
    CHECK_OK(tokens);
    int64_t count = sgm_tensor_shape(tokens)->dims[0];
    sgm_tensor_free(tokens);
    return count;
}

TEST(any_bytes_come_back)
{
    unsigned char all[5000];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof all; i++) {
        state = state * 1664525U + 1013904223U;
        all[i] = (unsigned char)(i < 256 ? i : state >> (i % 3 == 0 ? 24 : 29)); /* some repeat */
    }
    sgm_tokenizer *bytes = sgm_byte_tokenizer(), *learnt = sgm_tokenizer_learn(all, sizeof all, 400);
    CHECK_OK(learnt);
    CHECK_INT(sgm_tokenizer_vocabulary(bytes), 256);
    CHECK(sgm_tokenizer_vocabulary(learnt) > 300);
    for (size_t size = 0; size < 300; size++) {
        check_back(bytes, all + size, size);
        check_back(learnt, all + 17 * size % 4000, size);
    }
    check_back(learnt, song, sizeof song - 1);
    sgm_tokenizer_free(bytes);
    sgm_tokenizer_free(learnt);
}

/* Sennrich et al.'s example, worked out by hand: "es", "est", " w", ... */
TEST(the_maximum_frequent_pairs_are_learnt_first)
{
    static const char words[] =
        "low low low low low lower lower newest newest newest newest newest newest widest widest widest";
    sgm_tokenizer *tokenizer = sgm_tokenizer_learn(words, sizeof words - 1, 259);
    CHECK_INT(sgm_tokenizer_vocabulary(tokenizer), 259);
    char *text = sgm_tokenizer_decode(tokenizer, (const int64_t[]){256, 257, 258}, 3, NULL);
    CHECK_STR(text, "esestlo"); /* e s: 9 times; es t: 9; l o: 7 (and o w: 7, which has higher bytes) */
    CHECK_INT(count_of(tokenizer, "lowest"), 3); /* lo w est */
    CHECK_INT(count_of(tokenizer, "lo w"), 3);   /* no pair across words */
    sgm_string_free(text);
    sgm_tokenizer_free(tokenizer);
}

enum { MAXIMUM_TOKENS = 256 + 200, MAXIMUM_LETTERS = 6000 };

/* Tokens in a row, and which of them begin a word: no pair goes over that. */
typedef struct plain {
    int tokens[MAXIMUM_LETTERS], count;
    bool begins[MAXIMUM_LETTERS];
    int pairs[MAXIMUM_TOKENS][MAXIMUM_TOKENS];
} plain;

/* The definition itself: all pairs are counted anew for each token. False: none comes twice. */
static bool learn_one(plain *p, int token, int *left, int *right)
{
    int best = 1, kept = 0;
    memset(p->pairs, 0, sizeof p->pairs);
    for (int i = 0; i + 1 < p->count; i++)
        if (!p->begins[i + 1])
            p->pairs[p->tokens[i]][p->tokens[i + 1]]++;
    for (int a = 0; a < token; a++)
        for (int b = 0; b < token; b++)
            if (p->pairs[a][b] > best) {
                best = p->pairs[a][b];
                *left = a;
                *right = b;
            }
    for (int i = 0; i < p->count; i++, kept++) {
        bool pair =
            i + 1 < p->count && !p->begins[i + 1] && p->tokens[i] == *left && p->tokens[i + 1] == *right;
        p->begins[kept] = p->begins[i];
        p->tokens[kept] = best > 1 && pair ? token : p->tokens[i];
        i += best > 1 && pair;
    }
    p->count = kept;
    return best > 1;
}

/* Few letters, so that pairs of equal ones lie over each other, and many are equally frequent. */
TEST(what_is_learnt_is_what_counting_anew_gives)
{
    static char text[MAXIMUM_LETTERS + 1];
    static plain p;
    sgm__random random = sgm__random_make(3, 0);
    for (int letters = 2; letters <= 20; letters += 6) {
        p.count = MAXIMUM_LETTERS;
        for (int i = 0; i < MAXIMUM_LETTERS; i++) {
            bool space = i > 0 && text[i - 1] != ' ' && i + 1 < MAXIMUM_LETTERS &&
                         (i % 40 == 39 || sgm__random_uint32(&random) % 8 == 0);
            text[i] = (char)(space ? ' ' : 'a' + (int)(sgm__random_uint32(&random) % (unsigned)letters));
            p.tokens[i] = text[i];
            p.begins[i] = space; /* the space goes with the word */
        }
        sgm_tokenizer *learnt = sgm_tokenizer_learn(text, MAXIMUM_LETTERS, MAXIMUM_TOKENS);
        CHECK_OK(learnt);
        char *bytes[MAXIMUM_TOKENS] = {NULL};
        int left = 0, right = 0;
        for (int token = 256; token < MAXIMUM_TOKENS; token++) {
            CHECK(learn_one(&p, token, &left, &right));
            char expected[200];
            snprintf(expected, sizeof expected, "%s%s", left < 256 ? (char[]){(char)left, '\0'} : bytes[left],
                     right < 256 ? (char[]){(char)right, '\0'} : bytes[right]);
            int64_t number = token;
            bytes[token] = sgm_tokenizer_decode(learnt, &number, 1, NULL);
            CHECK_STR(bytes[token], expected);
        }
        sgm_tensor *encoded = sgm_tokenizer_encode(learnt, text, MAXIMUM_LETTERS);
        CHECK_INT(sgm_tensor_shape(encoded)->dims[0], p.count);
        for (int i = 0; i < p.count; i++)
            CHECK_INT(((const int64_t *)sgm_tensor_const_data(encoded))[i], p.tokens[i]);
        sgm_tensor_free(encoded);
        for (int token = 256; token < MAXIMUM_TOKENS; token++)
            sgm_string_free(bytes[token]);
        sgm_tokenizer_free(learnt);
    }
}

TEST(a_larger_vocabulary_makes_texts_shorter)
{
    sgm_tokenizer *few = sgm_tokenizer_learn(song, sizeof song - 1, 270),
                  *many = sgm_tokenizer_learn(song, sizeof song - 1, 100000);
    CHECK(count_of(few, song) < (int64_t)sizeof song - 1);
    CHECK(count_of(many, song) < count_of(few, song));
    CHECK(sgm_tokenizer_vocabulary(many) < 400); /* until no pair comes twice */
    CHECK_INT(count_of(many, " merrily"), 1);
    sgm_tokenizer_free(few);
    sgm_tokenizer_free(many);
}

static char *path_of(const char *name)
{
    static char path[300];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/sigma-%d-%s", folder != NULL ? folder : "/tmp", (int)getpid(), name);
    return path;
}

TEST(files_bring_back_the_same)
{
    char *path = path_of("tokens");
    sgm_tokenizer *learnt = sgm_tokenizer_learn(song, sizeof song - 1, 290);
    CHECK_OK(sgm_tokenizer_save(learnt, path));
    sgm_tokenizer *loaded = sgm_tokenizer_load(path);
    CHECK_OK(loaded);
    CHECK_INT(sgm_tokenizer_vocabulary(loaded), sgm_tokenizer_vocabulary(learnt));
    sgm_tensor *a = sgm_tokenizer_encode(learnt, song, sizeof song - 1),
               *b = sgm_tokenizer_encode(loaded, song, sizeof song - 1);
    CHECK(sgm_shape_equal(sgm_tensor_shape(a), sgm_tensor_shape(b)));
    CHECK_INT(memcmp(sgm_tensor_const_data(a), sgm_tensor_const_data(b),
                     (size_t)sgm_tensor_shape(a)->dims[0] * sizeof(int64_t)),
              0);
    sgm_tensor_free(a);
    sgm_tensor_free(b);
    sgm_tokenizer_free(learnt);
    sgm_tokenizer_free(loaded);
    unlink(path);
}

static void check_file(const char *text, size_t size, const char *message)
{
    char *path = path_of("wrong");
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL && fwrite(text, 1, size, file) == size && fclose(file) == 0);
    CHECK_ERROR(sgm_tokenizer_load(path), message);
    unlink(path);
}
#define CHECK_FILE(text, message) check_file(text, sizeof text - 1, message)

TEST(wrong_files_are_told)
{
    CHECK_ERROR(sgm_tokenizer_load("/no/such/file"), "/no/such/file");
    CHECK_FILE("", "this is no tokenizer: its first line is not \"sigma-bpe 1\"");
    CHECK_FILE("sigma-bpe 12\n", "this is no tokenizer");
    CHECK_FILE("sigma-bpe 1\n1 2\n3", "line 3: expected two tokens below 257 with a space between them");
    CHECK_FILE("sigma-bpe 1\n1 256\n", "line 2: expected two tokens below 256");
    CHECK_FILE("sigma-bpe 1\n1 -2\n", "line 2: expected two tokens");
    CHECK_FILE("sigma-bpe 1\n1  2\n", "line 2: expected two tokens");
    CHECK_FILE("sigma-bpe 1\n1 99999999999999999999\n", "line 2: expected two tokens");
    CHECK_FILE("sigma-bpe 1\n1 2\n1 2\n", "line 3: the pair 1 2 is there twice");
    CHECK_FILE("sigma-bpe 1\n1 2\0\n", "this is no tokenizer");
    /* each twice as long as the one before */
    CHECK_FILE("sigma-bpe 1\n1 1\n256 256\n257 257\n258 258\n259 259\n260 260\n261 261\n",
               "line 8: token 262 would be 128 bytes long; 64 is the maximum");
}

TEST(wrong_arguments_are_told)
{
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    CHECK_ERROR(sgm_tokenizer_learn(song, 0, 300), "there is no text to train a tokenizer on");
    CHECK_ERROR(sgm_tokenizer_learn(song, 5, 255), "a tokenizer has 256 to 1048576 tokens, not 255");
    CHECK_ERROR(sgm_tokenizer_decode(bytes, (const int64_t[]){65, 256}, 2, NULL),
                "256 is no token: there are 256, numbered from 0");
    CHECK_ERROR(sgm_tokenizer_encode(NULL, song, 1), "wants a tokenizer and a text, got NULL");
    CHECK_ERROR(sgm_token_dataset("song", bytes, song, 64, NULL),
                "the text has 64 tokens; 1 window of 64 and what follows need 65");
    CHECK_ERROR(sgm_token_dataset("song", bytes, song, 64, SGM_TOKENS(.window = -1)),
                "window, step and streams are 1 to 16777216, not -1");
    sgm_tokenizer_free(bytes);
}

TEST(windows_of_a_text_and_what_follows)
{
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    sgm_dataset *data =
        sgm_token_dataset("alphabet", bytes, "abcdefgh", 8, SGM_TOKENS(.window = 3, .step = 2));
    CHECK_OK(data);
    int64_t examples;
    CHECK_OK(sgm_dataset_examples(data, &examples));
    CHECK_INT(examples, 3); /* abc-d, cde-f, efg-h */
    const sgm_block *block;
    CHECK_OK(sgm_dataset_fetch_block(data, 0, &block));
    const sgm_tensor *inputs = sgm_block_field(block, "inputs"), *targets = sgm_block_field(block, "targets");
    for (int64_t i = 0; i < 3; i++)
        for (int64_t k = 0; k < 3; k++) {
            CHECK_NEAR(sgm_tensor_get(inputs, (const int64_t[]){i, k}), 'a' + 2 * i + k, 0);
            CHECK_NEAR(sgm_tensor_get(targets, (const int64_t[]){i, k}), 'b' + 2 * i + k, 0);
        }
    sgm_dataset_release_block(data, block);
    sgm_dataset_free(data);
    sgm_tokenizer_free(bytes);
}

/* Six examples, of which minibatches of two go on with each other. */
TEST(streams_of_a_text_go_on)
{
    static const float begins[] = {0, 6, 2, 8, 4, 10};
    sgm_tokenizer *bytes = sgm_byte_tokenizer();
    sgm_dataset *data = sgm_token_dataset("numbers", bytes, "\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16", 15,
                                          SGM_TOKENS(.window = 2, .streams = 2));
    CHECK_OK(data);
    const sgm_block *block;
    CHECK_OK(sgm_dataset_fetch_block(data, 0, &block));
    CHECK_INT(block->count, 6); /* the seventh has no partner */
    for (int64_t i = 0; i < 6; i++)
        CHECK_NEAR(sgm_tensor_get(sgm_block_field(block, "inputs"), (const int64_t[]){i, 0}), begins[i], 0);
    sgm_dataset_release_block(data, block);
    sgm_dataset_free(data);
    CHECK_ERROR(sgm_token_dataset("song", bytes, song, 64, SGM_TOKENS(.window = 8, .streams = 9)),
                "the text has 64 tokens; 9 windows of 8 and what follows need 73");
    sgm_tokenizer_free(bytes);
}
