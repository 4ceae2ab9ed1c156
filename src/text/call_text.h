/* Reads texts that look like calls, "name(value, key=value)", with numbers as arguments. Internal.
 *
 * Initialisers and modifiers (src/optim) and augmentations (src/data/augment.c) are written this way in
 * configurations. */
#ifndef SGM_TEXT_CALL_TEXT_H
#define SGM_TEXT_CALL_TEXT_H

#include "base/base.h"

/* One argument that a call may have. `value` holds the default before parsing, and stays as it is if the text
 * does not give the argument. */
typedef struct sgm__call_field {
    const char *name;
    double *value;
} sgm__call_field;

/* Copies the name, the word before the parenthesis, into `name` of `size` bytes. */
sgm_status sgm__call_name(const char *text, char *name, size_t size);
/* Reads all arguments into `fields`. Arguments without a key fill fields[positional], fields[positional + 1],
 * ...; with SIZE_MAX every argument needs its key. A text without parentheses has no arguments. */
sgm_status sgm__call_parse(const char *text, const sgm__call_field *fields, size_t count, size_t positional);

#endif
