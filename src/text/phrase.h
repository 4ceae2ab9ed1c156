/* Reads short sentences, such as those of rules, criteria and time steps, token by token, with errors that
 * name the column. Internal.
 *
 * A parser (src/hooks/when, call_text.c) begins with sgm__phrase_begin and then looks at the
 * current token (sgm__phrase_is), consumes it if it is the expected one (sgm__phrase_take), or reads a value.
 * The functions that read a value go on to the next token on success and stay at the wrong one on failure. */
#ifndef SGM_TEXT_PHRASE_H
#define SGM_TEXT_PHRASE_H

#include "base/base.h"

#define SGM__PHRASE_LONGEST 65536                    /* bytes */
#define SGM__IDENTIFIER_LONGEST 255                  /* bytes */
#define SGM__PHRASE_MAXIMUM_COUNT ((int64_t)1 << 53) /* a double holds every count up to here */

typedef enum sgm__phrase_kind {
    SGM__PHRASE_END,
    SGM__PHRASE_WORD, /* a keyword or an identifier: "network.layers.*<dense>.weights" */
    SGM__PHRASE_NUMBER,
    SGM__PHRASE_STRING, /* between double quotes; \" and \\ in it */
    SGM__PHRASE_SIGN,   /* ( ) , + < <= == >= > = += -= *= /= */
    SGM__PHRASE_STRANGE /* no token begins so, or a string has no end */
} sgm__phrase_kind;

/* A place in a text, and the current token. The text stays the caller's. */
typedef struct sgm__phrase {
    const char *text;
    size_t at, length; /* the token: its first byte, and its bytes */
    sgm__phrase_kind kind;
    unsigned depth; /* brackets and negations around the token: counted by parsers, which bound their
                       recursion by it */
} sgm__phrase;

sgm_status sgm__phrase_begin(sgm__phrase *phrase, const char *text); /* at the first token */
void sgm__phrase_next(sgm__phrase *phrase);
/* Whether the current token is this keyword or sign; never true for a string. */
bool sgm__phrase_is(const sgm__phrase *phrase, const char *token);
/* The same; if true, goes on to the next token. */
bool sgm__phrase_take(sgm__phrase *phrase, const char *token);
/* Fails with "column 7: expected `what`, found 'stalss'; did you mean 'stalls'?", at the current token. The
 * suggestion is one of `keywords`; NULL and 0: none. */
sgm_status sgm__phrase_expected(const sgm__phrase *phrase, const char *what, const char *const *keywords,
                                size_t count);
/* Fails with "column 7: " and the message, for the byte `at` of the text. */
sgm_status sgm__phrase_fail(const sgm__phrase *phrase, size_t at, const char *format, ...) SGM_PRINTF(3, 4);
/* Puts "column 7: " before the newest error. */
sgm_status sgm__phrase_within(const sgm__phrase *phrase, size_t at);

sgm_status sgm__phrase_number(sgm__phrase *phrase, double *value);
sgm_status sgm__phrase_count(sgm__phrase *phrase, const char *of, int64_t *count); /* a whole number from 1 */
sgm_status sgm__phrase_string(sgm__phrase *phrase, const char *what, char **string);
sgm_status sgm__phrase_identifier(sgm__phrase *phrase, char **identifier);

/* Whether a text would be read as one identifier. */
bool sgm__is_identifier(const char *text);
/* Writing, so that it reads back as the same: a number, and a string with quotes and escapes. */
void sgm__append_number(sgm__text *text, double value);
void sgm__append_string(sgm__text *text, const char *string);

#endif
