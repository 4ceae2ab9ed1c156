/* Splits sentences of rules, criteria and time steps into tokens, and reads values from them.
 *
 * There is one token of lookahead and no list of tokens: read_token finds kind and length of the token at
 * `at`, and everything else compares bytes of the text. The order of the tests decides between kinds: numbers
 * first (so "-1" is a number), then words, strings, signs. Words hold dots, stars, tag conditions and inner
 * hyphens, so that a pattern such as network.layers.*<dense>.weights is one token; the pattern's own meaning
 * is in src/registry/pattern.c. The grammars are those of the callers (src/hooks/when, src/metrics). */
#include "text/phrase.h"
#include "text/names.h"

#include <math.h>
#include <stdio.h>

/* --- tokens --- */

/* What an identifier may begin with. */
static bool is_letter(char c)
{
    return sgm__is_letter(c) || c == '_';
}

/* A byte after the first one of a UTF-8 character: 10xxxxxx. */
static bool continues_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of a tag condition such as "<dense,hidden>", which may follow a `*`; 0 if there is none, and '<' is
 * the sign of a comparison ("loss.* < 3"). */
static size_t tags_length(const char *text)
{
    size_t length = 1;
    if (text[0] != '<' || !is_letter(text[1]))
        return 0;
    while (is_letter(text[length]) || sgm__is_digit(text[length]) || text[length] == '-' ||
           text[length] == ',')
        length++;
    return text[length] == '>' && text[length - 1] != ',' ? length + 1 : 0;
}

/* A word ends before "*=" and "-=", which are assignments ("rate*=2"); but "*==" is a star and a comparison.
 */
static size_t word_length(const char *text)
{
    size_t length = 0;
    for (;;) {
        char c = text[length], after = c != '\0' ? text[length + 1] : '\0';
        if (c == '*' && after == '=' && text[length + 2] != '=')
            return length; /* "rate*=2" */
        if (c == '*')
            length += 1 + tags_length(text + length + 1);
        else if (is_letter(c) || sgm__is_digit(c) || c == '.' || (c == '-' && after != '='))
            length++;
        else
            return length;
    }
}

static size_t digits_length(const char *text)
{
    size_t length = 0;
    while (sgm__is_digit(text[length]))
        length++;
    return length;
}

/* [sign] digits [. digits] [e [sign] digits], with a digit before or behind the point. An 'e' without digits
 * does not belong to the number. */
static size_t number_length(const char *text)
{
    size_t length = *text == '-' || *text == '+';
    size_t whole = digits_length(text + length), part = 0;
    length += whole;
    if (text[length] == '.') {
        part = digits_length(text + length + 1);
        length += 1 + part;
    }
    if (whole + part == 0)
        return 0;
    if (text[length] == 'e' || text[length] == 'E') {
        size_t sign = text[length + 1] == '-' || text[length + 1] == '+';
        size_t power = digits_length(text + length + 1 + sign);
        length += power > 0 ? 1 + sign + power : 0;
    }
    return length;
}

/* Length with both quotes; 0 if the string has no end. A backslash takes the next character with it, whatever
 * that is: sgm__phrase_string checks it. */
static size_t string_length(const char *text)
{
    size_t length = 1;
    for (; text[length] != '"'; length++) {
        if (text[length] == '\\')
            length++;
        if (text[length] == '\0')
            return 0;
    }
    return length + 1;
}

/* Two characters before one: "<=" is not "<" and "=". */
static size_t sign_length(const char *text)
{
    if (*text == '(' || *text == ')' || *text == ',')
        return 1;
    if (*text != '\0' && strchr("<>=+-*/", *text) && text[1] == '=')
        return 2;
    return *text == '<' || *text == '>' || *text == '=' || *text == '+';
}

/* Length of a piece of text that begins no token: one whole character, or a string without an end up to the
 * end of the text. */
static size_t strange_length(const char *text)
{
    size_t length = 1;
    if (*text == '"')
        return strlen(text);
    while (continues_character(text[length]))
        length++;
    return length;
}

/* Skips spaces and finds out kind and length of the token there. */
static void read_token(sgm__phrase *phrase)
{
    while (sgm__is_space(phrase->text[phrase->at]))
        phrase->at++;
    const char *token = phrase->text + phrase->at;
    phrase->kind = SGM__PHRASE_END;
    phrase->length = 0;
    if (*token == '\0')
        return;
    if ((phrase->length = number_length(token)) > 0)
        phrase->kind = SGM__PHRASE_NUMBER;
    else if ((is_letter(*token) || *token == '*') && (phrase->length = word_length(token)) > 0)
        phrase->kind = SGM__PHRASE_WORD;
    else if (*token == '"' && (phrase->length = string_length(token)) > 0)
        phrase->kind = SGM__PHRASE_STRING;
    else if ((phrase->length = sign_length(token)) > 0)
        phrase->kind = SGM__PHRASE_SIGN;
    else {
        phrase->kind = SGM__PHRASE_STRANGE;
        phrase->length = strange_length(token);
    }
}

/* The limit bounds the work for texts that come through the network, and the lengths of messages. */
sgm_status sgm__phrase_begin(sgm__phrase *phrase, const char *text)
{
    *phrase = (sgm__phrase){.text = text != NULL ? text : ""};
    if (strnlen(phrase->text, SGM__PHRASE_LONGEST + 1) > SGM__PHRASE_LONGEST)
        return sgm_fail(SGM_ERROR_FORMAT, "a text of at most %d bytes was expected, this one is longer",
                        SGM__PHRASE_LONGEST);
    read_token(phrase);
    return SGM_OK;
}

void sgm__phrase_next(sgm__phrase *phrase)
{
    phrase->at += phrase->length;
    read_token(phrase);
}

/* Strings never count as keywords: "stop" in quotes is a text. */
bool sgm__phrase_is(const sgm__phrase *phrase, const char *token)
{
    return (phrase->kind == SGM__PHRASE_WORD || phrase->kind == SGM__PHRASE_SIGN) &&
           strlen(token) == phrase->length && memcmp(token, phrase->text + phrase->at, phrase->length) == 0;
}

bool sgm__phrase_take(sgm__phrase *phrase, const char *token)
{
    bool taken = sgm__phrase_is(phrase, token);
    if (taken)
        sgm__phrase_next(phrase);
    return taken;
}

/* --- errors --- */

/* Columns count characters, not bytes, from 1. */
static size_t column_of(const sgm__phrase *phrase, size_t at)
{
    size_t column = 1;
    for (size_t i = 0; i < at; i++)
        column += !continues_character(phrase->text[i]);
    return column;
}

sgm_status sgm__phrase_within(const sgm__phrase *phrase, size_t at)
{
    return sgm__fail_within("column %zu", column_of(phrase, at));
}

sgm_status sgm__phrase_fail(const sgm__phrase *phrase, size_t at, const char *format, ...)
{
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return sgm_fail(SGM_ERROR_FORMAT, "column %zu: %s", column_of(phrase, at), message);
}

/* The current token for a message: 'stalss', "the end", "character 0x07". Long tokens are cut off at 40
 * bytes. */
static void describe(const sgm__phrase *phrase, char *buffer, size_t size)
{
    unsigned char first = (unsigned char)phrase->text[phrase->at];
    if (phrase->kind == SGM__PHRASE_END)
        snprintf(buffer, size, "the end");
    else if (phrase->kind == SGM__PHRASE_STRING || first == '"')
        snprintf(buffer, size, "a text in quotes");
    else if (phrase->length == 1 && (first < ' ' || first > '~'))
        snprintf(buffer, size, "character 0x%02x", first);
    else
        snprintf(buffer, size, "'%.*s'", phrase->length < 40 ? (int)phrase->length : 40,
                 phrase->text + phrase->at);
}

/* A string without an end has a message of its own, at its beginning. Only words get a suggestion, and only
 * if it differs from the word itself (a keyword in the wrong place). */
sgm_status sgm__phrase_expected(const sgm__phrase *phrase, const char *what, const char *const *keywords,
                                size_t count)
{
    char found[64], word[64] = "";
    const char *near = NULL;
    describe(phrase, found, sizeof found);
    if (phrase->kind == SGM__PHRASE_STRANGE && phrase->text[phrase->at] == '"')
        return sgm__phrase_fail(phrase, phrase->at, "the text that begins here has no closing '\"'");
    if (phrase->kind == SGM__PHRASE_WORD && phrase->length < sizeof word) {
        memcpy(word, phrase->text + phrase->at, phrase->length);
        near = sgm__nearest(word, keywords, count);
    }
    if (near != NULL && strcmp(near, word) != 0)
        return sgm__phrase_fail(phrase, phrase->at, "expected %s, found %s; did you mean '%s'?", what, found,
                                near);
    return sgm__phrase_fail(phrase, phrase->at, "expected %s, found %s", what, found);
}

/* --- values --- */

/* Infinite values are refused: an overflow would be silent otherwise. */
sgm_status sgm__phrase_number(sgm__phrase *phrase, double *value)
{
    if (phrase->kind != SGM__PHRASE_NUMBER)
        return sgm__phrase_expected(phrase, "a number", NULL, 0);
    char *copy = sgm__strndup(phrase->text + phrase->at, phrase->length);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    bool good = sgm__parse_double(copy, value) && isfinite(*value);
    sgm__free(copy);
    if (!good)
        return sgm__phrase_fail(phrase, phrase->at, "this number is too large for a double");
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* A whole number from 1 to 2^53; `of` names what is counted, as in "a number of epochs". */
sgm_status sgm__phrase_count(sgm__phrase *phrase, const char *of, int64_t *count)
{
    char what[80];
    snprintf(what, sizeof what, "a number of %s", of);
    if (phrase->kind != SGM__PHRASE_NUMBER)
        return sgm__phrase_expected(phrase, what, NULL, 0);
    char digits[24] = "";
    if (phrase->length < sizeof digits)
        memcpy(digits, phrase->text + phrase->at, phrase->length);
    if (!sgm__parse_int64(digits, count) || *count < 1 || *count > SGM__PHRASE_MAXIMUM_COUNT)
        return sgm__phrase_fail(phrase, phrase->at, "%s is a whole number from 1 to 2^53, not '%.*s'", what,
                                phrase->length < 40 ? (int)phrase->length : 40, phrase->text + phrase->at);
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* Resolves the escapes \" and \\; others and control characters are errors. The result is freed with
 * sgm__free. */
sgm_status sgm__phrase_string(sgm__phrase *phrase, const char *what, char **string)
{
    if (phrase->kind != SGM__PHRASE_STRING)
        return sgm__phrase_expected(phrase, what, NULL, 0);
    const char *token = phrase->text + phrase->at;
    char *copy = sgm__alloc(phrase->length);
    if (copy == NULL)
        return SGM_ERROR_MEMORY;
    size_t length = 0;
    for (size_t i = 1; i + 1 < phrase->length; i++) {
        if (token[i] == '\\' && token[i + 1] != '"' && token[i + 1] != '\\') {
            sgm__free(copy);
            return sgm__phrase_fail(phrase, phrase->at + i, "after '\\' comes '\"' or '\\'");
        }
        i += token[i] == '\\';
        if ((unsigned char)token[i] < ' ' || token[i] == 0x7f) {
            sgm__free(copy);
            return sgm__phrase_fail(phrase, phrase->at + i, "a text has no control characters");
        }
        copy[length++] = token[i];
    }
    copy[length] = '\0';
    *string = copy;
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* Keywords of the grammars, which no identifier may be: a rule could otherwise not be told from its parts. */
static const char *const reserved[] = {"and", "external", "if", "not", "or", "repeated", "then"};

static bool is_reserved(const sgm__phrase *phrase)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (sgm__phrase_is(phrase, reserved[i]))
            return true;
    return false;
}

/* Not too long, and no empty part before, between or behind dots (no word begins with a dot). */
static bool is_well_formed(const char *text, size_t length)
{
    bool good = length > 0 && length <= SGM__IDENTIFIER_LONGEST && text[length - 1] != '.';
    for (size_t i = 0; i + 1 < length && good; i++)
        good = text[i] != '.' || text[i + 1] != '.';
    return good;
}

/* The result is freed with sgm__free. */
sgm_status sgm__phrase_identifier(sgm__phrase *phrase, char **identifier)
{
    if (phrase->kind != SGM__PHRASE_WORD || is_reserved(phrase))
        return sgm__phrase_expected(phrase, "an identifier such as validation.accuracy", NULL, 0);
    if (!is_well_formed(phrase->text + phrase->at, phrase->length))
        return sgm__phrase_fail(phrase, phrase->at,
                                "an identifier has at most %d characters, and no empty part between dots",
                                SGM__IDENTIFIER_LONGEST);
    *identifier = sgm__strndup(phrase->text + phrase->at, phrase->length);
    if (*identifier == NULL)
        return SGM_ERROR_MEMORY;
    sgm__name_note_value(*identifier);
    sgm__phrase_next(phrase);
    return SGM_OK;
}

/* For identifiers that come from a program instead of a sentence: the whole text must be one token. */
bool sgm__is_identifier(const char *text)
{
    sgm__phrase phrase = {.text = text};
    if (text == NULL || strnlen(text, SGM__IDENTIFIER_LONGEST + 1) > SGM__IDENTIFIER_LONGEST)
        return false;
    read_token(&phrase);
    return phrase.at == 0 && phrase.kind == SGM__PHRASE_WORD && !is_reserved(&phrase) &&
           is_well_formed(text, phrase.length) && text[phrase.length] == '\0';
}

/* --- writing --- */

void sgm__append_number(sgm__text *text, double value)
{
    char number[32];
    sgm__text_append(text, "%s", sgm__number_text(value, number, sizeof number));
}

/* Writes the two escapes that sgm__phrase_string resolves. */
void sgm__append_string(sgm__text *text, const char *string)
{
    sgm__text_append_bytes(text, "\"", 1);
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\')
            sgm__text_append_bytes(text, "\\", 1);
        sgm__text_append_bytes(text, string, 1);
    }
    sgm__text_append_bytes(text, "\"", 1);
}
