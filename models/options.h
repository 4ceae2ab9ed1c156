/* Options of public functions: structs whose first member is struct_size. */
#ifndef SIGMA_MODELS_OPTIONS_H
#define SIGMA_MODELS_OPTIONS_H

#include <sigma/base.h>

/* Copies what the caller's options have into `own`, of `size` bytes; the first member of both is struct_size.
 * NULL: all default. An error: the caller has not said how large they are. */
sgm_status sgm__take_options(void *own, size_t size, const void *given);

#endif
