/* The inside of tokenizers: their table, and what learning and encoding share. Internal to src/data/tokens.
 *
 * A tokenizer is a table of byte pairs: tokens 0 to 255 are the bytes, token 256 + i is the pair parts[i] of
 * two tokens before it. tokenizer.c encodes, decodes, loads and saves; tokenizer_learn.c learns a table from
 * a text; dataset_tokens.c makes a dataset of a text's tokens, token_window.c one example of a text;
 * tokenizer_json.c keeps a tokenizer in JSON. A tokenizer never changes once it is made, so
 * any thread may use it. */
#ifndef SGM_DATA_TOKENS_TOKENIZER_H
#define SGM_DATA_TOKENS_TOKENIZER_H

#include "base/base.h"
#include <jansson.h>
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
/* NULL on failure. */
sgm_tokenizer *sgm__tokenizer_copy(const sgm_tokenizer *tokenizer);
/* --- tokenizer_json.c --- */
/* The member "tokenizer" of an object; one of bytes has none. */
void sgm__tokenizer_put(const sgm_tokenizer *tokenizer, json_t *object, bool *failed);
/* The tokenizer of an object, one of bytes without the member; NULL and an error that names it. */
sgm_tokenizer *sgm__tokenizer_take(const json_t *object);

/* --- token_window.c --- */
/* The most tokens of a window that is one example, and whether there are so many. */
#define SGM__MAX_WINDOW (1 << 20)
/* The most that a window has where nothing is said of it. */
#define SGM__DEFAULT_WINDOW 512
sgm_status sgm__token_window_check(int64_t window);
/* Bytes of a text that decide the tokens of a window. */
size_t sgm__token_window_bytes(int32_t window);
/* The first tokens of `size` bytes of text, at most as many as the window has, which the number that no token
 * has, the vocabulary, fills up; *length becomes how many are the text's. Of a long text only the beginning
 * is read. */
sgm_status sgm__token_window(const sgm_tokenizer *tokenizer, const void *text, size_t size, int32_t window,
                             float *tokens, int32_t *length);
/* Appends the layers that are proposed for such windows, from the input (of a field, or of "inputs" if it is
 * NULL) to one vector for each text. */
void sgm__token_window_network(const sgm_tokenizer *tokenizer, int32_t window, const char *field,
                               sgm__text *text);
/* The length in bytes of the piece that begins at `text`, of which `left` bytes are there (at least 1): a
 * word, a number, a run of spaces or of other characters. Tokens never go across the border of a piece. */
size_t sgm__piece(const unsigned char *text, size_t left);
/* Replaces each (left, right) in a row of tokens by `merged`, in place, from the front; returns how many
 * tokens are left. */
size_t sgm__merge_pairs(int32_t *tokens, size_t count, int32_t left, int32_t right, int32_t merged);

#endif
