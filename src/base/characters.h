/* Kinds of characters in ASCII, whatever the program's locale is. A byte of a UTF-8 character beyond ASCII is
 * of none of these kinds. Names, numbers and notations consist of ASCII alone, so <ctype.h>, which asks the
 * locale, is not used in the library. Internal. */
#ifndef SGM_BASE_CHARACTERS_H
#define SGM_BASE_CHARACTERS_H

#include <stdbool.h>

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

/* Space, tab, line feed, vertical tab, form feed, carriage return. */
static inline bool sgm__is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

#endif
