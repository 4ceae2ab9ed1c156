/* Normalisers: what is done to a text before it is split. */
#ifndef SIGMA_MODELS_NORMALIZE_H
#define SIGMA_MODELS_NORMALIZE_H

#include "tokenizer/text/characters.h"
#include "tokenizer/text/pattern.h"

/* SentencePiece's table of replacements: a double array of prefixes, then texts that end in 0. */
typedef struct sgm__charsmap {
    uint32_t *units;
    size_t unit_count;
    char *texts; /* `size` bytes, the last one 0 */
    size_t size;
} sgm__charsmap;

typedef enum sgm__normalizer_kind {
    SGM__NORMAL_FORM,
    SGM__LOWERCASE,
    SGM__STRIP_ACCENTS,    /* all marks */
    SGM__STRIP_NONSPACING, /* marks without a space of their own */
    SGM__CLEAN,            /* controls go, all white space becomes ' ' */
    SGM__SPACE_IDEOGRAPHS, /* a space before and behind each */
    SGM__REPLACE,
    SGM__PREPEND, /* unless there is no text */
    SGM__CHARSMAP,
    SGM__STRIP_LEFT,
    SGM__STRIP_RIGHT
} sgm__normalizer_kind;

typedef struct sgm__normalizer {
    sgm__normalizer_kind kind;
    sgm__normal_form *form;
    sgm__pattern pattern; /* SGM__REPLACE: what is replaced */
    char *content;        /* by what; SGM__PREPEND: what comes before */
    size_t size;
    sgm__charsmap charsmap;
} sgm__normalizer;

typedef struct sgm__normalizers {
    sgm__normalizer *steps;
    size_t count, room;
} sgm__normalizers;

void sgm__normalizers_free(sgm__normalizers *normalizers);
/* Takes a valid text and leaves its normal form in `buffers[0]`; `buffers[1]` is used in between. `*is_cut`
 * (NULL: not wanted): the beginning of the text is no longer there. */
sgm_status sgm__normalize(const sgm__normalizers *normalizers, sgm__matcher *matcher, const char *text,
                          size_t size, sgm__buffer buffers[2], bool *is_cut);
/* Adds the text with all matches replaced. */
sgm_status sgm__replace(const sgm__pattern *pattern, sgm__matcher *matcher, const char *text, size_t size,
                        const char *content, size_t content_size, sgm__buffer *out);

/* Reads the bytes of a charsmap, whose sizes are checked; it may be empty. */
sgm_status sgm__charsmap_read(sgm__charsmap *charsmap, const unsigned char *bytes, size_t size);
void sgm__charsmap_free(sgm__charsmap *charsmap);
sgm_status sgm__charsmap_apply(const sgm__charsmap *charsmap, const char *text, size_t size,
                               sgm__buffer *out);

#endif
