/* The inside of tokenizers. Internal. */
#ifndef SGM_DATA_TOKENS_TOKENIZER_H
#define SGM_DATA_TOKENS_TOKENIZER_H

#include "base/base.h"
#include <sigma/text.h>

#define SGM__BYTES 256
#define SGM__MAX_VOCABULARY ((int64_t)1 << 20)
/* Longer runs are cut, so that no text takes time by the square of its length. */
#define SGM__MAX_PIECE 64

/* A table from pairs of tokens to numbers; open addressing, at most half full. */
typedef struct sgm__pairs {
    struct sgm__pair {
        int32_t left, right; /* left -1: empty */
        int64_t number;
    } * slots;
    size_t count, room; /* room: a power of 2 */
} sgm__pairs;
/* The slot of a pair; NULL and an error when memory ends. A new one has number 0. */
struct sgm__pair *sgm__pairs_add(sgm__pairs *pairs, int32_t left, int32_t right);
void sgm__pairs_free(sgm__pairs *pairs);

struct sgm_tokenizer {
    int64_t vocabulary;
    int32_t (*parts)[2]; /* of token 256 + i */
    int32_t *sizes;      /* bytes of token 256 + i */
    size_t part_room, size_room;
    sgm__pairs tokens; /* the token of a pair */
};
/* The pair becomes the next token; its bytes must not be more than a piece has. */
sgm_status sgm__tokenizer_add(sgm_tokenizer *tokenizer, int32_t left, int32_t right);
/* How many bytes the piece has that begins here; `left` are there, at least 1. */
size_t sgm__piece(const unsigned char *text, size_t left);
/* Each pair (left, right) in a row of tokens becomes one; returns how many tokens are left. */
size_t sgm__merge_pairs(int32_t *tokens, size_t count, int32_t left, int32_t right, int32_t merged);

#endif
