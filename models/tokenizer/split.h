/* Pre-tokenisers: a text becomes pieces, each of which the model makes tokens of by itself. */
#ifndef SIGMA_MODELS_SPLIT_H
#define SIGMA_MODELS_SPLIT_H

#include "tokenizer/text/pattern.h"

typedef struct sgm__piece {
    size_t at, size; /* in the text of the pieces */
    bool first;      /* it begins where the whole text does */
} sgm__piece;

typedef struct sgm__pieces {
    sgm__buffer text;
    sgm__piece *list;
    size_t count, room;
} sgm__pieces;

typedef enum sgm__splitter_kind {
    SGM__SPACE_BEFORE,     /* a space before each piece that has none */
    SGM__METASPACE,        /* `mark` for each space, and before a piece as `before` says */
    SGM__BYTES,            /* each byte becomes the character that stands for it */
    SGM__SPLIT_PATTERN,    /* borders where `pattern` matches */
    SGM__SPLIT_CHARACTERS, /* borders at each character that `is_border` */
    SGM__SPLIT_WORDS       /* runs of letters, runs of others; spaces go */
} sgm__splitter_kind;

/* What becomes of what a splitter matches. */
typedef enum sgm__behavior {
    SGM__REMOVED,
    SGM__ISOLATED,
    SGM__MERGED_WITH_PREVIOUS,
    SGM__MERGED_WITH_NEXT,
    SGM__CONTIGUOUS
} sgm__behavior;

typedef enum sgm__where { SGM__ALWAYS, SGM__FIRST, SGM__NEVER } sgm__where;

typedef struct sgm__splitter {
    sgm__splitter_kind kind;
    sgm__pattern pattern;
    bool (*is_border)(uint32_t character);
    sgm__behavior behavior;
    bool invert; /* what does not match is taken for a match */
    sgm__where before;
    uint32_t mark;
} sgm__splitter;

typedef struct sgm__splitters {
    sgm__splitter *steps;
    size_t count, room;
} sgm__splitters;

void sgm__splitters_free(sgm__splitters *splitters);
void sgm__pieces_free(sgm__pieces *pieces);
/* Splits a valid text; the pieces are in `pieces[0]`, and `pieces[1]` is used in between. */
sgm_status sgm__split(const sgm__splitters *splitters, sgm__matcher *matcher, const char *text, size_t size,
                      bool first, sgm__pieces pieces[2]);

/* The character that stands for a byte in byte-level tokens (GPT-2's table): U+0021 to U+0143. */
uint32_t sgm__byte_character(unsigned char byte);
/* The byte that a character stands for; -1: none. */
int sgm__character_byte(uint32_t character);

#endif
