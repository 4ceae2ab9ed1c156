/* JSON as text in which a number is the shortest decimal that reads back as the same. Internal.
 *
 * jansson writes 17 digits of each, so that 0.0003 becomes 0.00029999999999999997, or as many of all as it is
 * told, which changes those that have more. */
#ifndef SGM_TEXT_JSON_TEXT_H
#define SGM_TEXT_JSON_TEXT_H

#include "base/base.h"
#include <jansson.h>

/* On one line, members in their order; NaN and infinities, which jansson refuses to hold, cannot come. */
void sgm__json_append(sgm__text *text, const json_t *value);
/* The same as a new string; NULL: out of memory, or there is no value. Free with sgm__free. */
char *sgm__json_text(const json_t *value);
/* What jansson found wrong with a text that it read with the flags of this library; lives as long as `error`.
 */
const char *sgm__json_mistake(const json_error_t *error);

#endif
