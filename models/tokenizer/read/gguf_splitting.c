/* How texts are split for byte-level tokens, by the names that llama.cpp gives ways of doing so. */
#include "tokenizer/read/gguf.h"

#include <stdlib.h>

#define SPLIT(regex)                                                                                         \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": \"Isolated\", "        \
    "\"pattern\": {\"Regex\": \"" regex "\"}}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "      \
    "\"use_regex\": false}]}"
#define GPT2 "{\"type\": \"ByteLevel\", \"add_prefix_space\": false}"
#define REST "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+"
#define WORDS "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+"
#define UPPER "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define LOWER "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define BEFORE "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"

static const sgm__gguf_splitting table[] = {
    {"gpt-2", false, false, NULL, GPT2},
    {"llama-bpe llama3 llama-v3", true, true, NULL, SPLIT(WORDS "|\\\\p{N}{1,3}" REST)},
    {"qwen2 deepseek-r1-qwen", false, false, "NFC", SPLIT(WORDS "|\\\\p{N}" REST)},
    {"smollm", false, false, NULL,
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\", \"individual_digits\": true}, " GPT2
     "]}"},
    /* Mistral NeMo */
    {"tekken", true, true, NULL,
     SPLIT(BEFORE UPPER "*" LOWER "+|" BEFORE UPPER "+" LOWER
                        "*|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*"
                        "|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")},
};

const sgm__gguf_splitting *sgm__gguf_splitting_at(size_t index)
{
    return index < sizeof table / sizeof *table ? &table[index] : NULL;
}

sgm_status sgm__gguf_add_splitters(const sgm__gguf_splitting *splitting, const char *file,
                                   sgm__splitters *out)
{
    json_t *json = json_loads(splitting->pre_tokenizer, 0, NULL);
    const sgm__node node = {json, file, "tokenizer.ggml.pre"};
    const sgm_status status = json != NULL ? sgm__read_splitter(out, &node, 0)
                                           : sgm_fail(SGM_ERROR_MEMORY, "no memory for a tokenizer");
    json_decref(json);
    return status;
}
