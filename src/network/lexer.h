/* Tokens of the notation of networks: kinds, places in the text, and the function that reads the next.
 * Internal. */
#ifndef SGM_NETWORK_LEXER_H
#define SGM_NETWORK_LEXER_H

#include <stddef.h>
#include <stdint.h>

typedef enum sgm__token_kind {
    SGM__TOKEN_END,
    SGM__TOKEN_WORD,
    SGM__TOKEN_NUMBER,
    SGM__TOKEN_STRING,      /* `start` and `length` without the quotes */
    SGM__TOKEN_OPEN_STRING, /* the closing quote is missing */
    SGM__TOKEN_SIGN,        /* one of + * ( ) , = ; */
    SGM__TOKEN_UNKNOWN      /* a byte that belongs nowhere */
} sgm__token_kind;

/* One token. It points into the text, which must stay; nothing is copied. */
typedef struct sgm__token {
    sgm__token_kind kind;
    char sign;
    const char *start;
    size_t length;
    int32_t line, column; /* from 1; a column is a character, not a byte */
} sgm__token;

/* The place of the next byte in the text that ends with '\0'. A lexer can be copied to look ahead. */
typedef struct sgm__lexer {
    const char *next;
    int32_t line, column;
} sgm__lexer;

/* Skips white space and reads one token; at the end of the text it returns SGM__TOKEN_END again and again. */
sgm__token sgm__lexer_next(sgm__lexer *lexer);

#endif
