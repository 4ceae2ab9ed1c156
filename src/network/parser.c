/* The parser's messages and its way through the tokens; the grammar is in notation.c.
 *
 * Every message names the place in the text and shows the token there, cut to 40 bytes and without control
 * characters, because messages go to terminals and the web page, and the text may come from anybody. */
#include "network/parser.h"

#include <stdarg.h>
#include <stdio.h>

/* Puts "column 14: " before the newest message, or line and column where the text has several lines. */
sgm_status sgm__parser_place(const sgm__parser *p, const sgm__token *token)
{
    if (p->lines)
        return sgm__fail_within("line %d, column %d", token->line, token->column);
    return sgm__fail_within("column %d", token->column);
}

/* The message is formatted before sgm_fail, and the place is put in front as for messages from elsewhere. */
sgm_status sgm__parser_fail(const sgm__parser *p, const sgm__token *token, sgm_status status,
                            const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    sgm_fail(status, "%s", message);
    sgm__parser_place(p, token);
    return status;
}

/* The result is a struct, so that it can be used as an argument without a buffer of the caller. */
sgm__quoted sgm__parser_quote(const sgm__token *token)
{
    sgm__quoted result;
    if (token->kind == SGM__TOKEN_END) {
        snprintf(result.text, sizeof result.text, "the end of the text");
        return result;
    }
    size_t length = token->length < 40 ? token->length : 40;
    char clean[41];
    for (size_t i = 0; i < length; i++)
        clean[i] = token->start[i] >= ' ' && token->start[i] < 127 ? token->start[i] : '?';
    clean[length] = '\0';
    snprintf(result.text, sizeof result.text, "'%s'%s", clean, token->length > length ? "..." : "");
    return result;
}

/* --- tokens --- */

void sgm__parser_next(sgm__parser *p)
{
    p->token = sgm__lexer_next(&p->lexer);
}

bool sgm__token_is(const sgm__token *token, char sign)
{
    return token->kind == SGM__TOKEN_SIGN && token->sign == sign;
}

bool sgm__parser_accept(sgm__parser *p, char sign)
{
    if (!sgm__token_is(&p->token, sign))
        return false;
    sgm__parser_next(p);
    return true;
}

/* Reads ahead with a copy of the lexer, so nothing is consumed. */
bool sgm__parser_sees(const sgm__parser *p, char sign)
{
    sgm__lexer copy = p->lexer;
    sgm__token after = sgm__lexer_next(&copy);
    return sgm__token_is(&after, sign);
}

/* Takes the closing bracket; otherwise the message points back to the opening one. */
sgm_status sgm__parser_close(sgm__parser *p, const sgm__token *open)
{
    if (sgm__parser_accept(p, ')'))
        return SGM_OK;
    char line[32] = "";
    if (open->line != p->token.line)
        snprintf(line, sizeof line, "line %d, ", open->line);
    return sgm__parser_fail(p, &p->token, SGM_ERROR_FORMAT,
                            "expected ')' for the '(' at %scolumn %d, found %s", line, open->column,
                            sgm__parser_quote(&p->token).text);
}

char *sgm__parser_copy(const sgm__parser *p, const sgm__token *token)
{
    if (token->length > SGM__MAX_NAME) {
        sgm__parser_fail(p, token, SGM_ERROR_FORMAT, "%s is longer than %d characters",
                         sgm__parser_quote(token).text, SGM__MAX_NAME);
        return NULL;
    }
    return sgm__strndup(token->start, token->length);
}

bool sgm__parser_is_at_name(const sgm__parser *p)
{
    return p->token.kind == SGM__TOKEN_WORD && sgm__parser_sees(p, '=');
}
