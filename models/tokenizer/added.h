/* Added tokens: texts that are tokens wherever they stand, found before the text is split. */
#ifndef SIGMA_MODELS_ADDED_H
#define SIGMA_MODELS_ADDED_H

#include "tokenizer/text/table.h"

typedef struct sgm__added_token {
    char *content; /* with a 0 behind */
    size_t size;
    uint32_t id;
    bool single_word; /* only where no letter stands before or behind */
    bool left, right; /* takes white space before it, behind it, along */
    bool normalized;  /* is looked for in the normalised text */
    bool special;     /* is left out by decoding without special tokens */
} sgm__added_token;

typedef struct sgm__added {
    sgm__added_token *tokens;
    size_t count, room;
    sgm__vocabulary names; /* by number */
    sgm__trie raw,
        normal; /* indices of tokens that are looked for in the text as it is, in the normalised one */
    bool begins[2][256]; /* bytes that one of them begins with */
} sgm__added;

/* A part of a text: a token, or what lies between. */
typedef struct sgm__part {
    size_t start, end;
    const sgm__added_token *token; /* NULL: text */
} sgm__part;

typedef struct sgm__parts {
    sgm__part *list;
    size_t count, room;
} sgm__parts;

void sgm__added_free(sgm__added *added);
/* Has a token looked for: `text` is its content, normalised if it is to be. */
sgm_status sgm__added_look_for(sgm__added *added, size_t index, const char *text, size_t size);
/* The token of a number; NULL: none of the added ones. */
const sgm__added_token *sgm__added_find(const sgm__added *added, uint32_t id);
/* Cuts a valid text at added tokens; of several at one place the longest. */
sgm_status sgm__added_cut(const sgm__added *added, bool normalized, const char *text, size_t size,
                          sgm__parts *out);

#endif
