/* Lines of labelled texts. Internal. */
#ifndef SIGMA_MODELS_TEXT_CLASSES_H
#define SIGMA_MODELS_TEXT_CLASSES_H

#include <jansson.h>
#include <sigma/base.h>

#define SGM__LABELLED_EXPECTED                                                                               \
    "expected an object with text and label, a text or a whole number, such as {\"text\": \"how good\", "    \
    "\"label\": \"praise\"}"

/* Text and label of a line; *label is the caller's, to be freed. */
sgm_status sgm__text_label(const json_t *object, const char **text, char **label);

#endif
