/* Decoders: what makes a text of the texts of tokens. */
#ifndef SIGMA_MODELS_DECODE_H
#define SIGMA_MODELS_DECODE_H

#include "tokenizer/text/pattern.h"

typedef enum sgm__decoder_kind {
    SGM__DECODE_BYTES,     /* characters that stand for bytes (GPT-2's table) */
    SGM__DECODE_WORDPIECE, /* a space before each token that does not begin with `text` */
    SGM__DECODE_METASPACE, /* a space for each `text`, but not at the beginning */
    SGM__DECODE_FALLBACK,  /* a byte for each <0x..> */
    SGM__DECODE_FUSE,      /* one token of all */
    SGM__DECODE_STRIP,     /* up to `left` and `right` times `text` at the ends of each token */
    SGM__DECODE_REPLACE,   /* `text` for each match of `pattern` */
    SGM__DECODE_SUFFIX     /* a space for each `text`, but not at the end */
} sgm__decoder_kind;

typedef struct sgm__decoder {
    sgm__decoder_kind kind;
    char *text;
    size_t size;
    sgm__pattern pattern;
    size_t left, right;
    bool flag; /* WordPiece: spaces before punctuation go; Metaspace: one before the text, too */
} sgm__decoder;

typedef struct sgm__decoders {
    sgm__decoder *steps;
    size_t count, room;
} sgm__decoders;

/* Tokens as they are decoded: texts that end where the next one begins. */
typedef struct sgm__texts {
    sgm__buffer text;
    size_t *ends;
    size_t count, room;
} sgm__texts;

void sgm__decoders_free(sgm__decoders *decoders);
void sgm__texts_free(sgm__texts *texts);
sgm_status sgm__texts_add(sgm__texts *texts, const char *text, size_t size);
/* Applies all steps to `texts[0]`, where the result is, one text after the other; `texts[1]` is used in
 * between. */
sgm_status sgm__decode(const sgm__decoders *decoders, sgm__matcher *matcher, sgm__texts *texts);

#endif
