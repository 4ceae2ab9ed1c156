/* Text to tokens. */
#include "network/lexer.h"
#include "network/network_internal.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '#';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_part(char c)
{
    return is_letter(c) || is_digit(c) || c == '-';
}

bool sgm__is_word(const char *text)
{
    if (!is_letter(text[0]))
        return false;
    while (is_word_part(*text))
        text++;
    return *text == '\0';
}

static void advance(sgm__lexer *lexer)
{
    char c = *lexer->next++;
    if (c == '\n') {
        lexer->line++;
        lexer->column = 1;
    } else if (((unsigned char)*lexer->next & 0xC0) != 0x80) {
        /* the bytes that continue a character of UTF-8 do not count */
        lexer->column++;
    }
}

/* Digits with a sign, a fraction and an exponent; whether it is a number is for the parser to say. */
static bool is_number_part(const sgm__token *token, const char *c)
{
    bool after_exponent = c > token->start && (c[-1] == 'e' || c[-1] == 'E');
    return is_digit(*c) || *c == '.' || *c == 'e' || *c == 'E' ||
           ((*c == '-' || *c == '+') && after_exponent);
}

static void read_string(sgm__lexer *lexer, sgm__token *token)
{
    advance(lexer);
    token->start = lexer->next;
    while (*lexer->next != '"' && *lexer->next != '\0' && *lexer->next != '\n')
        advance(lexer);
    token->length = (size_t)(lexer->next - token->start);
    token->kind = *lexer->next == '"' ? SGM__TOKEN_STRING : SGM__TOKEN_OPEN_STRING;
    if (*lexer->next == '"')
        advance(lexer);
}

sgm__token sgm__lexer_next(sgm__lexer *lexer)
{
    while (*lexer->next == ' ' || *lexer->next == '\t' || *lexer->next == '\n' || *lexer->next == '\r')
        advance(lexer);
    char first = *lexer->next;
    sgm__token token = {.start = lexer->next, .line = lexer->line, .column = lexer->column};
    if (first == '\0')
        return token;
    if (first == '"') {
        read_string(lexer, &token);
        return token;
    }
    if (is_letter(first)) {
        token.kind = SGM__TOKEN_WORD;
        while (is_word_part(*lexer->next))
            advance(lexer);
    } else if (is_digit(first) || first == '.' || (first == '-' && lexer->next[1] != '\0')) {
        token.kind = SGM__TOKEN_NUMBER;
        advance(lexer);
        while (is_number_part(&token, lexer->next))
            advance(lexer);
    } else {
        token.kind = strchr("+*(),=;", first) != NULL ? SGM__TOKEN_SIGN : SGM__TOKEN_UNKNOWN;
        token.sign = first;
        advance(lexer);
    }
    token.length = (size_t)(lexer->next - token.start);
    return token;
}
