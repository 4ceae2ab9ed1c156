/* Kinds of characters in ASCII, whatever the program's locale is. A byte of a UTF-8 character beyond ASCII is
 * of none of these kinds. Names, numbers and notations consist of ASCII alone, so <ctype.h>, which asks the
 * locale, is not used in the library. Internal. */
#ifndef SGM_BASE_CHARACTERS_H
#define SGM_BASE_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>

static inline bool sgm__is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool sgm__is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool sgm__is_alphanumeric(char c)
{
    return sgm__is_letter(c) || sgm__is_digit(c);
}

#define SGM__PLAIN_NAME_LONGEST 60 /* bytes */
/* Whether a text can be a part of identifiers and the name of a folder: 1 to 60 letters, digits, '-', '_' and
 * '.', not beginning with '.' or '-'. */
static inline bool sgm__is_plain_name(const char *text)
{
    size_t length = 0;
    while (sgm__is_alphanumeric(text[length]) || text[length] == '-' || text[length] == '_' ||
           text[length] == '.')
        length++;
    return text[length] == '\0' && length > 0 && length <= SGM__PLAIN_NAME_LONGEST && text[0] != '.' &&
           text[0] != '-';
}

/* Space, tab, line feed, vertical tab, form feed, carriage return. */
static inline bool sgm__is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
