/* What makes tokens of pieces: byte pair encoding, WordPiece, a unigram language model. */
#ifndef SIGMA_MODELS_MODEL_H
#define SIGMA_MODELS_MODEL_H

#include "tokenizer/text/table.h"

/* Numbers of tokens, in order. */
typedef struct sgm__ids {
    uint32_t *list;
    size_t count, room;
} sgm__ids;

static inline sgm_status sgm__ids_add(sgm__ids *ids, uint32_t id)
{
    if (ids->count == ids->room) {
        void *list = ids->list;
        SGM__PASS(sgm__array_reserve(&list, &ids->room, ids->count + 1, sizeof *ids->list));
        ids->list = list;
    }
    ids->list[ids->count++] = id;
    return SGM_OK;
}

/* A token of a piece that is being put together, and its pair with the one behind. */
typedef struct sgm__symbol {
    uint32_t id, before, next; /* neighbours; SGM__NONE: none */
    uint32_t rank, merged;     /* of the pair; SGM__NONE: it is none */
} sgm__symbol;

/* The best way to a place in a piece. */
typedef struct sgm__step {
    double score;
    size_t from; /* SIZE_MAX: no way leads here */
    uint32_t id;
} sgm__step;

/* What one thread works with; all zero: nothing is there yet. */
typedef struct sgm__scratch {
    sgm__symbol *symbols;
    uint64_t *heap; /* pairs: rank << 32 | place, the smallest first */
    size_t symbol_room, heap_count, heap_room;
    sgm__step *steps;
    size_t step_room;
    sgm__buffer text;
} sgm__scratch;

typedef struct sgm__bpe {
    sgm__table merges;          /* by first << 32 | second: rank, token */
    uint8_t *whole;             /* by token: merging its text gives it */
    uint32_t characters[0x200]; /* tokens of characters, to be fast */
    char *prefix, *suffix;      /* of parts that do not begin a word; of those that end one; NULL: none */
    bool fuse_unknown, ignore_merges;
} sgm__bpe;

typedef struct sgm__wordpiece {
    char *prefix;   /* of parts that do not begin a word */
    size_t longest; /* characters of a word; longer ones are unknown */
} sgm__wordpiece;

typedef struct sgm__unigram {
    double *scores; /* by token */
    double unknown_score;
    sgm__trie trie;
} sgm__unigram;

typedef enum sgm__model_kind { SGM__BPE, SGM__WORDPIECE, SGM__UNIGRAM } sgm__model_kind;

typedef struct sgm__model {
    sgm__model_kind kind;
    sgm__vocabulary vocabulary;
    uint32_t unknown; /* SGM__NONE: there is no such token */
    bool byte_fallback;
    uint32_t bytes[256]; /* tokens <0x00> to <0xFF>, SGM__NONE where there is none */
    sgm__bpe bpe;
    sgm__wordpiece wordpiece;
    sgm__unigram unigram;
} sgm__model;

void sgm__model_free(sgm__model *model);
void sgm__scratch_free(sgm__scratch *scratch);
/* Once the vocabulary is whole: what is looked up often, and which tokens their own text becomes. */
sgm_status sgm__model_prepare(sgm__model *model);
/* Adds the tokens of a piece: valid text of at least one byte. */
sgm_status sgm__model_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                             sgm__ids *out);

/* The pair of two tokens becomes one, which is in the vocabulary as they are; `joined` is room to write it.
 */
sgm_status sgm__bpe_add_merge(sgm__model *model, sgm__buffer *joined, const char *const texts[2],
                              const size_t sizes[2], uint32_t rank);

/* The three, for sgm__model_encode. */
sgm_status sgm__bpe_prepare(sgm__model *model);
sgm_status sgm__bpe_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                           sgm__ids *out);
sgm_status sgm__wordpiece_encode(const sgm__model *model, sgm__scratch *scratch, const char *text,
                                 size_t size, sgm__ids *out);
sgm_status sgm__unigram_encode(const sgm__model *model, sgm__scratch *scratch, const char *text, size_t size,
                               sgm__ids *out);
/* Whether each byte has a token of its own. */
bool sgm__model_has_bytes(const sgm__model *model, const char *text, size_t size);

#endif
