/* Writes JSON in which each number is the shortest decimal that reads back as the same double. Internal.
 *
 * jansson itself writes 17 digits of every number, so that 0.0003 becomes 0.00029999999999999997, or for all
 * numbers as many as it is told, which changes those that need more. */
#ifndef SGM_TEXT_JSON_TEXT_H
#define SGM_TEXT_JSON_TEXT_H

#include "base/base.h"
#include <jansson.h>

/* Appends the value on one line, without spaces; members keep their order. NaN and infinities cannot occur:
 * jansson refuses to hold them. */
void sgm__json_append(sgm__text *text, const json_t *value);
/* As a new string, freed with sgm__free; NULL: out of memory, or `value` is NULL. */
char *sgm__json_text(const json_t *value);
/* Describes why jansson could not read a text; lives as long as `error`. */
const char *sgm__json_mistake(const json_error_t *error);

#endif
