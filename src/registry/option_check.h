/* Checks values against the rows that describe them, for folders above the registry. Internal. */
#ifndef SGM_REGISTRY_OPTION_CHECK_H
#define SGM_REGISTRY_OPTION_CHECK_H

#include "base/base.h"

#include <sigma/registry.h>

/* Checks bounds of numbers and choices of texts; messages begin with `identifier`. A NULL option allows
 * everything. */
sgm_status sgm__option_check(const sgm_option *option, const char *identifier, const sgm_content *value);
/* The same for a member of a struct of options, where 0 means that no value was given and passes. Texts pass,
 * too: they are checked where they are read. Messages begin "WHAT: name: expected ...". */
sgm_status sgm__setting_check(const sgm_setting *setting, const void *options, const char *what);

#endif
