/* What answers on the control socket are made of: JSON of texts, numbers, shapes and values. Internal.
 *
 * Each function returns a new reference; NULL: out of memory. */
#ifndef SGM_CONTROL_CONTROL_ANSWER_H
#define SGM_CONTROL_CONTROL_ANSWER_H

#include <jansson.h>
#include <sigma/registry.h>

/* Always a JSON text: in one that is not UTF-8, such as a message that was cut, bytes beyond ASCII become
 * '?'. */
json_t *sgm__answer_text(const char *text);
json_t *sgm__answer_number(double number); /* null if the number is not finite */
json_t *sgm__answer_shape(const sgm_shape *shape,
                          int32_t first); /* list of the sizes, from dimension `first` on */
/* null for a tensor: sgm__answer_add describes it in "text". */
json_t *sgm__answer_content(const sgm_content *content);
/* Adds what an option's row says to an object: unit, bounds, choices, documentation, and the default. */
void sgm__answer_option(json_t *item, const sgm_option *option, bool with_default);
/* Adds {"identifier", "kind", "value", "text"} to a list. */
void sgm__answer_add(json_t *list, const char *identifier, const sgm_content *content);

#endif
