/* Declarations that the files of the parser share: its state, messages with a place, and arguments. Internal.
 *
 * notation.c has the grammar and the layers, notation_arguments.c the arguments in brackets, parser.c the
 * messages and the way through the tokens. All errors end up as the thread's newest error with line and
 * column in front. */
#ifndef SGM_NETWORK_PARSER_H
#define SGM_NETWORK_PARSER_H

#include "network/lexer.h"
#include "network/network_internal.h"

/* The parser's state: one token ahead, and the names that the text has defined so far. */
typedef struct sgm__parser {
    sgm__lexer lexer;
    sgm__token token; /* the next one */
    bool lines;       /* the text has more than one: messages say which */
    int32_t depth;
    int32_t layers;     /* written so far */
    const char **names; /* defined values; they belong to the definitions in `statements` */
    size_t name_count, name_capacity;
} sgm__parser;

/* --- messages and tokens (parser.c) --- */
typedef struct sgm__quoted {
    char text[64];
} sgm__quoted;
/* A token for a message: short, and without bytes that a terminal would obey. */
sgm__quoted sgm__parser_quote(const sgm__token *token);
sgm_status sgm__parser_fail(const sgm__parser *p, const sgm__token *token, sgm_status status,
                            const char *format, ...) SGM_PRINTF(4, 5);
/* Puts the place before the newest message; returns its status. */
sgm_status sgm__parser_place(const sgm__parser *p, const sgm__token *token);
void sgm__parser_next(sgm__parser *p);
bool sgm__token_is(const sgm__token *token, char sign);
/* Takes the next token if it is `sign`. */
bool sgm__parser_accept(sgm__parser *p, char sign);
/* True if the token after the next one is `sign`. */
bool sgm__parser_sees(const sgm__parser *p, char sign);
bool sgm__parser_is_at_name(const sgm__parser *p); /* word "=" */
/* The ')' that belongs to `open`. */
sgm_status sgm__parser_close(sgm__parser *p, const sgm__token *open);
/* Copies a token; NULL with an error if it is too long to be a name. */
char *sgm__parser_copy(const sgm__parser *p, const sgm__token *token);

/* --- arguments (notation_arguments.c) --- */
/* One value between commas, in every form that it can have: "3" is an integer, a number, and no text. `text`
 * has it as written. */
typedef struct sgm__parsed_value {
    sgm__token token;
    bool is_integer, is_number, is_text;
    int64_t integer;
    double number;
    char text[SGM__MAX_NAME + 1];
} sgm__parsed_value;
/* Reads one number, word or string and goes past it; an error if something else comes. */
sgm_status sgm__parser_value(sgm__parser *p, sgm__parsed_value *v);
/* From the '(' on, to behind the ')'. `typed`: the row that the layer's name was found by, or NULL. */
sgm_status sgm__parser_arguments(sgm__parser *p, sgm_layer *layer, const sgm__name_row *typed);
/* name=value, from the name on. */
sgm_status sgm__parser_named_argument(sgm__parser *p, sgm_layer *layer);

#endif
