/* Tokenizers in files of GGUF: what reading and writing them have in common. */
#ifndef SIGMA_MODELS_GGUF_TOKENS_H
#define SIGMA_MODELS_GGUF_TOKENS_H

#include "gguf/gguf.h"
#include "tokenizer/read/json.h"

/* What tokenizer.ggml.token_type says of a token. */
typedef enum sgm__gguf_token {
    SGM__GGUF_NORMAL = 1,
    SGM__GGUF_UNKNOWN,
    SGM__GGUF_CONTROL,
    SGM__GGUF_USER_DEFINED,
    SGM__GGUF_UNUSED,
    SGM__GGUF_BYTE
} sgm__gguf_token;

/* How texts are split before bytes are paired, which a file says by one word. */
typedef struct sgm__gguf_splitting {
    const char *names;         /* "llama-bpe llama3", the first one is written */
    bool ignore_merges;        /* a piece that is a token is one whatever the pairs */
    bool begins;               /* a text begins with a token of its own, unless the file says otherwise */
    const char *normal_form;   /* what is done to a text before; NULL: nothing */
    const char *pre_tokenizer; /* as tokenizer.json has it */
} sgm__gguf_splitting;
/* From 0; NULL past the last. */
const sgm__gguf_splitting *sgm__gguf_splitting_at(size_t index);
/* Gives a tokenizer the steps of byte-level pairs, which split as this says. */
sgm_status sgm__gguf_add_splitting(sgm_pretrained_tokenizer *tokenizer, const sgm__gguf_splitting *splitting);
/* Gives a tokenizer the steps of SentencePiece: a space is '▁' in tokens; `before`: one stands before a
 * text. */
sgm_status sgm__gguf_add_spaces(sgm_pretrained_tokenizer *tokenizer, bool before);

/* Two tokens of which a third one consists. An error ends the search. */
typedef sgm_status (*sgm__gguf_pair)(void *user, uint32_t first, uint32_t second, uint32_t both);
/* Calls `pair` for each that SentencePiece would put together: of three normal tokens, as `types` says. */
sgm_status sgm__gguf_pairs(const sgm__vocabulary *vocabulary, const int32_t *types, sgm__gguf_pair pair,
                           void *user);

/* Adds the tokenizer of a folder with this config.json to metadata; the model has vectors for `count` tokens.
 * An error: llama.cpp would make other tokens. */
sgm_status sgm__gguf_put_tokenizer(sgm__gguf_draft *draft, const char *folder, const json_t *config,
                                   uint32_t count);

#endif
