/* What is done to texts before pairs are made: for byte-level tokens by the names that llama.cpp gives ways
 * of splitting, for those of SentencePiece with spaces as letters. */
#include "tokenizer/gguf/tokens.h"

#include <stdlib.h>
#include <string.h>

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

static sgm_status add_splitters(const sgm__gguf_splitting *splitting, sgm__splitters *out)
{
    json_t *json = json_loads(splitting->pre_tokenizer, 0, NULL);
    const sgm__node node = {json, splitting->names, ""};
    const sgm_status status = json != NULL ? sgm__read_splitter(out, &node, 0)
                                           : sgm_fail(SGM_ERROR_MEMORY, "no memory for a tokenizer");
    json_decref(json);
    return status;
}

sgm_status sgm__gguf_add_splitting(sgm_pretrained_tokenizer *tokenizer, const sgm__gguf_splitting *splitting)
{
    sgm__normalizer *step;
    if (splitting->normal_form != NULL) {
        if (!(step = sgm__new_normalizer(&tokenizer->normalizers, SGM__NORMAL_FORM)) ||
            !(step->form = sgm__normal_form_open(splitting->normal_form)))
            return sgm_last_status();
    }
    SGM__PASS(add_splitters(splitting, &tokenizer->splitters));
    return sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_BYTES) ? SGM_OK : SGM_ERROR_MEMORY;
}

/* --- SentencePiece --- */

/* A text that a step writes. */
static sgm_status set_text(char **text, size_t *size, const char *value)
{
    *size = strlen(value);
    *text = sgm__copy_text(value, *size);
    return *text != NULL ? SGM_OK : SGM_ERROR_MEMORY;
}

sgm_status sgm__gguf_add_spaces(sgm_pretrained_tokenizer *tokenizer, bool before)
{
    sgm__normalizer *normalizer;
    sgm__decoder *decoder;
    if (before) {
        if (!(normalizer = sgm__new_normalizer(&tokenizer->normalizers, SGM__PREPEND)))
            return SGM_ERROR_MEMORY;
        SGM__PASS(set_text(&normalizer->content, &normalizer->size, "\u2581"));
    }
    if (!(normalizer = sgm__new_normalizer(&tokenizer->normalizers, SGM__REPLACE)))
        return SGM_ERROR_MEMORY;
    SGM__PASS(sgm__pattern_open_string(&normalizer->pattern, " ", 1));
    SGM__PASS(set_text(&normalizer->content, &normalizer->size, "\u2581"));
    if (!(decoder = sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_REPLACE)))
        return SGM_ERROR_MEMORY;
    SGM__PASS(sgm__pattern_open_string(&decoder->pattern, "\u2581", 3));
    SGM__PASS(set_text(&decoder->text, &decoder->size, " "));
    if (!sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_FALLBACK) ||
        !sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_FUSE))
        return SGM_ERROR_MEMORY;
    if (!before)
        return SGM_OK;
    if (!(decoder = sgm__new_decoder(&tokenizer->decoders, SGM__DECODE_STRIP)))
        return SGM_ERROR_MEMORY;
    decoder->left = 1;
    return set_text(&decoder->text, &decoder->size, " ");
}
