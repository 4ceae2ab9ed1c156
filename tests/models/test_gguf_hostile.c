/* Files of GGUF of strangers: what is wrong in them is refused by the file, the place and the remedy, before
 * memory is taken for it. */
#include "models/folders.h"

#include <math.h>
#include <sigma/models.h>

#define GGUF "tests/models/gguf"

/* A file in memory, which a test changes. */
typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static bytes read_fixture(const char *name)
{
    bytes b;
    b.data = read_file(GGUF, name, &b.size);
    return b;
}

static const char *write_bytes(const char *folder, const char *data, size_t size)
{
    static char path[300];
    write_file(folder, "model.gguf", data, size);
    snprintf(path, sizeof path, "%s/model.gguf", folder);
    return path;
}

static void check_message(const char *path, const char *message)
{
    if (strstr(sgm_last_error(), message) == NULL)
        TEST_FAIL("the error is \"%s\", expected \"%s\" in it", sgm_last_error(), message);
    if (strstr(sgm_last_error(), path) == NULL)
        TEST_FAIL("the error \"%s\" does not name the file", sgm_last_error());
}

/* Where a text stands in the file, and how many bytes behind its end something does. */
static char *behind(bytes b, const char *text, size_t more)
{
    char *at = memmem(b.data, b.size, text, strlen(text));
    if (at == NULL)
        TEST_FAIL("there is no '%s'", text);
    return at + strlen(text) + more;
}

/* A fixture with some bytes changed: the model is refused. */
static void refuse(const char *fixture, const char *text, size_t more, const void *new, size_t size,
                   const char *message)
{
    bytes b = read_fixture(fixture);
    memcpy(text != NULL ? behind(b, text, more) : b.data + more, new, size);
    const char *path = write_bytes(new_folder(), b.data, b.size);
    CHECK(sgm_pretrained_open(path) == NULL);
    check_message(path, message);
    free(b.data);
}

/* A fixture with one key more, whose value has the type `kind`, and as many bytes behind it as that may move
 * the tensors by: the model is refused. */
static void refuse_with(const char *fixture, const char *key, uint32_t kind, const void *value, size_t size,
                        const char *message)
{
    enum { COUNT = 16, VALUES = 24, MOVED = 64 };
    const uint64_t length = strlen(key);
    bytes b = read_fixture(fixture);
    char *data = calloc(b.size + sizeof length + length + sizeof kind + size + MOVED, 1), *at = data + VALUES;
    memcpy(data, b.data, VALUES);
    data[COUNT]++;
    at = mempcpy(at, &length, sizeof length);
    at = mempcpy(at, key, length);
    at = mempcpy(at, &kind, sizeof kind);
    at = mempcpy(at, value, size);
    at = mempcpy(at, b.data + VALUES, b.size - VALUES);
    const char *path = write_bytes(new_folder(), data, (size_t)(at - data) + MOVED);
    CHECK(sgm_pretrained_open(path) == NULL);
    check_message(path, message);
    free(data);
    free(b.data);
}

#define U32(number) &(uint32_t){number}, sizeof(uint32_t)
#define U64(number) &(uint64_t){number}, sizeof(uint64_t)

TEST(other_files_and_versions_are_named)
{
    refuse("llama.gguf", NULL, 0, "GGML", 4, "does not begin with GGUF");
    refuse("llama.gguf", NULL, 4, U32(1), "version 1, of August 2023, is not read; get a newer file");
    refuse("llama.gguf", NULL, 4, U32(9), "version 9 is not known; 2 and 3 are");
    refuse("llama.gguf", NULL, 4, U32(0x03000000), "the file is big endian; get the little-endian one");
    CHECK(sgm_pretrained_open("nowhere.gguf") == NULL);
    check_message("nowhere.gguf", "cannot read 'nowhere.gguf': No such file");
    const char *folder = new_folder();
    char path[300];
    snprintf(path, sizeof path, "%s/x.gguf", folder);
    CHECK(mkdir(path, 0777) == 0);
    CHECK(sgm_pretrained_open(path) == NULL);
    check_message(path, "is not a regular file");
}

TEST(absurd_counts_and_sizes_take_no_memory)
{
    refuse("llama.gguf", NULL, 8, U64(1ull << 60), "tensor 21 of 1152921504606846976 at byte");
    refuse("llama.gguf", NULL, 16, U64(1ull << 60), "of 1152921504606846976 at byte");
    refuse("llama.gguf", NULL, 24, U64(1ull << 62),
           "a text of 4611686018427387904 bytes, where at most 1000");
    refuse("llama.gguf", "general.name", 4, U64(1ull << 40),
           "the key 'general.name' at byte 101: a text of 1099511627776 bytes, where at most");
    refuse("llama.gguf", "general.name", 4, U64(UINT64_MAX), "a text of 18446744073709551615 bytes");
    refuse("llama.gguf", "general.name", 4, U64(400000000), "400000000 bytes are wanted, but only");
    refuse("llama.gguf", "tokenizer.ggml.scores", 8, U64(1ull << 61),
           "an array of 2305843009213693952 elements");
    refuse("llama.gguf", "tokenizer.ggml.scores", 8, U64((1ull << 62) + 1),
           "an array of 4611686018427387905 elements");
    refuse("llama.gguf", "tokenizer.ggml.scores", 8, U64(20000), "80000 bytes are wanted, but only");
    refuse("llama.gguf", "tokenizer.ggml.tokens", 8, U64(20000), "the key 'tokenizer.ggml.tokens' at byte");
    refuse("llama.gguf", "token_embd.weight", 4, U64(1ull << 62), "more numbers than a file of");
    refuse("llama.gguf", "token_embd.weight", 4, ((uint64_t[]){1ull << 40, 1ull << 40}), 16,
           "more numbers than a file of");
    refuse("llama.gguf", "token_embd.weight", 4, ((uint64_t[]){1ull << 32, 1ull << 32}), 16,
           "more numbers than a file of");
    refuse("llama.gguf", "token_embd.weight", 4, U64(0),
           "a dimension of 0; the file is cut off or damaged, get it anew");
    refuse("llama.gguf", "token_embd.weight", 0, U32(5), "5 dimensions, where at most 4 are possible");
}

TEST(keys_are_there_once)
{
    refuse_with("llama.gguf", "general.name", 4, U32(1),
                "the key 'general.name' is there twice; the file is cut off or damaged, get it anew");
    refuse_with("llama.gguf", "", 4, U32(1), "key 1 of 22 at byte 32: a name without a letter");
}

TEST(alignments_are_powers_of_two)
{
    static const uint32_t wrong[] = {0, 3, 33, UINT32_MAX, 1u << 31};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char message[100];
        snprintf(message, sizeof message, "'general.alignment' is %u; a power of 2 up to 1048576 is wanted",
                 wrong[i]);
        refuse_with("llama.gguf", "general.alignment", 4, U32(wrong[i]), message);
    }
    refuse_with("llama.gguf", "general.alignment", 11, U64(UINT64_MAX),
                "'general.alignment' is -1; a power of 2");
    refuse_with("llama.gguf", "general.alignment", 6, U32(0),
                "'general.alignment' is float32; a whole number is wanted");
}

TEST(values_are_of_their_types)
{
    refuse("llama.gguf", "llama.block_count", 0, U32(99), "99 is no type of a value");
    refuse("llama.gguf", "tokenizer.ggml.scores", 4, U32(9), "an array of arrays, which no model");
    refuse("llama.gguf", "llama.block_count", 0, U32(6),
           "'llama.block_count' is float32; a whole number is wanted");
    refuse("llama.gguf", "layer_norm_rms_epsilon", 0, U32(4),
           "'llama.attention.layer_norm_rms_epsilon' is uint32; a float is wanted");
    refuse("llama.gguf", "general.architecture", 12, "mamba", 5,
           "the architecture 'mamba' is not known; of files of GGUF these are: llama, qwen2, qwen3, gpt2");
    refuse("llama.gguf", "general.archi", 0, "\xff", 1, "a text that is no UTF-8, or has a 0 in it");
    refuse("llama.gguf", "general.archi", 0, "T", 1, "'general.architecture' is missing");
}

TEST(settings_and_tensors_must_be_of_one_model)
{
    refuse("llama.gguf", "llama.block_count", 4, U32(1000000),
           "'llama.block_count' is 1000000; a whole number from 1 to");
    refuse("llama.gguf", "llama.block_count", 4, U32(900),
           "'llama.block_count' is 900, but the files have 20 tensors");
    refuse("llama.gguf", "llama.block_count", 4, U32(3),
           "has no tensor 'blk.2.attn_norm.weight', which is needed by its metadata");
    refuse("llama.gguf", "llama.block_count", 4, U32(1),
           "the tensor 'blk.1.attn_norm.weight' is not one that Sigma knows of a model 'llama' with these "
           "settings of");
    refuse("llama.gguf", "embedding_length", 4, U32(1000000),
           "'llama.embedding_length' is 1000000, but the files have");
    refuse("llama.gguf", "feed_forward_length", 4, U32(25),
           "the tensor 'blk.0.ffn_up.weight' is (24, 16), but by its metadata it is (25, 16)");
    refuse("llama.gguf", "head_count_kv", 4, U32(4),
           "the tensor 'blk.0.attn_k.weight' is (8, 16), but by its metadata");
    refuse("llama.gguf", "llama.rope.dim", 0, "x", 1,
           "is not known here, and may change what the model computes");
    refuse("llama.gguf", "dimension_count", 4, U32(2),
           "'llama.rope.dimension_count' is 2; models are only read where");
    refuse("llama.gguf", "llama.block_coun", 0, "x", 1,
           "'llama.block_count' is missing; without it the file is no model");
    refuse("llama.gguf", "blk.1.ffn_gat", 0, "x", 1,
           "the tensor 'blk.1.ffn_gatx.weight' is not one that Sigma knows of a model 'llama'");
    refuse_with("llama.gguf", "llama.expert_count", 4, U32(8),
                "'llama.expert_count' is not known here, and may change");
    refuse_with(
        "llama.gguf", "split.count", 2, (uint16_t[]){3}, 2,
        "'split.count' is 3: the model is cut into so many files; llama-gguf-split --merge makes one");
    refuse("llama_linear.gguf", "rope.scaling.type", 12, "yarnxx", 6,
           "'llama.rope.scaling.type' is 'yarnxx'; these are known");
}

TEST(factors_of_rotary_positions_must_be_known)
{
    refuse_with("llama3.gguf", "llama.rope.scaling.factor", 6, &(float){2}, sizeof(float),
                "positions are scaled by 'llama.rope.scaling.factor' and by the tensor 'rope_freqs.weight'; "
                "models are only read where it is one of both");
    static const float factors[] = {1, 8, 8};
    bytes b = read_fixture("llama3.gguf");
    char *at = memmem(b.data, b.size, factors, sizeof factors);
    CHECK(at != NULL);
    memcpy(at, &(float){0.5F}, sizeof(float));
    const char *path = write_bytes(new_folder(), b.data, b.size);
    CHECK(sgm_pretrained_open(path) == NULL);
    check_message(
        path, "the factors of 'rope_freqs.weight' do not rise from 1 as those of Llama 3.1, and no others "
              "are known");
    free(b.data);
}

TEST(types_of_tensors_are_named)
{
    refuse("llama.gguf", "blk.0.ffn_up.weight", 20, U32(12),
           "the tensor 'blk.0.ffn_up.weight' at byte 2542: its type Q4_K is not read; these are: F32, F16, "
           "BF16, "
           "Q8_0, Q4_0. Take the model's file of such a type, or let llama.cpp write one: llama-quantize "
           "--allow-requantize FILE OUT.gguf Q8_0");
    refuse("llama.gguf", "blk.0.ffn_up.weight", 20, U32(77), "77 is no known type of tensors");
    refuse("llama.gguf", "blk.0.ffn_up.weight", 20, U32(8),
           "rows of 16 numbers, which are no blocks of 32, as Q8_0 has");
}

TEST(tensors_lie_in_the_file_and_side_by_side)
{
    refuse("llama.gguf", "blk.0.ffn_up.weight", 24, U64(33), "begins at 33, which is no multiple of 32");
    refuse("llama.gguf", "blk.0.ffn_up.weight", 24, U64(1ull << 40),
           "of the tensor 'blk.0.ffn_up.weight' end behind the file; the file is cut off or damaged, get it "
           "anew");
    refuse("llama.gguf", "blk.0.ffn_up.weight", 24, U64(UINT64_MAX - 31), "end behind the file");
    refuse("llama.gguf", "blk.0.ffn_up.weight", 24, U64(32),
           "have bytes in common; the file is cut off or damaged, get it anew");
    refuse("llama.gguf", "blk.1.ffn_gate.weight", 24, U64(0), "have bytes in common");
    refuse("llama.gguf", "blk.", 0, "1", 1, "is there twice; the file is cut off or damaged, get it anew");
}

/* As `refuse`, of the tokenizer. */
static void refuse_tokenizer(const char *fixture, const char *text, size_t more, const void *new, size_t size,
                             const char *message)
{
    bytes b = read_fixture(fixture);
    memcpy(behind(b, text, more), new, size);
    const char *path = write_bytes(new_folder(), b.data, b.size);
    CHECK(sgm_pretrained_tokenizer_open(path) == NULL);
    check_message(path, message);
    free(b.data);
}

/* Behind a key stand the type, and of an array the type and the count of its elements. */
TEST(tokenizers_are_of_one_piece)
{
    enum { TEXT = 12, ARRAY = 16 };
    refuse_tokenizer("llama.gguf", "tokenizer.ggml.mode", 0, "x", 1,
                     "'tokenizer.ggml.model' is missing; the file has no tokenizer");
    refuse_tokenizer("llama.gguf", "tokenizer.ggml.model", TEXT, "lorem", 5,
                     "'tokenizer.ggml.model' is 'lorem', which is not known; these are: llama, gpt2");
    refuse_tokenizer("llama.gguf", "tokenizer.ggml.token", 0, "x", 1,
                     "'tokenizer.ggml.tokens' is missing; the file has no tokenizer");
    refuse_tokenizer("llama.gguf", "w5", 0, "1", 1, "'tokenizer.ggml.tokens' has 'w51' twice");
    refuse_tokenizer("llama.gguf", "bos_token_id", 4, U32(61),
                     "'tokenizer.ggml.bos_token_id' is 61, but there are 61 tokens");
    refuse_tokenizer("llama.gguf", "tokenizer.ggml.score", 0, "x", 1,
                     "'tokenizer.ggml.scores' has 0 elements for 61 tokens");
    refuse_tokenizer("llama.gguf", "tokenizer.ggml.scores", ARRAY, &(float){NAN}, 4,
                     "'tokenizer.ggml.scores' has no number for token 0");
    refuse_tokenizer("gpt2.gguf", "tokenizer.ggml.pr", 0, "x", 1,
                     "'tokenizer.ggml.pre' is missing, so it is not known how texts are split");
    refuse_tokenizer("gpt2.gguf", "tokenizer.ggml.pre", TEXT, "gpt-3", 5,
                     "'tokenizer.ggml.pre' is 'gpt-3', which is not known; these are: gpt-2, llama-bpe");
    refuse_tokenizer("gpt2.gguf", "tokenizer.ggml.merges", ARRAY + 9, "_", 1,
                     "'tokenizer.ggml.merges' has 'a_b', where two tokens with a space between are wanted");
    refuse_tokenizer("gpt2.gguf", "tokenizer.ggml.merge", 0, "x", 1,
                     "'tokenizer.ggml.merges' is missing; 'gpt2' has some");
}

/* Whatever is done with the file, it is refused, or a model. */
static void try(const char *path)
{
    sgm_pretrained_free(sgm_pretrained_open(path));
    sgm_pretrained_tokenizer_free(sgm_pretrained_tokenizer_open(path));
}

/* The last bytes of a file are those that fill a tensor's room up. */
TEST(files_that_are_cut_off_anywhere_are_refused)
{
    bytes b = read_fixture("llama.gguf");
    const char *folder = new_folder();
    for (size_t size = 0; size < b.size - 32; size += size < 1000 ? 1 : size < 4000 ? 7 : 101) {
        const char *path = write_bytes(folder, b.data, size);
        CHECK(sgm_pretrained_open(path) == NULL);
        if (size >= 4)
            check_message(path, size < 24 ? "the beginning at byte" : "get it anew");
        CHECK(sgm_pretrained_tokenizer_open(path) == NULL);
    }
    free(b.data);
}

TEST(no_changed_byte_does_harm)
{
    static const char *const names[] = {"llama.gguf", "gpt2.gguf", "llama3.gguf"};
    const char *folder = new_folder();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bytes b = read_fixture(names[i]);
        for (size_t at = 0; at < 4000 && at < b.size; at += 5) {
            const char old = b.data[at];
            b.data[at] = (char)(at % 3 == 0 ? old ^ 1 : at % 3 == 1 ? 0 : 0xff);
            try(write_bytes(folder, b.data, b.size));
            b.data[at] = old;
        }
        free(b.data);
    }
}
