/* What is looked for in a text: a string, or a regular expression in Oniguruma's syntax, run by PCRE2. */
#ifndef SIGMA_MODELS_PATTERN_H
#define SIGMA_MODELS_PATTERN_H

#include "tokenizer/text/buffer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef struct sgm__pattern {
    pcre2_code *code; /* NULL: a string */
    bool compiled;    /* to machine code */
    char *text;       /* the string, or the expression as it was given */
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

/* The next match of at least one byte from `from` on in a valid text. `*start` is the size of the text if
 * there is none. An error: the expression needs too many steps. */
sgm_status sgm__pattern_next(const sgm__pattern *pattern, sgm__matcher *matcher, const char *text,
                             size_t size, size_t from, size_t *start, size_t *end);
void sgm__matcher_free(sgm__matcher *matcher);

#endif
