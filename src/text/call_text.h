/* Calls as text, "name(value, key=value)": initialisers, modifiers, augmentations. Internal. */
#ifndef SGM_TEXT_CALL_TEXT_H
#define SGM_TEXT_CALL_TEXT_H

#include "base/base.h"

typedef struct sgm__call_field {
    const char *name;
    double *value;
} sgm__call_field;

/* The part before the parenthesis. */
sgm_status sgm__call_name(const char *text, char *name, size_t size);
/* Reads all arguments into `fields`. Positional ones fill fields[positional] and on; SIZE_MAX: there are
 * none. */
sgm_status sgm__call_parse(const char *text, const sgm__call_field *fields, size_t count, size_t positional);

#endif
