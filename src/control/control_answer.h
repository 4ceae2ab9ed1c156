/* What answers on the control socket are made of. Internal. Values are new references. */
#ifndef SGM_CONTROL_CONTROL_ANSWER_H
#define SGM_CONTROL_CONTROL_ANSWER_H

#include <jansson.h>
#include <sigma/registry.h>

/* Always a text: what is no UTF-8, such as a message that was cut, loses what is not ASCII. */
json_t *sgm__answer_text(const char *text);
json_t *sgm__answer_number(double number);                        /* null where it is not finite */
json_t *sgm__answer_shape(const sgm_shape *shape, int32_t first); /* from dimension `first` on */
/* null for a tensor, which is told in sgm__answer_add's text. */
json_t *sgm__answer_content(const sgm_content *content);
/* Adds {"identifier", "kind", "value", "text"} to a list. */
void sgm__answer_add(json_t *list, const char *identifier, const sgm_content *content);

#endif
