/* Declares patterns for identifiers in dot notation, such as "*.weights" and "layers.2-*.bias*". Internal.
 *
 * Used for entries of registries (identifier.c) and for names of parameters and states, which have dots, too:
 * frozen parameters, modifiers, rules of initialisers, rules of an operator's reducer. */
#ifndef SGM_REGISTRY_PATTERN_H
#define SGM_REGISTRY_PATTERN_H

#include "base/base.h"

/* Parts are separated by dots, and a pattern matches only identifiers with as many parts. In a part, `*`
 * stands for any run of characters, also none; it never extends over a dot. */
sgm_status sgm__pattern_check(const char *pattern);
bool sgm__pattern_matches(const char *pattern, const char *identifier);
/* Negative if `a` is less specific than `b`, 0 if equally, else positive. Compares the number of parts, then
 * the number of characters that must be present, where a pattern without `*` has more than any with one, then
 * these characters part by part. Of several patterns that match a name, callers use the most specific one. */
int sgm__pattern_compare(const char *a, const char *b);

/* Makes a part of an identifier out of any name (a trainer's, a dataset's): characters that a part cannot
 * hold become underscores. Free with sgm__free. */
char *sgm__identifier_part(const char *name);

#endif
