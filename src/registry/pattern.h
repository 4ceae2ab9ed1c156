/* Patterns for identifiers in dot notation: "*.weights", "layers.2-*.bias*". Internal. */
#ifndef SGM_REGISTRY_PATTERN_H
#define SGM_REGISTRY_PATTERN_H

#include "base/base.h"

/* Parts are separated by dots, and a pattern fits only identifiers with as many parts. In a part, `*` stands
 * for any run of characters, also none; it never reaches over a dot. */
sgm_status sgm__pattern_check(const char *pattern);
bool sgm__pattern_matches(const char *pattern, const char *identifier);
/* The number of characters that must be there; a pattern without `*` is above all that have one. Of several
 * patterns that match, the most specific one counts. */
int sgm__pattern_specificity(const char *pattern);
/* Below 0: `a` is less specific than `b`. More parts count first, then the above, then the first part with
 * more characters that must be there. */
int sgm__pattern_compare(const char *a, const char *b);

/* A part of an identifier for a name from elsewhere: what a part cannot hold becomes an underscore. Free with
 * sgm__free. */
char *sgm__identifier_part(const char *name);

#endif
