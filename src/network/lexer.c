/* Text to tokens, for the parser of the notation (notation.c).
 *
 * There are no errors here: bytes that belong nowhere become tokens of the kind UNKNOWN, a text without a
 * closing quote an OPEN_STRING, and the parser says what it expected in their place. Lines and columns are
 * counted as an editor shows them, in characters of UTF-8. */
#include "network/lexer.h"
#include "network/network_internal.h"

/* '#' counts as a letter because it stands for the number in a layer's name: name=block#. */
static bool is_letter(char c)
{
    return sgm__is_letter(c) || c == '_' || c == '#';
}

/* '-' may stand inside a word: name=my-table needs no quotes. A default name such as "2-embedding" does, as
 * it begins with a digit. */
static bool is_word_part(char c)
{
    return is_letter(c) || sgm__is_digit(c) || c == '-';
}

/* Whether text can be written without quotes: the lexer would read it as one word. */
bool sgm__is_word(const char *text)
{
    if (!is_letter(text[0]))
        return false;
    while (is_word_part(*text))
        text++;
    return *text == '\0';
}

/* Goes one byte ahead. The column changes only before a byte that begins a character: those that continue a
 * character of UTF-8 have the form 10xxxxxx. */
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

/* Digits, a fraction and an exponent with its sign. "1.2.3" is one token, too: whether a token is a number
 * is for the parser to say, which then shows it whole. */
static bool is_number_part(const sgm__token *token, const char *c)
{
    bool after_exponent = c > token->start && (c[-1] == 'e' || c[-1] == 'E');
    return sgm__is_digit(*c) || *c == '.' || *c == 'e' || *c == 'E' ||
           ((*c == '-' || *c == '+') && after_exponent);
}

/* The token is what is between the quotes. A string does not go over the end of a line, so that a missing
 * quote is found near its place. There are no escapes; texts cannot have quotes in them. */
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

/* '-' begins a number, because the notation has no operator of that sign. */
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
    } else if (sgm__is_digit(first) || first == '.' || (first == '-' && lexer->next[1] != '\0')) {
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
