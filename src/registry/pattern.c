/* Matches names in dot notation against patterns with `*`, and compares how specific patterns are.
 *
 * Patterns match part by part, as `*` stays within a part; so "*.weights" matches the weights of every layer
 * of a flat network, but not "a.b.weights". The matching of a part is greedy with one point of return (see
 * part_matches), so its time is at most the product of both lengths, without recursion and without memory.
 * Tags are not known here: identifier.c cuts them off. */
#include "registry/pattern.h"

#define EXACT 1000000      /* more than a pattern can have characters */
#define MAXIMUM_BYTES 1000 /* of a pattern */

/* Patterns come from configurations and commands; a character that no name can have is most likely a slip. */
sgm_status sgm__pattern_check(const char *pattern)
{
    if (pattern == NULL || pattern[0] == '\0')
        return sgm_fail(SGM_ERROR_ARGUMENT, "a pattern of identifiers is empty; '*' stands for any part");
    size_t length = strnlen(pattern, MAXIMUM_BYTES + 1);
    if (length > MAXIMUM_BYTES)
        return sgm_fail(SGM_ERROR_ARGUMENT, "a pattern of identifiers is longer than %d bytes",
                        MAXIMUM_BYTES);
    for (size_t i = 0; i < length; i++) {
        char c = pattern[i];
        bool known = sgm__is_alphanumeric(c) || c == '_' || c == '-' || c == '*' || c == '.';
        if (!known)
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "pattern, column %zu: expected letters, digits, '_', '-', '*' and '.', found %s",
                            i + 1, c == ' ' ? "a space" : "another character");
        if (c == '.' && (i == 0 || pattern[i - 1] == '.' || i + 1 == length))
            return sgm_fail(SGM_ERROR_ARGUMENT,
                            "pattern '%s', column %zu: a part is empty; '*' stands for any part", pattern,
                            i + 1);
    }
    return SGM_OK;
}

/* A dot or the end. */
static bool ends_part(char c)
{
    return c == '.' || c == '\0';
}

/* Matches one part and moves both texts to its end. A star first stands for nothing; whenever the rest does
 * not fit, the newest star takes one character more and matching goes on behind it. Older stars need no
 * second try: anything that they could skip, the newest one can skip as well. */
static bool part_matches(const char **pattern, const char **identifier)
{
    const char *p = *pattern, *text = *identifier;
    const char *star = NULL, *retry = NULL;
    while (!ends_part(*text)) {
        if (*p == '*') {
            star = p++;
            retry = text;
        } else if (*p == *text) {
            p++;
            text++;
        } else if (star != NULL) {
            p = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    *pattern = p;
    *identifier = text;
    return ends_part(*p);
}

/* Both texts must end their parts together, and have equally many parts. */
bool sgm__pattern_matches(const char *pattern, const char *identifier)
{
    for (;;) {
        if (!part_matches(&pattern, &identifier) || *pattern != *identifier)
            return false;
        if (*pattern == '\0')
            return true;
        pattern++;
        identifier++;
    }
}

/* The number of characters that must be present; a pattern without `*` has more than any with one. Dots are
 * not counted: all patterns that match one identifier have equally many. */
static int count_literals(const char *pattern)
{
    int literal = 0;
    bool exact = true;
    for (; *pattern != '\0'; pattern++) {
        exact = exact && *pattern != '*';
        if (literal < EXACT)
            literal += *pattern != '*' && *pattern != '.';
    }
    return exact ? EXACT + literal : literal;
}

static int count_parts(const char *pattern)
{
    int parts = 1;
    for (; *pattern != '\0'; pattern++)
        parts += *pattern == '.';
    return parts;
}

/* Counts the characters that must be present up to the end of the part, and moves to the next part. */
static int next_literals(const char **pattern)
{
    int literals = 0;
    for (; !ends_part(**pattern); (*pattern)++)
        literals += **pattern != '*';
    *pattern += **pattern == '.';
    return literals;
}

static int order(int a, int b)
{
    return (a > b) - (a < b);
}

/* The comparison part by part makes "a.*" more specific than "*.a", which have equally many literal
 * characters. */
int sgm__pattern_compare(const char *a, const char *b)
{
    int result = order(count_parts(a), count_parts(b));
    if (result == 0)
        result = order(count_literals(a), count_literals(b));
    while (result == 0 && *a != '\0' && *b != '\0')
        result = order(next_literals(&a), next_literals(&b));
    return result;
}
