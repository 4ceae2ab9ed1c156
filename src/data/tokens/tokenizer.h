/* The inside of tokenizers: their table, and what learning and encoding share. Internal to src/data/tokens.
 *
 * A tokenizer is a table of byte pairs: tokens 0 to 255 are the bytes, token 256 + i is the pair parts[i] of
 * two tokens before it. tokenizer.c encodes, decodes, loads and saves; tokenizer_learn.c learns a table from
 * a text; dataset_tokens.c makes a dataset of a text's tokens. A tokenizer never changes once it is made, so
 * any thread may use it. */
#ifndef SGM_DATA_TOKENS_TOKENIZER_H
#define SGM_DATA_TOKENS_TOKENIZER_H

#include "base/base.h"
#include <sigma/text.h>

#define SGM__BYTES 256
#define SGM__MAX_VOCABULARY ((int64_t)1 << 20)
/* Bytes of the longest piece, and so of the longest token. Encoding a piece takes time by the square of its
 * length, and a text without spaces would be one single piece; so longer runs are cut. */
#define SGM__MAX_PIECE 64

/* A table from pairs of tokens to numbers: open addressing with linear probing, at most half full. */
typedef struct sgm__pairs {
    struct sgm__pair {
        int32_t left, right; /* left -1: empty */
        int64_t number;
    } * slots;
    size_t count, room; /* room: a power of 2 */
} sgm__pairs;
/* Finds the entry of a pair, which is made with number 0 if there is none; NULL and an error when memory
 * ends. The pointer is valid until the next call. */
struct sgm__pair *sgm__pairs_add(sgm__pairs *pairs, int32_t left, int32_t right);
void sgm__pairs_free(sgm__pairs *pairs);

/* `parts` and `sizes` have vocabulary - 256 entries; they say what a token consists of, for decoding.
 * `tokens` is the way back, from a pair to its token, for encoding. */
struct sgm_tokenizer {
    int64_t vocabulary;
    int32_t (*parts)[2]; /* the two tokens of token 256 + i */
    int32_t *sizes;      /* bytes of token 256 + i */
    size_t part_room, size_room;
    sgm__pairs tokens; /* the number of a pair is its token */
};
/* Makes the pair of two tokens the next token. Fails if the pair is a token already, or if its bytes are more
 * than SGM__MAX_PIECE, which no piece could contain. */
sgm_status sgm__tokenizer_add(sgm_tokenizer *tokenizer, int32_t left, int32_t right);
/* The length in bytes of the piece that begins at `text`, of which `left` bytes are there (at least 1): a
 * word, a number, a run of spaces or of other characters. Tokens never go across the border of a piece. */
size_t sgm__piece(const unsigned char *text, size_t left);
/* Replaces each (left, right) in a row of tokens by `merged`, in place, from the front; returns how many
 * tokens are left. */
size_t sgm__merge_pairs(int32_t *tokens, size_t count, int32_t left, int32_t right, int32_t merged);

#endif
