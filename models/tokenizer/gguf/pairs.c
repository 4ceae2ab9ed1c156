/* Which tokens of a vocabulary two others become: SentencePiece puts any two together whose texts make a
 * third one's (Kudo and Richardson, 2018). */
#include "tokenizer/gguf/tokens.h"
#include "tokenizer/text/utf8.h"

/* Bytes of a token that consists of others: SentencePiece makes none of over 64. */
#define LONGEST 256

static bool is_normal(const int32_t *types, uint32_t id)
{
    return id != SGM__NONE && (types[id] == SGM__GGUF_NORMAL || types[id] == SGM__GGUF_UNUSED);
}

sgm_status sgm__gguf_pairs(const sgm__vocabulary *vocabulary, const int32_t *types, sgm__gguf_pair pair,
                           void *user)
{
    for (uint32_t id = 0; id < vocabulary->count; id++) {
        size_t size;
        const char *text = sgm__vocabulary_token(vocabulary, id, &size);
        if (text == NULL || size > LONGEST || !is_normal(types, id))
            continue;
        for (size_t at = sgm__utf8_length(*text); at < size; at += sgm__utf8_length(text[at])) {
            const uint32_t first = sgm__vocabulary_find(vocabulary, text, at);
            const uint32_t second =
                is_normal(types, first) ? sgm__vocabulary_find(vocabulary, text + at, size - at) : SGM__NONE;
            if (is_normal(types, second))
                SGM__PASS(pair(user, first, second, id));
        }
    }
    return SGM_OK;
}
