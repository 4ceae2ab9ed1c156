/* What is looked for in a text: a string, or a regular expression in Oniguruma's syntax, run by PCRE2. */
#ifndef SIGMA_MODELS_PATTERN_H
#define SIGMA_MODELS_PATTERN_H

#include "tokenizer/text/buffer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef struct sgm__pattern {
    pcre2_code *code;  /* NULL: a string */
    bool compiled;     /* to machine code */
    bool may_be_empty; /* there may be a match of no byte */
    char *text;        /* the string, or the expression as it was given */
    size_t size;
} sgm__pattern;

/* What one thread matches with; all zero: not used yet. */
typedef struct sgm__matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
} sgm__matcher;

/* The expression in PCRE2's syntax, added to `out` with a 0 behind; an error names what neither has in
 * common. */
sgm_status sgm__pattern_translate(const char *expression, size_t size, sgm__buffer *out);
sgm_status sgm__pattern_open_regex(sgm__pattern *pattern, const char *expression, size_t size);
sgm_status sgm__pattern_open_string(sgm__pattern *pattern, const char *text, size_t size);
void sgm__pattern_free(sgm__pattern *pattern);

/* Where a pattern is in a text. */
typedef struct sgm__match {
    size_t start, end;
    bool found;
} sgm__match;

/* The match behind `*last`, which it replaces, in a valid text; {0} is before the first one. A match may be
 * of no byte, as that of a look-ahead, but not where the last one ended. An error: the expression needs too
 * many steps. */
sgm_status sgm__pattern_next(const sgm__pattern *pattern, sgm__matcher *matcher, const char *text,
                             size_t size, sgm__match *last);
void sgm__matcher_free(sgm__matcher *matcher);

#endif
